"""EDRVFLClassifier: what a fit gives, labels and frames as they come, class weights, and unusual input."""

import re
import tracemalloc
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from edrvfl import EDRVFLClassifier, to_numpy, variant
from edrvfl._doors.variants import VARIANTS
from edrvfl._layers.layers import ACTIVATIONS

SMALL = {"n_layers": 3, "n_hidden": 16}


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, y


@pytest.fixture
def small():
    return EDRVFLClassifier(n_layers=4, n_hidden=20, regularization=1.0, random_state=0)


# ---- what a fit gives


def test_figures_of_the_fit(wine, small):
    X, y = wine
    small.set_params(prune_rate=0.25).fit(X, y)
    assert small.n_features_in_ == 13
    assert list(small.feature_names_in_) == list(X.columns)
    assert small.classes_.tolist() == [0, 1, 2]
    assert len(small.train_accuracies_) == 4
    assert all(isinstance(a, float) for a in small.train_accuracies_)
    assert small.train_accuracies_[0] == small.set_params(n_layers=1).fit(X, y).score(X, y)
    assert small.fallback_layers_ == ()
    assert small.neurons_kept_ == (15,)


def test_votes_without_a_vote_have_minus_infinite_log_but_finite_scores(wine, small):
    X, y = wine
    model = small.set_params(ensemble="vote", calibration=None).fit(X, y)
    assert np.isneginf(model.predict_log_proba(X)).any()
    assert np.isfinite(model.decision_function(X)).all()
    model = small.set_params(calibration="loo").fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()  # no probability is 0 after calibration


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(wine, name):
    X, y = wine
    model = variant(name, n_hidden=20, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert len(model.train_accuracies_) == (1 if name == "RVFL" else 10)
    assert (model.neurons_kept_[0] < 20) == ("P" in name)
    assert (model.correct_weight < 1) == name.startswith("W")
    assert model.renormalize == (name not in ("RVFL", "edRVFL_O"))


def test_variants_are_found_in_any_case():
    assert variant("wpedrvfl").get_params() == variant("WPedRVFL").get_params()


def test_an_unknown_variant_gets_the_list():
    with pytest.raises(ValueError, match="Unknown variant 'WRVFL'; choose one of RVFL, edRVFL_O"):
        variant("WRVFL")


def test_verbose_prints_a_line_a_layer(wine, small, capsys):
    small.set_params(verbose=1).fit(*wine)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    figures = r"leave-one-out accuracy [01]\.\d{4}, log-loss \d\.\d{4}"
    assert re.fullmatch(rf"\[EDRVFLClassifier\] layer 1/4: {figures}", lines[0])
    small.set_params(calibration=None).fit(*wine)
    first = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"\[EDRVFLClassifier\] layer 1/4: training accuracy [01]\.\d{4}", first)
    small.set_params(verbose=0).fit(*wine)
    assert capsys.readouterr().out == ""


# ---- labels and frames as they come


