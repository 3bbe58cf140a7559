"""Columns of dates, times of day and durations: what they become, in every library, and what is refused."""

import datetime as dt
import math
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from edrvfl import EDRVFLClassifier, TabularEncoder
from edrvfl._inputs.dates import PARTS, Clock, Dates
from edrvfl._inputs.rows import prepare_values
from edrvfl._inputs.table import learn_table, open_table, read_table

DAY, NOON = dt.timedelta(days=1), dt.datetime(2024, 1, 1, 12)
moments = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1))
zones = st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata"])
clocks = {
    "datetime": moments,
    "zoned": st.builds(
        lambda when, zone: when.replace(tzinfo=ZoneInfo(zone)), moments, st.just("Europe/Paris")
    ),
    "date": st.dates(dt.date(1700, 1, 1), dt.date(2250, 1, 1)),
    "time": st.times(),
    "duration": st.timedeltas(-1000 * DAY, 1000 * DAY),
}


def learn(X, **features):
    return learn_table(open_table(X), **features)


def read(X, columns):
    return read_table(open_table(X, np.float64), columns)


def circle(share):
    return [math.sin(2 * math.pi * share), math.cos(2 * math.pi * share)]


def parts_by_hand(value, first):
    """The parts of one value by the module datetime; `first` is the day of the earliest date."""
    if isinstance(value, dt.timedelta):
        return [value / DAY]
    if isinstance(value, dt.time):
        seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
        return [seconds / 3600, *circle(seconds / 86400)]
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    wall = value.replace(tzinfo=None)
    leap = dt.date(2000, wall.month, wall.day)
    midnight = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    return [
        (wall - dt.datetime.combine(first, dt.time())) / DAY,
        *circle((leap - dt.date(2000, 1, 1)).days / 366),
        *circle(wall.weekday() / 7),
        *circle((wall - midnight) / DAY),
    ]


def day_of(value):
    return value.date() if isinstance(value, dt.datetime) else value


def by_hand(values):
    dates = [day_of(value) for value in values if isinstance(value, dt.date)]
    first = min(dates, default=None)
    n = max(len(parts_by_hand(value, first)) for value in values if value is not None)
    return np.array([[np.nan] * n if v is None else parts_by_hand(v, first) for v in values])


@settings(max_examples=10, deadline=None)
@pytest.mark.parametrize("kind", clocks)
@given(data=st.data())
def test_parts_are_those_of_the_module_datetime_in_every_library(kind, data):
    """The same bits in pandas, polars, pyarrow, and lists of Python's objects, whatever is missing."""
    values = data.draw(st.lists(st.none() | clocks[kind], min_size=2, max_size=6))
    values.append(data.draw(clocks[kind]))
    known = pl.Datetime("us", "Europe/Paris") if kind == "zoned" else None  # polars 1.20 would take UTC
    frames = [pl.DataFrame({"a": pl.Series(values, dtype=known)}), [[value] for value in values]]
    frames.append(frames[0].to_arrow())
    frames.append(frames[0].to_pandas())
    frames.append(pd.DataFrame({"a": pd.Series(values, dtype=object)}))
    frames.append(frames[3].astype("category"))
    frames.append(frames[4].astype("category"))
    frames.append(pa.table({"a": frames[2]["a"].dictionary_encode()}))
    expected = by_hand(values)
    for X in frames:
        found, columns = learn(X)
        assert_allclose(found, expected, rtol=1e-12, atol=1e-8)
        assert_array_equal(found, learn(frames[0])[0])
        for other in frames:
            assert_array_equal(read(other, columns), found)


@settings(max_examples=20, deadline=None)
@given(when=st.lists(moments, min_size=1, max_size=5), fit=zones, new=zones)
def test_a_moment_is_the_same_in_every_zone(when, fit, new):
    """Clocks are those of the zone of the fit; the same moments of another zone are the same rows."""
    there = [moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(fit)) for moment in when]
    X, columns = learn(pl.DataFrame({"a": pl.Series(there, dtype=pl.Datetime("us", fit))}))
    assert_allclose(X, by_hand(there), rtol=1e-9, atol=1e-5)
    elsewhere = pl.DataFrame({"a": pl.Series(there).dt.convert_time_zone(new)})
    assert_array_equal(read(elsewhere, columns), X)
    assert_array_equal(read([[moment.astimezone(ZoneInfo(new))] for moment in there], columns), X)


