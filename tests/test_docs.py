"""What the documents say is true: their code runs, the map's names exist, the links lead somewhere."""

import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

import edrvfl
from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier
from edrvfl._fitting.settings import EFFORTS

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *(DOCS / "guide").glob("*.md")])
run_blocks = runpy.run_path(str(DOCS / "show_output.py"))["run_blocks"]
NUMBER = re.compile(r"-?\b\d+(?:\.\d*)?(?:e[+-]\d+)?")
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *PAGES]


def run_page(page):
    """Run the blocks of a page one after another, and return the names that they leave.

    What a block prints is what the page shows below it; numbers may differ as they do between machines.
    """
    names = {}
    for code, said, shown in run_blocks((ROOT / page).read_text(), str(page), names):
        assert NUMBER.sub("", said).split() == NUMBER.sub("", shown).split(), f"{code}\n{said}\n{shown}"
        found, expected = ([float(number) for number in NUMBER.findall(text)] for text in (said, shown))
        assert_allclose(found, expected, rtol=0.02, atol=0.01, err_msg=code)
    return names


def test_the_readme_runs():
    names = run_page("README.md")
    assert set(names) >= {"model", "X", "y"}  # there was a block


def test_output_that_a_page_does_not_show_is_found(tmp_path):
    for shown in ("```text\nfound 2.0\n```\n", ""):
        page = tmp_path / "page.md"
        page.write_text(f"```python\nprint('found', 1.0)\n```\n\n{shown}")
        with pytest.raises(AssertionError, match="found"):
            run_page(page)


def test_the_guide_is_what_is_run_here():
    runs = {
        "afterwards",
        "calibration",
        "command_line",
        "frames",
        "gpu",
        "groups",
        "intervals",
        "looking",
        "network",
        "portfolio",
        "regression",
        "running",
        "search",
        "your_table",
    }
    assert {page.stem for page in (DOCS / "guide").glob("*.md")} == runs


def test_the_first_page_runs():
    start = run_page("docs/start.md")
    assert start["model"].score(start["test"], start["broken_test"]) > 0.9
    assert np.all(start["lower"] < start["upper"])


def test_the_page_on_portfolios_runs():
    names = run_page("docs/guide/portfolio.md")
    assert names["welcome"].score(names["guests"], names["returns"]) > 0.95
    assert names["welcome"].predict_proba(names["pd"].DataFrame(names["stranger"])).shape == (1, 2)
    assert names["display"].figure_ is plt.gcf()
    plt.close("all")
    assert set(names["mine"].members_["member"]) == {*names["inside"]["member"], "tanh"}
    assert names["kernel"].loo_log_loss_ < 0.1


def test_the_page_on_networks_runs():
    names = run_page("docs/guide/network.md")
    assert names["sparse"].loo_log_losses_[-1] < 0.2
    assert len(names["weighted"].network_.votes) == 10 >= names["early"].n_layers_


def test_the_page_on_looking_runs():
    names = run_page("docs/guide/looking.md")
    assert names["importance"].importances[:5].min() > names["importance"].importances[5:].max()
    assert names["found"].importances_mean == pytest.approx(names["importance"].importances.mean(axis=1))
    assert len(names["depth"].ax_) == 2
    assert len(names["tried"].ax_) == 4
    assert sum(names["reliability"].counts) == len(names["y_new"])
    plt.close("all")


def test_the_page_on_rows_that_belong_together_runs():
    names = run_page("docs/guide/groups.md")
    assert len(names["found"]["test_score"]) == 5


def test_the_page_on_what_comes_after_the_fit_runs():
    names = run_page("docs/guide/afterwards.md")
    assert names["model"].frozen_since_ == (600, 2)
    assert any("leave-one-out" in part for part in names["frozen"])
    assert set(names["wrong"]) <= set(names["doubtful"].row)
    assert names["support"][2:].min() > names["support"][:2].max()


def test_the_page_on_regression_runs():
    names = run_page("docs/guide/regression.md")
    assert names["forecast"].score(names["test"], names["progress_test"]) > 0.4
    assert len(names["layered"].loo_r2_scores_) == 4
    assert min(*names["joint"].loo_r2_scores_, names["smooth"].loo_r2_score_) > 0.4
    assert names["twofold"].predict(names["others"]).shape == (442, 2)
    said = {name: names[name].predict(names["guests"]) for name in ("mean_bill", "typical_bill")}
    mean, typical = (np.mean(names["bill"] < values) for values in said.values())
    assert 0.4 < typical < 0.6 < mean


def test_the_page_on_frames_runs():
    names = run_page("docs/guide/frames.md")
    assert list(names["seen"].columns)[:4] == ["age", "spent", "member", "spent_missing"]


def test_the_page_on_probabilities_runs():
    names = run_page("docs/guide/calibration.md")
    raw, calibrated = (
        log_loss(names["y_test"], names[name].predict_proba(names["X_test"])) for name in ("raw", "model")
    )
    assert calibrated < raw / 2


def test_the_page_on_intervals_runs():
    names = run_page("docs/guide/intervals.md")
    assert 0.8 < names["held"] <= 1
    assert names["sets"].shape == (89, 3)
    assert np.mean(names["sets"][np.arange(89), names["y_wine"][1::2]]) > 0.9
    assert names["guaranteed"].coverage_.n_rows == 70


def test_the_page_on_searches_runs():
    names = run_page("docs/guide/search.md")
    assert names["search"].score(names["X_test"], names["y_test"]) > 0.93
    assert len(names["pool"].estimators_) == 5
    assert names["race"].best_score_ > 0.95
    assert -48 < names["sugar"].best_score_ < -40
    assert set(names["untuned"].regularization_) <= {2.0**i for i in range(-12, 13)}


