"""Fixtures: the shipped study."""

from pathlib import Path

import pytest

from edrvfl.bench.exchange import import_files


@pytest.fixture(scope="session")
def shipped_store(tmp_path_factory):
    """A store with the shipped records, for reading."""
    path = tmp_path_factory.mktemp("shipped") / "study.db"
    (report,) = import_files(path, [Path(__file__).parents[2] / "results" / "study.jsonl.gz"]).values()
    assert not report.conflicts
    return path
