"""The estimator: scikit-learn's contract, labels and frames, array libraries, and bad input."""

import pickle
import re
import tracemalloc
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from helpers import Recorder, assert_passes_scikit_learns_checks, to_host
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._array_api import move_estimator_to

from edrvfl import EDRVFLClassifier, TabularEncoder, to_numpy, variant
from edrvfl._doors.variants import VARIANTS
from edrvfl._layers.activations import ACTIVATIONS

SMALL = {"n_layers": 3, "n_hidden": 16}
# every value of every option once; options that do not meet in the code share a setting
GRID = [
    *({**SMALL, **VARIANTS[name], "n_hidden": 250} for name in VARIANTS),  # dual on the checks' data
    {**SMALL, "activation": "selu", "n_layers": 1},
    {**SMALL, "activation": "sigmoid", "n_hidden": 1, "ensemble": "mean"},
    {**SMALL, "activation": "tanh", "regularization": 2.0**-12, "ensemble": "vote"},
    {**SMALL, "activation": "sin", "regularization": 2.0**12, "encoder": None},
    {**SMALL, "activation": "radbas", "norm_scale": 0.5, "norm_shift": -2.0, "weight_from": "loo"},
    {**SMALL, "activation": "swish", "norm_scale": 2.0, "norm_shift": 2.0, "class_weight": "balanced"},
    {**SMALL, "regularization": 0.0},
    {**SMALL, "correct_weight": 0.01, "encoder": "bins", "calibration": "temperature"},
    {**SMALL, "prune_rate": 0.99, "layer_votes": "weighted", "ensemble": "mean"},
    {**SMALL, "encoder": TabularEncoder("bins", categorical_features=[0]), "layer_votes": "prefix"},
    {**SMALL, "encoder": "robust", "layer_votes": "prefix", "calibration": None},
    {**SMALL, "weight_from": "loo", "n_hidden": 250},
    {**SMALL, "regularization": "loo"},
    {**SMALL, "regularization": "loo", "n_hidden": 250, "weight_from": "loo"},
]


def setting_name(params):
    return "-".join(f"{k}={v}" for k, v in params.items()) or "defaults"


@pytest.mark.parametrize("params", GRID, ids=setting_name)
def test_scikit_learns_checks_pass(params):
    assert_passes_scikit_learns_checks(EDRVFLClassifier(**params))


def test_the_checked_settings_have_every_activation():
    assert {params.get("activation", "relu") for params in GRID} == set(ACTIVATIONS)


@pytest.mark.parametrize("name", VARIANTS)
def test_scikit_learns_checks_pass_for_a_variant_of_its_own_depth(name):
    assert_passes_scikit_learns_checks(variant(name, n_hidden=16))


def test_scikit_learns_checks_pass_for_a_variant_as_it_comes():
    # Without re-normalisation the features grow from layer to layer, until the default lambda is nothing
    # beside their Gram. On the 50 rows of this check the layers from the fifth on fit every row exactly, and
    # weights cannot move a read-out that makes no error: half of the layers ignore the class weights.
    assert_passes_scikit_learns_checks(variant("edRVFL_O"), ["check_class_weight_classifiers"])


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


@pytest.mark.parametrize("ensemble", ["softmax", "mean", "vote"])
def test_every_stage_is_the_shallower_network(wine, small, ensemble):
    X, y = wine
    deep = small.set_params(ensemble=ensemble).fit(X, y)
    stages = zip(
        deep.staged_predict(X), deep.staged_predict_proba(X), deep.staged_decision_function(X), strict=True
    )
    for depth, (labels, P, scores) in enumerate(stages, start=1):
        shallow = clone(small).set_params(n_layers=depth).fit(X, y)
        np.testing.assert_array_equal(labels, shallow.predict(X))
        np.testing.assert_allclose(P, shallow.predict_proba(X), atol=1e-13)
        np.testing.assert_allclose(scores, shallow.decision_function(X), atol=1e-10)
    assert depth == 4


def test_two_classes_have_log_odds(small):
    X, y = make_classification(120, random_state=0)
    model = small.fit(X, y)
    P, scores = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(scores, np.log(P[:, 1] / P[:, 0]), atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P, rtol=1e-12)


