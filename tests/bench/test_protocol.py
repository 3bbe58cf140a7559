import dataclasses
import json
import re
from functools import partial

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.neighbors import KNeighborsClassifier

from edrvfl import variant
from edrvfl.bench import protocol
from edrvfl.bench.datasets import load_dataset
from edrvfl.bench.methods import METHODS, Method
from edrvfl.bench.protocol import (
    Choice,
    RunRecord,
    SearchSplit,
    choose,
    compute,
    describe,
    expected_units,
    key_of,
    make_cell,
    pending,
    record,
    run_cell,
    same_results,
    seed_of,
    validation_scores,
)


def small_widths(trials, seed):
    """Configurations of the real space, but narrow, so that a test takes no time."""
    drawn = METHODS["WPedRVFL"].configurations(trials, seed)
    return [c | {"n_hidden": min(c["n_hidden"], 24)} for c in drawn]


SMALL = Method("small", partial(variant, "WPedRVFL"), small_widths, {"n_layers": 3}, depth="n_layers")


def neighbours(trials, seed):
    return [{"n_neighbors": k + 1} for k in range(trials)]


def without_seed(random_state, **params):
    return KNeighborsClassifier(**params)


FLAT = Method("neighbours", without_seed, neighbours)


@pytest.fixture(scope="module")
def iris():
    return load_dataset("iris")


@pytest.fixture(scope="module")
def cell(iris):
    return make_cell(SMALL, iris, trials=4, seeds=2)


@pytest.fixture(scope="module")
def done(cell):
    values = {}
    while units := pending(cell, values):
        values |= {unit: compute(cell, unit) for unit in units}
    return values


def search_splits(dataset):
    return [
        SearchSplit(dataset.X[s.fit], dataset.y[s.fit], dataset.X[s.validation], dataset.y[s.validation])
        for s in dataset.splits
    ]


def with_labels(dataset, y):
    return dataclasses.replace(dataset, y=y, checksum="other labels")


# --- the search ----------------------------------------------------------------------------------------


def test_validation_scores_are_those_of_networks_of_every_depth_fitted_alone(cell, iris):
    scores = validation_scores(SMALL, cell.configurations, search_splits(iris), random_state=1)
    assert scores.shape == (4, 4, 3)
    for c, s, l in np.ndindex(scores.shape):
        part = iris.splits[s]
        model = variant("WPedRVFL", random_state=1, n_layers=l + 1, **cell.configurations[c])
        model.fit(iris.X[part.fit], iris.y[part.fit])
        assert scores[c, s, l] == model.score(iris.X[part.validation], iris.y[part.validation])


def test_a_method_without_depth_has_one_depth_and_goes_the_whole_way(iris):
    record = run_cell(make_cell(FLAT, iris, trials=3, seeds=2))
    assert record.status == "ok"
    paper = record.choices["paper"]
    assert paper.depth == (1, 1, 1, 1)
    assert set(paper.parameters[0]) == {"n_neighbors"}
    for first, second in paper.test_accuracy:
        assert first == second, "no hidden layers to redraw"


def test_choice_prefers_the_shallower_then_the_first_drawn():
    assert choose(np.array([[0.5, 0.9], [0.9, 0.9], [0.9, 0.5]])) == (1, 0)
    assert choose(np.array([[0.1, 0.9 + 1e-14], [0.9, 0.2]])) == (1, 0), "equal to 12 digits is equal"
    assert choose(np.array([[0.1, 0.9 + 1e-9], [0.9, 0.2]])) == (0, 1)


# --- one cell ------------------------------------------------------------------------------------------


def test_the_record_says_what_a_plain_loop_over_the_paper_s_section_finds(cell, done, iris):
    found = record(cell, done)
    scores = validation_scores(
        SMALL, cell.configurations, search_splits(iris), random_state=seed_of("search", "iris")
    )
    best = {"paper": [choose(scores.mean(axis=1))] * 4, "strict": [choose(scores[:, s]) for s in range(4)]}
    for name, choice in found.choices.items():
        for s, (c, l) in enumerate(best[name]):
            assert (choice.configuration[s], choice.depth[s]) == (c, l + 1)
            assert choice.parameters[s] == cell.configurations[c]
            assert choice.validation_accuracy[s] == scores[c, s, l]
            part = iris.splits[s]
            for repeat in range(2):
                seed = seed_of("hidden", "iris", repeat)
                model = variant("WPedRVFL", random_state=seed, n_layers=l + 1, **cell.configurations[c])
                model.fit(iris.X[part.fit | part.validation], iris.y[part.fit | part.validation])
                y, labels = iris.y[part.test], model.predict(iris.X[part.test])
                P = model.predict_proba(iris.X[part.test])
                assert choice.test_accuracy[s][repeat] == np.mean(labels == y)
                assert choice.balanced_accuracy[s][repeat] == pytest.approx(
                    balanced_accuracy_score(y, labels)
                )
                assert choice.log_loss[s][repeat] == pytest.approx(log_loss(y, P))
                assert choice.fit_seconds[s][repeat] > 0
                assert choice.predict_seconds[s][repeat] > 0


