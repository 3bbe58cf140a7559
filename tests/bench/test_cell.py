import json

import pytest

from edrvfl.bench.cell import (
    DefaultsUnit,
    RefitUnit,
    SearchUnit,
    SensitivityUnit,
    TimingUnit,
    find_failure,
    key_of,
    seed_of,
    unit_from_dict,
    unit_order,
    unit_to_dict,
)

UNITS = [
    SearchUnit((0, 2, 11)),
    SearchUnit((1,)),
    RefitUnit(3, 7, 0, 2),
    RefitUnit(3, 7, 0, 2, epochs=20),
    SensitivityUnit(1, 9),
    TimingUnit(warmups=1, repeats=5, threads=1),
    DefaultsUnit(1, 9),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_units_are_their_fields_in_json_and_back(unit):
    fields = json.loads(json.dumps(unit_to_dict(unit)))
    assert unit_from_dict(fields) == unit
    assert hash(unit_from_dict(fields)) == hash(unit), "units are keys of dictionaries"


def test_every_field_is_part_of_a_unit_s_identity():
    texts = {json.dumps(unit_to_dict(unit)) for unit in UNITS}
    assert len(texts) == len(set(UNITS)) == len(UNITS)


def test_units_sort_by_stage_then_by_number():
    units = [RefitUnit(0, 1, 0, 10), SearchUnit((11,)), SearchUnit((2, 30)), RefitUnit(0, 1, 0, 2)]
    assert sorted(units, key=unit_order) == [units[2], units[1], units[3], units[0]]


def test_the_first_failure_in_order_is_told():
    done = {
        RefitUnit(0, 1, 2, 0): {"error": "ValueError: late"},
        SearchUnit((4,)): {"error": "ValueError: no such thing"},
        SearchUnit((0,)): {"scores": []},
    }
    assert find_failure(done) == "search of configuration 4: ValueError: no such thing"
    assert find_failure({SearchUnit((0,)): {"scores": []}}) is None


def test_seeds_are_functions_of_names():
    assert seed_of("hidden", "iris", 0) == seed_of("hidden", "iris", 0) != seed_of("hidden", "iris", 1)
    assert seed_of("hidden", "iris", 0) != seed_of("search", "iris")
    assert 0 <= seed_of("configurations", "wine") < 2**31


def test_a_key_depends_on_values_and_not_on_the_order_of_entries():
    assert key_of({"a": 1, "b": [0.1]}) == key_of({"b": [0.1], "a": 1}) != key_of({"a": 1, "b": [0.2]})