def test_votes_without_a_vote_have_minus_infinite_log_but_finite_scores(wine, small):
    X, y = wine
    model = small.set_params(ensemble="vote", calibration=None).fit(X, y)
    assert np.isneginf(model.predict_log_proba(X)).any()
    assert np.isfinite(model.decision_function(X)).all()
    model = small.set_params(calibration="loo").fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()  # no probability is 0 after calibration


def test_same_seed_same_bits_other_seed_other_network(wine, small):
    X, y = wine
    one, two = (clone(small).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    other = clone(small).set_params(random_state=1).fit(X, y).predict_proba(X)
    assert np.abs(one - other).max() > 1e-3


def test_a_random_state_instance_moves_on(wine, small):
    X, y = wine
    state = np.random.RandomState(0)
    one, two = (clone(small).set_params(random_state=state).fit(X, y).predict_proba(X) for _ in range(2))
    assert np.abs(one - two).max() > 1e-3


def test_fitting_twice_forgets_the_first_time(wine, small):
    X, y = wine
    fresh = clone(small).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(small.fit(X.iloc[:, :3], y == 0).fit(X, y).predict_proba(X), fresh)


def test_pickle_gives_the_same_bits(wine, small):
    X, y = wine
    again = pickle.loads(pickle.dumps(small.fit(X, y)))
    np.testing.assert_array_equal(again.predict_proba(X), small.predict_proba(X))


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


@pytest.mark.parametrize(
    "labels",
    [["no", "yes", "maybe"], [-5, 0, 7], [False, True], [1.0, 2.0]],
    ids=["strings", "integers", "booleans", "whole floats"],
)
def test_labels_come_back_as_they_came(small, labels):
    rng = np.random.default_rng(0)
    codes = np.arange(60) % len(labels)
    X = rng.standard_normal((60, 4)) + 3 * codes[:, None]
    y = np.array(labels)[codes]
    model = small.fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.9
    assert model.classes_.tolist() == sorted(labels)


def test_pandas_and_polars_are_the_same_table(wine, small):
    X, y = wine
    small.fit(X, y)
    expected = small.predict_proba(X)
    table = pl.DataFrame({name: X[name].to_numpy() for name in X.columns})
    polar = clone(small).fit(table, pl.Series(["abc"[code] for code in y]))
    assert list(polar.feature_names_in_) == list(X.columns)
    np.testing.assert_allclose(polar.predict_proba(table), expected, atol=1e-12)
    assert set(polar.predict(table)) == {"a", "b", "c"}


def test_in_pipelines_and_searches(wine, small):
    X, y = wine
    assert cross_val_score(make_pipeline(StandardScaler(), small), X, y, cv=3).min() > 0.9
    search = GridSearchCV(small, {"prune_rate": [0.0, 0.5]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


# ---- weights


@pytest.mark.parametrize("regularization", [0.0, 1.0, "loo"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 0.3, 1: 0.7, 2: 0.1}])
def test_weights_count_rows(small, noisy, regularization, class_weight):
    X, y = noisy
    counts = np.random.default_rng(3).integers(0, 4, len(y))
    small.set_params(regularization=regularization, class_weight=class_weight)
    weighted = clone(small).fit(X, y, sample_weight=counts).decision_function(X)
    repeated = clone(small).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def test_class_weight_moves_the_boundary(small):
    X, y = make_classification(400, weights=[0.9], class_sep=0.5, random_state=0)
    plain = small.fit(X, y).predict(X).mean()
    assert small.set_params(class_weight="balanced").fit(X, y).predict(X).mean() > 2 * plain
    assert small.set_params(class_weight={0: 1, 1: 100}).fit(X, y).predict(X).mean() > 4 * plain


def test_class_weights_are_numbers(wine, small):
    with pytest.raises(ValueError, match="class_weight must hold a number for each class"):
        small.set_params(class_weight={1: "x"}).fit(*wine)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_impossible_class_weights(wine, small, weight):
    with pytest.raises(ValueError, match="class_weight must hold finite weights"):
        small.set_params(class_weight={0: weight}).fit(*wine)


# ---- array libraries


@pytest.fixture
def dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_library_makes_the_same_network(xp, noisy, small, dtype):
    X, y = noisy
    X = X.astype(dtype)
    expected = clone(small).fit(X, y).predict_proba(X)
    model = clone(small).fit(xp.asarray(X), xp.asarray(y))
    P = model.predict_proba(xp.asarray(X))
    assert str(P.dtype).endswith(dtype)
    np.testing.assert_allclose(to_host(P), expected, atol=1e-10 if dtype == "float64" else 2e-3)
    home = to_numpy(model)
    for layer, beta in zip(home.network_.layers, home.network_.readouts, strict=True):
        assert isinstance(layer.W, np.ndarray)
        assert isinstance(beta, np.ndarray)
    np.testing.assert_allclose(home.predict_proba(X), to_host(P), atol=1e-6)
    assert home.train_accuracies_ == model.train_accuracies_


@pytest.mark.usefixtures("dispatch")
def test_string_labels_and_numpy_weights_beside_torch_rows(noisy, small):
    torch = pytest.importorskip("torch")
    X, y = noisy
    names = np.array(["a", "b", "c"])[y]
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = clone(small).fit(torch.asarray(X), names, sample_weight=weights)
    assert isinstance(model.classes_, np.ndarray)
    labels = model.predict(torch.asarray(X))
    np.testing.assert_array_equal(labels, clone(small).fit(X, names, sample_weight=weights).predict(X))
    assert isinstance(model.network_.layers[0].W, torch.Tensor)


@pytest.mark.usefixtures("dispatch")
def test_another_library_at_predict_is_an_error_with_a_way_out(noisy, small):
    torch = pytest.importorskip("torch")
    X, y = noisy
    model = small.fit(torch.asarray(X), y)
    with pytest.raises(ValueError, match="must use the same namespace and the same device"):
        model.predict(X)
    np.testing.assert_array_equal(to_numpy(model).predict(X), to_host(model.predict(torch.asarray(X))))


@pytest.mark.usefixtures("dispatch")
def test_a_network_with_string_labels_moves_to_another_library(noisy, small):
    torch = pytest.importorskip("array_api_compat.torch")
    X, y = noisy
    model = small.fit(X, np.array(["a", "b", "c"])[y])
    moved = move_estimator_to(model, torch, "cpu")
    np.testing.assert_array_equal(moved.predict(torch.asarray(X)), model.predict(X))


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


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_layers": 0}, "'n_layers' parameter of EDRVFLClassifier must be an int in the range"),
        ({"n_hidden": 2.5}, "'n_hidden' parameter"),
        ({"n_hidden": True}, "'n_hidden' parameter"),
        ({"n_layers": True}, "'n_layers' parameter"),
        ({"regularization": -1}, "'regularization' parameter"),
        ({"activation": "gelu"}, "'activation' parameter .* must be a str among"),
        ({"renormalize": "yes"}, "'renormalize' parameter"),
        ({"norm_scale": 0}, "'norm_scale' parameter"),
        ({"norm_shift": np.inf}, "'norm_shift' parameter"),
        ({"correct_weight": 0}, "'correct_weight' parameter"),
        ({"correct_weight": 1.1}, "'correct_weight' parameter"),
        ({"prune_rate": 1}, "'prune_rate' parameter"),
        ({"ensemble": "median"}, "'ensemble' parameter"),
        ({"layer_votes": "best"}, "'layer_votes' parameter .* must be a str among"),
        ({"calibration": "isotonic"}, "'calibration' parameter .* must be a str among"),
        ({"encoder": "onehot"}, "'encoder' parameter .* must be a str among"),
        ({"class_weight": "even"}, "'class_weight' parameter"),
        ({"random_state": "now"}, "'random_state' parameter"),
    ],
)
def test_wrong_parameters(wine, params, message):
    with pytest.raises(ValueError, match=message):
        EDRVFLClassifier(**params).fit(*wine)


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


