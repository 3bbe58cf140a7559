"""What a summary says: results, notes, and tuned methods and methods as they come in one ranking."""

import dataclasses

import pandas as pd
import pytest
from report_samples import (
    DATASETS,
    FAMILY,
    a_default,
    a_result,
    full_summary,
    grids,
    summary_of,
    whole_summary,
)

from edrvfl.bench import paper
from edrvfl.bench.comparison import Ranking, average_ranks, means, round_half_up
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.sentences import leader, notes
from edrvfl.bench.report.study import Result


def standing_of(results, defaults=()):
    return summary_of(*results, defaults=defaults).standing


def test_every_number_is_that_of_a_result():
    whole = whole_summary()
    assert (whole.methods, whole.datasets) == (FAMILY[::-1], DATASETS)
    for name, choice in {"paper": whole.paper, "strict": whole.standing}.items():
        result = whole.results["glass", "PedRVFL"]
        assert choice.scores.loc["glass", "PedRVFL"] == round_half_up(result.scored[name].accuracy)
        assert choice.ranks == average_ranks(choice.scores)
        assert choice.means == means(choice.scores)
        assert choice.common == DATASETS
    assert len(whole.against_paper) == 120
    for cell in whole.against_paper.itertuples():
        assert cell.published == paper.accuracies().loc[cell.dataset, cell.method]


def test_results_that_gave_way_and_unequal_searches_are_noted():
    results = [a_result("a", "iris", configurations=n, seeds=s) for n, s in ((200, 2), (1, 1))]
    failed = a_result("a", "iris", status="failed", configurations=500)
    summary = summary_of(*results, failed, a_result("a", "wine", configurations=1, seeds=1))
    assert summary.results["iris", "a"].configurations == 200
    gave_way, extents = notes(summary)
    assert "2 records not shown" in gave_way
    assert "different extents: 1 configuration and 1 seed, 200 configurations and 2 seeds." in extents


def test_different_data_of_one_name_are_noted():
    other = dataclasses.replace(a_result("b", "iris"), checksum="cd" * 32)
    summary = summary_of(a_result("a", "iris"), other)
    assert len(summary.checksums["iris"]) == 2
    assert "different data or partitions of the same name: iris" in notes(summary)[-1]


def test_a_method_with_few_datasets_is_shown_but_not_compared():
    names = ("iris", "wine", "digits", "breast_cancer")
    summary = summary_of(*(a_result(m, d) for d in names for m in "abc"), a_result("few", "iris", 99))
    *others, last = summary.paper.scores
    assert (sorted(others), last) == (["a", "b", "c"], "few")
    assert list(summary.paper.compared) == others
    (note,) = grids(make_page(summary))["accuracy-paper"].notes
    assert "over the 4 datasets without a gap. Not compared, because they have fewer: few." in note


def test_a_cell_without_a_result_is_missing_whatever_became_of_it():
    begun = Result("digits", "b", "missing", "3 of at most 26 units done", 10, 2)
    ran = [a_result("a", "iris"), a_result("b", "iris"), a_result("a", "wine")]
    summary = summary_of(*ran, a_result("b", "wine", status="failed", message="it broke"), begun)
    assert {pair: (r.status, r.message) for pair, r in summary.results.items() if r.status != "ok"} == {
        ("digits", "a"): ("missing", "not part of any run in this store"),
        ("digits", "b"): ("missing", "3 of at most 26 units done"),
        ("wine", "b"): ("failed", "it broke"),
    }
    assert summary.paper.common == ("iris",)


def test_commits_of_peers_without_a_search_are_listed_too():
    searched, as_it_comes = a_result("WPedRVFL", "iris"), a_result("LightGBM", "iris", configurations=1)
    summary = summary_of(
        dataclasses.replace(searched, origins={"commit": "a"}),
        dataclasses.replace(as_it_comes, origins={"commit": "b"}),
    )
    assert summary.origins["commit"] == ("a", "b")


# --- tuned methods and methods as they come --------------------------------------------------------------


def test_ranks_are_over_all_lines_and_the_subject_is_first_in_the_table():
    standing = full_summary().standing
    assert list(standing.scores)[:6] == [
        *("edRVFL portfolio", "WPedRVFL", "PedRVFL", "WedRVFL", "edRVFL_N", "edRVFL_O")
    ]
    assert standing.ranks == average_ranks(standing.scores)
    ranks = [standing.ranks[name] for name in standing.entries]
    assert ranks == sorted(ranks)
    assert standing.common == DATASETS


