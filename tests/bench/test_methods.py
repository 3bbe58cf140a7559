import dataclasses
import json
import pickle

import numpy as np
import pytest

from edrvfl import variant
from edrvfl.bench.data import load_dataset
from edrvfl.bench.methods import METHOD_GROUPS, METHODS, method_names
from edrvfl.bench.searching import SearchSplit, check_installed, search_one_by_one

FAMILY = ("RVFL", "edRVFL_O", "edRVFL_N", "dRVFL", "WedRVFL", "PedRVFL", "WPedRVFL")


def column(configurations, name):
    return np.array([c[name] for c in configurations])


@pytest.fixture(scope="module")
def split():
    iris = load_dataset("iris")
    part = iris.splits[0]
    return SearchSplit(iris.X[part.fit], iris.y[part.fit], iris.X[part.validation], iris.y[part.validation])


# --- the rows --------------------------------------------------------------------------------------------


def test_two_hundred_trials_come_hidden_setting_by_hidden_setting():
    drawn = METHODS["WPedRVFL"].configurations(200, seed=3)
    hidden = [tuple(c[k] for k in ("n_hidden", "norm_scale", "norm_shift", "prune_rate")) for c in drawn]
    assert len(set(hidden)) == 20
    assert all(len(set(hidden[i : i + 10])) == 1 for i in range(0, 200, 10))
    assert set(column(drawn, "n_hidden")) == {20, 32, 50, 100, 200, 316, 500, 1000}


@pytest.mark.parametrize("trials", [1, 2, 7, 199, 200, 333])
def test_any_number_of_trials_and_none_is_repeated(trials):
    for name in ("edRVFL_O", "WPedRVFL"):
        draw = METHODS[name].configurations
        drawn = draw(trials, 1)
        assert len({json.dumps(c) for c in drawn}) == len(drawn) == trials
        assert json.loads(json.dumps(drawn)) == draw(trials, 1) != draw(trials, 2)


def test_methods_share_their_hidden_settings_and_readouts():
    drawn = {name: METHODS[name].configurations(50, seed=7) for name in FAMILY}
    for name in FAMILY:
        for full, own in zip(drawn["WPedRVFL"], drawn[name], strict=True):
            assert own.items() <= full.items()


@pytest.mark.parametrize("name", FAMILY)
def test_every_row_makes_its_classifier_in_any_process(name):
    method = pickle.loads(pickle.dumps(METHODS[name]))
    for configuration in method.configurations(20, seed=0):
        params = method.build(configuration, 5).get_params()
        assert configuration.items() <= params.items()
        assert params["n_layers"] == (1 if name == "RVFL" else 10)
        assert method.build(configuration, 5, depth=3).n_layers == 3
        assert params["random_state"] == 5
        assert params["renormalize"] == (name not in ("RVFL", "edRVFL_O"))
        assert (params["correct_weight"] == 1) or name.startswith("W")
        assert (params["prune_rate"] == 0) or "P" in name
        assert (params["readout"] == "joint") == (name == "dRVFL")


@pytest.mark.parametrize("name", [name for name in METHODS if name not in FAMILY])
def test_other_rows_make_their_classifiers_too(name):
    method = pickle.loads(pickle.dumps(METHODS[name]))
    drawn = method.configurations(4, 0)
    assert len(drawn) == 4
    assert json.loads(json.dumps(drawn)) == drawn
    alone = [(0,), (1,), (2,), (3,)]
    together = {fnn: [(0, 2, 3), (1,)] for fnn in METHOD_GROUPS["fnn"]} | {"SCN": [(0, 1, 2, 3)]}
    assert method.batches(drawn) == together.get(name, alone)
    assert method.cpu_only == (name in METHOD_GROUPS["peers"])
    if method.missing() is not None:
        pytest.skip(f"{name} is not installed")
    for configuration in drawn:
        assert hasattr(method.build(configuration, 0), "fit")


def test_the_epochs_of_the_search_become_a_parameter_of_the_refit():
    boosting = METHODS["HistGradientBoosting"]
    assert boosting.build(boosting.configurations(1, 0)[0], 0, depth=1, epochs=17).n_rounds == 17