def test_sparse_input(wine, small):
    with pytest.raises(TypeError, match=r"dense data is required\. Use '.toarray\(\)'"):
        small.fit(sparse.csr_array(wine[0].to_numpy()), wine[1])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_columns_that_are_not_numbers_are_named(small, frame):
    X = frame({"age": [1.0, 2.0, 3.0, 4.0], "city": ["Rome", "Oslo", "Rome", "Oslo"]})
    with pytest.raises((ValueError, TypeError), match=r"these are not: city\. Encode them first"):
        small.set_params(encoder=None).fit(X, [0, 1, 0, 1])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("beside", [{"age": [1.0, 2.0, 3.0, 4.0]}, {}], ids=["beside numbers", "alone"])
def test_dates_are_refused_by_name(small, frame, beside):
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 5)]
    with pytest.raises(TypeError, match=r"these are not: born.*dates or times; turn these into numbers"):
        small.fit(frame({**beside, "born": days}), [0, 1, 0, 1])


def test_a_lazy_frame_is_to_be_collected_first(small):
    with pytest.raises(TypeError, match=r"lazy frame\. Collect it first"):
        small.fit(pl.LazyFrame({"age": [1.0, 2.0, 3.0, 4.0]}), [0, 1, 0, 1])


def test_frames_of_numbers_in_general_columns_are_taken(small):
    objects = pd.DataFrame({"a": pd.Series([1, 2.5, 3, 4], dtype=object), "b": pd.Categorical([1, 2, 1, 2])})
    assert small.fit(objects, [0, 1, 0, 1]).n_features_in_ == 2
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": [True, False, True, False]})
    assert small.fit(table, [0, 1, 0, 1]).n_features_in_ == 2


