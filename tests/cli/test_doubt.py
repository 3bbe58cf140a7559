"""`edrvfl doubt`, and how far rows are from those of the fit in `edrvfl predict --support`."""

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose, assert_array_equal

import edrvfl as library

COLUMNS = ["age", "city", "room", "member"]


def test_the_rows_to_check_are_those_of_the_library(edrvfl, guests):
    table = guests[[*COLUMNS, "returns"]].copy()
    table.loc[[10, 40], "returns"] = table.loc[[10, 40], "returns"].map({"yes": "no", "no": "yes"})
    table.loc[3, "returns"] = None
    table.to_csv("t.csv", index=False)
    asked = "doubt t.csv --target returns --model network --drop-missing-target --out d.csv"
    status, out, err = edrvfl(asked)
    found, left = pd.read_csv("d.csv"), table.drop(3)
    model = library.EDRVFLClassifier(random_state=0, remember="rows")
    expected = model.fit(left[COLUMNS], left["returns"]).doubtful_rows()
    assert (status, err.count("\n")) == (0, 1)  # a note about a column
    assert out.startswith(f"d.csv: {len(found)} of 119 rows to check; leave-one-out accuracy 0.")
    assert_array_equal(found["row"], expected.row + 1)  # the frame keeps its index, and rows count from 1
    assert_allclose(found["doubt"], expected.doubt)
    assert_array_equal(found["said"], expected.said)
    assert {11, 41} <= set(found["row"])
    assert list(found) == ["row", "doubt", "given", "said", "given_probability", "said_probability"]


def test_amounts_are_doubted_too(edrvfl, guests):
    table = guests[[*COLUMNS, "bill"]].copy()
    table.loc[7, "bill"] += 500.0
    table.to_csv("t.csv", index=False)
    status, out, err = edrvfl("doubt t.csv --target bill --model network --most 2")
    assert (status, len(out.splitlines())) == (0, 3)
    assert out.startswith("row,doubt,given,said\n8,")
    assert "t.csv: 2 of 120 rows to check; leave-one-out R²" in err


def test_support_is_written_beside_predictions(edrvfl, answers, guests):
    table = guests[[*COLUMNS, "returns"]]
    table.to_csv("t.csv", index=False)
    assert edrvfl("fit t.csv -t returns --out m.edrvfl --model network --remember -q") == (0, "", "")
    strange = table[COLUMNS].copy()
    strange.loc[5, "age"] = 900
    strange.to_csv("n.csv", index=False)
    assert edrvfl("predict m.edrvfl n.csv --out p.csv --support -q") == (0, "", "")
    found = answers("p.csv", 3)["support"]
    assert_allclose(found, library.load("m.edrvfl").support(strange))
    assert found[5] == 1
    assert np.delete(found, 5).mean() < 0.6
    plain = library.EDRVFLClassifier(n_hidden=4, n_layers=1)
    plain.fit(table[COLUMNS], table["returns"]).save("plain.edrvfl")
    status, _, err = edrvfl("predict plain.edrvfl n.csv --out q.csv --support")
    assert (status, "Fit it with --remember" in err) == (2, True)
