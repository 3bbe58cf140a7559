"""Every estimator reads every kind of column: dates, times of day, durations and text beside numbers."""

import copy
import dataclasses

import polars as pl
import pyarrow as pa
import pytest
from hostile import loaded
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from small_models import kinds, small_model

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLSearchCV,
    KernelRidgeRegressor,
    TabularEncoder,
    feature_importance,
    load,
)
from edrvfl._inputs.dates import Dates
from edrvfl._inputs.text import Text
from edrvfl._leaving.files.models import packed_model

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
    if name in ("network", "kernel"):
        again = clone(model).fit(other, value if name == "kernel" else y)
        assert_array_equal(again.predict(X), model.predict(X))
        model.save(tmp_path / "m")
        assert_array_equal(load(tmp_path / "m").predict(X), model.predict(X))


def test_a_date_and_a_text_have_one_importance_each():
    X, y, _ = kinds(90)
    X = X[["a", "when", "say"]]  # the first and the last tell the class
    found = feature_importance(EDRVFLClassifier(encoder=TEXT, **SMALL).fit(X, y), X, random_state=0)
    assert found.feature_names == ["a", "when", "say"]
    assert found.importances_mean[[0, 2]].min() > 0.2 > 0.1 > found.importances_mean[1]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Dates("date", 19_000, "Nowhere/Town"), "time zone 'Nowhere/Town', which this machine does not"),
        (Dates("time", 7), "must be 0, and the zone absent, of what is no date"),
        (Dates("year"), "must be one of date, time, duration"),
        (Text(7), "must be"),  # there are as many columns as the network takes
        (Text(32, 2), "from 1 to 1"),
    ],
    ids=str,
)
def test_files_whose_dates_or_text_make_no_sense_are_refused(kind, message):
    model, _ = small_model("kinds")
    columns = model.network_.columns
    place = next(j for j, known in enumerate(columns.kinds) if type(known) is type(kind))
    kinds = (*columns.kinds[:place], kind, *columns.kinds[place + 1 :])
    bad = copy.copy(model)
    bad.network_ = dataclasses.replace(model.network_, columns=dataclasses.replace(columns, kinds=kinds))
    with pytest.raises(ValueError, match=message):
        loaded(packed_model(bad))


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
