import dataclasses
import json
from functools import partial

import numpy as np
import pytest
from quiet import finish_units, run_cell
from sklearn.dummy import DummyClassifier
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.neighbors import KNeighborsClassifier

from edrvfl import variant
from edrvfl.bench import protocol
from edrvfl.bench.cell import RefitUnit, SearchUnit, key_of, seed_of
from edrvfl.bench.data import load_dataset
from edrvfl.bench.methods import METHODS
from edrvfl.bench.protocol import choose, choose_both_ways, make_cell
from edrvfl.bench.record import same_results
from edrvfl.bench.scores import calibration_error
from edrvfl.bench.searching import Method, SearchResult


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
    return finish_units(cell)


def is_refit(unit):
    return isinstance(unit, RefitUnit)


def with_labels(dataset, y):
    return dataclasses.replace(dataset, y=y, checksum="other labels")


# --- search and choose -----------------------------------------------------------------------------------


def test_choice_prefers_the_shallower_then_the_first_drawn():
    assert choose(np.array([[0.5, 0.9], [0.9, 0.9], [0.9, 0.5]])) == (1, 0)
    assert choose(np.array([[0.1, 0.9 + 1e-14], [0.9, 0.2]])) == (1, 0), "equal to 12 digits is equal"
    assert choose(np.array([[0.1, 0.9 + 1e-9], [0.9, 0.2]])) == (0, 1)


def test_the_paper_chooses_once_for_all_splits_and_strict_for_each():
    scores = np.array([[[0.9], [0.5]], [[0.8], [0.7]]])  # configuration, split, depth
    assert choose_both_ways(scores) == {"paper": [(1, 0), (1, 0)], "strict": [(0, 0), (1, 0)]}


def test_a_method_without_depth_has_one_depth_and_goes_the_whole_way(iris):
    record = run_cell(make_cell(FLAT, iris, trials=3, seeds=2))
    assert record.status == "ok"
    paper = record.choices["paper"]
    assert paper.depth == (1, 1, 1, 1)
    assert set(paper.parameters[0]) == {"n_neighbors"}
    for first, second in paper.test_accuracy:
        assert first == second, "no hidden layers to redraw"


# --- one cell ------------------------------------------------------------------------------------------


def test_the_record_says_what_a_plain_loop_over_the_paper_s_section_finds(cell, done, iris):
    found = cell.record(done)
    scores = np.empty((4, 4, 3))
    for c, s, l in np.ndindex(scores.shape):
        part = iris.splits[s]
        model = variant(
            "WPedRVFL", random_state=seed_of("search", "iris"), n_layers=l + 1, **cell.configurations[c]
        )
        model.fit(iris.X[part.fit], iris.y[part.fit])
        scores[c, s, l] = model.score(iris.X[part.validation], iris.y[part.validation])
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
                assert choice.calibration_error[s][repeat] == pytest.approx(calibration_error(y, P))
                assert choice.fit_seconds[s][repeat] > 0
                assert choice.predict_seconds[s][repeat] > 0


def test_the_record_is_complete(cell, done):
    found = cell.record(done)
    assert (found.status, found.message, found.method, found.dataset) == ("ok", None, "small", "iris")
    assert (found.n_configurations, found.seeds, found.device) == (4, 2, "cpu")
    searched = [value["seconds"] for unit, value in done.items() if not is_refit(unit)]
    assert len(searched) == 4
    assert found.search_seconds == pytest.approx(sum(searched))
    assert set(found.choices) == {"paper", "strict"}


def test_refits_that_were_stored_before_the_calibration_error_end_in_a_record_without_it(cell, done):
    old = {unit: {k: v for k, v in value.items() if k != "calibration_error"} for unit, value in done.items()}
    first = next(unit for unit in done if is_refit(unit))
    for some in (old, done | {first: old[first]}):
        found = cell.record(some)
        assert (
            found.choices["strict"].calibration_error is None
            or found.choices["paper"].calibration_error is None
        )
        assert found.choices["strict"].log_loss == cell.record(done).choices["strict"].log_loss


def test_what_both_choices_ask_for_is_fitted_once(cell, done):
    asked = {
        (choice.configuration[s], choice.depth[s], s, repeat)
        for choice in cell.record(done).choices.values()
        for s in range(4)
        for repeat in range(2)
    }
    assert sum(map(is_refit, done)) == len(asked) <= 16


