"""Costs of decisions: the class of least expected cost, by the calibrated probabilities."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import noisy_rows, noisy_values
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_models import small_model

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, EDRVFLSearchCV

SMALL = EDRVFLClassifier(n_hidden=12, n_layers=2, random_state=0)
MODELS = ["classifier", "classifier_frame", "classifier_32", "kernel", "portfolio"]
COSTS = np.array([[0.0, 1.0, 500.0], [200.0, 0.0, 1.0], [9.0, 300.0, -1.0]])


def cheapest(P, costs):
    """The place of the class whose costs are least, weighed by the probabilities of the true class."""
    k = len(costs)
    expected = [[sum(p[i] * costs[i][j] for i in range(k)) for j in range(k)] for p in P]
    return np.array([min(range(k), key=lambda j: row[j]) for row in expected])


@pytest.mark.parametrize("name", MODELS)
def test_the_answer_is_the_class_of_least_expected_cost(name):
    model, X = small_model(name)
    expected = model.classes_[cheapest(model.predict_proba(X).astype(float), COSTS.tolist())]
    np.testing.assert_array_equal(model.predict(X, costs=COSTS), expected)
    # a column of the frame tells the class, so that some models are sure
    assert name in ("kernel", "portfolio") or (expected != model.predict(X)).any()


@given(costs=arrays(float, (3, 3), elements=st.floats(-1e300, 1e300)), scale=st.sampled_from([1e-3, 7.0]))
def test_units_of_costs_and_what_a_class_costs_anyway_do_not_matter(costs, scale):
    model, X = small_model("classifier")
    costs = np.round(costs / (np.abs(costs).max() or 1), 3)
    P = model.predict_proba(X)
    totals = np.sort(P @ costs, axis=1)
    clear = totals[:, 1] - totals[:, 0] > 1e-9  # rounding may part classes that cost the same
    found = model.predict(X, costs)[clear]
    np.testing.assert_array_equal(model.predict(X, costs * scale)[clear], found)
    np.testing.assert_array_equal(model.predict(X, costs + 3.0)[clear], found)
    np.testing.assert_array_equal(model.predict(X, 1 - np.eye(3)), model.predict(X))


def test_a_search_and_a_pipeline_pass_costs_on():
    X, y = noisy_rows(np.random.default_rng(0), 90, 4)
    costs = COSTS[: y.max() + 1, : y.max() + 1]
    search = EDRVFLSearchCV(SMALL, {"n_hidden": [8]}, cv=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(search.predict(X, costs), search.best_estimator_.predict(X, costs))
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(SMALL).set_predict_request(costs=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
        found = pipeline.predict(X, costs=costs)
    np.testing.assert_array_equal(found, pipeline[-1].predict(pipeline[0].transform(X), costs))


def test_costs_may_be_an_array_of_any_library():
    torch = pytest.importorskip("torch")
    model, X = small_model("classifier")
    with sklearn.config_context(array_api_dispatch=True):
        np.testing.assert_array_equal(model.predict(X, torch.asarray(COSTS)), model.predict(X, COSTS))


def test_costs_that_make_no_sense_are_refused():
    model, X = small_model("classifier")
    with pytest.raises(ValueError, match="a row and a column for each of the 3 classes"):
        model.predict(X, np.ones((2, 2)))
    with pytest.raises(ValueError, match="costs contains NaN"):
        model.predict(X, np.full((3, 3), np.nan))
    frame = pd.DataFrame(COSTS, model.classes_, model.classes_)
    np.testing.assert_array_equal(model.predict(X, frame), model.predict(X, COSTS))
    np.testing.assert_array_equal(model.predict(X, pd.DataFrame(COSTS)), model.predict(X, COSTS))
    for other in (frame[::-1], frame[frame.columns[::-1]]):
        with pytest.raises(ValueError, match=r"names the classes in the order .* Give costs.loc"):
            model.predict(X, other)
    with pytest.raises(ValueError, match='calibration="loo"'):
        small_model("classifier_plain")[0].predict(X, COSTS)
    X, y = noisy_values(np.random.default_rng(0), 60, 3)
    network = EDRVFLRegressor(n_hidden=4, n_layers=1, random_state=0)
    search = EDRVFLSearchCV(network, {"n_hidden": [4]}, cv=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="tunes a regressor"):
        search.predict(X, COSTS)
