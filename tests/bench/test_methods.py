import json
import pickle

import numpy as np
import pytest

from edrvfl.bench.baselines.peers import PEERS
from edrvfl.bench.methods import METHOD_GROUPS, METHODS, method_names

FIVE = ("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL")


def column(configurations, name):
    return np.array([c[name] for c in configurations])


def test_two_hundred_trials_are_twenty_hidden_settings_with_ten_readouts_inside_the_box():
    drawn = METHODS["WPedRVFL"].configurations(200, seed=3)
    assert len(drawn) == 200
    hidden = [tuple(c[k] for k in ("n_hidden", "norm_scale", "norm_shift", "prune_rate")) for c in drawn]
    assert len(set(hidden)) == 20
    assert all(len(set(hidden[i : i + 10])) == 1 for i in range(0, 200, 10))
    assert len({json.dumps(c) for c in drawn}) == 200, "no configuration is tried twice"
    assert set(column(drawn, "n_hidden")) == {20, 32, 50, 100, 200, 316, 500, 1000}
    for name, low, high in (
        ("norm_scale", 0.5, 2),
        ("norm_shift", -2, 2),
        ("prune_rate", 0, 0.999),
        ("regularization", 2.0**-12, 2.0**12),
        ("correct_weight", 0.001, 1),
    ):
        values = column(drawn, name)
        assert low <= values.min() < values.max() <= high, name
    assert 0 in column(drawn, "prune_rate")
    assert 1 in column(drawn, "correct_weight")


@pytest.mark.parametrize("trials", [1, 2, 4, 7, 20, 50, 199, 200, 333])
def test_any_number_of_trials_and_none_is_repeated(trials):
    drawn = METHODS["edRVFL_O"].configurations(trials, seed=0)
    assert len(drawn) == trials
    assert len({json.dumps(c) for c in drawn}) == trials
    assert set(drawn[0]) == {"n_hidden", "regularization"}


def test_methods_share_their_hidden_settings_and_readouts():
    of = {name: METHODS[name].configurations(50, seed=7) for name in FIVE}
    for name in FIVE:
        for all_of_it, own in zip(of["WPedRVFL"], of[name], strict=True):
            assert own.items() <= all_of_it.items()


def test_configurations_depend_on_the_seed_alone():
    draw = METHODS["WPedRVFL"].configurations
    assert draw(20, 1) == draw(20, 1)
    assert draw(20, 1) != draw(20, 2)
    assert json.loads(json.dumps(draw(20, 1))) == draw(20, 1), "plain numbers, exact in JSON"


@pytest.mark.parametrize("name", FIVE)
def test_every_row_makes_its_classifier_in_any_process(name):
    method = pickle.loads(pickle.dumps(METHODS[name]))
    for configuration in method.configurations(20, seed=0):
        model = method.build(configuration, random_state=5)
        params = model.get_params()
        assert configuration.items() <= params.items()
        assert params["n_layers"] == 10
        assert method.build(configuration, random_state=5, depth=3).n_layers == 3
        assert params["random_state"] == 5
        assert params["renormalize"] == (name != "edRVFL_O")
        assert (params["correct_weight"] == 1) or name.startswith("W")
        assert (params["prune_rate"] == 0) or "P" in name


def test_names_and_groups():
    assert METHOD_GROUPS["edrvfl"] == FIVE
    assert method_names(["WPedRVFL", "edrvfl"]) == ("WPedRVFL", *FIVE[:4])
    with pytest.raises(
        ValueError, match=r"no method 'wpedrvfl'; did you mean '\w+'\? Methods and groups: SNN"
    ):
        method_names(["wpedrvfl"])
    with pytest.raises(TypeError, match="put it in a list"):
        method_names("WPedRVFL")


def test_no_trials_is_refused():
    with pytest.raises(ValueError, match="n_iter must be at least 1"):
        METHODS["WPedRVFL"].configurations(0, 0)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in FIVE])
def test_other_rows_make_their_classifiers_too(name):
    method = pickle.loads(pickle.dumps(METHODS[name]))
    drawn = method.configurations(4, seed=0)
    assert len(drawn) == 4
    assert json.loads(json.dumps(drawn)) == drawn
    assert method.cpu_only == (name in METHOD_GROUPS["peers"])
    if name in METHOD_GROUPS["peers"] and not PEERS[name].installed:
        pytest.skip(f"{name} is not installed")
    for configuration in drawn:
        assert hasattr(method.build(configuration, random_state=0), "fit")
