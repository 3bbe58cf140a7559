"""A small study in a store, for the tests of the store and of its exports."""

from edrvfl.bench.cell import RefitUnit, SearchUnit, key_of
from edrvfl.bench.record import Choice, RunRecord
from edrvfl.bench.store import Store

DESCRIPTION = {
    "kind": "study",
    "protocol": 1,
    "method": "small",
    "dataset": "iris",
    "checksum": "c",
    "splits": 4,
    "trials": 3,
    "seeds": 1,
    "fixed": {},
    "configurations": [{"x": 0.1 + 0.2}, {"x": 1.0}, {"x": 2.0}],
    "most_units": 3 + 8,
}
KEY = key_of(DESCRIPTION)
OTHER = DESCRIPTION | {"dataset": "wine"}
OTHER_KEY = key_of(OTHER)
SEARCHES = [SearchUnit((i,)) for i in range(3)]


def a_record(key=KEY, accuracy=1 / 3, status="ok", seconds=0.25):
    row = ((accuracy,),) * 4
    choice = Choice(
        (0,) * 4, ({"x": 0.1 + 0.2},) * 4, (1,) * 4, (0.5,) * 4, row, row, row, ((seconds,),) * 4, row
    )
    return RunRecord(
        key=key,
        method="small",
        dataset="iris",
        checksum="c",
        status=status,
        message=None if status == "ok" else "search of configuration 1: ValueError: no\nmore",
        n_configurations=3,
        seeds=1,
        choices={"paper": choice, "strict": choice} if status == "ok" else {},
        search_seconds=seconds,
        finished="2024-01-01T00:00:00+00:00",
        device="cpu",
        versions={"numpy": "2"},
        commit=None,
        protocol=1,
    )


def note(store, **cells):
    """Note the cell of DESCRIPTION, and others."""
    with store.writing():
        for key, description in {KEY: DESCRIPTION, **cells}.items():
            store.add_description(key, description)


def fill(path):
    """Open a store with a finished cell, with units in no order, and a cell that has begun."""
    store = Store(path)
    note(store, **{OTHER_KEY: OTHER})
    for i in (11, 2, 0):
        store.finish(KEY, SearchUnit((i,)), {"scores": [[[0.1 + 0.2, 1 / 3]]], "seconds": 0.1})
    for key in (KEY, OTHER_KEY):
        store.finish(key, RefitUnit(0, 1, 0, 0), {"test_accuracy": 2 / 3, "seconds": 0.1})
    store.add_record(a_record())
    return store
