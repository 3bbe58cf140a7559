"""The oracle of the engine: a cell worked off in one loop, without a store, processes or interruptions."""

from edrvfl.bench.record import same_records
from edrvfl.bench.schedule import attempt


def finish_units(cell):
    """Do every unit of a cell and return their values."""
    done = {}
    while units := cell.pending(done):
        done |= {unit: attempt(cell, unit) for unit in units}
    return done


def run_cell(cell):
    """Bring a cell to its record."""
    return cell.record(finish_units(cell))


def assert_same_records(found, expected):
    """Everything but clocks and machines must be equal to the last bit."""
    found, expected = list(found), list(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert same_records(one, other, tolerance=0), f"{one.method} on {one.dataset} differs"
