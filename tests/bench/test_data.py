"""Datasets by name: the 24 as published, the demo group, and the folder that they are read from."""

import functools
import gzip
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets as shipped

from edrvfl.bench.data import (
    ALL_FRAMES,
    GROUPS,
    UCI24,
    DataError,
    dataset_names,
    describe_datasets,
    load_dataset,
)

# Rows, features, classes and test rows of a split, as the provenance of the files states them.
STATED = """
abalone 4177 8 3 1044
adult 48842 14 2 16281
arrhythmia 452 262 13 113
bank 4521 16 2 1130
cardio-10 2126 21 10 531
cardio-3 2126 21 3 531
chess-krvkp 3196 36 2 799
congressional-voting 435 16 2 109
contrac 1473 9 3 368
glass 214 9 6 53
letter 20000 16 26 5000
molec-biol-splice 3190 60 3 797
monks-3 554 6 2 432
musk-2 6598 166 2 1649
oocytes_trisopterus_states_5b 912 32 3 228
pendigits 10992 16 10 3498
spambase 4601 57 2 1150
statlog-image 2310 18 7 577
statlog-landsat 6435 36 6 2000
statlog-shuttle 58000 9 7 14500
wall-following 5456 24 4 1364
waveform 5000 21 3 1250
waveform-noise 5000 40 3 1250
wine-quality-white 4898 11 7 1224
"""
SHAPES = {name: tuple(map(int, rest)) for name, *rest in map(str.split, STATED.strip().splitlines())}
SEPARATE = ("adult", "monks-3", "pendigits", "statlog-landsat", "statlog-shuttle")  # have a test file
GLASS = ("glass.csv.gz", "glass.folds.csv.gz")


@pytest.fixture(scope="module")
def uci() -> Path:
    folder = os.environ.get("EDRVFL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the 24 published datasets: set EDRVFL_DATA to their folder")
    return Path(folder)


@functools.cache
def load(name):
    return load_dataset(name)


@functools.cache
def fold_columns(name, folder):
    """Read every column of the partition file, also the ones that the library does not use."""
    path = folder / f"{UCI24[name].archive_name}.folds.csv.gz"
    header, *lines = gzip.decompress(path.read_bytes()).decode().split()
    return dict(zip(header.split(","), np.loadtxt(lines, delimiter=",", dtype=int).T, strict=True))


# The 24 as published


def test_group_is_table_1_in_its_order():
    assert {name: (e.rows, e.features, e.classes) for name, e in UCI24.items()} == {
        name: shape[:3] for name, shape in SHAPES.items()
    }
    assert GROUPS["uci24"] == tuple(SHAPES)


def test_checksums_are_those_of_the_index(uci):
    header, *lines = (line.split(",") for line in (uci / "INDEX.csv").read_text().split())
    index = {row["name"]: row for row in (dict(zip(header, line, strict=True)) for line in lines)}
    assert len(index) == len(UCI24)
    for entry in UCI24.values():
        row = index[entry.archive_name]
        assert (entry.csv_sha256, entry.folds_sha256) == (row["csv_sha256"], row["folds_sha256"])


@pytest.mark.parametrize("name", SHAPES)
def test_loads_from_the_environment(name, uci):
    data = load(name)
    rows, features, classes, tested = SHAPES[name]
    assert (data.name, data.X.shape, data.y.shape) == (name, (rows, features), (rows,))
    assert (data.X.dtype, data.y.dtype, data.X.flags.c_contiguous) == (np.float64, np.int64, True)
    assert np.isfinite(data.X).all()
    assert np.unique(data.y).tolist() == list(range(classes))
    assert data.classes == tuple(map(str, range(classes)))
    assert [int(split.test.sum()) for split in data.splits] == [tested] * 4


