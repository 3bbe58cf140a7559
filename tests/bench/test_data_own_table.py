"""A user's own table: what is read, and what is refused with its row and column."""

import gzip
import re
import sys

import numpy as np
import pytest

from edrvfl.bench.data import DataError, csv_dataset


def write_table(folder, rows=60, name="mine.csv", header="a,b,kind", label="xyz".__getitem__, cell="0.5"):
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal():.4f},{cell if i == 7 else i},{label(i % 3)}" for i in range(rows)]
    path = folder / name
    path.write_text("\n".join([header, *lines, ""]))
    return path


def test_table_is_read(tmp_path):
    data = csv_dataset(write_table(tmp_path), target="kind")
    assert (data.name, data.X.shape, data.classes) == ("mine", (60, 2), ("x", "y", "z"))
    assert data.X[:8, 1].tolist() == [0, 1, 2, 3, 4, 5, 6, 0.5]
    assert data.y[:6].tolist() == [0, 1, 2, 0, 1, 2]
    for split in data.splits:
        assert [int(part.sum()) for part in (split.fit, split.validation, split.test)] == [33, 12, 15]


def test_numbers_are_the_nearest_doubles(tmp_path):
    texts = [
        "0.1",
        "1e-320",
        " 2.2250738585072011e-308",
        "9007199254740993",
        "-.5",
        "+7.",
        "123456789.123456789",
    ]
    (tmp_path / "digits9.csv").write_text("a,k\n" + "".join(f"{t},{c}\n" for t in texts for c in "xy"))
    data = csv_dataset(tmp_path / "digits9.csv", "k")
    assert data.X[::2, 0].tolist() == [float(text) for text in texts]


def test_packed_table_with_a_mark_and_other_line_ends_is_the_same(tmp_path):
    plain = write_table(tmp_path)
    packed = tmp_path / "other.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n")))
    (tmp_path / "spaces.csv").write_text(plain.read_text().replace(",", " , ").replace("\n", "\n\n"))
    (tmp_path / "quotes.csv").write_text(plain.read_text().replace("x", '"x"'))
    same = [csv_dataset(tmp_path / name, "kind") for name in ("other.csv.gz", "spaces.csv", "quotes.csv")]
    assert [data.name for data in same] == ["other", "spaces", "quotes"]
    assert {data.checksum for data in same} == {csv_dataset(plain, "kind").checksum}


def test_checksum_sees_values_labels_and_rows(tmp_path):
    changes = ({}, {"cell": "0.25"}, {"label": "xzy".__getitem__}, {"rows": 63})
    assert len({csv_dataset(write_table(tmp_path, **change), "kind").checksum for change in changes}) == 4


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        (("10", "9", "2.5"), ("2.5", "9", "10"), [2, 1, 0]),
        (("1", "1.0", "2"), ("1", "2"), [0, 0, 1]),
        (("1e1", "+10", "-3"), ("-3", "1e1"), [1, 1, 0]),
        (("1", "1.0", "no"), ("1", "no"), [0, 0, 1]),
        ((str(2**53 + 1), str(2**53), "0"), ("0", str(2**53), str(2**53 + 1)), [2, 1, 0]),
        (("b", "B", "a"), ("B", "a", "b"), [2, 0, 1]),
    ],
)
def test_classes_are_told_apart_by_value(labels, classes, codes, tmp_path):
    data = csv_dataset(write_table(tmp_path, label=labels.__getitem__), "kind")
    assert data.classes == classes
    assert data.y[:3].tolist() == codes


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"cell": "red"}, "column 'b', row 8 (line 9): 'red' is not a number"),
        ({"cell": "inf"}, "column 'b', row 8 (line 9): 'inf' is infinite"),
        ({"cell": ""}, "column 'b', row 8 (line 9): a value is missing; fill it in, or drop"),
        ({"cell": "NaN"}, "column 'b', row 8 (line 9): a value is missing"),
        ({"cell": "1,2"}, "row 8 (line 9) has 4 cells, but the header has 3"),
        ({"label": ("x", "", "z").__getitem__}, "column 'kind', row 2 (line 3): the target is missing"),
        ({"label": lambda c: "x"}, "two or more classes, got only 'x'"),
        ({"rows": 8}, "need 3 rows of every class and 6 on average; 'kind' has 3 classes in 8 rows"),
        ({"header": "a, a,kind"}, "columns must have different names, but these come twice: 'a'"),
        ({"header": ",b,kind"}, "column 1 has no name; name it, or drop it if it is an index"),
        (
            {"header": "a,b,kinds"},
            "no column 'kind' (--target). Did you mean 'kinds'? Its columns are 'a', 'b', 'kinds'",
        ),
        ({"rows": 0}, "there is a header, but there are no rows below it"),
        ({"name": "Wine.csv"}, "'Wine' already names a dataset of the study; rename the file"),
    ],
)
def test_table_is_refused(change, phrase, tmp_path):
    with pytest.raises(ValueError, match=re.escape(phrase)):
        csv_dataset(write_table(tmp_path, **change), target="kind")


@pytest.mark.parametrize(
    ("name", "content", "phrase"),
    [
        ("latin.csv", "a,kind\n1,caf\xe9\n".encode("latin-1"), "line 2 holds characters that are not UTF-8"),
        ("cut.csv.gz", gzip.compress(b"a,kind\n" + b"1,x\n" * 99, mtime=0)[:-9], "not a whole gzip file"),
        ("only.csv", b"kind\nx\ny\n", "'kind' is the only column"),
        ("rare.csv", b"a,kind\n" + b"1,x\n" * 20 + b"1,y\n" * 2, "2 of them of 'y'; merge or drop small"),
    ],
)
def test_file_is_refused(name, content, phrase, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=phrase):
        csv_dataset(tmp_path / name, "kind")


@pytest.mark.parametrize("sizes", [(9, 3), (3, 6, 9), (5,) * 9 + (15,), (6,) * 40])
def test_smallest_tables_can_be_split(sizes, tmp_path):
    lines = [f"{i},c{i}\n" * size for i, size in enumerate(sizes)]
    (tmp_path / "tiny.csv").write_text("a,kind\n" + "".join(lines))
    data = csv_dataset(tmp_path / "tiny.csv", "kind")
    assert all(len(set(data.y[split.fit])) == len(sizes) for split in data.splits)


def test_missing_pandas_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # how Python marks a module that cannot be imported
    with pytest.raises(DataError, match=r"needs the package pandas.* pip install '\.\[bench\]' in a clone"):
        csv_dataset(write_table(tmp_path), "kind")
