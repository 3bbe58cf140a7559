"""`edrvfl.compare`: the same splits for all, honest intervals, and who is better."""

import datetime
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

import edrvfl
from edrvfl.bench.baselines.packages import missing_package
from edrvfl.bench.beside import _as_moments, _named_column, _plain_frame
from edrvfl.bench.contenders import Contender
from edrvfl.bench.data import Dataset, Split
from edrvfl.bench.defaults import measure
from edrvfl.bench.difference import BETTER, UNCLEAR, WORSE, Compared, Difference
from edrvfl.bench.splits import split_rows

EVERYONE = ["linear model", "RandomForest", "HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost"]


# --- intervals -------------------------------------------------------------------------------------------


def test_without_overlap_the_interval_is_that_of_a_paired_t_test(rng):
    a, b = rng.normal(0.5, 1, 9), rng.normal(0, 1, 9)
    found, expected = Difference.of(a - b, 0.0, 1), stats.ttest_rel(a, b).confidence_interval(0.95)
    assert_allclose((found.low, found.high), expected)


def test_splits_that_overlap_make_it_as_wide_as_published():
    # Nadeau and Bengio: four differences 1, 2, 3, 4; a quarter tested; t_3 at 0.975 is 3.182446
    found = Difference.of(np.array([1.0, 2.0, 3.0, 4.0]), 1 / 3, -1)
    assert_allclose(found.high - found.mean, 3.182446 * np.sqrt((1 / 4 + 1 / 3) * 5 / 3), rtol=1e-6)
    assert found.verdict == UNCLEAR
    assert Difference.of(np.array([-2.0, -2.1, -1.9]), 0.5, -1).verdict == BETTER
    assert Difference.of(np.array([-2.0, -2.1, -1.9]), 0.5, 1).verdict == WORSE
    assert Difference.of(np.array([5.0]), 0.5, 1).verdict == UNCLEAR


def scored(task, **rows):
    found = {(name, i): row for name, each in rows.items() for i, row in enumerate(each)}
    n = len(next(iter(rows.values())))
    return Compared.of(task, found, list(rows), [0.25] * n, ["CatBoost"], 100)


def test_it_says_plainly_who_is_better():
    seconds = {"fit_seconds": 1.0, "predict_seconds": 0.1}

    def row(rmse, r2):
        return [{"rmse": rmse + e, "r2": r2 + e / 10, **seconds} for e in (0.0, 0.01, -0.01, 0.02)]

    found = scored(
        "regression", ours=row(2.0, 0.5), Good=row(1.0, 0.8), Bad=row(3.0, 0.1), Broken=["X: no", "X: no"] * 2
    )
    said = "\n".join(found.sentences())
    assert "Good is better than the portfolio; take Good (-1, 95% interval -1 to -1)" in said
    assert "Broken failed: X: no" in said
    assert "Not installed: CatBoost" in said
    assert found.better() == ["Good"]
    assert [d.verdict for d in found.differences("r2").values()] == [BETTER, WORSE]
    with pytest.raises(ValueError, match=r"no metric 'auc' of regression; these are: rmse and r2"):
        found.differences("auc")
    ax = found.plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["Good", "Bad"]
    same = scored("regression", ours=row(2.0, 0.5), Bad=row(3.0, 0.1))
    assert "no other is clearly better than the portfolio; clearly worse is Bad" in str(same)
    figure = scored("regression", ours=row(2.0, 0.5), HistGradientBoosting=row(3.0, 0.1)).plot().figure
    figure.draw_without_rendering()
    ends = figure.axes[0].xaxis.label.get_window_extent().intervalx
    assert figure.bbox.x0 <= min(ends)  # the label is not cut off
    assert max(ends) <= figure.bbox.x1


# --- splits ----------------------------------------------------------------------------------------------


def test_splits_forward_in_time_never_look_ahead(rng):
    time, groups = rng.integers(0, 30, 100), rng.integers(0, 60, 100)
    found = split_rows(np.zeros(100), "regression", 4, None, time, 0)
    assert len(found) == 4
    assert all(time[train].max() < time[test].min() for train, test in found)
    assert sum(len(test) for _, test in found) + len(found[0][0]) == 100
    both = split_rows(np.zeros(100), "regression", 2, groups, time, 0)
    assert not any(set(groups[train]) & set(groups[test]) for train, test in both)
    with pytest.raises(ValueError, match="the 2 moments of time give 2; ask for fewer"):
        split_rows(np.zeros(100), "regression", 3, None, time > 15, 0)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_no_group_is_on_both_sides(rng, task):
    y, groups = rng.integers(0, 2, 90), rng.integers(0, 20, 90)
    found = split_rows(y, task, 3, groups, None, 0)
    assert not any(set(groups[train]) & set(groups[test]) for train, test in found)
    assert sorted(np.concatenate([test for _, test in found])) == list(range(90))


