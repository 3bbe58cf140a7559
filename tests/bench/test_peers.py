"""The rows of what users would pick instead: defaults first, one thread, any labels, probabilities."""

import json
import pickle
import re
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from edrvfl.bench.baselines.boosting import BOOSTERS, Coded, EarlyStopped, make_booster
from edrvfl.bench.baselines.fnn.training import hold_out
from edrvfl.bench.baselines.peers import SPACES, SoftmaxSVC, calibrated_svm, configurations
from edrvfl.bench.baselines.randomised import LogInteger, seed_sequence
from edrvfl.bench.methods import METHOD_GROUPS, METHODS, TABLE

PEERS = {name: METHODS[name] for name in METHOD_GROUPS["peers"]}
EXTRAS = ("LightGBM", "XGBoost", "CatBoost")


@pytest.fixture(params=list(PEERS))
def peer(request):
    row = PEERS[request.param]
    if message := row.missing():
        pytest.skip(message)
    return row


def split(load):
    X, y = load(return_X_y=True)
    return train_test_split(X, y, stratify=y, random_state=0)


def short(peer):
    """Few trees, where the model has trees."""
    if peer.epochs is not None:
        return {peer.epochs: 20}
    return {"n_estimators": 20} if "n_estimators" in SPACES[peer.name] else {}


@pytest.mark.parametrize("name", list(PEERS))
def test_first_configuration_is_the_defaults_and_the_others_lie_inside_the_space(name):
    draw = PEERS[name].configurations
    drawn = draw(40, 3)
    assert drawn[0] == {}
    assert len({json.dumps(c) for c in drawn}) == 40
    assert json.loads(json.dumps(drawn)) == drawn == draw(40, 3) != draw(40, 4)
    if name != "RBF-SVM":  # a grid, of which no point is drawn twice
        assert draw(5, 3) == drawn[:5], "more trials go on where fewer end"
    for c in drawn[1:]:
        assert c.keys() == SPACES[name].keys()
        for key, axis in SPACES[name].items():
            if isinstance(axis, tuple):
                assert c[key] in axis or c[key] == pytest.approx(
                    min(axis, key=lambda v: abs(v - c[key])), 1e-5
                )
            else:
                assert isinstance(c[key], int) == isinstance(axis, LogInteger)
                low, high = (axis.low, axis.high) if isinstance(axis, LogInteger) else axis.support()
                assert low <= c[key] <= high


def test_learns_and_its_probabilities_make_a_log_loss(peer):
    for load in (load_wine, load_breast_cancer):
        X_train, X_test, y_train, y_test = split(load)
        model = peer.estimator(random_state=0, **short(peer)).fit(X_train, y_train)
        P = model.predict_proba(X_test)
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        assert model.predict(X_test).shape == y_test.shape
        assert np.mean(model.predict(X_test) == y_test) > 0.9
        assert log_loss(y_test, P) < 0.6


def test_takes_labels_with_a_gap_and_every_drawn_configuration(peer):
    """A rare class may be absent from the rows of a fit: codes 0, 2, 5."""
    X, y = load_wine(return_X_y=True)
    codes = np.array([0, 2, 5])[y]
    configuration = pickle.loads(pickle.dumps(peer)).configurations(2, 1)[1] | short(peer)
    model = pickle.loads(pickle.dumps(peer.estimator(random_state=1, **configuration)))
    P = model.fit(X, codes).predict_proba(X)
    assert np.asarray(model.classes_).tolist() == [0, 2, 5]
    assert set(model.predict(X)) <= {0, 2, 5}
    if peer.name != "RBF-SVM":  # of which many a C and gamma answer one class for all rows
        assert np.mean(np.array([0, 2, 5])[P.argmax(1)] == codes) > 0.9
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), P)


def test_same_seed_same_model(peer):
    X, y = load_wine(return_X_y=True)
    one, two = (peer.estimator(random_state=4, **short(peer)).fit(X, y).predict_proba(X) for _ in range(2))
    assert np.array_equal(one, two)


def test_every_model_is_told_to_use_one_thread(peer):
    model = peer.estimator(random_state=0)
    if isinstance(model, EarlyStopped):
        model = make_booster(peer.name, random_state=0)
    params = model.get_params()
    threads = [v for k, v in params.items() if k.rpartition("__")[2] in ("n_jobs", "thread_count")]
    assert [t for t in threads if t is not None] in ([], [1])
    if TABLE[peer.name].package != "sklearn":
        assert 1 in threads


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("LogisticRegression", make_pipeline(StandardScaler(), LogisticRegression())),
        ("RBF-SVM", make_pipeline(StandardScaler(), SVC())),
        ("RandomForest", RandomForestClassifier(random_state=0)),
        ("HistGradientBoosting", HistGradientBoostingClassifier(random_state=0)),
    ],
)
def test_defaults_are_those_of_the_package(name, plain):
    X_train, X_test, y_train, _ = split(load_wine)
    ours = PEERS[name].estimator(random_state=0, **PEERS[name].configurations(1, 0)[0])
    expected = clone(plain).fit(X_train, y_train).predict(X_test)
    assert np.array_equal(ours.fit(X_train, y_train).predict(X_test), expected)


