"""Laws of every estimator: what rows, weights, units, names, libraries and precision may change."""

import importlib

import numpy as np
import pytest
import sklearn
from cases import ALL, JOINT, KERNELS, NETWORKS, PORTFOLIOS, SIX, answer, figures, fitted, rows_for
from helpers import PAPER, noisy_rows, to_host
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.utils._array_api import move_estimator_to

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, KernelRidgeClassifier, KernelRidgeRegressor, to_numpy

CLASSIFIERS = {name: model for name, model in ALL.items() if is_classifier(model)}
REGRESSORS = {name: model for name, model in ALL.items() if name not in CLASSIFIERS}


def every(cases):
    return pytest.mark.parametrize("name", cases)


def outputs(name):
    """One value and two, where there are values."""
    return [None] if name in CLASSIFIERS else [None, 2]


def rounding(name):
    """How far rounding moves an answer: a calibration or a weight in a pool is found by descent."""
    if name in CLASSIFIERS:
        return 1e-4 if name in PORTFOLIOS else 1e-5
    return 1e-6


def assert_alike(one, other, X, atol):
    np.testing.assert_allclose(answer(one, X), answer(other, X), atol=atol)
    np.testing.assert_allclose(figures(one), figures(other), rtol=1e-7, atol=atol)


# --- rows and weights ------------------------------------------------------------------------------------


@every(ALL)
def test_a_weight_counts_rows_and_their_order_does_not_matter(name):
    for k in outputs(name):
        X, y = rows_for(name, k)
        rng = np.random.default_rng(3)
        counts = rng.integers(0, 4, len(y))
        rows = rng.permutation(np.repeat(np.arange(len(y)), counts))
        weighted, repeated = clone(ALL[name]).fit(X, y, counts), clone(ALL[name]).fit(X[rows], y[rows])
        assert_alike(weighted, repeated, X, rounding(name))


@every([name for name in SIX if "network" not in name])
def test_weight_two_is_the_row_twice_where_copies_are_many_rows(name):
    X, y = noisy_rows(np.random.default_rng(5), 600, 4)  # more than 1,000 rows are computed in float32
    weighted = clone(SIX[name]).fit(X, y, np.full(600, 2.0))
    assert_alike(weighted, clone(weighted).fit(np.r_[X, X], np.r_[y, y]), X, 1e-12)


LOO = {"weight_from": "loo", "correct_weight": 0.5}
GIVEN = {
    "class network": EDRVFLClassifier(n_layers=3, n_hidden=16, calibration=None, **(PAPER | LOO)),
    "value network": EDRVFLRegressor(n_layers=3, n_hidden=16, **LOO),
    "value network, dual": EDRVFLRegressor(n_layers=2, n_hidden=120, **LOO),
    "value network, joint": EDRVFLRegressor(n_layers=3, n_hidden=30, **JOINT),
    "class kernel": KernelRidgeClassifier(bandwidth=1.0, input_scaling=None, calibration=None),
    "value kernel": KernelRidgeRegressor(bandwidth=1.0, input_scaling=None),
    "value kernel, landmarks": KernelRidgeRegressor(bandwidth=1.0, input_scaling=None, n_landmarks=30),
}


@every(GIVEN)
@pytest.mark.parametrize("weight", [0.3, 1.01, 4.0, 100.0])
def test_a_constant_weight_is_a_factor_of_the_penalty_and_nothing_else(name, weight):
    X, y = rows_for(name)
    model = clone(GIVEN[name]).set_params(regularization=0.5, random_state=0).fit(X, y)
    scaled = clone(model).set_params(regularization=0.5 * weight).fit(X, y, np.full(len(y), weight))
    np.testing.assert_allclose(answer(scaled, X), answer(model, X), atol=1e-7)
    scaled.regularization_ = np.divide(scaled.regularization_, weight)
    if name == "class kernel":  # the temperature at which a log-loss is taken counts weights as evidence
        assert scaled.loo_log_loss_ == pytest.approx(model.loo_log_loss_, abs=5e-3)
        scaled.loo_log_loss_ = model.loo_log_loss_
    np.testing.assert_allclose(figures(scaled), figures(model), atol=1e-7)


@every(ALL)
def test_a_row_without_weight_leaves_no_trace(name):
    _, X, y = fitted(name)
    far, other = np.full((9, 5), 40.0), np.full(9, 9)  # a class of its own, or a value far away
    weights = np.r_[np.ones(len(y)), np.zeros(9)]
    model = clone(ALL[name]).fit(np.vstack([X, far]), np.r_[y, other], weights)
    assert_alike(model, fitted(name)[0], X, rounding(name))


