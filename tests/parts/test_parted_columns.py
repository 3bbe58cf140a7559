"""What is known about the columns of parts is what is known about all rows at once."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edrvfl import EDRVFLRegressor, TabularEncoder
from edrvfl._inputs.table import learn_table, open_table
from edrvfl._parts.rows import parted_rows
from edrvfl._parts.source import RowBlocks
from edrvfl._parts.survey import take_survey
from edrvfl._parts.watched import WatchedParts


class Blocks(RowBlocks):
    """Blocks that count how often they are read."""

    def __init__(self, parts):
        self.passes = 0

        def read():
            self.passes += 1
            yield from ((part, np.arange(len(part))) for part in parts)

        super().__init__(read)


def assert_alike(parts, whole, categorical="from_dtype", passes=1, text="from_dtype"):
    """The survey of parts knows the columns of the whole, and parts are read as the whole is."""
    expected_X, expected = learn_table(open_table(whole), categorical, text)
    source = Blocks(parts)
    watched = WatchedParts(source)
    encoder = TabularEncoder(categorical_features=categorical, text_features=text)
    survey = take_survey(watched, EDRVFLRegressor(), encoder)
    assert source.passes == passes
    columns = survey.columns
    assert columns.names == expected.names
    assert columns.categorical == expected.categorical
    assert columns.kinds == expected.kinds
    for found, known in zip(columns.categories, expected.categories, strict=True):
        if known is None:
            assert found is None
        else:
            np.testing.assert_array_equal(found, known, strict=True)
    like = np.empty(0, dtype="float32" if survey.single else "float64")
    assert like.dtype == expected_X.dtype
    reader = parted_rows(watched, survey, None, like).reader
    read = [reader._matrix(part) for part in parts if len(part)]
    np.testing.assert_array_equal(np.concatenate(read), expected_X, strict=True)


def cut(frame, *places):
    """Cut a frame or an array into parts."""
    edges = [0, *sorted(places), len(frame)]
    take = frame.iloc.__getitem__ if hasattr(frame, "iloc") else frame.__getitem__
    return [take(slice(a, b)) for a, b in itertools.pairwise(edges)]


OBJECTS = st.sampled_from(
    [None, None, 1, 2.5, 0.1, True, "a", "b", "1", "2.5", np.float32(0.1), float("nan")]
)


@settings(max_examples=100)
@given(
    column=st.lists(OBJECTS, min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=3),
    single=st.booleans(),
    declared=st.booleans(),
)
def test_objects_of_any_kind(column, cuts, single, declared):
    numbers = np.linspace(0.1, 1, len(column), dtype="float32" if single else "float64")
    frame = pd.DataFrame({"number": numbers, "any": pd.Series(column, dtype=object)})
    parts = cut(frame, *(min(c, len(column)) for c in cuts))
    texts = any(isinstance(value, str) for value in column)
    kinds = [[v for v in part["any"] if not pd.isna(v)] for part in parts]
    plain = any(kind and not any(isinstance(v, str) for v in kind) for kind in kinds)
    again = texts and plain and not declared
    assert_alike(parts, frame, ["any"] if declared else "from_dtype", passes=1 + again)


@pytest.mark.parametrize("dtype", [object, "str", "category", "string"])
def test_text_with_missing_parts(dtype):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, 5], "b": pd.Series([None, None, "y", "x", None], dtype=dtype)})
    assert_alike(cut(frame, 2, 4), frame)
    assert_alike(cut(frame, 2, 2, 3, 4), frame)


def test_categories_of_numbers_and_booleans():
    frame = pd.DataFrame(
        {"a": pd.Categorical([3, 1, 2, 1]), "b": [True, False, True, True], "c": [1, 2, 3, 4]}
    )
    assert_alike(cut(frame, 1, 3), frame)
    assert_alike(cut(frame, 2), frame, ["b", "c"])


def test_numbers_in_one_part_and_text_in_another():
    parts = [
        pd.DataFrame({"a": [1, 2], "b": [0.5, 0.1]}),
        pd.DataFrame({"a": ["2", "x"], "b": [None, None]}, dtype=object),
        pd.DataFrame({"a": [True, None], "b": [7, 8]}),
    ]
    assert_alike(parts, pd.concat(parts), passes=2)
    arrays = [np.array([[1.0, 2.5], [3, 4]]), np.array([["z", 1], [None, 2]], dtype=object)]
    assert_alike(arrays, np.concatenate(arrays), passes=2)


def test_declared_numbers_and_text_in_another_part():
    parts = [pd.DataFrame({"a": [1, 20]}), pd.DataFrame({"a": ["x", "3"]}), pd.DataFrame({"a": [0.5, None]})]
    assert_alike(parts, pd.concat(parts), ["a"])


def test_the_precision_of_all_parts_rounds_categories():
    """0.1 is rounded to float32 in one part, but not where another part holds float64."""
    tenths = pd.Categorical([0.1, 0.2])
    parts = [pd.DataFrame({"a": np.array([1, 2], dtype), "b": tenths}) for dtype in ("float32", "float64")]
    whole = pd.concat(parts).astype({"b": "category"})
    assert_alike(parts, whole)
    assert_alike(parts[:1] * 2, pd.concat(parts[:1] * 2))
    arrays = [np.array([[0.1, 1]], "float32"), np.array([[0.1, 2]], "float64")]
    assert_alike(arrays, np.concatenate(arrays), [0])


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["a", "b", "c"])])
def test_polars(dtype):
    frame = pl.DataFrame({"n": [1.0, None, 3], "s": pl.Series(["b", None, "c"], dtype=dtype)})
    assert_alike(cut(frame, 1, 2), frame)


def test_fifty_thousand_texts_in_many_parts(rng):
    texts = np.array([f"category {i}" for i in range(50_000)], dtype=object)
    column = np.concatenate([texts, rng.choice(texts, 50_000)])[rng.permutation(100_000)]
    frame = pd.DataFrame({"a": column})
    assert_alike(cut(frame, *range(10_000, 100_000, 10_000)), frame)


def visits(m=260):
    """Dates with and without a zone, times of day, durations, short text and text that repeats, with gaps."""
    when = pd.Series(pd.date_range("2023-03-05 07:00", periods=m, freq="5h"))
    frame = pd.DataFrame({"n": np.arange(m) % 5 / 2.0, "when": when[::-1].to_numpy(), "wait": when - when[9]})
    frame["zoned"] = when.dt.tz_localize("UTC").dt.tz_convert("Europe/Paris")
    frame["at"] = when.dt.time
    frame["say"] = [f"{'quiet' if i % 3 else 'loud'} guest no {i}" for i in range(m)]
    frame["kind"] = [f"a {i % 7}" for i in range(m)]
    frame.loc[::8, ["when", "at", "say"]] = None
    return frame


def test_dates_and_text_are_those_of_all_rows():
    """No part has 100 different texts, and the first date is in the last one; one part has gaps alone."""
    frame = visits()
    parts = cut(frame, 1, 90, 170)
    assert parts[0]["say"].isna().all()
    for make in (pd.DataFrame, pl.from_pandas):
        assert_alike([make(part) for part in parts], make(frame))
    assert_alike(parts, frame, text=None)
    assert_alike(parts, frame, text=["kind"])
    assert_alike(parts, frame, categorical=["say"])


def test_parts_that_hold_other_things_than_dates_are_named():
    parts = [visits(30)[["n", "when"]], pd.DataFrame({"n": [1.0], "when": [2.0]})]
    with pytest.raises(TypeError, match="Column 'when' holds dates in one block and other values in another"):
        take_survey(WatchedParts(Blocks(parts)), EDRVFLRegressor(), TabularEncoder())


def test_a_network_of_parts_is_that_of_memory():
    frame, y = visits(), np.sin(np.arange(260))
    blocks = RowBlocks(lambda: iter([(frame[:100], y[:100]), (frame[100:], y[100:])]))
    models = [EDRVFLRegressor(n_hidden=30, n_layers=2, random_state=0) for _ in range(2)]
    models[0].fit(frame, y)
    models[1].fit(blocks)
    np.testing.assert_allclose(models[1].predict(frame), models[0].predict(frame), rtol=1e-6, atol=1e-8)


def test_text_is_refused_where_only_numbers_are_taken():
    parts = [pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": ["x"]})]
    encoder = TabularEncoder(categorical_features=None)
    with pytest.raises(ValueError, match="Column 'a' holds text"):
        take_survey(WatchedParts(Blocks(parts)), EDRVFLRegressor(), encoder)


def test_a_part_of_numbers_beside_parts_of_text_is_text_too():
    texts = pd.DataFrame({"a": [f"remark number {i}" for i in range(200)]})
    numbers = pd.DataFrame({"a": np.arange(40)})
    whole = pd.concat([texts.astype(object), numbers.astype(object)])
    assert learn_table(open_table(whole))[1].words(0) == "text"
    assert_alike([texts, numbers], whole, passes=2)
    assert_alike([numbers, texts], pd.concat([numbers.astype(object), texts.astype(object)]), passes=2)


def test_dates_that_are_written_as_text_are_found_though_no_part_has_many():
    X = pd.DataFrame({"a": pd.date_range("2024-01-01", periods=80).strftime("%d/%m/%Y")})
    with pytest.raises(ValueError, match="Column 'a' holds dates that are written as text"):
        take_survey(WatchedParts(Blocks(cut(X, 20, 40, 60))), EDRVFLRegressor(), TabularEncoder())
    assert_alike(cut(X, 20, 40, 60), X, categorical=["a"])
