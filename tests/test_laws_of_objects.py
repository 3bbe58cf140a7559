"""Laws of every estimator as an object: copies, failures, frames, callbacks, and what it refuses."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import ALL, EVERYBODY, NETWORKS, SIX, answer, figures, fitted, rows_for
from helpers import Recorder
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
    to_numpy,
)

CLASSES = [name for name in SIX if name.startswith("class")]
VALUES = [name for name in SIX if name.startswith("value")]
every_class_of_them = pytest.mark.parametrize("name", SIX)


# --- copies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERYBODY)
def test_a_copy_answers_alike_and_the_data_stay_as_they_were(name):
    model, X, y = fitted(name)
    expected, X_before, y_before = answer(model, X), X.copy(), y.copy()
    again = clone(model).fit(X[:, :4], y).fit(X, y)  # the first time is forgotten
    for copy in (again, pickle.loads(pickle.dumps(model)), to_numpy(model)):
        np.testing.assert_array_equal(answer(copy, X), expected)
    np.testing.assert_array_equal(figures(again), figures(model))
    np.testing.assert_allclose(answer(model, X[5:6]), expected[5:6], atol=1e-12)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


@pytest.mark.parametrize("name", NETWORKS)
def test_what_decides_an_answer_of_a_network_is_fitted(name):
    model, X, _ = fitted(name)
    model = pickle.loads(pickle.dumps(model))
    others = {"activation": "sin", "n_hidden": 3, "encoder": None, "renormalize": False, "n_layers": 1}
    model.set_params(**others, random_state=5, layer_votes="equal", regularization=5.0)
    if name.startswith("class"):
        model.set_params(ensemble="vote", calibration=None, class_weight="balanced")
    np.testing.assert_array_equal(answer(model, X), answer(fitted(name)[0], X))


@pytest.mark.parametrize("name", [name for name in SIX if "network" not in name])
def test_what_decides_an_answer_is_fitted(name):
    model, X, _ = fitted(name)
    model = pickle.loads(pickle.dumps(model))
    if "kernel" in name:
        model.set_params(bandwidth=9.0, encoder=None, n_landmarks=3)
    else:
        model.members[1][1].set_params(activation="sin", n_hidden=3)
        model.set_params(members=model.members[:1], weights="equal", finalists=None)
    np.testing.assert_array_equal(answer(model, X), answer(fitted(name)[0], X))


def test_a_frame_holds_estimators_as_they_are():
    models = [EDRVFLClassifier(n_layers=3), KernelRidgeClassifier(), TabularEncoder("bins")]
    assert pl.DataFrame({"settings": models})["settings"].to_list() == models  # as `members_` has them
    assert pd.DataFrame(models).shape == (3, 1)


@pytest.mark.parametrize("name", [*(name for name in SIX if "kernel" not in name), "class kernel, landmarks"])
def test_another_seed_is_another_model(name):
    model, X, y = fitted(name)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert np.abs(answer(other, X) - answer(model, X)).max() > 1e-3
    state = np.random.RandomState(0)  # it moves on
    one, two = (answer(clone(model).set_params(random_state=state).fit(X, y), X) for _ in range(2))
    assert np.abs(one - two).max() > 1e-3


# --- failures --------------------------------------------------------------------------------------------


class Interrupting(Recorder):
    """A callback that interrupts a fit after the first layer, member or candidate, or a later one."""

    def on_fit_task_end(self, estimator, context, **given):
        super().on_fit_task_end(estimator, context, **given)
        if len(self.estimators) == self.stop_after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", [*SIX, "class search", "value search"])
def test_a_fit_that_fails_changes_nothing(name):
    _, X, y = fitted(name)
    fresh, model = clone(EVERYBODY[name]), clone(EVERYBODY[name]).fit(X, y)
    expected, attributes = answer(model, X), set(vars(model))
    bad = np.full(len(y), np.nan) if name.startswith("value") else np.zeros(len(y))
    for estimator in (fresh, model):
        before = set(vars(estimator))
        with pytest.raises(ValueError, match="missing value" if name.startswith("value") else "class"):
            estimator.fit(X[:, :3], bad)
        for after in () if "kernel" in name else (1, 3):
            recorder = Interrupting(stop_after=after)
            with pytest.raises(KeyboardInterrupt):
                estimator.set_callbacks(recorder).fit(X[:, :3], y)
            assert recorder.told[-1] == "teardown"
            before |= {"_skl_callbacks"}
        assert set(vars(estimator)) == before
    assert set(vars(model)) == attributes | before
    np.testing.assert_array_equal(answer(model, X), expected)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@pytest.mark.parametrize("name", [*SIX, "class search", "class network, numbers as they are"])
def test_sparse_rows_are_refused_with_the_way_to_do_it(name):
    model, X, y = fitted(name)
    rows = sparse.csr_array(np.abs(X))
    kind = type(model).__name__.replace("SearchCV", r"\w+")  # the best estimator of a search answers
    advice = rf"of shape \(\d0, 5\), but dense .* make_pipeline\(TruncatedSVD\(100\), {kind}\(\)\)"
    for ask in (lambda: clone(model).fit(rows, y), lambda: model.predict(rows)):
        with pytest.raises(TypeError, match=advice):
            ask()
    followed = make_pipeline(TruncatedSVD(3, random_state=0), clone(model)).fit(rows, y)
    assert followed.predict(rows).shape == y.shape


@every_class_of_them
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(90), "at least one non-zero"),
        (-np.ones(90), "Negative values"),
        (np.full(90, np.nan), "NaN"),
        (np.ones(3), "expected"),
        (np.full(90, 1e307), r"The weights are too large.*Divide the weights by their mean"),
        (np.full(90, 1e300), r"The weights are too large.*Divide the weights by their mean"),
    ],
)
def test_weights_that_cannot_be(name, weights, message):
    X, y = rows_for(name)
    with pytest.raises(ValueError, match=message):
        clone(SIX[name]).fit(X, y, weights if len(weights) == 3 else weights[: len(y)])


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.linspace(0, 1, 90), "Unknown label type: continuous"),
        (np.eye(90, 3), "y should be a 1d array"),
        (np.zeros(90), "needs at least two classes, but y holds only one class"),
        (None, "requires y to be passed"),
        (np.zeros(5), "inconsistent numbers of samples"),
    ],
)
def test_targets_that_are_not_classes(name, y, message):
    with pytest.raises(ValueError, match=message):
        clone(SIX[name]).fit(rows_for(name)[0], y)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(60) == 3, np.nan, 1.0), "y has a missing value in row 3"),
        (np.where(np.arange(60) == 3, np.inf, 1.0), "Input y contains infinity"),
        (np.array([None, *range(59)], dtype=object), "y has a missing value in row 0"),
        (pl.Series([None, *range(59)]), "y has a missing value in row 0"),
        (np.zeros((60, 1, 1)), r"takes y of shape .* or \(n_samples, n_outputs\), got \(60, 1, 1\)"),
        (np.full(60, "high"), "Regressor predicts numbers, but y holds 'high'.*use a classifier"),
        (pd.Series([1.0, "low"] * 30, dtype=object), "predicts numbers, but y holds 'low'"),
        (pd.Series(pd.date_range("2026", periods=60)), "predicts numbers, but y holds dates or times"),
        (np.zeros(60) + 1j, "Complex data not supported"),
        (np.zeros((60, 0)), "0 feature"),
        (np.zeros(5), "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
    ids=str,
)
def test_values_that_cannot_be(name, y, message):
    with pytest.raises(ValueError, match=message):
        clone(SIX[name]).fit(rows_for(name)[0], y)


ENCODER = [{"encoder": "onehot"}, {"encoder": TabularEncoder("bins", n_bins=1)}]
OF_NETWORKS = [
    *({"n_layers": depth} for depth in (0, True)),
    *({"n_hidden": width} for width in (2.5, True, "wide")),
    *({"regularization": -1}, {"activation": "gelu"}, {"renormalize": "yes"}, {"layer_votes": "best"}),
    *({"norm_scale": scale} for scale in (0, (2, 1), (0, 1))),
    *({"norm_shift": shift} for shift in (np.inf, [1.0], (0, np.inf))),
    *({"correct_weight": omega} for omega in (0, 1.1)),
    *({"prune_rate": 1}, {"inputs_per_neuron": 0}, {"hidden_per_neuron": 1.5}, {"pair_share": 1.1}),
    *({"input_scaling": "variance"}, {"random_state": "now"}, {"coverage_from": "train"}),
    *ENCODER,
]
OF_KERNELS = [
    *({"bandwidth": 0.0}, {"regularization": 0.0}, {"input_scaling": "variance"}, *ENCODER),
    *({"n_landmarks": how} for how in (0, "all")),
]
OF_PORTFOLIOS = [
    *({"finalists": number} for number in (0, True)),
    *({"members": "paper"}, {"weights": "best"}, {"max_seconds": 0}),
]
OF_CLASSES = [{"calibration": "isotonic"}, {"class_weight": "even"}]
WRONG = {
    EDRVFLClassifier: [*OF_NETWORKS, *OF_CLASSES, {"ensemble": "median"}],
    EDRVFLRegressor: OF_NETWORKS,
    KernelRidgeClassifier: [*OF_KERNELS, *OF_CLASSES],
    KernelRidgeRegressor: OF_KERNELS,
    EDRVFLPortfolioClassifier: [*OF_PORTFOLIOS, *OF_CLASSES],
    EDRVFLPortfolioRegressor: OF_PORTFOLIOS,
}


@pytest.mark.parametrize(
    ("kind", "params"), [(kind, params) for kind in WRONG for params in WRONG[kind]], ids=str
)
def test_parameters_that_cannot_be(kind, params):
    (name, value) = next(iter(params.items()))
    owner = kind.__name__
    if isinstance(value, TabularEncoder):
        name, owner = "n_bins", "TabularEncoder"
    with pytest.raises(ValueError, match=f"The '{name}' parameter of {owner} must be .*Got"):
        kind(**params).fit([[0.0], [1.0]], [0, 1])


# --- frames ----------------------------------------------------------------------------------------------


def mixed_frame(name, library, m):
    """Draw a table with words, numbers and gaps, and labels or values that need both columns."""
    rng = np.random.default_rng(0)
    kind, size = rng.choice(["red", "green", "blue"], m), rng.standard_normal(m)
    y = np.where((kind == "red") ^ (size > 0), "yes", "no")
    if name.startswith("value"):
        y = np.where(kind == "red", size, -size) + 0.1 * rng.standard_normal(m)
    size[::17] = np.nan
    words = [None if i % 23 == 0 else str(k) for i, k in enumerate(kind)]
    return library.DataFrame({"kind": words, "size": size, "noise": rng.standard_normal(m)}), y


@every_class_of_them
def test_frames_with_categories_and_gaps(name):
    answers = []
    for library in (pd, pl):
        frame, y = mixed_frame(name, library, 400)
        model = clone(SIX[name]).fit(frame[:300], library.Series(y[:300]))
        assert list(model.feature_names_in_) == ["kind", "size", "noise"]
        assert model.score(frame[300:], y[300:]) > (0.85 if name.startswith("class") else 0.75)
        strange = {"kind": ["violet", None], "size": [np.nan, 1e300], "noise": [0.0, np.nan]}
        assert np.isfinite(answer(model, library.DataFrame(strange))).all()
        copy = to_numpy(pickle.loads(pickle.dumps(model)))
        np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))
        answers.append(answer(model, frame))
    np.testing.assert_allclose(*answers, atol=1e-12)


@every_class_of_them
def test_a_frame_of_numbers_is_the_array_with_names(name):
    by_array, X, y = fitted(name)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = clone(by_array).fit(frame, pd.Series(y))
    np.testing.assert_allclose(answer(model, frame), answer(by_array, X), atol=1e-12)
    assert list(model.feature_names_in_) == list("abcde")
    assert model.n_features_in_ == by_array.n_features_in_ == 5
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match=f"X has 4 features, but {type(model).__name__} is expecting 5"):
        by_array.predict(X[:, 1:])
    with pytest.raises(ValueError, match="Column 'c': X contains infinity"):
        model.predict(frame.replace(X[3, 2], np.inf))


@every_class_of_them
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_absurd_rows_have_finite_answers(name, dtype):
    X, y = rows_for(name)
    X[:, 4] = 3.0  # a column that never moves
    model = clone(SIX[name]).fit(X.astype(dtype), y)
    largest = np.finfo(dtype).max
    assert np.isfinite(answer(model, np.array([[largest] * 5, [-largest] * 5], dtype))).all()
    if "network" in name:
        np.testing.assert_array_equal(answer(model, X + np.array([0, 0, 0, 0, 17])), answer(model, X))


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%:UserWarning")
@every_class_of_them
@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_few_rows(name, n):
    X, y = np.random.default_rng(0).standard_normal((12, 5)), np.arange(12)
    if name.startswith("class") and n == 1:
        with pytest.raises(ValueError, match="one class"):
            clone(SIX[name]).fit(X[:1], y[:1])
        return
    model = clone(SIX[name]).fit(X[:n], y[:n])  # as many classes as rows
    assert np.isfinite(answer(model, X)).all()
    assert np.isfinite(figures(model)).all()


# --- following a fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_callbacks_follow_the_layers_and_can_end_the_fit(name):
    full, X, y = fitted(name)
    recorder = Recorder()
    model = clone(full).set_callbacks(recorder).fit(X, y)
    assert recorder.told == ["setup", "begin fit", *["begin layer", "end layer"] * 3, "end fit", "teardown"]
    np.testing.assert_array_equal(answer(model, X), answer(full, X))
    if "proven" in name:  # all layers together say what is used, and a shallower network may say otherwise
        return
    shallow = clone(full).set_params(n_layers=2).fit(X, y)
    ended = clone(full).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    np.testing.assert_array_equal(answer(ended, X), answer(shallow, X))
    np.testing.assert_array_equal(figures(ended), figures(shallow))
    if full.layer_votes != "prefix":  # which is chosen at the end
        np.testing.assert_allclose(answer(recorder.estimators[1], X), answer(shallow, X), atol=1e-12)


@pytest.mark.parametrize("name", ["class portfolio", "value portfolio"])
@pytest.mark.parametrize("stop_after", [None, 1, 2, 4, 5])
def test_callbacks_follow_the_members_and_can_end_the_fit(name, stop_after):
    _, X, y = fitted(name)
    recorder = Recorder(stop_after)
    model = clone(ALL[name]).set_callbacks(recorder).fit(X, y)
    pieces = ["begin member", "end member"] * (stop_after or 6)  # four members, and two that go on
    assert recorder.told == ["setup", "begin fit", *pieces, "end fit", "teardown"]
    assert len(model.members_["member"]) == min(stop_after or 6, 4)
    assert sum(model.members_["weight"]) == pytest.approx(1)
    assert np.isfinite(answer(model, X)).all()


@pytest.mark.parametrize("name", ["class network", "value network"])
def test_scikit_learns_own_callbacks_work(name, capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    full, X, y = fitted(name)
    score = "accuracy" if name.startswith("class") else "r2"
    monitor = callback.ScoringMonitor(scoring=score)
    model = clone(full).set_callbacks(callback.ProgressBar(), monitor).fit(X, y)
    assert f"{type(model).__name__} - fit" in capsys.readouterr().out
    by_layer = [row[score] for row in monitor.get_logs().data if row["task_name"] == "layer"]
    shallow = [clone(full).set_params(n_layers=depth).fit(X, y) for depth in (1, 2, 3)]
    assert by_layer == pytest.approx([one.score(X, y) for one in shallow])