@pytest.mark.parametrize(
    "time",
    [
        pd.Series(pd.date_range("2020-01-31", periods=9, tz="Europe/Oslo")),
        pd.date_range("2020-01-31", periods=9),
        [datetime.date(2020, 1, 31) + datetime.timedelta(i) for i in range(9)],
        [f"20{i:02}-12-31T10:00" for i in range(9)],
        range(9),
    ],
    ids=lambda values: type(values).__name__,
)
def test_times_of_every_kind_have_their_order(time):
    X = pd.DataFrame({"x": range(9)})
    moments = _as_moments(_named_column(X, time, "time")[1])
    assert np.argsort(moments[::-1]).tolist() == list(range(9))[::-1]


def test_splits_of_scikit_learn_are_taken(rng):
    y = rng.integers(0, 2, 40)
    assert (
        len(split_rows(y, "classification", RepeatedStratifiedKFold(n_splits=2, n_repeats=3), None, None, 0))
        == 6
    )
    with pytest.raises(ValueError, match="cv must be a number of splits"):
        split_rows(y, "classification", StratifiedKFold(2), None, y, 0)


# --- tables ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    m = 90
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, m).astype(float),
            "city": rng.choice(["Oslo", "Lyon, old", "Åre"], m),
            "flag": rng.random(m) < 0.5,
            "nights": pd.array(rng.integers(0, 5, m), dtype="Int64"),
            "class": pd.Categorical(rng.choice([1, 2, 3], m)),
            "visit": pd.date_range("2024-01-01", periods=m),
            "guest": rng.integers(0, 40, m),
        }
    )
    X.loc[::7, "age"], X.loc[::11, "city"], X.loc[::13, "nights"], X.loc[::17, "class"] = (
        np.nan,
        None,
        pd.NA,
        np.nan,
    )
    return X


def test_everyone_gets_categories_gaps_and_groups_as_it_wants_them(frame, capsys):
    if any(missing_package(name, name.lower(), "peers") for name in EVERYONE[3:]):
        pytest.skip("a package of the extra peers is missing")
    y = np.where((frame["age"].fillna(40) > 50) ^ (frame["city"] == "Oslo"), "yes", "no")
    found = edrvfl.compare(frame.drop(columns="visit"), y, groups="guest", cv=2, verbose=True)
    assert (found.failures, found.absent) == ({}, ())
    assert list(found.scores) == ["edRVFL portfolio", *EVERYONE]
    assert all(np.isfinite(row["log_loss"]).all() for row in found.scores.values())
    assert found.table().shape == (7, 10)
    assert "14 of 14" in capsys.readouterr().err
    assert str(found).count("\n") > 8


def test_dates_give_the_order_and_values_are_compared_too(frame):
    y = frame["age"].fillna(40).to_numpy() * 2.5
    X = frame[["age", "visit"]].assign(other=frame["city"])
    found = edrvfl.compare(X, y, time="visit", methods=["linear model"], cv=2)
    assert found.task == "regression"
    assert_allclose(found.share, (30 / 30 + 30 / 60) / 2)
    assert found.scores["linear model"]["r2"].min() > 0.9
    with pytest.raises(ValueError, match="time must hold numbers, dates, or texts such as 2026-12-31"):
        edrvfl.compare(X, y, time=["soon"] * 90)


def test_dates_of_every_type_reach_the_others_as_days():
    days = pd.Series(pd.date_range("2024-01-31", periods=9)).where(np.arange(9) != 3)
    of_arrow = pd.Series(days.dt.date, dtype="date32[pyarrow]")
    columns = [days, days.dt.date, days.astype("category"), days.dt.to_period("D"), of_arrow]
    columns += [days.dt.date.astype("category"), days.dt.tz_localize("UTC").astype(object)]
    X = _plain_frame(pd.DataFrame(dict(enumerate(columns))))
    expected = (days - pd.Timestamp("1970-01-01")).dt.days
    assert_allclose(X.to_numpy(dtype=float), np.repeat(expected.to_numpy()[:, None], len(columns), axis=1))
    numbers = _plain_frame(pd.DataFrame({"a": pd.Categorical([1, 2, None])}))
    assert numbers["a"].tolist()[:2] == ["1", "2"]


