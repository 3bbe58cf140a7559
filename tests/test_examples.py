"""The examples run, with less to do, and draw what they say."""

import importlib
from pathlib import Path

import matplotlib
import pytest
from sklearn.datasets import load_iris

matplotlib.use("Agg")
import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).parents[1] / "examples"
# What is set in each example to make it quick, and a phrase that it prints.
QUICK = {
    "demo": ({"SPLITS": 1}, "together: "),
    "plot_blocks": ({"N_LAYERS": 3}, "flops a row: "),
    "plot_calibration": ({"N_TRAIN": 300, "N_NEW": 600}, "after"),
    "plot_layers": ({"SPLITS": 1, "DATASETS": {"iris": load_iris}}, ".png"),
    "plot_portfolio": ({"N_TRAIN": 300, "N_NEW": 600}, "portfolio: log-loss 0."),
    "plot_regression": ({"N_TRAIN": 300, "N_NEW": 600}, "portfolio: R^2 0."),
    "plot_search": ({"N_ITER": 4, "N_JOBS": 1}, "validation accuracy 0.9"),
}


def test_every_example_is_run():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*QUICK, "customers"}


@pytest.mark.parametrize("name", QUICK)
def test_example(name, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    picture = tmp_path / "picture.png"
    monkeypatch.setattr("sys.argv", [f"{name}.py", str(picture)])
    example = importlib.import_module(name)
    settings, phrase = QUICK[name]
    for constant, value in settings.items():
        monkeypatch.setattr(example, constant, value)
    if name == "demo":
        picture = tmp_path / example.PICTURE
        few = {"customers": lambda: example.make_customers(200, 0)[:2], "iris": example.DATASETS["iris"]}
        monkeypatch.setattr(example, "DATASETS", few)
    example.main()
    plt.close("all")
    assert phrase in capsys.readouterr().out
    assert plt.imread(picture).std() > 0.05  # not an empty page
