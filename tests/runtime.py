"""Run ONNX models in onnxruntime, and compare them with the estimators that they were made of."""

import json

import numpy as np
import onnxruntime
import pandas as pd

from edrvfl import to_onnx

TOLERANCE = {"float32": 1e-5, "float64": 1e-9}
DTYPES = list(TOLERANCE)
TEXT, SINGLE, TICKS = 8, 1, 7  # ONNX's numbers for strings, float32 and int64


def ticks(column):
    """Return dates by their own clocks, times of day and durations in microseconds, as the page says."""
    if column.dtype == object:  # times of day
        texts = [None if value is None else str(value) for value in column]
        return ticks(pd.to_timedelta(pd.Series(texts)))
    wall = column.dt.tz_localize(None) if getattr(column.dtype, "tz", None) is not None else column
    return wall.astype(f"{wall.dtype.kind}8[us]").astype("int64").to_numpy()


def session(proto):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run(proto, feeds):
    """Return the outputs by name."""
    names = [output.name for output in proto.graph.output]
    return dict(zip(names, session(proto).run(names, feeds), strict=True))


def feeds_of(proto, X):
    """Return what the model wants to be fed: an array as X, a pandas frame column by column."""
    if not hasattr(X, "columns"):
        single = proto.graph.input[0].type.tensor_type.elem_type == SINGLE
        return {"X": np.asarray(X, dtype=np.float32 if single else np.float64)}
    missing = json.loads({p.key: p.value for p in proto.metadata_props}.get("missing_text", "{}"))
    feeds = {}
    for given in proto.graph.input:
        column, kind = X[given.name], given.type.tensor_type.elem_type
        if kind == TICKS:
            values = ticks(column)
        elif kind == TEXT:
            values = column.astype(object).where(column.notna(), missing[given.name]).to_numpy(object)
        else:
            values = column.astype(float).to_numpy(np.float32 if kind == SINGLE else np.float64)
        feeds[given.name] = values[:, None]
    return feeds


def disagreement(model, X, dtype, n_layers=None):
    """Return the largest difference between an estimator and its ONNX model; values in units of their sd.

    Labels must be equal wherever the two largest probabilities differ by more than the tolerance.
    """
    proto = to_onnx(model, dtype=dtype, n_layers=n_layers)
    found = run(proto, feeds_of(proto, X))
    depth = -1 if n_layers is None else n_layers - 1
    if "value" in found:
        values = model.predict(X) if n_layers is None else list(model.staged_predict(X))[depth]
        assert found["value"].shape == values.shape
        return np.max(np.abs(found["value"] - values) / values.std(axis=0))
    P = model.predict_proba(X) if n_layers is None else list(model.staged_predict_proba(X))[depth]
    first, second = np.sort(P, axis=1)[:, :-3:-1].T
    clear = first - second > TOLERANCE[dtype]
    assert clear.any()
    labels = np.asarray(model.classes_)[P.argmax(axis=1)]
    assert (found["label"][clear] == labels[clear]).all()
    assert found["probabilities"].dtype == dtype
    return np.max(np.abs(found["probabilities"] - P))


def assert_agrees(model, X, dtype, n_layers=None):
    assert disagreement(model, X, dtype, n_layers) < TOLERANCE[dtype]
