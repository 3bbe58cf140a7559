"""How much work a portfolio does, and what is shown of it to those who wait."""

import io
import time
from contextlib import redirect_stderr

import numpy as np
import pytest
from helpers import noisy_values

from edrvfl import EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor, load
from edrvfl._doors.telling import Bar


@pytest.fixture
def rows(rng):
    return noisy_values(rng, 60, 3)


@pytest.mark.parametrize(("effort", "kernels", "networks"), [("quick", 1, 0), ("usual", 2, 256)])
def test_an_effort_has_its_members(rows, tmp_path, effort, kernels, networks):
    X, y = rows
    model = EDRVFLPortfolioRegressor(effort=effort, random_state=0).fit(X, y)
    names = [name for name in model.members_["member"] if name.endswith("kernel")]
    assert len(names) == kernels
    assert set(model.members_["n_hidden"]) - {None} == ({networks} if networks else set())
    told = [name for name, _ in EDRVFLPortfolioRegressor.default_members(effort=effort)]
    assert set(model.members_["member"]) <= set(told)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.effort == effort
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_more_effort_is_no_less_work():
    tables = [dict(EDRVFLPortfolioClassifier.default_members(effort=e)) for e in ("quick", "usual")]
    assert set(tables[0]) < set(tables[1])


def test_an_effort_that_is_none_is_refused(rows):
    with pytest.raises(
        ValueError, match="'effort' parameter of EDRVFLPortfolioRegressor must be a str among"
    ):
        EDRVFLPortfolioRegressor(effort="huge").fit(*rows)


class Terminal(io.StringIO):
    """A screen that somebody looks at."""

    def isatty(self):
        return True


def test_a_bar_comes_when_a_fit_takes_long_and_goes_with_it():
    screen = Terminal()
    with Bar(screen, patience=0.0) as bar:
        bar.expect(4)
        bar.advance()
        deadline = time.monotonic() + 30
        while not screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert "25%" in bar.line()
        bar.expect(1)
        assert "50%" in bar.line()
    assert screen.getvalue().startswith("\rfit: [")
    assert screen.getvalue().rsplit("\r", 2)[1].strip() == ""  # the line is empty again


def test_a_fit_that_ends_soon_and_one_that_nobody_watches_show_nothing(rows):
    members = EDRVFLPortfolioRegressor.default_members(effort="quick")[:1]
    model = EDRVFLPortfolioRegressor(members=members, random_state=0)
    for screen in (Terminal(), io.StringIO()):
        with redirect_stderr(screen):
            model.fit(*rows)
        assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("verbose", "screen", "shown"),
    [("auto", Terminal, True), ("auto", io.StringIO, False), (0, Terminal, False)],
)
def test_a_bar_is_for_a_screen_that_somebody_looks_at(verbose, screen, shown):
    there = screen()
    with redirect_stderr(there), Bar.of(EDRVFLPortfolioRegressor(verbose=verbose)) as bar:
        assert (bar.stream is there) is shown
