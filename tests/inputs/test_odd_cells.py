"""Cells that are neither numbers nor text, masked cells, stray text, double names, and missing targets."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, EDRVFLSearchCV
from edrvfl._inputs.reading import (
    read_new_table,
    read_training_numbers,
    read_training_table,
    refuse_missing_targets,
)
from edrvfl._inputs.table import learn_table, open_table, read_table


class Estimator(BaseEstimator):
    """What reads rows, and remembers the names of their columns."""


VECTORS = [np.full(2, i) for i in range(60)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([[1, 2]] * 60, "list"),
        ([{"a": 1}] * 60, "dict"),
        (VECTORS, "ndarray"),
        (["a", object()] * 30, "object"),
    ],
    ids=["lists", "dicts", "arrays", "one object among text"],
)
def test_objects_in_cells_are_refused_by_their_column(values, kind):
    objects = np.empty((60, 2), dtype=object)
    objects[:, 0], objects[:, 1] = 1.0, pd.Series(values, dtype=object)
    frames = {
        "'z'": pd.DataFrame({"a": 1.0, "z": pd.Series(values, dtype=object)}),
        "'b'": pl.DataFrame({"a": np.ones(60), "b": pl.Series(values, dtype=pl.Object)}),
        "1": objects,
    }
    for name, frame in frames.items():
        with pytest.raises(TypeError, match=f"Column {name} holds lists or records or other objects .{kind}"):
            learn_table(open_table(frame))


def test_intervals_are_categories_if_the_type_of_the_column_says_so():
    cut = pd.DataFrame({"a": pd.cut(np.arange(10.0), 2)})
    assert len(learn_table(open_table(cut))[1].categories[0]) == 2


@pytest.mark.parametrize("kind", [float, np.float32, int, object])
def test_masked_cells_are_missing(kind):
    X = np.ma.masked_array(np.arange(12).reshape(6, 2).astype(kind), mask=np.arange(12).reshape(6, 2) == 3)
    coded, columns = learn_table(open_table(X))
    assert np.isnan(coded[1, 1])
    assert np.isnan(coded).sum() == 1
    assert coded.dtype == (np.float32 if kind is np.float32 else np.float64)
    np.testing.assert_array_equal(read_table(open_table(X), columns), coded)


def test_masked_cells_are_refused_where_nothing_may_be_missing():
    X = np.ma.masked_array(np.arange(12.0).reshape(6, 2), mask=np.arange(12).reshape(6, 2) == 3)
    message = "takes no missing values with encoder=None, but the cell of X in row 1, column 1 is masked"
    with pytest.raises(ValueError, match=message):
        read_training_numbers(Estimator(), X)
    with pytest.raises(ValueError, match=message):
        read_new_table(Estimator(), X, None, X.data)


@pytest.mark.parametrize("library", [pd, pl])
def test_one_stray_text_among_numbers_is_told(library):
    values = [str(i) for i in range(60)]
    values[17] = "n/a"
    with pytest.warns(UserWarning, match="Column 'z' counts as .* 'n/a' in row 17, but 59 of its 60 values"):
        learn_table(open_table(library.DataFrame({"z": values})))


@pytest.mark.parametrize("n_strays", [0, 4])
def test_codes_and_declared_categories_need_no_warning(n_strays):
    values = ["x"] * n_strays + [str(i) for i in range(n_strays, 60)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn_table(open_table(pd.DataFrame({"z": values})))
        learn_table(open_table(pd.DataFrame({"z": ["n/a", *values]})), ["z"])


@pytest.mark.parametrize("encoder", [True, False])
def test_two_columns_of_one_name_are_refused(encoder):
    tables = [pd.DataFrame(np.ones((3, 3)), columns=["a", "b", "a"]), pa.table([[1.0]] * 3, ["a", "b", "a"])]
    for table in tables:
        with pytest.raises(ValueError, match="X has several columns of the name 'a'"):
            (read_training_table if encoder else read_training_numbers)(Estimator(), table)


TEXT = ["a", "b", "a", "b", None, "a"]
NUMBERS = [1.0, 2.0, 1.0, 2.0, None, 1.0]


@pytest.mark.parametrize(
    "y",
    [
        TEXT,
        np.array(TEXT, dtype=object),
        np.array([float("nan") if v is None else v for v in TEXT], dtype=object),
        np.array(NUMBERS, dtype=float),
        np.ma.masked_array([1, 2, 1, 2, 1, 1], mask=[0, 0, 0, 0, 1, 0]),
        pd.Series(TEXT, dtype="string"),
        pd.Series(TEXT, dtype="category"),
        pd.Series(NUMBERS, dtype="Int64"),
        pl.Series(TEXT),
        pl.Series([float("nan") if v is None else v for v in NUMBERS]),
        pl.DataFrame({"a": [1.0] * 6, "b": NUMBERS}),
        pa.chunked_array([TEXT]),
    ],
)
def test_a_missing_target_is_named_by_its_row(y):
    with pytest.raises(
        ValueError, match=r"y has a missing label in row 4\. Fill it in, or leave the row out"
    ):
        refuse_missing_targets(y, "label")
    refuse_missing_targets(y[:4], "label")


def test_estimators_tell_of_missing_targets():
    X = np.arange(12.0).reshape(6, 2)
    for estimator in (EDRVFLClassifier(), EDRVFLPortfolioClassifier(), EDRVFLSearchCV(EDRVFLClassifier())):
        with pytest.raises(ValueError, match="y has a missing label in row 4"):
            estimator.fit(X, TEXT)


def test_numbers_that_are_written_as_text_are_told_of_unless_they_may_be_codes():
    X = pd.DataFrame({"z": [f"{i / 7:.3f}" for i in range(60)]})
    with pytest.warns(UserWarning, match="Column 'z' counts as categories, .* written as text.*to_numeric"):
        learn_table(open_table(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn_table(open_table(X), ["z"])
        learn_table(open_table(pd.DataFrame({"z": ["1.5", "2.5", "3.0"] * 20})))
