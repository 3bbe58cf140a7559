"""The kernel voter: what it chooses, its leave-one-out scores, its draws, its parts."""

import numpy as np
import pytest
import sklearn
from helpers import noisy_rows, to_host
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from edrvfl import KernelRidgeClassifier
from edrvfl._fitting.kernel import fit_kernel
from edrvfl._fitting.systems import BANDWIDTHS, LAMBDAS, KernelSettings
from edrvfl._inputs.chosen import Judged
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_rows
from edrvfl._models.kernel import kernel_scores
from edrvfl._seam.arrays import converted

FIXED = KernelSettings(0.5, 0.25)
FREE = KernelSettings()


def fit(X, y, settings=FIXED, weights=None, class_weight=None, judged=None, seed=3):
    with sklearn.config_context(array_api_dispatch=True):
        rows = prepare_rows(X, y, weights, class_weight)
    inputs = learn_inputs(rows.X, rows.weights.counts, EncoderSettings())
    done = fit_kernel(rows, inputs, settings, seed, judged)
    return done.voter, done.loo


@pytest.fixture
def small_parts(limit):
    """Sizes at which small data are many rows."""
    limit(PART_ROWS={False: 40, True: 40}, LEAST_PART=10, SEARCH_ROWS=(30, 50), FEW=10**9)


def reference(X, y, counts, base, without=None):
    """Scores of all rows by scikit-learn, after a fit without one row and its copies."""
    mean = np.average(X, axis=0, weights=counts)
    Z = (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=counts))
    K, Y = np.exp(-cdist(Z, Z) / (0.5 * np.sqrt(X.shape[1]))), np.eye(y.max() + 1)[y]
    prior = base @ Y / base.sum()
    kept = np.ones(len(X), bool) if without is None else (X[without] != X).any(axis=1)
    model = KernelRidge(alpha=0.25, kernel="precomputed")
    return model.fit(K[np.ix_(kept, kept)], (Y - prior)[kept], base[kept]).predict(K[:, kept]) + prior


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_and_leave_one_out_scores_by_brute_force(xp, rng, weighted):
    X, y = noisy_rows(rng, 45, 4)
    X[40:], y[40:], y[44] = X[[0, 0, 1, 2, 3]], (y[[0, 0, 1, 2, 3]] + 1) % 3, y[3]  # the last is a whole copy
    counts = rng.choice([0.4, 1.0, 2.0], 45) if weighted else np.ones(45)
    costs = np.array([1.0, 2.0, 0.5])[y] if weighted else np.ones(45)
    voter, loo = fit(
        xp.asarray(X),
        xp.asarray(y),
        weights=xp.asarray(counts) if weighted else None,
        class_weight={0: 1.0, 1: 2.0, 2: 0.5} if weighted else None,
    )
    base = counts * costs
    np.testing.assert_allclose(
        to_host(kernel_scores(voter, xp.asarray(X))), reference(X, y, counts, base), atol=1e-7
    )
    # equal rows of one class are one row
    expected = [reference(X, y, counts, base, i)[i] for i in range(45) if i not in (41, 44)]
    np.testing.assert_allclose(to_host(loo), expected, atol=1e-7)


