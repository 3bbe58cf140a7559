"""Fixtures: array libraries, random numbers, small problems, the shipped study."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from helpers import noisy_rows
from hypothesis import settings

settings.register_profile("edrvfl", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("edrvfl")


@pytest.fixture(params=["numpy", "torch", "array_api_strict"])
def xp(request):
    """An array library; every kernel test that asks for it runs on all of them."""
    pytest.importorskip(request.param)
    if request.param == "array_api_strict":
        return importlib.import_module("array_api_strict")
    return importlib.import_module(f"array_api_compat.{request.param}")


@pytest.fixture
def rng():
    return np.random.default_rng(20220712)


@pytest.fixture
def noisy():
    """Three classes in five columns, 90 rows, not separable: every layer gets some rows wrong."""
    return noisy_rows(np.random.default_rng(7), 90, 5)


# The limits that tests set, and the modules that have them.
LIMITS = {
    "CPU_BLOCK_BYTES": "_seam.arrays",
    "PANEL_ROWS": "_seam.linalg",
    "MANY_ROWS": "_layers.records",
    "WIDE_SHAPE": "_layers.records",
    "GRADIENT_CLASSES": "_fitting.gradient",
    "DOUBLE_ROWS": "_fitting.systems",
    **dict.fromkeys(
        ("PART_ROWS", "VALUE_PART_ROWS", "LEAST_PART", "MOST_ROWS", "SEARCH_ROWS", "FEW"), "_fitting.kernel"
    ),
    "WORTH_PROCESSES": "_fitting.race",
    "NEGLIGIBLE": "_loo.pool",
}


@pytest.fixture
def limit(monkeypatch):
    """Set limits by their names, so that small data meet what otherwise many rows meet."""

    def to(**sizes):
        for name, size in sizes.items():
            monkeypatch.setattr(f"edrvfl.{LIMITS[name]}.{name}", size)

    return to


@pytest.fixture(scope="session")
def shipped_store(tmp_path_factory):
    """A store with the shipped records, for reading."""
    from edrvfl.bench.exchange import import_files

    path = tmp_path_factory.mktemp("shipped") / "study.db"
    (report,) = import_files(path, [Path(__file__).parents[1] / "results" / "study.jsonl.gz"]).values()
    assert not report.conflicts
    return path
