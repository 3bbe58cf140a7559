import dataclasses
import time

import pytest
from quiet import run_cell

from edrvfl import variant
from edrvfl.bench.data import load_dataset
from edrvfl.bench.methods import METHODS
from edrvfl.bench.schedule import run
from edrvfl.bench.searching import Method
from edrvfl.bench.timing import Timing, make_cells


class Counting:
    fits = 0

    def __init__(self, random_state):
        self.random_state = random_state

    def fit(self, X, y):
        time.sleep(0.01)
        type(self).fits += 1

    def __repr__(self):
        return "Counting(\n  a=1)"


COUNTING = Method("counting", Counting, list)


@pytest.fixture(scope="module")
def wine():
    return load_dataset("wine")


def test_warm_ups_are_not_counted(wine):
    Counting.fits = 0
    (cell,) = make_cells([COUNTING], [wine], warmups=2, repeats=3)
    record = run_cell(cell)
    assert Counting.fits == 5
    assert len(record.seconds) == 3
    assert all(0.01 <= seconds < 1 for seconds in record.seconds)
    assert (record.rows, record.features, record.parameters) == (133, 13, "Counting( a=1)")
    result = Timing.of([record])
    assert result.timed[0].median == sorted(record.seconds)[1]
    assert (record.warmups, record.repeats, record.threads) == (2, 3, 1)


def test_the_family_is_timed_with_the_settings_of_table_7_and_others_with_their_defaults(wine):
    cells = make_cells([METHODS["WPedRVFL"], METHODS["SCN"]], [wine])
    expected = variant("WPedRVFL", n_hidden=500, regularization=1.0, random_state=0)
    assert cells[0].build(0).get_params() == expected.get_params()
    assert repr(cells[1].build(0)) == "SCNClassifier(random_state=0)"


@pytest.mark.parametrize("wrong", [{"repeats": 0}, {"threads": 0}, {"warmups": -1}])
def test_timing_refuses_nonsense(wine, wrong):
    (name, value) = next(iter(wrong.items()))
    with pytest.raises(ValueError, match=f"{name}={value}"):
        make_cells([COUNTING], [wine], **wrong)


def missing_oracle():
    return "counting needs the package oracle"


def test_a_missing_package_is_told_before_anything_is_timed(wine):
    with pytest.raises(ValueError, match="counting needs the package oracle"):
        make_cells([dataclasses.replace(COUNTING, missing=missing_oracle)], [wine])


def test_times_of_other_repeats_are_other_cells(wine):
    one, same, other = (make_cells([COUNTING], [wine], repeats=n)[0] for n in (5, 5, 2))
    assert one.key == same.key != other.key


def test_a_method_that_fails_is_a_record(tmp_path, wine):
    broken = Method("broken", METHODS["WPedRVFL"].estimator.func, list)  # `variant` without a name
    (record,) = run(make_cells([broken], [wine]), tmp_path / "study.db")
    assert record.status == "failed"
    assert "missing 1 required positional argument" in record.message
    assert Timing.of([record]) is None


def test_times_of_different_machines_do_not_stand_in_one_table(wine):
    here = run_cell(make_cells([COUNTING], [wine], repeats=1)[0])
    more = dataclasses.replace(here, dataset="iris", blas=("another blas",))
    there = dataclasses.replace(here, processor="another", key="another", finished="9999")
    result = Timing.of([there, here, more])
    assert [t.dataset for t in result.timed] == ["iris", "wine"]
    assert {t.processor for t in result.timed} == {here.processor}
    assert set(result.blas) == {"another blas", *here.blas}
