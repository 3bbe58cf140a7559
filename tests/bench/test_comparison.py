import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from edrvfl.bench import paper
from edrvfl.bench.comparison import (
    ALPHA,
    average_ranks,
    comparable,
    compare,
    compare_pairs,
    critical_difference,
    friedman,
    mean,
    means,
    round_half_up,
    score_table,
    signed_rank,
)
from edrvfl.bench.methods import TABLE, subject_first


@pytest.fixture
def drawn(rng):
    values = np.round(rng.uniform(60, 90, (9, 5)), 1)  # one digit: ties happen
    return pd.DataFrame(values, index=[f"d{i}" for i in range(9)], columns=list("abcde"))


def table(*rows, methods="ab"):
    return pd.DataFrame(
        list(rows), index=[f"d{i}" for i in range(len(rows))], columns=list(methods), dtype=float
    )


# --- rounding and means ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (80.395, 2, 80.4),
        (-0.125, 2, -0.13),
        (2.675, 2, 2.68),
        (1.0049999, 2, 1.0),
        (0.1 + 0.7 + 0.005, 2, 0.81),  # 0.8049999999999999: float noise
        (5, 0, 5),
    ],
)
def test_rounding_is_half_up_in_decimal(value, digits, expected):
    assert round_half_up(value, digits) == expected


def test_a_mean_is_exact_before_it_is_rounded():
    assert mean([80.39, 80.40]) == 80.40  # the binary mean is below 80.395
    assert mean([1.0, 2.0, 2.0]) == 1.67


# --- the order of methods --------------------------------------------------------------------------------


def test_the_subject_comes_first_and_what_has_no_figure_last():
    ranks = {"XGBoost": 3.0, "LightGBM": 2.0, "BLS": 1.0, "H-ELM": 0.5, "RVFL": 9.0}
    methods = ["SNN", "BLS", "H-ELM", "CatBoost", "RVFL", "edRVFL robust", "LightGBM", "XGBoost", "edRVFL_O"]
    expected = ("edRVFL_O", "RVFL", "edRVFL robust", "LightGBM", "XGBoost", "CatBoost", "H-ELM", "BLS", "SNN")
    assert subject_first(methods, ranks) == expected
    assert subject_first(methods, ranks, empty=["edRVFL_O", "BLS"])[-2:] == ("edRVFL_O", "BLS")
    of_the_paper = [name for name, row in TABLE.items() if row.kind == "paper"]
    five = list(TABLE)[list(TABLE).index("WPedRVFL") :][:5]
    assert set(paper.accuracies()) == {*five, *of_the_paper}


# --- score tables ----------------------------------------------------------------------------------------


def test_what_is_missing_is_left_out():
    cells = {("d0", "a"): 1.0, ("d0", "b"): 2.004, ("d1", "a"): 50.0, ("d2", "a"): math.inf, ("d2", "b"): 1.0}
    scores = score_table(cells, ["d0", "d1", "d2"], ["a", "b"])
    assert scores.loc["d0", "b"] == 2.0
    assert list(scores.dropna().index) == ["d0"]
    assert means(scores) == {"a": 1.0, "b": 2.0}
    assert average_ranks(scores) == {"a": 2.0, "b": 1.0}


def test_no_common_dataset_gives_no_numbers():
    scores = table((1.0, None), (None, 2.0))
    assert means(scores) == average_ranks(scores) == {}
    assert friedman(scores) is critical_difference(scores) is None
    assert compare(scores, "a", "b").p_exact == 1.0


def test_a_method_with_few_datasets_does_not_narrow_the_comparison():
    scores = table((1, 2, 3), (1, 2, None), (1, 2, None), methods="abc")
    assert list(comparable(scores)) == ["a", "b"]
    assert list(comparable(scores[["a", "c"]])) == ["a", "c"]  # two at least
    assert comparable(score_table({}, [], [])).empty


# --- ranks and Friedman ----------------------------------------------------------------------------------


def test_ties_share_ranks():
    scores = table((9, 9, 1), (1, 2, 3), methods="abc")
    assert average_ranks(scores) == {"a": 2.25, "b": 1.75, "c": 2.0}


def test_float_noise_breaks_no_ties():
    noisy = {("d", "a"): 100 * (0.1 + 0.2), ("d", "b"): 30.0}
    assert average_ranks(score_table(noisy, ["d"], ["a", "b"])) == {"a": 1.5, "b": 1.5}
    found = compare(table((30.3, 30.2), (0.3, 0.2), (70.1, 70.2)), "a", "b")
    assert found.p_normal == pytest.approx(signed_rank(np.array([0.1, 0.1, -0.1]))[1])


