"""The page on extending the study, done as it says: each file is run by the commands below it."""

import importlib
import json
import os
import re
import sys
from pathlib import Path
from shlex import split

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from edrvfl import cli
from edrvfl.bench import extend, methods, scores
from edrvfl.bench.beside import _find_contenders
from edrvfl.bench.data import ADDED, load_dataset
from edrvfl.bench.record import DefaultsRecord, ValuesRecord
from edrvfl.bench.report import write_report
from edrvfl.bench.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Forget what a plugin added when the test ends."""
    monkeypatch.setenv(extend.PLUGINS, "")
    kept = [
        methods._ROWS,
        methods._TABLE,
        methods._PLACES,
        ADDED,
        *methods._CONTENDERS.values(),
        *scores.MORE.values(),
    ]
    before = [each.copy() for each in kept]
    yield
    for each, was in zip(kept, before, strict=True):
        each.clear()
        (each.extend if isinstance(each, list) else each.update)(was)
    for name in [name for name in sys.modules if name.startswith("edrvfl_plugin_")]:
        del sys.modules[name]


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write the files of the page, and return the commands."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    files = re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in files] == ["neighbours.py", "hills.py", "brier.py"]
    assert max(code.count("\n") for _, code in files) < 20
    for name, code in files:
        Path(name).write_text(code)
    return {
        re.search(r"(\w+)\.py", line)[1]: split(line)[1:] for line in re.findall(r"```sh\n(.*?)\n```", text)
    }


def records(kind):
    with Store("study.db", create=False) as store:
        return {record.method: record for record in store.records_of(kind)}


def test_a_method_is_one_file_and_worker_processes_know_it(page, capsys):
    assert cli.main([*page["neighbours"], "--jobs", "2", "--seeds", "1"]) == 0
    assert "neighbours" in capsys.readouterr().out
    found = records(DefaultsRecord)
    assert set(found) == {"neighbours", "linear model"}
    from sklearn.neighbors import KNeighborsClassifier

    iris = load_dataset("iris")
    expected = [
        KNeighborsClassifier(7).fit(iris.X[s.train], iris.y[s.train]).score(iris.X[s.test], iris.y[s.test])
        for s in iris.splits
    ]
    assert [row[0] for row in found["neighbours"].test_accuracy] == expected
    assert list(_find_contenders(["neighbours"], "classification")) == ["edRVFL portfolio", "neighbours"]
    write_report("study.db", "report.md")
    assert "| neighbours, default |" in Path("report.md").read_text()


def test_a_dataset_is_one_file(page):
    assert cli.main([*page["hills"], "--jobs", "1", "--quiet"]) == 0
    found = records(ValuesRecord)
    assert {record.dataset for record in found.values()} == {"hills"}
    assert found["RandomForest"].mean("r2") > found["linear model"].mean("r2") > 0.5


def test_a_metric_is_one_file(page, capsys):
    assert cli.main([*page["brier"], "--jobs", "1"]) == 0
    record = records(DefaultsRecord)["linear model"]
    assert f"Brier score {record.mean('Brier score'):.4g}" in capsys.readouterr().out
    iris = load_dataset("iris")
    contender = methods.CONTENDERS["classification"]["linear model"]
    one = iris.splits[0]
    model = contender.estimator(random_state=0).fit(iris.X[one.train], iris.y[one.train])
    pairs = zip(model.predict_proba(iris.X[one.test]), iris.y[one.test], strict=True)
    by_hand = np.mean([sum((p - (k == y)) ** 2 for k, p in enumerate(row)) for row, y in pairs])
    assert record.more["Brier score"][0][0] == pytest.approx(by_hand)
    assert DefaultsRecord.from_json(record.to_json()) == record
    without = json.loads(record.to_json())
    del without["more"]
    assert DefaultsRecord.from_json(json.dumps(without)).more == {}  # records from before
    write_report("study.db", "report.md")
    assert "| Brier score |" in Path("report.md").read_text()


def test_names_are_taken_once_and_files_are_files(page, capsys):
    for add, words in (
        (lambda: extend.add_method("LightGBM", LogisticRegression), "a method 'LightGBM' already"),
        (lambda: extend.add_method("nothing"), "nothing needs a classifier or a regressor"),
        (lambda: extend.add_dataset("iris", dict, "y"), "a dataset 'iris' already"),
        (lambda: extend.add_metric("log_loss", max), "a metric 'log_loss' of classification already"),
    ):
        with pytest.raises(ValueError, match=words):
            add()
    assert cli.main(["bench", "--plugin", "none.py", "status"]) == 2
    assert "none.py: there is no such file" in capsys.readouterr().err
    for name, text, words in (
        ("notes.txt", "", "notes.txt: expected a file of Python, whose name ends in .py"),
        ("wrong.py", "x = 1\ny = x / 0\n", "wrong.py, line 2: ZeroDivisionError: division by zero"),
        ("half.py", "def f(:\n", "half.py: SyntaxError: "),
    ):
        Path(name).write_text(text)
        assert cli.main(["bench", "--plugin", name, "status"]) == 2
        assert words in capsys.readouterr().err
    extend.load_plugins(["neighbours.py", "neighbours.py"])
    assert os.environ[extend.PLUGINS] == str(Path("neighbours.py").resolve())
    Path("other").mkdir()
    Path("other/neighbours.py").write_text("")
    with pytest.raises(ValueError, match="another plugin has this name"):
        extend.load_plugins(["other/neighbours.py"])
    assert importlib.import_module("edrvfl_plugin_neighbours")
