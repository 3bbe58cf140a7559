"""KernelRidgeRegressor: brute force, parts of many rows, and precision."""

import numpy as np
import pandas as pd
import pytest
from helpers import noisy_values
from scipy.linalg import LinAlgWarning
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score

from edrvfl import KernelRidgeRegressor
from edrvfl._fitting.folds import deal_folds
from edrvfl._fitting.systems import VALUE_BANDWIDTHS, VALUE_LAMBDAS
from edrvfl._inputs.rows import prepare_values


def kernel(**params):
    return KernelRidgeRegressor(**{"random_state": 0, **params})


@pytest.fixture
def small_parts(limit):
    """Sizes at which small data are many rows."""
    limit(VALUE_PART_ROWS={False: 40, True: 40}, LEAST_PART=10, SEARCH_ROWS=(30, 50))


# --- against brute force ---------------------------------------------------------------------------------


def ridge_by_hand(chosen, Z, Y, counts, without=None):
    """Fit scikit-learn's kernel ridge to encoded rows, but for a row and its copies; answer all rows."""
    K = np.exp(-cdist(Z, Z) / (chosen.bandwidth_ * np.sqrt(Z.shape[1])))
    kept = np.ones(len(Z), bool) if without is None else (Z[without] != Z).any(axis=1)
    ridge = KernelRidge(alpha=chosen.regularization_, kernel="precomputed")
    return ridge.fit(K[np.ix_(kept, kept)], Y[kept], counts[kept]).predict(K[:, kept])


def folds_by_hand(X, y, counts):
    """Mark the rows of one fold after another; copies of a row are in its fold."""
    rows = prepare_values(X, y, counts)
    for fold in deal_folds(rows, None):
        inside = rows.X[fold.order[-len(fold.places) :]]
        yield (X[:, None, :] == inside).all(axis=-1).any(axis=1)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("scaling", [None, "loo"])
def test_answers_and_leave_one_out_by_brute_force(rng, weighted, k, scaling):
    X, y = noisy_values(rng, 45, 4, k)
    X[[40, 41, 42, 43]] = X[[0, 0, 1, 2]]  # copies, of which one has the same value too
    y[43] = y[2]
    counts = rng.choice([0.4, 1.0, 3.0], 45) if weighted else np.ones(45)
    model = kernel(input_scaling=scaling).fit(X, y, counts if weighted else None)
    mean = np.average(y, axis=0, weights=counts)
    Z = model.model_.voter.inputs.apply(X)
    answer = ridge_by_hand(model, Z, y - mean, counts) + mean
    np.testing.assert_allclose(model.predict(X), answer if k > 1 else answer[:, 0], atol=1e-8)
    if (
        scaling is not None or k > 1
    ):  # neither factors nor the scales of outputs of a fold are seen from outside
        return
    left_out, times = np.empty(y.shape), 0
    for inside in folds_by_hand(X, y, counts if weighted else None):
        # bandwidth, penalty and mean know nothing of the fold
        chosen = kernel(encoder=None, input_scaling=None).fit(Z[~inside], y[~inside], counts[~inside])
        mean = np.average(y[~inside], axis=0, weights=counts[~inside])
        for i in np.flatnonzero(inside):
            left_out[i] = mean + ridge_by_hand(chosen, Z, y - mean, counts, i)[i]
        times += inside
    np.testing.assert_array_equal(times, 1)
    assert model.loo_r2_score_ == pytest.approx(r2_score(y, left_out, sample_weight=counts), abs=1e-8)