@pytest.mark.parametrize("name", SHAPES)
def test_splits_are_the_columns_of_the_file(name, uci):
    data, columns = load(name), fold_columns(name, uci)
    for i, split in enumerate(data.splits):
        np.testing.assert_array_equal(split.test, columns[f"test{i}"] == 1)
        np.testing.assert_array_equal(split.validation, columns[f"val{i}"] == 1)
        np.testing.assert_array_equal(split.fit, (columns[f"test{i}"] == 0) & (columns[f"val{i}"] == 0))
        np.testing.assert_array_equal(split.train, ~split.test)
        assert not (split.validation & split.test).any()
        assert len(np.unique(data.y[split.fit])) == SHAPES[name][2]  # every class can be learnt


# What docs/study.md says that the benchmark hides


@pytest.mark.parametrize("name", SHAPES)
def test_four_draws_overlap_or_share_one_test_file(name, uci):
    test = np.array([split.test for split in load(name).splits])
    if name in SEPARATE:
        assert (test == (fold_columns(name, uci)["part"] == 1)).all()
        return
    for i, split in enumerate(load(name).splits):
        elsewhere = np.any([other.train for j, other in enumerate(load(name).splits) if j != i], axis=0)
        assert 0.965 < elsewhere[split.test].mean() < 0.995


def test_training_file_of_monks_3_was_standardised_apart(uci):
    data, part = load("monks-3"), fold_columns("monks-3", uci)["part"]
    means = [data.X[part == file].mean(axis=0) for file in (0, 1)]
    assert ((means[0] > 1.35) & (means[0] < 1.5)).all()
    np.testing.assert_allclose(means[1], 0, atol=2e-5)


def test_congressional_voting_keeps_only_missingness(uci):
    data = load("congressional-voting")
    assert all(len(np.unique(column)) == 2 for column in data.X.T)
    assert round(100 * np.bincount(data.y).max() / len(data.y)) == 61


# The folder


@pytest.fixture
def copied(uci, tmp_path):
    for file in GLASS:
        (tmp_path / file).write_bytes((uci / file).read_bytes())
    return tmp_path


def test_named_folder_comes_before_the_environment(copied, monkeypatch):
    checksum = load("glass").checksum
    monkeypatch.setenv("EDRVFL_DATA", str(copied / "absent"))
    assert load_dataset("glass", copied).checksum == checksum
    with pytest.raises(DataError, match="EDRVFL_DATA must name a folder with NAME"):
        load_dataset("glass")
    with pytest.raises(DataError, match="folder must name a folder with NAME"):
        load_dataset("glass", copied / "absent")


def replaced(old, new):
    return lambda content: gzip.compress(gzip.decompress(content).replace(old, new, 1))


@pytest.mark.parametrize(
    ("file", "change", "phrase"),
    [
        (0, replaced(b"0.870826", b"0.870827"), "values of glass must have SHA-256 6e286d.*replace the file"),
        (1, replaced(b"\n0,1,", b"\n0,0,"), "the partitions of glass must have SHA-256"),
        (1, replaced(b"test3", b"tset3"), r"expected 0/1 columns test0, .* \('test3' is not in list\)"),
        (1, replaced(b"\n0,1,", b"\n0,2,"), "there are other values than 0 and 1"),
        (1, lambda content: content[:-20], r"glass\.folds\.csv\.gz cannot be read"),
        (0, lambda content: pickle.dumps("no gzip"), r"glass\.csv\.gz cannot be read"),
    ],
)
def test_wrong_files_in_the_folder_are_refused(file, change, phrase, copied, monkeypatch):
    path = copied / GLASS[file]
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=phrase):
        load_dataset("glass", copied)
    monkeypatch.setattr(
        "edrvfl.bench.data.load.FRAME_GROUPS", {}
    )  # to verify the frames as well takes seconds
    described = {row.name: row.state for row in describe_datasets(copied, cache=copied, verify=True)}
    assert described["glass"].startswith("damaged: ")


