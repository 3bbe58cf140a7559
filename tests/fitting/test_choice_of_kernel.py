"""Which kernel leave-one-out chooses, how often factors multiply, and who keeps out of it."""

import numpy as np
import pytest
from helpers import noisy_values
from sklearn.datasets import make_friedman1

from edrvfl import (
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
)
from edrvfl._fitting.data import InMemory, few_of
from edrvfl._fitting.gradient import fit_ridge
from edrvfl._fitting.inputs import Proof, best_kernel, learn_network_inputs, prove_inputs
from edrvfl._fitting.settings import EFFORTS, RACE_ROWS, SUITED, kernel_settings
from edrvfl._inputs.rows import prepare_rows, prepare_values
from edrvfl._inputs.table import Columns


def data_of(X, y, classes=False):
    rows = prepare_rows(X, y) if classes else prepare_values(X, y)
    d = X.shape[1]
    return InMemory(rows, Columns((False,) * d, (None,) * d, tuple(map(str, range(d)))))


def settings_of(**params):
    return kernel_settings(KernelRidgeRegressor(**params))


def inputs_of(**params):
    (only,) = settings_of(**params).candidates()
    return only.inputs


def steps(rng, m, d=3):
    """Values that jump: what a kernel by columns and ranks sees, and a smooth one does not."""
    X = np.exp(2 * rng.standard_normal((m, d)))
    return X, (X[:, 0] > 1) + 2.0 * (X[:, 1] > 3) + 0.1 * rng.standard_normal(m)


def test_a_smooth_target_gets_the_smooth_kernel_and_is_foretold_better():
    X, y = make_friedman1(500, 6, noise=0.3, random_state=0)
    model = KernelRidgeRegressor(kernel="loo", encoder="loo", random_state=0).fit(X[:300], y[:300])
    plain = KernelRidgeRegressor(random_state=0).fit(X[:300], y[:300])
    assert model.kernel_ == "matern"
    assert 1 - model.score(X[300:], y[300:]) < 0.7 * (1 - plain.score(X[300:], y[300:]))


def test_steps_get_a_kernel_by_columns(rng):
    X, y = steps(rng, 300)
    model = KernelRidgeRegressor(kernel="loo", encoder="loo", random_state=0).fit(X[:200], y[:200])
    assert model.kernel_ in ("product", "additive")
    assert model.score(X[200:], y[200:]) > 0.7


def test_the_kernel_is_that_of_the_smallest_honest_loss(rng):
    data = data_of(*noisy_values(rng, 120, 3))
    settings = settings_of(kernel="loo", encoder="loo")
    losses = [prove_inputs(data, one.inputs, 0).loss for one in settings.candidates()]
    best, proof = best_kernel(data, settings, 0)
    assert best.kernel.kernel == list(SUITED)[int(np.argmin(losses))]
    assert proof.loss == min(losses)


def test_what_suits_a_kernel_is_taken_only_if_asked_for():
    encoders = [one.inputs.encoder.numbers for one in settings_of(kernel="loo", encoder="loo").candidates()]
    assert encoders == list(SUITED.values())
    given = settings_of(kernel="loo", encoder="robust").candidates()
    assert {one.inputs.encoder.numbers for one in given} == {"robust"}
    (named,) = settings_of(kernel="product", encoder="loo").candidates()
    assert named.inputs.encoder.numbers == "ranks"


def test_columns_without_a_say_want_more_than_one_round(rng):
    X = rng.standard_normal((400, 24))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(400)
    rounds = prove_inputs(data_of(X, y), inputs_of(kernel="matern", encoder="standard"), 0).rounds
    assert rounds >= 2


def test_noise_gets_no_factors_to_speak_of(rng):
    chosen = []
    for _ in range(12):
        data = data_of(rng.standard_normal((80, 12)), rng.standard_normal(80))
        chosen.append(prove_inputs(data, inputs_of(kernel="matern", encoder="standard"), 0).rounds)
    assert np.mean(chosen) < 1  # by chance a few help


def test_what_the_model_of_a_fold_sees_comes_from_the_other_rows_alone(rng):
    data = data_of(*noisy_values(rng, 90, 4))
    settings = inputs_of(kernel="matern", encoder="standard")
    proof = prove_inputs(data, settings, 0)
    assert len(data.folds) == len(proof.seen) == 3
    for fold, (inputs, chosen) in zip(data.folds, proof.seen, strict=True):
        ridge = fit_ridge(proof.inputs, fold.outside, 0, "matern")
        for _ in range(3):
            if same(ridge.inputs, inputs):
                break
            ridge = fit_ridge(ridge.scaled(), fold.outside, 0, "matern", ridge.choice.values)
        assert same(ridge.inputs, inputs)
        assert ridge.choice.values == chosen


def same(one, other):
    """Whether two inputs have the same factors, or none."""
    if one.factors is None or other.factors is None:
        return one.factors is other.factors
    return np.array_equal(one.factors, other.factors)


@pytest.mark.parametrize("classes", [False, True])
def test_of_many_rows_some_prove(rng, classes):
    X, y = noisy_values(rng, 2_000, 3)
    y = (y > 0).astype(int) if classes else y
    data = data_of(X, y, classes)
    few = few_of(data, RACE_ROWS, 0)
    assert few.rows.X.shape[0] == RACE_ROWS
    means = [float(np.mean(one.rows.targets.rows(slice(None)))) for one in (few, data)]
    assert means[0] == pytest.approx(means[1], abs=0.05)
    assert few_of(data, 2_000, 0) is data
    kernel = KernelRidgeClassifier if classes else KernelRidgeRegressor
    settings = kernel_settings(kernel(kernel="product", encoder="ranks")).candidates()[0].inputs
    proof = prove_inputs(data, settings, 0)
    assert proof.data.rows.X.shape[0] == RACE_ROWS
    learnt = learn_network_inputs(data, settings, 0, proof)
    assert (learnt.inputs.factors is None) is (proof.rounds == 0)
    assert learnt.of_folds == ()  # so many rows are judged by one fit


def test_without_a_proof_the_first_kernel_is_taken(rng):
    data = data_of(*noisy_values(rng, 3, 3))
    best, proof = best_kernel(data, settings_of(kernel="loo", encoder="loo"), 0)
    assert isinstance(proof, Proof)
    assert best.kernel.kernel == "laplace"


@pytest.mark.parametrize("make", [EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor])
def test_of_many_kernels_a_portfolio_fits_the_best(rng, make):
    X, y = noisy_values(rng, 100, 3)
    y = y if make is EDRVFLPortfolioRegressor else (y > 0).astype(int)
    kernel = KernelRidgeRegressor if make is EDRVFLPortfolioRegressor else KernelRidgeClassifier
    members = [(name, kernel(kernel=name, encoder="loo")) for name in SUITED]
    model = make(members=members, random_state=0).fit(X, y)
    names = model.members_["member"]
    assert len(names) == EFFORTS["usual"].kept
    assert [one.kernel for one in model.members_["settings"]] == names
    assert {voter.voter.kernel for voter in model.portfolio_.voters} <= set(names)
