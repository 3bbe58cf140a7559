"""`edrvfl compare`: the command says what the function finds."""

from pathlib import Path

import numpy as np
import pytest

import edrvfl as library


def test_a_table_is_compared_as_in_python(edrvfl, guests):
    table = guests.drop(columns="bill").assign(guest=np.arange(120) // 2, day=np.arange(120) // 3)
    table.to_csv("t.csv", index=False)
    asked = "compare t.csv --target returns --splits 2 --groups guest --time day --picture p.png --quiet"
    status, out, err = edrvfl(asked, "--methods", "linear model")
    assert (status, err) == (0, "")
    assert Path("p.png").read_bytes()[:4] == b"\x89PNG"
    X = table.drop(columns="returns").astype({"room": object})
    found = library.compare(
        X, table["returns"], groups="guest", time="day", cv=2, methods=["linear model"], verbose=False
    )
    assert found.sentences() == out.splitlines()[:2]
    ours = found.scores["edRVFL portfolio"]["log_loss"].mean()
    assert f"edRVFL portfolio  {ours:.4g}" in out


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("--target bil", "there is no column 'bil' (--target). Did you mean 'bill'?"),
        ("--target bill --groups who", "there is no column 'who' (--groups)."),
        ("--target bill --picture p.txt", "p.txt: the name of a picture ends in .png, .svg or .pdf."),
        ("--target bill --picture t.csv.png", "t.csv.png: exists already. Take another name, or --force"),
        ("--target bill --time city", "time must have a value for each of the 120 rows, and no gaps."),
    ],
)
def test_mistakes_are_told_in_a_line(edrvfl, guests, asked, message):
    guests.to_csv("t.csv", index=False)
    Path("t.csv.png").touch()
    status, out, err = edrvfl(f"compare t.csv {asked} -q")
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
