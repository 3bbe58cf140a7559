import dataclasses

import numpy as np
import pytest

from edrvfl import EDRVFLClassifier
from edrvfl.bench import published
from edrvfl.bench.datasets import load_dataset
from edrvfl.bench.experiments import (
    HARMS,
    HELPS,
    INERT,
    PEAK,
    RISES,
    UNCLEAR,
    Point,
    Sensitivity,
    Timed,
    Timing,
    effects,
    fixed_settings,
    sensitivity,
    sensitivity_command,
    sensitivity_sentences,
    timing,
    timing_command,
    timing_sentences,
)
from edrvfl.bench.protocol import seed_of

SMALL = {"n_hidden": 20, "n_layers": 2, "regularization": 1.0}


@pytest.fixture(scope="module")
def wine():
    return load_dataset("wine")


@pytest.fixture(scope="module")
def small(wine):
    return sensitivity([wine], weights=(0.5, 0.2), rates=(0.5,), seeds=2, settings=SMALL)


# --- section 5.5 -----------------------------------------------------------------------------------------


def test_the_settings_are_those_of_table_7():
    expected = {"regularization": 1, "n_hidden": 500, "n_layers": 3, "norm_scale": 1, "norm_shift": 0}
    assert fixed_settings() == expected


def test_a_point_is_what_the_estimator_gives(small, wine):
    point = small.curves("correct_weight")["wine", "sigmoid"][-1]
    assert point.value == 0.2
    model = EDRVFLClassifier(
        activation="sigmoid",
        correct_weight=0.2,
        prune_rate=0.0,
        random_state=seed_of("hidden", "wine", 1),
        **SMALL,
    )
    split = wine.splits[3]
    model.fit(wine.X[split.train], wine.y[split.train])
    assert point.test_accuracy[3][1] == 100 * model.score(wine.X[split.test], wine.y[split.test])


def test_both_grids_start_at_the_neutral_value_which_they_share(small):
    weights = small.curves("correct_weight")["wine", "relu"]
    rates = small.curves("prune_rate")["wine", "relu"]
    assert [p.value for p in weights] == [1.0, 0.5, 0.2]
    assert [p.value for p in rates] == [0.0, 0.5]
    assert weights[0].test_accuracy == rates[0].test_accuracy


def test_the_table_has_mean_and_sd_over_seeds(small):
    point = small.curves("prune_rate")["wine", "relu"][1]
    row = next(r for r in small.table("prune_rate").records() if (r["activation"], r["p"]) == ("relu", 0.5))
    by_seed = np.mean(point.test_accuracy, axis=0)
    assert row["test_accuracy"] == pytest.approx(by_seed.mean(), abs=1e-4)
    assert row["sd"] == pytest.approx(by_seed.std(ddof=1), abs=1e-4)


def test_sensitivity_survives_json(small):
    assert Sensitivity.from_json(small.to_json()) == small


def test_progress_counts_every_point(wine):
    seen = []
    sensitivity(
        [wine],
        weights=(1.0,),
        rates=(),
        activations=("relu",),
        seeds=1,
        settings=SMALL,
        progress=lambda *args: seen.append(args),
    )
    assert seen == [(1, 1, "wine, relu, omega_r = 1")]


def test_no_seeds_are_refused(wine):
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        sensitivity([wine], seeds=0)


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
    return Sensitivity({}, 3, tuple(p for points in curves for p in points), {}, 0.0)


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


def test_sensitivity_command_writes_figures_and_data(tmp_path):
    files = sensitivity_command(tmp_path / "out", datasets=["iris"], weights=[0.5], rates=[0.5], seeds=1)
    assert sorted(path.name for path in files) == [
        "sensitivity.json",
        "sensitivity_correct_weight.csv",
        "sensitivity_correct_weight.svg",
        "sensitivity_prune_rate.csv",
        "sensitivity_prune_rate.svg",
    ]
    result = Sensitivity.from_json(files[0].read_text(encoding="utf-8"))
    assert result.settings == fixed_settings()


# --- section 5.6 -----------------------------------------------------------------------------------------


class Counting:
    fits = 0

    def fit(self, X, y):
        type(self).fits += 1

    def __repr__(self):
        return "Counting(\n  a=1)"


def test_warm_ups_are_not_counted(wine):
    Counting.fits = 0
    result = timing({"c": lambda seed: Counting()}, [wine], warmups=2, repeats=3)
    assert Counting.fits == 5
    (timed,) = result.timed
    assert len(timed.seconds) == 3
    assert timed.median == sorted(timed.seconds)[1]
    assert (timed.rows, timed.features, timed.parameters) == (133, 13, "Counting( a=1)")
    assert result.threads == 1
    assert Timing.from_json(result.to_json()) == result


def test_timing_refuses_nonsense(wine):
    with pytest.raises(ValueError, match="repeats=0"):
        timing({}, [wine], repeats=0)


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


def test_timing_command(tmp_path):
    json_file, csv_file = timing_command(tmp_path, datasets=["iris"], repeats=1, warmups=0)
    result = Timing.from_json(json_file.read_text(encoding="utf-8"))
    assert "n_hidden=500" in result.timed[0].parameters
    assert csv_file.read_text(encoding="utf-8").startswith("dataset,method,rows,")


def test_table_8_stands_beside():
    timed = Timed("spambase", "SNN", 1, 1, "", (1.0,))
    (row,) = Timing((timed,), 1, 1, 1, (), "", {}).table().records()
    assert row["published_s"] == published.training_seconds()["spambase", "SNN"]