def test_friedman_of_ties_and_of_too_few(drawn):
    expected = stats.friedmanchisquare(*drawn.to_numpy().T)
    assert friedman(drawn).p_value == pytest.approx(expected.pvalue)
    assert friedman(table((5, 5, 5), (6, 6, 6), methods="abc")).p_value == 1.0
    assert friedman(table((5, 4), (6, 6))) is None
    assert friedman(table((5, 4, 3), methods="abc")) is None


# --- Wilcoxon --------------------------------------------------------------------------------------------


def test_without_ties_both_p_values_are_scipys(rng):
    differences = rng.normal(0.3, 1, 14)
    direction, normal, exact = signed_rank(differences)
    assert normal == pytest.approx(stats.wilcoxon(differences, method="asymptotic", correction=False).pvalue)
    assert exact == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue)
    assert direction == np.sign(np.dot(np.sign(differences), stats.rankdata(np.abs(differences))))


@pytest.mark.parametrize("seed", range(5))
def test_with_ties_the_exact_p_value_counts_every_sign(seed):
    differences = np.random.default_rng(seed).integers(-3, 5, 9).astype(float)
    nonzero = differences[differences != 0]
    ranks = stats.rankdata(np.abs(nonzero))
    centre = ranks.sum() / 2
    seen = abs(ranks[nonzero > 0].sum() - centre)
    signs = itertools.product((0, 1), repeat=len(nonzero))
    extreme = sum(abs(np.dot(s, ranks) - centre) >= seen - 1e-9 for s in signs)
    assert signed_rank(differences)[2] == pytest.approx(min(1, extreme / 2 ** len(nonzero)))


def test_no_difference_and_a_single_dataset_are_p_one():
    c = compare(table((5, 5), (6, 6)), "a", "b")
    assert (c.wins, c.ties, c.losses, c.direction, c.p_normal, c.p_exact) == (0, 2, 0, 0, 1.0, 1.0)
    assert compare(table((5, 4)), "a", "b").p_exact == 1.0


# --- pairs -----------------------------------------------------------------------------------------------


def test_a_pair_is_seen_from_either_side(drawn):
    found = compare_pairs(drawn)
    c, back = found.pair("a", "b"), found.pair("b", "a")
    assert (back.wins, back.ties, back.losses) == (c.losses, c.ties, c.wins)
    assert (back.mean_difference, back.direction) == (-c.mean_difference, -c.direction)
    assert c.wins == (drawn["a"] > drawn["b"]).sum()
    with pytest.raises(KeyError):
        found.pair("a", "nobody")


def test_holm_by_hand():
    """The smallest of m p-values counts m times, the next m - 1 times; none is below the one before."""
    pairs = compare_pairs(paper.accuracies()).comparisons
    largest = 0.0
    for step, c in enumerate(sorted(pairs, key=lambda c: c.p_normal)):
        largest = max(largest, (len(pairs) - step) * c.p_normal)
        assert c.p_holm == pytest.approx(min(1.0, largest))
    assert compare_pairs(table((1,), methods="a")).comparisons == ()


def test_signs_are_antisymmetric_and_holm_only_removes():
    found = paper.recomputed_pairs()
    opposite = {"+": "-", "-": "+", "": ""}
    for a, b in itertools.permutations(found.methods, 2):
        for holm in (False, True):
            assert found.sign(b, a, holm=holm) == opposite[found.sign(a, b, holm=holm)]
        assert found.sign(a, b, holm=True) in ("", found.sign(a, b, holm=False))


# --- critical difference ---------------------------------------------------------------------------------


def test_nemenyi_agrees_with_the_critical_difference(drawn):
    """Two routes to one decision: p-values of scikit-posthocs, and the difference of ranks."""
    for scores in (drawn, paper.accuracies()):
        found = critical_difference(scores)
        apart = np.abs(np.subtract.outer(found.ranks, found.ranks)) >= found.difference
        assert ((found.p_values.to_numpy() < ALPHA) == apart).all()
        assert tuple(found.p_values) == tuple(found.p_values.index) == found.methods


def test_critical_difference_is_demsars_table():
    """q(0.05) of 12 methods is 3.268 in Demsar 2006."""
    found = critical_difference(paper.accuracies())
    assert found.difference == pytest.approx(3.268 * math.sqrt(12 * 13 / (6 * 24)), abs=2e-3)