def test_the_record_is_complete(cell, done):
    found = record(cell, done)
    assert (found.status, found.message, found.method, found.dataset) == ("ok", None, "small", "iris")
    assert found.n_configurations == 4
    assert found.seeds == 2
    assert found.device == "cpu"
    assert set(found.versions) == {"python", "numpy", "scipy", "scikit-learn", "edrvfl"}
    assert found.commit is None or re.fullmatch(r"[0-9a-f]{40}(-dirty)?", found.commit)
    assert found.search_seconds == pytest.approx(sum(done[f"search/{i}"]["seconds"] for i in range(4)))
    assert set(found.choices) == {"paper", "strict"}


def test_records_survive_json_to_the_last_bit(cell, done):
    found = record(cell, done)
    assert RunRecord.from_json(found.to_json()) == found
    assert "\n" not in found.to_json()
    assert found.without_times() == RunRecord.from_json(found.to_json()).without_times()


def test_without_times_forgets_clocks_and_nothing_else(cell, done):
    found = record(cell, done)
    slower = {unit: value | {"seconds": 9.0, "fit_seconds": 7.0} for unit, value in done.items()}
    assert record(cell, slower) != found
    assert record(cell, slower).without_times() == found.without_times()
    unit = next(unit for unit in done if unit.startswith("refit"))
    wrong = done | {unit: done[unit] | {"log_loss": done[unit]["log_loss"] + 1e-15}}
    assert record(cell, wrong).without_times() != found.without_times()


def test_what_both_choices_ask_for_is_fitted_once(cell, done):
    refits = [unit for unit in done if unit.startswith("refit")]
    asked = {
        (choice.configuration[s], choice.depth[s], s, repeat)
        for choice in record(cell, done).choices.values()
        for s in range(4)
        for repeat in range(2)
    }
    assert len(refits) == len(asked) <= 16


def test_mean_over_splits_then_mean_and_sd_over_seeds():
    blank = dict.fromkeys((f.name for f in dataclasses.fields(Choice)), ())
    choice = Choice(**blank | {"test_accuracy": ((0.5, 0.7), (0.7, 0.9))})
    assert choice.mean_and_sd() == (pytest.approx(0.7), pytest.approx(np.std([0.6, 0.8], ddof=1)))
    alone = Choice(**blank | {"test_accuracy": ((0.5,), (0.7,))})
    assert alone.mean_and_sd()[0] == pytest.approx(0.6)
    assert np.isnan(alone.mean_and_sd()[1])


def test_configurations_searched_together_give_the_same_record_in_fewer_units(iris):
    readout = ("regularization", "correct_weight")
    alone = make_cell(SMALL, iris, trials=8, seeds=1)
    together = make_cell(dataclasses.replace(SMALL, together=readout), iris, trials=8, seeds=1)
    assert pending(alone, {}) == [f"search/{i}" for i in range(8)]
    assert pending(together, {}) == ["search/0", "search/2", "search/4", "search/6"]
    assert expected_units(describe(together)) == 4 + 2 * 4
    assert np.shape(compute(together, "search/2")["scores"]) == (2, 4, 3)
    assert run_cell(together).choices["paper"].test_accuracy == run_cell(alone).choices["paper"].test_accuracy
    assert (
        run_cell(together).choices["strict"].configuration == run_cell(alone).choices["strict"].configuration
    )


# --- what may not matter, and what may not be seen -------------------------------------------------------


@pytest.mark.parametrize("split", range(4))
def test_shuffling_a_split_s_test_labels_changes_no_strict_choice_of_that_split(iris, done, cell, split):
    test = iris.splits[split].test
    y = iris.y.copy()
    y[test] = np.random.default_rng(0).permutation(y[test])
    assert not np.array_equal(y, iris.y)
    shuffled = make_cell(SMALL, with_labels(iris, y), trials=4, seeds=1)
    searched = {unit: compute(shuffled, unit) for unit in pending(shuffled, {})}
    for unit, value in searched.items():
        assert value["scores"][0][split] == done[unit]["scores"][0][split]
    strict = protocol._choices(shuffled, searched)["strict"][split]
    chosen = record(cell, done).choices["strict"]
    assert strict == (chosen.configuration[split], chosen.depth[split] - 1)


def test_the_search_is_not_blind_to_labels_it_may_see(iris, done):
    y = np.random.default_rng(0).permutation(iris.y)
    shuffled = make_cell(SMALL, with_labels(iris, y), trials=4, seeds=1)
    assert compute(shuffled, "search/0")["scores"] != done["search/0"]["scores"]


def test_units_do_not_depend_on_the_order_in_which_they_are_done(cell, done):
    for unit in sorted(done, reverse=True):
        assert same_results(compute(cell, unit), done[unit], tolerance=0)


