"""`edrvfl predict` and `edrvfl evaluate`: what the model in the file says, block by block."""

import copy
import gzip
import io
import itertools
import os
import resource
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet
from sklearn.metrics import log_loss
from small_models import NAMES, small_model

import edrvfl as library
from edrvfl._leaving.files.models import packed_model
from edrvfl.bench import tables
from edrvfl.cli.models import match, note_unused

SMALL = {"n_hidden": 16, "n_layers": 2, "random_state": 0}
COLUMNS = ["age", "city", "room", "member"]


@pytest.fixture(scope="module")
def model(guests):
    return library.EDRVFLClassifier(**SMALL).fit(guests[COLUMNS], guests["returns"])


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_predictions_are_those_of_the_library(edrvfl, answers, guests, model, ending):
    model.save("m.edrvfl")
    name, frame = f"new.{ending}", guests[["member", *COLUMNS[:3], "returns"]]  # in another order
    (frame.to_parquet if ending == "parquet" else frame.to_csv)(name, index=False)
    status, out, err = edrvfl(f"predict m.edrvfl {name} --out p.csv")
    assert (status, out, err) == (0, "p.csv: 120 predictions\n", "Not used: 'returns'.\n")
    found = answers("p.csv", 1).assign(prediction=pd.read_csv("p.csv")["prediction"])
    assert Path("p.csv").read_text().startswith("prediction,probability_no,probability_yes\n")
    loaded = library.load("m.edrvfl")
    assert_array_equal(found["prediction"], loaded.predict(guests[COLUMNS]))
    assert_array_equal(found.iloc[:, :2], loaded.predict_proba(guests[COLUMNS]))
    assert edrvfl(f"predict m.edrvfl {name} --out p.parquet --quiet") == (0, "", "")
    assert pd.read_parquet("p.parquet")[found.columns].equals(found)
    score = model.score(guests[COLUMNS], guests["returns"])
    loss = log_loss(guests["returns"], model.predict_proba(guests[COLUMNS]))
    status, out, _ = edrvfl(f"evaluate m.edrvfl {name}")
    assert (status, out.splitlines()[0]) == (
        0,
        f"120 rows, compared with 'returns': accuracy {score:.4f}, log-loss {loss:.4f}",
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_are_kept_beside_the_predictions(edrvfl, guests, model, monkeypatch, ending):
    model.save("m.edrvfl")
    frame = guests.assign(id=[f"{i:04d}" for i in range(len(guests))])
    (frame.to_parquet if ending == "parquet" else frame.to_csv)(f"new.{ending}", index=False)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 50)
    status, _, err = edrvfl(f"predict m.edrvfl new.{ending} --out p.{ending} --keep id,city")
    assert (status, "id" in err) == (0, False)
    read = pd.read_parquet if ending == "parquet" else lambda name: pd.read_csv(name, dtype={"id": str})
    found = read(f"p.{ending}")
    assert list(found)[:3] == ["id", "city", "prediction"]
    assert_array_equal(found["id"], frame["id"])
    assert_array_equal(found["city"].isna(), frame["city"].isna())
    assert_array_equal(found["city"].dropna(), frame["city"].dropna())
    assert_array_equal(found["prediction"], model.predict(guests[COLUMNS]))
    status, _, err = edrvfl(f"predict m.edrvfl new.{ending} --out q.{ending} --keep idd")
    assert (status, "did you mean 'id'" in err.lower()) == (2, True)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_kept_columns_stay_what_they_are(edrvfl, guests, model, monkeypatch, ending):
    model.save("m.edrvfl")
    floats = pyarrow.array([None, 1.5, 2.5] * 40)
    kept = {
        "id": pyarrow.array(range(2**63, 2**63 + 120), pyarrow.uint64()),
        "empty at first": pyarrow.concat_arrays(
            [pyarrow.nulls(60, pyarrow.int64()), pyarrow.array(range(60))]
        ),
        "empty later": pyarrow.concat_arrays([floats[:60], pyarrow.nulls(60, pyarrow.float64())]),
        "map": pyarrow.array([[("a", 1)]] * 120, pyarrow.map_(pyarrow.string(), pyarrow.int64())),
    }
    table = pyarrow.Table.from_pandas(guests, preserve_index=False)
    for name, column in kept.items():
        table = table.append_column(name, column)
    parquet.write_table(table, "new.parquet")
    monkeypatch.setattr(tables, "BLOCK_ROWS", 50)
    assert edrvfl(f"predict m.edrvfl new.parquet --out p.{ending}", "--keep", ",".join([*kept, "id"]))[0] == 0
    if ending == "parquet":
        assert parquet.read_table("p.parquet").select(list(kept)).equals(pyarrow.table(kept))
    else:
        found = pd.read_csv("p.csv", dtype=str, keep_default_na=False)
        assert list(found)[:5] == [*kept, "prediction"]
        for name, column in kept.items():
            assert found[name].tolist() == ["" if cell is None else str(cell) for cell in column.to_pylist()]