def test_description_tells_what_is_there(copied, monkeypatch):
    monkeypatch.setattr(
        "edrvfl.bench.data.load.load_frame", lambda name: None
    )  # test_data_frames.py reads them
    table = {row.name: row for row in describe_datasets(copied, cache=copied / "none", verify=True)}
    assert tuple(table) == (*GROUPS["uci24"], *GROUPS["demo"], *ALL_FRAMES)
    glass = table["glass"]
    assert (glass.source, glass.state, glass.group) == (str(copied), "verified", "uci24")
    assert (glass.rows, glass.features, glass.classes) == SHAPES["glass"][:3]
    assert (table["adult"].source, table["adult"].state) == ("", "missing")
    assert (table["digits"].source, table["digits"].rows) == ("scikit-learn", 1797)
    unread = {row.name: row.state for row in describe_datasets(cache=copied, folder="")}
    assert (unread["glass"], unread["adult"]) == ("found", "missing")


# Names


def test_names_in_any_case_with_commas_and_groups():
    assert dataset_names(["wine", "demo", "wine"]) == ("wine", "iris", "breast_cancer", "digits")
    assert dataset_names(["Iris,GLASS", "monks-3"]) == ("iris", "glass", "monks-3")
    assert dataset_names(["uci24"]) == tuple(SHAPES)
    assert dataset_names(["Cardiotocography-10clases"]) == ("cardio-10",)
    assert load_dataset("IRIS").name == "iris"


@pytest.mark.parametrize(("name", "near"), [("irys", "iris"), ("Monks3", "monks-3"), ("uci", "uci24")])
def test_wrong_name_gets_the_nearest_and_the_list(name, near):
    with pytest.raises(ValueError, match=rf"no dataset '{name}'\. Did you mean '{near}'\?.*iris, wine"):
        dataset_names([name])


@pytest.mark.parametrize(
    ("name", "phrase"),
    [("demo", "'demo' names 4; load them one by one: iris, wine"), ("iris,wine", "names 2"), ("", "names 0")],
)
def test_load_takes_one_dataset(name, phrase):
    with pytest.raises(ValueError, match=phrase):
        load_dataset(name)


# The demo group


@pytest.mark.parametrize(
    ("name", "checksum"),
    [
        ("iris", "ea906168918b7eb7"),
        ("wine", "c195640471e98e8f"),
        ("breast_cancer", "f6c4ac8c44693"),
        ("digits", "26ea45876a0e179c"),
    ],
)
def test_demo_needs_nothing_and_never_changes(name, checksum, monkeypatch):
    monkeypatch.setenv("EDRVFL_DATA", "/does/not/exist")
    data = load_dataset(name)
    X, y = getattr(shipped, f"load_{name}")(return_X_y=True)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.checksum.startswith(checksum)  # stored records point at it
    assert not any(array.flags.writeable for array in (data.X, data.y, data.splits[0].fit))


@pytest.mark.parametrize("name", GROUPS["demo"])
def test_demo_splits_are_stratified_and_hold_out_a_quarter_twice(name):
    data = load_dataset(name)
    overall = np.bincount(data.y) / len(data.y)
    for split in data.splits:
        assert (split.fit.astype(int) + split.validation + split.test == 1).all()
        assert split.test.mean() == pytest.approx(0.25, abs=1 / len(data.y))
        assert split.validation.sum() / split.train.sum() == pytest.approx(0.25, abs=1 / split.train.sum())
        for part in (split.fit, split.validation, split.test):
            counts = np.bincount(data.y[part], minlength=len(overall))
            np.testing.assert_allclose(counts, overall * part.sum(), atol=1.5)
    assert len({split.test.tobytes() for split in data.splits}) == 4


def test_dataset_travels_to_another_process():
    data = load_dataset("iris")
    copy = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(copy.X, data.X)
    np.testing.assert_array_equal(copy.splits[3].train, data.splits[3].train)
    assert (copy.name, copy.checksum) == (data.name, data.checksum)
