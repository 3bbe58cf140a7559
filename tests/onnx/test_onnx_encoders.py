"""Encoders in ONNX: frames with gaps, categories, text and values never seen become the same columns."""

import json
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from runtime import DTYPES, assert_agrees, feeds_of, run

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    TabularEncoder,
    to_onnx,
)
from edrvfl._doors.encoder import ENCODERS

TEXTS = ["a", "b", "ö", "nan", "1", "A"]


def make_frame(rng, m, new=False):
    """Numbers, booleans, whole numbers, text and categories, with gaps; new rows have values never seen."""
    towns = rng.choice(["a", "b", "dé", "once" if not new else "never"], m, p=[0.5, 0.3, 0.18, 0.02])
    frame = pd.DataFrame(
        {
            "town": towns,
            "age": rng.normal(40, 10, m).astype(np.float32),
            "income": np.exp(rng.normal(10, 1, m)).astype(np.float32),
            "member": rng.random(m) < 0.5,
            "grade": pd.Categorical(rng.choice([1.5, 2.0, 0.1 if not new else 7.0], m)),
            "label": rng.integers(0, 4, m),
        }
    )
    frame.loc[rng.random(m) < 0.1, "age"] = np.nan
    frame.loc[rng.random(m) < 0.1, "town"] = None
    frame.loc[rng.random(m) < 0.1, "grade"] = np.nan
    if new:  # gaps in a column that had none in the fit
        frame.loc[rng.random(m) < 0.2, "income"] = np.nan
    return frame


def encoded(encoder, X, dtype="float64"):
    proto = to_onnx(encoder, dtype=dtype)
    return run(proto, feeds_of(proto, X))["encoded"]


@pytest.mark.parametrize("numbers", ENCODERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_frames_with_gaps_and_new_values_agree(rng, numbers, dtype):
    X, new = make_frame(rng, 150), make_frame(rng, 80, new=True)
    y = np.where(X["age"].fillna(40) + 8 * (X["town"] == "a") + 3 * X["label"] > 48, "yes", "no")
    encoder = TabularEncoder(numbers, categorical_features=["label"])
    for given_encoder in (numbers, encoder):
        model = EDRVFLClassifier(n_hidden=24, n_layers=3, random_state=0, encoder=given_encoder).fit(X, y)
        proto = to_onnx(model, dtype=dtype)
        # a column has the name of an output
        assert [output.name for output in proto.graph.output] == ["label_", "probabilities"]
        plain = model.fit(X.rename(columns={"label": "count"}), y) if given_encoder == numbers else None
        if plain is not None:
            assert_agrees(plain, new.rename(columns={"label": "count"}), dtype)
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    encoder.fit(X)
    assert_allclose(encoded(encoder, new, dtype), encoder.transform(new), atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_voters_and_portfolios_read_frames(rng, dtype):
    X, new = make_frame(rng, 90), make_frame(rng, 40, new=True)
    X, new = (frame.rename(columns={"label": "count"}) for frame in (X, new))
    y = (X["age"].fillna(40) + 8 * (X["town"] == "a") > 44).astype(int)
    assert_agrees(KernelRidgeClassifier(random_state=0).fit(X, y), new, dtype)
    assert_agrees(EDRVFLRegressor(n_hidden=24, random_state=0).fit(X, y * 3.0 + X["count"]), new, dtype)
    networks = [("wide", EDRVFLClassifier(n_hidden=24, encoder="bins")), ("kernel", KernelRidgeClassifier())]
    portfolio = EDRVFLPortfolioClassifier(members=networks, random_state=0, weights="equal").fit(X, y)
    assert_agrees(portfolio, new, dtype)


@settings(max_examples=12, deadline=None)
@pytest.mark.parametrize("dtype", DTYPES)
@given(
    days=st.lists(
        st.none() | st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1)), min_size=3, max_size=12
    )
)
def test_every_date_agrees(dtype, days):
    """Before and after 1970, in leap years and others, at any time of day, with gaps."""
    when = pd.Series(days, dtype="datetime64[us]")
    frame = pd.DataFrame(
        {"n": np.arange(len(days)) % 2, "when": when, "wait": when - pd.Timestamp("2000-01-01")}
    )
    frame["at"] = [None if day is None else day.time() for day in days]
    if frame["at"].isna().all():
        frame = frame.drop(columns="at")
    encoder = TabularEncoder("robust").fit(frame)
    tolerance = {"float32": 1e-4, "float64": 1e-8}[dtype]
    assert_allclose(encoded(encoder, frame, dtype), encoder.transform(frame), rtol=0, atol=tolerance)


@pytest.mark.parametrize("hours", [3, 8])
def test_ranks_of_full_hours_agree(rng, hours):
    """ONNX computes their sines and cosines to other last digits, between which no rank may jump."""
    steps = rng.integers(0, 4000, 200) * hours
    frame = pd.DataFrame({"when": pd.Timestamp("2024-01-01") + pd.to_timedelta(steps, unit="h")})
    encoder = TabularEncoder("ranks").fit(frame)
    assert_allclose(encoded(encoder, frame), encoder.transform(frame), rtol=0, atol=1e-8)