def test_far_from_all_rows_the_answer_is_the_prior(rng):
    X, y = noisy_rows(rng, 60, 4)
    voter, _ = fit(X, y)
    np.testing.assert_allclose(kernel_scores(voter, X[:1] + 1e6)[0], np.bincount(y) / 60, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", [FREE, KernelSettings(n_landmarks=20)], ids=["all", "landmarks"])
def test_weight_two_is_the_row_twice(limit, seed, how):
    limit(SEARCH_ROWS=(40,))
    rng = np.random.default_rng(seed)
    X, y = noisy_rows(rng, 60, 3)
    counts = rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    weighted, loo = fit(X, y, how, weights=counts.astype(float))
    repeated, copies = fit(X[rows], y[rows], how)
    assert (weighted.bandwidth, weighted.lam) == (repeated.bandwidth, repeated.lam)
    np.testing.assert_allclose(kernel_scores(weighted, X), kernel_scores(repeated, X), atol=1e-6)
    np.testing.assert_array_equal(loo, copies)


@pytest.mark.parametrize("how", [FREE, KernelSettings(n_landmarks=25)], ids=["parts", "landmarks"])
def test_the_order_of_rows_does_not_matter(rng, small_parts, how):
    X, y = noisy_rows(rng, 150, 4)
    moved = rng.permutation(150)
    voter, loo = fit(X, y, how)
    other, moved_loo = fit(X[moved], y[moved], how)
    assert (voter.bandwidth, voter.lam) == (other.bandwidth, other.lam)
    np.testing.assert_allclose(kernel_scores(voter, X), kernel_scores(other, X), atol=1e-8)
    np.testing.assert_allclose(loo[moved], moved_loo, atol=1e-8)


def test_the_scale_of_small_weights_does_not_matter(rng):
    X, y = noisy_rows(rng, 80, 4)
    weights = rng.uniform(0.2, 1, 80)
    answers = [kernel_scores(fit(X, y, FREE, scale * weights)[0], X) for scale in (1.0, 1e-6)]
    np.testing.assert_allclose(*answers, atol=1e-8)


@pytest.mark.parametrize("judged", [None, [3, 4, 50, 51, 99, 140]])
def test_parts_are_exact_ridges_whose_scores_are_averaged(xp, rng, small_parts, judged):
    X, y = noisy_rows(rng, 150, 4)
    chosen = None if judged is None else Judged(xp.asarray(judged), xp.ones(6, dtype=xp.float64))
    voter, loo = fit(xp.asarray(X), xp.asarray(y), judged=chosen)
    Z, prior = to_host(voter.landmarks), np.bincount(y) / 150
    assert len(Z) == 150
    sizes = [38, 38, 37, 37]
    encoded = (X - X.mean(axis=0)) / X.std(axis=0)
    own = cdist(Z, encoded).argmin(axis=1)  # which row each landmark is
    K = np.exp(-cdist(encoded, encoded))  # bandwidth 0.5, four columns
    Y = np.eye(3)[y] - prior
    scores, left_out = np.zeros((150, 3)), np.zeros((150, 3))
    for part in np.split(own, np.cumsum(sizes)[:-1]):
        model = KernelRidge(alpha=0.25, kernel="precomputed")
        plain = model.fit(K[np.ix_(part, part)], Y[part]).predict(K[:, part])
        scores += plain / 4
        left_out += plain / 4
        for i in part:
            rest = part[part != i]
            alone = model.fit(K[np.ix_(rest, rest)], Y[rest]).predict(K[[i]][:, rest])[0]
            left_out[i] += (alone - plain[i]) / 4
    np.testing.assert_allclose(to_host(kernel_scores(voter, xp.asarray(X))), scores + prior, atol=1e-7)
    rows = slice(None) if judged is None else judged
    np.testing.assert_allclose(to_host(loo), (left_out + prior)[rows], atol=1e-7)


def test_of_too_many_rows_a_part_is_used(rng, small_parts, limit):
    limit(MOST_ROWS={False: 100, True: 100})
    X, y = noisy_rows(rng, 300, 4)
    voter, loo = fit(X, y, FREE)
    assert voter.landmarks.shape[0] == 100
    assert loo.shape == (300, 3)
    assert (loo.argmax(axis=1) == y).mean() > 0.5


def test_all_classes_share_the_landmarks(rng):
    X = rng.standard_normal((400, 3))
    y = (np.arange(400) >= 380).astype(int)
    X[y == 1] += 50
    voter, _ = fit(X, y, KernelSettings(0.5, 0.25, 40))
    assert (to_host(voter.landmarks)[:, 0] > 2).sum() == 20


@pytest.mark.parametrize("noise", [0.0, 0.5, 3.0])
def test_the_descent_finds_nearly_the_best_of_all_candidates(rng, noise):
    X = rng.standard_normal((120, 3))
    y = (X[:, 0] + noise * rng.standard_normal(120) > 0).astype(int)
    plain = KernelRidgeClassifier(encoder="standard", input_scaling=None, calibration="temperature")
    losses = {
        (h, lam): clone(plain).set_params(bandwidth=h, regularization=lam).fit(X, y).loo_log_loss_
        for h in BANDWIDTHS
        for lam in LAMBDAS
    }
    voter, _ = fit(X, y, FREE)
    assert losses[voter.bandwidth, voter.lam] < 1.01 * min(losses.values())
    assert max(losses.values()) > 1.03 * min(losses.values())


def test_a_penalty_that_is_lost_below_rounding_is_raised(rng):
    X, y = noisy_rows(rng, 40, 3)
    # copies but for rounding
    voter, loo = fit(np.concatenate([X, X * (1 + 1e-13)]), np.concatenate([y, y]), KernelSettings(1.0, 1e-20))
    assert 1e-20 < voter.lam < 1e-10
    assert np.isfinite(loo).all()


def test_many_rows_are_float32_inside_and_answer_in_their_own_precision(rng, limit):
    X, y = noisy_rows(rng, 200, 4)
    exact, exact_loo = fit(X, y)
    limit(DOUBLE_ROWS=100)
    voter, loo = fit(X, y)
    assert voter.landmarks.dtype == voter.alpha.dtype == np.float32
    assert kernel_scores(voter, X).dtype == loo.dtype == voter.prior.dtype == np.float64
    np.testing.assert_allclose(loo, exact_loo, atol=1e-4)
    # a training row is not quite at distance 0 from itself in float32
    np.testing.assert_allclose(kernel_scores(voter, X), kernel_scores(exact, X), atol=3e-3)


def test_a_voter_moves_to_another_library(xp, rng):
    X, y = noisy_rows(rng, 50, 3)
    voter, _ = fit(X, y)
    moved = converted(voter, xp.asarray)
    np.testing.assert_allclose(
        to_host(kernel_scores(moved, xp.asarray(X))), kernel_scores(voter, X), atol=1e-12
    )
