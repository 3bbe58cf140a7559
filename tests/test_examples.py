"""The examples run from a copy in an empty folder, as a download does, and draw what they say."""

import runpy
import shutil
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).parents[1] / "examples"
PICTURES = Path(__file__).parents[1] / "docs" / "make_pictures.py"
# A phrase that each prints.
SCRIPTS = {
    "plot_blocks": "largest difference of a probability",
    "plot_calibration": 'after ("loo")',
    "plot_deployment": "the same bits: True",
    "plot_doubtful_rows": "24 of the 24 wrong ones are there",
    "plot_early_stop": "layers were grown and",
    "plot_forget": "in the file after: 0. Frozen",
    "plot_frame": "7 columns become 75",
    "plot_gpu": "largest difference between",
    "plot_importance": "income",
    "plot_imbalanced": "plain, threshold 1/11",
    "plot_layers": "WPedRVFL",
    "plot_portfolio": "by leave-one-out: accuracy 0.",
    "plot_regression": "new customers are inside",
    "plot_stream": "accuracy on rows to come: updated 0.9",
    "plot_support": "body mass index 30 and more: mean rank 0.9",
    "plot_tuning": "chosen: {",
}
TIMED = {"plot_deployment", "plot_gpu"}  # their curves are seconds, so nobody knows where they will be
NOT_RUN = {"demo", "tabarena_adapter"}  # the first has a test of its own, the second needs a heavy package


def covered(axes):
    """Count the points of lines and of scatters that lie below the legend."""
    box = axes.get_legend().get_window_extent()
    points = [scatter.get_offset_transform().transform(scatter.get_offsets()) for scatter in axes.collections]
    for line in axes.lines:
        corners = line.get_transform().transform(line.get_xydata())
        at = np.arange(len(corners))
        fine = np.linspace(0, at[-1], 100 * len(at))
        points.append(np.column_stack([np.interp(fine, at, corner) for corner in corners.T]))
    return sum(box.count_contains(each) for each in points if len(each))


def test_every_example_is_run():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == {*SCRIPTS, *NOT_RUN}


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Return a function that runs a copy of an example in a folder that has nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")

    def run(name, *arguments):
        copy = shutil.copy(EXAMPLES / f"{name}.py", tmp_path)
        monkeypatch.setattr("sys.argv", [copy, *arguments])
        plt.close("all")
        runpy.run_path(copy, run_name="__main__")
        return {file.name for file in tmp_path.iterdir()} - {f"{name}.py"}

    yield run
    plt.close("all")


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name, alone, capsys):
    left = alone(name)
    said = capsys.readouterr().out
    assert left == set()
    assert SCRIPTS[name] in said
    assert "/" not in said.replace("1/", "")  # no path; 1/2 is a threshold
    assert plt.get_fignums()
    for figure in map(plt.figure, plt.get_fignums()):
        figure.canvas.draw()
        assert np.asarray(figure.canvas.buffer_rgba()).std() > 10  # not an empty one
        if name not in TIMED:
            assert not [axes for axes in figure.axes if axes.get_legend() is not None and covered(axes)]
        assert figure.get_suptitle() or figure.axes[0].get_title()  # which becomes its text for the blind
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= 75


def test_the_demo_compares_models_and_draws_the_members(alone, capsys):
    assert alone("demo", "iris") == {"demo"}
    said = capsys.readouterr().out
    assert "iris (150 rows, 4 columns)" in said
    assert "together: " in said
    assert plt.imread(Path("demo") / "members.png").std() > 0.05  # not an empty page


def test_the_pictures_of_the_pages_are_drawn_by_one_script():
    wanted = runpy.run_path(str(PICTURES))
    drawn = {name for names in wanted["OF_EXAMPLES"].values() for name in names}
    elsewhere = {"rows", "report-1280", "report-390", "report-dark", "report-dataset"}
    made = {*drawn, "looking", "out_of_core", "honesty", "groups", *elsewhere}
    assert {file.stem for file in PICTURES.parent.glob("*.png")} == made
    assert set(wanted["OF_EXAMPLES"]) <= set(SCRIPTS)
    plt.close("all")