def test_other_columns_at_predict(wine, small):
    X, y = wine
    small.fit(X, y)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        small.predict(X.rename(columns={"alcohol": "spirit"}))
    with pytest.raises(ValueError, match="X has 12 features, but EDRVFLClassifier is expecting 13"):
        small.fit(X.to_numpy(), y).predict(X.to_numpy()[:, 1:])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.linspace(0, 1, 178), "Unknown label type: continuous"),
        (np.eye(178, 3), "y should be a 1d array"),
        (np.zeros(178), "needs at least two classes, but y holds only one class"),
        (None, "requires y to be passed"),
        (np.zeros(5), "inconsistent numbers of samples"),
    ],
)
def test_targets_that_are_not_classes(wine, small, y, message):
    with pytest.raises(ValueError, match=message):
        small.fit(wine[0], y)


def test_one_row_is_one_class(small):
    with pytest.raises(ValueError, match="one class"):
        small.fit([[1.0, 2.0]], [1])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda y: np.zeros(len(y)), "at least one non-zero"),
        (lambda y: -np.ones(len(y)), "Negative values"),
        (lambda y: np.full(len(y), np.nan), "NaN"),
        (lambda y: np.ones(3), "expected"),
        (lambda y: (y == 1).astype(float), "only one class"),
    ],
)
def test_weights_that_cannot_be(wine, small, weights, message):
    X, y = wine
    with pytest.raises(ValueError, match=message):
        small.fit(X, y, sample_weight=weights(y))


def test_a_class_without_weight_is_left_out(wine, small):
    X, y = wine
    assert small.set_params(class_weight={0: 0}).fit(X, y).classes_.tolist() == [1, 2]
    with pytest.raises(ValueError, match="only one class"):
        small.set_params(class_weight={0: 0, 1: 0}).fit(X, y)


def test_predict_before_fit(wine, small):
    with pytest.raises(NotFittedError):
        small.predict(wine[0])


def test_a_fit_that_fails_changes_nothing(wine, small):
    X, y = wine
    before = small.fit(X, y).predict_proba(X)
    attributes = set(vars(small))
    with pytest.raises(ValueError, match="one class"):
        small.fit(X.iloc[:, :4], np.zeros(len(y)))
    assert set(vars(small)) == attributes
    np.testing.assert_array_equal(small.predict_proba(X), before)
    fresh = clone(small)
    with pytest.raises(ValueError, match="one class"):
        fresh.fit(X, np.zeros(len(y)))
    assert not hasattr(fresh, "n_features_in_")


