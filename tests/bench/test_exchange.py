import dataclasses
import gzip
import json

import pytest
from stored import KEY, OTHER_KEY, SEARCHES, a_record, fill, note

from edrvfl.bench.cell import RefitUnit, SearchUnit, unit_to_dict
from edrvfl.bench.exchange import export_file, export_lines, import_entries, import_files, read_lines
from edrvfl.bench.store import Store, StoreError


def line_of(record):
    return json.dumps({"line": "record", "kind": record.kind, "record": json.loads(record.to_json())})


def import_lines(store, lines):
    return import_entries(store, read_lines(lines))


def test_export_and_import_round_trip_exactly(tmp_path):
    with fill(tmp_path / "a.db") as one, Store(tmp_path / "b.db") as two:
        lines = list(export_lines(one))
        report = import_lines(two, lines)
        assert (report.new_records, report.new_units, report.conflicts) == (1, 4, [])
        assert list(export_lines(two)) == lines
        assert two.records() == one.records()
        assert two.descriptions() == one.descriptions()


def test_searches_are_exported_and_the_refits_of_what_is_not_finished(tmp_path):
    with fill(tmp_path / "a.db") as one, Store(tmp_path / "b.db") as two:
        import_lines(two, export_lines(one))
        assert list(two.values(KEY)) == [SearchUnit((0,)), SearchUnit((2,)), SearchUnit((11,))]
        assert two.values(OTHER_KEY) == {RefitUnit(0, 1, 0, 0): {"test_accuracy": 2 / 3, "seconds": 0.1}}


def test_importing_twice_is_harmless(tmp_path):
    with fill(tmp_path / "a.db") as store:
        lines = list(export_lines(store))
        report = import_lines(store, lines)
        assert (report.new_records, report.known_records) == (0, 1)
        assert (report.new_units, report.known_units) == (0, 4)
        assert report.conflicts == []
        assert list(export_lines(store)) == lines


def test_other_times_and_another_machine_s_last_bits_are_no_conflict(tmp_path):
    with fill(tmp_path / "a.db") as store:
        moved = dataclasses.replace(a_record(accuracy=1 / 3 + 1e-12, seconds=9.0), versions={"numpy": "3"})
        assert import_lines(store, [line_of(moved)]).conflicts == []
        assert store.records() == [a_record()]


def test_a_contradiction_is_reported_and_what_is_here_stays(tmp_path):
    with fill(tmp_path / "a.db") as store:
        unit = {
            "line": "unit",
            "cell": KEY,
            "unit": unit_to_dict(SEARCHES[0]),
            "value": {"scores": [[[0.5, 0.5]]]},
        }
        report = import_lines(store, [line_of(a_record(accuracy=0.9)), json.dumps(unit)])
        assert report.conflicts == [
            f"record of small on iris (cell {KEY[:12]})",
            f"search of configuration 0 of cell {KEY[:12]}",
        ]
        assert store.records() == [a_record()]


def test_a_success_takes_the_place_of_a_failure_and_not_the_reverse(tmp_path):
    good, bad = line_of(a_record()), line_of(a_record(status="failed"))
    with Store(tmp_path / "a.db") as store:
        for line, status in ((bad, "failed"), (good, "ok"), (bad, "ok")):
            assert import_lines(store, [line]).conflicts == []
            assert [r.status for r in store.records()] == [status]


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ('{"line": "record", "rec', "line 2"),
        ('{"line": "party"}', "unknown sort: 'party'"),
        ('{"line": "record", "kind": "party", "record": {}}', "'party'"),
        ('{"line": "unit", "cell": "0", "unit": {"stage": "search"}, "value": {}}', "configurations"),
        ('{"line": "cell", "key": "0", "description": {}}', "not the hash"),
        ('{"line": "format", "format": 99}', "its format is 99, this edrvfl reads format 2"),
        ('{"kind": "store", "format": 1}', "unknown sort"),
        ("[]", "line 2"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line, phrase):
    with pytest.raises(ValueError, match=phrase) as caught:
        read_lines([line_of(a_record()), line], "that.jsonl")
    assert "that.jsonl, line 2" in str(caught.value)
    assert "Nothing was imported" in str(caught.value)


def changed(path, value):
    """Return the export of a record in which one value is another."""
    line = json.loads(line_of(a_record()))
    *way, last = path
    inner = line["record"]
    for step in way:
        inner = inner[step]
    inner[last] = value
    return json.dumps(line)


STRICT = ("choices", "strict")


@pytest.mark.parametrize(
    ("path", "value", "phrase"),
    [
        (("n_configurations",), "three", "n_configurations must be a whole number, got 'three'"),
        (("versions",), ["numpy"], "versions must be a JSON object"),
        (("status",), "fine", "status must be 'ok' or 'failed'"),
        (("finished",), 2024, "finished must be a text"),
        (("choices",), {}, "choices must be 'paper' and 'strict'"),
        ((*STRICT, "test_accuracy", 0, 0), None, "choices strict test_accuracy must be a number, got None"),
        ((*STRICT, "test_accuracy", 0, 0), 1e300, "must be a number, got 1e.300"),
        ((*STRICT, "test_accuracy", 0), [], "a figure for each split and seed"),
        ((*STRICT, "fit_seconds"), 1.5, "must be a list"),
        ((*STRICT, "depth"), [1], "an entry for each split"),
        ((*STRICT, "colour"), "red", "choices strict has no colour"),
    ],
)
def test_a_record_that_no_report_could_read_is_refused(path, value, phrase):
    with pytest.raises(ValueError, match=phrase):
        read_lines([changed(path, value)])


