"""Every benchmark runs at its small size, and says something; what it needs may be missing."""

import runpy
import sys
import warnings
from pathlib import Path

import pytest
import sklearn

import edrvfl._fitting.iterated
import edrvfl._fitting.kernel

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(file.stem for file in BENCHMARKS.glob("*.py") if file.stem != "common")


@pytest.mark.parametrize("name", SCRIPTS)
def test_benchmark(name, tmp_path, monkeypatch, capfd):
    script = str(BENCHMARKS / f"{name}.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", [script, "--small"])
    monkeypatch.setattr("sys.path", [str(BENCHMARKS), *sys.path])
    monkeypatch.delitem(sys.modules, "common", raising=False)  # it reads the command line as it is imported
    # one benchmark sets these limits, for its process: they are put back
    for module, name in ((edrvfl._fitting.kernel, "PART_ROWS"), (edrvfl._fitting.iterated, "LEAST_ITERATED")):
        monkeypatch.setattr(module, name, getattr(module, name))
    status = None
    with warnings.catch_warnings(), sklearn.config_context():
        warnings.simplefilter("default")  # a benchmark may warn, as a script does
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as end:  # what it needs is missing
            status = end.code
    assert not status
    said = capfd.readouterr().out
    assert said.strip()
    assert "failed" not in said