def test_in_pipelines_and_searches(wine, small):
    X, y = wine
    assert cross_val_score(make_pipeline(StandardScaler(), small), X, y, cv=3).min() > 0.9
    search = GridSearchCV(small, {"prune_rate": [0.0, 0.5]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


# ---- weights


def test_class_weight_moves_the_boundary(small):
    X, y = make_classification(400, weights=[0.9], class_sep=0.5, random_state=0)
    plain = small.fit(X, y).predict(X).mean()
    assert small.set_params(class_weight="balanced").fit(X, y).predict(X).mean() > 2 * plain
    assert small.set_params(class_weight={0: 1, 1: 100}).fit(X, y).predict(X).mean() > 4 * plain


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_impossible_class_weights(wine, small, weight):
    with pytest.raises(ValueError, match="class_weight must hold finite weights"):
        small.set_params(class_weight={0: weight}).fit(*wine)


# ---- array libraries


def test_to_numpy_reaches_into_pipelines(wine, small):
    model = make_pipeline(StandardScaler(), small).fit(*wine)
    np.testing.assert_array_equal(to_numpy(model).predict(wine[0]), model.predict(wine[0]))


def test_float32_in_float32_out(noisy, small):
    X, y = noisy
    model = small.fit(X.astype(np.float32), y)
    for layer, beta in zip(model.network_.layers, model.network_.readouts, strict=True):
        assert layer.W.dtype == beta.dtype == layer.shift.dtype == np.float32
    assert model.predict_proba(X).dtype == np.float32


# ---- bad input


def test_infinite_values_are_refused_and_without_an_encoder_missing_ones_too(wine, small):
    X, y = wine
    bad = X.copy()
    for value, encoder, message in [
        (np.inf, "standard", f"Column '{X.columns[2]}': X contains infinity"),
        (np.inf, None, "infinity"),
        (np.nan, None, "NaN"),
    ]:
        bad.iloc[3, 2] = value
        small.set_params(encoder=encoder).fit(X, y)
        for method in (small.predict, lambda X: small.fit(X, y)):
            with pytest.raises(ValueError, match=message):
                method(bad)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_columns_that_are_not_numbers_are_named(small, frame):
    X = frame({"age": [1.0, 2.0, 3.0, 4.0], "city": ["Rome", "Oslo", "Rome", "Oslo"]})
    with pytest.raises((ValueError, TypeError), match=r"these are not: city\. Encode them first"):
        small.set_params(encoder=None).fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("beside", [{"age": [1.0, 2.0, 3.0, 4.0]}, {}], ids=["beside numbers", "alone"])
def test_without_an_encoder_dates_are_refused_by_name(small, frame, beside):
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 5)]
    X = frame({**beside, "born": days})
    with pytest.raises(TypeError, match=r"these are not: born.*dates or times; turn these into numbers"):
        small.set_params(encoder=None).fit(X, [0, 1, 0, 1])
    assert small.set_params(encoder="standard").fit(X, [0, 1, 0, 1]).n_features_in_ == len(beside) + 1


def test_a_lazy_frame_is_to_be_collected_first(small):
    with pytest.raises(TypeError, match=r"lazy frame\. Collect it first"):
        small.fit(pl.LazyFrame({"age": [1.0, 2.0, 3.0, 4.0]}), [0, 1, 0, 1])


def test_frames_of_numbers_in_general_columns_are_taken(small):
    objects = pd.DataFrame({"a": pd.Series([1, 2.5, 3, 4], dtype=object), "b": pd.Categorical([1, 2, 1, 2])})
    assert small.fit(objects, [0, 1, 0, 1]).n_features_in_ == 2
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [True, False, True, False]})
    assert small.fit(table, [0, 1, 0, 1]).n_features_in_ == 2


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "int8[pyarrow]"])
def test_labels_of_the_types_of_pandas_come_back_as_they_were(rng, small, dtype):
    plain = np.arange(40) % 2
    y = pd.Series(plain, dtype=dtype)
    model = small.fit(rng.standard_normal((40, 2)), y)
    assert model.classes_.dtype == y.dtype.numpy_dtype
    assert model.classes_.tolist() == [0, 1]


def test_whole_numbers_that_floats_cannot_tell_apart_stay_two_classes(rng, small):
    y = pd.Series(2**60 + np.arange(40) % 2, dtype="Int64")
    assert small.fit(rng.standard_normal((40, 2)), y).classes_.tolist() == [2**60, 2**60 + 1]


@pytest.mark.parametrize(("labels", "types"), [([1, "a"], "int, str"), ([True, False], "bool")])
def test_labels_that_are_objects_of_other_types_are_refused_with_these(rng, small, labels, types):
    y = pd.Series(labels * 20, dtype=object)
    with pytest.raises(
        ValueError, match=rf"must all be text, but y holds objects of the type {types}\. Give"
    ):
        small.fit(rng.standard_normal((40, 2)), y)


def test_a_class_without_weight_is_left_out(wine, small):
    X, y = wine
    assert small.set_params(class_weight={0: 0}).fit(X, y).classes_.tolist() == [1, 2]
    with pytest.raises(ValueError, match="only one class"):
        small.set_params(class_weight={0: 0, 1: 0}).fit(X, y)


