import numpy as np
import pandas as pd
import pytest

from edrvfl import cli


@pytest.fixture
def edrvfl(tmp_path, monkeypatch, capsys):
    """Call `edrvfl ...` in an empty folder: exit status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(typed, *more):
        status = cli.main([*typed.split(), *more])
        return (status, *capsys.readouterr())

    return call


@pytest.fixture
def answers():
    """Read numbers with all their digits, which pandas did not always do."""

    def read(path, first=0):
        return pd.read_csv(path, dtype=str).iloc[:, first:].astype(float)

    return read


@pytest.fixture(scope="session")
def guests():
    """A table with numbers, gaps, text, truth values, and a code that looks like a number now and then."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 120).astype(float),
            "city": rng.choice(["Lyon", "Oslo", "Åre, north"], 120),
            "room": rng.choice(["0", "1", "1a"], 120),  # text, because of 1a
            "member": rng.random(120) < 0.5,
        }
    )
    frame.loc[::9, "age"] = np.nan
    frame.loc[::7, "city"] = None
    frame["returns"] = np.where((frame["age"] > 45) | (frame["room"] == "1"), "yes", "no")
    frame["bill"] = frame["age"].fillna(40) * 3 + 20 * frame["member"] + rng.normal(0, 5, 120)
    return frame