@settings(max_examples=16, deadline=None)
@given(
    seen=st.lists(st.none() | moments, min_size=3, max_size=12).filter(any),
    new=st.lists(st.none() | moments, min_size=1, max_size=4),
    numbers=st.sampled_from(["standard", "robust", "bins", "ranks"]),
    seed=st.integers(0, 2**31),
)
def test_neither_other_rows_nor_their_order_change_what_a_row_becomes(seen, new, numbers, seed):
    X = pd.DataFrame({"a": pd.Series(seen, dtype="datetime64[us]"), "b": np.arange(len(seen)) % 3})
    more = pd.DataFrame({"a": pd.Series(new, dtype="datetime64[us]"), "b": 1})
    encoder = TabularEncoder(numbers).fit(X)
    both = encoder.transform(pd.concat([more, X]))
    assert np.isfinite(both).all()
    assert_array_equal(both[len(more) :], encoder.transform(X))
    order = np.random.default_rng(seed).permutation(len(X))
    again = TabularEncoder(numbers).fit(X.iloc[order])
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert_allclose(again.transform(more), both[: len(more)], rtol=1e-6, atol=1e-6)
    turned = TabularEncoder(numbers).fit(X[["b", "a"]])
    of_names = dict(zip(turned.get_feature_names_out(), turned.transform(more[["b", "a"]]).T, strict=True))
    for name, column in zip(encoder.get_feature_names_out(), both[: len(more)].T, strict=True):
        assert_allclose(of_names[name], column, rtol=1e-6, atol=1e-6)


def test_parts_that_do_not_vary_are_left_out():
    """Mondays at noon over a year say nothing by weekday or hour, days of June next to nothing by season."""
    mondays = pd.date_range("2024-01-01 12:00", periods=52, freq="7D")
    june = pd.date_range("2024-06-20", "2024-06-23", freq="h")
    names = {
        name: TabularEncoder().fit(pd.DataFrame({"when": days})).get_feature_names_out().tolist()
        for name, days in [("mondays", mondays), ("june", june)]
    }
    assert names["mondays"] == ["when_days", "when_year_sin", "when_year_cos"]
    assert {"when_days", "when_weekday_sin", "when_hour_sin", "when_hour_cos"} <= set(names["june"])
    assert not any("year" in name for name in names["june"])


def test_every_type_of_dates_is_read():
    """Coarse and fine units, pandas' Arrow types, NumPy's arrays, and gaps throughout."""
    days = ["2024-02-29", None, "2023-12-31"]
    expected, columns = learn(pd.DataFrame({"a": pd.to_datetime(days)}))
    for unit in ("s", "ms", "us", "ns"):
        assert_array_equal(
            learn(np.array([["2024-02-29"], ["NaT"], ["2023-12-31"]], f"M8[{unit}]"))[0], expected
        )
        assert_array_equal(
            read(pd.DataFrame({"a": pd.to_datetime(days).astype(f"M8[{unit}]")}), columns), expected
        )
    for kind in (pa.date32(), pa.timestamp("ns")):
        arrow = pa.array(pd.to_datetime(days)).cast(kind)
        assert_array_equal(learn(pa.table({"a": arrow}))[0], expected)
        assert_array_equal(
            learn(pd.DataFrame({"a": pd.Series(arrow, dtype=pd.ArrowDtype(kind))}))[0], expected
        )
    gaps = [None, None, None]
    for X in (pd.DataFrame({"a": gaps}), pl.DataFrame({"a": gaps}), np.full((3, 1), np.nan), [[None]] * 3):
        assert np.isnan(read(X, columns)).all()
    nothing = pd.DataFrame({"a": pd.to_datetime(gaps), "b": 1.0})
    assert TabularEncoder().fit_transform(nothing).shape[0] == 3


