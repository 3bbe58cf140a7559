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
from edrvfl.bench.comparison import average_ranks, compare_pairs
from edrvfl.bench.defaults import Defaults
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.sentences import compared, p_text
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
    ours, best = (standing.means[m] for m in ("edRVFL portfolio", "XGBoost, tuned"))
    pair = compare_pairs(standing.scores).pair("edRVFL portfolio", "XGBoost, tuned")
    assert pair.p_holm > 1.5 * pair.p_normal
    clear = "significant" if pair.p_holm < 0.05 else "not significant"
    assert second == (
        f"The edRVFL portfolio, without any search, reaches {ours:.2f} % and ranks ahead of 1 of 2 tuned "
        f"boosting packages (best: XGBoost, {best:.2f} %; ahead on {pair.wins} of 24, {clear} among 17 "
        f"methods, p = {p_text(pair.p_holm)}) and ahead of all 2 at their defaults; its log-loss, 0.300, is "
        "the lowest of 17."
    ), "adjusted, as in the table of all pairs"


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
    assert re.search(r"The lead of b over the second, [ac], is 8 wins, 0 ties and 0 losses", second)


def test_a_tie_is_told_as_a_tie_and_few_datasets_have_no_p_value():
    results = [
        a_result(m, d, 90 if (m, d) in (("a", "iris"), ("b", "wine")) else 80)
        for m in "ab"
        for d in ("iris", "wine")
    ]
    first, second = answer(summary_of(*results))
    assert "a and b share the best average rank, 1.50, with mean test accuracies of " in first
    assert second == "There is no single best method whose lead could be tested."
    ahead = summary_of(*(a_result(m, d, 90 if m == "a" else 80) for m in "ab" for d in ("iris", "wine")))
    assert answer(ahead)[1] == (
        "The lead of a over the second, b, is 2 wins, 0 ties and 0 losses; fewer than 6 datasets cannot show "
        "that this is more than chance."
    )
    keys = [grid.key for section in make_page(ahead).sections for grid in section.grids]
    assert not [key for key in keys if key.startswith(("pairs-", "signs-"))]


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
    fewer = summary_of(*some_results(FAMILY, DATASETS), a_result("few", DATASETS[0]))
    assert compared(fewer.standing).endswith("; 5 of these 6 have all datasets and are ranked.")
    demo = summary_of(*SMALL_STUDIES["one seed"])
    assert compared(demo.standing).startswith("Compared: 2 tuned methods; 2 datasets; strict choice")
    defaults = Defaults.of([a_default("glass", "LightGBM")])
    assert compared(summarise(Study(defaults=defaults)).standing) == (
        "Compared: 1 without any search; 1 UCI dataset, published partitions."
    )
    some = summary_of(*some_results(FAMILY[:2]))
    assert "Compared: 2 of the paper's 12 methods; 24" in compared(some.standing)
