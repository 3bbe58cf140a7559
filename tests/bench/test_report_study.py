"""Reading a store that was really run."""

import numpy as np
import pytest

from edrvfl.bench import sensitivity, timing
from edrvfl.bench.cell import SearchUnit
from edrvfl.bench.data import UCI24, load_dataset
from edrvfl.bench.methods import METHODS
from edrvfl.bench.record import SensitivityRecord, TimingRecord
from edrvfl.bench.report.study import Result, choose_results, dataset_facts, read_study
from edrvfl.bench.schedule import grid, run
from edrvfl.bench.store import Store, StoreError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two methods on wine and both experiments, done; one cell on iris that was noted but not begun."""
    path = tmp_path_factory.mktemp("study") / "study.db"
    run(list(grid([METHODS["edRVFL_O"], METHODS["WPedRVFL"]], [load_dataset("wine")], 2, 2)), path, jobs=1)
    (cell,) = grid([METHODS["WPedRVFL"]], [load_dataset("iris")], 2, 2)
    with Store(path) as opened:
        opened.add_cells([cell])
    iris = [load_dataset("iris")]
    settings = {"n_layers": 2, "n_hidden": 8, "regularization": 1.0}
    run(sensitivity.make_cells(iris, weights=[0.5], rates=[0.5], seeds=2, settings=settings), path)
    run(timing.make_cells([METHODS["RVFL"], METHODS["WPedRVFL"]], iris, warmups=0, repeats=1), path)
    return path


def test_results_are_those_of_the_records(store):
    study = read_study(store)
    with Store(store) as opened:
        record = next(r for r in opened.records() if r.method == "WPedRVFL")
        values = opened.values(record.key)
    result = choose_results(study.results)["wine", "WPedRVFL"]
    for name in ("paper", "strict"):
        mean, sd = record.choices[name].mean_and_sd()
        scored = result.scored[name]
        assert (scored.accuracy, scored.sd) == pytest.approx((100 * mean, 100 * sd))
        assert scored.mean("log_loss") == record.choices[name].mean_and_sd("log_loss")[0]
    assert result.fit_seconds == np.median(record.choices["strict"].fit_seconds)
    assert (result.status, result.configurations, result.seeds) == ("ok", 2, 2)
    assert result.origins["numpy"] == np.__version__

    searched = [c for unit, v in values.items() if isinstance(unit, SearchUnit) for c in v["scores"]]
    by_hand = [max(100 * np.mean([split[l] for split in c]) for c in searched) for l in range(10)]
    assert len(searched) == 2
    assert study.depth_accuracies["wine", "WPedRVFL"] == pytest.approx(by_hand)


def test_a_cell_that_was_not_begun_is_missing(store):
    result = choose_results(read_study(store).results)["iris", "WPedRVFL"]
    assert result.status == "missing"
    assert result.message.startswith("0 of at most ")


def test_the_farthest_then_the_largest_then_the_latest_is_chosen():
    results = [
        Result("iris", "a", "ok", configurations=10, finished="2024"),
        Result("iris", "a", "ok", configurations=200, finished="2023"),
        Result("iris", "a", "ok", configurations=200, finished="2024", key="this one"),
        Result("iris", "a", "failed", configurations=500),
        Result("iris", "a", "missing", configurations=900),
    ]
    for some in (results, results[::-1]):
        assert choose_results(some)["iris", "a"].key == "this one"
    assert choose_results(results[3:])["iris", "a"].status == "failed"


def test_experiments_are_read(store):
    study = read_study(store)
    with Store(store) as opened:
        points, times = opened.records_of(SensitivityRecord), opened.records_of(TimingRecord)
    assert len(points) == 6  # two activations; both parameters neutral, and each of them not
    measured = {(p.parameter, p.value, p.activation): p.test_accuracy for p in study.sensitivity.points}
    for record in points:
        if record.prune_rate == 0:
            key = ("correct_weight", record.correct_weight, record.activation)
            assert measured[key] == record.test_accuracy
    assert {t.method: t.seconds for t in study.timing.timed} == {t.method: t.seconds for t in times}


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(StoreError, match="no such store"):
        read_study(tmp_path / "none.db")


def test_facts_of_datasets():
    assert dataset_facts("glass").shape.startswith("214 / 9 / ")
    assert dataset_facts("adult").partitions == "published: one fixed test file"
    further = dataset_facts("zoo", {"zoo": UCI24["glass"]})
    assert (further.shape, further.printed) == (dataset_facts("glass").shape, ""), "not in the paper"
    assert dataset_facts("iris").partitions.endswith("drawn by edrvfl")
    assert dataset_facts("mine.csv").partitions.endswith("(own table)")
