import dataclasses
import json
import re

import numpy as np
import pytest

from edrvfl.bench.record import (
    RECORDS,
    Choice,
    DefaultsRecord,
    Record,
    RunRecord,
    SensitivityRecord,
    TimingRecord,
    ValuesRecord,
    find_commit,
    find_versions,
    same_records,
    same_results,
)

COMMON = {
    "key": "k",
    "dataset": "iris",
    "method": "small",
    "status": "ok",
    "message": None,
    "finished": "2024-01-01T00:00:00+00:00",
    "versions": {"numpy": "2"},
    "commit": None,
}
ROW = ((1 / 3, 0.1 + 0.2),) * 4
CHOICE = Choice((0,) * 4, ({"x": 0.1 + 0.2},) * 4, (1,) * 4, (0.5,) * 4, ROW, ROW, ROW, ROW, ROW)
EXAMPLES = [
    RunRecord(
        **COMMON,
        checksum="c",
        n_configurations=3,
        seeds=2,
        choices={"paper": CHOICE, "strict": CHOICE},
        search_seconds=0.25,
        device="cpu",
        protocol=1,
    ),
    SensitivityRecord(
        **COMMON,
        activation="relu",
        correct_weight=0.1 + 0.2,
        prune_rate=0.0,
        settings={"n_hidden": 20},
        seeds=2,
        test_accuracy=ROW,
        train_accuracy=100 / 3,
    ),
    TimingRecord(
        **COMMON,
        rows=133,
        features=13,
        parameters="Model()",
        seconds=(0.1 + 0.2, 1 / 3),
        warmups=1,
        repeats=2,
        threads=1,
        blas=("openblas 0.3",),
        processor="one",
    ),
    ValuesRecord(
        **COMMON,
        checksum="c",
        settings={},
        seeds=2,
        r2=ROW,
        rmse=ROW,
        fit_seconds=ROW,
        predict_seconds=ROW,
        processor="one",
    ),
    DefaultsRecord(
        **COMMON,
        checksum="c",
        settings={"n_hidden": 20, "encoder": None},
        seeds=2,
        test_accuracy=ROW,
        balanced_accuracy=ROW,
        log_loss=ROW,
        calibration_error=ROW,
        fit_seconds=ROW,
        predict_seconds=ROW,
        processor="one",
    ),
]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: record.kind)
def test_records_survive_json_to_the_last_bit(record):
    text = record.to_json()
    assert "\n" not in text
    assert RECORDS[record.kind].from_json(text) == record


def test_a_failed_record_survives_json_too():
    failed = dataclasses.replace(EXAMPLES[0], status="failed", message="no\nmore", choices={})
    assert RunRecord.from_json(failed.to_json()) == failed


def test_mean_over_splits_then_mean_and_sd_over_seeds():
    choice = dataclasses.replace(CHOICE, test_accuracy=((0.5, 0.7), (0.7, 0.9)))
    assert choice.mean_and_sd() == (pytest.approx(0.7), pytest.approx(np.std([0.6, 0.8], ddof=1)))
    alone = dataclasses.replace(CHOICE, test_accuracy=((0.5,), (0.7,)))
    assert alone.mean_and_sd()[0] == pytest.approx(0.6)
    assert np.isnan(alone.mean_and_sd()[1])


def test_same_results_sees_through_times_and_last_bits_only():
    a = {"scores": [[0.5, 0.25]], "seconds": 1.0}
    assert same_results(a, {"scores": [[0.5 + 1e-12, 0.25]], "seconds": 2.0})
    assert not same_results(a, {"scores": [[0.5 + 1e-12, 0.25]]}, tolerance=0)
    assert not same_results(a, {"scores": [[0.5 + 1e-6, 0.25]], "seconds": 1.0})
    assert not same_results(a, {"scores": [[0.5]], "seconds": 1.0})
    assert not same_results(a, {"seconds": 1.0})
    assert not same_results({"n": 1}, {"n": 2})


def test_same_records_sees_through_machines_and_nothing_else():
    record = EXAMPLES[0]
    moved = dataclasses.replace(
        record, search_seconds=9.0, finished=None, device="cuda", versions={}, commit="x"
    )
    assert same_records(record, moved, tolerance=0)
    wrong = dataclasses.replace(CHOICE, log_loss=((1 / 3, 0.1 + 0.2 + 1e-15),) * 4)
    assert not same_records(record, dataclasses.replace(record, choices={"paper": wrong}), tolerance=0)


def test_a_record_older_than_the_calibration_error_is_read_and_contradicts_no_newer_one():
    old, fields = EXAMPLES[0], json.loads(EXAMPLES[0].to_json())
    for choice in fields["choices"].values():
        del choice["calibration_error"]
    assert RunRecord.from_json(json.dumps(fields)) == old
    measured = dataclasses.replace(CHOICE, calibration_error=ROW)
    new = dataclasses.replace(old, choices={"paper": measured, "strict": measured})
    assert same_records(old, new, tolerance=0)
    assert same_records(new, old, tolerance=0)
    other = dataclasses.replace(CHOICE, calibration_error=((0.5, 0.5),) * 4)
    assert not same_records(new, dataclasses.replace(old, choices={"paper": other, "strict": other}))


def test_where_it_ran():
    assert set(find_versions()) == {"python", "numpy", "scipy", "scikit-learn", "edrvfl"}
    commit = find_commit()
    assert commit is None or re.fullmatch(r"[0-9a-f]{40}(-dirty)?", commit)
    assert set(RECORDS) == {"study", "sensitivity", "timing", "defaults", "values"}
    assert all(issubclass(record, Record) for record in RECORDS.values())