def test_what_decides_an_answer_is_fitted(wine, small):
    X, y = wine
    model = small.fit(X, y)
    before = model.predict_proba(X)
    model.set_params(
        ensemble="vote",
        activation="sin",
        n_hidden=3,
        encoder=None,
        renormalize=False,
        n_layers=1,
        random_state=5,
    )
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.network_.rule == "softmax"
    assert isinstance(model.network_.seed, int)
    assert model.network_.classes.tolist() == [0, 1, 2]


@pytest.mark.parametrize("weights", [1e307, 1e300], ids=["sum overflows", "squares overflow"])
def test_weights_that_overflow_are_named(wine, small, weights):
    X, y = wine
    with pytest.raises(ValueError, match=r"The weights are too large.*Divide the weights by their mean"):
        small.fit(X, y, np.full(len(y), weights))


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


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%:UserWarning")
def test_as_many_classes_as_rows(small):
    X = np.random.default_rng(0).standard_normal((25, 6))
    y = np.arange(25)
    small.set_params(regularization=1e-3)
    assert small.fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("n_hidden", [20, 400])
def test_one_row_at_predict_is_the_same_row_among_many(wine, small, n_hidden):
    X, y = wine
    model = small.set_params(n_hidden=n_hidden).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X.iloc[[5]])[0], model.predict_proba(X)[5], atol=1e-12)


def test_constant_columns_change_nothing_but_the_draw(small, noisy):
    X, y = noisy
    padded = np.column_stack([X, np.full(len(y), 0.1), np.zeros(len(y))])
    model = small.fit(padded, y)
    shifted = padded.copy()
    shifted[:, 5:] += 17  # a column that never moved in fit cannot matter at predict
    np.testing.assert_array_equal(model.predict_proba(padded), model.predict_proba(shifted))


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
    message = r"singular in layer\(s\) 1, 2, 3 with regularization=1e-13; the least-norm solution"
    with pytest.warns(LinAlgWarning, match=message) as seen:
        model.fit(twice, y)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert model.fallback_layers_ == (1, 2, 3)
    assert np.isfinite(model.predict_proba(twice)).all()


def test_callbacks_follow_the_layers(noisy):
    X, y = noisy
    recorder = Recorder()
    model = EDRVFLClassifier(**SMALL, random_state=0).set_callbacks(recorder).fit(X, y)
    layers = ["begin layer", "end layer"] * 3
    assert recorder.told == ["setup", "begin fit", *layers, "end fit", "teardown"]
    for depth, so_far in zip(model.staged_predict_proba(X), recorder.estimators[:3], strict=True):
        np.testing.assert_array_equal(so_far.predict_proba(X), depth)


def test_a_callback_can_end_the_fit(noisy):
    X, y = noisy
    full = EDRVFLClassifier(**SMALL, random_state=0).fit(X, y)
    model = clone(full).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert len(model.network_.layers) == len(model.neurons_kept_) == len(model.regularization_) == 2
    np.testing.assert_array_equal(model.predict_proba(X), list(full.staged_predict_proba(X))[1])


def test_callbacks_are_ended_when_a_fit_fails(noisy):
    X, y = noisy
    recorder = Recorder()
    model = EDRVFLClassifier(**SMALL, renormalize=False, encoder=None).set_callbacks(recorder)
    with pytest.raises(ValueError, match="overflow"):
        model.fit(X * 1e200, y)
    assert recorder.told[-1] == "teardown"
    assert vars(model).keys() - {"_skl_callbacks"} == vars(clone(model)).keys() - {"_skl_callbacks"}


def test_scikit_learns_own_callbacks_work(noisy, capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X, y = noisy
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = EDRVFLClassifier(**SMALL, random_state=0).set_callbacks(callback.ProgressBar(), monitor).fit(X, y)
    assert "EDRVFLClassifier - fit" in capsys.readouterr().out
    by_layer = [row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "layer"]
    assert by_layer == [(stage == y).mean() for stage in model.staged_predict(X)]
