"""ONNX models of networks, kernel voters, portfolios and searches answer as the estimators do."""

import copy
import dataclasses
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import noisy_rows, noisy_values

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from runtime import DTYPES, TOLERANCE, assert_agrees, disagreement, feeds_of, run

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    EDRVFLSearchCV,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    RowBlocks,
    to_onnx,
    variant,
)
from edrvfl._doors.variants import VARIANTS
from edrvfl._layers.layers import ACTIVATIONS
from edrvfl._loo.calibrate import Calibration
from edrvfl._ridge.kernels import KERNELS

SMALL = {"n_hidden": 24, "n_layers": 3, "random_state": 0}
OPTIONS = [
    {"ensemble": "mean"},
    {"ensemble": "vote"},
    {"ensemble": "mean", "calibration": None},
    {"layer_votes": "weighted"},
    {"layer_votes": "prefix"},
    {"calibration": "temperature"},
    {"readout": "joint", "prune_rate": 0.0, "correct_weight": 1.0, "ensemble": "vote"},
    {"input_scaling": "gradient", "pair_share": 0.5},
    {"inputs_per_neuron": 2, "hidden_per_neuron": 4, "norm_scale": (0.3, 3.0), "norm_shift": (-1.0, 1.0)},
    {"prune_rate": 0.9},
    {"n_layers": 1},
    {"encoder": None},
    *({"activation": activation} for activation in ACTIVATIONS),
]


