"""Classifiers on frames as they come: against a pipeline of encoder and network, and against laws."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import TEXT
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from edrvfl import EDRVFLClassifier, TabularEncoder

ENCODERS = ["standard", "robust", "bins"]
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


def network(encoder="standard", **params):
    small = {"n_layers": 2, "n_hidden": 10, "regularization": 1.0, "random_state": 0}
    return EDRVFLClassifier(encoder=encoder, **{**small, **params})


def steady(encoder):
    """A network that rounding moves by no more than rounding: nobody is weighed or pruned after a tie."""
    return network(encoder, correct_weight=1.0, prune_rate=0.0)


def tuned(numbers):
    """An encoder whose every setting differs from the default, so that few rows use them all."""
    return TabularEncoder(numbers, n_bins=4, max_values=3, max_categories=3, min_frequency=2)


@st.composite
def mixed_frames(draw):
    """Draw a frame of numbers, few values, flags, text and categories, all with gaps, and labels."""
    m = draw(st.integers(8, 30))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    gaps = draw(st.sampled_from([0.0, 0.2, 0.9]))
    frame = pd.DataFrame(
        {
            "real": rng.standard_normal(m) * draw(st.sampled_from([1.0, 1e-6, 1e6])) + 5,
            "few": rng.integers(0, 4, m).astype(float),
            "flag": rng.random(m) < 0.3,
            "text": pd.Series(rng.choice(["red", "blue", "green", "7"], m), dtype=TEXT),
            "kind": pd.Categorical(rng.choice(["x", "y"], m), categories=["z", "y", "x"]),
            "same": np.full(m, draw(st.sampled_from([0.0, 0.1, np.nan]))),
        }
    )
    for name in ("real", "few", "text", "kind"):
        frame.loc[rng.random(m) < gaps, name] = None
    k = draw(st.integers(2, 3))
    y = np.append(np.arange(k), rng.integers(0, k, m - k))
    return frame, y, rng


def shifted(frame, rng):
    """New rows: some categories never seen, gaps where there were none, numbers far away."""
    new = frame.iloc[rng.integers(0, len(frame), 12)].reset_index(drop=True)
    new.loc[:3, "text"] = "never seen"
    new.loc[2:5, ["real", "few", "text", "kind"]] = None
    new.loc[6, "real"] = 1e30
    return new.assign(same=rng.standard_normal(12))


# --- laws ------------------------------------------------------------------------------------------------

# classes that are as frequent as each other, and columns that tell nothing
no_signal = pytest.mark.filterwarnings("ignore:The scores are so small:UserWarning")


@no_signal
@settings(max_examples=25)
@given(
    drawn=mixed_frames(),
    encoder=st.sampled_from([*ENCODERS, *map(tuned, ENCODERS)]),
    weighted=st.booleans(),
    layer_votes=st.sampled_from(["equal", "weighted"]),
)
def test_it_is_a_pipeline_of_encoder_and_network(drawn, encoder, weighted, layer_votes):
    """Networks that one fit judges: folds are dealt by the columns as they came, or as they were encoded."""
    frame, y, rng = drawn
    by_one_fit = {"input_scaling": None, "correct_weight": 1.0, "prune_rate": 0.0, "layer_votes": layer_votes}
    weights = rng.integers(1, 4, len(y)).astype(float) if weighted else None
    model = network(encoder, **by_one_fit).fit(frame, y, weights)
    first = TabularEncoder(encoder) if isinstance(encoder, str) else clone(encoder)
    pipeline = make_pipeline(first, network(None, **by_one_fit))
    given = {"tabularencoder__sample_weight": weights, "edrvflclassifier__sample_weight": weights}
    pipeline.fit(frame, y, **(given if weighted else {}))
    # rows that the encoder alone makes equal are copies to the pipeline's network, which sees nothing else
    assume(len(np.unique(pipeline[0].transform(frame), axis=0)) == len(frame.drop_duplicates()))
    for rows in (frame, shifted(frame, rng)):
        P = model.predict_proba(rows)
        assert np.isfinite(P).all()
        np.testing.assert_allclose(P, pipeline.predict_proba(rows), atol=1e-7)


@no_signal
@settings(max_examples=15)
@given(drawn=mixed_frames(), encoder=st.sampled_from(list(map(tuned, ENCODERS))))
def test_weights_count_rows(drawn, encoder):
    frame, y, rng = drawn
    counts = rng.integers(1, 4, len(y))
    weighted = steady(encoder).fit(frame, y, counts)
    repeated = steady(encoder).fit(frame.loc[np.repeat(frame.index, counts)], np.repeat(y, counts))
    new = shifted(frame, rng)
    np.testing.assert_allclose(weighted.predict_proba(new), repeated.predict_proba(new), atol=1e-5)


@no_signal
@settings(max_examples=15)
@given(drawn=mixed_frames(), encoder=st.sampled_from(list(map(tuned, ENCODERS))))
def test_neither_the_order_of_rows_nor_the_names_of_classes_matter(drawn, encoder):
    frame, y, rng = drawn
    expected = steady(encoder).fit(frame, y).predict_proba(frame)
    order = rng.permutation(len(y))
    shuffled = steady(encoder).fit(frame.iloc[order], y[order])
    np.testing.assert_allclose(shuffled.predict_proba(frame), expected, atol=1e-5)
    renamed = steady(encoder).fit(frame, np.array(["c", "b", "a"])[y])
    np.testing.assert_allclose(renamed.predict_proba(frame)[:, ::-1], expected, atol=1e-5)


def two_types(rng, m=60):
    """A frame that every library can hold."""
    frame = pd.DataFrame(
        {
            "real": rng.standard_normal(m),
            "whole": rng.integers(0, 9, m),
            "text": rng.choice(["red", "blue", "green"], m).astype(object),
        }
    )
    frame.loc[rng.random(m) < 0.2, "real"] = None
    frame.loc[rng.random(m) < 0.2, "text"] = None
    return frame, (rng.random(m) < 0.4).astype(int) + (frame["text"] == "red")


@every_encoder
def test_frames_of_every_library_make_the_same_model(rng, encoder):
    frame, y = two_types(rng)
    expected = network(encoder).fit(frame, y).predict_proba(frame)
    others = [pl.DataFrame(frame), pa.table(frame), frame.astype({"text": "category"})]
    for other in others:
        model = network(encoder).fit(other, y)
        assert model.feature_names_in_.tolist() == ["real", "whole", "text"]
        np.testing.assert_allclose(model.predict_proba(other), expected, atol=1e-10)
        np.testing.assert_allclose(model.predict_proba(frame), expected, atol=1e-10)


def test_the_encoder_of_the_user_is_not_fitted(rng):
    frame, y = two_types(rng)
    encoder = tuned("bins")
    model = network(encoder).fit(frame, y)
    assert model.encoder is encoder
    assert not hasattr(encoder, "encoding_")
    before = model.predict_proba(frame)
    encoder.set_params(numbers="standard", categorical_features=["whole"])
    np.testing.assert_array_equal(model.predict_proba(frame), before)
    assert np.abs(model.fit(frame, y).predict_proba(frame) - before).max() > 1e-3


# --- odd input -------------------------------------------------------------------------------------------


def odd_frames():
    m = 24
    text, numbers = list("ab") * (m // 2), np.linspace(0, 1, m)
    yield "a constant", pd.DataFrame({"a": [3.0] * m})
    yield "constant text", pd.DataFrame({"a": ["x"] * m})
    yield "nothing but gaps", pd.DataFrame({"a": [np.nan] * m, "b": pd.Series([None] * m, dtype="category")})
    yield (
        "one value, else gaps",
        pd.DataFrame({"a": [1.0] + [np.nan] * (m - 1), "b": ["x"] + [None] * (m - 1)}),
    )
    yield "huge and tiny", pd.DataFrame({"a": 1e308 * (2 * numbers - 1), "b": 1e-310 * numbers})
    yield "text beside numbers", pd.DataFrame({"a": [1, "one", 2.5, None] * (m // 4), "b": text})
    yield "text alone", pd.DataFrame({"a": text})
    yield "flags", pd.DataFrame({"a": [True, False, None] * (m // 3), "b": [True] * m})
    yield "every value once", pd.DataFrame({"id": [f"id {i}" for i in range(m)]})
    yield "big integers", pd.DataFrame({"a": [2**62 + i for i in range(m)], "b": text})


@pytest.mark.parametrize("frame", [f for _, f in odd_frames()], ids=[name for name, _ in odd_frames()])
@every_encoder
def test_odd_frames_give_finite_answers(frame, encoder):
    y = np.arange(len(frame)) % 2
    model = network(encoder).fit(frame, y)
    gaps = frame.iloc[:3].assign(**dict.fromkeys(frame.columns))
    for rows in (frame, frame.iloc[:1], gaps, frame.to_numpy(dtype=object)):
        if isinstance(rows, np.ndarray):
            rows = pd.DataFrame(rows, columns=frame.columns)
        P = model.predict_proba(rows)
        assert P.shape == (len(rows), 2)
        assert np.isfinite(P).all()
    assert np.isfinite(network(encoder).fit(frame.iloc[:2], [0, 1]).predict_proba(frame)).all()


@every_encoder
def test_ten_thousand_categories(rng, encoder):
    values = [f"value {i}" for i in rng.integers(0, 10_000, 12_000)]
    frame = pl.DataFrame({"many": values, "x": rng.standard_normal(12_000)})
    y = (frame["x"].to_numpy() > 0).astype(int)
    model = network(encoder).fit(frame, y)
    assert model.network_.inputs.width < 100
    assert model.score(frame, y) > 0.9
    assert np.isfinite(model.predict_proba(pl.DataFrame({"many": ["new", None], "x": [0.0, None]}))).all()


@every_encoder
def test_what_is_refused_names_the_column(rng, encoder):
    frame, y = two_types(rng)
    model = network(encoder).fit(frame, y)
    for column, value, error, message in [
        ("real", np.inf, ValueError, "Column 'real': X contains infinity"),
        ("whole", "many", ValueError, r"Column 'whole' holds text \('many'\), but numbers are expected"),
        ("real", pd.Timestamp("2026-01-01"), TypeError, "'real' holds dates or times where numbers"),
        ("text", [["a"]], TypeError, r"text"),
    ]:
        bad = frame.copy()
        bad[column] = value if not isinstance(value, list) else pd.Series([*value] * len(bad))
        if isinstance(value, list):
            bad = pl.DataFrame(bad)
        with pytest.raises(error, match=message):
            model.predict(bad)
        if column == "text" or value is np.inf:  # in a fit the others are text, and a date
            with pytest.raises(error, match=message):
                clone(model).fit(bad, y)
    with pytest.raises(ValueError, match=r"Column 1: X contains infinity"):
        network(encoder).fit([[1.0, np.inf], [2.0, 3.0]], [0, 1])
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        network(encoder).fit(frame[[]], y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        network(encoder).fit(frame[:0], y[:0])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.predict(frame[:0])


@every_encoder
@pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)
def test_columns_that_are_missing_additional_or_in_another_order(rng, encoder, library):
    frame, y = two_types(rng)
    model = network(encoder).fit(library(frame), y)
    for new, message in [
        (frame.drop(columns="whole"), "yet now missing:\n- whole"),
        (frame.assign(more=1), "unseen at fit time:\n- more"),
        (frame[["text", "real", "whole"]], "must be in the same order"),
        (frame.rename(columns={"real": "true"}), "unseen at fit time:\n- true"),
    ]:
        for method in (model.predict, model.predict_proba, model.decision_function):
            with pytest.raises(ValueError, match=message):
                method(library(new))
        with pytest.raises(ValueError, match=message):
            next(model.staged_predict(library(new)))


def test_a_column_of_categories_may_be_declared(rng):
    frame, y = two_types(rng)
    declared = network(TabularEncoder(categorical_features=["whole"], min_frequency=1)).fit(frame, y)
    as_text = frame.assign(whole=frame["whole"].map(lambda value: f"w{value}"))
    expected = network(TabularEncoder(min_frequency=1)).fit(as_text, y).predict_proba(as_text)
    np.testing.assert_allclose(declared.predict_proba(frame), expected, atol=1e-10)
    for places in ([1], [False, True, False]):
        same = network(TabularEncoder(categorical_features=places, min_frequency=1)).fit(frame, y)
        np.testing.assert_array_equal(same.predict_proba(frame), declared.predict_proba(frame))
    with pytest.raises(ValueError, match="categorical_features names columns that X does not have: 'size'"):
        network(TabularEncoder(categorical_features=["size"])).fit(frame, y)
    with pytest.raises(ValueError, match="Column 'text' holds text"):
        network(TabularEncoder(categorical_features=None)).fit(frame, y)


def test_a_wrong_setting_of_the_encoder_is_named(rng):
    frame, y = two_types(rng)
    with pytest.raises(ValueError, match="The 'n_bins' parameter of TabularEncoder"):
        network(TabularEncoder("bins", n_bins=1)).fit(frame, y)
    with pytest.raises(ValueError, match="The 'numbers' parameter of TabularEncoder"):
        network(TabularEncoder("tree")).fit(frame, y)