def test_tables_go_through_pipes(edrvfl, guests, model, monkeypatch):
    model.save("m.edrvfl")
    guests.to_csv("new.csv", index=False)
    guests.to_parquet("new.parquet")
    assert edrvfl("predict m.edrvfl new.csv --out p.csv")[0] == 0
    for name in ("new.csv", "new.parquet"):
        with Path(name).open() as stream, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", stream)
            status, out, err = edrvfl("predict m.edrvfl - --out -")
        assert (status, out, err) == (0, Path("p.csv").read_text(), "Not used: 'returns', 'bill'.\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"age,city,room,member\nold,,,\n")))
    words = "edrvfl: standard input: column 'age', row 1 (line 2): 'old' is not a number."
    assert edrvfl("predict m.edrvfl - --out -")[2].startswith(words)


def test_sets_and_intervals_are_those_of_the_library(edrvfl, answers, guests, model):
    model.save("m.edrvfl")
    guests.to_csv("new.csv", index=False)
    assert edrvfl("predict m.edrvfl new.csv --out p.csv --coverage 0.8")[0] == 0
    assert_array_equal(
        pd.read_csv("p.csv")[["in_set_no", "in_set_yes"]], model.predict_set(guests[COLUMNS], 0.8)
    )
    values = library.EDRVFLRegressor(**SMALL).fit(guests[COLUMNS], guests["bill"])
    values.save("v.edrvfl")
    assert edrvfl("predict v.edrvfl new.csv --out v.csv --coverage 0.8")[0] == 0
    found = answers("v.csv")
    assert list(found) == ["prediction", "lower", "upper"]
    assert_array_equal(found[["lower", "upper"]].T, values.predict_interval(guests[COLUMNS], 0.8))
    status, _, err = edrvfl("predict v.edrvfl new.csv --out w.csv --coverage 90")
    assert (status, "For 90 % write 0.9" in err) == (2, True)


def test_wide_tables_are_matched_by_a_look_at_each_name(edrvfl):
    names = [f"column {j}" for j in range(15_000)]
    X = np.random.default_rng(0).normal(size=(6, len(names)))
    model = library.EDRVFLClassifier(n_hidden=1, n_layers=1, encoder=None, input_scaling=None, random_state=0)
    fitted = model.fit(pd.DataFrame(X, columns=names), [0, 1] * 3)
    begun = time.process_time()
    wide = tables.CsvFile(tables.Source(Path("new.csv"), "new.csv"), ",", names)
    note_unused(match(fitted, wide, None), [], quiet=False)
    assert time.process_time() - begun < 3  # it was much more


def test_a_kept_column_must_not_be_called_like_a_prediction(edrvfl, guests, model):
    model.save("m.edrvfl")
    guests.assign(prediction=1).to_csv("new.csv", index=False)
    status, _, err = edrvfl("predict m.edrvfl new.csv --out p.csv --keep prediction")
    assert (status, "'prediction', which is also" in err) == (2, True)
    assert not Path("p.csv").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("rows", [9, 60, 119, 120])
def test_blocks_say_what_the_whole_says(edrvfl, guests, model, monkeypatch, ending, rows):
    model.save("m.edrvfl")
    (guests.to_parquet if ending == "parquet" else guests.to_csv)(f"new.{ending}", index=False)
    monkeypatch.setattr(tables, "BLOCK_ROWS", rows)
    assert edrvfl(f"predict m.edrvfl new.{ending} --out p.csv")[0] == 0
    P = pd.read_csv("p.csv").iloc[:, 1:].to_numpy()
    assert_allclose(P, model.predict_proba(guests[COLUMNS]), atol=1e-12)
    scores = edrvfl(f"evaluate m.edrvfl new.{ending} --target returns")[1]
    right = model.score(guests[COLUMNS], guests["returns"])
    assert scores.startswith(f"120 rows, compared with 'returns': accuracy {right:.4f}")


def test_cells_are_read_as_in_training_whatever_they_look_like(edrvfl, answers, model):
    model.save("m.edrvfl")
    # all rooms look like numbers, all members like text, and NA is no city
    Path("new.csv").write_text("age,city,room,member\n30,Oslo,0,1\n30,Oslo,1,TRUE\n30,NA,0,0\n,,7,false\n")
    assert edrvfl("predict m.edrvfl new.csv --out p.csv")[0] == 0
    same = {"age": [30, 30, 30, None], "city": ["Oslo", "Oslo", None, None]}
    same |= {"room": ["0", "1", "0", "7"], "member": [True, True, False, False]}
    assert_array_equal(answers("p.csv", 1), model.predict_proba(pd.DataFrame(same)))


def test_a_text_that_training_knew_as_a_category_is_no_gap(edrvfl):
    country = np.array(["NA", "DE", None] * 20, dtype=object)  # Namibia, Germany, not known
    y = np.array(["u", "v", "w"] * 20)
    frame = pd.DataFrame({"country": country})
    library.EDRVFLClassifier(**SMALL).fit(frame, y).save("m.edrvfl")
    frame.assign(y=y).to_csv("new.csv", index=False)
    assert edrvfl("evaluate m.edrvfl new.csv")[1].startswith("60 rows, compared with 'y': accuracy 1.0000")


def test_numbers_that_were_written_as_text_in_a_parquet_file(edrvfl, guests, model):
    model.save("m.edrvfl")
    frame = guests[COLUMNS].astype({"age": object})
    frame["age"] = [None if np.isnan(age) else f"{age:g}" for age in guests["age"]]
    frame.to_parquet("new.parquet")
    assert edrvfl("predict m.edrvfl new.parquet --out p.csv")[0] == 0
    assert_array_equal(pd.read_csv("p.csv")["prediction"], model.predict(guests[COLUMNS]))
    frame.loc[16, "age"] = "old"
    frame.to_parquet("new.parquet")
    status, _, err = edrvfl("predict m.edrvfl new.parquet --out q.csv")
    assert (status, "column 'age', row 17: 'old' is not a number" in err) == (2, True)


def test_a_model_without_names_takes_columns_in_their_order(edrvfl, answers):
    X = np.random.default_rng(0).random((50, 2))
    values = np.column_stack([X @ [1.0, 2.0], X @ [3.0, -1.0]])
    library.EDRVFLRegressor(**SMALL).fit(X, values).save("m.edrvfl")
    pd.DataFrame(X, columns=["p", "q"]).to_csv("new.csv", index=False)
    assert edrvfl("predict m.edrvfl new.csv --out p.csv")[0] == 0
    found = answers("p.csv")
    assert list(found.columns) == ["prediction_1", "prediction_2"]
    assert_array_equal(found, library.load("m.edrvfl").predict(X))
    pd.DataFrame(X).assign(more=1).to_csv("new.csv", index=False)
    status, _, err = edrvfl("predict m.edrvfl new.csv --out p.csv --force")
    assert (
        status,
        "has 2 columns, by order and without names, but here are 3: '0', '1', 'more'." in err,
    ) == (2, True)
    status, _, err = edrvfl("evaluate m.edrvfl new.csv --target more")
    assert (status, "predicts 2 values a row" in err) == (2, True)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "encoder"])