def rows(k, seed=0, m=80):
    """Rows that float32 holds exactly, of k classes."""
    X, y = noisy_rows(np.random.default_rng(seed), m, 5)
    return X.astype(np.float32).astype(float), y if k == 3 else (y > 0).astype(int)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_agrees(name, k, dtype):
    X, y = rows(k)
    n_layers = {} if name == "RVFL" else {"n_layers": 4}
    for calibration in (None, "loo"):
        model = variant(name, n_hidden=24, random_state=0, calibration=calibration, **n_layers).fit(X, y)
        assert_agrees(model, rows(k, seed=1)[0], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_agrees(options, dtype):
    for k in (2, 3):
        X, y = rows(k)
        model = EDRVFLClassifier(**{**SMALL, **options}).fit(X, y)
        assert_agrees(model, rows(k, seed=1)[0], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_deep_networks_without_renormalisation_agree(dtype):
    # their features grow tenfold from layer to layer, which float32 does not stand
    X, y = rows(3)
    model = variant("edRVFL_O", n_hidden=200, n_layers=8, random_state=0, regularization=0.01).fit(X, y)
    assert_agrees(model, rows(3, seed=1)[0], dtype)


@pytest.mark.parametrize("name", VARIANTS)
def test_columns_far_from_0_agree_without_an_encoder(name):
    X, y = rows(3)
    shift = 2.0 ** np.arange(6, 11)
    X, new = (np.float32(shift + rows(3, seed)[0]).astype(float) for seed in (0, 1))
    model = variant(name, n_hidden=24, n_layers=2, random_state=0, encoder=None, calibration="loo").fit(X, y)
    assert_agrees(model, new, "float32")


@pytest.mark.parametrize("activation", ["relu", "sigmoid"])
@pytest.mark.parametrize("scale", [1e-3, 1e-5, 1e-8])
def test_columns_of_small_numbers_agree_without_an_encoder(scale, activation):
    X, y = rows(3)
    X, new = (np.float32(scale * rows(3, seed)[0]).astype(float) for seed in (0, 1))
    options = {"n_hidden": 30, "n_layers": 6, "encoder": None, "activation": activation}
    assert_agrees(EDRVFLClassifier(**options, random_state=0).fit(X, y), new, "float32")


def test_many_classes_have_a_diagonal_calibration(rng):
    y = np.repeat(np.arange(34), 4)
    X = rng.standard_normal((len(y), 3)) + y[:, None] / 5
    model = EDRVFLClassifier(**SMALL).fit(X, y)
    assert model.network_.calibrations[-1].matrix.ndim == 1
    assert_agrees(model, X[::3], "float64")


def test_a_bent_calibration_agrees_on_both_sides(rng):
    X, y = rows(2)
    model = EDRVFLClassifier(**SMALL).fit(X, y)
    for low, high in [(-0.5, 0.25), (0.1, 0.2), (-0.3, -0.2)]:
        bent = Calibration(a=9.0, uniform=0.01, shift=0.3, low_slope=0.4, high_slope=2.0, low=low, high=high)
        model.network_ = dataclasses.replace(model.network_, calibrations=(bent,) * 3)
        assert_agrees(model, X, "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_depth_agrees_with_the_staged_answers(dtype):
    X, y = rows(3)
    model = EDRVFLClassifier(**SMALL).fit(X, y)
    joint = variant("dRVFL", n_hidden=24, n_layers=3, random_state=0, calibration="loo").fit(X, y)
    for depth in (1, 2, 3):
        assert_agrees(model, X, dtype, depth)
        assert_agrees(joint, X, dtype, depth)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("make", [EDRVFLRegressor, KernelRidgeRegressor])
def test_regressors_agree(make, k, dtype):
    X, y = noisy_values(np.random.default_rng(0), 80, 4, k)
    X, new = X.astype(np.float32).astype(float), np.random.default_rng(1).standard_normal((40, 4))
    new = new.astype(np.float32).astype(float)
    options = {"n_hidden": 24, "n_layers": 3} if make is EDRVFLRegressor else {}
    assert_agrees(make(**options, random_state=0).fit(X, y), new, dtype)


def test_values_far_from_0_keep_their_digits():
    X, y = noisy_values(np.random.default_rng(0), 80, 4)
    model = EDRVFLRegressor(n_hidden=24, n_layers=3, random_state=0).fit(X, 1e6 + y)
    assert_agrees(model, X, "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor])
def test_portfolios_agree(make, dtype):
    X, y = rows(3, m=60)
    members = [(name, one) for name, one in make.default_members() if hasattr(one, "bandwidth")][:1]
    networks = [(name, one) for name, one in make.default_members() if hasattr(one, "n_layers")][:3]
    members += [(name, one.set_params(n_hidden=24, n_layers=2)) for name, one in networks]
    model = make(members=members, weights="equal", random_state=0).fit(X, y)
    assert len(model.portfolio_.voters) > 2
    assert_agrees(model, rows(3, seed=1)[0], dtype)


@pytest.mark.parametrize("ensemble_size", [1, 2])
def test_a_search_answers_with_its_best(ensemble_size):
    X, y = rows(2)
    search = EDRVFLSearchCV(
        EDRVFLClassifier(**SMALL),
        {"norm_scale": [0.5, 1.0, 2.0]},
        n_iter=3,
        cv=2,
        ensemble_size=ensemble_size,
    ).fit(X, y)
    assert_agrees(search, X, "float64")


@pytest.mark.parametrize("n_landmarks", ["auto", 50])
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_voters_of_many_rows_agree_with_their_records_in_float64(dtype, n_landmarks, monkeypatch):
    # the estimator itself computes these in float32, and is off by more than its ONNX model
    monkeypatch.setattr("edrvfl._fitting.kernel.PART_ROWS", {False: 600, True: 600})
    monkeypatch.setattr("edrvfl._fitting.kernel.LEAST_PART", 600)
    X, y = rows(3, m=1100)
    model = KernelRidgeClassifier(n_landmarks=n_landmarks, random_state=0).fit(X, y)
    voter = model.model_.voter
    assert voter.landmarks.dtype == np.float32
    exact = copy.copy(model)
    doubled = {name: getattr(voter, name).astype(float) for name in ("landmarks", "alpha")}
    exact.model_ = dataclasses.replace(model.model_, voter=dataclasses.replace(voter, **doubled))
    new = rows(3, seed=1)[0]
    proto = to_onnx(model, dtype=dtype)
    found = run(proto, feeds_of(proto, new))["probabilities"]
    assert np.max(np.abs(found - exact.predict_proba(new))) < TOLERANCE[dtype]
    assert disagreement(model, new, dtype) < 1e-4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_agrees(kernel, dtype):
    X, y = noisy_values(np.random.default_rng(0), 90, 4)
    model = KernelRidgeRegressor(kernel=kernel, encoder="loo", random_state=0).fit(X, y)
    assert_agrees(model, X, dtype)


def test_labels_are_text_or_whole_numbers():
    X, y = rows(2)
    for labels, expected in [
        (["no", "yes"], object),
        ([5, 7], np.int64),
        ([0.0, 1.0], np.int64),
        ([False, True], np.int64),
    ]:
        model = EDRVFLClassifier(**SMALL).fit(X, np.array(labels)[y])
        proto = to_onnx(model)
        found = run(proto, feeds_of(proto, X))["label"]
        assert found.dtype == expected
        assert (found == model.predict(X)).mean() > 0.95


def test_the_model_has_standard_operators_only():
    X, y = rows(3)
    proto = to_onnx(KernelRidgeClassifier().fit(X, y), name="voter")
    assert {(o.domain, o.version) for o in proto.opset_import} == {("", 18), ("ai.onnx.ml", 3)}
    assert {node.domain for node in proto.graph.node} <= {"", "ai.onnx.ml"}
    assert proto.graph.name == "voter"
    assert proto.producer_name == "edrvfl"


def test_no_rows_and_one_row_are_answered():
    X, y = rows(3)
    proto = to_onnx(EDRVFLClassifier(**SMALL).fit(X, y))
    for m in (0, 1):
        assert run(proto, feeds_of(proto, X[:m]))["probabilities"].shape == (m, 3)


def test_what_cannot_be_exported_says_so(monkeypatch):
    X, y = rows(3)
    model = EDRVFLClassifier(**SMALL).fit(X, y)
    for n_layers in (4, 1.5, "2"):
        with pytest.raises(ValueError, match="n_layers must be from 1 to 3"):
            to_onnx(model, n_layers=n_layers)
    with pytest.raises(NotImplementedError, match="whole numbers of 64 bits"):
        to_onnx(EDRVFLClassifier(**SMALL).fit(X, y.astype(np.uint64) + np.uint64(2**63)))
    with pytest.raises(ValueError, match=r"Label 'n\\udc80' is not valid Unicode"):
        to_onnx(EDRVFLClassifier(**SMALL).fit(X, np.array(["n\udc80", "b", "c"], dtype=object)[y]))
    named = {"": "A column has an empty name", "n\udc80": r"Column name .* is not valid Unicode"}
    for name, message in named.items():
        table = pd.DataFrame(X)
        table.columns = pd.Index([name, *"abcd"], dtype=object)
        with pytest.raises(ValueError, match=message):
            to_onnx(EDRVFLClassifier(**SMALL).fit(table, y))
    texts = pd.Series(np.array(["n\udc80", "b", "c"], dtype=object)[y], dtype=object)
    with pytest.raises(ValueError, match=r"Category .* is not valid Unicode"):
        to_onnx(EDRVFLClassifier(**SMALL).fit(pd.DataFrame({"t": texts}), y))
    with pytest.raises(ValueError, match="n_layers is for networks"):
        to_onnx(KernelRidgeClassifier().fit(X, y), n_layers=1)
    with pytest.raises(ValueError, match="dtype must be one of float32, float64"):
        to_onnx(model, dtype="float16")
    from sklearn.linear_model import LinearRegression

    with pytest.raises(TypeError, match="skl2onnx"):
        to_onnx(LinearRegression().fit(X, y))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"edrvfl\[onnx\]"):
        to_onnx(model)


def test_a_network_from_torch_is_exported():
    torch = pytest.importorskip("torch")
    X, y = rows(3)
    with sklearn.config_context(array_api_dispatch=True):
        model = EDRVFLClassifier(**SMALL).fit(torch.asarray(X), torch.asarray(y))
        P = model.predict_proba(torch.asarray(X)).numpy()
    proto = to_onnx(model, dtype="float64")
    assert np.max(np.abs(run(proto, feeds_of(proto, X))["probabilities"] - P)) < 1e-9


def test_a_network_from_blocks_is_exported():
    X, y = rows(3)
    model = EDRVFLClassifier(**SMALL).fit(RowBlocks.from_arrays(X, y, rows=40))
    assert_agrees(model, X, "float64")