# --- the search ------------------------------------------------------------------------------------------


def test_networks_of_one_growth_score_as_grown_one_by_one(split):
    scn = METHODS["SCN"]
    drawn = [c | {"max_nodes": n} for c, n in zip(scn.configurations(3, 0), (20, 5, 60), strict=True)]
    together = scn.search(drawn, split, seed=3).scores
    alone = search_one_by_one(scn, drawn, split, 3, "cpu").scores
    np.testing.assert_array_equal(together, alone)
    assert len(set(together.ravel())) > 1


@pytest.mark.parametrize("name", ["RVFL", "dRVFL", "WPedRVFL"])
def test_networks_searched_at_once_score_as_fitted_one_by_one_at_every_depth(name, split):
    method = dataclasses.replace(
        METHODS[name], fixed={**METHODS[name].fixed, "n_layers": 1 if name == "RVFL" else 3}
    )
    configurations = [c | {"n_hidden": min(c["n_hidden"], 24)} for c in method.configurations(6, 0)]
    at_once = method.search(configurations, split, seed=1)
    one_by_one = search_one_by_one(method, configurations, split, 1, "cpu")
    np.testing.assert_array_equal(at_once.scores, one_by_one.scores)
    for (c, l), score in np.ndenumerate(at_once.scores):
        model = variant(name, random_state=1, **{**configurations[c], "n_layers": l + 1})
        assert model.fit(split.X_fit, split.y_fit).score(split.X_validation, split.y_validation) == score


def test_boosting_hands_its_rounds_on(split):
    boosting = METHODS["HistGradientBoosting"]
    configurations = [{"learning_rate": 0.5}, {"max_leaf_nodes": 3}]
    result = boosting.search(configurations, split, seed=0)
    assert result.scores.shape == (2, 1)
    fitted = boosting.build(configurations[1], 0).fit(split.X_fit, split.y_fit)
    assert result.epochs[1] == fitted.n_rounds_


def test_networks_hand_no_epochs_on_because_their_refits_stop_early_too(split):
    assert METHODS["SNN"].search([{"max_epochs": 3}], split, seed=0).epochs is None


@pytest.mark.parametrize("name", METHOD_GROUPS["fnn"])
def test_twenty_four_networks_are_few_searches(name):
    method = METHODS[name]
    batches = method.batches(method.configurations(24, 5))
    assert len(batches) == (3 if name == "Highway" else 4)
    assert {len(batch) for batch in batches} <= {6, 8}


def test_networks_of_one_width_are_one_batch():
    method = METHODS["WPedRVFL"]
    drawn = method.configurations(40, seed=1)
    batches = method.batches(drawn)
    assert sorted(i for batch in batches for i in batch) == list(range(40))
    assert len(batches) == len(set(column(drawn, "n_hidden")))
    assert all(len({drawn[i]["n_hidden"] for i in batch}) == 1 for batch in batches)


# --- names and packages ----------------------------------------------------------------------------------


def test_names_and_groups():
    assert METHOD_GROUPS["edrvfl"] == FAMILY
    assert method_names(["wpedrvfl,RVFL", "edrvfl"]) == ("WPedRVFL", *FAMILY[:6])
    with pytest.raises(ValueError, match=r"no method 'WPedRVFLX'\. Did you mean 'WPedRVFL'\?"):
        method_names(["WPedRVFLX"])


def missing_oracle():
    return "Oracle needs the package oracle: pip install 'edrvfl[peers]'"


def test_a_package_that_is_not_installed_is_told_before_the_run():
    check_installed(METHODS[name] for name in FAMILY)
    oracle = dataclasses.replace(METHODS["LightGBM"], name="Oracle", missing=missing_oracle)
    with pytest.raises(
        ValueError, match=r"Oracle needs the package oracle.*leave the methods out that need it"
    ):
        check_installed([METHODS["RVFL"], oracle])


@pytest.mark.parametrize(
    ("name", "package"), [("LightGBM", "lightgbm"), ("CatBoost", "catboost"), ("SNN", "torch")]
)
def test_a_row_knows_its_package(name, package, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda asked: None if asked == package else object())
    assert package in METHODS[name].missing()
    assert METHODS["RVFL"].missing() is None
