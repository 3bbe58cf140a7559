"""Methods at their defaults, on frames and on arrays."""

import dataclasses
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from quiet import assert_same_records, run_cell
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

import edrvfl
from edrvfl import EDRVFLClassifier
from edrvfl.bench import defaults
from edrvfl.bench.cell import DefaultsUnit, seed_of
from edrvfl.bench.contenders import (
    Contender,
    as_categories,
    as_categories_or_codes,
    as_named_texts,
    without_dates_and_text,
)
from edrvfl.bench.data import load_dataset, load_frame
from edrvfl.bench.data.frames import frame_dataset
from edrvfl.bench.defaults import DefaultsCell, make_cells
from edrvfl.bench.exchange import export_file, import_files
from edrvfl.bench.methods import CONTENDERS, DEFAULT_GROUPS
from edrvfl.bench.record import DefaultsRecord, ValuesRecord
from edrvfl.bench.schedule import run
from edrvfl.bench.store import Store
from edrvfl.cli.show import summaries

CLASSIFIERS, REGRESSORS = CONTENDERS["classification"], CONTENDERS["regression"]


def a_table(m=80):
    """Texts, gaps in texts and in numbers, a text that occurs once, and classes that follow from them."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], m).astype(object)
    size = rng.normal(size=m)
    kind = np.where((colour == "red") ^ (size > 0), "yes", "no")
    colour[3], colour[5], size[7] = "violet", None, np.nan
    return pd.DataFrame({"colour": colour, "size": size, "count": rng.integers(5, size=m), "kind": kind})


@pytest.fixture(scope="module")
def tiny():
    return frame_dataset("tiny", a_table(), "kind")


@pytest.fixture(scope="module")
def prices():
    """Values that follow from the texts and the numbers, gaps and all."""
    table = a_table()
    price = (
        3.0 * (table["kind"] == "yes") + table["count"] + np.random.default_rng(1).normal(0, 0.1, len(table))
    )
    return frame_dataset("prices", table.drop(columns="kind").assign(price=price), "price", "regression")


def prior(random_state, strategy="prior"):
    return DummyClassifier(strategy=strategy, random_state=random_state)


PRIOR = Contender("prior", "", prior, lambda train, test: (train, test, {}))


def a_cell(contender, dataset, seeds=1):
    return DefaultsCell(contender, dataset, seeds, "a processor")


# --- how a frame is handed over --------------------------------------------------------------------------


def test_categories_are_those_of_the_training_rows_and_others_become_missing():
    train = pd.DataFrame({"a": ["x", "y", None], "b": [1, 2, 3]})
    test = pd.DataFrame({"a": ["y", "z", None], "b": [4, 5, 6]})
    made, asked, settings = as_categories(train, test)
    assert list(made["a"].cat.categories) == list(asked["a"].cat.categories) == ["x", "y"]
    assert asked["a"].isna().tolist() == [False, True, True]
    assert list(asked["a"].cat.codes) == [1, -1, -1]
    assert asked["b"].equals(test["b"])
    assert settings == {}
    assert not isinstance(train["a"].dtype, pd.CategoricalDtype), "the study's own frame stays as it is"
    made, asked, settings = as_categories_or_codes(train, test, most=0)
    assert made["a"].tolist() == pytest.approx([0, 1, np.nan], nan_ok=True)
    assert asked["a"].tolist() == pytest.approx([1, np.nan, np.nan], nan_ok=True)
    assert settings == {}


def test_a_column_of_more_texts_than_a_package_takes_becomes_numbers():
    names = [f"n{i}" for i in range(300)]
    train = pd.DataFrame({"ring": names, "kind": ["p", "q"] * 150, "y": [0, 1] * 150})
    test = pd.DataFrame({"ring": ["n7", "n300", None], "kind": ["q", "p", None], "y": [1, 0, 0]})
    made, asked, settings = as_categories_or_codes(train, test)
    assert settings == {}
    assert made["ring"].tolist() == [sorted(names).index(name) for name in names]
    assert asked["ring"].tolist() == pytest.approx([sorted(names).index("n7"), np.nan, np.nan], nan_ok=True)
    assert [made["kind"].dtype, asked["kind"].dtype] == [as_categories(train, test)[0]["kind"].dtype] * 2
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=2)
    assert model.fit(made.drop(columns="y"), train["y"]).score(asked.drop(columns="y"), test["y"]) > 0
    with pytest.raises(ValueError, match="cardinality"):
        model.fit(as_categories(train, test)[0].drop(columns="y"), train["y"])


def test_texts_are_named_and_their_gaps_filled():
    train = pd.DataFrame({"a": ["x", None], "b": [1.0, None]})
    made, asked, settings = as_named_texts(train, train)
    assert made["a"].tolist() == asked["a"].tolist() == ["x", "missing"]
    assert made["b"].isna().tolist() == [False, True], "CatBoost takes gaps in numbers"
    assert settings == {"cat_features": ("a",)}


def dated(m=60):
    """A frame with a date that has a gap, a text that is always new, and a category."""
    rng, days = np.random.default_rng(0), pd.to_datetime("2000-01-02") + pd.to_timedelta(range(m), "D")
    names = [f"row {i} of {word}" for i, word in enumerate(rng.choice(["one", "two"], m))]
    kinds = rng.choice(["x", "y"], m)
    frame = pd.DataFrame({"day": days, "name": names, "kind": kinds, "target": rng.choice(["p", "q"], m)})
    frame.loc[3, "day"] = pd.NaT
    return frame


def test_dates_are_days_for_packages_that_know_none_and_left_out_with_texts_of_the_plain_portfolio():
    frame = dated().drop(columns="target")
    for prepare in (as_categories, as_categories_or_codes, as_named_texts):
        made, asked, _ = prepare(frame[:40], frame[40:])
        assert made["day"].tolist() == pytest.approx([1, 2, 3, np.nan, *range(5, 41)], nan_ok=True)
        assert asked["day"].tolist() == list(range(41, 61))
    made, asked, settings = without_dates_and_text(frame[:40], frame[40:])
    assert (list(made), list(asked), settings) == (["kind"], ["kind"], {})
    assert list(frame) == ["day", "name", "kind"], "the study's own frame stays as it is"


def test_the_contenders_of_the_tables_take_them_as_they_are():
    found = frame_dataset("Bundesliga", dated(), "target")  # a name of that group
    cells = make_cells([found], seeds=1)
    assert tuple(cell.contender.name for cell in cells) == DEFAULT_GROUPS["tables"]
    assert "TableVectorizer" in DEFAULT_GROUPS["tables"]
    for cell in cells:
        if "portfolio" not in cell.contender.name:  # which have tests of their own, and take longer
            value = cell.compute(DefaultsUnit(0, 0))
            assert np.isfinite(list(value.values())).all()


# --- a cell ------------------------------------------------------------------------------------------


def test_the_record_says_what_a_plain_loop_finds():
    oj = load_frame("OJ")
    (cell,) = make_cells([oj], ["HistGradientBoosting"], seeds=1)
    record = run_cell(cell)
    assert (record.status, record.dataset, record.method) == ("ok", "OJ", "HistGradientBoosting")
    X = oj.X.astype({"Store7": "category"})
    for split, accuracies, losses in zip(oj.splits, record.test_accuracy, record.log_loss, strict=True):
        model = HistGradientBoostingClassifier(random_state=seed_of("hidden", "OJ", 0))
        model.fit(X[split.train], oj.y[split.train])
        assert model.is_categorical_.sum() == 1
        P = model.predict_proba(X[split.test])
        assert accuracies == (np.mean(P.argmax(1) == oj.y[split.test]),)
        assert losses == (pytest.approx(log_loss(oj.y[split.test], P)),)
    assert record.mean("log_loss") == pytest.approx(np.mean(record.log_loss))
    assert {"pandas", "lightgbm", "numpy"} <= set(record.versions)


BOOSTING = ("HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost")


@pytest.mark.parametrize(
    ("task", "name"),
    [*(("classification", name) for name in BOOSTING), *(("regression", name) for name in REGRESSORS)],
)
def test_every_contender_takes_texts_gaps_and_values_never_seen(task, name, tiny, prices):
    contender, dataset = CONTENDERS[task][name], tiny if task == "classification" else prices
    if name == "CatBoost":
        contender = dataclasses.replace(contender, estimator=partial(contender.estimator, iterations=20))
    seen, *_ = (i for i, split in enumerate(dataset.splits) if split.test[3])  # violet is a test row of these
    value = a_cell(contender, dataset).compute(DefaultsUnit(seen, 0))
    assert np.isfinite(list(value.values())).all()
    if task == "classification":
        assert value["test_accuracy"] <= 1
    else:
        assert 0 < value["r2"] < 1
        assert value["rmse"] < dataset.y.std()


NETWORKS = [name for name, row in CLASSIFIERS.items() if row.code.startswith("EDRVFLClassifier")]
LATER = {"edRVFL portfolio": "EDRVFLPortfolioClassifier", "LaplaceRidge": "KernelRidgeClassifier"}


@pytest.mark.parametrize("name", NETWORKS)
def test_our_networks_take_the_frame_as_it_comes(name, tiny):
    record = run_cell(a_cell(CLASSIFIERS[name], tiny))
    assert (record.status, record.message) == ("ok", None)
    model = CLASSIFIERS[name].estimator(random_state=0)
    asked = {} if name == "edRVFL default" else {"encoder": name.removeprefix("edRVFL ")}
    assert model.get_params() == EDRVFLClassifier(random_state=0, **asked).get_params()


def test_the_default_network_on_an_array_is_fitted_on_training_rows_with_every_seed():
    iris = load_dataset("iris")
    (cell,) = make_cells([iris], ["edRVFL default"], seeds=2)
    value = cell.compute(DefaultsUnit(2, 1))
    part = iris.splits[2]
    model = EDRVFLClassifier(random_state=seed_of("hidden", "iris", 1))
    model.fit(iris.X[part.fit | part.validation], iris.y[part.fit | part.validation])
    assert value["test_accuracy"] == model.score(iris.X[part.test], iris.y[part.test])
    assert cell.pending({}) == [DefaultsUnit(split, repeat) for split in range(4) for repeat in range(2)]


def test_every_parameter_of_our_network_is_part_of_its_key(tiny):
    row = CLASSIFIERS["edRVFL default"]
    expected = EDRVFLClassifier().get_params()
    del expected["remember"]  # it decides no answer
    assert row.settings.items() >= expected.items()
    other = dataclasses.replace(row, settings={**row.settings, "n_hidden": 7})
    assert a_cell(row, tiny).key != a_cell(other, tiny).key


@pytest.mark.parametrize("name", LATER)
def test_a_row_whose_estimator_exists_is_run_with_all_its_parameters_in_the_key(name, tiny):
    row = CLASSIFIERS[name]
    estimator = getattr(edrvfl, LATER[name])()
    expected = estimator.get_params(deep=False)
    del expected["remember"]  # it decides no answer
    if "members" in expected:  # the table that None stands for
        expected["members"] = {member: str(e) for member, e in estimator.default_members()}
    assert row.settings == expected
    assert name in DEFAULT_GROUPS["arrays"]
    value = a_cell(row, tiny).compute(DefaultsUnit(0, 0))
    assert np.isfinite(list(value.values())).all()


def test_the_usual_contenders_meet_frames_and_arrays(tiny):
    def names(dataset):
        return tuple(cell.contender.name for cell in make_cells([dataset]))

    assert names(tiny) == DEFAULT_GROUPS["frames"]
    assert names(load_dataset("iris")) == DEFAULT_GROUPS["arrays"]


# --- values ------------------------------------------------------------------------------------------


def test_the_record_of_values_says_what_a_plain_loop_finds():
    carseats = load_frame("Carseats")
    (cell,) = make_cells([carseats], ["HistGradientBoosting"], seeds=1)
    record = run_cell(cell)
    assert (record.kind, record.status, record.task) == ("values", "ok", "regression")
    X, y = carseats.X.astype(dict.fromkeys(["ShelveLoc", "Urban", "US"], "category")), carseats.y
    for split, r2, rmse in zip(carseats.splits, record.r2, record.rmse, strict=True):
        model = HistGradientBoostingRegressor(random_state=seed_of("hidden", "Carseats", 0))
        model.fit(X[split.train], y[split.train])
        assert r2 == (pytest.approx(model.score(X[split.test], y[split.test])),)
        errors = model.predict(X[split.test]) - y[split.test]
        assert rmse == (pytest.approx(np.sqrt(np.mean(errors**2))),)
    assert ValuesRecord.from_json(record.to_json()) == record


def test_a_method_is_what_the_task_of_the_dataset_asks_for(tiny, prices):
    of_classes, of_values = make_cells([tiny, prices], ["LightGBM"])
    assert "LGBMClassifier" in of_classes.contender.code
    assert "LGBMRegressor" in of_values.contender.code
    assert (of_classes.describe()["kind"], of_values.describe()["kind"]) == ("defaults", "values")
    assert tuple(cell.contender.name for cell in make_cells([prices])) == DEFAULT_GROUPS["values"]
    with pytest.raises(ValueError, match=r"RBF-SVM takes no values such as prices; these do: .*CatBoost"):
        make_cells([prices], ["RBF-SVM"])


def test_both_tasks_share_a_run_and_an_export(tmp_path, tiny, prices):
    records = run(make_cells([tiny, prices], ["HistGradientBoosting"], seeds=1), tmp_path / "study.db")
    with Store(tmp_path / "study.db") as store:
        export_file(store, tmp_path / "study.jsonl.gz")
    import_files(tmp_path / "other.db", [tmp_path / "study.jsonl.gz"])
    with Store(tmp_path / "other.db") as store:
        assert store.records_of(DefaultsRecord) == records[:1]
        assert store.records_of(ValuesRecord) == records[1:]
        assert store.records() == [], "the search's records are others"
    found = defaults.Defaults.of(records)
    assert found.groups() == {"others": ("tiny",), "other values": ("prices",)}
    assert [found.task(names) for names in found.groups().values()] == ["classification", "regression"]
    tables = summaries(records)
    assert [table.columns[2].header for table in tables] == ["test accuracy", "R²"]
    assert [table.row_count for table in tables] == [1, 1]


# --- what is refused -----------------------------------------------------------------------------------


def test_nonsense_is_told_before_the_run(tiny, monkeypatch):
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        make_cells([tiny], seeds=0)
    with pytest.raises(ValueError, match=r"RBF-SVM takes no frames such as tiny; these do: .*CatBoost"):
        make_cells([tiny], ["RBF-SVM"])
    with pytest.raises(ValueError, match=r"no method 'CatBost'\. Did you mean 'CatBoost'\?"):
        make_cells([tiny], ["CatBost"])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "catboost" else object())
    with pytest.raises(ValueError, match=r"CatBoost needs the package catboost.*leave the methods out"):
        make_cells([tiny], ["CatBoost", "LightGBM"])


# --- in a store --------------------------------------------------------------------------------------


def test_cells_reach_other_processes(tiny):
    cells = make_cells([tiny], [n for n, row in CLASSIFIERS.items() if row.prepare is not None], seeds=1)
    sent = pickle.loads(pickle.dumps(cells))
    assert [cell.describe() for cell in sent] == [cell.describe() for cell in cells]
    trees = [cell.contender.name for cell in cells].index("HistGradientBoosting")
    assert_same_records([run_cell(sent[trees])], [run_cell(cells[trees])])


def test_a_method_that_fails_is_a_record(tiny):
    record = run_cell(a_cell(dataclasses.replace(PRIOR, estimator=partial(prior, strategy="none")), tiny))
    assert record.status == "failed"
    assert record.message.startswith("fit at the defaults on split 0 with seed 0: ")
    assert record.log_loss == ()
    assert DefaultsRecord.from_json(record.to_json()) == record


# --- the answer --------------------------------------------------------------------------------------


def test_one_record_for_each_pair_the_success_then_the_larger_then_the_later(tiny):
    good = run_cell(a_cell(PRIOR, tiny))
    failed = dataclasses.replace(good, status="failed", message="no", seeds=9, log_loss=())
    larger = dataclasses.replace(good, seeds=2, finished="2000")
    later = dataclasses.replace(good, seeds=2, finished="2001", key="this one")
    for order in (1, -1):
        found = defaults.Defaults.of([good, failed, later, larger][::order])
        assert found.records["tiny", "prior"].key == "this one"
    assert defaults.Defaults.of([]) is None
    assert found.groups() == {"others": ("tiny",)}
    assert found.methods(["tiny"]) == ("prior",)


def test_mean_over_datasets_and_deviation_over_the_seeds(tiny):
    record = run_cell(a_cell(PRIOR, tiny))
    one = dataclasses.replace(record, dataset="a", seeds=2, log_loss=((1.0, 2.0), (3.0, 4.0)))
    two = dataclasses.replace(record, dataset="b", seeds=3, log_loss=((5.0, 9.0, 4.0), (7.0, 9.0, 8.0)))
    found = defaults.Defaults.of([one, two])
    # By seed: 2 and 3 on a; 6, 9 and 6 on b.
    mean, sd = found.mean_and_sd(["a", "b"], "prior", "log_loss")
    assert mean == pytest.approx((2.5 + 7) / 2)
    assert sd == pytest.approx(np.std([4, 6], ddof=1)), "of the two seeds that both have"
    single = defaults.Defaults.of([record])
    assert np.isnan(single.mean_and_sd(["tiny"], "prior", "log_loss")[1])
