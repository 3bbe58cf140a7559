"""What the documents say is true: their code runs, the map's names exist, the links lead somewhere."""

import importlib
import inspect
import re
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

import edrvfl
from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_readme_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names = {}
    for block in blocks[:3]:  # the fourth needs a GPU
        exec(compile(block, "README.md", "exec"), names)
    said = capsys.readouterr().out
    accuracy = float(re.match(r"accuracy (1\.0|0\.9\d*)\n", said)[1])
    assert accuracy == round(names["model"].score(names["X_test"], names["y_test"]), 3)
    assert all(name in said for name, _ in EDRVFLPortfolioClassifier.default_members())
    assert 0.4 < float(re.search(r"R\^2 by leave-one-out (.*)", said)[1]) < 0.6


def test_the_guide_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "guide.md").read_text(), re.DOTALL)
    assert len(blocks) == 23
    names, quicker = {}, {"800)": "400)", "n_iter=30": "n_iter=10"}
    assert all(any(said in block for block in blocks) for said in quicker)
    for block in blocks:
        for said, done in quicker.items():
            block = block.replace(said, done)
        exec(compile(block, "guide.md", "exec"), names)
    assert names["welcome"].score(names["guests"], names["returns"]) > 0.95
    assert names["welcome"].predict_proba(names["pd"].DataFrame(names["stranger"])).shape == (1, 2)
    assert names["display"].figure_ is plt.gcf()
    plt.close("all")
    assert set(names["mine"].members_["member"]) == {*names["inside"]["member"], "tanh"}
    assert names["kernel"].loo_log_loss_ < 0.1
    assert names["sparse"].loo_log_losses_[-1] < 0.1
    assert names["forecast"].score(names["test"], names["progress_test"]) > 0.4
    assert len(names["layered"].loo_r2_scores_) == 4
    assert min(*names["joint"].loo_r2_scores_, names["smooth"].loo_r2_score_) > 0.4
    assert names["twofold"].predict(names["others"]).shape == (442, 2)
    said = {name: names[name].predict(names["guests"]) for name in ("mean_bill", "typical_bill")}
    mean, typical = (np.mean(names["bill"] < values) for values in said.values())
    assert 0.4 < typical < 0.6 < mean
    assert list(names["seen"].columns)[:4] == ["age", "spent", "member", "spent_missing"]
    X_test, y_test = names["X_test"], names["y_test"]
    raw, calibrated = (log_loss(y_test, names[name].predict_proba(X_test)) for name in ("raw", "model"))
    assert calibrated < raw / 2
    assert 0.8 < names["held"] <= 1
    assert names["sets"].shape == (400, 2)
    assert names["guaranteed"].coverage_.n_rows == 70
    assert len(names["weighted"].network_.votes) == 10 >= names["early"].n_layers_
    assert names["search"].score(X_test, y_test) > 0.93
    assert len(names["pool"].estimators_) == 10
    assert len(names["race"].cv_results_["params"]) == 4
    assert names["race"].best_score_ > 0.95
    assert -48 < names["sugar"].best_score_ < -40
    assert set(names["untuned"].regularization_) <= {2.0**i for i in range(-12, 13)}
    assert [row["task_name"] for row in names["monitor"].get_logs().data].count("layer") == 10


def blocks_on_many_rows(phrase, without):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "out_of_core.md").read_text(), re.DOTALL)
    return [block for block in blocks if (phrase in block) != without]


def test_the_page_on_many_rows_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks, names = blocks_on_many_rows("dask", without=True), {}
    assert len(blocks) == 6
    for block in blocks:  # torch computes on the host if there is no GPU
        exec(compile(block.replace('device="cuda"', 'device="cpu"'), "out_of_core.md", "exec"), names)
    assert np.mean(names["right"]) > 0.95
    X, y = names["X"], names["y"]
    network = EDRVFLClassifier(n_hidden=64, n_layers=3, random_state=0).fit(np.asarray(X), y)
    for name in ("mapped", "called", "fitted"):
        assert_allclose(names[name].predict_proba(X), network.predict_proba(X), atol=1e-9)


def test_the_page_on_many_rows_runs_on_a_cluster():
    (block,), names = blocks_on_many_rows("dask", without=False), {}
    exec(compile(block, "out_of_core.md", "exec"), names)
    assert names["share_right"] > 0.85
    assert type(names["home"]) is EDRVFLClassifier


def test_the_guide_counts_the_members():
    members = EDRVFLPortfolioClassifier.default_members()
    networks = [member for _, member in members if isinstance(member, EDRVFLClassifier)]
    guide = (ROOT / "docs" / "guide.md").read_text()
    count = re.search(
        r"(\w+) members: (\w+) networks .*?the (\w+) of the smallest .*?up to (\w+)", guide, re.DOTALL
    )
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert [words.index(word.lower()) + 1 for word in count.groups()] == [
        len(members),
        len(networks),
        EDRVFLPortfolioClassifier().finalists,
        max(network.n_layers for network in networks),
    ]


def test_every_function_of_the_map_exists():
    rows = re.findall(r"^\|.*\| (.*) \|$", (ROOT / "docs" / "paper_map.md").read_text(), re.MULTILINE)
    named = 0
    for row in rows:
        module = None
        for name in re.findall(r"`([\w./]+)`", row):
            if name.endswith(".py"):
                module = importlib.import_module(f"edrvfl.{name.removesuffix('.py').replace('/', '.')}")
            elif module:
                assert hasattr(module, name), (module, name)
                named += 1
    assert named >= 20


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


ESTIMATORS = [name for name in edrvfl.__all__ if hasattr(getattr(edrvfl, name), "get_params")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_documented_parameters_are_the_real_ones(name):
    cls = getattr(edrvfl, name)
    section = re.search(r"    Parameters\n    -+\n(.*?)\n    \w+\n    -+\n", cls.__doc__, re.DOTALL)[1]
    documented = dict(re.findall(r"^    (\w+) : (.*)$", section, re.MULTILINE))
    real = inspect.signature(cls).parameters
    assert list(documented) == list(real)
    for parameter, text in documented.items():
        default = real[parameter].default
        if default is not inspect.Parameter.empty:
            assert text.endswith(f"default={default!r}".replace("'", '"')), text


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if not name.endswith("SearchCV")])
def test_documented_attributes_are_there_after_a_fit(name, rng):
    cls = getattr(edrvfl, name)
    X, y = pd.DataFrame(rng.standard_normal((40, 2)), columns=["a", "b"]), np.arange(40) % 2
    model = cls().fit(X, y)
    section = re.search(r"    Attributes\n    -+\n(.*?)\n    [\w ]+\n    -+\n", cls.__doc__, re.DOTALL)[1]
    documented = re.findall(r"^    (\w+) : ", section, re.MULTILINE)
    fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    assert fitted <= set(documented)
    assert all(hasattr(model, attribute) for attribute in documented)