def test_the_page_on_callbacks_runs():
    names = run_page("docs/guide/running.md")
    assert [row["task_name"] for row in names["monitor"].get_logs().data].count("layer") == 10


def test_the_page_on_gpus_runs():
    names = run_page("docs/guide/gpu.md")  # torch computes on the host if there is no GPU
    assert np.mean(names["home"].predict(names["X"]) == names["y"]) > 0.95


def test_the_page_on_the_command_line_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / "guide" / "command_line.md").read_text(), re.DOTALL)
    command = tmp_path / "edrvfl"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m edrvfl.cli "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    ended = subprocess.run(
        ["sh", "-e", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "LOKY_MAX_CPU_COUNT": "1"},  # processes of one command take seconds
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "Not used: 'returns'.\n")
    scores = [float(score) for score in re.findall(r"accuracy (0\.\d+)", ended.stdout)]
    assert len(scores) == 3  # fit, inspect, evaluate
    assert min(scores) > 0.8
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 101


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


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, which reads files without an index
def test_the_page_on_many_rows_runs_on_a_cluster(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,), names = blocks_on_many_rows("dask", without=False), {}
    exec(
        compile(blocks_on_many_rows("to_parquet", without=False)[0] + block, "out_of_core.md", "exec"), names
    )
    assert names["share_right"] > 0.85
    assert names["P"].shape == (3000, 2)
    assert names["table"].npartitions == 6
    assert names["right"] > 0.95


def test_the_guide_counts_the_members():
    members = EDRVFLPortfolioClassifier.default_members()
    networks = [member for _, member in members if isinstance(member, EDRVFLClassifier)]
    guide = (DOCS / "guide" / "portfolio.md").read_text()
    count = re.search(
        r"(\w+) members: (\w+) \[kernel voters\].*?(\w+) networks .*?the (\w+) are fitted.*?up to (\w+)",
        guide,
        re.DOTALL,
    )
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert [words.index(word.lower()) + 1 for word in count.groups()] == [
        len(members),
        len(members) - len(networks),
        len(networks),
        EFFORTS["usual"].kept,
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


def test_every_file_of_the_method_exists():
    named = re.findall(r"`(_[\w/]+(?:\.py|/))`", (DOCS / "method.md").read_text())
    assert len(named) > 15
    assert [name for name in named if not (ROOT / "src" / "edrvfl" / name).exists()] == []


def anchors(document):
    """Return the anchors that the headings of a document have on the site and where it is stored."""
    heads = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        file, _, anchor = target.partition("#")
        if file.startswith("http"):
            continue
        if anchor.startswith("edrvfl."):  # a name of the API
            assert not file
            assert anchor.removeprefix("edrvfl.") in edrvfl.__all__
        elif re.fullmatch(r"(?:\.\./)?gallery/\w+\.rst", file):  # made of the examples
            assert file.endswith("/index.rst") or (ROOT / "examples" / f"{Path(file).stem}.py").exists()
        else:
            path = document.parent / file if file else document
            assert path.exists(), target
            assert not anchor or anchor in anchors(path), target


def test_every_public_name_is_in_the_reference():
    lists = re.findall(
        r"currentmodule:: (\S+)\n(.*?)(?=\.\. currentmodule|```)", (DOCS / "api.md").read_text(), re.DOTALL
    )
    listed = {module: sorted(re.findall(r"^   (\w+)$", text, re.MULTILINE)) for module, text in lists}
    assert "``TRUSTED_TYPES``" in (DOCS / "api.md").read_text()  # a list, which has no page of its own
    assert listed == {"edrvfl": sorted(set(edrvfl.__all__) - {"TRUSTED_TYPES"})}


def test_every_public_name_has_an_example():
    section = "    Examples\n    --------\n    >>> "
    names = [name for name in edrvfl.__all__ if callable(getattr(edrvfl, name))]
    assert len(names) >= len(edrvfl.__all__) - 1
    assert [name for name in names if section not in getattr(edrvfl, name).__doc__] == []


def test_the_tables_are_those_of_the_records(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    maker = importlib.import_module("make_tables")
    tables = maker.make_tables()
    texts = {page.name: page.read_text() for page in maker.PAGES}
    for name, text in texts.items():
        assert maker.put_tables(text, tables) == text, name
    pages = texts["compare.md"] + texts["looking.md"] + texts["groups.md"]
    assert [name for name in tables if pages.count(f"<!-- {name} -->") != 1] == []
    assert texts["README.md"].count("<!-- uci24 -->") == 1, "the README has the page's first table"


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
    X, y = (
        pd.DataFrame(rng.standard_normal((40, 2)), columns=["a", "b"]),
        pd.Series(np.arange(40) % 2, name="y"),
    )
    model = cls().fit(X, y)
    section = re.search(r"    Attributes\n    -+\n(.*?)\n    [\w ]+\n    -+\n", cls.__doc__, re.DOTALL)[1]
    documented = re.findall(r"^    (\w+) : ", section, re.MULTILINE)
    fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    assert fitted <= set(documented)
    assert all(hasattr(model, attribute) for attribute in documented)


def test_the_page_on_deployment_runs(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "deployment.md").read_text()
    blocks, names = re.findall(r"```python\n(.*?)```", text, re.DOTALL), {}
    for block in blocks:
        exec(compile(block, "deployment.md", "exec"), names)
    X, guests = names["X"][1::2], names["guests"]
    assert_allclose(names["probabilities"], names["model"].predict_proba(X), atol=1e-5)
    assert (names["answers"] == names["welcome"].predict(guests)).all()
    run = names["onnxruntime"].InferenceSession(names["pipeline_model"].SerializeToString()).run
    said = run(["probabilities"], {"X": X.astype(np.float32)})[0]
    assert_allclose(said, names["pipeline"].predict_proba(X), atol=1e-5)
