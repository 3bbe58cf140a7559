"""Values become JSON and arrays, and come back the same."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edrvfl._leaving.files.container import packed, unpacked
from edrvfl._leaving.files.reading import Reader
from edrvfl._leaving.files.writing import Kinds, Writer

KINDS = Kinds({}, (), {})

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(), max_size=8),
)
keys = st.one_of(st.text(max_size=4), st.integers(-9, 9), st.floats(allow_nan=False))
arrays = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_, np.uint32]),
    hnp.array_shapes(min_side=0),
)
texts = st.lists(st.text(st.characters(), max_size=5), max_size=4).map(lambda v: np.array(v, dtype=object))
trees = st.recursive(
    st.one_of(scalars, arrays, texts, arrays.map(np.transpose)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
    ),
    max_leaves=12,
)


def through_a_file(value):
    writer = Writer(KINDS)
    content = packed({"value": writer.write(value, "value")}, writer.arrays)
    tree, found = unpacked(content)
    return Reader(KINDS, found, 10**6).read(tree["value"])


def same(a, b):
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and (a.dtype, a.shape) == (b.dtype, b.shape)
            and (a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes())
        )
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


@given(trees)
def test_every_tree_comes_back(value):
    assert same(value, through_a_file(value))


@pytest.mark.parametrize("n", [31, 32, 33, 100])
def test_long_tuples_come_back(n):
    for value in (
        tuple(range(n)),
        (0.5,) * n,
        (True,) * n,
        tuple(map(str, range(n))),
        (1, None) * n,
        ("a", 1) * n,
    ):
        assert same(value, through_a_file(value))


@pytest.mark.parametrize(
    "value", [np.float32(0.1), np.int64(-3), np.bool_(True), np.float64("inf"), np.uint8(7)]
)
def test_numpy_scalars_keep_their_type(value):
    assert same(value, through_a_file(value))


def test_text_of_fixed_width_keeps_its_width():
    assert same(np.array(["a", "bcd"], dtype="<U21"), through_a_file(np.array(["a", "bcd"], dtype="<U21")))


def test_a_matrix_keeps_its_order_in_memory():
    for order in "CF":
        found = through_a_file(np.arange(6.0).reshape(2, 3).copy(order))
        assert found.flags.c_contiguous is (order == "C")


def test_equal_arrays_are_stored_once_and_paths_that_meet_are_kept_apart():
    writer = Writer(KINDS)
    writer.write({1: np.zeros(3), "1": np.ones(3), "x": np.zeros(3)}, "")
    assert sorted(array[0] for array in writer.arrays.values()) == [0.0, 1.0]


@pytest.mark.parametrize(
    "value", [object(), 2**64, {1, 2}, 1j, np.array([1j]), np.array([["a"]]), {(1,): 2}, b"x"]
)
def test_other_values_are_refused_by_their_place(value):
    with pytest.raises(ValueError, match="here holds"):
        Writer(KINDS).write(value, "here")
