"""Columns of many categories in estimators: answers, frames of all libraries, files and ONNX."""

import independent_reader as reader
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
    load,
)
from edrvfl._fitting.iterated import fit_iterated
from edrvfl._fitting.systems import Choice, Draw, KernelSettings, Sample, System
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_values
from edrvfl._ridge.kernels import KERNELS

EFFECTS = np.random.default_rng(7).normal(0, 2, 40)
FIXED = {"bandwidth": 0.5, "regularization": 0.1, "n_landmarks": None, "input_scaling": None}


def shops(m, seed=0, levels=40):
    """Rows of shops, whose turnover depends on which it is."""
    rng = np.random.default_rng(seed)
    code, size = rng.integers(0, levels, m), rng.standard_normal(m)
    rows = pd.DataFrame(
        {"size": size, "shop": [f"shop {c:02d}" for c in code], "day": rng.choice(["a", "b"], m)}
    )
    rows.loc[::17, "shop"] = None
    return rows, size + np.where(rows["shop"].isna(), 0, EFFECTS[code]) + 0.1 * rng.standard_normal(m)


@pytest.mark.parametrize("kernel", ["laplace", "matern", "product"])
def test_a_kernel_answers_as_with_a_column_for_every_level(kernel):
    """A plain ridge over one-hot columns of all levels, missing and unseen ones among them."""
    X, y = shops(90)
    new, _ = shops(30, seed=1)
    new.loc[3:5, "shop"] = ["never seen", "nor this", "never seen"]
    encoder = TabularEncoder("standard", max_categories=4, min_frequency=1)
    model = KernelRidgeRegressor(kernel=kernel, encoder=encoder, **FIXED).fit(X, y)
    z = (np.concatenate([X["size"], new["size"]]) - X["size"].mean()) / X["size"].std(ddof=0)
    names = pd.concat([X, new])["shop"].fillna("missing").to_numpy(dtype=object)
    names[len(X) + 3 : len(X) + 6] = ["new 1", "new 2", "new 3"]  # equal to nothing
    days = pd.concat([X, new])["day"].to_numpy()
    Z = np.column_stack([z, days == "a", days == "b", names[:, None] == np.unique(names.astype(str))]).astype(
        float
    )
    # one column of numbers, two for the day, and two for a level
    width = 0.5 * KERNELS[kernel].unit(5)
    K = KERNELS[kernel].alike(KERNELS[kernel].measure(Z[:90], None)(Z), width)
    mean, sd = y.mean(), y.std()
    alpha = np.linalg.solve(K[:90] + 0.1 * np.eye(90), (y - mean) / sd)
    assert_allclose(model.predict(new), mean + sd * (K[90:] @ alpha), rtol=1e-8)


def test_leave_one_out_is_as_good_as_on_new_rows():
    X, y = shops(400)
    new, truth = shops(200, seed=1)
    encoder = TabularEncoder("robust", max_categories=6)
    model = KernelRidgeRegressor(kernel="product", encoder=encoder, random_state=0).fit(X, y)
    assert model.score(new, truth) > 0.9
    assert abs(model.loo_r2_score_ - model.score(new, truth)) < 0.05


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_iterated_system_agrees_with_a_factorised_one(kernel):
    X, y = shops(300)
    codes = np.column_stack([X["size"], X["shop"].fillna("none").astype("category").cat.codes])
    rows = prepare_values(codes, y, None)
    inputs = learn_inputs(rows.X, None, EncoderSettings(max_categories=6), (False, True))
    sample = Sample.of(rows, inputs, kernel)
    system, choice = System(sample), Choice.of(KernelSettings(1.0, 0.05), sample)
    _, landmarks, found = fit_iterated(sample, Draw(rows, 0), 300, choice, 0)
    K = system.kernel.alike(system.measure(landmarks), system.width(1.0))
    exact = system.readout(1.0, 0.05)
    assert_allclose(K.T @ found.alpha, K @ exact.alpha, atol=0.01)


LIBRARIES = {
    "polars": lambda X: pytest.importorskip("polars").from_pandas(X),
    "pyarrow": lambda X: pytest.importorskip("pyarrow").Table.from_pandas(X),
    "categorical": lambda X: X.astype({"shop": "category"}),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_all_libraries_give_the_same_bits(library):
    X, y = shops(200)
    model = KernelRidgeRegressor(
        kernel="product", encoder=TabularEncoder("robust", max_categories=6), random_state=0
    )
    expected = model.fit(X, y).predict(X)
    other = LIBRARIES[library](X)
    assert_array_equal(model.predict(other), expected)
    assert_array_equal(model.fit(other, y).predict(other), expected)


def test_factors_of_a_category_follow_what_it_tells():
    X, y = shops(400)
    X["noise"] = np.random.default_rng(3).integers(0, 40, 400).astype(str)
    model = KernelRidgeRegressor(
        encoder=TabularEncoder("robust", max_categories=6), input_scaling="gradient", random_state=0
    ).fit(X, y)
    inputs = model.model_.inputs
    shop, noise = (inputs.factors[inputs.source.index(j)] for j in (1, 3))
    assert shop > 2 * noise


@pytest.mark.parametrize("kernel", KERNELS)
def test_files_hold_codes(kernel, tmp_path):

    X, y = shops(120)
    X.loc[5, "shop"] = "only once"
    encoder = TabularEncoder("bins", max_categories=6)
    model = KernelRidgeClassifier(kernel=kernel, encoder=encoder, random_state=0).fit(X, y > 0)
    new, _ = shops(40, seed=2)
    new.loc[0, "shop"] = "never seen"
    model.save(tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict_proba(new), model.predict_proba(new))
    found = reader.answer(reader.load(tmp_path / "m"), [new[name].tolist() for name in new])
    assert_allclose(found, model.predict_proba(new), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("alone", [False, True])
def test_graphs_compare_codes(kernel, alone):
    pytest.importorskip("onnxruntime")
    from runtime import assert_agrees

    X, y = shops(120)
    new, _ = shops(40, seed=2)
    new.loc[0, "shop"] = "never seen"
    if alone:  # no other column
        X, new = X[["shop"]], new[["shop"]]
    encoder = TabularEncoder("standard", max_categories=6)
    model = KernelRidgeRegressor(kernel=kernel, encoder=encoder, random_state=0).fit(X, y)
    assert_agrees(model, new, "float64")


def test_a_portfolio_of_many_levels(tmp_path):
    X, y = shops(300, levels=36)
    small = {"n_hidden": 16, "n_layers": 2}
    members = [("k", KernelRidgeRegressor()), ("n", EDRVFLRegressor(input_scaling="loo", **small))]
    model = EDRVFLPortfolioRegressor(members=members, random_state=0).fit(X, y)
    new, truth = shops(200, seed=1, levels=36)
    assert model.score(new, truth) > 0.8
    model.save(tmp_path / "m")
    assert_array_equal(load(tmp_path / "m").predict(new), model.predict(new))


def test_networks_answer_unseen_levels_as_unseen():
    X, y = shops(300)
    model = EDRVFLClassifier(n_hidden=16, n_layers=2, random_state=0).fit(X, y > 0)
    new = X[:2].assign(shop=["never seen", "nor this"])
    encoded = TabularEncoder().fit(X).transform(new)
    assert (encoded[:, 1:-2] == 0).all()
    assert_array_equal(model.predict_proba(new.assign(shop="another one"))[0], model.predict_proba(new)[0])
