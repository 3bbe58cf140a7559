"""TabularEncoder: copies, frames, weights, array libraries, and odd input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from edrvfl import TabularEncoder, to_numpy
from edrvfl._doors.encoder import ENCODERS

NUMBERS = ("standard", "robust", "bins")
every_kind = pytest.mark.parametrize("numbers", NUMBERS)


def mixed_frame(rng, m=200):
    """Numbers with gaps and an outlier, few values, a flag, text with a rare value and gaps, categories."""
    frame = pd.DataFrame(
        {
            "real": rng.standard_normal(m) * 3 + 5,
            "few": rng.integers(0, 4, m),
            "flag": rng.random(m) < 0.3,
            "text": rng.choice(["red", "blue", "green"], m),
            "kind": pd.Categorical(rng.choice(["x", "y"], m), categories=["z", "y", "x"]),
        }
    )
    frame.loc[rng.random(m) < 0.2, "real"] = np.nan
    frame.loc[0, "real"] = 1e9
    frame.loc[rng.random(m) < 0.1, "text"] = None
    frame.loc[1, "text"] = "rare"
    return frame


@pytest.fixture
def frame(rng):
    return mixed_frame(rng)


# ---- contract


@every_kind
def test_it_makes_a_linear_model_take_frames(frame, rng, numbers):
    y = (frame["text"] == "red") ^ frame["flag"]
    model = make_pipeline(TabularEncoder(numbers), LogisticRegression()).fit(frame, y)
    assert model.score(frame, y) > y.mean()
    assert np.isfinite(model.predict_proba(frame)).all()


@every_kind
def test_it_survives_clone_and_pickle(frame, numbers):
    encoder = TabularEncoder(numbers, n_bins=5, categorical_features=["few"]).fit(frame)
    expected = encoder.transform(frame)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(frame), expected)
    np.testing.assert_array_equal(clone(encoder).fit_transform(frame), expected)


def test_before_fit(frame):
    for method in (TabularEncoder().transform, TabularEncoder().get_feature_names_out):
        with pytest.raises(NotFittedError):
            method(frame)


@pytest.mark.parametrize(
    "params",
    [
        {"numbers": "tree"},
        {"n_bins": 1},
        {"max_values": True},
        {"max_categories": 0},
        {"min_frequency": 0},
        {"max_columns": -1},
        {"categorical_features": "auto"},
    ],
    ids=str,
)
def test_impossible_parameters_are_named(params):
    with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter"):
        TabularEncoder(**params).fit([[1.0], [2.0]])


def test_a_fit_that_fails_leaves_the_encoder_as_it_was(frame):
    encoder = TabularEncoder().fit(frame)
    expected = encoder.transform(frame)
    with pytest.raises(ValueError, match="Column 'b'"):
        encoder.fit(pd.DataFrame({"b": [np.inf, 1]}))
    np.testing.assert_array_equal(encoder.transform(frame), expected)


# ---- what comes out


def test_numbers_are_standardised_as_scikit_learn_does(rng):
    X = rng.standard_normal((50, 3)) * [1, 100, 1e-3] + [0, 5, 1]
    np.testing.assert_allclose(
        TabularEncoder().fit_transform(X), StandardScaler().fit_transform(X), atol=1e-9
    )


@pytest.mark.parametrize("min_frequency", [1, 5, 20])
def test_categories_are_hot_as_in_scikit_learn(rng, min_frequency):
    X = pd.DataFrame({"a": rng.choice(list("abcdefgh"), 100, p=np.arange(1, 9) / 36)})
    encoded = TabularEncoder(min_frequency=min_frequency).fit_transform(X) != 0
    other = OneHotEncoder(min_frequency=min_frequency, sparse_output=False).fit_transform(X) != 0
    # the same columns, whatever their order
    assert sorted(map(tuple, encoded.T)) == sorted(map(tuple, other.T))


@every_kind
def test_every_column_is_named_once(frame, numbers):
    encoder = TabularEncoder(numbers).fit(frame)
    names = encoder.get_feature_names_out()
    assert len(names) == len(set(names)) == encoder.transform(frame).shape[1]
    assert {"real", "real_missing", "few", "flag", "kind_x", "kind_y", "text_red"} <= set(names)
    renamed = encoder.get_feature_names_out(list(frame.columns))
    assert renamed.tolist() == names.tolist()
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(list("abcde"))
    other = TabularEncoder(numbers).fit(frame.to_numpy())
    assert other.get_feature_names_out(list("abcde"))[0] == "a"


@every_kind
def test_set_output(frame, numbers):
    encoder = TabularEncoder(numbers).fit(frame)
    expected, names = encoder.transform(frame), list(encoder.get_feature_names_out())
    for container, library in (("pandas", pd), ("polars", pl)):
        out = encoder.set_output(transform=container).transform(frame[50:60])
        assert isinstance(out, library.DataFrame)
        assert list(out.columns) == names
        np.testing.assert_array_equal(out.to_numpy(), expected[50:60])
    assert encoder.set_output(transform="pandas").transform(frame[50:60]).index[0] == 50


@every_kind
def test_frames_of_every_library_are_encoded_alike(frame, numbers):
    encoder = TabularEncoder(numbers).fit(frame)
    expected = encoder.transform(frame)
    assert isinstance(expected, np.ndarray)
    polars = pl.DataFrame(frame)
    for other in (polars, pa.table(frame), frame.astype({"kind": object, "text": "category"})):
        np.testing.assert_array_equal(encoder.transform(other), expected)
        np.testing.assert_array_equal(TabularEncoder(numbers).fit_transform(other), expected)


@every_kind
def test_blocks_of_rows_change_nothing(frame, numbers, limit):
    encoder = TabularEncoder(numbers).fit(frame)
    expected = encoder.transform(frame)
    limit(CPU_BLOCK_BYTES=1)
    np.testing.assert_array_equal(encoder.transform(frame), expected)


def test_ten_thousand_categories_stay_within_the_caps(rng):
    values = [f"value {i}" for i in rng.integers(0, 10_000, 30_000)]
    frame = pl.DataFrame({"a": values, "b": values[::-1], "c": ["x"] * 100 + values[100:]})
    encoder = TabularEncoder("bins", min_frequency=1, max_columns=40).fit(frame)
    width = len(encoder.get_feature_names_out())
    assert 3 <= width <= 40 + 3
    assert encoder.transform(frame).shape == (30_000, width)
    assert TabularEncoder(max_categories=7).fit_transform(frame[["c"]]).shape[1] <= 7


@every_kind
@pytest.mark.parametrize(
    "params",
    [{"n_bins": 2}, {"max_values": 0}, {"max_values": 1000}, {"max_categories": 2}, {"max_columns": 0}],
    ids=str,
)
def test_the_smallest_and_largest_settings(frame, numbers, params):
    encoder = TabularEncoder(numbers, **params).fit(frame)
    encoded = encoder.transform(frame)
    assert np.isfinite(encoded).all()
    assert encoded.shape[1] == len(encoder.get_feature_names_out()) >= frame.shape[1]


# ---- laws


@st.composite
def small_tables(draw):
    """Rows of a number, a column of text and one of anything, with gaps."""
    m = draw(st.integers(2, 15))
    number = st.none() | st.sampled_from([0.0, 1.0, -2.5, 1e300, 1e-300]) | st.floats(-100, 100)
    text = st.none() | st.sampled_from(["a", "b", "c", "1"])
    anything = text | st.booleans() | st.integers(-2, 2) | st.just(float("nan"))
    columns = [draw(st.lists(kind, min_size=m, max_size=m)) for kind in (number, text, anything)]
    rows = np.empty((m, 3), dtype=object)
    for j, column in enumerate(columns):
        rows[:, j] = column
    return rows


@given(rows=small_tables(), seed=st.integers(0, 99), numbers=st.sampled_from(NUMBERS))
def test_a_weight_counts_as_repetition(rows, seed, numbers):
    weights = np.random.default_rng(seed).integers(0, 4, len(rows))
    weights[0] = 2
    # which columns are text is asked of all rows, so that a row of weight 0 may decide it
    kinds = TabularEncoder().fit(rows).encoding_.columns.categorical
    repeated = np.repeat(rows, weights, axis=0)
    if TabularEncoder().fit(repeated).encoding_.columns.categorical != kinds:
        return
    options = {"min_frequency": 2, "n_bins": 3, "max_values": 4}
    weighted = TabularEncoder(numbers, **options).fit(rows, sample_weight=weights)
    twice = TabularEncoder(numbers, **options).fit(repeated)
    assert weighted.get_feature_names_out().tolist() == twice.get_feature_names_out().tolist()
    np.testing.assert_allclose(weighted.transform(repeated), twice.transform(repeated), rtol=1e-9, atol=1e-9)


@given(rows=small_tables(), seed=st.integers(0, 99), numbers=st.sampled_from(NUMBERS))
def test_the_order_of_rows_does_not_matter(rows, seed, numbers):
    order = np.random.default_rng(seed).permutation(len(rows))
    options = {"min_frequency": 1, "n_bins": 3, "max_values": 3}
    one, other = TabularEncoder(numbers, **options), TabularEncoder(numbers, **options)
    expected = one.fit_transform(rows)[order]
    np.testing.assert_allclose(other.fit_transform(rows[order]), expected, rtol=1e-9, atol=1e-9)
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()


@given(rows=small_tables(), new=small_tables(), numbers=st.sampled_from(NUMBERS))
def test_whatever_comes_later_is_finite(rows, new, numbers):
    encoder = TabularEncoder(numbers, min_frequency=1).fit(rows)
    assert np.isfinite(encoder.transform(rows)).all()
    numeric = [j for j in range(3) if not encoder.encoding_.columns.categorical[j]]
    for j in numeric[1:]:  # text would be an error there
        new[:, j] = None
    assert np.isfinite(encoder.transform(new)).all()


@every_kind
def test_odd_columns_give_finite_columns(numbers):
    frame = pd.DataFrame(
        {
            "constant": [3.0] * 6,
            "nothing": [np.nan] * 6,
            "huge": [1e308, -1e308, 1e308, 0, 1, 2],
            "tiny": [1e-320, 0, 0, 0, 0, 5e-324],
            "one_text": ["a"] * 6,
            "no_text": pd.Series([None] * 6, dtype="category"),
            "ids": [f"id{i}" for i in range(6)],
        }
    )
    encoder = TabularEncoder(numbers).fit(frame)
    assert np.isfinite(encoder.transform(frame)).all()
    assert np.isfinite(TabularEncoder(numbers).fit_transform(frame[:1])).all()
    later = frame.assign(constant=np.nan, nothing=5.0, huge=-1e308, one_text="b", no_text="c", ids=None)
    assert np.isfinite(encoder.transform(later)).all()


def test_a_category_never_seen_is_zero_and_missing_is_a_category():
    encoder = TabularEncoder(min_frequency=1).fit([["a"], ["b"], [None]])
    names = encoder.get_feature_names_out().tolist()
    assert (encoder.transform([["never"]]) == 0).all()
    hot = encoder.transform([["a"], [None]]) != 0
    assert [names[j] for j in hot.argmax(axis=1)] == ["x0_a", "x0_missing"]
    assert hot.sum(axis=1).tolist() == [1, 1]


# ---- arrays


@every_kind
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_of_every_library_are_encoded_alike(xp, rng, numbers, dtype):
    X = np.column_stack([rng.standard_normal((60, 2)), rng.integers(0, 3, (60, 2))]).astype(dtype)
    X[rng.random(60) < 0.2, 1] = np.nan
    X[5, 3] = np.nan
    weights = rng.integers(0, 3, 60).astype(dtype)
    alone = TabularEncoder(numbers, categorical_features=[3]).fit(X, sample_weight=weights)
    expected = alone.transform(X)
    assert expected.dtype == dtype
    Z = xp.asarray(X)
    with sklearn.config_context(array_api_dispatch=True):
        encoder = TabularEncoder(numbers, categorical_features=[3]).fit(Z, sample_weight=xp.asarray(weights))
        encoded = encoder.transform(Z)
        moved = to_numpy(encoder)
    assert isinstance(encoded, type(Z))
    assert encoded.dtype == Z.dtype
    rounding = 1e-4 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(to_host(encoded), expected, rtol=rounding, atol=rounding)
    np.testing.assert_allclose(moved.transform(X), to_host(encoded), rtol=rounding, atol=rounding)
    assert encoder.get_feature_names_out().tolist() == alone.get_feature_names_out().tolist()


def test_another_library_than_that_of_the_fit_is_refused(rng):
    torch = pytest.importorskip("torch")
    X = rng.standard_normal((5, 2))
    encoder = TabularEncoder().fit(X)
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match=r"TabularEncoder\.transform\(\) must use the same namespace"),
    ):
        encoder.transform(torch.asarray(X))


# ---- refused


def test_columns_that_are_missing_additional_or_in_another_order(frame):
    encoder = TabularEncoder().fit(frame)
    for new, message in [
        (frame.drop(columns="flag"), "yet now missing:\n- flag"),
        (frame.assign(more=1), "unseen at fit time:\n- more"),
        (frame[frame.columns[::-1]], "must be in the same order"),
        (pl.DataFrame(frame).rename({"few": "many"}), "unseen at fit time:\n- many"),
    ]:
        with pytest.raises(ValueError, match=message):
            encoder.transform(new)


def test_a_number_column_that_becomes_text_is_named(frame):
    encoder = TabularEncoder().fit(frame)
    with pytest.raises(ValueError, match=r"Column 'few' holds text \('much'\), but numbers are expected"):
        encoder.transform(frame.assign(few="much"))


@pytest.mark.parametrize("weights", [[-1, 1], [0, 0], [1], [np.nan, 1]])
def test_impossible_weights(weights):
    with pytest.raises(ValueError, match=r"[Ww]eight"):
        TabularEncoder().fit([[1.0], [2.0]], sample_weight=weights)


@pytest.mark.parametrize("numbers", ENCODERS)
def test_the_scale_of_weights_below_one_does_not_matter(rng, numbers):
    X = [[float(x), letter] for x, letter in zip(rng.integers(0, 5, 40), "abcd" * 10, strict=True)]
    w = rng.uniform(0.2, 1, 40)
    columns = [TabularEncoder(numbers).fit(X, sample_weight=w * scale).transform(X) for scale in (1, 1e-3)]
    assert columns[0].shape[1] >= 5  # no letter is rare
    np.testing.assert_allclose(*columns, atol=1e-12)


def test_a_value_whose_weight_is_lost_in_rounding():
    X = [[1.0], [2.0], [3.0]]
    encoder = TabularEncoder("bins").fit(X, sample_weight=[1e17, 1, 1])
    assert np.isfinite(encoder.transform(X)).all()


def test_long_numbers_have_names_of_their_own():
    X = [[2019001.0], [2019002.0], [2019003.0]] * 3
    names = TabularEncoder("bins").fit(X).get_feature_names_out().tolist()
    assert names == ["x0", "x0_is_2019001.0", "x0_is_2019002.0", "x0_is_2019003.0"]


def test_fractions_in_float32_are_the_same_categories_in_float64():
    frame = pd.DataFrame({"a": np.array([0.1, 0.2] * 3, np.float32), "b": list("xyxyxy")})
    encoder = TabularEncoder(categorical_features=["a"]).fit(frame)
    np.testing.assert_array_equal(encoder.transform(frame.astype({"a": float})), encoder.transform(frame))