def test_seeds_are_functions_of_names_the_same_for_every_method(iris, cell):
    assert seed_of("hidden", "iris", 0) == seed_of("hidden", "iris", 0) != seed_of("hidden", "iris", 1)
    assert seed_of("hidden", "iris", 0) != seed_of("search", "iris")
    assert 0 <= seed_of("configurations", "wine") < 2**31
    drawn = make_cell(METHODS["edRVFL_N"], iris, 4, 2).configurations
    for own, full in zip(drawn, make_cell(METHODS["WPedRVFL"], iris, 4, 2).configurations, strict=True):
        assert own.items() <= full.items()


def test_the_key_hashes_what_decides_the_figures(iris, cell):
    same = make_cell(SMALL, load_dataset("iris"), trials=4, seeds=2, device="cuda")
    assert same.key == cell.key == key_of(json.loads(json.dumps(describe(cell))))
    others = [
        make_cell(SMALL, iris, trials=5, seeds=2),
        make_cell(SMALL, iris, trials=4, seeds=3),
        make_cell(dataclasses.replace(SMALL, name="other"), iris, trials=4, seeds=2),
        make_cell(dataclasses.replace(SMALL, fixed={"n_layers": 2}), iris, trials=4, seeds=2),
        make_cell(dataclasses.replace(SMALL, together=("regularization",)), iris, trials=4, seeds=2),
        make_cell(dataclasses.replace(SMALL, configurations=METHODS["WPedRVFL"].configurations), iris, 4, 2),
        make_cell(SMALL, dataclasses.replace(iris, checksum="x"), trials=4, seeds=2),
        make_cell(SMALL, load_dataset("wine"), trials=4, seeds=2),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 9


def test_the_key_changes_with_the_protocol(iris, cell, monkeypatch):
    monkeypatch.setattr(protocol, "PROTOCOL_VERSION", 99)
    assert make_cell(SMALL, iris, trials=4, seeds=2).key != cell.key


# --- awkward data, failures, devices ---------------------------------------------------------------------


def test_a_class_absent_from_the_training_rows_costs_its_own_rows_only(iris):
    y = iris.y.copy()
    lonely = np.flatnonzero(iris.splits[0].test)[0]
    y[lonely] = 3  # only in the test rows of split 0
    cell = make_cell(SMALL, with_labels(iris, y), trials=1, seeds=1)
    value = compute(cell, "refit/0/1/0/0")
    assert 0 < value["test_accuracy"] < 1
    assert np.isfinite(value["log_loss"])
    assert value["log_loss"] > compute(make_cell(SMALL, iris, 1, 1), "refit/0/1/0/0")["log_loss"]


def constant(trials, seed):
    return [{"constant": 0} for _ in range(trials)]


def dummy(random_state, **params):
    return DummyClassifier(strategy="constant", **params)


def test_a_test_part_may_lack_a_class(iris):
    splits = [dataclasses.replace(s, test=s.test & (iris.y != 2)) for s in iris.splits]
    cell = make_cell(
        Method("dummy", dummy, constant), dataclasses.replace(iris, splits=tuple(splits)), trials=1, seeds=1
    )
    value = compute(cell, "refit/0/1/0/0")
    assert value["balanced_accuracy"] == 0.5


def test_a_failed_unit_ends_the_cell_with_its_message(cell, done):
    broken = {
        "search/0": done["search/0"],
        "search/2": {"error": "ValueError: no such thing", "traceback": "..."},
    }
    assert pending(cell, broken) == []
    found = record(cell, broken)
    assert found.status == "failed"
    assert found.message.startswith("search/2: ValueError: no such thing")
    assert found.choices == {}
    assert RunRecord.from_json(found.to_json()) == found


@pytest.mark.parametrize(("trials", "seeds"), [(0, 1), (1, 0)])
def test_nothing_to_do_is_refused(iris, trials, seeds):
    with pytest.raises(ValueError, match="must be at least 1"):
        make_cell(SMALL, iris, trials, seeds)


def test_torch_tensors_give_the_same_figures(iris, done, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    # torch's own name of the CPU stands for a GPU here: what is not "cpu" travels as tensors.
    tensors = make_cell(SMALL, iris, trials=4, seeds=2, device="cpu:0")
    assert same_results(compute(tensors, "search/1"), done["search/1"])
    unit = next(unit for unit in done if unit.startswith("refit"))
    assert same_results(compute(tensors, unit), done[unit], tolerance=1e-7)


def test_same_results_sees_through_times_and_last_bits_only():
    a = {"scores": [[0.5, 0.25]], "seconds": 1.0}
    assert same_results(a, {"scores": [[0.5 + 1e-12, 0.25]], "seconds": 2.0})
    assert not same_results(a, {"scores": [[0.5 + 1e-6, 0.25]], "seconds": 1.0})
    assert not same_results(a, {"scores": [[0.5]], "seconds": 1.0})
    assert not same_results(a, {"seconds": 1.0})
    assert not same_results({"n": 1}, {"n": 2})
