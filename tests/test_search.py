"""The estimator that tunes itself."""

import inspect
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
import sklearn
from conftest import Recorder, assert_passes_scikit_learns_checks
from joblib import Parallel
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.metrics import get_scorer, make_scorer, recall_score
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit, StratifiedKFold

from edrvfl import EDRVFLClassifier, EDRVFLClassifierCV, _search, draw_configurations, to_numpy
from edrvfl._classifier import VARIANTS

SPACE = {
    "n_hidden": [8, 16],
    "regularization": [0.1, 1.0, 10.0],
    "correct_weight": [0.5, 1.0],
    "prune_rate": [0.0, 0.3],
}
SMALL = {"n_iter": 3, "cv": 3, "n_layers": 3, "space": SPACE}


@pytest.fixture
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture
def search():
    return EDRVFLClassifierCV(n_iter=12, cv=3, n_layers=4, space=SPACE, random_state=0)


@pytest.mark.parametrize(
    "params",
    [{}, {"ensemble_size": 2, "scoring": "neg_log_loss"}, {"scoring": "balanced_accuracy"}],
    ids=["accuracy", "log-loss", "a scorer by call"],
)
def test_scikit_learns_checks_pass(params):
    assert_passes_scikit_learns_checks(EDRVFLClassifierCV(**SMALL, **params))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_same_scores_as_scikit_learns_search(wine, variant):
    X, y = wine
    model = EDRVFLClassifierCV(variant=variant, n_iter=6, cv=3, n_layers=3, random_state=1).fit(X, y)
    depth = 1 if variant == "RVFL" else 3
    assert len(model.cv_results_["params"]) == 6 * depth
    seed = model.best_estimator_.random_state
    base = EDRVFLClassifier(**VARIANTS[variant], random_state=seed)
    grid = [{k: [v] for k, v in params.items()} for params in model.cv_results_["params"]]
    theirs = GridSearchCV(base, grid, cv=3).fit(X, y).cv_results_
    np.testing.assert_array_equal(model.cv_results_["mean_test_score"], theirs["mean_test_score"])
    for i in range(3):
        np.testing.assert_array_equal(
            model.cv_results_[f"split{i}_test_score"], theirs[f"split{i}_test_score"]
        )


def test_the_winner_can_be_built_from_its_parameters(wine, search):
    X, y = wine
    search.fit(X, y)
    assert set(search.best_params_) == {*SPACE, "n_layers"}
    rebuilt = EDRVFLClassifier(**search.best_params_, random_state=search.best_estimator_.random_state)
    np.testing.assert_array_equal(rebuilt.fit(X, y).predict_proba(X), search.predict_proba(X))
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.score(X, y) > 0.95


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_winner_of_every_variant_and_setting_can_be_built(wine, variant):
    X, y = wine
    others = {"activation": "sigmoid", "ensemble": "mean", "class_weight": "balanced", "weight_from": "loo"}
    search = EDRVFLClassifierCV(variant=variant, n_iter=3, cv=2, n_layers=2, random_state=0, **others)
    rebuilt = EDRVFLClassifier(**search.fit(X, y).best_params_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(rebuilt.predict_proba(X), search.predict_proba(X))


def test_weighting_by_leave_one_out_is_searched(wine):
    X, y = wine
    space = {"n_hidden": [8], "regularization": [0.01, 1.0], "weight_from": ["train", "loo"]}
    search = EDRVFLClassifierCV(space=space, n_iter=8, cv=2, n_layers=3, random_state=0).fit(X, y)
    grid = [{k: [v] for k, v in params.items()} for params in search.cv_results_["params"]]
    assert {params["weight_from"][0] for params in grid} == {"train", "loo"}
    theirs = GridSearchCV(EDRVFLClassifier(random_state=0), grid, cv=2).fit(X, y).cv_results_
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], theirs["mean_test_score"])


