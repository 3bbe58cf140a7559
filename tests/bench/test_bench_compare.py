"""`edrvfl bench compare`: what changed between two runs, and by paired tests."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from stored import a_record

from edrvfl import cli
from edrvfl.bench.cell import key_of
from edrvfl.bench.changes import find_changes
from edrvfl.bench.exchange import export_file
from edrvfl.bench.record import ValuesRecord
from edrvfl.bench.store import Store

NAMES = ("iris", "wine", "zoo", "glass", "ecoli", "seeds", "yeast", "car")


def studied(dataset, accuracy, **more):
    return replace(a_record(f"key of {dataset}", accuracy), dataset=dataset, **more)


def valued(dataset, r2, method="ridge"):
    one = ((r2,), (r2 + 0.2,))
    head = {
        name: getattr(a_record(), name) for name in ("status", "message", "finished", "versions", "commit")
    }
    where = {"key": f"{method} {dataset}", "dataset": dataset, "method": method, "checksum": "c"}
    tables = dict.fromkeys(("r2", "rmse", "fit_seconds", "predict_seconds"), one)
    return ValuesRecord(**head, **where, settings={}, seeds=1, processor="", **tables)


def stored(path, *records):
    with Store(path) as store, store.writing():
        for record in records:
            known = {name: getattr(record, name) for name in ("kind", "dataset", "method")}
            described = {**known, "trials": 1, "seeds": 1, "most_units": 1}
            store.add_description(key_of(described), described)
            store.add_record(replace(record, key=key_of(described)))
    return path


@pytest.fixture
def runs(tmp_path):
    accuracies = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.55, 0.65])
    steps = np.array([0.03, 0.01, -0.005, 0.02, 0.04, 0.0, 0.015])
    before = [studied(name, float(a)) for name, a in zip(NAMES, accuracies, strict=False)]
    after = [studied(name, float(a)) for name, a in zip(NAMES, accuracies + steps, strict=False)]
    after[1] = replace(after[1], checksum="d")
    failed = studied("car", 0.5, status="failed", message="ValueError: no\nmore", choices={})
    a = stored(tmp_path / "a.db", *before, studied("car", 0.5), valued("laser", 0.5))
    b = stored(tmp_path / "b.db", *after, failed, valued("laser", 0.5), valued("laser", 0.1, "forest"))
    return a, b, steps


def test_the_tests_are_those_of_scipy(runs):
    a, b, steps = runs
    found = find_changes(a, b)
    accuracy = next(t for t in found.trends if t.figure.key == "test_accuracy")
    assert (accuracy.method, accuracy.counts()) == ("small", (5, 1, 1))
    assert accuracy.p_exact == stats.wilcoxon(steps[steps != 0], method="exact").pvalue
    accuracies = [c for c in found.largest(99) if c.figure is accuracy.figure]
    order = np.argsort(-np.abs(steps), kind="stable")[:6]  # of seven, one did not change
    assert [c.cell[2] for c in accuracies] == [NAMES[i] for i in order]
    assert found.only_before == ()
    assert found.only_after == (("values", "forest", "laser"),)
    assert found.broken == ((("study", "small", "car"), "fails now: ValueError: no"),)
    assert found.other_data() == [("study", "small", "wine")]


def test_an_export_says_the_same_as_its_store(runs, tmp_path):
    a, b, _ = runs
    with Store(b) as store:
        export_file(store, tmp_path / "b.jsonl.gz")
    assert find_changes(a, tmp_path / "b.jsonl.gz") == find_changes(a, b)


def test_the_command_prints_it(runs, capsys, tmp_path):
    a, b, _ = runs
    assert cli.main(["bench", "compare", str(a), str(b), "--most", "2"]) == 0
    out, err = capsys.readouterr()
    out = " ".join(out.split())
    assert "small accuracy % 7 67.14 68.71 +1.57 5 / 1 / 1" in out
    assert "small on car fails now: ValueError: no" in out
    assert "b.db: forest on laser." in out
    assert "values: means over the datasets of both runs; 2 of 2 figures of a method did not change" in out
    assert "not the same task: wine" in err
    assert cli.main(["bench", "compare", str(a), str(a)]) == 0
    assert "No figure changed but seconds." in capsys.readouterr().out
    assert cli.main(["bench", "compare", str(a), str(tmp_path / "c.db")]) == 2
    assert "c.db: there is no such file." in capsys.readouterr().err