def test_every_kind_of_model_says_what_it_says_in_python(edrvfl, answers, name, ending):
    model, X = small_model(name)
    model.save("m.edrvfl")
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=[*"abc"])
    (frame.to_parquet if ending == "parquet" else frame.to_csv)(f"x.{ending}", index=False)
    status, _, err = edrvfl(f"predict m.edrvfl x.{ending} --out p.csv")
    if (name, ending) == ("kinds", "csv"):  # it has a column of durations
        assert (status, "a duration, which Parquet files hold" in err) == (2, True)
        return
    assert status == 0
    if hasattr(model, "classes_"):
        assert pd.read_csv("p.csv", dtype=str)["prediction"].tolist() == [
            *map(str, model.predict(X).tolist())
        ]
        assert_allclose(answers("p.csv", 1), model.predict_proba(X), atol=1e-12)
    else:
        assert_allclose(answers("p.csv").to_numpy().reshape(len(X), -1), model.predict(X).reshape(len(X), -1))
    assert edrvfl("inspect m.edrvfl")[::2] == (0, "")


def test_labels_are_compared_as_the_model_writes_them(edrvfl):
    X = pd.DataFrame({"a": [1.0, 2.0] * 20})
    for classes, cells in ((["0.5", "1.5"], ["0.50", "1.5"]), (["NA", "None"],) * 2, ([7, 8], ["07", "8.0"])):
        library.EDRVFLClassifier(**SMALL).fit(X, classes * 20).save("m.edrvfl")
        X.assign(y=cells * 20).to_csv("new.csv", index=False)
        status, out, err = edrvfl("evaluate m.edrvfl new.csv --target y")
        assert (status, out.partition(",")[0], err) == (0, "40 rows", "")
        assert "compared with 'y': accuracy 1.0000," in out