def test_one_configuration_of_a_peer_is_its_default_and_is_shown_once():
    datasets = DATASETS[:2]
    studied = [a_result("LightGBM", d, 70, configurations=1, noise=0) for d in datasets]
    ours = [a_result("RVFL", d, configurations=1) for d in datasets]
    standing = standing_of([*studied, *ours])
    assert set(standing.entries) == {"LightGBM, default", "RVFL"}
    assert not standing.entries["LightGBM, default"].tuned
    assert standing.entries["RVFL"].tuned, "one configuration of ours is a search all the same"
    assert standing.means["LightGBM, default"] == 69.8, "strict"
    found = standing_of([*studied, *ours], [a_default(datasets[0], "LightGBM", 0.9)]).entries
    accuracies = [found["LightGBM, default"].results[d].scored["strict"].accuracy for d in datasets]
    assert accuracies == pytest.approx([90, 69.8])


def test_a_peer_has_two_lines_if_it_was_tuned_and_its_search_stands_apart():
    tried = zip(DATASETS[:3], (50, 12, 50), strict=True)
    tuned = [a_result("XGBoost", d, 80, configurations=n) for d, n in tried]
    once = a_result("XGBoost", DATASETS[0], 60, configurations=1)
    summary = summary_of(*tuned, once, defaults=[a_default(d, "XGBoost") for d in DATASETS[:3]])
    entries = summary.standing.entries
    assert set(entries) == {"XGBoost, tuned", "XGBoost, default"}
    assert entries["XGBoost, tuned"].configurations == "12-50"
    assert {entry.kind for entry in entries.values()} == {"peer"}
    assert (summary.methods, summary.extents) == (("XGBoost, tuned",), ((12, 2), (50, 2)))


def test_lines_without_all_datasets_stand_last_and_are_not_ranked():
    results = [a_result(m, d) for m in "ab" for d in DATASETS[:4]]
    results += [a_result("most", d, 99) for d in DATASETS[:3]] + [a_result("few", DATASETS[0], 99)]
    standing = standing_of(results, [a_default("Chile", "LightGBM")])
    assert list(standing.entries)[2:] == ["most", "few"]
    assert set(standing.ranks) == {"a", "b"}
    assert len(standing.common) == 4


def test_where_no_line_has_all_datasets_the_largest_whole_table_counts():
    results = [a_result(m, d) for m in "ab" for d in DATASETS[:4] if (m, d) != ("a", DATASETS[0])]
    standing = standing_of([*results, a_result("c", DATASETS[1])])
    assert set(standing.ranks) == {"a", "b"}
    assert standing.common == DATASETS[1:4]


def test_defaults_alone_have_a_standing_on_the_papers_datasets():
    both = (("LightGBM", 0.7), ("edRVFL bins", 0.8))
    standing = standing_of([], [a_default(d, m, a) for d in ("glass", "OJ") for m, a in both])
    assert list(standing.scores.index) == ["glass"]
    assert list(standing.entries) == ["edRVFL bins", "LightGBM, default"]


def test_means_are_of_printed_figures_and_seconds_geometric():
    where, rows = ("glass", "bank"), ((0.434, 1), (0.435, 4))
    records = [a_default(d, "LightGBM", loss=l, seconds=s) for d, (l, s) in zip(where, rows, strict=True)]
    entry = standing_of([], records).entries["LightGBM, default"]
    assert [entry.mean("log_loss", where, n) for n in (4, 3)] == [0.4345, 0.435], "rounded once, half up"
    assert entry.seconds(where) == pytest.approx(2)
    assert not entry.on_gpu
    old = standing_of([a_result("a", "glass")]).entries["a"]
    assert old.mean("calibration_error", ("glass",), 4) is None, "records of old did not measure it"


def test_a_tie_is_told_as_a_tie():
    scores = pd.DataFrame({"A": [70.0, 60.0], "B": [60.0, 70.0], "C": [50.0, 50.0]}, index=["one", "two"])
    first, second = leader(Ranking.of(scores), "accuracy")
    assert "A and B share the best average rank by accuracy, 1.50." in first
    assert second == "A tie is no lead."
    first, _ = leader(Ranking.of(scores.assign(A=[70.0, 80.0])), "accuracy")
    assert "A has the best average rank" in first
