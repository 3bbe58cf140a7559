"""EDRVFLPortfolioRegressor: what its answer is made of, its table of members, and members it refuses."""

import re

import numpy as np
import pandas as pd
import pytest
from cases import VALUE_MEMBERS as MEMBERS
from helpers import PAPER, FixedSeed, features_by_layer, noisy_values
from reference import kernel_scores_without_each_row, scores_without_each_row
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import r2_score

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioRegressor, EDRVFLRegressor, KernelRidgeRegressor
from edrvfl._fitting.folds import deal_folds
from edrvfl._inputs.rows import prepare_values
from edrvfl._loo.jury import ValueJury
from edrvfl._loo.pool import equal_kinds, keep_heavy, pool_weights
from edrvfl._models.network import Network

KERNEL, DENSE, SPARSE, SIGMOID = MEMBERS


def portfolio(**params):
    return EDRVFLPortfolioRegressor(**{"members": MEMBERS, "finalists": 2, "random_state": 0, **params})


# --- what the answer is made of --------------------------------------------------------------------------


def alone(model, i, X, y):
    """Fit the member of a voter as an estimator alone; return its values at the chosen depth."""
    voter, table = model.portfolio_.voters[i], model.members_
    place = np.flatnonzero(table["weight"])[i]
    noted, given = table["settings"][place], dict(model.members)[table["member"][place]].get_params()
    proves = [name for name in PAPER if given.get(name) == "loo"]
    estimator = clone(noted).set_params(**dict.fromkeys(proves, "loo"))
    if not isinstance(voter, Network):
        estimator.fit(X, y)
        assert estimator.proven_ == {name: getattr(noted, name) for name in proves}
        assert table["loo_r2_score"][place] == pytest.approx(estimator.loo_r2_score_)
        return estimator.predict(X)
    estimator.set_params(random_state=FixedSeed(voter.seed)).fit(X, y)
    assert estimator.proven_ == {name: getattr(noted, name) for name in proves}
    assert table["n_layers"][place] == 1 + np.argmax(estimator.loo_r2_scores_)
    assert table["n_hidden"][place] == estimator.n_hidden_
    assert table["loo_r2_score"][place] == pytest.approx(max(estimator.loo_r2_scores_))
    return list(estimator.staged_predict(X))[table["n_layers"][place] - 1]


@pytest.mark.parametrize("weights", ["loo", "equal"])
@pytest.mark.parametrize("k", [None, 2])
def test_the_answer_is_the_mean_of_estimators_fitted_alone(rng, weights, k):
    X, y = noisy_values(rng, 90, 4, k)
    model = portfolio(weights=weights, finalists=None).fit(X, y)
    kept = model.portfolio_
    assert len(kept.voters) >= 2
    answers = [alone(model, i, X, y) for i in range(len(kept.voters))]
    if weights == "equal":
        np.testing.assert_allclose(kept.weights, equal_kinds([isinstance(v, Network) for v in kept.voters]))
    np.testing.assert_allclose(model.predict(X), np.average(answers, axis=0, weights=kept.weights), atol=1e-8)
    assert kept.calibration is None
    assert kept.classes is None


@pytest.mark.parametrize("k", [1, 2])
def test_leave_one_out_figures_and_weights_by_brute_force(rng, k):
    X, y = noisy_values(rng, 60, 4, k)
    mean, sd, ones = y.mean(axis=0), y.std(axis=0), np.ones(60)
    Y, lam = (y - mean) / sd, 0.5
    members = [
        ("kernel", KernelRidgeRegressor(bandwidth=0.5, regularization=0.2, input_scaling=None)),
        ("wide", EDRVFLRegressor(n_layers=2, n_hidden=15, regularization=lam)),
        ("narrow", EDRVFLRegressor(n_layers=3, n_hidden=4, activation="sigmoid", regularization=lam)),
    ]
    model = portfolio(members=members, finalists=None, weights="equal").fit(X, y)
    folds = [fold.order[-len(fold.places) :] for fold in deal_folds(prepare_values(X, y), None)]
    others = [np.setdiff1d(np.arange(60), inside) for inside in folds]
    assert len(folds) == 3
    answers = []
    for voter in model.portfolio_.voters:
        if isinstance(voter, Network):
            each = [scores_without_each_row(D, Y, lam, ones, ones) for D in features_by_layer(voter, X)]
            answers.append(np.mean(each, axis=0))
        else:
            Z, voter, scores = voter.voter.inputs.apply(X), voter.voter, np.empty(Y.shape)
            for inside, outside in zip(folds, others, strict=True):
                prior = Y[outside].mean(axis=0)
                of_fold = kernel_scores_without_each_row(Z, Y, voter.bandwidth, voter.lam, prior)
                scores[inside] = of_fold[inside]
            answers.append(scores)
    figures = [r2_score(y, P * sd + mean) for P in answers]
    np.testing.assert_allclose(model.members_["loo_r2_score"], figures, atol=1e-7)
    common = np.average(answers, axis=0, weights=model.members_["weight"])
    assert model.loo_r2_score_ == pytest.approx(r2_score(y, common * sd + mean), abs=1e-7)

    def weights_by(rows):
        """Return the weights that some rows give."""
        jury, equal = ValueJury(Y[rows], ones[rows]), np.array(model.members_["weight"])
        return keep_heavy(pool_weights([P[rows] for P in answers], jury, equal))

    # the weights are those of the same answers, and a fold is answered with the weights of the others
    by_loo = clone(model).set_params(weights="loo").fit(X, y)
    np.testing.assert_allclose(by_loo.members_["weight"], weights_by(slice(None)), atol=1e-3)
    for inside, outside in zip(folds, others, strict=True):
        common[inside] = np.average([P[inside] for P in answers], axis=0, weights=weights_by(outside))
    assert by_loo.loo_r2_score_ == pytest.approx(r2_score(y, common * sd + mean), abs=1e-4)
    weighed = np.average(answers, axis=0, weights=by_loo.members_["weight"])
    assert r2_score(y, weighed * sd + mean) > model.loo_r2_score_


