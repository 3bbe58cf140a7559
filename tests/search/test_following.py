"""Following and stopping a search."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from helpers import Recorder
from sklearn.datasets import load_wine

from edrvfl import EDRVFLClassifier, EDRVFLSearchCV


@pytest.fixture
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture
def search():
    space = {"n_hidden": [8, 16], "regularization": [0.1, 1.0], "prune_rate": [0.0, 0.3]}
    return EDRVFLSearchCV(EDRVFLClassifier(n_layers=2, random_state=0), space, n_iter=None, cv=3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_follow_the_search(wine, search, n_jobs):
    recorder = Recorder()
    search.set_params(n_jobs=n_jobs, ensemble_size=2).set_callbacks(recorder).fit(*wine)
    parts = recorder.told.count("end part")
    assert parts == recorder.told.count("begin part") == 3 * (2 if n_jobs == 1 else 4)  # widths, or settings
    assert recorder.told.count("end model") == 2
    order = [event for event in recorder.told if "part" not in event and "model" not in event]
    tasks = ["begin search", "end search", "begin refit", "end refit"]
    assert order == ["setup", "begin fit", *tasks, "end fit", "teardown"]


def test_nothing_is_printed_unless_asked_for(wine, search, capsys):
    search.fit(*wine)
    assert capsys.readouterr().out == ""
    search.set_params(verbose=1).fit(*wine)
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[EDRVFLSearchCV] ") for line in lines)
    assert [line.split()[1] for line in lines] == [f"{i}/6:" for i in range(1, 7)]
    assert re.fullmatch(r".* 5/6: split 3/3, 4 networks, best [01]\.\d{4}, about \d+ s left", lines[-2])
    assert lines[-1].endswith(", about 0 s left")


INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told its children to ignore it

import numpy as np
from edrvfl import EDRVFLClassifier, EDRVFLSearchCV

X = np.random.default_rng(0).standard_normal((500, 20))
network = EDRVFLClassifier(n_hidden=200)
search = EDRVFLSearchCV(network, {{"norm_scale": np.linspace(1, 2, 30)}}, n_jobs={n_jobs}, verbose=1)
try:
    search.fit(X, (X[:, 0] > 0).astype(int))
finally:
    print("left with", [name for name in vars(search) if name.endswith("_")], flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="asks for POSIX process groups")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_an_error_and_nothing_else(tmp_path, n_jobs):
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", INTERRUPTED.format(n_jobs=n_jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"JOBLIB_TEMP_FOLDER": str(tmp_path), "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    assert process.stdout.readline().startswith("[EDRVFLSearchCV] 1/")  # it is in the middle of it
    os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does: all the processes of the terminal get it
    output, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert "left with []" in output
    assert re.search(r"EDRVFLSearchCV was interrupted after \d+ of \d+ parts of its search", output)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (alive(process.pid) or list(tmp_path.iterdir())):
        time.sleep(0.1)
    assert not alive(process.pid)
    assert not list(tmp_path.iterdir())


def alive(group):
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
