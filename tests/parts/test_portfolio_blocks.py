"""Portfolios and kernel voters over blocks are those fitted in memory."""

import numpy as np
import pandas as pd
import pytest

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    RowBlocks,
)

NETWORK = {"n_hidden": 16, "n_layers": 3, "regularization": "loo", "weight_from": "loo"}
KINDS = {
    "dense": {"encoder": "bins", "input_scaling": "gradient", "pair_share": 0.5},
    "sparse": {"encoder": "bins", "input_scaling": "gradient", "inputs_per_neuron": 2, "activation": "sin"},
    "raw": {"encoder": "robust", "correct_weight": 0.8, "prune_rate": 0.2},
}
PORTFOLIOS = {
    EDRVFLPortfolioClassifier: (EDRVFLClassifier, KernelRidgeClassifier),
    EDRVFLPortfolioRegressor: (EDRVFLRegressor, KernelRidgeRegressor),
}


def table(m):
    rng = np.random.default_rng(m)
    X = rng.normal(size=(m, 4))
    value = X[:, 0] + X[:, 1] * X[:, 2] + 0.4 * rng.normal(size=m)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = rng.choice(["x", "y", "z"], m)
    frame.loc[::9, "a"] = np.nan
    return frame, np.digitize(value, [-0.6, 0.6]), value, rng.choice([0.0, 0.5, 1.0, 2.0], m)


def portfolio(kind, **params):
    network, kernel = PORTFOLIOS[kind]
    members = [("kernel", kernel()), *((name, network(**NETWORK, **own)) for name, own in KINDS.items())]
    return kind(members=members, random_state=0, **params)


def cut(X, y, weights=None, n=157):
    ends = range(0, len(y), n)
    if weights is None:
        return RowBlocks([(X[i : i + n], y[i : i + n]) for i in ends])
    return RowBlocks([(X[i : i + n], y[i : i + n], weights[i : i + n]) for i in ends])


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


# all rows are judged, or a part of them
@pytest.mark.parametrize(
    ("kind", "m"), [*((kind, 300) for kind in PORTFOLIOS), (EDRVFLPortfolioClassifier, 4600)]
)
def test_a_portfolio_over_blocks_is_that_in_memory(limit, kind, m):
    limit(PART_ROWS={False: 600, True: 600}, LEAST_PART=600, SEARCH_ROWS=(300, 600))
    X, codes, value, weights = table(m)
    y = codes if kind is EDRVFLPortfolioClassifier else value
    for given, params in ((None, {"finalists": 2}), (weights, {"coverage_from": "split", "finalists": 1})):
        one = portfolio(kind, **params).fit(X, y, given)
        other = portfolio(kind, **params).fit(cut(X, y, given))
        # kernels of many rows are computed in float32
        np.testing.assert_allclose(answers(other, X), answers(one, X), atol=1e-8 if m < 1000 else 2e-3)
        for column in ("member", "n_layers", "n_hidden"):
            assert one.members_[column] == other.members_[column]
        np.testing.assert_allclose(one.members_["weight"], other.members_["weight"], atol=1e-6)
        sets = [
            model.predict_set(X) if kind is EDRVFLPortfolioClassifier else model.predict_interval(X)
            for model in (one, other)
        ]
        assert np.mean(np.abs(np.asarray(sets[0], float) - np.asarray(sets[1], float))) < 2e-3


@pytest.mark.parametrize("kind", [KernelRidgeClassifier, KernelRidgeRegressor], ids=lambda k: k.__name__)
def test_a_kernel_over_blocks_is_that_in_memory(kind):
    X, codes, value, weights = table(700)
    y = codes if kind is KernelRidgeClassifier else value
    one, other = (kind(random_state=0).fit(*rows) for rows in ((X, y, weights), (cut(X, y, weights),)))
    np.testing.assert_allclose(answers(other, X), answers(one, X), atol=1e-8)
    assert (one.bandwidth_, one.regularization_) == (other.bandwidth_, other.regularization_)


def test_the_target_belongs_to_the_blocks():
    X, y, _, _ = table(50)
    with pytest.raises(ValueError, match="belong to the blocks"):
        EDRVFLPortfolioClassifier().fit(cut(X, y), y)
