"""Frames and arrays become one matrix: numbers stay, categories become codes, bad columns are named."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from helpers import TEXT, to_host
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OrdinalEncoder

from edrvfl._inputs.reading import read_new_table, read_training_numbers, read_training_table
from edrvfl._inputs.table import learn_table, open_table, read_table

try:
    import torch
except ImportError:  # .ci/core does without
    torch = None

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


def learn(X, categorical_features="from_dtype"):
    return learn_table(open_table(X), categorical_features)


def read(X, columns):
    return read_table(open_table(X), columns)


def decode(codes, categories):
    """The values behind the codes; None for missing, "?" for a value never seen."""
    return [None if np.isnan(c) else "?" if c < 0 else categories[int(c)] for c in codes]


texts = st.lists(st.none() | st.text(max_size=3), min_size=1, max_size=20)
# whole numbers that floats hold exactly, or any float; -0.0 and 0.0 are one value
numbers = st.lists(
    st.none() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
    min_size=1,
    max_size=20,
)


# ---- laws


@given(values=texts)
def test_text_comes_back_from_its_codes(values):
    X, columns = learn([[value] for value in values])
    if all(value is None for value in values):
        assert columns.categorical == (False,)
        assert np.isnan(X).all()
        return
    (categories,) = columns.categories
    assert list(categories) == sorted(set(values) - {None})
    assert decode(X[:, 0], categories) == values


@given(values=numbers)
def test_numbers_that_are_categories_come_back_from_their_codes(values):
    X, columns = learn(np.array([values], dtype=object).T, [0])
    (categories,) = columns.categories
    assert categories.dtype == np.float64
    assert categories.tolist() == sorted({float(value) for value in values if value is not None})
    assert decode(X[:, 0], categories) == values


@given(
    st.integers(1, 12).flatmap(
        lambda m: st.tuples(
            *(
                st.lists(st.none() | kind, min_size=m, max_size=m)
                for kind in (
                    st.floats(allow_nan=False, allow_infinity=False),
                    st.integers(-(2**40), 2**40),
                    st.booleans(),
                    st.sampled_from(["a", "b", "é", ""]),
                    st.sampled_from(["x", "y"]),
                )
            )
        )
    )
)
def test_the_same_content_is_the_same_matrix_in_every_library(rows):
    real, whole, flag, text, kind = rows
    pandas = pd.DataFrame(
        {
            "real": pd.array(real, dtype="Float64"),
            "whole": pd.array(whole, dtype="Int64"),
            "flag": pd.array(flag, dtype="boolean"),
            "text": pd.array(text, dtype=TEXT),
            "kind": pd.Categorical(kind, categories=["y", "unused", "x"]),
        }
    )
    polars = pl.DataFrame(
        {"real": real, "whole": whole, "flag": flag, "text": text, "kind": kind},
        schema={"real": pl.Float64, "whole": pl.Int64, "flag": pl.Boolean, "text": pl.String}
        | {"kind": pl.Enum(["y", "unused", "x"])},
    )
    arrow = pa.table(
        {
            "real": pa.array(real, pa.float64()),
            "whole": pa.array(whole, pa.int64()),
            "flag": pa.array(flag, pa.bool_()),
            "text": pa.array(text, pa.large_string()),
            "kind": pa.array(kind, pa.string()).dictionary_encode(),
        }
    )
    backed = pandas.convert_dtypes(dtype_backend="pyarrow").astype(
        {"real": "double[pyarrow]", "whole": "int64[pyarrow]", "flag": "bool[pyarrow]"}
    )
    X, columns = learn(pandas)
    assert columns.categorical == (False, False, False, True, True)
    # pandas 2 fails to list the values of such a column if there are none
    known = TEXT == "str" or any(value is not None for value in kind)
    for other in (
        polars,
        arrow,
        polars.to_arrow(),
        pandas.astype({"kind": TEXT}),
        *([backed] if known else []),
    ):
        Z, found = learn(other)
        np.testing.assert_array_equal(Z, X)
        assert found.names == columns.names == ("real", "whole", "flag", "text", "kind")
        assert [c.tolist() for c in found.categories[3:]] == [c.tolist() for c in columns.categories[3:]]
        np.testing.assert_array_equal(read(other, columns), X)
    # the rows as plain lists, where an all-missing column of text has no type
    if any(value is not None for value in text) and any(value is not None for value in kind):
        Z, _ = learn(list(map(list, zip(*rows, strict=True))))
        np.testing.assert_array_equal(Z, X)


mixed = st.lists(
    st.sampled_from(["a", "1", 1, 1.0, True, 1.5, None, float("nan"), pd.NA, pd.NaT, b"a", Decimal("1.5")]),
    min_size=2,
    max_size=12,
)


@given(values=mixed, seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(values, seed):
    order = np.random.default_rng(seed).permutation(len(values))
    rows = np.empty((len(values), 1), dtype=object)
    rows[:, 0] = values
    X, columns = learn(rows)
    Z, found = learn(rows[order])
    np.testing.assert_array_equal(Z, X[order])
    assert columns.categorical == found.categorical
    if columns.categorical[0]:
        assert columns.categories[0].tolist() == found.categories[0].tolist()
    np.testing.assert_array_equal(read(rows[:1], columns), X[:1])


@given(fitted=texts, new=texts)
def test_new_values_get_minus_one_and_the_others_their_codes(fitted, new):
    fitted = ["always", *fitted]  # so that this is text
    _, columns = learn(pl.DataFrame({"a": fitted}))
    expected = [value if value is None or value in fitted else "?" for value in new]
    for frame in (pl.DataFrame({"a": pl.Series(new, dtype=pl.String)}), pd.DataFrame({"a": new})):
        assert decode(read(frame, columns)[:, 0], columns.categories[0]) == expected


# ---- kinds of columns


def test_codes_are_those_of_scikit_learns_ordinal_encoder(rng):
    X = pd.DataFrame({"a": rng.choice(list("qwerty"), 300), "b": rng.integers(0, 9, 300) * 1.5})
    coded, columns = learn(X, ["b"])
    encoder = OrdinalEncoder().fit(X)
    np.testing.assert_array_equal(coded, encoder.transform(X))
    for ours, theirs in zip(columns.categories, encoder.categories_, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([1, 2, None], dtype="Int64"),
        pd.array([1, 2, None], dtype="Float32"),
        pd.array([1, 2, None], dtype="uint8[pyarrow]"),
        pd.array([Decimal(1), Decimal(2), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        pd.Series([1, np.float32(2), None], dtype=object),
        pd.Series([True, Decimal("2.00"), pd.NA], dtype=object),
        pd.Series([1, 2, np.nan], dtype=np.longdouble),
        pl.Series([1, 2, None], dtype=pl.Int128),
        pl.Series([Decimal(1), Decimal(2), None]),
        pa.array([1, 2, None], pa.uint64()),
        pa.array(np.array([1, 2, np.nan], np.float16)),
    ],
    ids=lambda column: str(getattr(column, "dtype", None) or column.type),
)
@pytest.mark.parametrize("beside", [{}, {"b": ["x", "y", "x"]}], ids=["alone", "beside text"])
def test_every_type_of_number_is_a_number(column, beside):
    make = {"polars": pl.DataFrame, "pyarrow": pa.table}.get(type(column).__module__.split(".")[0])
    make = make or (pa.table if isinstance(column, pa.Array) else pd.DataFrame)
    X, columns = learn(make({"a": column, **beside}))
    assert columns.categories[0] is None
    np.testing.assert_array_equal(X[:, 0], [1, 2, np.nan])


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([None, None]),
        pl.Series([None, None], dtype=pl.Boolean),
        pd.Series([None, None], dtype=object),
        pd.Series([np.nan, np.nan]),
    ],
    ids=lambda column: f"{type(column).__module__} {column.dtype}",
)
def test_a_column_without_any_value_is_numbers(column):
    X, columns = learn((pl if isinstance(column, pl.Series) else pd).DataFrame({"a": column}))
    assert np.isnan(X).all()
    assert columns.categorical == (False,)


def test_objects_after_much_text_are_seen():
    values = [*["a"] * 500, b"x", 1, True, None]
    X, columns = learn(pd.DataFrame({"a": pd.Series(values, dtype=object)}))
    assert columns.categories[0].tolist() == ["1", "a", "x"]
    assert decode(X[:, 0], columns.categories[0])[-4:] == ["x", "1", "1", None]
    values[-1] = datetime.date(2026, 1, 1)
    with pytest.raises(TypeError, match="Column 'a' holds dates"):
        learn(pd.DataFrame({"a": pd.Series(values, dtype=object)}))


@pytest.mark.parametrize("kind", ["category", TEXT])
def test_a_column_of_categories_without_any_value_knows_none(kind):
    frame = pd.DataFrame({"a": pd.Series([None, None], dtype=kind)})
    X, columns = learn(frame)
    assert np.isnan(X).all()
    assert columns.categorical == (True,)
    assert columns.categories[0].shape == (0,)
    assert read([["new"], [None], [3]], columns)[[0, 2], 0].tolist() == [-1, -1]


def test_only_categories_that_occur_are_known():
    for frame in (
        pd.DataFrame({"a": pd.Categorical(["b"], categories=["c", "b", "a"])}),
        pl.DataFrame({"a": pl.Series(["b"], dtype=pl.Enum(["c", "b", "a"]))}),
        pa.table({"a": pa.DictionaryArray.from_arrays([1], ["c", "b", "a"])}),
    ):
        assert learn(frame)[1].categories[0].tolist() == ["b"]


def test_categories_that_are_numbers_stay_numbers():
    X, columns = learn(pd.DataFrame({"a": pd.Categorical([10, 9, None, 10])}))
    assert columns.categories[0].tolist() == [9, 10]
    np.testing.assert_array_equal(X[:, 0], [1, 0, np.nan, 1])


def test_intervals_and_other_objects_are_text_if_they_are_categories():
    X, columns = learn(pd.DataFrame({"a": pd.cut([1, 5, 9], [0, 4, 8, 12])}))
    assert columns.categories[0].tolist() == ["(0, 4]", "(4, 8]", "(8, 12]"]
    assert X[:, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", ["U", "S", object, np.dtypes.StringDType()], ids=str)
def test_arrays_of_text_hold_categories(kind):
    X, columns = learn(np.array([["10", "b"], ["9", "a"]], dtype=kind))
    assert columns.categorical == (True, True)
    assert [c.tolist() for c in columns.categories] == [["10", "9"], ["a", "b"]]
    assert X.tolist() == [[0, 1], [1, 0]]


def test_numbers_beside_text_in_lists_stay_numbers():
    X, columns = learn([[10, "b"], [9.5, "a"]])
    assert columns.categorical == (False, True)
    assert X.tolist() == [[10, 1], [9.5, 0]]
    assert columns.names == ("x0", "x1")


def test_float32_stays_if_all_numbers_are_float32():
    frame = pd.DataFrame({"a": np.float32([1, 2]), "b": ["x", "y"], "c": [True, False]})
    for X in (frame, frame[["a"]], pl.DataFrame(frame), pa.table(frame), frame[["a"]].to_numpy()):
        assert learn(X)[0].dtype == np.float32
    for X in (frame.assign(d=1), frame[["b"]], pl.DataFrame(frame.assign(d=0.5)), [[1, 2]]):
        assert learn(X)[0].dtype == np.float64


def test_an_array_of_numbers_is_not_copied(xp):
    X = xp.asarray(np.arange(6.0).reshape(3, 2))
    with sklearn.config_context(array_api_dispatch=True):
        same, _ = learn(X)
        coded, columns = learn(X, [1])
    same[0, 0] = 9.0
    assert X[0, 0] == 9
    assert columns.categorical == (False, True)
    assert to_host(X).tolist() == [[9, 1], [2, 3], [4, 5]]
    assert to_host(coded).tolist() == [[0, 0], [2, 1], [4, 2]]
    assert isinstance(coded, type(X))


@given(fitted=st.lists(st.sampled_from([1.5, 2, 3, np.nan]), min_size=1), seed=st.integers(0, 9))
def test_arrays_of_every_library_get_the_codes_of_a_frame(fitted, seed):
    new = np.random.default_rng(seed).choice([0, 1.5, 2, 2.5, 3, 4, np.nan], (7, 1))
    coded, columns = learn(pl.DataFrame({"a": pl.Series(fitted, dtype=pl.Float64)}), ["a"])
    with sklearn.config_context(array_api_dispatch=True):
        values = np.array(fitted, dtype=float)[:, None]
        for X in (values, torch.asarray(values)) if torch else (values,):
            Z, found = learn(X, [True])
            np.testing.assert_array_equal(to_host(Z), coded)
            np.testing.assert_array_equal(found.categories[0], columns.categories[0])
        expected = read(pd.DataFrame({"a": new[:, 0]}), columns)
        np.testing.assert_array_equal(to_host(read(torch.asarray(new) if torch else new, columns)), expected)
    categories = columns.categories[0]
    values = [None if np.isnan(v) else v if v in categories else "?" for v in new[:, 0]]
    assert decode(expected[:, 0], categories) == values


# ---- new rows in another form


def test_whole_numbers_that_come_back_with_a_gap_still_match():
    _, columns = learn(pd.DataFrame({"a": [1, 2, 3]}), ["a"])
    np.testing.assert_array_equal(read(pd.DataFrame({"a": [2, None, 7]}), columns)[:, 0], [1, np.nan, -1])


@pytest.mark.parametrize(
    ("fitted", "new", "codes"),
    [
        (["1", "2", "a"], [1.0, 2.0, np.nan, 3.0], [0, 1, np.nan, -1]),  # text, then numbers
        ([1, 2, "a"], [2, 1, 1, 1], [1, 0, 0, 0]),
        ([10, 9, 8], ["8", "9", "10", "x"], [0, 1, 2, -1]),  # numbers, then text
        ([0.5, True, None], [1, 0.5, "0.5", None], [1, 0, 0, np.nan]),
    ],
)
def test_numbers_and_text_match_by_what_is_written(fitted, new, codes):
    _, columns = learn([[value] for value in fitted], [0])
    rows = np.empty((4, 1), dtype=object)
    rows[:, 0] = new
    np.testing.assert_array_equal(read(rows, columns)[:, 0], codes)
    if all(isinstance(value, float) for value in new):
        for X in (np.array(new)[:, None], pd.DataFrame({"a": new})):
            np.testing.assert_array_equal(read(X, columns)[:, 0], codes)


def test_a_number_column_that_becomes_text_is_named():
    _, columns = learn(pd.DataFrame({"age": [1, 2], "b": ["x", "y"]}))
    for kind in ("str", object, "category"):
        bad = pd.DataFrame({"age": pd.Series([1, "many"], dtype=kind), "b": ["x", "y"]})
        with pytest.raises(ValueError, match=r"Column 'age' holds text \('(1|many)'\), but numbers are exp"):
            read(bad, columns)
    with pytest.raises(ValueError, match="Column 0 holds text"):
        read([["1", "x"]], columns)
    general = pd.DataFrame({"age": pd.Series([2, None], dtype="category"), "b": ["x", "z"]})
    np.testing.assert_array_equal(read(general, columns), [[2, 0], [np.nan, -1]])


# ---- which columns are categories


@pytest.mark.parametrize(
    "choice", [["n"], [1], np.array([False, True, False]), (np.int64(1),), pd.Index(["n"])]
)
def test_a_list_adds_columns_to_those_of_text(choice):
    frame = pd.DataFrame({"a": [0.5, 1.5], "n": [7, 5], "t": ["x", "y"]})
    X, columns = learn(frame, choice)
    assert columns.categorical == (False, True, True)
    assert X.tolist() == [[0.5, 1, 0], [1.5, 0, 1]]


def test_none_takes_no_column():
    X, columns = learn(pd.DataFrame({"a": pd.Categorical([7, 5]), "b": [True, False]}), None)
    assert columns.categorical == (False, False)
    assert X.tolist() == [[7, 1], [5, 0]]
    with pytest.raises(ValueError, match=r"Column 'town' holds text \('Oslo'\)"):
        learn(pd.DataFrame({"a": [1], "town": ["Oslo"]}), None)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (["a", "z"], "does not have: 'z'. X has 'a', 'b'"),
        ([2], r"positions \[2\], but X has the columns 0 to 1"),
        ([-1], r"positions \[-1\]"),
        ([True], "mask of 1 values, but X has 2 columns"),
        ([0, "b"], "not a mixture"),
        ([0, True], "not a mixture"),
        ([0.5], "got"),
        ("a", "must be"),
    ],
)
def test_impossible_choices_of_categories(choice, message):
    with pytest.raises(ValueError, match=message):
        learn(pd.DataFrame({"a": [1.0], "b": [2.0]}), choice)


def test_names_need_a_frame():
    with pytest.raises(ValueError, match=r"X has no names of columns\. Use positions or a mask"):
        learn([[1, 2]], ["a"])


# ---- refused


@every_frame
@pytest.mark.parametrize(("value", "why"), [([1], "lists or records"), ({"k": 1}, "lists or records")])
def test_columns_that_are_neither_numbers_nor_categories_are_named(frame, value, why):
    X = frame({"age": [1.0], "born": [value]})
    with pytest.raises(TypeError, match=f"born.*{why}"):
        learn(X)


@pytest.mark.parametrize("column", [pd.interval_range(0, 1), np.array([1j])], ids=str)
def test_other_types_are_named(column):
    with pytest.raises(TypeError, match=r"these are not: b \((interval|complex128)"):
        learn(pd.DataFrame({"a": [1], "b": column}))


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pl.LazyFrame({"a": [1]}), TypeError, "lazy frame. Collect it first"),
        (sparse.csr_array(np.eye(2)), TypeError, r"Sparse data was passed for X, of shape \(2, 2\)"),
        (
            pd.DataFrame({"a": pd.arrays.SparseArray([0, 1])}),
            TypeError,
            "Sparse data was passed in columns a",
        ),
        (pd.DataFrame({"a": []}), ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\) while a minimum of 1"),
        (pd.DataFrame({"a": pd.Series([], dtype="str")}), ValueError, r"0 sample\(s\)"),
        (pd.DataFrame(index=[1, 2]), ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\)"),
        (np.empty((0, 2), dtype=object), ValueError, r"0 sample\(s\)"),
        (["a", "b"], ValueError, "Expected 2D array, got 1D array"),
        (pd.Series(["a"]), ValueError, "Expected a 2-dimensional container"),
        ("text", ValueError, "Expected 2D array, got scalar"),
        (np.zeros((1, 1, 1)), ValueError, "dim 3"),
        ([[1, 2], [3]], ValueError, "inhomogeneous"),
        (np.array([[1j]]), ValueError, "Complex data not supported"),
        (np.array([[1j]], dtype=object), ValueError, "Column 0 holds complex numbers"),
    ],
)
def test_what_is_no_table(X, error, message):
    with pytest.raises(error, match=message):
        learn(X)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 10**400, -(10**400)])
def test_infinite_values_are_named(value):
    number = float(value) if isinstance(value, float) else None
    X = [pd.DataFrame({"a": [np.nan, 1], "b": pd.Series([value, 2], dtype=object), "c": ["x", "y"]})]
    if number is not None:
        X += [frame({"a": [None, 1.0], "b": [number, 2.0]}) for frame in FRAMES.values()]
        X += [np.array([[np.nan, number], [1, 2]])]
        X += [torch.asarray([[np.nan, number], [1.0, 2.0]])] if torch else []
    for each in X:
        name = "'b'" if hasattr(each, "columns") else "1"
        for choice in ("from_dtype", [1]):
            with (
                sklearn.config_context(array_api_dispatch=True),
                pytest.raises(ValueError, match=f"^Column {name}.*(infinity|infinite)"),
            ):
                learn(each, choice)


def test_numbers_whose_sum_is_infinite_are_finite():
    X = np.full((4, 2), 1e308)
    assert learn(X)[0] is X


# ---- the door of an estimator


class Estimator(BaseEstimator):
    pass


def test_names_are_noted_and_checked():
    estimator, frame = Estimator(), pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    X, columns = read_training_table(estimator, frame)
    assert estimator.n_features_in_ == 2
    assert estimator.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(read_new_table(estimator, pl.DataFrame(frame), columns, X), X)
    for new, message in [
        (frame[["b", "a"]], "must be in the same order"),
        (frame[["a"]], "yet now missing:\n- b"),
        (frame.assign(c=1), "unseen at fit time:\n- c"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_new_table(estimator, new, columns, X)
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match="X has 1 features, but Estimator is expecting 2"),
    ):
        read_new_table(estimator, [["x"]], columns, X)


def test_new_rows_take_the_precision_of_the_fit():
    estimator = Estimator()
    frame = pd.DataFrame({"a": np.float32([1, 2]), "b": ["x", "y"]})
    X, columns = read_training_table(estimator, frame)
    assert X.dtype == np.float32
    new = read_new_table(estimator, frame.astype({"a": float}), columns, X)
    assert new.dtype == np.float32
    with pytest.raises(ValueError, match="Column 'a': X contains infinity or a value too large for float32"):
        read_new_table(estimator, frame.assign(a=1e300), columns, X)


def test_numbers_only_refuses_gaps_and_text():
    estimator = Estimator()
    X = read_training_numbers(estimator, pd.DataFrame({"a": [1, 2]}))
    assert read_new_table(estimator, pd.DataFrame({"a": [3]}), None, X).tolist() == [[3]]
    with pytest.raises(ValueError, match="contains NaN"):
        read_new_table(estimator, pd.DataFrame({"a": [None, 1.0]}), None, X)
    with pytest.raises(ValueError, match="these are not: a"):
        read_training_numbers(estimator, pd.DataFrame({"a": ["x", "y"]}))


def test_numbers_among_text_are_not_rounded_to_the_precision_of_others():
    mixed = pd.DataFrame({"a": np.float32([1, 2]), "b": pd.Series([0.1, "x"], dtype=object)})
    X, columns = learn_table(open_table(mixed))
    assert X.dtype == np.float32
    assert columns.categories[1].tolist() == ["0.1", "x"]
    np.testing.assert_array_equal(read_table(open_table(mixed[:1], np.float32), columns), X[:1])
