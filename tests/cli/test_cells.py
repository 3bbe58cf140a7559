"""Cells of CSV files: read as pandas reads them, whatever blocks they come in."""

import itertools
import math
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from edrvfl.bench import tables
from edrvfl.bench.cells import find_kinds
from edrvfl.bench.tables import open_table
from edrvfl.cli.fit import read_training

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf"]), max_size=4)
CELLS = st.one_of(
    st.sampled_from(["", "NA", "None", "01", "1.5", "-2e3", " 7", "a,b", 'say "x"', "two\nlines"]),
    TEXT.filter(lambda text: "inf" not in text.lower()),
    st.integers(-9, 9).map(str),
    st.floats(-1e6, 1e6).map(repr),
)
COLUMN = st.sampled_from([CELLS, st.integers(-9, 9).map(str), st.sampled_from(["", "True", "False"])])


@st.composite
def odd_tables(draw):
    names = draw(st.lists(TEXT.filter(bool), min_size=1, max_size=4, unique=True))
    n = draw(st.integers(1, 12))
    columns = {name: draw(st.lists(draw(COLUMN), min_size=n, max_size=n)) for name in names}
    return pd.DataFrame(columns | {"the target": [f"class {i % 3}" for i in range(n)]}, dtype=object)


@settings(max_examples=150, deadline=None)
@given(odd_tables(), st.integers(1, 12))
def test_odd_tables_are_read_as_pandas_reads_them(written, rows):
    names = list(written.columns[:-1])
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(tables, "BLOCK_ROWS", rows)
        path = Path(folder) / "t.csv"
        written.to_csv(path, index=False)
        table = open_table(path, ",")
        kinds = find_kinds(table, names, table.blocks(names))
        frame, y = read_training(table, names, "the target", drop=False, quiet=True)
        texts = [name for name, kind in kinds.items() if kind == "text"]
        expected, guessed = pd.read_csv(path, dtype=object), pd.read_csv(path)
    assert list(y.values) == list(written["the target"])
    for name in names:
        # pandas, left alone, decides the same
        assert (pd.api.types.infer_dtype(guessed[name], skipna=True) == "string") is (name in texts)
        if name not in texts:
            expected[name] = expected[name].replace({"True": 1.0, "False": 0.0}).astype(float)
    assert_frame_equal(
        frame.astype(dict.fromkeys(texts, object)).where(frame.notna(), None),
        expected[names].where(expected[names].notna(), None),
        check_dtype=False,
    )


def test_kinds_are_those_of_all_rows_however_they_are_cut(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d,e\n1,True,1,,1\n2.5,,True,NA,2\n,FALSE,0,,x\n")
    table = open_table(path, ",")
    for rows in (1, 2, 3):
        monkeypatch.setattr(tables, "BLOCK_ROWS", rows)
        kinds = find_kinds(table, table.names, table.blocks(table.names))
        assert list(kinds.values()) == ["numbers", "truth", "text", "numbers", "text"]


def test_blocks_are_bounded_and_complete(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n\n" + "\n".join(f"{i},x" for i in range(10)) + "\n\n")
    table = open_table(path, ",")
    for rows, cells in itertools.product((3, 10, 11), (1, 8, 1000)):
        monkeypatch.setattr(tables, "BLOCK_ROWS", rows)
        monkeypatch.setattr(tables, "BLOCK_CELLS", cells)
        blocks = list(table.blocks(["a"]))
        size = max(1, min(rows, cells // 2))
        assert len(blocks) == math.ceil(10 / size)
        assert [block.start for block in blocks] == list(range(0, 10, size))
        assert [cell for block in blocks for cell in block.columns["a"]] == [str(i) for i in range(10)]
        assert 0 < blocks[0].done <= blocks[-1].done <= 1
        assert blocks[-1].done > 0.9  # but for an empty line at the end
