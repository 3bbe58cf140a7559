"""Who shares what, and what fits the memory."""

import numpy as np
import pytest
from sklearn.base import clone

from edrvfl import EDRVFLClassifier
from edrvfl._layers.records import Settings
from edrvfl._seam.arrays import free_bytes
from edrvfl._search.plan import Size, bytes_needed, groups, memory_budget, result_rows, stack_settings, stacks

NETWORK = EDRVFLClassifier(n_hidden=100, n_layers=3, random_state=0)
SIZE = Size(m=1000, v=200, d=10, k=3, itemsize=8, stacked=False)
ABREAST = Size(m=1000, v=200, d=10, k=3, itemsize=8, stacked=True)


def candidates(*configurations):
    rows = result_rows(NETWORK, configurations)
    return list(dict.fromkeys(row.candidate for row in rows))


def test_configurations_that_differ_in_depth_alone_are_one_network():
    rows = result_rows(NETWORK, [{"n_layers": 5}, {"regularization": 64.0}, {"n_layers": 2}, {"p": 1}][:3])
    assert [(row.candidate.number, row.depth) for row in rows] == [(0, 5), (0, 1), (0, 2), (0, 3)]
    assert {row.candidate.settings.n_layers for row in rows} == {5}
    assert rows[0].params == {"n_layers": 5}


def test_a_random_state_of_the_users_is_not_moved_on():
    state = np.random.RandomState(3)
    (row,) = result_rows(NETWORK, [{"random_state": state, "n_layers": 1}])
    assert state.randint(10**6) == np.random.RandomState(3).randint(10**6)
    assert row.candidate.seed == clone(row.candidate.estimator)._draw_seed()


def test_networks_with_the_same_features_are_one_stack():
    alike = candidates({"regularization": 1.0}, {"correct_weight": 0.5}, {"prune_rate": 0.5}, {"n_hidden": 9})
    first, pruned, narrow = stacks(alike, SIZE, 2**30)
    assert [[c.number for c in read_outs] for read_outs in first] == [[0, 1]]
    assert [pruned, narrow] == [[[alike[2]]], [[alike[3]]]]
    # side by side, hidden settings with as many read-outs come together
    assert [len(stack) for stack in stacks(alike[1:], ABREAST, 2**30)] == [2, 1]


@pytest.mark.parametrize("name", ["n_layers", "activation", "renormalize", "weight_from", "ensemble"])
def test_what_a_stack_must_share(name):
    others = {"n_layers": 4, "activation": "sin", "renormalize": False, "weight_from": "loo"}
    one, other = (candidates(c)[0] for c in ({}, {name: others.get(name, "vote")}))
    assert one.problem == other.problem
    assert one.stack_key != other.stack_key


@pytest.mark.parametrize(
    "other",
    [
        {"random_state": 1},
        {"n_hidden": 5},
        {"n_hidden": "auto"},
        {"encoder": None},
        {"class_weight": {0: 2}},
        {"inputs_per_neuron": 2},
        {"hidden_per_neuron": 2},
        {"norm_scale": (0.5, 2.0)},
        {"norm_shift": [0.0, 1.0]},
        {"pair_share": 0.5},
        {"input_scaling": "gradient"},
    ],
    ids=str,
)
def test_what_a_problem_is(other):
    one, another = (candidates(c)[0] for c in ({}, other))
    assert one.problem != another.problem


def test_what_follows_the_rows_is_the_papers_in_a_search():
    (follows,) = candidates({"n_hidden": "auto", "input_scaling": "auto"})
    assert (follows.estimator.n_hidden, follows.estimator.input_scaling) == (512, None)