def test_configurations_searched_together_give_the_same_record_in_fewer_units(iris):
    alone = make_cell(SMALL, iris, trials=8, seeds=1)
    shares = ("n_hidden", "norm_scale", "norm_shift", "prune_rate")
    together = make_cell(dataclasses.replace(SMALL, shares=shares), iris, trials=8, seeds=1)
    assert alone.pending({}) == [SearchUnit((i,)) for i in range(8)]
    units = together.pending({})
    assert units == [SearchUnit((0, 1)), SearchUnit((2, 3)), SearchUnit((4, 5)), SearchUnit((6, 7))]
    assert together.describe()["most_units"] == 4 + 2 * 4
    assert np.shape(together.compute(units[1])["scores"]) == (2, 4, 3)
    one, other = run_cell(alone), run_cell(together)
    for choice in ("paper", "strict"):
        assert one.choices[choice].test_accuracy == other.choices[choice].test_accuracy
        assert one.choices[choice].configuration == other.choices[choice].configuration


def leaf_sizes(trials, seed):
    return [{"leaf_size": 10 * (i + 1)} for i in range(trials)]


def stop_early(method, configurations, split, seed, device):
    """Larger leaves are better, and take as many epochs as their size and the split say."""
    sizes = [configuration["leaf_size"] for configuration in configurations]
    epochs = tuple(float(size + len(split.y_fit) % 4) for size in sizes)
    return SearchResult(np.array(sizes)[:, None] / 100, epochs)


def trained(random_state, trained_for=None, **params):
    return KNeighborsClassifier(n_neighbors=trained_for, **params)


def test_epochs_of_the_search_are_a_field_of_the_refit(iris):
    method = Method("stops", trained, leaf_sizes, search_with=stop_early, epochs="trained_for")
    cell = make_cell(method, iris, trials=2, seeds=1)
    done = finish_units(cell)
    mean = np.mean([20 + int(s.fit.sum()) % 4 for s in iris.splits])
    assert {(unit.configuration, unit.epochs) for unit in done if is_refit(unit)} == {(1, round(mean))}
    model = KNeighborsClassifier(n_neighbors=round(mean), leaf_size=20)
    part = iris.splits[2]
    model.fit(iris.X[part.train], iris.y[part.train])
    expected = model.score(iris.X[part.test], iris.y[part.test])
    assert cell.record(done).choices["strict"].test_accuracy[2] == (expected,)


# --- what may not matter, and what may not be seen -------------------------------------------------------


@pytest.mark.parametrize("split", range(4))
def test_shuffling_a_split_s_test_labels_changes_no_strict_choice_of_that_split(iris, done, cell, split):
    test = iris.splits[split].test
    y = iris.y.copy()
    y[test] = np.random.default_rng(0).permutation(y[test])
    assert not np.array_equal(y, iris.y)
    shuffled = make_cell(SMALL, with_labels(iris, y), trials=4, seeds=1)
    scores = []
    for unit in shuffled.pending({}):
        scores += shuffled.compute(unit)["scores"]
        assert scores[-1][split] == done[unit]["scores"][0][split]
    chosen = cell.record(done).choices["strict"]
    strict = choose_both_ways(np.array(scores))["strict"][split]
    assert strict == (chosen.configuration[split], chosen.depth[split] - 1)


def test_the_search_is_not_blind_to_labels_it_may_see(iris, done):
    y = np.random.default_rng(0).permutation(iris.y)
    shuffled = make_cell(SMALL, with_labels(iris, y), trials=4, seeds=1)
    first = SearchUnit((0,))
    assert shuffled.compute(first)["scores"] != done[first]["scores"]


def test_units_do_not_depend_on_the_order_in_which_they_are_done(cell, done):
    for unit in reversed(done):
        assert same_results(cell.compute(unit), done[unit], tolerance=0)