@pytest.mark.parametrize("weights", [None, 1e-17], ids=["a huge penalty", "tiny weights"])
def test_scores_that_vanish_are_told(wine, small, weights):
    X, y = wine
    small.set_params(regularization=1e20 if weights is None else 64.0)
    with pytest.warns(UserWarning, match="all classes get nearly the same probability") as seen:
        small.fit(X, y, None if weights is None else np.full(len(y), weights))
    assert seen[0].filename == __file__


def test_labels_are_where_the_probability_is_largest_also_in_float32():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5)).astype(np.float32)
    model = EDRVFLClassifier(n_hidden=8, n_layers=2, random_state=0).fit(X, np.arange(3000) % 300)
    P = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), P.argmax(axis=1))
    np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), P.argmax(axis=1))


def test_many_classes_and_layers_are_answered_by_blocks():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 5))
    model = EDRVFLClassifier(n_hidden=4, n_layers=20, random_state=0).fit(X, np.arange(4000) % 200)
    answer = 4000 * 200 * 8
    assert peak_bytes(lambda: model.predict(X)) < 1.5 * answer  # all layers would take 20 answers
    assert peak_bytes(lambda: next(model.staged_predict_proba(X))) < 6 * answer


def peak_bytes(task):
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("n_hidden", [4, 200], ids=["features are held", "scores are held"])
def test_stages_end_in_the_whole_network(wine, small, n_hidden):
    X, y = wine
    model = small.set_params(n_hidden=n_hidden, n_layers=6).fit(X, y)
    np.testing.assert_allclose(list(model.staged_predict_proba(X))[-1], model.predict_proba(X), atol=1e-14)


def test_a_collinear_column_among_many_rows_costs_float32_nothing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 8))
    X = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2] - X[:, 3]])
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(len(X)) > 0).astype(int)
    model = EDRVFLClassifier(n_hidden=200, n_layers=2, regularization=1.0, random_state=0)
    exact = clone(model).fit(X[:15_000], y[:15_000]).score(X[15_000:], y[15_000:])
    single = X.astype(np.float32)
    rough = model.fit(single[:15_000], y[:15_000])  # warnings are errors: it does not fall back
    assert rough.fallback_layers_ == ()
    assert abs(rough.score(single[15_000:], y[15_000:]) - exact) < 0.002


# ---- unusual input that must work


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_huge_and_tiny_units_give_the_same_answer(wine, small, scale):
    X, y = wine[0].to_numpy(), wine[1]
    expected = clone(small).fit(X, y).predict_proba(X)
    scaled = clone(small).fit(X * scale, y).predict_proba(X * scale)
    np.testing.assert_allclose(scaled, expected, atol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", ["edRVFL_O", "WPedRVFL"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_absurd_row_at_predict_is_finite(wine, activation, name, dtype):
    X, y = wine
    model = variant(name, n_hidden=30, activation=activation, random_state=0).fit(X.astype(dtype), y)
    largest = np.finfo(dtype).max
    for value in (largest, -largest):
        row = pd.DataFrame(np.full((1, 13), value, dtype), columns=X.columns)
        P = model.predict_proba(row)
        assert np.isfinite(P).all()
        np.testing.assert_allclose(P.sum(), 1, atol=1e-5)


def test_a_singular_gram_warns_once_and_names_the_layers(wine):
    X, y = wine
    twice = np.column_stack([X, X])  # every column has a twin, and lambda is lost below rounding
    model = variant("edRVFL_O", n_layers=3, n_hidden=20, regularization=1e-13, random_state=0)
    message = r"singular in layers 1, 2, 3 with regularization=1e-13; the least-norm solution"
    with pytest.warns(LinAlgWarning, match=message) as seen:
        model.fit(twice, y)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert model.fallback_layers_ == (1, 2, 3)
    assert np.isfinite(model.predict_proba(twice)).all()
