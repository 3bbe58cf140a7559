"""The answer in two sentences, of whole studies and of small ones."""

import re

import pytest
from report_samples import (
    DATASETS,
    FAMILY,
    SMALL_STUDIES,
    a_default,
    a_result,
    full_summary,
    some_results,
    summary_of,
)

from edrvfl.bench import paper
from edrvfl.bench.comparison import average_ranks, compare, compare_pairs
from edrvfl.bench.defaults import Defaults
from edrvfl.bench.report.sentences import compared
from edrvfl.bench.report.sentences_answer import answer
from edrvfl.bench.report.study import Study
from edrvfl.bench.report.summary import summarise


def plain(sentence):
    return sentence.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def full():
    return full_summary()


def test_where_the_papers_method_stands_among_the_twelve_and_tuned_boosting(full):
    first = plain(answer(full)[0])
    twelve = full.standing.scores[list(paper.accuracies())]
    ranks, pairs = average_ranks(twelve), compare_pairs(twelve)
    assert min(ranks, key=ranks.get) == "WPedRVFL"
    better = sum(pairs.sign("WPedRVFL", m, holm=True) == "+" for m in twelve if m != "WPedRVFL")
    assert better > 0
    mean = full.standing.means["WPedRVFL"]
    assert first.startswith(
        f"Among the paper's 12 methods, each tuned, WPedRVFL ({mean:.2f} %) ranks first, clearly better than "
        f"{better} of the other 11 and clearly worse than none; it ranks behind all 2 tuned boosting packages"
    )


def test_where_the_portfolio_stands_among_tuned_and_default_boosting(full):
    second, standing = plain(answer(full)[1]), full.standing
    p = compare(standing.scores[["edRVFL portfolio", "XGBoost, tuned"]], "edRVFL portfolio", "XGBoost, tuned")
    found = re.fullmatch(
        r"The edRVFL portfolio, without any search, reaches (\S+) % and ranks ahead of 1 of 2 tuned boosting "
        r"packages \(best: XGBoost, (\S+) %, p = (\S+)\) and ahead of all 2 at their defaults; its "
        r"log-loss, 0.300, is the lowest of 17\.",
        second,
    )
    means = [standing.means[m] for m in ("edRVFL portfolio", "XGBoost, tuned")]
    assert [float(found[i]) for i in (1, 2)] == means
    assert float(found[3]) == pytest.approx(p.p_normal, rel=0.05)


def test_a_method_that_is_ahead_is_named():
    results = [a_result(m, d, {"PedRVFL": 90}.get(m, 80), noise=0.01) for d in DATASETS for m in FAMILY]
    summary = summary_of(*results)
    first = plain(answer(summary)[0])
    table = list(summary.standing.entries)
    ahead = table[: table.index("WPedRVFL")]
    assert ahead[0] == "PedRVFL"
    assert f", behind {' and '.join(', '.join(ahead).rsplit(', ', 1))}, clearly" in first, "as in the table"
    assert first.startswith("Among the 5 of the paper's 12 methods that are complete, each tuned, WPedRVFL (")
    assert re.search(r"clearly worse than [1-4]\.$", first)


def test_other_studies_say_who_is_best_and_whether_it_is_chance():
    summary = summary_of(*(a_result(m, d, 90 if m == "b" else 80) for d in DATASETS[:8] for m in "abc"))
    first, second = answer(summary)
    assert first.startswith(
        "Over the 8 datasets that all 3 methods have, b has the best average rank, 1.00, "
    )
    assert f"accuracy of {summary.standing.means['b']:.2f} %" in first
    assert "The methods' ranks differ (Friedman p" in second
    assert re.search(r"the lead of b over the second, [ac], is 8 wins, 0 ties and 0 losses", second)


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("none", "There is no finished cell of a search to report on. The store holds no cells at all."),
        ("all failed", "The store holds 1 failed."),
        ("nothing begun", "The store holds 1 missing."),
        ("one method", "With one method there is nothing to rank or to test."),
        ("one dataset", "Among the 5 of the paper's 12 methods that are complete, each tuned, WPedRVFL"),
        ("nothing in common", "No dataset has a figure for all 2 methods"),
    ],
)
def test_it_says_so(name, phrase):
    assert phrase in " ".join(answer(summary_of(*SMALL_STUDIES[name])))


def test_what_was_compared(full):
    assert compared(full.standing) == (
        "Compared: the paper's 12 methods, 2 other tuned methods, 3 without any search; 24 UCI datasets, "
        "published partitions; strict choice (by a split's own validation rows)."
    )
    demo = summary_of(*SMALL_STUDIES["one seed"])
    assert compared(demo.standing).startswith("Compared: 2 tuned methods; 2 datasets; strict choice")
    defaults = Defaults.of([a_default("glass", "LightGBM")])
    assert compared(summarise(Study(defaults=defaults)).standing) == (
        "Compared: 1 without any search; 1 UCI dataset, published partitions."
    )
    some = summary_of(*some_results(FAMILY[:2]))
    assert "Compared: 2 of the paper's 12 methods; 24" in compared(some.standing)
