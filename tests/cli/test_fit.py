"""`edrvfl fit`: a model from a table, and what is refused before and while it is read."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import edrvfl as library
from edrvfl.bench.cells import find_kinds
from edrvfl.bench.tables import open_table

NETWORK = "--model network --out m.edrvfl"


def test_a_table_becomes_the_model_that_python_fits(edrvfl, guests):
    guests.drop(columns="bill").to_csv("train.csv", index=False)
    status, out, err = edrvfl("fit train.csv --target returns --seed 3 --out m.edrvfl")
    assert status == 0
    assert err.startswith("Note: column 'room' is taken for text, because of '1a' in row 5 (line 6).")
    frame = pd.read_csv("train.csv", dtype={"room": str})
    X, y = frame.drop(columns="returns"), frame["returns"]
    model = library.EDRVFLPortfolioClassifier(random_state=3).fit(X, y)
    loaded = library.load("m.edrvfl")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    counts = y.value_counts()
    assert out.splitlines() == [
        "train.csv: 120 rows, 2 columns of numbers, 2 of categories",
        f"target 'returns': 2 classes: no ({counts['no']}), yes ({counts['yes']})",
        f"leave-one-out accuracy {model.loo_accuracy_:.4f}, log-loss {model.loo_log_loss_:.4f}",
        out.splitlines()[-1],
    ]
    size = Path("m.edrvfl").stat().st_size
    assert out.splitlines()[-1].startswith(
        f"m.edrvfl: EDRVFLPortfolioClassifier, {size / 1e3:.1f} kB, fitted"
    )
    assert edrvfl(f"fit train.csv --target returns --quiet --force {NETWORK}") == (0, "", "")


def test_rows_that_belong_together_are_left_out_together(edrvfl, guests):
    guests = guests.assign(party=[f"party {i // 4}" if i % 9 else f"{i}" for i in range(120)])
    guests.to_csv("train.csv", index=False)
    status, out, _ = edrvfl(f"fit train.csv --target bill --ignore returns --groups party {NETWORK}")
    assert status == 0
    X = guests[["age", "city", "room", "member"]]
    model = library.EDRVFLRegressor(random_state=0).fit(X, guests["bill"], groups=guests["party"])
    loaded = library.load("m.edrvfl")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.feature_names_in_.tolist() == list(X)
    assert f"leave-one-group-out R² {model.loo_r2_scores_[-1]:.4f}" in out
    for name, phrase in (("party!", "there is no column 'party!' (--groups)"), ("bill", "the target. Name")):
        status, _, err = edrvfl(f"fit train.csv --target bill --groups {name} {NETWORK} --force")
        assert status != 0
        assert phrase in err


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_values_are_fitted_from_every_kind_of_file(edrvfl, guests, ending):
    name = f"train.{ending}"
    (guests.to_parquet if ending == "parquet" else guests.to_csv)(name, index=False)
    status, out, _ = edrvfl(f"fit {name} --target bill --ignore returns,member {NETWORK}")
    assert status == 0
    X = guests[["age", "city", "room"]]
    model = library.EDRVFLRegressor(random_state=0).fit(X, guests["bill"])
    assert_array_equal(library.load("m.edrvfl").predict(X), model.predict(X))
    assert f"leave-one-out R² {model.loo_r2_scores_[-1]:.4f}" in out
    assert "(if these are classes: --task classification)" in out


@pytest.mark.parametrize(
    ("labels", "task", "classes"),
    [
        (["red", "blue"], "auto", ["blue", "red"]),
        (["1", "0"], "auto", [0, 1]),
        (["True", "False"], "auto", [False, True]),
        ([f"{i}" for i in range(20)], "auto", None),
        ([f"{i}" for i in range(20)], "classification", list(range(20))),
        (["0.5", "1.5"], "auto", None),
        (["0.5", "1.5"], "classification", ["0.5", "1.5"]),
        (["1", "0"], "regression", None),
    ],
)
def test_what_the_target_is_taken_for(edrvfl, labels, task, classes):
    rows = [f"{i % 7},{labels[i % len(labels)]}" for i in range(24)]
    Path("t.csv").write_text("\n".join(["a,y", *rows]))
    status, out, _ = edrvfl(f"fit t.csv --target y --task {task} {NETWORK}")
    assert status == 0
    assert ("if these are" in out) is (task == "auto" and labels[0][0] in "01")
    model = library.load("m.edrvfl")
    assert (model.classes_.tolist() if classes else not hasattr(model, "classes_")) == (classes or True)
    status, out, _ = edrvfl("evaluate m.edrvfl t.csv")
    assert status == 0
    frame = pd.read_csv("t.csv", dtype={"y": str} if classes and isinstance(classes[0], str) else None)
    assert f"{model.score(frame[['a']], frame['y']):.4f}" in out.splitlines()[0]


@pytest.mark.parametrize("model", ["portfolio", "network"])
def test_numbers_that_are_only_names(edrvfl, answers, model):
    rng = np.random.default_rng(0)
    gate = rng.integers(1, 5, 80)
    pd.DataFrame({"gate": gate, "b": rng.random(80), "y": gate % 2}).to_csv("t.csv", index=False)
    assert edrvfl(f"fit t.csv --target y --categories gate --model {model} --out m.edrvfl")[0] == 0
    out = edrvfl("inspect m.edrvfl")[1]
    assert "categories  4: 1, 2, 3, 4" in out
    Path("new.csv").write_text("gate,b\n 2,0.5\n2.0,0.5\n9,0.5\nx,0.5\n,0.5\n")
    assert edrvfl("predict m.edrvfl new.csv --out p.csv")[0] == 0
    known = library.load("m.edrvfl").predict_proba(pd.DataFrame({"gate": [2, 9, None], "b": 0.5}))
    assert_allclose(answers("p.csv", 1), known[[0, 0, 1, 1, 2]], atol=1e-12)


@pytest.mark.parametrize(
    ("content", "options", "phrase"),
    [
        ("", "", "t.csv: it is empty. Expected a header and rows below it."),
        ("a,y\n", "", "t.csv: there is a header, but there are no rows below it."),
        ("a,Y\n1,2\n", "", "t.csv: there is no column 'y' (--target). Did you mean 'Y'? Its columns are 'a'"),
        ("a,y\n1,u\n2,\n3,v\n", "", "t.csv: column 'y', row 2 (line 3): the target is missing."),
        ("a,y\n1,u\n2,v\n3\n", "", "t.csv: row 3 (line 4) has 1 cell, but the header has 2 cells."),
        ("a,y\n1,u\n2,v,w\n", "", "t.csv: row 2 (line 3) has 3 cells, but the header has 2 cells."),
        (
            "a,y\n1,u\n2,x\n",
            "--task regression",
            "edrvfl: t.csv: column 'y', row 1 (line 2): the target holds text ('u'), and --task regression",
        ),
        ("a,y\n1,u\ninf,x\n", "", "t.csv: column 'a', row 2 (line 3): 'inf' is infinite or too large."),
        ("a,a,y\n1,2,u\n", "", "t.csv: columns must have different names, but these come twice: 'a'."),
        (",a,y\n1,2,u\n", "", "t.csv: column 1 has no name."),
        ("y\nu\nv\n", "", "t.csv: there is no column to learn from beside the target."),
        ("a;y\n1;u\n", "", "If cells are separated by ';', say so: --separator ';'"),
        ("a\ty\n1\tu\n", "", "say so: --separator tab"),
        (
            'a,y\n1,"u\n',
            "",
            "t.csv: line 2 cannot be read as CSV (unexpected end of data). Look there and above",
        ),
        (
            b"a,y\n" + b"1,u\n" * 9000 + b"1,\xfc\n",
            "",
            "t.csv: line 9002 holds characters that are not UTF-8.",
        ),
        ("a,y\n1,u\n".encode("utf-16"), "", "t.csv: line 1 holds characters that are not UTF-8."),
        (b"PK\x03\x04 and so on", "", "t.csv: it is an Excel workbook or another packed file."),
        ('\na,y\n\n1,u\n\n\n2,"v\nw"\n3\n', "", "t.csv: row 3 (line 9) has 1 cell"),
        ("a,y\n" + "x" * 140_000 + ",u\n", "", "t.csv: line 2 has a cell of more than 131072 characters"),
        (f"a,y\n{2**60},{2**60}\n1,{2**60 + 1}\n", "--task classification", "too long to be told apart"),
        ("a,y\n1,u\n2,u\n", "", "t.csv: column 'y' holds one class only, 'u'."),
        ("a,y\n1,u\n2,v\n", "--categories b", "there is no column 'b' (--categories)"),
        ("a,y\n1,u\n2,v\n", "--categories y", "--categories names y, which the model does not see."),
        ("a,y\n1,u\n2,v\n", "--separator ab", "expected one character or the word tab"),
        ("a,y\n1,u\n2,v\n", "--seed -1", "'--seed'"),
    ],
)
def test_bad_tables_are_told_in_words(edrvfl, monkeypatch, content, options, phrase):
    monkeypatch.setenv("COLUMNS", "200")
    Path("t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    status, out, err = edrvfl(f"fit t.csv --target y {NETWORK} {options}")
    assert (status, out) == (2, "")
    assert phrase in err
    assert err.count("\n") == 1
    assert [*map(str, Path().iterdir())] == ["t.csv"]


@pytest.mark.parametrize(
    ("cells", "noted"),
    [
        (["1,234", "2,500"], "'1,234' in row 1 (line 2)"),  # thousands
        (["", "7", "n.a.", "8"], "'n.a.' in row 3 (line 4)"),
        (["5 %", "7 %"], "'5 %' in row 1 (line 2)"),
        (["0", "True", "2"], "'True' in row 2 (line 3)"),
        (["red", "blue", "7"], None),
        (["2024-01-05", "2024-01-06"], None),
        (["yes", "no"], None),
        (["7", "8"], None),
    ],
)
def test_columns_that_may_have_been_meant_as_numbers_are_noted(edrvfl, cells, noted):
    rows = [f'"{cells[i % len(cells)]}",{"uv"[i % 2]}' for i in range(24)]
    Path("t.csv").write_text("\n".join(["a,y", *rows]))
    status, _, err = edrvfl(f"fit t.csv --target y {NETWORK}")
    assert status == 0
    assert err.count("Note: column 'a' is taken for text") == (noted is not None)
    assert (noted or "") in err


def test_labels_cannot_move_the_cursor(edrvfl):
    labels = "two\nlines", "red\x1b[31m"
    rows = [f'{i % 3},"{labels[i % 2]}"' for i in range(24)]
    Path("t.csv").write_text("\n".join(["a,y", *rows]))
    shown = (
        edrvfl(f"fit t.csv --target y {NETWORK}"),
        edrvfl("inspect m.edrvfl"),
        edrvfl("evaluate m.edrvfl t.csv"),
    )
    for status, out, _ in shown:
        assert (status, "\x1b" in out) == (0, False)
        assert "two\\nlines" in out
    assert edrvfl("predict m.edrvfl t.csv --out p.csv")[0] == 0
    expected = ["prediction", "probability_red\x1b[31m", "probability_two\nlines"]  # the file is exact
    assert list(pd.read_csv("p.csv").columns) == expected


def test_other_separators(edrvfl):
    Path("t.csv").write_text("a;y\n" + "\n".join(f"{i % 3};{'uv'[i % 2]}" for i in range(30)))
    assert edrvfl(f"fit t.csv --target y --separator ; {NETWORK}")[0] == 0
    assert edrvfl("predict m.edrvfl t.csv --separator ; --out p.csv --quiet") == (0, "", "")
    assert Path("p.csv").read_text().splitlines()[0] == "prediction;probability_u;probability_v"


def test_no_file_is_replaced_unasked(edrvfl):
    Path("t.csv").write_text("a,y\n" + "\n".join(f"{i % 3},{'uv'[i % 2]}" for i in range(30)))
    Path("m.edrvfl").write_text("mine")
    command = f"fit t.csv --target y {NETWORK}"
    status, _, err = edrvfl(command)
    assert (status, err) == (
        2,
        "edrvfl: m.edrvfl: exists already. Take another name, or --force to replace it.\n",
    )
    assert Path("m.edrvfl").read_text() == "mine"
    assert edrvfl(command, "--force", "--quiet") == (0, "", "")
    assert library.load("m.edrvfl").classes_.tolist() == ["u", "v"]
    for out, phrase in (
        ("t.csv", "is read by this command"),
        (".", "a directory"),
        ("no/m", "no folder 'no'"),
    ):
        status, _, err = edrvfl(f"fit t.csv --target y --force --out {out}")
        assert (status, phrase in err) == (2, True)
    assert edrvfl("fit no.csv --target y --out x")[::2] == (2, "edrvfl: no.csv: No such file or directory\n")


def test_a_line_that_no_memory_could_hold_is_refused(edrvfl):
    Path("bomb.csv.gz").write_bytes(gzip.compress(b"x" * (2**25 + 1), 1))
    words = "edrvfl: bomb.csv.gz: line 1 is longer than 33554432 bytes. Is it a table in CSV?\n"
    assert edrvfl(f"fit bomb.csv.gz --target y {NETWORK}") == (2, "", words)


def test_lines_may_end_as_on_old_machines(edrvfl):
    rows = [f"{i % 3},{'uv'[i % 2]}" for i in range(30)] + ["x,u"]
    Path("t.csv").write_bytes("\r".join(["a,y", *rows]).encode())
    status, _, err = edrvfl(f"fit t.csv --target y {NETWORK}")
    assert (status, "because of 'x' in row 31 (line 32)" in err) == (0, True)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("target", ["returns", "bill"])
def test_rows_without_a_target_can_be_left_out(edrvfl, guests, ending, target):
    frame = guests[["age", "city", target]].astype({target: object})
    frame.loc[[3, 7], target] = None
    frame = frame.infer_objects()
    (frame.to_parquet if ending == "parquet" else frame.to_csv)(f"t.{ending}", index=False)
    status, _, err = edrvfl(f"fit t.{ending} --target {target} {NETWORK}")
    assert (status, f"column '{target}', row 4" in err) == (2, True)
    status, out, _ = edrvfl(f"fit t.{ending} --target {target} --drop-missing-target {NETWORK}")
    assert (status, "118 rows, " in out, "; 2 rows without a target left out" in out) == (0, True, True)
    there = guests.drop([3, 7])
    model = library.EDRVFLClassifier if target == "returns" else library.EDRVFLRegressor
    fitted = model(random_state=0).fit(there[["age", "city"]], there[target])
    assert_array_equal(
        library.load("m.edrvfl").predict(guests[["age", "city"]]), fitted.predict(guests[["age", "city"]])
    )
    assert edrvfl(f"evaluate m.edrvfl t.{ending}")[0] == 2
    status, out, _ = edrvfl(f"evaluate m.edrvfl t.{ending} --drop-missing-target")
    score = f"{fitted.score(there[['age', 'city']], there[target]):.4f}"
    assert (status, out.startswith(f"118 rows, compared with '{target}'"), score in out) == (0, True, True)
    frame.assign(**{target: None}).to_parquet("none.parquet")
    for typed in (f"fit none.parquet --target {target} {NETWORK} --force", "evaluate m.edrvfl none.parquet"):
        status, _, err = edrvfl(typed, "--drop-missing-target")
        assert (status, "missing in every row" in err) == (2, True)


@pytest.fixture
def visits(guests):
    """Dates with gaps, and remarks."""
    days = pd.Series(pd.date_range("2024-02-25 08:00", periods=120, freq="31h"))
    visits = guests.assign(day=days.dt.strftime("%Y-%m-%dT%H:%M"), say=[f"guest no {i}" for i in range(120)])
    visits.loc[4, "day"] = None
    return visits.drop(columns=["city", "room"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "texts.parquet"])
def test_dates_and_text_are_read_as_they_were_in_training(edrvfl, visits, answers, ending):
    parsed = visits.assign(day=pd.to_datetime(visits["day"]))
    if ending == "csv":
        visits.to_csv("t.csv", index=False)
    else:
        (parsed if ending == "parquet" else visits).to_parquet(f"t.{ending}")
    status, out, _ = edrvfl(f"fit t.{ending} --target bill --ignore returns {NETWORK}")
    assert (status, "2 columns of numbers, 0 of categories, 1 of dates, 1 of text" in out) == (0, True)
    model = library.load("m.edrvfl")
    assert [model.network_.columns.words(j) for j in range(4)] == ["numbers", "numbers", "dates", "text"]
    assert "dates" in edrvfl("inspect m.edrvfl")[1]
    visits.to_csv("new.csv", index=False)
    assert edrvfl("predict m.edrvfl new.csv --out p.csv")[0] == 0
    assert_array_equal(
        answers("p.csv").to_numpy()[:, 0], model.predict(parsed[["age", "member", "day", "say"]])
    )
    texts = visits["day"].astype(object).where(visits["day"].notna(), None)
    visits.assign(day=texts).to_parquet("texts.parquet")
    assert edrvfl("predict m.edrvfl texts.parquet --out again.csv")[0] == 0
    assert_array_equal(answers("again.csv"), answers("p.csv"))
    visits.assign(day="31.1.2024").to_csv("bad.csv", index=False)
    status, _, err = edrvfl("predict m.edrvfl bad.csv --out bad.out")
    assert (status, "column 'day', row 1 (line 2): '31.1.2024' is not a date. Write it like" in err) == (
        2,
        True,
    )


def test_dates_may_be_categories_and_labels_and_a_stray_cell_is_noted(edrvfl, visits):
    few = visits.assign(day=["2024-01-31", "2024-02-29"] * 60, y=["2024-01-01", "2025-01-01"] * 60)
    few.to_csv("t.csv", index=False)
    assert edrvfl(f"fit t.csv --target y --ignore say --categories day {NETWORK}")[0] == 0
    model = library.load("m.edrvfl")
    assert model.classes_.tolist() == ["2024-01-01", "2025-01-01"]
    assert model.network_.columns.words(4) == "categories"
    few.to_parquet("t.parquet")
    assert edrvfl(f"fit t.parquet --target y --ignore say --categories day --force {NETWORK}")[0] == 0
    assert library.load("m.edrvfl").network_.columns.words(4) == "categories"
    few.loc[3, "day"] = "tomorrow"
    few.to_parquet("t.parquet")
    assert edrvfl(f"fit t.parquet --target y --ignore say --force {NETWORK}")[0] == 0
    assert library.load("m.edrvfl").network_.columns.words(4) == "categories"
    few.to_csv("t.csv", index=False)
    told = edrvfl(f"fit t.csv --target y --ignore say --force {NETWORK}")
    assert "column 'day' is taken for text, because of 'tomorrow' in row 4 (line 5)" in told[2]


def test_times_are_the_same_labels_in_every_command(edrvfl):
    days = np.array(["2020-01-01", "2021-05-06T07:08:09"], dtype="datetime64[ns]")
    for y in (days, days - days[0]):
        pd.DataFrame({"a": [1.0, 2.0] * 20, "y": np.tile(y, 20)}).to_parquet("t.parquet")
        assert edrvfl(f"fit t.parquet --target y --force {NETWORK}")[0] == 0
        assert "accuracy 1.0000" in edrvfl("evaluate m.edrvfl t.parquet")[1]


@pytest.mark.parametrize("cell", [[1, 2], {"b": 1}, b"bytes"])
def test_cells_that_are_no_values_are_refused_by_name(edrvfl, cell):
    pd.DataFrame({"a": [cell] * 30, "b": 1.0, "y": ["u", "v"] * 15}).to_parquet("t.parquet")
    status, _, err = edrvfl(f"fit t.parquet --target y {NETWORK}")
    assert (status, "t.parquet: column 'a' holds lists, records or bytes (" in err) == (2, True)
    assert edrvfl(f"fit t.parquet --target y --ignore a {NETWORK}")[0] == 0


def test_damaged_parquet_files_are_told(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.arange(30.0), "y": ["u", "v"] * 15}).to_parquet(path)
    content, refused = path.read_bytes(), 0
    for i in range(300):
        path.write_bytes(content[:i] + bytes([content[i] ^ 2]) + content[i + 1 :])
        try:
            table = open_table(path, ",")
            find_kinds(table, table.names, table.blocks(table.names))
            n_rows = sum(len(block.columns["a"]) for block in table.blocks(["a", "y"]))
        except ValueError:
            refused += 1
        else:
            assert n_rows == 30
    assert refused


def test_names_of_files_cannot_move_the_cursor(edrvfl):
    Path("t\x1b[31m.csv").write_text("a,y\n" + "\n".join(f"{i % 3},{'uv'[i % 2]}" for i in range(30)))
    told = edrvfl("fit", "t\x1b[31m.csv", *f"--target y {NETWORK}".split())
    refused = edrvfl("fit", "t\x1b[31m.csv", *f"--target z --force {NETWORK}".split())
    assert (told[0], refused[0]) == (0, 2)
    assert "\x1b" not in "".join([*told[1:], *refused[1:]])
    assert "t\\x1b[31m.csv: 30 rows" in told[1]


def test_a_model_goes_to_a_file(edrvfl):
    status, _, err = edrvfl("fit t.csv --target y --out -")
    assert (status, err) == (
        2,
        "edrvfl: A model is not written to standard output. Name a file: --out model.edrvfl\n",
    )
    assert not [*Path().iterdir()]


def test_a_command_of_its_own(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(f"{i % 3},{'uv'[i % 2]}" for i in range(30)))
    command = [sys.executable, "-m", "edrvfl.cli", *f"fit t.csv --target y {NETWORK}".split()]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")  # a pipe gets no bar
    assert library.load(tmp_path / "m.edrvfl").classes_.tolist() == ["u", "v"]
