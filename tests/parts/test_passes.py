"""A pass over blocks: how they are summed and read ahead, and what is left when something fails."""

import threading
import time
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn import config_context, get_config
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import RowBlocks
from edrvfl._seam.threads import _release_control, blas_threads, one_blas_thread, suitable_threads


@dataclass(frozen=True)
class Text:
    """Its + keeps order and brackets."""

    text: str

    def __add__(self, other):
        return Text(f"({self.text}+{other.text})")


def numbered(n):
    """Return a source of n blocks of one row."""
    return [(np.full((1, 1), float(i)), np.array([i])) for i in range(n)]


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
@pytest.mark.parametrize(
    ("n", "expected"),
    [(1, "0"), (3, "((0+1)+2)"), (7, "(((0+1)+(2+3))+((4+5)+6))"), (8, "(((0+1)+(2+3))+((4+5)+(6+7)))")],
)
def test_neighbours_are_added_by_pairs_whoever_is_done_first(threads, n, expected, rng):
    delays, heard = rng.uniform(0, 0.004, size=n), []

    def name(part):
        time.sleep(delays[part.number])
        return Text(str(part.number))

    assert RowBlocks(numbered(n), threads=threads).total(name, heard.append).text == expected
    assert heard == list(range(1, n + 1))


def test_parts_without_a_value_and_sources_without_parts():
    assert RowBlocks(numbered(6), threads=2).total(lambda part: part.number if part.number > 3 else None) == 9
    assert RowBlocks([]).total(lambda part: 1) is None


@pytest.mark.parametrize("threads", [1, 3])
def test_few_blocks_are_in_memory(threads):
    alive, most = [], []

    def read():
        for i in range(20):
            given = [(np.zeros((2, 1)), np.zeros(2))]
            alive.append(i)
            weakref.finalize(given[0][0], alive.remove, i)
            most.append(len(alive))
            yield given.pop()

    def compute(part):
        time.sleep(0.002)
        most.append(len(alive))
        return len(part.y)

    assert RowBlocks(read, threads=threads).total(compute) == 40
    assert threads < max(most) <= threads + 2
    assert alive == []


def test_the_next_block_is_read_while_this_one_is_computed():
    events = []

    def read():
        for block in numbered(4):
            events.append("read")
            yield block

    def compute(part):
        while events.count("read") < min(part.number + 2, 4):  # would never end without reading ahead
            time.sleep(0.001)
        return 1

    assert RowBlocks(read, threads=1).total(compute) == 4


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("where", ["read", "compute", "heard", "interrupt"])
def test_threads_end_and_files_are_closed_when_something_fails(threads, where):
    closed = []

    def read():
        try:
            for i, block in enumerate(numbered(50)):
                if where == "read" and i == 7:
                    raise RuntimeError("the disk is gone")
                yield block
        finally:
            closed.append(True)

    def compute(part):
        if where == "compute" and part.number == 7:
            raise ZeroDivisionError("seven")
        if where == "interrupt" and part.number == 7:
            raise KeyboardInterrupt
        return 1

    def heard(done):
        if where == "heard":
            raise LookupError("enough")

    expected = {"read": OSError, "compute": ZeroDivisionError, "heard": LookupError}
    before = threading.active_count()
    with pytest.raises(expected.get(where, KeyboardInterrupt)):
        RowBlocks(read, threads=threads).total(compute, heard)
    assert threading.active_count() == before
    assert closed == [True]


def test_the_error_of_the_first_block_is_raised():
    def read():
        yield from numbered(3)
        raise RuntimeError("the disk is gone")

    def compute(part):
        time.sleep(0.01)
        raise ZeroDivisionError(part.number)

    with pytest.raises(ZeroDivisionError, match="0"):
        RowBlocks(read, threads=2).total(compute)


def test_one_thread_reads():
    def read():
        yield from [(np.zeros((1, 1)), np.array([threading.get_ident()])) for _ in range(20)]

    assert len(set(RowBlocks(read, threads=3).total(lambda part: part.y.tolist()))) == 1


def test_threads_have_the_settings_of_the_caller():
    def settings(part):
        return [(np.geterr()["over"], get_config()["assume_finite"])]

    with np.errstate(over="call"), config_context(assume_finite=True):
        found = RowBlocks(numbered(6), threads=3).total(settings)
    assert found == [("call", True)] * 6


def test_several_threads_compute_with_one_blas_thread_each():
    def blas():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def look(part):
        return [blas()]

    with threadpool_limits(2, user_api="blas"):
        _release_control()
        assert RowBlocks(numbered(1)).threads == blas_threads()
        assert RowBlocks(numbered(5), threads=2).total(look) == [{1}] * 5
        assert RowBlocks(numbered(5), threads=1).total(look) == [{2}] * 5
        with suitable_threads(np.zeros((10**4, 1)), 1000, 10**4):  # more than two
            with one_blas_thread():
                assert blas() == {1}
            assert blas() == {2}
        assert blas() == {2}
