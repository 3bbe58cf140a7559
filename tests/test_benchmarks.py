"""Every benchmark runs at its small size, and says something; what it needs may be missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(file.stem for file in BENCHMARKS.glob("*.py") if file.stem != "common")


@pytest.mark.parametrize("name", SCRIPTS)
def test_benchmark(name, tmp_path):
    ended = subprocess.run(
        [sys.executable, BENCHMARKS / f"{name}.py", "--small"],
        cwd=tmp_path,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()
    assert "failed" not in ended.stdout