def test_leave_one_out_is_honest(rng):
    X, y = noisy_values(rng, 2300, 4)
    model = portfolio().fit(X[:300], y[:300])
    assert abs(model.loo_r2_score_ - model.score(X[300:], y[300:])) < 0.06


def test_of_many_rows_a_part_is_judged(rng):
    X, y = noisy_values(rng, 14_000, 3)
    networks = [("a", SPARSE[1]), ("b", clone(SIGMOID[1]).set_params(n_hidden=30))]
    model = portfolio(members=networks).fit(X[:12_000], y[:12_000])
    assert abs(model.loo_r2_score_ - model.score(X[12_000:], y[12_000:])) < 0.03


def test_the_table_of_members(rng):
    X, y = noisy_values(rng, 90, 4)
    model = portfolio().fit(X, y)
    frame = pd.DataFrame(model.members_)
    columns = ["member", "weight", "loo_r2_score", "n_layers", "n_hidden", "seconds", "settings"]
    assert list(frame) == columns
    assert frame["member"].tolist() == [name for name, _ in MEMBERS]
    assert frame["weight"].sum() == pytest.approx(1)
    assert tuple(frame["weight"][frame["weight"] > 0]) == model.portfolio_.weights
    assert frame["n_layers"].isna().tolist() == [True, False, False, False]
    for (_, member), noted in zip(MEMBERS, model.members_["settings"], strict=True):
        assert noted is not member
        fitted = {name: getattr(noted, name) for name in PAPER if getattr(member, name, None) == "loo"}
        assert "loo" not in fitted.values()  # it has become a value
        if hasattr(member, "n_layers"):
            fitted["n_layers"] = noted.n_layers
        assert noted.get_params() == member.get_params() | fitted


def test_those_of_the_smallest_error_grow_on(rng):
    X, y = noisy_values(rng, 200, 4)
    hopeless = ("hopeless", EDRVFLRegressor(n_layers=2, n_hidden=4, regularization=1e9))
    model = portfolio(members=[hopeless, DENSE, SPARSE], verbose=0).fit(X, y)
    table = pd.DataFrame(model.members_).set_index("member")
    assert table.loc["hopeless", "weight"] == 0
    assert table.loc["hopeless", "loo_r2_score"] == pytest.approx(0, abs=0.02)


def test_the_default_table_is_a_list_to_change(rng):
    X, y = noisy_values(rng, 60, 3)
    table = EDRVFLPortfolioRegressor.default_members()
    again = dict(EDRVFLPortfolioRegressor.default_members())
    assert all(estimator is not again[name] for name, estimator in table)
    default = EDRVFLPortfolioRegressor(random_state=0).fit(X, y)
    given = EDRVFLPortfolioRegressor(members=table, random_state=0).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), default.predict(X))


# --- following a fit -------------------------------------------------------------------------------------


def test_verbose_prints_a_line_for_each_piece_of_work(rng, capsys):
    model = portfolio(verbose=1).fit(*noisy_values(rng, 80, 4))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    for line in lines:
        assert re.fullmatch(
            r"\[EDRVFLPortfolioRegressor\] (kernel|\w+, [12] layers?): "
            r"leave-one-out R\^2 -?\d\.\d{4}, \d+\.\d s",
            line,
        ), line
    assert any(f"R^2 {model.members_['loo_r2_score'][0]:.4f}" in line for line in lines if "kernel" in line)


# --- bad input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", [RidgeClassifier(), EDRVFLClassifier()], ids=str)
def test_members_of_another_kind(rng, member):
    with pytest.raises(TypeError, match="'a' must be an EDRVFLRegressor or a KernelRidgeRegressor"):
        portfolio(members=[("a", member)]).fit(*noisy_values(rng, 30, 4))