def test_a_probability_of_zero_costs_what_it_costs_in_scikit_learn(edrvfl, recwarn):
    X = pd.DataFrame({"a": [0.0, 1.0] * 20})
    model = library.EDRVFLClassifier(**SMALL, calibration=None, ensemble="vote").fit(X, ["u", "v"] * 20)
    model.save("m.edrvfl")
    y = ["v", "u"] * 20  # all wrong
    P = model.predict_proba(X)
    assert P.min() == 0
    X.assign(y=y).to_csv("new.csv", index=False)
    assert edrvfl("evaluate m.edrvfl new.csv")[1].startswith(
        f"40 rows, compared with 'y': accuracy 0.0000, log-loss {log_loss(y, P):.4f}"
    )
    assert not recwarn.list


def test_parquet_files_of_pandas_may_have_an_index(edrvfl, guests, model):
    model.save("m.edrvfl")
    guests[COLUMNS].set_axis([f"row {i}" for i in range(120)]).to_parquet("new.parquet")
    guests[COLUMNS].set_index("age").to_parquet("named.parquet")
    for name in ("new", "named"):
        assert edrvfl(f"predict m.edrvfl {name}.parquet --out {name}.csv")[::2] == (0, "")
        assert_array_equal(pd.read_csv(f"{name}.csv")["prediction"], model.predict(guests[COLUMNS]))


def test_parquet_cells_that_are_no_numbers_are_told_by_row(edrvfl, guests, model):
    model.save("m.edrvfl")
    changes = {"inf": np.inf, "old": pd.Categorical([None] * 3 + ["7", "old"] + ["8"] * 115)}
    for cell, ages in changes.items():
        guests[COLUMNS].assign(age=ages).to_parquet("new.parquet")
        status, _, err = edrvfl("predict m.edrvfl new.parquet --out p.csv")
        row = {"inf": 1, "old": 5}[cell]
        assert (status, f"new.parquet: column 'age', row {row}: '{cell}' is" in err) == (2, True)


