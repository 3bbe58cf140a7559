"""What a summary says, and the notes made from it."""

import dataclasses

import pytest
from report_samples import DATASETS, FAMILY, a_result, whole_summary

from edrvfl.bench import paper
from edrvfl.bench.comparison import average_ranks, means, round_half_up
from edrvfl.bench.report.sentences import notes, what_is_compared
from edrvfl.bench.report.study import Result, Study
from edrvfl.bench.report.summary import summarise


def summary_of(*results):
    return summarise(Study(results))


@pytest.fixture(scope="module")
def whole():
    return whole_summary()


def test_every_number_is_that_of_a_result(whole):
    assert (whole.methods, whole.datasets) == (FAMILY[::-1], DATASETS)
    for name, choice in {"paper": whole.paper, "strict": whole.standing}.items():
        result = whole.results["glass", "PedRVFL"]
        assert choice.scores.loc["glass", "PedRVFL"] == round_half_up(result.scored[name].accuracy)
        assert choice.ranks == average_ranks(choice.scores)
        assert choice.means == means(choice.scores)
        assert choice.common == DATASETS
    assert len(whole.against_paper) == 120
    for cell in whole.against_paper:
        assert cell.published == paper.accuracies().loc[cell.dataset, cell.method]


def test_results_that_gave_way_and_unequal_searches_are_noted():
    results = [a_result("a", "iris", configurations=n, seeds=s) for n, s in ((200, 2), (1, 1))]
    failed = a_result("a", "iris", status="failed", configurations=500)
    summary = summary_of(*results, failed, a_result("a", "wine", configurations=1, seeds=1))
    assert summary.results["iris", "a"].configurations == 200
    assert "2 records not shown" in notes(summary)[0]
    assert (
        "different extents: 1 configuration and 1 seed, 200 configurations and 2 seeds." in notes(summary)[1]
    )


def test_different_data_of_one_name_are_noted():
    other = dataclasses.replace(a_result("b", "iris"), checksum="cd" * 32)
    summary = summary_of(a_result("a", "iris"), other)
    assert len(summary.checksums["iris"]) == 2
    assert "different data or partitions of the same name: iris" in notes(summary)[0]


def test_a_method_with_few_datasets_is_shown_but_not_compared():
    names = ("iris", "wine", "digits", "breast_cancer")
    summary = summary_of(*(a_result(m, d) for d in names for m in "abc"), a_result("few", "iris", 99))
    *others, last = summary.paper.methods
    assert (sorted(others), last) == (["a", "b", "c"], "few")
    assert list(summary.paper.compared) == others
    said = what_is_compared(summary.paper)
    assert said.endswith("that the other methods have. Not compared, because they have fewer: few.")


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
    assert "over the 1 dataset that all methods shown have (iris); left out: wine." in what_is_compared(
        summary.paper
    )


def test_commits_of_peers_without_a_search_are_listed_too():
    searched, as_it_comes = a_result("WPedRVFL", "iris"), a_result("LightGBM", "iris", configurations=1)
    results = (
        dataclasses.replace(searched, origins={"commit": "a"}),
        dataclasses.replace(as_it_comes, origins={"commit": "b"}),
    )
    assert summarise(Study(results)).origins["commit"] == ("a", "b")