def test_an_empty_list_is_no_space(wine):
    with pytest.raises(ValueError, match="no configuration to try"):
        EDRVFLClassifierCV(space=[], cv=2).fit(*wine)


def test_a_penalty_that_chooses_itself_is_not_searched(wine):
    with pytest.raises(ValueError, match="cannot be searched"):
        EDRVFLClassifierCV(space=[{"regularization": "loo"}], cv=2).fit(*wine)


def test_ties_go_to_the_shallower_then_the_first_drawn(wine, search):
    search.fit(*wine)
    means = np.round(search.cv_results_["mean_test_score"], 12)
    depths = np.asarray(search.cv_results_["param_n_layers"])
    best = np.flatnonzero(means == means.max())
    assert search.best_index_ == min(best, key=lambda row: (depths[row], row))


def test_an_ensemble_averages_different_configurations(wine, search):
    X, y = wine
    search.set_params(ensemble_size=4).fit(X, y)
    settings = [tuple(getattr(model, name) for name in SPACE) for model in search.estimators_]
    assert len(settings) == 4
    mean = np.mean([model.predict_proba(X) for model in search.estimators_], axis=0)
    np.testing.assert_allclose(search.predict_proba(X), mean, atol=1e-12)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "balanced_accuracy", "roc_auc_ovr"])
def test_scores_are_those_of_the_scorer(wine, search, scoring):
    X, y = wine
    splits = list(StratifiedKFold(3).split(X, y))
    search.set_params(cv=splits, scoring=scoring, n_iter=4).fit(X, y)
    row = search.best_index_
    params = search.cv_results_["params"][row]
    for i, (train, test) in enumerate(splits):
        model = EDRVFLClassifier(**params, random_state=search.best_estimator_.random_state)
        expected = get_scorer(scoring)(model.fit(X[train], y[train]), X[test], y[test])
        assert search.cv_results_[f"split{i}_test_score"][row] == pytest.approx(expected, abs=1e-12)


def test_weights_count_in_fits_and_in_scores(search):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(150)
    X, y, counts = X[order], y[order], rng.integers(0, 3, 150)
    fold = np.arange(150) % 3
    weighted = clone(search).set_params(cv=PredefinedSplit(fold)).fit(X, y, sample_weight=counts)
    repeated = clone(search).set_params(cv=PredefinedSplit(np.repeat(fold, counts)))
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], repeated.cv_results_["mean_test_score"], atol=1e-12
    )


def test_a_class_absent_from_a_training_split_has_probability_0(search):
    X, y = load_iris(return_X_y=True)
    fold = np.where(y == 2, 0, np.arange(150) % 2)  # class 2 is only ever validated
    search.set_params(cv=PredefinedSplit(fold), scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["split0_test_score"]).all()
    assert search.cv_results_["split0_test_score"].max() < -5
    assert search.classes_.tolist() == [0, 1, 2]


def test_groups_reach_the_splitter(wine, search):
    X, y = wine
    groups = np.arange(len(y)) % 7
    search.set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert search.n_splits_ == 3
    with pytest.raises(TypeError, match="only groups can be passed"):
        search.fit(X, y, colour=groups)


def test_metadata_routing(wine, search):
    X, y = wine
    groups = np.arange(len(y)) % 7
    with sklearn.config_context(enable_metadata_routing=True):
        splitter = GroupKFold(3).set_split_request(groups=True)
        scorer = make_scorer(recall_score, average="macro").set_score_request(sample_weight=True)
        search.set_params(cv=splitter, scoring=scorer, n_iter=2)
        search.set_fit_request(sample_weight=True).fit(X, y, groups=groups, sample_weight=np.ones(len(y)))
    assert np.isfinite(search.best_score_)


def test_processes_change_nothing(wine, search):
    X, y = wine
    one = clone(search).fit(X, y).cv_results_["mean_test_score"]
    two = clone(search).set_params(n_jobs=2).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("variant", ["edRVFL_N", "WedRVFL", "WPedRVFL"])