def test_rows_are_named_by_the_line_on_which_they_begin(edrvfl, model, monkeypatch):
    model.save("m.edrvfl")
    rows = '\n1,"two\nlines",0,1\n\n\n2,x,0,1\n3,x,0,1\n"4\n",x,0,x\n'
    Path("new.csv").write_text(f"\nage,city,room,member\n{rows}")
    packed = gzip.compress(Path("new.csv").read_bytes())
    Path("packed").write_bytes(packed)  # known by how it begins, not by its name
    for rows, name in itertools.product((1, 2, 10), ("new.csv", "packed")):
        monkeypatch.setattr(tables, "BLOCK_ROWS", rows)
        status, _, err = edrvfl(f"predict m.edrvfl {name} --out p.csv")
        assert (status, f"{name}: column 'member', row 4 (line 10): 'x' is not a number" in err) == (2, True)
    Path("new.csv").write_text(f"age,city,room,member\n{'x' * 1000},,,\n")
    assert len(edrvfl("predict m.edrvfl new.csv --out p.csv")[2]) < 200  # a long cell is not told in full


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (
            {"columns": ["a", "b", "room", "member"]},
            "new.csv: 2 columns of the model are missing: 'age', 'city'. Its columns are 'a', 'b', 'room',",
        ),
        (
            {"columns": ["ages", "city", "room", "member"]},
            "of the model is missing: 'age'. Did you mean 'ages'?",
        ),
        (
            {"row": 17, "column": "age", "cell": "old"},
            "new.csv: column 'age', row 17 (line 18): 'old' is not a number.",
        ),
        (
            {"row": 101, "column": "age", "cell": "1_0"},
            "new.csv: column 'age', row 101 (line 102): '1_0' is not a number.",
        ),
        (
            {"row": 3, "column": "member", "cell": "yes"},
            "new.csv: column 'member', row 3 (line 4): 'yes' is not a number.",
        ),
    ],
)
def test_bad_rows_are_told_and_leave_no_file(edrvfl, guests, model, monkeypatch, change, phrase):
    monkeypatch.setattr(tables, "BLOCK_ROWS", 10)
    model.save("m.edrvfl")
    frame = guests[COLUMNS].astype(object)
    if "row" in change:
        frame.loc[change["row"] - 1, change["column"]] = change["cell"]
    frame.set_axis(change.get("columns", COLUMNS), axis=1).to_csv("new.csv", index=False)
    status, out, err = edrvfl("predict m.edrvfl new.csv --out p.csv")
    assert (status, out) == (2, "")
    assert phrase in err
    assert sorted(map(str, Path().iterdir())) == ["m.edrvfl", "new.csv"]
    Path("p.csv").write_text("before")
    assert edrvfl("predict m.edrvfl new.csv --out p.csv --force")[0] == 2
    assert Path("p.csv").read_text() == "before"