def test_dates_of_a_zone_are_fed_by_its_clocks_and_text_is_refused(rng):
    zoned = pd.Series(pd.date_range("2023-03-01", periods=300, freq="7h", tz="Europe/Paris"))
    zoned[5] = pd.NaT
    frame = pd.DataFrame({"n": rng.standard_normal(300), "when": zoned, "city": rng.choice(["a", "b"], 300)})
    y = (zoned.dt.hour > 12).to_numpy()
    model = EDRVFLClassifier(n_layers=2, n_hidden=30, random_state=0).fit(frame, y)
    proto = to_onnx(model)
    assert json.loads({p.key: p.value for p in proto.metadata_props}["time_zones"]) == {
        "when": "Europe/Paris"
    }
    for dtype in DTYPES:
        assert_agrees(model, frame, dtype)
    array = zoned.dt.tz_localize(None).to_numpy()[:, None]
    assert [given.name for given in to_onnx(TabularEncoder().fit(array)).graph.input] == ["x0"]
    frame["say"] = [f"some text {i}" for i in range(300)]
    with pytest.raises(NotImplementedError, match=r"cannot hash short text, which is in 'say'\. Leave"):
        to_onnx(model.fit(frame, y))


def test_inputs_are_named_after_columns(rng):
    X = make_frame(rng, 60)
    proto = to_onnx(TabularEncoder().fit(X), dtype="float64")
    kinds = {given.name: given.type.tensor_type.elem_type for given in proto.graph.input}
    text, double = 8, 11
    assert list(kinds) == list(X.columns)
    assert {name for name, kind in kinds.items() if kind == text} == {"town"}
    assert {kind for name, kind in kinds.items() if name != "town"} == {double}


def test_a_frame_of_numbers_without_an_encoder_has_named_inputs(rng):
    X = pd.DataFrame(rng.standard_normal((60, 3)), columns=["b", "a", "c"])
    model = EDRVFLClassifier(n_hidden=24, n_layers=2, encoder=None, random_state=0).fit(X, X["a"] > 0)
    assert [given.name for given in to_onnx(model).graph.input] == ["b", "a", "c"]
    assert_agrees(model, X, "float64")


def test_rows_with_text_but_without_names_have_an_input_for_each_column():
    X = np.array([[1.0, "a"], [2.0, "b"], [3.0, "a"], [5.0, "b"]], dtype=object)
    encoder = TabularEncoder().fit(X)
    feeds = {"x0": np.array([[2.0], [np.nan]]), "x1": np.array([["b"], [""]], dtype=object)}
    found = run(to_onnx(encoder, dtype="float64"), feeds)["encoded"]
    assert_allclose(found, encoder.transform(np.array([[2.0, "b"], [None, None]], dtype=object)))


def test_the_empty_text_is_a_category_where_the_fit_saw_it():
    X = pd.DataFrame({"t": ["", "", "x", "x", None, None]})
    encoder = TabularEncoder().fit(X)
    assert_allclose(encoded(encoder, X), encoder.transform(X))
    assert encoded(encoder, X).shape[1] == 3


def test_columns_that_are_constant_or_missing_agree():
    X = pd.DataFrame({"c": [3.0] * 6, "m": [np.nan] * 6, "t": ["one"] * 6, "n": [None] * 6, "x": range(6)})
    new = X.assign(c=[3.0, 4.0, np.nan] * 2, m=[1.0, np.nan, 2.0] * 2, t=["one", "two", None] * 2)
    for numbers in ENCODERS:
        encoder = TabularEncoder(numbers).fit(X)
        assert_allclose(encoded(encoder, new), encoder.transform(new), atol=1e-12)


def test_categories_that_float32_cannot_tell_apart_ask_for_float64():
    X = np.array([[16777216.0], [16777217.0]] * 4)
    encoder = TabularEncoder(categorical_features=[0]).fit(X)
    with pytest.raises(ValueError, match="float64"):
        to_onnx(encoder)
    assert_allclose(encoded(encoder, X), encoder.transform(X))


numbers = st.one_of(st.floats(-1e6, 1e6, width=32), st.integers(-3, 3).map(float), st.just(np.nan))
texts = st.one_of(st.sampled_from(TEXTS), st.none())
table = st.lists(st.tuples(numbers, numbers, texts), min_size=3, max_size=30)


@settings(max_examples=60)
@given(table, table, st.sampled_from(ENCODERS), st.booleans())
def test_any_table_is_encoded_alike(seen, new, kind, declared):
    seen, new = (pd.DataFrame(rows, columns=["x", "z", "t"]) for rows in (seen, new))
    seen, new = (frame.astype({"t": object, "x": float, "z": float}) for frame in (seen, new))
    encoder = TabularEncoder(kind, categorical_features=["z"] if declared else "from_dtype").fit(seen)
    if encoder.encoding_.columns.categories[2] is None:  # all missing: a column of numbers
        new["t"] = new["t"].map(lambda text: np.nan).astype(float)
    assert_allclose(encoded(encoder, new), encoder.transform(new), atol=1e-9, rtol=1e-9)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(numbers, numbers), min_size=3, max_size=30), st.sampled_from(ENCODERS), st.booleans()
)
def test_any_array_is_encoded_alike(rows, kind, declared):
    X = np.array(rows)
    encoder = TabularEncoder(kind, categorical_features=[0] if declared else None).fit(X)
    found = encoded(encoder, X[::-1], "float32")
    assert_allclose(found, encoder.transform(X[::-1]), atol=1e-5, rtol=1e-5)
