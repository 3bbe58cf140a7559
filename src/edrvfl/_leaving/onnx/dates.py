"""Dates as a graph: whole microseconds become days, and where in the year, the week and the day."""

from __future__ import annotations

from typing import Any

import numpy

from ..._inputs.dates import DAY, GAP, HOUR, THURSDAY, YEAR, Dates
from .graph import Graph, Name

# The calendar repeats itself every 400 years. Years begin with March here, so that leap days end them
# (Neri and Schneider, 2022, https://doi.org/10.1002/spe.3172).
OF_400_YEARS, OF_100_YEARS, OF_4_YEARS = 146_097, 36_524, 1_461
BEFORE_1970 = 719_468  # days since the 1st of March of the year 0
JANUARY_AND_FEBRUARY = 60  # their days in a leap year


class Ticks:
    """A tensor of whole numbers, with the operators of Python."""

    def __init__(self, graph: Graph, name: Name) -> None:
        self.graph, self.name = graph, name

    def _with(self, operator: str, other: Any) -> Ticks:
        other = other.name if isinstance(other, Ticks) else self.graph.constant(other, numpy.int64)
        return Ticks(self.graph, self.graph.add(operator, self.name, other))

    def __add__(self, other: Any) -> Ticks:
        return self._with("Add", other)

    def __sub__(self, other: Any) -> Ticks:
        return self._with("Sub", other)

    def __mul__(self, other: Any) -> Ticks:
        return self._with("Mul", other)

    def __floordiv__(self, other: int) -> Ticks:
        """Divide what is not negative, or has no rest: ONNX rounds towards 0."""
        return self._with("Div", other)

    def __mod__(self, other: int) -> Ticks:
        """Return the rest, which is never negative."""
        return self._with("Mod", other)

    def over(self, divisor: float) -> Name:
        """Return the numbers divided, in float64."""
        return self.graph.add("Div", self.graph.cast(self.name, numpy.float64), self.graph.constant(divisor))


def date_parts(graph: Graph, column: Name, dates: Dates) -> Name:
    """Return the parts (rows, parts) of a column (rows, 1) of microseconds, as `Dates.coded` does."""
    missing = graph.add("Equal", column, graph.constant(GAP, numpy.int64))
    origin = graph.constant(dates.origin * DAY, numpy.int64)
    at = Ticks(graph, graph.add("Where", missing, origin, column))
    of_day = at % DAY
    day = (at - of_day) // DAY
    made: dict[str, Any] = {
        "days": lambda: [(at - dates.origin * DAY).over(DAY)],
        "hours": lambda: [at.over(HOUR)],
        "year_sin": lambda: [_on_circle(graph, _day_of_year(day), YEAR)],
        "weekday_sin": lambda: [_on_circle(graph, (day + THURSDAY) % 7, 7)],
        "hour_sin": lambda: _waves(graph, of_day.over(DAY / (2 * numpy.pi))),
    }
    parts = [
        part for name in dates.parts if name in made for part in made[name]()
    ]  # a sine brings its cosine
    return graph.add("Where", missing, graph.constant(numpy.nan), graph.concat(parts))


def _day_of_year(day: Ticks) -> Ticks:
    """Return the place of a day in a leap year, from 0."""
    of_era = (day + BEFORE_1970) % OF_400_YEARS
    leaps = of_era // (OF_4_YEARS - 1) - of_era // OF_100_YEARS + of_era // (OF_400_YEARS - 1)
    year = (of_era - leaps) // 365
    since_march = of_era - (year * 365 + year // 4 - year // 100)
    return (since_march + JANUARY_AND_FEBRUARY) % YEAR


def _on_circle(graph: Graph, place: Ticks, n: int) -> Name:
    """Return sine and cosine of n places on a circle."""
    angles = 2 * numpy.pi * numpy.arange(n) / n
    table = graph.constant(numpy.stack([numpy.sin(angles), numpy.cos(angles)], axis=1))
    found = graph.add("Gather", table, place.name, axis=0)  # (rows, 1, 2)
    return graph.add("Squeeze", found, graph.constant([1], numpy.int64))


def _waves(graph: Graph, angle: Name) -> list[Name]:
    """Return sine and cosine. onnxruntime has no cosine in float64."""
    ahead = graph.add("Add", angle, numpy.pi / 2)
    return [graph.add("Sin", angle), graph.add("Sin", ahead)]