def by_leave_one_out(model):
    """The same estimator with penalties that leave-one-out chooses, in the scale of the weights."""
    if hasattr(model, "members"):
        return clone(model).set_params(members=[(name, by_leave_one_out(m)) for name, m in model.members])
    return clone(model).set_params(regularization="loo")


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, np.float64) for name in ALL), *((name, np.float32) for name in SIX)]
)
def test_weights_below_one_have_no_scale(name, dtype):
    X, y = rows_for(name)
    X, weights = X.astype(dtype), np.random.default_rng(1).uniform(0.2, 1, len(y))
    # exact factors: nothing may change but the scale of the penalties
    model = by_leave_one_out((ALL | SIX)[name])
    answers = [answer(clone(model).fit(X, y, unit * weights), X) for unit in (0.5, 2.0**-30)]
    np.testing.assert_allclose(*answers, atol=2e-3 if dtype == np.float32 else rounding(name))


# landmarks are drawn by the numbers of a row, one after the other
@every([name for name, model in KERNELS.items() if model.n_landmarks in ("auto", None) and "cat" not in name])
def test_the_order_of_columns_does_not_matter_to_kernels(name):
    model, X, y = fitted(name)
    order = [4, 2, 0, 1, 3]
    other = clone(model).fit(X[:, order], y)
    np.testing.assert_allclose(answer(other, X[:, order]), answer(model, X), atol=rounding(name))


# --- layers ----------------------------------------------------------------------------------------------


# whether a network is better with what must prove itself, all its layers say together
@every([name for name in NETWORKS if "proven" not in name])
def test_every_stage_is_the_shallower_network(name):
    deep, X, y = fitted(name, outputs(name)[-1])
    stages = deep.staged_predict_proba if name in CLASSIFIERS else deep.staged_predict
    for depth, stage in enumerate(stages(X), start=1):
        shallow = clone(deep).set_params(n_layers=depth).fit(X, y)
        if deep.layer_votes == "prefix" and shallow.n_layers_ < depth:
            continue
        np.testing.assert_allclose(stage, answer(shallow, X), atol=1e-10)
    assert depth == deep.n_layers_
    np.testing.assert_allclose(stage, answer(deep, X), atol=1e-12)


@every([name for name in NETWORKS if not ("plain" in name or "two classes" in name)])
def test_a_setting_acts(name):
    model, X, _ = fitted(name)
    bare = getattr(model, "calibration", "loo") is None and "not calibrated" not in name
    plain = fitted(name.split(",")[0] + (", not calibrated" if bare else ", plain"))[0]
    assert np.abs(answer(model, X) - answer(plain, X)).max() > 1e-3


# --- units and names of y --------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    name=st.sampled_from(list(REGRESSORS)),
    size=st.floats(-250, 250),
    sign=st.sampled_from([-1, 1]),
    offset=st.floats(-1e5, 1e5),
)
def test_answers_have_the_units_of_y(name, size, sign, offset):
    if "pair" in str(ALL[name]):
        sign = 1  # pairs follow the values up
    plain, X, y = fitted(name)
    scale = sign * 10.0**size
    other = clone(plain).fit(X, scale * (y + offset))
    atol = 1e-5 if name in PORTFOLIOS else 1e-6
    np.testing.assert_allclose(other.predict(X) / scale - offset, plain.predict(X), atol=atol)
    np.testing.assert_allclose(figures(other), figures(plain), atol=atol)


@every(REGRESSORS)
def test_a_constant_value_is_the_answer(name):
    X, y = rows_for(name)
    for value in (0.0, 0.1, -1e300):
        model = clone(ALL[name]).fit(X, np.full(60, value))
        np.testing.assert_allclose(model.predict(2 * X), value, rtol=1e-15)
        assert set(np.ravel(getattr(model, "loo_r2_scores_", getattr(model, "loo_r2_score_", 0)))) == {1.0}
    beside = clone(ALL[name]).fit(X, np.column_stack([np.full(60, 0.1), y])).predict(X)
    np.testing.assert_allclose(beside[:, 0], 0.1, rtol=1e-15)
    assert np.corrcoef(beside[:, 1], y)[0, 1] > 0.6


