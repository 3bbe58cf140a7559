import itertools
import math

import numpy as np
import pytest
import scikit_posthocs
from scipy import stats
from statsmodels.stats.multitest import multipletests

from edrvfl.bench import published
from edrvfl.bench.statistics import (
    Scores,
    average_ranks,
    compare,
    critical_difference,
    friedman,
    holm,
    mean,
    mean_and_sd,
    means,
    pairwise,
    round_half_up,
    signed_rank,
)


@pytest.fixture
def drawn(rng):
    values = np.round(rng.uniform(60, 90, (9, 5)), 1)  # one digit: ties happen
    names = tuple("abcde")
    rows = tuple(tuple(row) for row in values.tolist())
    return Scores(tuple(f"d{i}" for i in range(9)), names, rows)


def table(*rows, methods="ab"):
    return Scores(tuple(f"d{i}" for i in range(len(rows))), tuple(methods), rows)


# --- rounding and means ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (80.395, 2, 80.4),
        (0.125, 2, 0.13),
        (-0.125, 2, -0.13),
        (2.675, 2, 2.68),
        (1.0049999, 2, 1.0),
        (5, 0, 5),
    ],
)
def test_rounding_is_half_up_in_decimal(value, digits, expected):
    assert round_half_up(value, digits) == expected


def test_rounding_forgives_float_noise():
    assert round_half_up(0.1 + 0.7 + 0.005, 2) == 0.81  # 0.8049999999999999
    assert math.isnan(round_half_up(math.nan))


def test_a_mean_is_exact_before_it_is_rounded():
    assert mean([80.39, 80.40]) == 80.40  # the binary mean is below 80.395
    assert mean([1.0, 2.0, 2.0]) == 1.67


def test_mean_and_sd_are_over_seeds_of_means_over_splits():
    centre, sd = mean_and_sd([[0.8, 0.6], [0.6, 0.6]])
    assert centre == pytest.approx(0.65)
    assert sd == pytest.approx(np.std([0.7, 0.6], ddof=1))
    assert mean_and_sd([[0.5], [0.7]])[1] is None


# --- missing cells ---------------------------------------------------------------------------------------


def test_what_is_missing_is_left_out_and_named():
    cells = {("d0", "a"): 1.0, ("d0", "b"): 2.0, ("d1", "a"): 50.0, ("d2", "a"): math.nan, ("d2", "b"): 1.0}
    scores = Scores.of(cells, ["d0", "d1", "d2"], ["a", "b"])
    assert scores.complete().datasets == ("d0",)
    assert means(scores) == {"a": 1.0, "b": 2.0}
    assert average_ranks(scores) == {"a": 2.0, "b": 1.0}
    assert scores.only(["a"]).complete().datasets == ("d0", "d1")
    assert scores.get("d1", "b") is None
    assert scores.get("d1", "z") is None


def test_no_common_dataset_gives_no_figures():
    scores = table((1.0, None), (None, 2.0))
    assert means(scores) == average_ranks(scores) == {}
    assert friedman(scores) is critical_difference(scores) is None
    assert compare(scores, "a", "b").p_exact == 1.0


# --- ranks and Friedman ----------------------------------------------------------------------------------


def test_ties_share_ranks():
    assert average_ranks(table((9.0, 9.0, 1.0), (1.0, 2.0, 3.0), methods="abc")) == {
        "a": 2.25,
        "b": 1.75,
        "c": 2.0,
    }


def test_float_noise_breaks_no_ties():
    noisy = {("d", "a"): 100 * (0.1 + 0.2), ("d", "b"): 30.0}
    assert average_ranks(Scores.of(noisy, ["d"], ["a", "b"])) == {"a": 1.5, "b": 1.5}
    assert compare(table((30.3, 30.2), (0.3, 0.2), (70.1, 70.2)), "a", "b").p_normal == pytest.approx(
        signed_rank(np.array([0.1, 0.1, -0.1]))[1]
    )


