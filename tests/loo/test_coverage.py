"""Intervals and sets: against numpy and loops on repeated rows, and by the coverage that they promise."""

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._loo.coverage import (
    Margins,
    OwnProbabilities,
    Widths,
    bounds,
    choose_widths,
    conformal_quantile,
    interval_scores,
    prediction_sets,
    spread_targets,
)
from edrvfl._seam.arrays import converted

LEVELS = st.sampled_from([0.5, 0.75, 0.8, 0.9, 0.95, 0.975, 0.99])
COUNTED = st.lists(st.tuples(st.floats(-5, 5), st.integers(1, 9)), min_size=1, max_size=60)


def own(values, weights=None):
    """A record of classifiers whose rows gave their own classes these probabilities."""
    return OwnProbabilities.of(values, np.ones(len(values)) if weights is None else weights)


def noisy_spread(rng, n=400, k=1):
    """Residuals whose spread follows a number, and that number's logarithm as a good model would tell it."""
    log_s = rng.uniform(-1.5, 1.5, (n, k))
    return np.exp(log_s) * rng.standard_normal((n, k)), log_s + 0.1 * rng.standard_normal((n, k))


@given(COUNTED, LEVELS)
def test_the_quantile_of_weights_is_numpys_of_repeated_rows(rows, level):
    values, counts = (np.array(part) for part in zip(*sorted(rows), strict=True))
    repeated, n = np.repeat(values, counts), counts.sum()
    found = conformal_quantile(values, counts.astype(float), level)
    rank = np.ceil(round((n + 1) * level, 9))
    if rank > n:
        assert found == np.inf
    else:
        share = rank / n  # numpy's inverted distribution function, asked for the row of this rank
        expected = np.quantile(repeated, share * (1 - 1e-12), method="inverted_cdf")
        assert found == expected == np.sort(repeated)[int(rank) - 1]


@given(COUNTED, LEVELS)
def test_ends_and_thresholds_of_weights_are_those_of_repeated_rows(rows, coverage):
    values, counts = (np.array(part) for part in zip(*rows, strict=True))
    r, weights = np.stack([values, values**2], axis=1), counts.astype(float)
    again = np.repeat(r, counts, axis=0)
    weighted, repeated = Margins.of(r, weights), Margins.of(again, np.ones(len(again)))
    np.testing.assert_allclose(weighted.ends(coverage), repeated.ends(coverage), rtol=1e-12)
    p = (values + 5) / 10
    assert own(p, weights).threshold(coverage) == own(np.repeat(p, counts)).threshold(coverage)


@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_held_back_rows_cover_as_many_new_ones_as_stated(rng, coverage):
    n, draws = 30, 4000
    r = rng.gamma(0.7, size=(n + 1, draws))  # each output is a draw of its own
    lower, upper = Margins.of(r[:n], np.ones(n), guaranteed=True).ends(coverage)
    inside = np.mean((lower <= r[n]) & (r[n] <= upper))
    rank = np.ceil((n + 1) * (1 + coverage) / 2)
    assert inside == pytest.approx((2 * rank - n - 1) / (n + 1), abs=0.015)  # exact for any distribution
    assert inside > coverage - 0.015


def test_sets_cover_as_many_new_rows_as_stated(rng):
    held = []
    for _ in range(2000):
        P = rng.dirichlet(np.ones(4), 25)
        codes = (rng.random((25, 1)) < P.cumsum(axis=1)).argmax(axis=1)
        record = OwnProbabilities.of(P[np.arange(24), codes[:24]], np.ones(24))
        sets = prediction_sets(P[24:], record, 0.8)
        assert sets[0, P[24].argmax()]
        held.append(sets[0, codes[24]])
    assert 0.78 < np.mean(held) < 0.86


def test_sets_by_hand(xp):
    record = own(np.array([0.9, 0.3, 0.8, 0.5, 0.6, 0.7, 0.95, 0.4, 0.85]))
    P = xp.asarray([[0.4, 0.35, 0.25], [0.2, 0.2, 0.6], [0.3, 0.3, 0.4]], dtype=xp.float32)
    assert record.threshold(0.8) == 0.4  # the eighth of nine, from above
    expected = [[True, False, False], [False, False, True], [False, False, True]]
    assert to_host(prediction_sets(P, record, 0.8)).tolist() == expected  # 0.4 of float32 is 0.4 too
    expected = [[True, True, False], [False, False, True], [True, True, True]]
    assert to_host(prediction_sets(P, record, 0.9)).tolist() == expected
    assert to_host(prediction_sets(P, record, 0.95)).all()  # nine rows cannot say
    assert to_host(prediction_sets(P, own(np.empty(0)), 0.5)).all()


def test_larger_coverage_never_gives_less(rng):
    coverages = np.linspace(0.5, 0.999, 60)
    P = rng.dirichlet(np.ones(5), 40)
    for n in (1, 3, 12, 200):
        margins = Margins.of(rng.standard_t(2, (n, 1)), np.ones(n))
        lower, upper = np.array([margins.ends(c) for c in coverages])[:, :, 0].T
        assert (lower[1:] <= lower[:-1]).all()
        assert (upper[1:] >= upper[:-1]).all()
        record = own(rng.random(n))
        sets = np.array([prediction_sets(P, record, c) for c in coverages])
        assert (sets[1:] >= sets[:-1]).all()
        assert sets.any(axis=2).all()


