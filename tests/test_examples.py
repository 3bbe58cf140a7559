"""The examples run, with less to do, and draw what they say."""

import importlib
import runpy
from pathlib import Path

import matplotlib
import numpy as np
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


# Scripts to copy, which are run as they are, and a phrase that each prints.
SCRIPTS = {
    "plot_deployment": "the same bits: True",
    "plot_early_stop": "8 layers were grown and 6 kept",
    "plot_frame": "8 columns become 91",
    "plot_gpu": "largest difference between",
    "plot_importance": "income",
    "plot_imbalanced": "plain, threshold 1/11",
    "plot_tuning": "chosen: {",
}
# A helper of the others, and one that needs a heavy package.
NOT_RUN = {"customers", "tabarena_adapter"}


def test_every_example_is_run():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*QUICK, *SCRIPTS, *NOT_RUN}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    plt.close("all")
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert SCRIPTS[name] in capsys.readouterr().out
    (figure,) = map(plt.figure, plt.get_fignums())  # one picture
    figure.canvas.draw()
    assert np.asarray(figure.canvas.buffer_rgba()).std() > 10  # and not an empty one
    plt.close("all")
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 60


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