def test_friedman_is_scipys(drawn):
    expected = stats.friedmanchisquare(*np.array(drawn.values).T)
    found = friedman(drawn)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))


def test_friedman_of_ties_and_of_too_few():
    assert friedman(table((5.0, 5.0, 5.0), (6.0, 6.0, 6.0), methods="abc")).p_value == 1.0
    assert friedman(table((5.0, 4.0), (6.0, 6.0))) is None
    assert friedman(table((5.0, 4.0, 3.0), methods="abc")) is None


# --- Wilcoxon --------------------------------------------------------------------------------------------


def test_without_ties_both_p_values_are_scipys(rng):
    differences = rng.normal(0.3, 1, 14)
    direction, normal, exact = signed_rank(differences)
    assert normal == pytest.approx(stats.wilcoxon(differences, method="asymptotic", correction=False).pvalue)
    assert exact == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue)
    assert direction in (1, -1)


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


def test_no_difference_at_all_is_p_one():
    c = compare(table((5.0, 5.0), (6.0, 6.0)), "a", "b")
    assert (c.wins, c.ties, c.losses, c.direction, c.p_normal, c.p_exact) == (0, 2, 0, 0, 1.0, 1.0)


def test_a_single_dataset_is_no_error():
    assert compare(table((5.0, 4.0)), "a", "b").p_exact == 1.0


def test_wins_ties_losses_seen_from_either_side(drawn):
    found = pairwise(drawn)
    c = compare(drawn, "a", "b")
    back = found.pair("b", "a")
    assert (back.wins, back.ties, back.losses) == (c.losses, c.ties, c.wins)
    assert (back.mean_difference, back.direction) == (-c.mean_difference, -c.direction)
    A = np.array(drawn.values)
    assert c.wins == (A[:, 0] > A[:, 1]).sum()


# --- pairs -----------------------------------------------------------------------------------------------


def test_holm_is_statsmodels(rng):
    p = rng.uniform(0, 0.2, 12)
    assert holm(p.tolist()) == pytest.approx(multipletests(p, method="holm")[1].tolist())
    assert holm([]) == ()


def test_signs_are_antisymmetric_and_holm_only_removes():
    found = published.recomputed_pairs()
    opposite = {"+": "-", "-": "+", "": ""}
    for a, b in itertools.product(found.methods, repeat=2):
        for adjust in (False, True):
            assert found.sign(b, a, adjust=adjust) == opposite[found.sign(a, b, adjust=adjust)]
        assert found.sign(a, b, adjust=True) in ("", found.sign(a, b, adjust=False))


def test_exact_and_normal_tests_are_named():
    scores = published.accuracies()
    exact = pairwise(scores, test="exact")
    assert exact.p_value("WPedRVFL", "BLS", adjust=False) == pytest.approx(2 / 2**24)
    assert exact.test == "exact"
    with pytest.raises(KeyError):
        exact.pair("WPedRVFL", "nobody")


# --- critical difference ---------------------------------------------------------------------------------


def test_nemenyi_is_scikit_posthocs(drawn):
    found = critical_difference(drawn)
    theirs = scikit_posthocs.posthoc_nemenyi_friedman(np.array(drawn.values))
    at = [drawn.methods.index(m) for m in found.methods]
    np.testing.assert_allclose(found.p_values, theirs.to_numpy()[np.ix_(at, at)], atol=1e-6)


def test_critical_difference_is_demsars_table():
    """q(0.05) of 12 methods is 3.268 in Demsar 2006."""
    found = critical_difference(published.accuracies())
    assert found.difference == pytest.approx(3.268 * math.sqrt(12 * 13 / (6 * 24)), abs=2e-3)
    assert found.groups[0] == ("WPedRVFL", "PedRVFL", "WedRVFL")
    for group in found.groups:
        ranks = [found.ranks[found.methods.index(m)] for m in group]
        assert max(ranks) - min(ranks) < found.difference
    assert not any(set(a) < set(b) for a, b in itertools.permutations(found.groups, 2))
