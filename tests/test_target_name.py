"""A model keeps the name of the column that it predicts, in memory and in its file."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    EDRVFLSearchCV,
    KernelRidgeClassifier,
    RowBlocks,
    load,
)

X, Y = np.random.default_rng(0).normal(size=(30, 2)), np.tile([0, 1], 15)
SMALL = {"n_hidden": 4, "n_layers": 1, "random_state": 0}
MODELS = [
    EDRVFLClassifier(**SMALL),
    EDRVFLRegressor(**SMALL),
    KernelRidgeClassifier(),
    EDRVFLPortfolioRegressor(members=[("one", EDRVFLRegressor(n_hidden=4, n_layers=1))]),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("series", [pd.Series(Y, name="churn"), pl.Series("churn", Y)])
def test_the_name_of_a_series_is_kept_saved_and_forgotten(model, series, tmp_path):
    assert model.fit(X, series).target_name_ == "churn"
    model.save(tmp_path / "m.edrvfl")
    assert load(tmp_path / "m.edrvfl").target_name_ == "churn"
    model.fit(X, Y).save(tmp_path / "m.edrvfl")
    assert not hasattr(load(tmp_path / "m.edrvfl"), "target_name_")


def test_only_texts_are_names_and_a_fit_that_fails_changes_nothing():
    model, series = EDRVFLClassifier(**SMALL), pd.Series(Y, name="churn")
    for nameless in (Y.tolist(), pd.Series(Y), pd.Series(Y, name=7), pl.Series(Y)):
        assert not hasattr(model.fit(X, series).fit(X, nameless), "target_name_")
    assert not hasattr(model.fit(X, series).fit(RowBlocks([(X, Y)])), "target_name_")
    model.fit(X, series)
    with pytest.raises(ValueError, match="class"):
        model.fit(X, pd.Series(Y * 0, name="other"))
    assert model.target_name_ == "churn"


def test_the_best_of_a_search_has_the_name():
    search = EDRVFLSearchCV(EDRVFLClassifier(**SMALL), n_iter=2, cv=2, random_state=0)
    assert search.fit(X, pd.Series(Y, name="churn")).best_estimator_.target_name_ == "churn"


def test_a_name_that_is_no_text_is_refused(tmp_path):
    model = EDRVFLClassifier(**SMALL).fit(X, Y)
    model.target_name_ = 7
    with pytest.raises(ValueError, match="target_name_"):
        model.save(tmp_path / "model.edrvfl")
    assert not list(tmp_path.iterdir())
