"""Every estimator reads every kind of column: dates, times of day, durations and text beside numbers."""

import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from small_models import kinds

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLSearchCV,
    KernelRidgeRegressor,
    TabularEncoder,
    feature_importance,
    load,
)

SMALL = {"n_hidden": 20, "n_layers": 2, "random_state": 0}
TEXT = TabularEncoder("bins", text_features=["say"])
MEMBERS = [
    ("sparse", EDRVFLClassifier(n_hidden=20, n_layers=1, inputs_per_neuron=2, encoder="bins")),
    ("trees", HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3)),
]
ESTIMATORS = {
    "network": EDRVFLClassifier(encoder=TEXT, **SMALL),
    "kernel": KernelRidgeRegressor(encoder=TEXT, random_state=0),
    "portfolio": EDRVFLPortfolioClassifier(members=MEMBERS, text_features=["say"], random_state=0),
    "search": EDRVFLSearchCV(
        EDRVFLClassifier(**SMALL), {"encoder": [TEXT, "standard"]}, n_iter=2, cv=2, random_state=0
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_answers_are_the_same_bits_in_every_library_and_from_a_file(name, tmp_path):
    X, y, value = kinds(90)
    X = X.drop(columns=["d", "e"])  # polars knows no categories that are numbers, the trees no empty column
    model = clone(ESTIMATORS[name]).fit(X, value if name == "kernel" else y)
    ask = model.predict if name == "kernel" else model.predict_proba
    for other in (pl.from_pandas(X), pa.Table.from_pandas(X)):
        assert_array_equal(ask(other), ask(X))
        assert_array_equal(
            clone(model).fit(other, value if name == "kernel" else y).predict(X), model.predict(X)
        )
    if name in ("network", "kernel"):
        model.save(tmp_path / "m")
        assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_a_date_and_a_text_have_one_importance_each():
    X, y, _ = kinds(90)
    X = X[["a", "when", "say"]]  # the first and the last tell the class
    found = feature_importance(EDRVFLClassifier(encoder=TEXT, **SMALL).fit(X, y), X, random_state=0)
    assert found.feature_names == ["a", "when", "say"]
    assert found.importances_mean[[0, 2]].min() > 0.2 > 0.1 > found.importances_mean[1]


def test_updates_read_dates_and_text():
    X, y, _ = kinds(90)
    model = EDRVFLClassifier(encoder=TEXT, remember="sums", weight_from="train", **SMALL).fit(X[:60], y[:60])
    before = model.predict_proba(X)
    model.update(X[60:], y[60:])
    model.forget(X[60:], y[60:])
    assert_allclose(model.predict_proba(X), before, atol=1e-6)


def test_without_an_encoder_dates_are_refused():
    X, y, _ = kinds(90)
    with pytest.raises(TypeError, match="encoder=None, but these are not: when, wait"):
        EDRVFLClassifier(encoder=None).fit(X[["when", "wait"]], y)