def test_another_package_has_the_scores_that_scikit_learn_gives(rng):
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    X[::9, 1] = np.nan
    found = edrvfl.compare(X, y, methods=["RandomForest", "RBF-SVM"], cv=2, random_state=3)
    expected = []
    for train, test in StratifiedKFold(2, shuffle=True, random_state=3).split(X, y):
        forest = RandomForestClassifier(random_state=3).fit(X[train], y[train])
        expected.append(log_loss(y[test], forest.predict_proba(X[test])))
    assert_allclose(found.scores["RandomForest"]["log_loss"], expected)
    assert "contains NaN" in found.failures["RBF-SVM"]  # which ends no comparison


def test_a_class_that_no_row_trains_is_told_and_compared(rng):
    y = ["a"] * 9 + ["b"] * 10 + ["c"]
    with pytest.warns(UserWarning, match=r"test rows of class 'c' \(1 row\) and train with none"):
        found = edrvfl.compare(rng.random((20, 2)), y, methods=["linear model"], cv=2)
    assert list(found.scores) == ["edRVFL portfolio", "linear model"]


class Grouped(LogisticRegression):
    def fit(self, X, y, groups=None):
        self.seen_ = groups
        return super().fit(X, y)


def test_groups_reach_a_fit_that_asks_for_them(rng):
    X, y, groups = rng.standard_normal((20, 2)), np.arange(20) % 2, np.arange(20) // 2
    half = np.arange(20) < 10
    d = Dataset("own", X, y, (), "", ("0", "1"))
    made = []

    def make(kind, random_state):
        made.append(kind())
        return made[-1]

    for kind in (Grouped, LogisticRegression):
        measure(Contender("x", "", partial(make, kind)), d, Split(half, ~half & half, ~half), 0, groups)
    assert made[0].seen_.tolist() == groups[half].tolist()


def test_the_linear_model_is_ridge_on_what_one_would_write_by_hand(frame):
    from edrvfl.bench.methods import CONTENDERS

    X, y = frame[["age", "city"]].astype({"city": object}), frame["guest"].to_numpy(float)
    contender = CONTENDERS["regression"]["linear model"]
    train, test, parameters = contender.prepare(X[:60], X[60:])
    said = contender.estimator(random_state=0, **parameters).fit(train, y[:60]).predict(test)

    def by_hand(rows):
        age = X["age"][:60]
        filled = rows["age"].fillna(age.median())
        cities = [
            rows["city"].fillna("missing") == c for c in sorted(X["city"][:60].fillna("missing").unique())
        ]
        return np.column_stack([*cities, filled, rows["age"].isna()]).astype(float)

    known = by_hand(X[:60])
    mean, sd = known[:, -2:].mean(0), known[:, -2:].std(0)
    inputs = [np.column_stack([Z[:, :-2], (Z[:, -2:] - mean) / sd]) for Z in (known, by_hand(X[60:]))]
    ridge = RidgeCV(alphas=[10.0**x for x in range(-3, 4)]).fit(inputs[0], y[:60])
    assert_allclose(said, ridge.predict(inputs[1]))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"methods": ["Oracle"]}, "no method 'Oracle'"),
        ({"methods": ["RBF-SVM"], "task": "regression"}, "RBF-SVM cannot do regression; these can: edRVFL"),
        ({"groups": "who"}, "groups='who' names no column of X"),
        ({"groups": [1, 2]}, "groups must have a value for each of the 6 rows"),
        ({"y": ["a"] * 6}, "y holds one class only, 'a';"),
        ({"y": ["a"] * 5 + ["b"], "cv": 2}, r"trains with class 'a' alone, and without 'b' \(1 row\);"),
        (
            {"time": range(6), "y": list("aaaabc"), "cv": 2},
            r"Split 1 of 2 trains .* without 'b' \(1 row\) and 'c' ",
        ),
        ({"y": ["a", None] * 3}, "y is missing in 3 rows, the first is row 1"),
        ({"y": ["a", "b"] * 3, "task": "regression"}, "regression needs numbers"),
        ({"y": np.zeros((6, 2))}, r"one target for each of the 6 rows, got shape \(6, 2\)"),
        ({"X": np.zeros(6)}, "X must have rows and columns"),
        ({"X": np.zeros((0, 1)), "y": []}, "X has no rows"),
        ({"task": "guess"}, "task must be 'auto', 'classification' or 'regression', got 'guess'"),
    ],
)
def test_what_cannot_be_compared_is_told_before_the_fits(more, message):
    asked = {"X": np.zeros((6, 1)), "y": [0, 1] * 3, **more}
    with pytest.raises(ValueError, match=message):
        edrvfl.compare(**asked)
