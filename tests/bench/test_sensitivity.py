import dataclasses

import numpy as np
import pytest
from quiet import run_cell

from edrvfl import EDRVFLClassifier
from edrvfl.bench.cell import SensitivityUnit, seed_of
from edrvfl.bench.data import load_dataset
from edrvfl.bench.sensitivity import Sensitivity, fixed_settings, make_cells

SMALL = {"n_hidden": 20, "n_layers": 2, "regularization": 1.0}


@pytest.fixture(scope="module")
def wine():
    return load_dataset("wine")


@pytest.fixture(scope="module")
def cells(wine):
    return make_cells([wine], weights=(0.5, 0.2), rates=(0.5,), seeds=2, settings=SMALL)


@pytest.fixture(scope="module")
def records(cells):
    return [run_cell(cell) for cell in cells]


def test_the_settings_are_those_of_table_7():
    expected = {"regularization": 1, "n_hidden": 500, "n_layers": 3, "norm_scale": 1, "norm_shift": 0}
    assert fixed_settings() == expected


def test_both_grids_start_at_the_neutral_value_which_they_share(cells, records):
    assert len(cells) == 2 * 4, "1, 0.5 and 0.2 of omega_r, 0.5 of p, for two activations"
    found = Sensitivity.of(records)
    weights = found.curves("correct_weight")["wine", "relu"]
    rates = found.curves("prune_rate")["wine", "relu"]
    assert [p.correct_weight for p in weights] == [1.0, 0.5, 0.2]
    assert [p.prune_rate for p in rates] == [0.0, 0.5]
    assert weights[0].test_accuracy == rates[0].test_accuracy


def test_a_point_is_what_the_estimator_gives(records, wine):
    point = Sensitivity.of(records).curves("correct_weight")["wine", "sigmoid"][-1]
    assert point.correct_weight == 0.2
    train = []
    for split, repeat in np.ndindex(4, 2):
        seed = seed_of("hidden", "wine", repeat)
        model = EDRVFLClassifier(
            activation="sigmoid",
            correct_weight=0.2,
            prune_rate=0.0,
            input_scaling=None,
            random_state=seed,
            **SMALL,
        )
        part = wine.splits[split]
        model.fit(wine.X[part.train], wine.y[part.train])
        assert point.test_accuracy[split][repeat] == 100 * model.score(wine.X[part.test], wine.y[part.test])
        train.extend(model.train_accuracies_)
    assert point.train_accuracy == 100 * np.mean(train)


@pytest.mark.parametrize(
    ("values", "phrase"),
    [
        ({"rates": [0.2, 1.0]}, "'prune_rate' parameter .* must be a float in the range .*Got 1.0"),
        ({"rates": [float("nan")]}, "'prune_rate' parameter .*Got nan"),
        ({"weights": [0.5, 0.0]}, "'correct_weight' parameter .*Got 0.0"),
        ({"weights": [2.0]}, "'correct_weight' parameter .*Got 2.0"),
        ({"weights": [float("nan")]}, "'correct_weight' parameter .*Got nan"),
        ({"activations": ["relu", "rule"]}, "'activation' parameter .*Got 'rule'"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
    ],
)
def test_bad_values_are_refused_before_any_work(wine, values, phrase):
    with pytest.raises(ValueError, match=phrase):
        make_cells([wine], settings=SMALL, **values)


def test_a_grid_that_grows_keeps_its_cells(wine, cells):
    more = make_cells([wine], weights=(0.5, 0.2, 0.9), rates=(0.5,), seeds=2, settings=SMALL)
    new = {cell.key: cell for cell in more}
    for cell in cells:
        assert new.pop(cell.key).describe() == cell.describe()
    assert {(cell.point["activation"], cell.point["correct_weight"]) for cell in new.values()} == {
        ("relu", 0.9),
        ("sigmoid", 0.9),
    }
    assert len(new) == 2
    assert next(iter(new.values())).pending({}) == [SensitivityUnit(*at) for at in np.ndindex(4, 2)]


def test_a_failure_is_a_record_that_the_curves_leave_out(cells, records):
    failed = cells[0].record({SensitivityUnit(0, 0): {"error": "ValueError: no"}})
    assert (failed.status, failed.message) == ("failed", "fit on split 0 with hidden seed 0: ValueError: no")
    assert Sensitivity.of([failed, *records[1:]]).records == Sensitivity.of(records[1:]).records
    assert Sensitivity.of([failed]) is None


def test_curves_of_other_settings_are_not_mixed(records):
    few = [dataclasses.replace(records[0], settings={"n_hidden": 7}, key="other")]
    assert Sensitivity.of([*few, *records]) == Sensitivity.of(records)
    assert Sensitivity.of(records).records[0].settings == SMALL