def test_single_precision_keeps_the_minute_of_a_day_in_ten_years():
    when = pd.date_range("2015-01-01 08:30", "2025-01-01", freq="7h")
    X, columns = learn(pd.DataFrame({"a": np.arange(len(when), dtype=np.float32), "when": when}))
    assert X.dtype == np.float32
    wide = Dates.learn(Clock("date", when.as_unit("us").asi8)).coded(
        Clock("date", when.as_unit("us").asi8), len(when)
    )
    assert np.abs(X[:, 1] - wide[:, 0]).max() < 0.5 / 24 / 60
    assert columns.width == 1 + len(PARTS["date"])


AFTER = {"standard": "goes on", "robust": "saturates", "bins": "saturates", "ranks": "stands still"}


@pytest.mark.parametrize(("numbers", "what"), AFTER.items())
def test_what_a_date_after_the_last_one_becomes(numbers, what):
    """The number of days goes on with "standard" alone; it stays within 8 deviations, or stands still."""
    when = pd.date_range("2020-01-01", "2022-12-31")
    encoder = TabularEncoder(numbers).fit(pd.DataFrame({"when": when}))
    later = pd.to_datetime(["2022-12-31", "2024-12-31", "2222-12-31", "2262-01-01"])
    later = pd.DataFrame({"when": later})
    days = encoder.transform(later)[:, 0]
    assert {"goes on": days[3] > 100, "saturates": days[1] < days[2] < 5, "stands still": days[0] == days[3]}[
        what
    ]
    waves = [i for i, name in enumerate(encoder.get_feature_names_out()) if "year_sin" in name]
    assert_allclose(*encoder.transform(later)[:2, waves], atol=1e-12)  # the same day of the year


def test_rows_that_agree_by_chance_do_so_with_a_date_too(rng):
    """A month of days and three kinds: rows agree by chance, and are no copies, as with the days alone."""
    when = pd.Timestamp("2024-05-01") + pd.to_timedelta(rng.integers(0, 30, 400), unit="D")
    X, _ = learn(pd.DataFrame({"when": when, "kind": rng.integers(0, 3, 400)}))
    for table in (X, X[:, [0, 7]]):
        assert prepare_values(table, rng.standard_normal(400)).apart
    copies = np.repeat(rng.standard_normal((40, 3)), 10, axis=0)
    assert not prepare_values(copies, rng.standard_normal(400)).apart


# ---- what is refused


@pytest.mark.parametrize(
    ("fitted", "new", "message"),
    [
        ("2024-01-01", 5.0, "Column 'a' holds 5.0, but dates are expected, as in the fit"),
        ("2024-01-01", "2024-01-01", "Column 'a' holds '2024-01-01', but dates .* pandas.to_datetime"),
        ("2024-01-01", pd.Timedelta("1h"), "Column 'a' holds durations, but dates are expected"),
        ("2024-01-01", pd.Timestamp("2024-01-01", tz="UTC"), "dates with a time zone, but dates without one"),
        (pd.Timestamp("2024-01-01", tz="UTC"), pd.Timestamp("2024-01-01"), "dates without a time zone"),
        (5.0, pd.Timestamp("2024-01-01"), "Column 'a' holds dates or times where numbers"),
    ],
)
def test_other_values_than_in_the_fit_are_named(fitted, new, message):
    first = pd.Timestamp(fitted) if isinstance(fitted, str) else fitted
    encoder = TabularEncoder().fit(pd.DataFrame({"a": [first] * 3}))
    with pytest.raises(TypeError, match=message):
        encoder.transform(pd.DataFrame({"a": [new]}))


