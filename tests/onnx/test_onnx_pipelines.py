"""skl2onnx converts pipelines that hold our estimators."""

import sys

import numpy as np
import pandas as pd
import pytest
from helpers import noisy_rows, noisy_values
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")
import skl2onnx
from runtime import DTYPES, TOLERANCE, run

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
    register_onnx_converters,
)

NO_MAP = {"zipmap": False}


@pytest.fixture(autouse=True)
def converters():
    register_onnx_converters()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classifier", [EDRVFLClassifier(n_hidden=24, n_layers=3), KernelRidgeClassifier()])
def test_a_pipeline_with_a_classifier(rng, classifier, dtype):
    X, y = noisy_rows(rng, 80, 4)
    model = make_pipeline(MinMaxScaler(), classifier.set_params(random_state=0)).fit(
        X, np.array(["a", "b", "c"])[y]
    )
    proto = skl2onnx.to_onnx(model, X[:1].astype(dtype), options=NO_MAP)
    found = run(proto, {"X": X.astype(dtype)})
    assert np.max(np.abs(found["probabilities"] - model.predict_proba(X))) < TOLERANCE[dtype]
    assert (found["label"] == model.predict(X)).all()


def nearest(calibrator, scores):
    """Answer as skl2onnx writes an isotonic calibration: by the nearest threshold; scikit-learn has lines."""
    x, y = calibrator.X_thresholds_, calibrator.y_thresholds_
    return y[np.abs(np.clip(scores, x[0], x[-1])[:, None] - x).argmin(axis=1)]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("classifier", [EDRVFLClassifier(n_hidden=20, n_layers=2), KernelRidgeClassifier()])
def test_scores_are_calibrated_as_scikit_learn_does(rng, classifier, method, k):
    X, y = noisy_rows(rng, 150, 4)
    model = CalibratedClassifierCV(classifier.set_params(random_state=0), method=method, cv=3)
    model.fit(X, np.minimum(y, k - 1))
    P = model.predict_proba(X)
    if method == "isotonic":
        parts = []
        for one in model.calibrated_classifiers_:
            scores = one.estimator.decision_function(X).reshape(len(X), -1)
            found = [nearest(c, column) for c, column in zip(one.calibrators, scores.T, strict=True)]
            found = np.stack([1 - found[0], found[0]] if k == 2 else found, axis=1)
            parts.append(found / found.sum(axis=1, keepdims=True))
        P = np.mean(parts, axis=0)
    found = run(skl2onnx.to_onnx(model, X[:1], options=NO_MAP), {"X": X})
    assert np.max(np.abs(found["probabilities"] - P)) < 1e-6


def test_probabilities_as_dictionaries_and_an_older_opset(rng):
    X, y = noisy_rows(rng, 60, 4)
    model = make_pipeline(StandardScaler(), EDRVFLClassifier(n_hidden=24, n_layers=2, random_state=0)).fit(
        X, y
    )
    proto = skl2onnx.to_onnx(model, X[:1].astype(np.float32), target_opset=15)
    found = run(proto, {"X": X.astype(np.float32)})["output_probability"]
    assert found[3][1] == pytest.approx(model.predict_proba(X)[3, 1], abs=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [None, 2])
def test_a_pipeline_with_an_encoder_and_a_regressor(rng, k, dtype):
    X, y = noisy_values(rng, 80, 4, k)
    kernel = EDRVFLPortfolioRegressor(members=[("kernel", KernelRidgeRegressor())])
    for regressor in (EDRVFLRegressor(n_hidden=24, n_layers=2), kernel):
        model = make_pipeline(TabularEncoder("robust"), regressor.set_params(random_state=0)).fit(X, y)
        found = run(skl2onnx.to_onnx(model, X[:1].astype(dtype)), {"X": X.astype(dtype)})["variable"]
        expected = model.predict(X).reshape(len(X), -1)
        assert np.max(np.abs(found - expected) / expected.std(axis=0)) < TOLERANCE[dtype]


def test_columns_of_a_frame_reach_the_estimator_one_by_one(rng):
    X = pd.DataFrame({"x": rng.standard_normal(60).astype(np.float32), "t": rng.choice(["u", "v"], 60)})
    y = (X["x"] + (X["t"] == "u") > 0.5).astype(int)
    model = EDRVFLClassifier(n_hidden=24, n_layers=2, random_state=0).fit(X, y)
    types = skl2onnx.common.data_types
    initial = [("x", types.FloatTensorType([None, 1])), ("t", types.StringTensorType([None, 1]))]
    proto = skl2onnx.to_onnx(model, initial_types=initial, options=NO_MAP)
    found = run(proto, {"x": X[["x"]].to_numpy(), "t": X[["t"]].to_numpy(object)})
    assert np.max(np.abs(found["probabilities"] - model.predict_proba(X))) < 1e-5


def test_columns_after_a_column_transformer(rng):
    X = rng.standard_normal((60, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    columns = make_column_transformer((StandardScaler(), [0, 1]), ("passthrough", [2]))
    model = make_pipeline(columns, EDRVFLClassifier(n_hidden=24, n_layers=2, random_state=0)).fit(X, y)
    found = run(skl2onnx.to_onnx(model, X[:1], options=NO_MAP), {"X": X})
    assert np.max(np.abs(found["probabilities"] - model.predict_proba(X))) < 1e-5


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"edrvfl\[onnx\]"):
        register_onnx_converters()