def test_joint_networks_grow_together_if_they_share_their_features():
    joint = {"readout": "joint", "correct_weight": 1.0, "prune_rate": 0.0}
    grid = [{**joint, "regularization": 2.0**i, "norm_scale": 1.0 + j} for j in range(3) for i in range(4)]
    several = candidates(*grid)
    for size in (SIZE, ABREAST):
        found = list(stacks(several, size, 2**33))
        assert sorted([[c.number for c in row] for (row,) in found]) == np.arange(12).reshape(3, 4).tolist()
    (plain,) = candidates({**joint, "readout": "layers", "n_layers": 10})
    (deep,) = candidates({**joint, "n_layers": 10})
    assert plain.stack_key != deep.stack_key
    # the features of ten layers beside those of one
    assert bytes_needed([[deep]], SIZE) - bytes_needed([[plain]], SIZE) > 8 * 1200 * (SIZE.d + 1 + 10 * 100)


def test_networks_that_choose_their_penalty_grow_alone():
    several = candidates({"regularization": "loo"}, {"regularization": "loo", "correct_weight": 0.5})
    for size in (SIZE, ABREAST):
        found = list(stacks(several, size, 2**30))
        assert found == [[[one]] for one in several]
    assert stack_settings(found[0], True) == several[0].settings


@pytest.mark.parametrize("size", [SIZE, ABREAST], ids=["one by one", "side by side"])
def test_stacks_fit_the_memory(size):
    grid = [{"regularization": 2.0**i, "norm_scale": 1.0 + j / 10} for j in range(4) for i in range(6)]
    tried = candidates(*grid)
    alone = bytes_needed([[tried[0]]], size)
    shapes = set()
    for memory in (alone, 2 * alone, 5 * alone, 100 * alone):
        found = list(stacks(tried, size, memory))
        assert all(bytes_needed(stack, size) <= memory for stack in found)
        assert sorted(c.number for stack in found for row in stack for c in row) == list(range(24))
        shapes.add(max((len(stack), len(stack[0])) for stack in found))
    assert len(shapes) > 1
    assert max(shapes) == ((4, 6) if size.stacked else (1, 6))
    with pytest.raises(MemoryError, match=r"One network of 100 neurons on 1000 \+ 200 rows needs about"):
        list(stacks(tried, size, alone - 1))


def test_the_axes_of_a_stack_are_hidden_settings_and_read_outs():
    tried = candidates(*({"regularization": i, "norm_scale": j} for j in (1.0, 2.0) for i in (3.0, 4.0, 5.0)))
    stack = groups(tried, lambda c: c.hidden)
    together = stack_settings(stack, True)
    assert together.lam.tolist() == [[3, 4, 5], [3, 4, 5]]
    assert together.gamma.tolist() == [1, 2]
    one = stack_settings(stack[1:], False)
    assert (one.lam.tolist(), one.gamma) == ([3, 4, 5], 2)
    assert isinstance(one, Settings)


def test_what_needs_more_memory_counts_more():
    (plain,) = candidates({"regularization": 1.0})
    least_norm, by_loo = candidates({"regularization": 0.0}, {"regularization": "loo"})
    need = bytes_needed([[plain]], SIZE)
    # the singular value decomposition holds copies of the rows and their factors
    assert bytes_needed([[least_norm]], SIZE) - need >= 3 * 8 * SIZE.m * 111
    assert bytes_needed([[by_loo]], SIZE) > need


def test_the_budget_follows_the_machine():
    """A search of 150,000 rows was once refused because it needed more than a fixed GiB."""
    X = np.broadcast_to(0.0, (150_000, 20))
    assert memory_budget(100, X) == 100 * 2**20
    free = free_bytes(X)
    assert memory_budget(None, X) == pytest.approx(free / 2, rel=0.2)
    size = Size(m=120_000, v=30_000, d=20, k=2, itemsize=8, stacked=False)
    (wide,) = candidates({"n_hidden": 1000})
    need = bytes_needed([[wide]], size)
    assert 2**30 < need < 3 * 2**30
    if need < free / 3:
        assert list(stacks([wide], size, memory_budget(None, X))) == [[[wide]]]