@pytest.mark.parametrize("noise", [0.05, 2.0])
def test_bandwidth_and_penalty_are_nearly_the_best_of_all_candidates(rng, noise):
    X = rng.standard_normal((90, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(90)
    plain = {"encoder": "standard", "input_scaling": None}
    each = {
        (h, lam): kernel(**plain, bandwidth=h, regularization=lam).fit(X, y).loo_r2_score_
        for h in VALUE_BANDWIDTHS
        for lam in VALUE_LAMBDAS
    }
    model = kernel(**plain).fit(X, y)
    best = max(each.values())
    assert 1 - each[model.bandwidth_, model.regularization_] < 1.01 * (1 - best)
    assert 1 - min(each.values()) > 1.1 * (1 - best)


def test_landmarks_of_few_rows_choose_a_bandwidth_too(rng):
    X = rng.uniform(0, 1, (90, 1))
    y = np.sin(60 * X[:, 0])  # nothing but near rows helps
    plain = {"encoder": "standard", "input_scaling": None}
    exact, landmarks = kernel(**plain).fit(X, y), kernel(**plain, n_landmarks=80).fit(X, y)
    assert landmarks.bandwidth_ == exact.bandwidth_ < 1
    far = kernel(**plain, n_landmarks=80, bandwidth=1.0).fit(X, y)
    assert landmarks.loo_r2_score_ > far.loo_r2_score_ - 0.02  # each fold chooses its own bandwidth


def test_parts_are_averaged_and_their_leave_one_out_is_honest(rng, small_parts):
    X, y = noisy_values(rng, 1150, 3)
    model = kernel(encoder="standard").fit(X[:150], y[:150])
    assert model.n_landmarks_ == 150
    voter = model.model_.voter
    far = model.predict(X[:1] + 1e9)
    np.testing.assert_allclose(far, y[:150].mean(), rtol=1e-9)
    assert abs(model.loo_r2_score_ - model.score(X[150:], y[150:])) < 0.1
    # values are dealt evenly: each of the four parts knows small and large ones
    parts = np.split(np.arange(150), np.cumsum([38, 38, 37]))
    own = cdist(voter.landmarks, voter.inputs.apply(X[:150])).argmin(axis=1)
    means = [y[own[part]].mean() for part in parts]
    assert np.ptp(means) < 0.1 * y[:150].std()


def test_leave_one_out_is_honest(rng):
    X, y = noisy_values(rng, 2400, 4)
    model = kernel().fit(X[:400], y[:400])
    assert abs(model.loo_r2_score_ - model.score(X[400:], y[400:])) < 0.05


def test_scaled_inputs_see_through_columns_of_noise(rng):
    X = rng.standard_normal((600, 12))
    y = X[:, 0] * X[:, 1]
    scaled, plain = (kernel(input_scaling=how).fit(X[:300], y[:300]) for how in ("gradient", None))
    assert scaled.score(X[300:], y[300:]) > plain.score(X[300:], y[300:]) + 0.2


# --- weights and units -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_coefficients_in_float32_do_not_limit_the_units(rng, limit, scale):
    limit(DOUBLE_ROWS=50)
    X, y = noisy_values(rng, 90, 3)
    model = kernel().fit(X, scale * y)
    assert model.model_.voter.alpha.dtype == np.float32
    np.testing.assert_allclose(model.predict(X) / scale, kernel().fit(X, y).predict(X), atol=1e-6)


@pytest.mark.parametrize("double_rows", [1000, 100])
def test_float32_in_float32_out_and_accurate(rng, limit, double_rows):
    limit(DOUBLE_ROWS=double_rows)
    X, y = noisy_values(rng, 300, 4)
    exact = kernel(bandwidth=0.5, regularization=0.1).fit(X, y).predict(X)
    single = (
        kernel(bandwidth=0.5, regularization=0.1)
        .fit(X.astype(np.float32), 1e3 + y)
        .predict(X.astype(np.float32))
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single - 1e3, exact, atol=2e-3)


# --- libraries, frames, copies ---------------------------------------------------------------------------


def test_figures_of_the_fit(rng, capsys):
    X, y = noisy_values(rng, 90, 4)
    model = kernel(verbose=1).fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert model.n_landmarks_ == 90
    assert model.bandwidth_ in VALUE_BANDWIDTHS
    assert model.regularization_ in VALUE_LAMBDAS
    assert list(model.feature_names_in_) == list("abcd")
    assert capsys.readouterr().out == (
        f"[KernelRidgeRegressor] laplace kernel, bandwidth {model.bandwidth_:g}, "
        f"regularization {model.regularization_:g}, 90 landmarks: "
        f"leave-one-out R^2 {model.loo_r2_score_:.4f}\n"
    )
    few = kernel(n_landmarks=np.int64(30), bandwidth=1, regularization=1).fit(X, y)
    assert (few.n_landmarks_, few.bandwidth_, few.regularization_) == (30, 1, 1)


# --- bad input -------------------------------------------------------------------------------------------


def test_a_singular_kernel_warns_and_is_repaired(rng):
    X, y = noisy_values(rng, 60, 3)
    twice = np.concatenate([X, X * (1 + 1e-13)])  # copies but for rounding
    with pytest.warns(LinAlgWarning, match=r"singular with regularization=1e-18; .* was taken") as seen:
        model = kernel(regularization=1e-18).fit(twice, np.concatenate([y, y]))
    assert seen[0].filename == __file__
    assert model.regularization_ > 1e-18
    assert model.score(X, y) > 0.99
