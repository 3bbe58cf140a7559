"""Which networks a search tries, and which of them share work."""

import dataclasses

import numpy as np
import pytest
from helpers import PAPER
from sklearn.base import clone

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, TabularEncoder
from edrvfl._search.candidates import Work, key_without, result_rows

NETWORK = EDRVFLClassifier(n_hidden=100, n_layers=3, random_state=0, **PAPER)
MARKS = {
    "n_layers": "depth",
    "lam": "read-out",
    "omega_r": "read-out",
    "gamma": "features",
    "alpha": "features",
    "p": "features",
    **dict.fromkeys(("activation", "renormalize", "weight_from", "joint"), "growth"),
    **dict.fromkeys(("rule", "layer_votes", "calibration", "judges"), "growth"),
}
PREPARED = ("read-out", "features", "growth", "depth")


def work_of(estimator=NETWORK, **params):
    return Work.of(clone(estimator).set_params(**params))


def flips(record):
    """Yield each field's name, of records within the record too, and the record with another value there."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if dataclasses.is_dataclass(value):
            for name, other in flips(value):
                yield name, dataclasses.replace(record, **{field.name: other})
        else:
            yield field.name, dataclasses.replace(record, **{field.name: "another value"})


@pytest.mark.parametrize("marks", [("depth",), ("read-out",), ("read-out", "features"), PREPARED], ids=str)
def test_every_field_is_part_of_a_key_but_those_that_are_marked(marks):
    work = work_of()
    tried = dict(flips(work))
    assert len(tried) > 30
    for name, other in tried.items():
        assert (key_without(other, *marks) == key_without(work, *marks)) == (MARKS.get(name) in marks), name


OTHERS = {
    "n_layers": 7,
    "n_hidden": 5,
    "regularization": 3.0,
    "activation": "sin",
    "renormalize": False,
    "norm_scale": 1.5,
    "norm_shift": 0.5,
    "inputs_per_neuron": 2,
    "hidden_per_neuron": 2,
    "pair_share": 0.5,
    "input_scaling": "gradient",
    "correct_weight": 0.3,
    "weight_from": "loo",
    "prune_rate": 0.7,
    "readout": "joint",
    "ensemble": "vote",
    "layer_votes": "prefix",
    "calibration": None,
    "encoder": "bins",
    "class_weight": {0: 2},
    "coverage_from": "split",
    "random_state": 1,
}


@pytest.mark.parametrize("estimator", [NETWORK, EDRVFLRegressor(weight_from="train", random_state=0)])
def test_every_parameter_of_a_network_is_part_of_its_work(estimator):
    names = set(estimator.get_params()) - {"verbose", "remember"}
    assert names <= set(OTHERS)
    assert all(work_of(estimator, **{name: OTHERS[name]}) != work_of(estimator) for name in names)
    pairs = {"norm_scale": (0.5, 2.0), "norm_shift": [0.0, 1.0]}
    assert all(work_of(estimator, **{name: pair}) != work_of(estimator) for name, pair in pairs.items())


def test_the_same_work_is_equal_however_it_is_written():
    same = [{"regularization": value} for value in (64, 64.0, np.float64(64.0))]
    same += [{"regularization": 64, "encoder": encoder} for encoder in ("standard", TabularEncoder())]
    assert len({work_of(**params) for params in same}) == 1
    assert work_of(class_weight={0: 1, 1: 2}) == work_of(class_weight={1: 2.0, 0: 1.0})


def test_configurations_that_differ_in_depth_alone_are_one_network():
    rows = result_rows(NETWORK, [{"n_layers": 5}, {"regularization": 64.0}, {"n_layers": 2}])
    assert [(row.candidate.number, row.depth) for row in rows] == [(0, 5), (0, 1), (0, 2), (0, 3)]
    assert {row.candidate.settings.n_layers for row in rows} == {5}
    assert rows[0].params == {"n_layers": 5}


def test_a_random_state_of_the_users_is_not_moved_on():
    state = np.random.RandomState(3)
    (row,) = result_rows(NETWORK, [{"random_state": state, "n_layers": 1}])
    assert state.randint(10**6) == np.random.RandomState(3).randint(10**6)
    assert row.candidate.work.seed == clone(row.candidate.estimator)._draw_seed()


def test_what_follows_the_rows_is_the_papers_in_a_search():
    loo = dict.fromkeys(PAPER, "loo")
    (row, *_) = result_rows(NETWORK, [{"n_hidden": "auto", **loo}])
    params = row.candidate.estimator.get_params()
    assert {name: params[name] for name in ("n_hidden", *PAPER)} == {"n_hidden": 512, **PAPER}


def test_networks_that_grow_otherwise_share_rows_and_draws_but_no_stack():
    grown = (
        {"activation": "sin"},
        {"weight_from": "loo"},
        {"layer_votes": "weighted"},
        {"renormalize": False},
    )
    tried = [
        {},
        {"regularization": 2.0},
        {"norm_scale": 2.0},
        *grown,
        {"pair_share": 0.5},
        {"encoder": "bins"},
    ]
    first, *others = dict.fromkeys(row.candidate for row in result_rows(NETWORK, tried))
    assert len(others) == 8
    assert [other.stack == first.stack for other in others] == [True] * 2 + [False] * 6
    assert [other.features == first.features for other in others] == [True] + [False] * 7
    assert [other.prepared == first.prepared for other in others] == [True] * 6 + [False] * 2