def test_an_interrupted_or_failed_command_leaves_the_older_file(edrvfl, guests, model, monkeypatch, request):
    model.save("m.edrvfl")
    pd.concat([guests] * 100).to_csv("new.csv", index=False)  # more than can be answered in a second
    Path("p.csv").write_text("before")
    command = "predict m.edrvfl new.csv --out p.csv --force --quiet"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # as if the disk were full
    try:
        assert edrvfl(command) == (
            2,
            "",
            "edrvfl: p.csv: cannot be written (File too large); choose another place.\n",
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    monkeypatch.setattr(tables, "BLOCK_ROWS", 1)
    # what a shell starts in the background ignores Ctrl-C
    request.addfinalizer(
        partial(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
    )

    def interrupt(number):
        begun = time.monotonic()
        while len(list(Path().iterdir())) == 3 and time.monotonic() < begun + 30:
            time.sleep(0.01)  # until the new file is begun, beside the older one
        os.kill(os.getpid(), number)
        while not ended.wait(1):  # pyarrow, which reads the rows, may lose an interrupt that comes as it ends
            os.kill(os.getpid(), number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ended = threading.Event()
        interrupting = threading.Thread(target=interrupt, args=(number,))
        interrupting.start()
        answer = edrvfl(command)
        ended.set()
        assert answer == (128 + number, "", "\nInterrupted. Nothing was written.\n")
        interrupting.join()
    assert sorted(map(str, Path().iterdir())) == ["m.edrvfl", "new.csv", "p.csv"]
    assert Path("p.csv").read_text() == "before"


def test_pipes_and_devices_are_refused(edrvfl, model):
    model.save("m.edrvfl")
    Path("new.csv").write_text("age,city,room,member\n1,x,0,1\n")
    os.mkfifo("pipe")
    for typed in ("predict m.edrvfl pipe --out p.csv", "predict m.edrvfl new.csv --force --out pipe"):
        status, _, err = edrvfl(typed)
        assert (status, "edrvfl: pipe: is no file, but a pipe or a device." in err) == (2, True)
    assert Path("pipe").is_fifo()


def test_what_is_no_model_is_told(edrvfl, guests):
    Path("new.csv").write_text("age\n1\n")
    Path("m.edrvfl").write_bytes(b"\xff" * 100)
    for typed in ("predict new.csv m.edrvfl --out p.csv", "evaluate new.csv m.edrvfl", "inspect new.csv"):
        status, _, err = edrvfl(typed)
        assert (status, "'new.csv' cannot be loaded" in err) == (2, True)
    assert edrvfl("inspect no.edrvfl")[::2] == (2, "edrvfl: no.edrvfl: No such file or directory\n")
    library.TabularEncoder().fit(guests[COLUMNS]).save("e.edrvfl")
    status, _, err = edrvfl("predict e.edrvfl new.csv --out p.csv")
    assert (status, "holds a TabularEncoder, which prepares columns and predicts nothing" in err) == (2, True)
    assert "city    categories  3: Lyon, Oslo, Åre, north" in edrvfl("inspect e.edrvfl")[1]


def test_evaluate_says_which_rows_have_strange_classes_and_asks_for_the_target(edrvfl, guests, model):
    model.save("m.edrvfl")
    frame = guests[[*COLUMNS, "returns"]]
    frame.loc[3, "returns"] = "maybe"
    frame.to_csv("new.csv", index=False)
    status, out, err = edrvfl("evaluate m.edrvfl new.csv")
    known = frame["returns"] != "maybe"
    right = (model.predict(guests[COLUMNS]) == frame["returns"]).mean()
    loss = log_loss(frame["returns"][known], model.predict_proba(guests[COLUMNS])[known])
    figures = f"accuracy {right:.4f}, log-loss {loss:.4f}"
    assert (status, out.splitlines()[0]) == (0, f"120 rows, compared with 'returns': {figures}")
    words = (
        "The model does not know the classes 'maybe': 1 row, counted as wrong and left out of the log-loss.\n"
    )
    assert err == words


def test_the_target_is_the_column_that_the_model_was_fitted_to(edrvfl, guests, model):
    model.save("m.edrvfl")
    guests.assign(id=range(120)).to_csv("new.csv", index=False)
    status, out, err = edrvfl("evaluate m.edrvfl new.csv")
    assert (status, err) == (0, "Not used: 'bill', 'id'.\n")
    assert out.startswith("120 rows, compared with 'returns': accuracy")
    guests.rename(columns={"returns": "Returned"}).to_csv("new.csv", index=False)
    status, out, err = edrvfl("evaluate m.edrvfl new.csv")
    assert (status, out) == (2, "")
    assert "there is no column 'returns', which the model predicts. Did you mean 'Returned'?" in err
    assert edrvfl("evaluate m.edrvfl new.csv --target Returned")[1].startswith("120 rows, compared with 'Ret")
    for fitted, whose in ((model, "whose target is 'returns'"), (nameless(guests), "which does not name")):
        fitted.save("m.edrvfl")
        status, out, err = edrvfl("evaluate m.edrvfl new.csv --target city")
        assert (status, out) == (2, "")
        assert f"new.csv: column 'city' (--target) is an input of the model, {whose}" in err


def nameless(guests):
    """Return a model that was fitted to an array, so that it knows no name of its target."""
    return library.EDRVFLClassifier(**SMALL).fit(guests[COLUMNS], guests["returns"].to_numpy())


def test_a_model_that_does_not_name_its_target_says_what_it_took_or_asks(edrvfl, guests):
    nameless(guests).save("m.edrvfl")
    assert "predicts 2 classes: no, yes" in edrvfl("inspect m.edrvfl")[1]
    guests.drop(columns="bill").to_csv("new.csv", index=False)
    status, out, err = edrvfl("evaluate m.edrvfl new.csv")
    assert (status, "compared with 'returns'" in out) == (0, True)
    assert (
        err
        == "Note: the model does not name its target; 'returns' is the one column that it does not know.\n"
    )
    for columns, asked in (
        ([*guests], "does not know 'returns', 'bill'"),
        (COLUMNS, "reads all columns, so none"),
    ):
        guests[columns].to_csv("new.csv", index=False)
        status, _, err = edrvfl("evaluate m.edrvfl new.csv")
        assert (status, f"which column is the target? The model {asked}" in err) == (2, True)
        assert "Say --target NAME." in err


def test_values_are_evaluated_as_scikit_learn_does(edrvfl, answers, guests):
    model = library.KernelRidgeRegressor().fit(guests[COLUMNS], guests["bill"])
    model.save("m.edrvfl")
    guests.drop(columns="returns").to_csv("new.csv", index=False)
    status, out, _ = edrvfl("evaluate m.edrvfl new.csv")
    errors = model.predict(guests[COLUMNS]) - guests["bill"]
    figures = model.score(guests[COLUMNS], guests["bill"]), (errors**2).mean() ** 0.5, abs(errors).mean()
    words = "R² {:.4f}, root mean squared error {:.6g}, mean absolute error {:.6g}\n".format(*figures)
    assert (status, out) == (0, f"120 rows, compared with 'bill': {words}")
    guests.drop(columns="returns")[:1].to_csv("one.csv", index=False)  # R² would need two rows
    error = abs(errors[0])
    words = (
        f"1 row, compared with 'bill': root mean squared error {error:.6g}, mean absolute error {error:.6g}\n"
    )
    assert edrvfl("evaluate m.edrvfl one.csv")[:2] == (0, words)
    assert edrvfl("predict m.edrvfl new.csv --out p.csv")[0] == 0
    assert_array_equal(answers("p.csv")["prediction"], model.predict(guests[COLUMNS]))


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("members_", {"member": ["a"]}), ("members_", {"weight": ["heavy"]}), ("loo_accuracy_", "good")],
)
def test_inspect_tells_of_figures_that_make_no_sense(edrvfl, attribute, value):
    portfolio = copy.copy(small_model("portfolio")[0])
    setattr(portfolio, attribute, value)
    Path("m.edrvfl").write_bytes(packed_model(portfolio))
    status, out, err = edrvfl("inspect m.edrvfl")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "m.edrvfl" in err


def test_inspect_tells_each_depth_of_a_network(edrvfl, guests, model):
    model.save("m.edrvfl")
    status, out, err = edrvfl("inspect m.edrvfl")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"m.edrvfl: EDRVFLClassifier, {Path('m.edrvfl').stat().st_size / 1e3:.1f} kB"
    assert lines[1] == "predicts returns: no, yes"
    figures = list(zip(model.loo_accuracies_, model.loo_log_losses_, strict=True))
    assert lines[2] == "leave-one-out accuracy {:.4f}, log-loss {:.4f}".format(*figures[-1])
    assert [line.split() for line in lines if line.startswith(("1 ", "2 "))] == [
        [str(depth), f"{accuracy:.4f}", f"{loss:.4f}"] for depth, (accuracy, loss) in enumerate(figures, 1)
    ]
    assert "room    categories  3: 0, 1, 1a" in lines