@pytest.mark.parametrize(
    ("values", "features", "message"),
    [
        ([dt.date(2024, 1, 1), 5], {}, "holds dates and other values in one column"),
        ([dt.date(2024, 1, 1), dt.time(1)], {}, "holds dates and times of day in one column"),
        (
            [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
            {},
            "with and without a time zone",
        ),
        ([dt.date(2024, 1, 1)] * 2, {"categorical_features": ["a"]}, "holds dates, which are no categories"),
        (
            [dt.timedelta(1)] * 2,
            {"text_features": ["a"]},
            "holds durations, which are no categories and no text",
        ),
    ],
    ids=str,
)
def test_columns_of_dates_that_make_no_sense_are_named(values, features, message):
    with pytest.raises(TypeError, match=f"Column 'a' {message}|Column 'a' holds dates {message}"):
        learn(pd.DataFrame({"a": pd.Series(values, dtype=object)}), **features)


WRITTEN = [
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S+00:00",
    "%d/%m/%Y",
    "%d %b %Y",
    "%B %d, %Y",
    "%m/%d/%y",
    "%Y-%m-%d %H:%M:%S-05",
    "%a, %d %b %Y %H:%M:%S GMT",
    "%A, %B %d, %Y",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_many_dates_that_are_written_as_text_ask_to_be_parsed(written):
    days = pd.date_range("2024-01-01", periods=80)
    X = pd.DataFrame({"a": days.strftime(written), "b": np.arange(80)})
    X.loc[3, "a"] = "unknown"
    for frame in (X, pl.from_pandas(X), pa.Table.from_pandas(X)):
        with pytest.raises(ValueError, match=r"Column 'a' holds dates .*pandas.to_datetime"):
            learn(frame)
    assert learn(X, categorical_features=["a"])[1].categorical == (True, False)
    assert learn(X, text_features=["a"])[1].words(0) == "text"
    parsed = X.assign(a=pd.to_datetime(X["a"], format=written, errors="coerce"))
    assert learn(parsed)[1].words(0) == "dates"


@pytest.mark.parametrize("written", ["%H:%M", "%H:%M:%S", "%I:%M %p"])
def test_many_times_of_day_that_are_written_as_text_are_told(written):
    times = pd.Series(pd.date_range("2024-01-01", periods=80, freq="17min"))
    X = pd.DataFrame({"a": times.dt.strftime(written)})
    with pytest.warns(UserWarning, match=r"Column 'a' holds times of day that are written as text"):
        assert learn(X)[1].words(0) in ("categories", "text")
    assert learn(X, categorical_features=["a"])[1].words(0) == "categories"  # without a warning
    assert learn(X[:40])[1].words(0) == "categories"
    parsed = X.assign(a=pd.to_datetime(X["a"], format=written).dt.time)
    assert learn(parsed)[1].words(0) == "times of day"


def test_few_dates_and_months_that_are_written_as_text_are_categories():
    months = pd.Series(pd.date_range("2015-01-01", periods=90, freq="MS").strftime("%Y-%m"))
    few = pd.Series(pd.date_range("2024-01-01", periods=12).strftime("%Y-%m-%d").repeat(10))
    assert learn(pd.DataFrame({"a": months}))[1].categorical == (True,)
    assert learn(pd.DataFrame({"a": few}))[1].categorical == (True,)


def test_types_that_hide_dates_are_dates():
    days = pd.Series(pd.date_range("2024-01-31", periods=60, freq="11D")).where(np.arange(60) != 3)
    X, columns = learn(pd.DataFrame({"a": days}))
    of_arrow = pa.array(days.dt.date, pa.date64())
    hidden = [
        pd.DataFrame({"a": days.dt.to_period("D")}),
        pd.DataFrame({"a": days.dt.to_period("D").astype("category")}),
        pd.DataFrame({"a": pd.Series(of_arrow, dtype=pd.ArrowDtype(of_arrow.type))}),
        pd.DataFrame({"a": pd.Series(of_arrow, dtype=pd.ArrowDtype(of_arrow.dictionary_encode().type))}),
        pa.table({"a": of_arrow}),
        pa.table({"a": of_arrow.dictionary_encode()}),
    ]
    for frame in hidden:
        found, same = learn(frame)
        assert_array_equal(found, X)
        assert same.kinds == columns.kinds
        assert_array_equal(read(frame, columns), X)
        with pytest.raises(TypeError, match="encoder=None, but these are not: a"):
            EDRVFLClassifier(encoder=None).fit(frame, np.arange(60) % 2)
        with pytest.raises(TypeError, match="Column 'a' holds dates or times where"):
            read(frame, learn(pd.DataFrame({"a": list("uv")}))[1])
    months = learn(pd.DataFrame({"a": days.dt.to_period("M")}))[0]
    assert_array_equal(
        months[:, 0], (days.dt.to_period("M").dt.start_time - pd.Timestamp("2024-01-01")).dt.days
    )
    lists = pa.table({"a": [[dt.date(2024, 1, 1)]] * 2})
    with pytest.raises(TypeError, match="hold lists or records"):
        learn(lists)


def test_a_network_learns_weekends_from_a_date(rng):
    when = pd.Series(pd.date_range("2024-01-01", periods=400, freq="17h"))
    X, y = pd.DataFrame({"when": when, "noise": rng.standard_normal(400)}), when.dt.day_of_week >= 5
    model = EDRVFLClassifier(n_hidden=100, n_layers=2, random_state=0).fit(X, y)
    assert model.loo_accuracies_[-1] > 0.97


ZONES = ["America/New_York", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Europe/Paris"]


@pytest.mark.parametrize("zone", ZONES)
def test_zones_of_any_name_are_read(zone):
    days = pd.Series(pd.date_range("2024-01-01", periods=60, freq="17h", tz=zone))
    X = pd.DataFrame({"a": days})
    coded, columns = learn(X)
    assert columns.kinds[0].zone == zone
    for other in (
        pl.from_pandas(X),
        pa.Table.from_pandas(X),
        X.astype(object),
        X["a"].dt.as_unit("s").to_frame(),
    ):
        again, same = learn(other)
        assert_array_equal(again, coded)
        assert same.kinds == columns.kinds
    with pytest.raises(TypeError, match="encoder=None, but these are not: a"):
        EDRVFLClassifier(encoder=None).fit(X, np.arange(60) % 2)


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        (dt.timezone(dt.timedelta(hours=-3, minutes=-30), "NST"), "UTC-03:30"),
        (dt.timezone(dt.timedelta(), "Greenwich"), "UTC"),
    ],
)
def test_a_fixed_zone_is_known_by_its_distance_whatever_it_is_called(zone, name):
    day = dt.datetime(2024, 5, 1, 12, tzinfo=zone)
    coded, columns = learn(
        pd.DataFrame({"a": pd.Series([day + dt.timedelta(hours=i) for i in range(9)], dtype=object)})
    )
    assert columns.kinds[0].zone == name
    assert coded[0, 0] == 0.5


def test_a_zone_without_a_name_says_what_to_do():
    odd = dt.datetime(2024, 5, 1, tzinfo=dt.timezone(dt.timedelta(seconds=61)))
    with pytest.raises(ValueError, match=r"Column 'a' holds dates of the time zone .* no name .*tz_convert"):
        learn(pd.DataFrame({"a": pd.Series([odd] * 9, dtype=object)}))


@pytest.mark.parametrize("year", ["-3000", "0001", "9999", "12000"])
def test_years_beyond_pythons_calendar_have_the_clocks_of_its_ends(year):
    days = np.datetime64(year, "s") + 3600 * np.arange(60)
    frame = pl.DataFrame({"a": days.astype("M8[us]")})
    far = frame.with_columns(pl.col("a").dt.replace_time_zone("America/New_York", ambiguous="earliest"))
    with_zone, without = learn(far)[0], learn(days[:, None])[0]
    assert_array_equal(without, learn(frame)[0])
    assert_allclose(np.diff(with_zone[:, 0]), np.diff(without[:, 0]))


@pytest.mark.parametrize("holds", ["M8[D]", "m8[D]"])
def test_what_microseconds_have_no_place_for_is_refused(holds):
    far = np.array([1, 2, 10**9], dtype=holds)
    for X in (
        far[:, None],
        pd.DataFrame({"a": far}),
        pd.DataFrame({"a": pd.Series(list(far), dtype=object)}),
    ):
        with pytest.raises(ValueError, match=r"in row 2, more than 4,000,000 days"):
            learn(X)


def test_nanoseconds_of_a_time_of_day_are_dropped():
    times = pa.array([1, 3_600_000_000_001]).cast(pa.time64("ns"))
    coded, _ = learn(pa.table({"a": times}))
    assert_array_equal(coded[:, 0], [0, 1])


def test_dates_in_an_array_are_no_numbers_without_an_encoder():
    X = np.arange(60).astype("M8[D]")[:, None]
    with pytest.raises(TypeError, match="takes numbers with encoder=None, but X holds dates"):
        EDRVFLClassifier(encoder=None).fit(X, np.arange(60) % 2)
