"""Support: ranks of new rows among the training rows, each as the others see it."""

import numpy as np
import pandas as pd
import pytest
from helpers import features_by_layer, noisy_rows, noisy_values
from hypothesis import given
from hypothesis import strategies as st
from small_models import frame
from test_influence import CLASSIFIERS, weighted_rows

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, KernelRidgeClassifier, KernelRidgeRegressor
from edrvfl._afterwards.explained import Explained
from edrvfl._afterwards.support import Ranking, column_spread
from edrvfl._ridge.kernels import KERNELS

SMALL = {"n_layers": 2, "n_hidden": 40, "random_state": 0, "remember": "rows"}
MODELS = {
    "network": EDRVFLClassifier(**SMALL),
    "wide network": EDRVFLClassifier(**{**SMALL, "n_hidden": 200}, regularization=0.1),
    "bins": EDRVFLRegressor(**SMALL, encoder="bins"),
    "kernel": KernelRidgeClassifier(random_state=0, remember="rows"),
    "landmarks": KernelRidgeRegressor(random_state=0, remember="rows", n_landmarks=60),
}


def fitted(name, m=400):
    model, rng = MODELS[name], np.random.default_rng(0)
    classes = hasattr(model, "predict_proba")
    X, y = (noisy_rows if classes else noisy_values)(rng, m, 5)
    return model.fit(X, y), rng.standard_normal((1000, 5))


@pytest.mark.parametrize("name", MODELS)
def test_new_rows_of_the_same_kind_have_ranks_that_spread_evenly(name):
    model, new = fitted(name)
    ranks = model.support(new)
    assert abs(ranks.mean() - 0.5) < 0.05
    assert 0.02 < (ranks > 0.95).mean() < 0.09
    assert abs((ranks < 0.25).mean() - 0.25) < 0.07


@pytest.mark.parametrize("name", MODELS)
def test_rows_beyond_the_others_have_the_largest_ranks(name):
    model, new = fitted(name)
    beyond = new[:100] * 0.2
    beyond[:, 2] += 8.0
    assert model.support(beyond).mean() > 0.97
    assert model.support(np.zeros((1, 5)))[0] < 0.2


def test_training_rows_are_seen_by_the_others_alone():
    """Leverage and variance of a row by the system without it and its copies, by brute force."""
    X, y, w, _ = weighted_rows()
    for name in ("network", "kernel"):
        model = CLASSIFIERS[name].fit(X, y, w)
        memory = model.memory_
        explained = Explained.of(model._model, memory)
        rows, known = memory.rows, explained.known
        levels, _ = explained.read_outs[0].spread(np.arange(len(known.first)))
        base = memory.weights(rows.y, rows.counts)
        for u, place in enumerate(known.first):
            x = rows.X[place]
            kept = ~(x == rows.X).all(axis=1)
            if name == "network":
                for l, D in enumerate(features_by_layer(model.network_, rows.X)):
                    omega = base * memory.voters[0].omega(l)
                    A = D[kept].T @ (omega[kept, None] * D[kept])
                    A += memory.voters[0].lams[l] * np.eye(D.shape[1])
                    leverage = D[place] @ np.linalg.solve(A, D[place])
                    np.testing.assert_allclose(levels[l, u], leverage, rtol=1e-9)
            else:
                voter = model.model_.voter
                Z, kernel = voter.inputs.apply(rows.X), KERNELS[voter.kernel]
                measure = kernel.measure(Z[kept], voter.inputs.contrasts(Z[kept]))
                K = kernel.alike(measure.own(), voter.width) + voter.lam * np.diag(1 / base[kept])
                k = kernel.alike(measure(Z[[place]]), voter.width)[0]
                np.testing.assert_allclose(levels[0, u], 1 - k @ np.linalg.solve(K, k), rtol=1e-9)


def farthest(x, others, categorical):
    """How far out a row is in the column where it is farthest from others, cell by cell."""
    far = []
    for j, value in enumerate(x):
        known = [other[j] for other in others]
        numbers = [cell for cell in known if not np.isnan(cell)]
        if np.isnan(value):
            far.append(0.0 if len(numbers) < len(known) else np.inf)
        elif categorical[j]:
            far.append(0.0 if value in known else np.inf)
        else:
            far.append(abs(value - np.mean(numbers)) / np.std(numbers))
    return max(far)


@given(seed=st.integers(0, 999), m=st.integers(8, 30))
def test_columns_are_measured_by_the_other_rows(seed, m):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4)) * [1.0, 1e-6, 1e6, 1.0]
    X[:, 3] = rng.integers(0, 5, m)
    X[rng.random((m, 4)) < 0.1] = np.nan
    new = np.vstack([X[:3] * 1.7, np.full((1, 4), np.nan), [[0, 0, 0, 9]], [[0, 0, 0, -1]]])
    categorical = np.array([False, False, False, True])
    levels, measure = column_spread(X, categorical)
    alone = [farthest(x, np.delete(X, i, axis=0), categorical) for i, x in enumerate(X)]
    np.testing.assert_allclose(levels[0], alone, rtol=1e-6)
    np.testing.assert_allclose(measure(new)[0], [farthest(x, X, categorical) for x in new], rtol=1e-6)


def test_a_category_and_a_gap_that_no_row_had_are_beyond_all():
    X, codes, _ = frame(80)
    X = X.drop(columns="e").assign(f=np.arange(80.0))
    model = EDRVFLClassifier(**{**SMALL, "n_hidden": 10}).fit(X, codes)
    new = X[:4].copy()
    known = model.support(new)
    new["d"] = pd.Categorical([9.0, *new["d"][1:]])
    new.loc[1, "ü"] = "never"
    new.loc[2, "f"] = None
    found = model.support(new)
    np.testing.assert_array_equal(found[:3], 1)
    assert found[3] == known[3]


def test_a_rank_counts_weights():
    rank = Ranking.of(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 5.0]))
    np.testing.assert_array_equal(rank(np.array([0.5, 1.0, 2.5, 3.0, 9.0])), [0, 0.125, 0.875, 0.9375, 1])
    np.testing.assert_array_equal(
        Ranking.of(np.zeros(4), np.ones(4))(np.array([-1.0, 0.0, 1.0])), [0, 0.5, 1]
    )


def test_rows_of_known_categories_are_in_the_midst_of_others():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(list("abc"), 100), "d": rng.choice(list("vwxyz"), 100)})
    y = (X["c"] == "a") ^ (rng.random(100) < 0.2)
    for model in (EDRVFLClassifier(**SMALL), KernelRidgeClassifier(random_state=0, remember="rows")):
        ranks = model.fit(X, y).support(X)
        assert 0.25 < ranks.mean() < 0.65
        assert (ranks < 0.99).all()
        new = pd.DataFrame({"c": ["a", "never"], "d": [None, "v"]})
        np.testing.assert_array_equal(model.support(new), 1)


def test_the_order_of_rows_and_their_units_do_not_matter():
    X, y = noisy_rows(np.random.default_rng(1), 200, 4)
    order = np.random.default_rng(2).permutation(200)
    model = EDRVFLClassifier(**SMALL)
    one = model.fit(X, y).support(X[:50])
    other = model.fit(X[order] * 4.0, y[order]).support(X[:50] * 4.0)
    np.testing.assert_allclose(one, other, atol=0.02)