@pytest.mark.parametrize(
    "value", [{}, {"scores": [[0.5]]}, {"scores": [[[0.5], [0.5, 0.6]]]}, {"seconds": None}]
)
def test_a_search_that_no_report_could_read_is_refused(value):
    unit = {"line": "unit", "cell": KEY, "unit": unit_to_dict(SEARCHES[0]), "value": value}
    with pytest.raises(ValueError, match="not a line of a study export"):
        read_lines([json.dumps(unit)])


def test_a_bad_record_in_a_store_is_told_and_can_be_taken_out(tmp_path):
    with fill(tmp_path / "a.db") as store:
        bad = dataclasses.replace(a_record(), n_configurations="three")
        with store.writing():
            store.add_record(bad, replace=True)
        with pytest.raises(StoreError, match=rf"record of cell {KEY[:12]}.*retry --cell {KEY[:12]}"):
            store.records()
        assert store.forget(KEY[:12]) == 1
        assert store.records() == []


# --- files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["study.jsonl", "study.jsonl.gz"])
def test_a_file_brings_the_study_back(tmp_path, name):
    with fill(tmp_path / "a.db") as store:
        export_file(store, tmp_path / name)
        lines = list(export_lines(store))
    (report,) = import_files(tmp_path / "b.db", [tmp_path / name]).values()
    assert (report.new_records, report.new_units) == (1, 4)
    with Store(tmp_path / "b.db", create=False) as store:
        assert list(export_lines(store)) == lines


def cut(packed):
    return packed[: len(packed) // 2]


def spoil(packed):
    middle = len(packed) // 2
    return packed[:middle] + bytes(b ^ 0xFF for b in packed[middle : middle + 20]) + packed[middle + 20 :]


DAMAGE = {
    "cut short": (cut, "not a whole gzip file"),
    # Whether the packing or the text is found wrong first depends on the bits.
    "a bad block": (spoil, "not a whole gzip file|not a line of a study export"),
    "not gzip": (gzip.decompress, "not a whole gzip file"),
    "not UTF-8": (lambda packed: gzip.compress(b"\xff\xfe{}"), "not a text file in UTF-8"),
    "missing": (None, "cannot be read .No such file"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_named_and_leaves_no_store_behind(tmp_path, damage):
    good, bad = tmp_path / "good.jsonl.gz", tmp_path / "bad.jsonl.gz"
    with fill(tmp_path / "a.db") as store:
        export_file(store, good)
    change, phrase = DAMAGE[damage]
    if change is not None:
        bad.write_bytes(change(good.read_bytes()))
    with pytest.raises(ValueError, match=phrase) as caught:
        import_files(tmp_path / "new.db", [good, bad])
    assert str(bad) in str(caught.value)
    assert "Nothing was imported" in str(caught.value)
    assert not list(tmp_path.glob("new.db*"))


def test_an_export_that_cannot_be_written_says_so_and_leaves_nothing(tmp_path):
    with fill(tmp_path / "a.db") as store:
        for place in (tmp_path / "no" / "study.jsonl", tmp_path / "a.db" / "study.jsonl"):
            with pytest.raises(OSError, match="cannot be written"):
                export_file(store, place)
    assert not list(tmp_path.glob("**/*.part"))


def test_an_import_waits_for_no_run(tmp_path):
    with fill(tmp_path / "a.db") as store:
        export_file(store, tmp_path / "study.jsonl")
    with (
        Store(tmp_path / "a.db", own=True),
        pytest.raises(StoreError, match="another run works on this store"),
    ):
        import_files(tmp_path / "a.db", [tmp_path / "study.jsonl"])


def test_a_cell_that_never_ran_is_waiting_after_an_import(tmp_path):
    with Store(tmp_path / "a.db") as one, Store(tmp_path / "b.db") as two:
        note(one)
        import_lines(two, export_lines(one))
        assert [(s.status, s.done) for s in two.states()] == [("waiting", 0)]


def test_a_link_keeps_leading_to_its_file(tmp_path):
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    with Store(tmp_path / "study.db") as store:
        export_file(store, tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert "old" not in (tmp_path / "real.jsonl").read_text()


@pytest.mark.parametrize(
    ("text", "message"), [("", "holds nothing of a study"), ("[1]\n", "it is no JSON object")]
)
def test_a_file_that_is_no_export_makes_no_store(tmp_path, text, message):
    (tmp_path / "odd.jsonl").write_text(text)
    with pytest.raises(ValueError, match=message):
        import_files(tmp_path / "new.db", [tmp_path / "odd.jsonl"])
    assert not (tmp_path / "new.db").exists()