# pairs are pairs of classes, drawn in their order
@every([name for name in CLASSIFIERS if not getattr(ALL[name], "pair_share", 0)])
def test_the_names_of_classes_do_not_matter(name):
    model, X, y = fitted(name)
    names = np.array(["perhaps", "no", "yes"])
    renamed = clone(model).fit(X, names[y])
    assert renamed.classes_.tolist() == ["no", "perhaps", "yes"][: y.max() + 1]
    P = renamed.predict_proba(X)
    np.testing.assert_allclose(P[:, [1, 0, 2][: y.max() + 1]], model.predict_proba(X), atol=rounding(name))
    np.testing.assert_array_equal(renamed.predict(X), renamed.classes_[P.argmax(axis=1)])
    if P.shape[1] > 2:
        np.testing.assert_array_equal(renamed.decision_function(X).argmax(axis=1), P.argmax(axis=1))
    np.testing.assert_allclose(renamed.predict_log_proba(X), np.log(P))


@every([name for name in SIX if name.startswith("class")])
@pytest.mark.parametrize(
    "labels", [[False, True], [-5, 7], [1.0, 2.0]], ids=["flags", "integers", "whole floats"]
)
def test_two_classes_have_log_odds_and_labels_of_their_own_kind(name, labels):
    _, X, y = fitted(name)
    y = np.array(labels)[(y > 0).astype(int)]
    model = clone(SIX[name]).fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), np.log(P[:, 1] / P[:, 0]), atol=1e-10)
    assert model.predict(X).dtype == y.dtype
    assert model.classes_.tolist() == labels


# --- libraries and precision -----------------------------------------------------------------------------


# The strict library knows nothing but the standard; torch rounds otherwise. What a setting does to the layers
# is the same code for classes and for values, so torch asks the one of the two.
IN_LIBRARIES = [
    *(("array_api_strict", "float64", name) for name in ALL),
    *(
        ("array_api_compat.torch", "float64", name)
        for name in ALL
        if name.replace("class network", "value network") not in NETWORKS or name in REGRESSORS
    ),
    *(("array_api_compat.torch", "float32", name) for name in SIX),
]


@pytest.mark.parametrize(("library", "dtype", "name"), IN_LIBRARIES)
def test_every_library_makes_the_same_model(library, dtype, name):
    xp = importlib.import_module(library)
    here, X, y = fitted(name, outputs(name)[-1])
    X = X.astype(dtype)
    if dtype == "float32":
        here = clone(here).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        there = clone(here).fit(xp.asarray(X), xp.asarray(y))
        found, home = answer(there, xp.asarray(X)), to_numpy(there)
        moved = move_estimator_to(here, xp, "cpu") if "torch" in library else there
        np.testing.assert_allclose(
            to_host(answer(moved, xp.asarray(X))), to_host(found), atol=tolerance(name, dtype)
        )
    assert str(found.dtype).endswith(dtype)
    np.testing.assert_allclose(to_host(found), answer(here, X), atol=tolerance(name, dtype))
    # in float32 a row is not quite at distance 0 from itself, in each library by another rounding
    np.testing.assert_allclose(answer(home, X), to_host(found), atol=1e-10 if dtype == "float64" else 5e-3)
    if dtype == "float64":
        np.testing.assert_allclose(figures(there), figures(here), atol=rounding(name))


def tolerance(name, dtype):
    return rounding(name) if dtype == "float64" else 0.02


@every(ALL)
def test_float32_in_float32_out_and_close(name):
    model, X, y = fitted(name)
    single = clone(model).fit(X.astype(np.float32), y)
    found = answer(single, X.astype(np.float32))
    assert found.dtype == answer(single, X).dtype == np.float32
    off = np.abs(found - answer(model, X))
    assert np.quantile(off, 0.95) < 0.02  # a row of a hundred may vote otherwise


@every(SIX)
def test_words_beside_torch_rows_and_the_way_there(name):
    torch = pytest.importorskip("array_api_compat.torch")
    _, X, y = fitted(name)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    if name.startswith("class"):
        y = np.array(["a", "b", "c"])[y]
    here = clone(SIX[name]).fit(X, y, weights)
    with sklearn.config_context(array_api_dispatch=True):
        there = clone(here).fit(torch.asarray(X), y, weights)
        moved = move_estimator_to(here, torch, "cpu")
        for model in (there, moved):
            labels = to_host(model.predict(torch.asarray(X)))
            if name.startswith("class"):
                np.testing.assert_array_equal(labels, here.predict(X))
            else:
                np.testing.assert_allclose(labels, here.predict(X), atol=1e-6)
        with pytest.raises(ValueError, match="must use the same namespace and the same device"):
            there.predict(X)
