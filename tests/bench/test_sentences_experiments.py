import dataclasses

import numpy as np
import pytest

from edrvfl.bench.report.sentences_experiments import (
    HARMS,
    HELPS,
    INERT,
    PEAK,
    RISES,
    UNCLEAR,
    effects,
    sensitivity_sentences,
    timing_sentences,
)
from edrvfl.bench.sensitivity import Point, Sensitivity
from edrvfl.bench.timing import Timed, Timing


def curve(parameter, dataset, *means, activation="relu"):
    """A curve whose seeds agree up to a little."""
    values = (
        np.linspace(1, 0.2, len(means)) if parameter == "correct_weight" else np.linspace(0, 0.8, len(means))
    )
    wobble = np.array([-0.01, 0.0, 0.01])
    rows = [tuple((m + (i > 0) * wobble).tolist()) for i, m in enumerate(means)]
    return [
        Point(parameter, float(v), dataset, activation, (row,) * 4, 99.0)
        for v, row in zip(values, rows, strict=True)
    ]


def made_of(*curves):
    return Sensitivity({}, 3, tuple(p for points in curves for p in points), {})


@pytest.mark.parametrize(
    ("parameter", "means", "verdict"),
    [
        ("correct_weight", (90, 91, 89), HELPS),
        ("correct_weight", (90, 89, 88), HARMS),
        ("correct_weight", (90, 90.001, 90.0), UNCLEAR),
        ("prune_rate", (90, 91, 89), PEAK),
        ("prune_rate", (90, 91, 92), RISES),
        ("prune_rate", (90, 89, 88), HARMS),
    ],
)
def test_verdicts(parameter, means, verdict):
    (effect,) = effects(made_of(curve(parameter, "glass", *means)), parameter)
    assert effect.verdict == verdict
    assert effect.agrees is None


def test_equal_everywhere_is_inert():
    points = [
        dataclasses.replace(p, test_accuracy=((90.0,),)) for p in curve("correct_weight", "glass", 1, 2)
    ]
    assert effects(made_of(points), "correct_weight")[0].verdict == INERT


def test_sentences_say_where_the_paper_is_met_and_where_not():
    result = made_of(
        curve("correct_weight", "arrhythmia", 90, 91, 92),
        curve("correct_weight", "waveform-noise", 90, 91, 92),
        curve("correct_weight", "statlog-image", 90, 91, 92, activation="sigmoid"),
        curve("correct_weight", "wine", 90, 91, 92),
    )
    agree, differ = sensitivity_sentences(result, "correct_weight")
    assert agree == (
        "Weighting agrees with the paper's text in 2 of 3 curves: it helps on arrhythmia (relu), "
        "statlog-image (sigmoid)."
    )
    assert (
        differ
        == "It differs in 1: it helps on waveform-noise (relu); the paper says it harms on waveform-noise."
    )
    assert "not measured" in sensitivity_sentences(made_of(), "prune_rate")[0]


def test_timing_sentences():
    def result(*rows):
        timed = tuple(Timed(d, m, 1, 1, "", (s,)) for d, m, s in rows)
        return Timing(timed, 1, 1, 1, (), "", {})

    both = timing_sentences(result(("contrac", "WPedRVFL", 0.2449), ("contrac", "SNN", 2.449)))
    assert "WPedRVFL took 0.5 to 0.5 times the seconds" in both[0]
    assert "10 to 10 times as long as WPedRVFL here and 5.9 to 5.9 times in Table 8" in both[1]
    assert both[1].endswith("agrees.")
    assert "SNN was not timed" in timing_sentences(result(("contrac", "WPedRVFL", 1.0)))[1]
    assert "None of the measured pairs" in timing_sentences(result(("iris", "WPedRVFL", 1.0)))[0]
