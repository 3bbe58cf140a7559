"""The report's sentences: the answer of whole studies and of small ones, and what the experiments show."""

import dataclasses
import re

import numpy as np
import pytest
from report_samples import (
    DATASETS,
    FAMILY,
    SMALL_STUDIES,
    a_point,
    a_result,
    a_time,
    full_summary,
    grids,
    summary_of,
)

from edrvfl.bench import paper
from edrvfl.bench.comparison import average_ranks, compare_pairs
from edrvfl.bench.report.front import answer
from edrvfl.bench.report.page import p_text
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.sections.sensitivity import (
    HARMS,
    HELPS,
    INERT,
    PEAK,
    RISES,
    UNCLEAR,
    agreement,
    effects,
)
from edrvfl.bench.report.sections.timing import timing_sentences
from edrvfl.bench.report.sentences import compared
from edrvfl.bench.sensitivity import Sensitivity


def said(summary):
    return [sentence.replace("\N{NO-BREAK SPACE}", " ") for sentence in answer(summary)]


def test_where_the_papers_method_and_the_portfolio_stand():
    standing = full_summary().standing
    first, second = said(full_summary())
    twelve = standing.scores[list(paper.accuracies())]
    ranks, pairs = average_ranks(twelve), compare_pairs(twelve)
    assert min(ranks, key=ranks.get) == "WPedRVFL"
    better = sum(pairs.sign("WPedRVFL", m, holm=True) == "+" for m in twelve if m != "WPedRVFL")
    assert better > 0
    ours, best = (standing.means[m] for m in ("WPedRVFL", "XGBoost, tuned"))
    assert first.startswith(
        f"Among the paper's 12 methods, each tuned, WPedRVFL ({ours:.2f} %) ranks first, clearly better than "
        f"{better} of the other 11 and clearly worse than none; it ranks ahead of none of 2 tuned boosting "
        f"packages (best: XGBoost, {best:.2f} %; ahead on "
    )
    pair = compare_pairs(standing.scores).pair("edRVFL portfolio", "XGBoost, tuned")
    assert pair.p_holm > 1.5 * pair.p_normal, "adjusted, as in the table of all pairs"
    clear = "significant" if pair.p_holm < 0.05 else "not significant"
    assert second == (
        f"The edRVFL portfolio, without any search, reaches {standing.means['edRVFL portfolio']:.2f} % and "
        f"ranks ahead of 1 of 2 tuned boosting packages (best: XGBoost, {best:.2f} %; ahead on {pair.wins} "
        f"of 24, {clear} among 17 methods, p = {p_text(pair.p_holm)}) and of 2 of 2 at their defaults; "
        "its log-loss, 0.300, has place 1 of 17."
    )
    assert compared(standing) == (
        "Compared: 12 of the paper's 12 methods, 2 other tuned, 3 without any search; 24 UCI datasets; "
        "strict choice (by a split's own validation rows); 17 of these 17 have all datasets and are ranked."
    )


def test_a_method_that_is_ahead_is_named():
    results = [a_result(m, d, {"PedRVFL": 90}.get(m, 80), noise=0.01) for d in DATASETS for m in FAMILY]
    summary = summary_of(*results)
    first, table = said(summary)[0], list(summary.standing.entries)
    ahead = table[: table.index("WPedRVFL")]
    assert ahead[0] == "PedRVFL"
    assert f"ranks behind {' and '.join(', '.join(ahead).rsplit(', ', 1))}, clearly" in first
    assert first.startswith("Among the 5 of the paper's 12 methods, each tuned, WPedRVFL (")
    assert re.search(r"clearly worse than [1-4]\.$", first)


def test_other_studies_say_who_is_best_and_whether_it_is_chance():
    def ahead(n):
        return summary_of(*(a_result(m, d, 90 if m == "b" else 80) for d in DATASETS[:n] for m in "abc"))

    first, second = said(ahead(8))
    assert first.startswith("Over the 8 datasets that all 3 compared methods have, b has the best average ")
    assert f"1.00, with a mean of {ahead(8).standing.means['b']:.2f}; the second is " in first
    assert "significant at 0.05 (Wilcoxon with Holm, p = " in second
    assert said(ahead(2))[1] == "Fewer than 6 datasets cannot show that this is more than chance."
    assert not [key for key in grids(make_page(ahead(2))) if key.startswith(("pairs-", "signs-"))]


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("none", "There is no finished cell of a search to report on. The store holds no cells at all."),
        ("all failed", "The store holds 1 failed."),
        ("nothing begun", "The store holds 1 missing."),
        ("one method", "There are no two methods with a dataset in common."),
        ("nothing in common", "There are no two methods with a dataset in common."),
    ],
)
def test_little_is_told_as_little(name, phrase):
    assert phrase in " ".join(said(summary_of(*SMALL_STUDIES[name])))


# --- experiments -----------------------------------------------------------------------------------------


def curve(parameter, dataset, *means, activation="relu"):
    """A curve whose seeds agree up to a little."""
    ends = (1, 0.2) if parameter == "correct_weight" else (0, 0.8)
    wobble = np.array([-0.01, 0.0, 0.01])
    rows = [tuple((m + (i > 0) * wobble).tolist()) for i, m in enumerate(means)]
    values = np.linspace(*ends, len(means)).tolist()
    return [
        a_point(dataset, activation, (row,) * 4, {}, **{parameter: v})
        for v, row in zip(values, rows, strict=True)
    ]


def found(parameter, *curves):
    return effects(Sensitivity(tuple(p for points in curves for p in points)), parameter)


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
    points = curve(parameter, "glass", *means)
    (effect,) = found(parameter, points)
    assert (effect.verdict, effect.paper) == (verdict, None)
    (same,) = found(parameter, [dataclasses.replace(p, test_accuracy=((90.0,),)) for p in points])
    assert same.verdict == INERT


def test_sentences_say_where_the_paper_is_met_and_where_not():
    datasets = ("arrhythmia", "waveform-noise", "statlog-image", "wine")
    some = found("correct_weight", *(curve("correct_weight", d, 90, 91, 92) for d in datasets))
    assert agreement("correct_weight", some) == (
        "Weighting agrees with the paper's text in 2 of 3 curves. It differs in the others: it helps on "
        "waveform-noise (relu)."
    )


def test_times_are_compared_with_table_8():
    rows = (("contrac", "WPedRVFL", 0.2449), ("contrac", "SNN", 2.449), ("iris", "WPedRVFL", 1.0))
    timed = [a_time(*row) for row in rows]
    seconds, ratio = timing_sentences(timed)
    assert "WPedRVFL took 0.5 to 0.5 times the seconds that Table 8 prints, on 1 of its datasets" in seconds
    assert "10 to 10 times as long as WPedRVFL here and 5.9 to 5.9 times in Table 8" in ratio
    assert timing_sentences(timed[:1]) == [seconds]
    assert timing_sentences(timed[2:]) == []
