"""Guests: estimators of scikit-learn in a portfolio, judged by rows that they did not see."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import noisy_rows, noisy_values
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import edrvfl
from edrvfl import (
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    MembersDisplay,
    RowBlocks,
    feature_importance,
    to_numpy,
    to_onnx,
)
from edrvfl._fitting.data import InMemory
from edrvfl._fitting.folds import deal_folds
from edrvfl._fitting.guest import N_FOLDS, fit_guest, prepared, without_folds
from edrvfl._fitting.inputs import learn_network_inputs
from edrvfl._fitting.settings import guest_settings
from edrvfl._inputs.rows import prepare_rows, prepare_values
from edrvfl._inputs.table import learn_table, open_table
from edrvfl._loo.calibrate import SMALLEST, calibrate
from edrvfl._models.guest import UNIFORM

TREE = DecisionTreeClassifier(max_depth=4)
FOREST = RandomForestClassifier(40)


def classes(*members, **params):
    return EDRVFLPortfolioClassifier(members=[*members], **{"random_state": 0, **params})


def values(*members, **params):
    return EDRVFLPortfolioRegressor(members=[*members], **{"random_state": 0, **params})


def fit_alone(guest, X, y, weights=None, class_weight=None, seed=3):
    """Fit a guest as a portfolio does; return the rows as a fit has them, and what came out."""
    table, columns = learn_table(open_table(X), "from_dtype")
    is_value = np.asarray(y).dtype.kind == "f"
    rows = prepare_values(table, y, weights) if is_value else prepare_rows(table, y, weights, class_weight)
    data, settings = InMemory(rows, columns), guest_settings(guest)
    return data, fit_guest(data, settings, learn_network_inputs(data, settings.inputs, seed), seed)


def calibrated_by_parts(P, y, parts):
    """Calibrate probabilities by one temperature, each part by the others."""
    P = (1 - UNIFORM) * P + UNIFORM / P.shape[1]
    found = P.copy()
    for part in np.unique(parts):
        others = parts != part
        found[~others] = calibrate(P[others], y[others], None, "temperature")(P[~others])
    return found


# --- honest answers --------------------------------------------------------------------------------------


def test_answers_by_folds_are_those_of_a_loop_over_the_same_folds(rng):
    X, y = noisy_rows(rng, 150, 4)
    data, done = fit_alone(TREE, X, y)
    P = np.zeros((150, 3))
    folds = deal_folds(prepare_rows(X, y), None, 5)
    assert len(folds) == N_FOLDS == 5
    for fold in folds:
        n = len(fold.places)
        outside, inside = fold.order[:-n], fold.order[-n:]
        P[inside] = (
            clone(TREE).set_params(random_state=3).fit(X[outside], y[outside]).predict_proba(X[inside])
        )
    expected = calibrated_by_parts(P, y, data.jury.dealt.parts)
    np.testing.assert_allclose(done.stage.P, expected, rtol=1e-6)
    assert done.stage.loss == pytest.approx(-np.log(expected[np.arange(150), y]).mean())
    whole = clone(TREE).set_params(random_state=3).fit(X, y).predict_proba(X)
    whole = (1 - UNIFORM) * whole + UNIFORM / 3
    np.testing.assert_allclose(done.model.answer(X), done.stage.calibration(whole))


def test_a_forest_answers_out_of_bag_as_scikit_learn_says(rng):
    X, y = noisy_rows(rng, 150, 4)
    data, done = fit_alone(FOREST, X, y)
    alone = clone(FOREST).set_params(oob_score=True, random_state=3).fit(X, y)
    expected = calibrated_by_parts(alone.oob_decision_function_, y, data.jury.dealt.parts)
    np.testing.assert_allclose(done.stage.P, expected, rtol=1e-6)
    assert done.guest.oob_score
    X, y = noisy_values(rng, 100, 4)
    for forest in (RandomForestRegressor(40), BaggingRegressor(n_estimators=40)):
        data, done = fit_alone(forest, X, y)
        standard = data.rows.targets.Y[:, 0]
        np.testing.assert_allclose(standard, (y - y.mean()) / y.std())
        alone = clone(forest).set_params(oob_score=True, random_state=3).fit(X, standard)
        np.testing.assert_allclose(done.stage.P[:, 0], alone.oob_prediction_, atol=1e-6)
        np.testing.assert_allclose(done.model.answer(X)[:, 0], alone.predict(X) * y.std() + y.mean())


@pytest.mark.parametrize(
    "guest",
    [ExtraTreesClassifier(20), RandomForestClassifier(20, bootstrap=False), RandomForestClassifier(3)],
    ids=["extra trees", "no bootstrap", "rows that were in all bags"],
)
def test_a_forest_without_answers_out_of_bag_goes_by_folds(rng, guest):
    X, y = noisy_rows(rng, 150, 4)
    rows = prepare_rows(X, y)
    data, done = fit_alone(guest, X, y)
    folds = deal_folds(rows, None, 5)
    P = without_folds(prepared(guest, None, 3), rows, folds, np.arange(150))
    expected = calibrated_by_parts(P, y, data.jury.dealt.parts)
    np.testing.assert_allclose(done.stage.P, expected, rtol=1e-6)


def test_a_rare_class_that_is_in_every_bag_goes_by_folds(rng):
    X, y = noisy_rows(rng, 200, 4)
    y = (np.arange(200) < 10).astype(int)
    X[:10] += 2
    _, done = fit_alone(RandomForestClassifier(200), X, y, class_weight="balanced")
    assert done.stage.P[:10, 1].mean() > 0.5


@pytest.mark.parametrize("guest", [TREE, FOREST, KNeighborsClassifier()], ids=str)
def test_a_rows_own_label_has_no_say_in_its_answer(rng, guest):
    X, y = noisy_rows(rng, 80, 3)
    rows, made = prepare_rows(X, y), prepared(guest, None, 0)
    folds = deal_folds(rows, None, 5)

    def answers(rows):
        if hasattr(made, "oob_score"):
            return clone(made).fit(X, rows.targets.codes).oob_decision_function_
        return without_folds(made, rows, folds, np.arange(80))

    before, changes = answers(rows), 0
    for i in (0, 7, 20):
        other = y.copy()
        other[i] = (y[i] + 1) % 3
        after = answers(dataclasses.replace(rows, targets=prepare_rows(X, other).targets))
        np.testing.assert_array_equal(after[i], before[i])
        changes += int((after != before).sum())
    assert changes > 0


def test_noise_is_called_noise(rng):
    X, y = rng.normal(size=(400, 10)), rng.integers(0, 2, 400)
    copies = np.concatenate([X, X[:200]])  # which are one row, so that no copy is out of the bag or the fold
    model = classes(("tree", DecisionTreeClassifier()), ("forest", FOREST)).fit(copies, [*y, *y[:200]])
    assert max(model.members_["loo_accuracy"]) < 0.62


# --- weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guest", [TREE, GaussianNB(), KNeighborsClassifier(4)], ids=str)
def test_weight_2_is_the_row_twice(rng, guest):
    X, y = noisy_rows(rng, 90, 4)
    weights = rng.integers(1, 4, 90)
    twice = np.repeat(np.arange(90), weights)
    of_weights = classes(("guest", guest)).fit(X, y, sample_weight=weights)
    of_rows = classes(("guest", guest)).fit(X[twice], y[twice])
    np.testing.assert_allclose(of_weights.predict_proba(X), of_rows.predict_proba(X), atol=1e-12)
    assert of_weights.loo_log_loss_ == pytest.approx(of_rows.loo_log_loss_)
    # without one fold more or less, it is the estimator on rows that come so often
    (voter,) = of_weights.portfolio_.voters
    alone = clone(voter.estimator).fit(voter.inputs.apply(X[twice]), y[twice])  # of the same seed
    np.testing.assert_allclose(
        voter.estimator.predict_proba(voter.inputs.apply(X)),
        alone.predict_proba(voter.inputs.apply(X)),
        atol=1e-9,
    )


def test_the_scale_of_weights_below_1_does_not_matter(rng):
    X, y = noisy_rows(rng, 90, 4)
    weights = rng.choice([1.0, 2.0], 90)
    guest = HistGradientBoostingClassifier(max_iter=10)
    fits = [classes(("guest", guest)).fit(X, y, sample_weight=s * weights) for s in (1e-6, 1e-3)]
    np.testing.assert_allclose(*(model.predict_proba(X) for model in fits))


def test_classes_of_weight_are_weights_of_their_rows(rng):
    X, y = noisy_rows(rng, 90, 4)
    model = classes(("tree", TREE), class_weight={0: 5.0, 1: 1.0, 2: 1.0}).fit(X, y)
    (voter,) = model.portfolio_.voters
    alone = clone(voter.estimator).fit(X, y, sample_weight=np.where(y == 0, 5.0, 1.0))
    np.testing.assert_array_equal(voter.estimator.predict_proba(X), alone.predict_proba(X))


# --- the portfolio ---------------------------------------------------------------------------------------


def test_the_answer_is_the_weighted_mean_of_estimators_fitted_alone(rng):
    X, y = noisy_rows(rng, 150, 4)
    new = noisy_rows(rng, 30, 4)[0]
    kernel = KernelRidgeClassifier(bandwidth=1.0, regularization=0.5, input_scaling=None)
    model = classes(("kernel", kernel), ("forest", FOREST), calibration=None).fit(X, y)
    table = model.members_
    forest = clone(table["settings"][1]).fit(X, y)
    P = (1 - UNIFORM) * forest.predict_proba(new) + UNIFORM / 3
    P = model.portfolio_.voters[1].calibration(P)
    K = clone(kernel).set_params(calibration="temperature").fit(X, y).predict_proba(new)
    w = table["weight"]
    assert min(w) > 0
    expected = softmax(w[0] * np.log(K + SMALLEST) + w[1] * np.log(P + SMALLEST), axis=1)
    np.testing.assert_allclose(model.predict_proba(new), expected, atol=1e-9)
    assert isinstance(table["settings"][1], RandomForestClassifier)
    assert table["n_layers"] == [None, None]
    assert min(table["seconds"]) > 0


def test_equal_weights_are_those_of_three_kinds(rng):
    X, y = noisy_rows(rng, 60, 4)
    ours = dict(edrvfl.EDRVFLPortfolioClassifier.default_members())
    own = [(name, ours[name]) for name in ("laplace kernel", "dense")]
    model = classes(*own, ("a", TREE), ("b", GaussianNB()), weights="equal").fit(X, y)
    np.testing.assert_allclose(model.members_["weight"], [1 / 3, 1 / 3, 1 / 6, 1 / 6])


def test_values_of_one_output_and_of_several(rng):
    X, y = noisy_values(rng, 120, 4)
    trees = [("extra", "trees"), ("boosted", "trees")]
    members = EDRVFLPortfolioRegressor.default_members(trees=True)
    assert [name for name, _ in members[-2:]] == [" ".join(name) for name in trees]
    model = values(*members[-2:], ("linear", LinearRegression())).fit(X, 1000 + 50 * y)
    assert model.score(X, 1000 + 50 * y) > 0.5
    lower, upper = model.predict_interval(X)
    assert (lower < upper).all()
    Y = np.stack([y, -3 * y + X[:, 0]], axis=1)
    boosted = MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=20))
    both = values(("forest", RandomForestRegressor(40)), ("boosted", boosted)).fit(X, Y)
    assert both.predict(X).shape == (120, 2)
    assert both.score(X, Y) > 0.5


@pytest.fixture
def guests(rng):
    """A frame with categories, gaps in all columns, and labels."""
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 300).astype(float),
            "city": pd.Categorical(rng.choice(["Lyon", "Oslo", "Rome"], 300)),
            "job": rng.choice(["cook", "nurse", None], 300),
        }
    )
    frame.loc[::7, "age"] = None
    returns = np.where((frame["city"] == "Oslo") | (frame["job"] == "cook"), "yes", "no")
    return frame, returns


def test_frames_reach_a_guest_as_it_wants_them(guests):
    frame, returns = guests
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = classes(
        *EDRVFLPortfolioClassifier.default_members(trees=True)[-2:],
        ("linear", LogisticRegression()),
        ("pipeline", pipeline),
        weights="equal",
    ).fit(frame, returns)
    settings = dict(zip(model.members_["member"], model.members_["settings"], strict=True))
    assert settings["boosted trees"].categorical_features == [1, 2]
    widths = [voter.inputs.width for voter in model.portfolio_.voters]
    assert widths == [3, 3, 8, 8]  # age and its gaps, three cities, two jobs and none
    assert model.loo_accuracy_ > 0.97
    new = pd.DataFrame(
        {"age": [None, 41.0, 7], "city": ["Rome", None, "Bern"], "job": ["nurse", "cook", "poet"]}
    )
    assert list(model.predict(new)[:2]) == ["no", "yes"]
    assert np.isfinite(model.predict_proba(new)).all()
    assert model.predict_set(new).shape == (3, 2)


def test_columns_of_many_categories_are_numbers_for_boosting(rng):
    frame = pd.DataFrame({"many": [f"c{i}" for i in range(300)] * 2, "few": ["a", "b", "c"] * 200})
    y = rng.integers(0, 2, 600)
    _, done = fit_alone(HistGradientBoostingClassifier(max_iter=5), frame, y)
    assert done.guest.categorical_features == [1]


def test_a_portfolio_with_guests_is_shown_pickled_and_moved(rng, capsys):
    X, y = noisy_rows(rng, 60, 3)
    model = classes(("kernel", KernelRidgeClassifier()), ("forest", FOREST), verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert any("forest: leave-one-out accuracy" in line for line in lines)
    assert "forest" in model._repr_html_()
    assert MembersDisplay.from_estimator(model).names == ["kernel", "forest"]
    assert feature_importance(model, X[:20], n_repeats=1).importances_mean.shape == (3,)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), expected)
    np.testing.assert_array_equal(to_numpy(model).predict_proba(X), expected)
    again = classes(("kernel", KernelRidgeClassifier()), ("forest", FOREST)).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), expected)


def test_numbers_that_float32_does_not_hold_are_its_largest(rng):
    X, y = noisy_rows(rng, 60, 3)
    model = classes(("tree", TREE)).fit(X * [1, 1e-200, 1e200], y)
    assert np.isfinite(model.predict_proba(X * 1e250)).all()


def test_few_rows_have_folds_or_the_mean_of_the_others(rng):
    X = rng.normal(size=(5, 2))
    for y in ([0, 0, 1, 1, 1], [0, 1, 1, 1, 1]):
        model = classes(("linear", LogisticRegression())).fit(X, y)
        assert np.isfinite(model.loo_log_loss_)
    rows = prepare_rows(X[:3], np.array([0, 1, 1]))
    found = without_folds(TREE, rows, deal_folds(rows, None, 5), np.arange(3))
    np.testing.assert_allclose(found, [[0, 1], [0.5, 0.5], [0.5, 0.5]])
    few = values(("tree", DecisionTreeRegressor())).fit(X[:3], [1.0, 2.0, 4.0])
    assert np.isfinite(few.loo_r2_score_)


def test_rows_in_blocks_that_are_all_in_memory_are_learnt_from(rng):
    X, y = noisy_rows(rng, 200, 4)
    blocks = RowBlocks([(X[:90], y[:90]), (X[90:], y[90:])])
    of_blocks, whole = (classes(("tree", TREE)).fit(*given) for given in ((blocks,), (X, y)))
    np.testing.assert_allclose(of_blocks.predict_proba(X), whole.predict_proba(X), atol=1e-9)


# --- bad input -------------------------------------------------------------------------------------------


class Unweighted(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), np.nan)


@pytest.mark.parametrize(
    ("guest", "error", "phrase"),
    [
        (RidgeClassifier(), TypeError, "'a' has no predict_proba.*CalibratedClassifierCV.RidgeClassifier"),
        (LinearRegression(), TypeError, "or a classifier that follows scikit-learn"),
        (RandomForestClassifier, TypeError, "or a classifier that follows scikit-learn"),
        (StandardScaler(), TypeError, "or a classifier that follows scikit-learn"),
        (EDRVFLPortfolioClassifier(), TypeError, "must be an EDRVFLClassifier"),
        (RandomForestClassifier(n_estimators=0), ValueError, "Member 'a': The 'n_estimators' parameter"),
        (Unweighted(), ValueError, "Member 'a': the Unweighted answers with numbers that are not finite"),
    ],
)
def test_guests_that_cannot_be(rng, guest, error, phrase):
    with pytest.raises(error, match=phrase):
        classes(("a", guest)).fit(*noisy_rows(rng, 40, 3))


def test_rows_that_a_guest_cannot_learn_from(rng):
    X, y = noisy_rows(rng, 40, 3)
    with pytest.raises(ValueError, match="'a' is a KNeighborsClassifier, which takes no sample_weight"):
        classes(("a", KNeighborsClassifier())).fit(X, y, sample_weight=rng.random(40))
    with pytest.raises(ValueError, match="or classes have weights"):
        classes(("a", KNeighborsClassifier()), class_weight="balanced").fit(X, np.arange(40) > 10)
    with pytest.raises(ValueError, match=r"takes one output, but y has 2.*MultiOutputRegressor"):
        values(("a", HistGradientBoostingRegressor())).fit(X, X[:, :2])
    xp = pytest.importorskip("torch")
    with (
        sklearn.config_context(array_api_dispatch=True),
        pytest.raises(ValueError, match="takes NumPy arrays and frames only, but the rows are in torch"),
    ):
        classes(("a", TREE)).fit(xp.asarray(X), xp.asarray(y))


def test_rows_that_are_elsewhere_are_refused(rng):
    X, y = noisy_values(rng, 12_000, 3)
    blocks = RowBlocks([(X[:6000], y[:6000]), (X[6000:], y[6000:])])
    with pytest.raises(ValueError, match="'a' is a KNeighborsRegressor, which needs all rows in memory"):
        values(("kernel", KernelRidgeRegressor()), ("a", KNeighborsRegressor())).fit(blocks)


def test_a_file_and_a_graph_have_no_place_for_guests(rng, tmp_path):
    model = classes(("kernel", KernelRidgeClassifier()), ("oak", FOREST)).fit(*noisy_rows(rng, 60, 3))
    with pytest.raises(ValueError, match=r"'oak' is a RandomForestClassifier, which .* skops"):
        model.save(tmp_path / "model.edrvfl")
    assert not list(tmp_path.iterdir())
    pytest.importorskip("onnx.helper")  # tests/onnx is an "onnx" too
    with pytest.raises(NotImplementedError, match="a member is a RandomForestClassifier"):
        to_onnx(model)


def test_skops_keeps_a_portfolio_with_guests(rng):
    skops = pytest.importorskip("skops.io")
    X, y = noisy_rows(rng, 60, 3)
    members = EDRVFLPortfolioClassifier.default_members(trees=True)[-2:]
    model = classes(("kernel", KernelRidgeClassifier()), *members).fit(X, y)
    content = skops.dumps(model)
    others = set(skops.get_untrusted_types(data=content)) - set(edrvfl.TRUSTED_TYPES)
    assert all(name.startswith(("sklearn.", "numpy.")) for name in others)
    again = skops.loads(content, trusted=[*edrvfl.TRUSTED_TYPES, *others])
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
