"""Which networks are computed together, and what memory that takes."""

import numpy as np
import pytest

from edrvfl import EDRVFLClassifier
from edrvfl._layers.records import Settings
from edrvfl._seam.arrays import free_bytes
from edrvfl._search.candidates import result_rows
from edrvfl._search.plan import Size, bytes_needed, groups, memory_budget, stack_settings, stacks

NETWORK = EDRVFLClassifier(n_hidden=100, n_layers=3, random_state=0)
SIZE = Size(m=1000, v=200, d=10, k=3, itemsize=8, stacked=False)
ABREAST = Size(m=1000, v=200, d=10, k=3, itemsize=8, stacked=True)


def candidates(*configurations):
    rows = result_rows(NETWORK, configurations)
    return list(dict.fromkeys(row.candidate for row in rows))


def test_networks_with_the_same_features_are_one_stack():
    alike = candidates({"regularization": 1.0}, {"correct_weight": 0.5}, {"prune_rate": 0.5})
    first, pruned = stacks(alike, SIZE, 2**30)
    assert [[c.number for c in read_outs] for read_outs in first] == [[0, 1]]
    assert pruned == [[alike[2]]]
    # side by side, hidden settings with as many read-outs come together, but not where some prune nothing
    several = candidates({"prune_rate": 0.5}, {"norm_scale": 2.0}, {"prune_rate": 0.0})
    assert [len(stack) for stack in stacks(several, ABREAST, 2**30)] == [2, 1]


def test_joint_networks_grow_together_if_they_share_their_features():
    joint = {"readout": "joint", "correct_weight": 1.0, "prune_rate": 0.0}
    grid = [{**joint, "regularization": 2.0**i, "norm_scale": 1.0 + j} for j in range(3) for i in range(4)]
    for size in (SIZE, ABREAST):
        found = list(stacks(candidates(*grid), size, 2**33))
        assert sorted([[c.number for c in row] for (row,) in found]) == np.arange(12).reshape(3, 4).tolist()


def test_networks_that_choose_their_penalty_grow_alone():
    several = candidates({"regularization": "loo"}, {"regularization": "loo", "correct_weight": 0.5}, {})
    for size in (SIZE, ABREAST):
        found = list(stacks(several, size, 2**30))
        assert sorted(stack[0][0].number for stack in found) == [0, 1, 2]
    assert stack_settings([[several[0]]], True) == several[0].settings


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
    stack = groups(tried, lambda c: c.features)
    together = stack_settings(stack, True)
    assert together.lam.tolist() == [[3, 4, 5], [3, 4, 5]]
    assert together.gamma.tolist() == [1, 2]
    one = stack_settings(stack[1:], False)
    assert (one.lam.tolist(), one.gamma) == ([3, 4, 5], 2)
    assert isinstance(one, Settings)


def test_the_budget_follows_the_machine():
    """A search of 150,000 rows was once refused because it needed more than a fixed GiB."""
    X = np.broadcast_to(0.0, (150_000, 20))
    assert memory_budget(100, X) == 100 * 2**20
    free = free_bytes(X)
    assert memory_budget(None, X) == pytest.approx(free / 2, rel=0.2)
    size = Size(m=120_000, v=30_000, d=20, k=2, itemsize=8, stacked=False)
    (wide,) = candidates({"n_hidden": 1000})
    need = bytes_needed([[wide]], size)
    assert 2**30 < need < 3.5 * 2**30
    if need < free / 3:
        assert list(stacks([wide], size, memory_budget(None, X))) == [[[wide]]]