def test_the_key_hashes_what_decides_the_figures(iris, cell):
    same = make_cell(SMALL, load_dataset("iris"), trials=4, seeds=2, device="cuda")
    assert same.key == cell.key == key_of(json.loads(json.dumps(cell.describe())))
    others = [
        make_cell(SMALL, iris, trials=5, seeds=2),
        make_cell(SMALL, iris, trials=4, seeds=3),
        make_cell(dataclasses.replace(SMALL, name="other"), iris, trials=4, seeds=2),
        make_cell(dataclasses.replace(SMALL, fixed={"n_layers": 2}), iris, trials=4, seeds=2),
        make_cell(dataclasses.replace(SMALL, configurations=METHODS["WPedRVFL"].configurations), iris, 4, 2),
        make_cell(SMALL, dataclasses.replace(iris, checksum="x"), trials=4, seeds=2),
        make_cell(SMALL, load_dataset("wine"), trials=4, seeds=2),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 8


def test_the_key_changes_with_the_protocol(iris, cell, monkeypatch):
    monkeypatch.setattr(protocol, "PROTOCOL_VERSION", 99)
    assert make_cell(SMALL, iris, trials=4, seeds=2).key != cell.key


# --- awkward data, failures, devices ---------------------------------------------------------------------

FIRST_REFIT = RefitUnit(0, 1, 0, 0)


def test_a_class_absent_from_the_training_rows_costs_its_own_rows_only(iris):
    y = iris.y.copy()
    lonely = np.flatnonzero(iris.splits[0].test)[0]
    y[lonely] = 3  # only in the test rows of split 0
    value = make_cell(SMALL, with_labels(iris, y), trials=1, seeds=1).compute(FIRST_REFIT)
    assert 0 < value["test_accuracy"] < 1
    assert np.isfinite(value["log_loss"])
    assert value["log_loss"] > make_cell(SMALL, iris, 1, 1).compute(FIRST_REFIT)["log_loss"]


def constant(trials, seed):
    return [{"constant": 0} for _ in range(trials)]


def dummy(random_state, **params):
    return DummyClassifier(strategy="constant", **params)


def test_a_test_part_may_lack_a_class(iris):
    splits = [dataclasses.replace(s, test=s.test & (iris.y != 2)) for s in iris.splits]
    poorer = dataclasses.replace(iris, splits=tuple(splits))
    cell = make_cell(Method("dummy", dummy, constant), poorer, trials=1, seeds=1)
    assert cell.compute(FIRST_REFIT)["balanced_accuracy"] == 0.5


def test_a_failed_unit_ends_the_cell_with_its_message(cell, done):
    first, third = SearchUnit((0,)), SearchUnit((2,))
    broken = {first: done[first], third: {"error": "ValueError: no such thing", "traceback": "..."}}
    assert cell.pending(broken) == []
    found = cell.record(broken)
    assert (found.status, found.choices) == ("failed", {})
    assert found.message == "search of configuration 2: ValueError: no such thing"


@pytest.mark.parametrize(("trials", "seeds"), [(0, 1), (1, 0)])
def test_nothing_to_do_is_refused(iris, trials, seeds):
    with pytest.raises(ValueError, match="must be at least 1"):
        make_cell(SMALL, iris, trials, seeds)


def test_torch_tensors_give_the_same_figures(iris, done, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    # torch's own name of the CPU stands for a GPU here: what is not "cpu" travels as tensors.
    tensors = make_cell(SMALL, iris, trials=4, seeds=2, device="cpu:0")
    second = SearchUnit((1,))
    assert same_results(tensors.compute(second), done[second])
    unit = next(filter(is_refit, done))
    assert same_results(tensors.compute(unit), done[unit], tolerance=1e-7)


def few_networks(trials, seed):
    return [{"n_layers": 1 + i, "n_units": 8, "dropout": 0.1 * i} for i in range(trials)]


def test_networks_that_torch_trains_are_searched_together_and_take_tensors(iris, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    method = dataclasses.replace(METHODS["Highway"], configurations=few_networks, fixed={"max_epochs": 3})
    plain, tensors = (make_cell(method, iris, trials=2, seeds=1, device=d) for d in ("cpu", "cpu:0"))
    assert plain.pending({}) == [SearchUnit((0, 1))]
    for unit in (SearchUnit((0, 1)), RefitUnit(1, 1, 2, 0)):
        assert same_results(plain.compute(unit), tensors.compute(unit), tolerance=0)