def test_svm_probabilities_are_the_softmax_of_its_decision():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SoftmaxSVC().fit(X, y)
    exp = np.exp(model.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X), exp / exp.sum(axis=1, keepdims=True))
    binary = SoftmaxSVC().fit(X, y == 1)
    odds = np.exp(binary.decision_function(X))
    np.testing.assert_allclose(binary.predict_proba(X)[:, 1], odds / (1 + odds))
    assert np.array_equal(binary.predict_proba(X)[:, 1] > 0.5, binary.predict(X))


def test_calibrated_svm_is_what_scikit_learn_recommends_and_takes_rare_classes():
    X_train, X_test, y_train, y_test = split(load_wine)
    plain = CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False)
    P = calibrated_svm(random_state=3).fit(X_train, y_train).predict_proba(X_test)
    np.testing.assert_array_equal(P, clone(plain).fit(X_train, y_train).predict_proba(X_test))
    assert log_loss(y_test, P) < log_loss(
        y_test, PEERS["RBF-SVM"].estimator().fit(X_train, y_train).predict_proba(X_test)
    )
    rare = np.r_[y_train[:-3], 7, 7, 9]  # two rows and one row
    with pytest.raises(ValueError, match="5-fold"):
        clone(plain).set_params(cv=5).fit(X_train, rare)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn says that the classes are rare
        model = calibrated_svm().fit(X_train, rare)
    assert model.classes_.tolist() == [0, 1, 2, 7, 9]
    P = model.predict_proba(X_test)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.isfinite(P).all()
    assert np.mean(model.predict(X_test) == y_test) > 0.9


@pytest.mark.parametrize("name", list(BOOSTERS))
def test_boosting_stops_where_the_rows_that_it_holds_out_are_answered_best_and_answers_so(name):
    if message := PEERS[name].missing():
        pytest.skip(message)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    y = np.where(X[:, 0] + rng.standard_normal(400) > 0, "yes", "no")
    make = partial(PEERS[name].estimator, random_state=3, learning_rate=0.3)
    found = make().fit(X, y)
    assert 1 <= found.n_rounds_ < 100, "the labels are noisy, so few rounds are best"
    held = hold_out(np.unique(y, return_inverse=True)[1], 0.1, np.random.default_rng(seed_sequence(3)))
    losses = []
    for rounds in range(1, found.n_rounds_ + 11):
        model = make(n_rounds=rounds).fit(X[~held], y[~held])
        assert model.n_rounds_ == rounds
        losses.append(log_loss(y[held], model.predict_proba(X[held])))
    if name != "CatBoost":  # whose trees depend on how many are asked for
        # LightGBM and XGBoost count the loss in float32
        assert losses[found.n_rounds_ - 1] == pytest.approx(min(losses), rel=1e-5)
        best = make(n_rounds=found.n_rounds_).fit(X[~held], y[~held])
        np.testing.assert_allclose(found.predict_proba(X), best.predict_proba(X), rtol=1e-6)
        assert np.array_equal(found.predict(X), best.predict(X))


def test_a_given_number_of_rounds_is_boosted_on_every_row_however_many():
    """scikit-learn holds rows out by itself above 10 000."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10_100, 2))
    y = rng.integers(2, size=len(X))
    model = PEERS["HistGradientBoosting"].estimator(random_state=0, learning_rate=0.5, n_rounds=30)
    assert model.fit(X, y).n_rounds_ == 30


@pytest.mark.parametrize("name", list(BOOSTERS))
def test_boosting_takes_rows_of_which_none_can_be_held_out(name):
    if message := PEERS[name].missing():
        pytest.skip(message)
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 3, 7])
    model = PEERS[name].estimator(random_state=0, learning_rate=0.3).fit(X, y)
    assert model.n_rounds_ >= 1
    assert model.predict_proba(X).shape == (3, 3)


def test_coded_gives_the_labels_back():
    X, y = load_wine(return_X_y=True)
    names = np.array(["red", "rose", "white"])[y]
    model = Coded(RandomForestClassifier(n_estimators=5, random_state=0)).fit(X, names)
    assert model.estimator_.classes_.tolist() == [0, 1, 2]
    expected = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, names)
    assert np.array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-14)


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_package_is_named_with_its_extra_before_and_in_a_fit(name, monkeypatch):
    package = TABLE[name].package
    monkeypatch.setitem(sys.modules, package, None)
    message = PEERS[name].missing()
    assert message == f"{name} needs the package {package}: pip install 'edrvfl[peers]'"
    with pytest.raises(ImportError, match=re.escape(message)):
        PEERS[name].estimator(random_state=0).fit(*load_wine(return_X_y=True))


def test_scikit_learns_own_models_need_no_package():
    assert [n for n in PEERS if TABLE[n].package == "sklearn" and PEERS[n].missing()] == []


def test_catboost_writes_no_files(tmp_path, monkeypatch):
    pytest.importorskip("catboost")
    monkeypatch.chdir(tmp_path)
    X, y = load_wine(return_X_y=True)
    make_booster("CatBoost", random_state=0, iterations=3).fit(X, y).predict_proba(X)
    assert list(tmp_path.iterdir()) == []


def test_no_trials_is_refused():
    with pytest.raises(ValueError, match="trials must be at least 1"):
        configurations(0, 0, space="RBF-SVM")