def test_few_rows(rng):
    r = rng.standard_normal((10, 1))
    margins = Margins.of(r, np.ones(10))
    assert margins.ends(0.95) == (-np.inf, np.inf)  # ten rows cannot say
    assert margins.ends(0.8) == (r.min(), r.max())
    assert Margins.of(r[:1], np.ones(1)).ends(0.8) == (-np.inf, np.inf)


def test_each_output_has_its_own_ends(rng):
    r = rng.standard_normal((60, 3)) * [1, 10, 100]
    prediction = rng.standard_normal((5, 3))
    together = bounds(Margins.of(r, np.ones(60)), prediction, None, 0.9)
    for j in range(3):
        alone = bounds(Margins.of(r[:, [j]], np.ones(60)), prediction[:, [j]], None, 0.9)
        for one, all_ in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[:, 0], all_[:, j])


def test_scores_by_hand():
    scores = interval_scores(np.array([0.0, 3.0, -2.5]), np.array(-2.0), np.array(2.0), 0.9)
    np.testing.assert_allclose(scores, [4, 4 + 20, 4 + 10])


def test_widths_vary_where_it_pays_and_are_better_on_new_rows(rng):
    r, log_s = noisy_spread(rng)
    widths = choose_widths(r, log_s, np.ones(400))
    assert widths.powers >= 0.75
    new, new_log_s = noisy_spread(rng, 4000)
    constant, varying = Margins.of(r, np.ones(400)), Margins.of(r, np.ones(400), widths, log_s)
    scores, inside = [], []
    for record in (constant, varying):
        lower, upper = bounds(record, np.zeros((4000, 1)), new_log_s, 0.9)
        scores.append(interval_scores(new, lower, upper, 0.9).mean())
        inside.append(np.mean((lower <= new) & (new <= upper)))
    assert scores[1] < 0.85 * scores[0]
    np.testing.assert_allclose(inside, 0.9, atol=0.03)


def test_widths_are_constant_where_the_spread_says_nothing(rng):
    chosen = 0
    for _ in range(40):
        r, log_s = rng.standard_normal((120, 1)), rng.uniform(-0.5, 0.5, (120, 1))
        chosen += choose_widths(r, log_s, np.ones(120)) is not None
    assert chosen <= 4
    assert choose_widths(np.zeros((50, 2)), rng.standard_normal((50, 2)), np.ones(50)) is None
    assert choose_widths(np.ones((1, 1)), np.ones((1, 1)), np.ones(1)) is None


def test_each_output_has_its_own_power(rng):
    r, log_s = noisy_spread(rng, k=2)
    r[:, 1] = rng.standard_normal(400)
    widths = choose_widths(r, log_s, np.ones(400))
    assert widths.powers[0] >= 0.75
    assert widths.powers[1] == 0
    np.testing.assert_array_equal(widths(log_s)[:, 1], 1)


def test_the_choice_of_weights_is_that_of_repeated_rows(rng):
    for _ in range(5):
        r, log_s = noisy_spread(rng, 60)
        log_s = 0.4 * log_s + 0.5 * rng.standard_normal((60, 1))
        counts = rng.integers(1, 4, 60)
        again = np.repeat(np.arange(60), counts)
        weighted = choose_widths(r, log_s, counts.astype(float))
        repeated = choose_widths(r[again], log_s[again], np.ones(len(again)))
        assert (weighted is None) == (repeated is None)
        if weighted is not None:
            assert weighted.powers == repeated.powers
        np.testing.assert_allclose(
            spread_targets(r, counts)[again], spread_targets(r[again], np.ones(len(again)))
        )


def test_one_wild_spread_spoils_nothing(rng):
    r, log_s = noisy_spread(rng)
    log_s[0] = 500.0  # a row of leverage 1 has any leave-one-out prediction
    widths = choose_widths(r, log_s, np.ones(400))
    assert widths.powers >= 0.75
    lower, upper = bounds(
        Margins.of(r, np.ones(400), widths, log_s), np.zeros((2, 1)), np.array([[900.0], [0]]), 0.9
    )
    assert upper[0] - lower[0] < 10 * np.ptp(r)
    assert 2 < upper[1] - lower[1] < 5


def test_spread_targets_are_finite_for_exact_rows():
    r = np.array([[0.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(spread_targets(r, np.ones(2)), [[np.log(0.1), 0], [np.log(2.1), 0]])


def test_every_library_has_the_same_bounds(xp, rng):
    r, log_s = noisy_spread(rng, 80, 2)
    widths = Widths(np.array([1.0, 0.5]), np.array([-1.0, -1]), np.array([1.0, 1]))
    record = Margins.of(r, np.ones(80), widths, log_s)
    prediction, new = rng.standard_normal((2, 7, 2))
    expected = bounds(record, prediction, new, 0.9)
    moved = converted(record, xp.asarray)
    for dtype, rtol in ((xp.float64, 1e-12), (xp.float32, 1e-5)):
        found = bounds(moved, xp.asarray(prediction, dtype=dtype), xp.asarray(new, dtype=dtype), 0.9)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == dtype
            np.testing.assert_allclose(to_host(one), other, rtol=rtol, atol=rtol)
    sets = own(rng.random(30))
    P = rng.dirichlet(np.ones(3), 20)
    found = prediction_sets(xp.asarray(P), converted(sets, xp.asarray), 0.7)
    np.testing.assert_array_equal(to_host(found), prediction_sets(P, sets, 0.7))
