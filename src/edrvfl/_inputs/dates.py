"""Dates, times of day and durations: a number that goes on, and where in the year, the week and the day."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as narwhals
import numpy

from .._seam.fields import Between, OneOf
from .values import is_missing

DAY, QUARTER, HOUR = 86_400_000_000, 900_000_000, 3_600_000_000  # microseconds
GAP = numpy.iinfo(numpy.int64).min  # NumPy's NaT
CENTURIES = 4_000_000  # days; all dates of Python's and NumPy's calendars are within so many of 1970
YEAR = 366
# How many days of a leap year are before each month: a day of the year has one place in all years
BEFORE_MONTH = numpy.array([0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335])
THURSDAY = 3  # 1970 began with one; weeks begin with Monday
# A sine or a cosine that stays within less than this in training says nothing that it could say later: what
# is nearly constant, divided by its deviation, would be huge on other days.
LEAST_WAVE = 0.25

# The columns that each kind becomes. A sine and a cosine belong together.
PARTS: Mapping[str, tuple[str, ...]] = {
    "date": ("days", "year_sin", "year_cos", "weekday_sin", "weekday_cos", "hour_sin", "hour_cos"),
    "time": ("hours", "hour_sin", "hour_cos"),
    "duration": ("days",),
}
TYPES: Mapping[str, Any] = {"duration": (timedelta, numpy.timedelta64), "time": time}
# How pandas and Arrow call the types of dates, times of day and durations
PANDAS_DATES = frozenset(("date", "datetime", "datetime64", "time", "timedelta", "timedelta64", "period"))
ARROW_DATES = ("date", "time", "duration")  # with which "timestamp" begins too
WORDS = {"date": "dates", "time": "times of day", "duration": "durations"}


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """A column of dates, times of day or durations, in microseconds.

    Dates count from 1970 by the clock on the wall, or if they have a zone in UTC.
    """

    holds: str  # a key of `PARTS`
    at: numpy.ndarray  # (m,), int64; GAP where missing
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Dates:
    """What is known of a column of dates, times of day or durations."""

    holds: Annotated[str, OneOf(tuple(PARTS))]
    origin: Annotated[int, Between(-CENTURIES, CENTURIES)] = 0  # the first day of the fit, from 1970
    zone: str | None = None  # by whose clocks days begin

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns that a column becomes."""
        return PARTS[self.holds]

    @classmethod
    def learn(cls, clock: Clock) -> Dates:
        """Note the first day of a column, so that its number keeps its digits in float32 too."""
        found = cls(clock.holds, 0, clock.zone)
        seen = clock.at[clock.at != GAP]
        if clock.holds != "date" or not len(seen):
            return found
        return cls("date", int(on_the_wall(seen, clock.zone).min() // DAY), clock.zone)

    def __add__(self, other: Dates) -> Dates:
        """Return what is known of both sets of rows."""
        self.refuse_other(other.holds, other.zone)
        return Dates(self.holds, min(self.origin, other.origin), self.zone)

    def refuse_other(self, holds: str, zone: str | None) -> None:
        """Refuse values of another kind, and dates with a zone beside dates without one."""
        if holds != self.holds:
            raise TypeError(f"holds {WORDS[holds]}, but {WORDS[self.holds]} are expected, as in the fit.")
        if (zone is None) is not (self.zone is None):
            a, b = ("with", "without") if self.zone is None else ("without", "with")
            raise TypeError(
                f"holds dates {a} a time zone, but dates {b} one are expected, as in the fit. Give all of "
                "them a zone, or none."
            )

    def coded(self, clock: Clock | None, m: int) -> numpy.ndarray:
        """Return the parts of m moments side by side, NaN where missing; None is a column of gaps."""
        if clock is None or (clock.at == GAP).all():
            return numpy.full((m, len(self.parts)), numpy.nan)
        self.refuse_other(clock.holds, clock.zone)
        missing = clock.at == GAP
        at = on_the_wall(numpy.where(missing, self.origin * DAY, clock.at), self.zone)
        of_day = 2 * numpy.pi * (at % DAY) / DAY
        day = (at // DAY).astype("datetime64[D]")
        month = day.astype("datetime64[M]")
        before = BEFORE_MONTH[(month - day.astype("datetime64[Y]")).astype(int)]
        of_year = 2 * numpy.pi * (before + (day - month).astype(int)) / YEAR
        of_week = 2 * numpy.pi * ((at // DAY + THURSDAY) % 7) / 7
        waves = {"year": of_year, "weekday": of_week, "hour": of_day}
        found = numpy.empty((m, len(self.parts)))
        for i, part in enumerate(self.parts):
            unit, _, wave = part.partition("_")
            if wave:
                found[:, i] = (numpy.sin if wave == "sin" else numpy.cos)(waves[unit])
            else:
                found[:, i] = (at - self.origin * DAY) / (DAY if unit == "days" else HOUR)
        found[missing] = numpy.nan
        return found


def on_the_wall(at: numpy.ndarray, zone: str | None) -> numpy.ndarray:
    """Return what clocks of a zone show at moments of UTC; without a zone the moments as they are.

    Clocks are looked at once for each quarter of an hour: nowhere have they been set at other times since
    there are zones. Before the year 2 and after 9998, which Python's calendar ends with, they stand as then.
    """
    if zone is None:
        return at
    quarters, place = numpy.unique(at // QUARTER, return_inverse=True)
    start, of_zone = datetime(1970, 1, 1, tzinfo=UTC), zone_of(zone)
    first, last = ((datetime(year, 1, 1, tzinfo=UTC) - start) // timedelta(minutes=15) for year in (2, 9999))
    moments = (start + timedelta(minutes=15 * int(q)) for q in numpy.clip(quarters, first, last))
    offsets = [moment.astimezone(of_zone).utcoffset() or timedelta() for moment in moments]
    on_wall: numpy.ndarray = at + (numpy.array(offsets, "timedelta64[us]").astype(numpy.int64))[place]
    return on_wall


def zone_of(name: str) -> tzinfo:
    """Return the zone of a name, "Europe/Paris", "UTC" or "+02:00"."""
    if found := re.fullmatch(r"(?:UTC)?([+-])(\d\d):?(\d\d)", name):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(
            f"holds dates of the time zone {name!r}, which this machine does not know."
        ) from error


def name_of(zone: tzinfo) -> str:
    """Return the name of a zone: that of the zone database, or how far clocks are from UTC at all times."""
    name, offset = getattr(zone, "key", None) or getattr(zone, "zone", None), zone.utcoffset(None)
    if name is not None or offset == timedelta():
        return name or "UTC"
    if offset is None or offset % timedelta(minutes=1):
        raise ValueError(
            f"holds dates of the time zone {zone}, which has no name that a model can keep. Convert them to "
            'a zone that has one, for instance by X[name].dt.tz_convert("Europe/Paris").'
        )
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    return f"UTC{'-' if offset < timedelta() else '+'}{hours:02d}:{minutes:02d}"


# --- reading -----------------------------------------------------------------------------------------


def clock_of(column: Any) -> Clock | None:
    """Return the moments of a column of a frame or of a list; None if it holds something else."""
    if isinstance(column, list):
        return clock_of_values(column)
    if not is_dated(column):
        return None
    kind, native = column.dtype, column.to_native()
    if (zone_of_pandas := _zone_of_pandas(column)) is not None:
        return Clock("date", _microseconds(native.dt.tz_convert(None).to_numpy()), name_of(zone_of_pandas))
    zone = getattr(kind, "time_zone", None)
    if zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if kind == narwhals.Time and column.implementation.is_pyarrow():
        found = numpy.array(native.cast("time64[us]", safe=False).to_pylist(), dtype=object)
    else:
        found = column.to_numpy()
    if found.dtype.kind not in "mM":  # times of day, and some types of pandas
        return clock_of_values(found.tolist()) or Clock(_holds(kind), numpy.full(len(found), GAP), zone)
    holds = "duration" if found.dtype.kind == "m" else "date"
    return Clock(holds, _microseconds(found), zone)


def as_plain_dates(column: Any) -> Any:
    """Return a column of dates in a type that narwhals takes for one of dates, any other column as it is.

    Periods of pandas stand for their start. Categories of pandas, and dictionaries of Arrow, that are dates
    only keep them in less memory.
    """
    native = found = column.to_native()
    if column.implementation.is_pandas():
        categories = getattr(found.dtype, "categories", None)
        if categories is not None and categories[:1].inferred_type in PANDAS_DATES:
            found = found.astype(categories.dtype)
        if type(found.dtype).__name__ == "PeriodDtype":
            found = found.dt.to_timestamp()
        elif _hidden_in_arrow(getattr(found.dtype, "pyarrow_dtype", None)) is not None:
            found = found.astype(object)
    elif column.implementation.is_pyarrow():
        while (kind := _hidden_in_arrow(found.type)) is not None:  # a dictionary may be one of date64
            found = found.cast(kind)
    return column if found is native else narwhals.from_native(found, series_only=True).alias(column.name)


def _hidden_in_arrow(kind: Any) -> Any:
    """Return the type of dates that a type of Arrow stands for, which narwhals does not see; else None."""
    if str(kind) == "date64[ms]":
        return "timestamp[ms]"
    if hasattr(kind, "index_type") and str(kind.value_type).startswith(ARROW_DATES):
        return kind.value_type
    return None


def is_dated(column: Any) -> bool:
    """Tell whether the type of a column of a frame is one of dates, times of day or durations."""
    return column.dtype.is_temporal() or _zone_of_pandas(column) is not None


def _zone_of_pandas(column: Any) -> tzinfo | None:
    """Return the zone of a type of pandas; narwhals does not know those whose names have an underscore."""
    zone = getattr(getattr(column.to_native(), "dtype", None), "tz", None)
    return zone if isinstance(zone, tzinfo) else None


def _holds(kind: Any) -> str:
    return "time" if kind == narwhals.Time else "duration" if kind == narwhals.Duration else "date"


def _microseconds(found: numpy.ndarray) -> numpy.ndarray:
    """Return dates or durations of any unit in microseconds, in which far ones have no place."""
    days = found.astype(f"{found.dtype.kind}8[D]").astype(numpy.int64)
    if (far := (days != GAP) & (abs(days) > CENTURIES)).any():
        row = int(far.argmax())
        raise ValueError(
            f"holds {found[row]} in row {row}, more than {CENTURIES:,} days from 1970 or from 0. Correct it, "
            "or make it missing."
        )
    ticks: numpy.ndarray = found.astype(f"{found.dtype.kind}8[us]").astype(numpy.int64)
    return ticks


def clock_of_values(values: list[Any]) -> Clock | None:
    """Return the moments of a list of objects; None if none of them is a date, a time or a duration."""
    dated = (date, time, timedelta, numpy.datetime64, numpy.timedelta64)
    if not any(issubclass(kind, dated) for kind in set(map(type, values))):
        return None
    values = [None if is_missing(value) else value for value in values]
    kinds = {_holds_value(value) for value in values if value is not None}
    if not kinds.intersection(PARTS):
        return None  # there is NaT alone, or beside others
    if len(kinds) > 1:
        words = " and ".join(sorted(WORDS.get(kind, kind) for kind in kinds))
        raise TypeError(f"holds {words} in one column. Make all of them dates, or none of them.")
    (holds,) = kinds
    if holds == "time":
        return Clock(holds, numpy.array([GAP if v is None else _of_day(v) for v in values], numpy.int64))
    zones = {name_of(v.tzinfo) for v in values if isinstance(v, datetime) and v.tzinfo is not None}
    if zones:
        if any(isinstance(v, date) and getattr(v, "tzinfo", None) is None for v in values):
            raise TypeError("holds dates with and without a time zone. Give all of them a zone, or none.")
        values = [v if v is None else v.astimezone(UTC).replace(tzinfo=None) for v in values]
    kind = numpy.timedelta64 if holds == "duration" else numpy.datetime64
    values = [kind("NaT") if v is None else v for v in values]
    of_numpy = all(isinstance(v, kind) for v in values)  # of any unit, and as far as it goes
    found = numpy.array(values, dtype=None if of_numpy else f"{numpy.dtype(kind).char}8[us]")
    return Clock(holds, _microseconds(found), _common_zone(zones))


def _holds_value(value: Any) -> str:
    for holds, kinds in TYPES.items():
        if isinstance(value, kinds):
            return holds
    return "date" if isinstance(value, (date, numpy.datetime64)) else "other values"


def _of_day(value: time) -> int:
    seconds = 3600 * value.hour + 60 * value.minute + value.second
    return 1_000_000 * seconds + value.microsecond


def _common_zone(zones: set[str]) -> str | None:
    """Return the zone that all dates have; UTC if they have several."""
    return None if not zones else next(iter(zones)) if len(zones) == 1 else "UTC"


# --- dates and times of day that are written as text -------------------------------------------------

MANY_DATES, NEARLY_ALL = 50, 0.95  # so many different values, this share of which are dates or times
_TIME = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?"
_CLOCK = rf"(?:[T ]+{_TIME}(?: ?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?)?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? )?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DAYS = (
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}",
    r"\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d\d)",
    rf"\d{{1,2}}\.?[ -]{_MONTH}[ ,-]+\d{{4}}",
    rf"{_MONTH} \d{{1,2}},? \d{{4}}",
)
WRITTEN_DATE = re.compile(rf"\s*{_WEEKDAY}(?:{'|'.join(_DAYS)}){_CLOCK}\s*", re.IGNORECASE)
WRITTEN_TIME = re.compile(rf"\s*{_TIME}\s*", re.IGNORECASE)


def _first_written(form: re.Pattern[str], values: Iterable[str | None]) -> str | None:
    """Return the first text of a form, if nearly all of many different values have it; else None."""
    different = set(values) - {None}
    if len(different) < MANY_DATES:
        return None
    found = [text for text in different if text is not None and form.fullmatch(text)]
    return None if len(found) < NEARLY_ALL * len(different) else min(found)


def warn_of_written_times(values: Iterable[str | None], name: str) -> None:
    """Warn if a column of text holds times of day; they are no error, since 12:30 may be a duration too."""
    if _first_written(WRITTEN_TIME, values) is not None:
        warnings.warn(  # without an example, so that Python tells it once though blocks of rows have it each
            f"{name} holds times of day that are written as text, and counts as categories or text. Turn it "
            "into times, for instance by pandas.to_datetime(X[name], format='%H:%M').dt.time, or into hours. "
            "If it holds categories, name it in categorical_features, on the command line in --categories.",
            stacklevel=2,
        )


def refuse_written_dates(values: Iterable[str | None]) -> None:
    """Refuse a column of text nearly all of whose many values are dates: nobody means these to be text."""
    example = _first_written(WRITTEN_DATE, values)
    if example is None:
        return
    raise ValueError(
        f"holds dates that are written as text, such as {example!r}. Turn it into dates: "
        "pandas.to_datetime(X[name]), with format='%d/%m/%Y' where the day comes first, or in polars "
        "X[name].str.to_datetime(). "
        "If its values are categories all the same, name it in categorical_features, and if they are text "
        "in text_features. On the command line write dates like 2024-01-31, or use --categories or --ignore."
    )