@pytest.mark.parametrize("weight_from", ["train", "loo"])
@pytest.mark.parametrize("shape", [(3000, 100), (200, 300)], ids=["primal", "dual"])
def test_the_budget_is_kept(variant, weight_from, shape):
    rows, width = shape
    X, y = make_classification(rows, 10, n_informative=8, n_classes=5, random_state=0)
    space = [{"n_hidden": width, "regularization": 2.0**i} for i in range(8)]
    params = {"variant": variant, "space": space, "cv": [(np.arange(rows // 2), np.arange(rows // 2, rows))]}
    search = EDRVFLClassifierCV(**params, weight_from=weight_from, n_layers=4, refit=False, random_state=0)
    peaks = {}
    for memory in (14, 28):
        tracemalloc.start()
        search.set_params(memory=memory).fit(X, y)
        peaks[memory] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        assert peaks[memory] <= 1.2 * memory
    with pytest.raises(MemoryError, match="needs about"):
        search.set_params(memory=1).fit(X, y)


def test_processes_share_the_budget(wine, search, monkeypatch):
    asked = []
    monkeypatch.setattr(
        _search, "Parallel", lambda n_jobs, **kwargs: asked.append(n_jobs) or Parallel(n_jobs, **kwargs)
    )
    search.set_params(space={"n_hidden": [300]})
    full = clone(search).fit(*wine).cv_results_["mean_test_score"]
    for memory, n_jobs in ((None, 4), (8, 1), (400, 4)):
        found = clone(search).set_params(memory=memory, n_jobs=4).fit(*wine).cv_results_["mean_test_score"]
        np.testing.assert_array_equal(found, full)
        assert asked[-1] == n_jobs


def test_memory_is_a_budget(wine, search):
    X, y = wine
    full = clone(search).fit(X, y).cv_results_["mean_test_score"]
    tight = clone(search).set_params(memory=1).fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(full, tight)
    wide = clone(search).set_params(memory=1, space={"n_hidden": [5000]})
    with pytest.raises(MemoryError, match=r"needs about \d+ MiB; the memory budget is 1 MiB"):
        wide.fit(X, y)


def test_without_refit_there_is_nothing_to_predict_with(wine, search):
    search.set_params(refit=False).fit(*wine)
    assert not hasattr(search, "predict")
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="predict"):
        search.predict(wine[0])


def test_torch_rows(search):
    torch = pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    expected = clone(search).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        model = search.fit(torch.asarray(X), torch.asarray(y))
        assert model.best_params_ == expected.best_params_
        home = to_numpy(model)
    np.testing.assert_allclose(home.predict_proba(X), expected.predict_proba(X), atol=1e-10)


def test_a_fit_that_fails_changes_nothing(wine, search):
    X, y = wine
    before = search.fit(X, y).best_params_
    with pytest.raises(ValueError, match="one class"):
        search.fit(X[:, :2], np.zeros(len(y)))
    assert search.best_params_ == before
    assert search.n_features_in_ == 13


# ---- what is drawn


def test_200_configurations_are_20_hidden_settings_with_10_read_outs():
    drawn = draw_configurations(200, random_state=0)
    hidden = {tuple(c[k] for k in ("n_hidden", "norm_scale", "norm_shift", "prune_rate")) for c in drawn}
    assert len(drawn) == 200
    assert len(hidden) == 20
    box = {"n_hidden": (20, 1000), "norm_scale": (0.5, 2), "norm_shift": (-2, 2), "prune_rate": (0, 0.999)}
    box |= {"regularization": (2.0**-12, 2.0**12), "correct_weight": (0.001, 1)}
    for name, (low, high) in box.items():
        assert all(low <= c[name] <= high for c in drawn), name
    assert any(c["prune_rate"] == 0 for c in drawn)
    assert any(c["correct_weight"] == 1 for c in drawn)


def test_variants_share_what_they_tune():
    both = [draw_configurations(30, 5, name) for name in ("edRVFL_N", "WPedRVFL")]
    for few, many in zip(*both, strict=True):
        assert few.items() <= many.items()
    assert set(draw_configurations(1, 0, "edRVFL_O")[0]) == {"n_hidden", "regularization"}


def test_a_space_of_ones_own():
    space = {"activation": ["relu", "sin"], "regularization": stats.loguniform(0.1, 10)}
    drawn = draw_configurations(40, 0, space=space)
    assert {c["activation"] for c in drawn} == {"relu", "sin"}
    assert all(0.1 <= c["regularization"] <= 10 for c in drawn)
    with pytest.raises(ValueError, match="cannot be searched: depth"):
        draw_configurations(1, space={"depth": [1]})


def test_a_list_is_tried_as_it_is(wine, search):
    tried = [{"n_hidden": 10, "regularization": 2.0}, {"n_hidden": 10, "regularization": 4.0}]
    search.set_params(space=tried).fit(*wine)
    assert [row for row in search.cv_results_["params"] if row["n_layers"] == 4] == [
        {**configuration, "n_layers": 4} for configuration in tried
    ]
    assert search.best_estimator_.random_state == search.random_state
    with pytest.raises(ValueError, match="'n_hidden' parameter"):
        search.set_params(space=[{"n_hidden": 0}]).fit(*wine)


def test_documented_defaults_are_the_real_ones():
    for name, parameter in inspect.signature(EDRVFLClassifierCV).parameters.items():
        documented = re.search(rf"^    {name} : .*default=(\S+)$", EDRVFLClassifierCV.__doc__, re.MULTILINE)
        assert documented, name
        assert documented[1] == repr(parameter.default).replace("'", '"'), name


# --- following and stopping it ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_follow_the_search(wine, search, n_jobs):
    recorder = Recorder()
    search.set_params(n_jobs=n_jobs, ensemble_size=2).set_callbacks(recorder).fit(*wine)
    parts = recorder.told.count("end part")
    assert (
        parts == recorder.told.count("begin part") >= 3 * 2
    )  # splits times widths, or times hidden settings
    assert recorder.told.count("end network") == 2
    order = [event for event in recorder.told if "part" not in event and "network" not in event]
    tasks = ["begin search", "end search", "begin refit", "end refit"]
    assert order == ["setup", "begin fit", *tasks, "end fit", "teardown"]


def test_nothing_is_printed_unless_asked_for(wine, search, capsys):
    search.fit(*wine)
    assert capsys.readouterr().out == ""
    search.set_params(verbose=1).fit(*wine)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[EDRVFLClassifierCV] ") for line in lines)
    assert f"/{len(lines)}: split 3/3" in lines[-1]


INTERRUPTED = """
import numpy as np
from edrvfl import EDRVFLClassifierCV

X = np.random.default_rng(0).standard_normal((20_000, 20))
search = EDRVFLClassifierCV(n_jobs={n_jobs}, random_state=0, space={{"n_hidden": [300]}}, verbose=1)
print("begun", flush=True)
try:
    search.fit(X, (X[:, 0] > 0).astype(int))
finally:
    print("left with", [name for name in vars(search) if name.endswith("_")], flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="asks for POSIX process groups")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_an_error_and_nothing_else(tmp_path, n_jobs):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(n_jobs=n_jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"JOBLIB_TEMP_FOLDER": str(tmp_path), "TMPDIR": str(tmp_path)},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(3)  # in the middle of it
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does: all the processes of the terminal get it
    output, _ = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "left with []" in output
    assert re.search(r"EDRVFLClassifierCV was interrupted after \d+ of \d+ parts of its search", output)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and (alive(process.pid) or list(tmp_path.iterdir())):
        time.sleep(0.1)
    assert not alive(process.pid)
    assert not list(tmp_path.iterdir())


def alive(group):
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
