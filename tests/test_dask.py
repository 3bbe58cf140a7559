"""Rows that lie on a Dask cluster, beside the same rows in blocks and in memory."""

import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextvars import ContextVar

import numpy as np
import pytest
from helpers import noisy_rows, noisy_values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    RowBlocks,
)
from edrvfl._seam.threads import _release_control

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
from dask.sizeof import sizeof  # noqa: E402

from edrvfl._parts.cluster import DaskParts, Parcel, aligned  # noqa: E402

SMALL = {"n_hidden": 20, "n_layers": 2, "random_state": 0}
ODD = (90, 1, 0, 209, 100)  # sizes of partitions, one of them empty


def cluster(n_workers, **options):
    return distributed.LocalCluster(
        n_workers=n_workers,
        dashboard_address=":0",
        **{"threads_per_worker": 1, "processes": False, **options},
    )


@pytest.fixture(scope="module")
def pair():
    """Two workers that share this process."""
    with cluster(2) as started, distributed.Client(started) as connected:
        yield connected


@pytest.fixture
def rows(rng):
    X, y = noisy_rows(rng, sum(ODD), 5)
    X[:, 1] = 100 * X[:, 1] + 1000
    return X, y


def odd(array):
    """Odd partitions whose sizes Dask knows; the columns are in two blocks."""
    return da.from_array(array, chunks=(ODD, *((3, 2) if n == 5 else (n,) for n in array.shape[1:])))


def unknown(array):
    """The same partitions with sizes that Dask does not know."""
    found = odd(array)
    found._chunks = ((np.nan,) * len(ODD), *found.chunks[1:])
    return found


def odd_blocks(*arrays):
    """The same partitions in this process."""
    cuts = np.cumsum(ODD)[:-1]
    return RowBlocks(list(zip(*(np.split(array, cuts) for array in arrays), strict=True)), threads=2)


@pytest.mark.parametrize(
    ("model", "divide"),
    [
        (EDRVFLClassifier(**SMALL), odd),
        (EDRVFLClassifier(**SMALL, class_weight="balanced", weight_from="loo", regularization="loo"), odd),
        (EDRVFLClassifier(**SMALL, pair_share=0.5, input_scaling="gradient", encoder="bins"), unknown),
        (EDRVFLClassifier(**SMALL, coverage_from="split"), unknown),
        (EDRVFLClassifier(**SMALL, readout="joint", correct_weight=1.0, prune_rate=0.0), odd),
        (EDRVFLRegressor(**SMALL, correct_weight=0.7), unknown),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_a_cluster_gives_the_bits_of_blocks_in_this_process(pair, rows, rng, model, divide):
    X, y = rows if isinstance(model, EDRVFLClassifier) else noisy_values(rng, sum(ODD), 5, 2)
    weight = rng.integers(0, 3, len(y)).astype(float)
    afar = clone(model).fit(RowBlocks.from_dask(*map(divide, (X, y, weight)), client=pair))
    near = clone(model).fit(odd_blocks(X, y, weight))
    for one, other in zip(afar.network_.readouts, near.network_.readouts, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(afar.predict(X), near.predict(X))
    if isinstance(model, EDRVFLClassifier):
        np.testing.assert_array_equal(afar.predict_set(X, 0.8), near.predict_set(X, 0.8))
    else:
        np.testing.assert_array_equal(afar.predict_interval(X, 0.8), near.predict_interval(X, 0.8))


@pytest.fixture
def table(rng):
    """A frame with numbers, categories, text, gaps, weights, labels and values."""
    pandas = pytest.importorskip("pandas")
    X, y = noisy_rows(rng, 300, 3)
    X[rng.random(X.shape) < 0.1] = np.nan
    frame = pandas.DataFrame(X, columns=["a", "b", "c"], index=np.arange(300) * 2)
    frame["kind"] = pandas.Categorical(rng.choice(["x", "y", "z"], 300))
    frame["text"] = np.where(rng.random(300) < 0.1, None, rng.choice(["u", "v"], 300))
    frame["weight"] = rng.integers(0, 3, 300).astype(float)
    frame["label"] = np.asarray(["no", "maybe", "yes"])[y]
    frame["p"], frame["q"] = y * 2.0 + rng.random(300), rng.random(300)
    return frame


FEATURES = ["a", "b", "c", "kind", "text"]


@pytest.fixture
def read(table, tmp_path):
    """The frame in six files, as Dask reads them."""
    for i in range(6):
        table.iloc[50 * i : 50 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    return pytest.importorskip("dask.dataframe").read_parquet(tmp_path)


@pytest.mark.parametrize("way", ["target", "apart", "divided"])
def test_frames_that_are_read_from_files(pair, table, read, way):
    dd = pytest.importorskip("dask.dataframe")
    if way == "target":
        blocks = RowBlocks.from_dask(read, target="label", sample_weight="weight", columns=FEATURES)
    elif way == "apart":  # of one frame: Dask would join the files of which a single column is read
        blocks = RowBlocks.from_dask(read[FEATURES], read["label"], read["weight"])
    else:
        X, y, weight = (dd.from_pandas(table[n], npartitions=4) for n in (FEATURES, "label", "weight"))
        blocks = RowBlocks.from_dask(X, y.repartition(npartitions=2), weight)
    model = EDRVFLClassifier(**SMALL, encoder="bins")
    found = clone(model).fit(blocks)
    expected = model.fit(table[FEATURES], table["label"], table["weight"])
    assert list(found.feature_names_in_) == FEATURES
    P = expected.predict_proba(table[FEATURES])
    np.testing.assert_allclose(found.predict_proba(table[FEATURES]), P, atol=1e-8)
    assert sum(len(y) for _, y, _ in blocks) == 300


def test_several_targets_and_values_in_an_array(pair, table, read):
    model = EDRVFLRegressor(**SMALL)
    blocks = RowBlocks.from_dask(read, target=["p", "q"], columns=FEATURES)
    Y = da.from_array(table[["p", "q"]].to_numpy(), chunks=(50, 1))
    apart = RowBlocks.from_dask(read[FEATURES], Y)
    expected = clone(model).fit(table[FEATURES], table[["p", "q"]]).predict(table[FEATURES])
    for source in (blocks, apart):
        found = clone(model).fit(source).predict(table[FEATURES])
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_answers_are_computed_by_partitions(pair, table, read, rows):
    model = EDRVFLClassifier(**SMALL).fit(table[FEATURES], table["label"])
    X = read[FEATURES]
    for method in (model.predict_proba, model.predict):
        np.testing.assert_array_equal(X.map_partitions(method).compute(), method(table[FEATURES]))
    X, y = rows
    model = EDRVFLClassifier(**SMALL).fit(X, y)
    lazy = da.from_array(X, chunks=(150, 5))
    P = lazy.map_blocks(model.predict_proba, dtype=float, chunks=(lazy.chunks[0], (3,)))
    assert P.shape == (400, 3)
    np.testing.assert_allclose(P.compute(), model.predict_proba(X), atol=1e-13)
    labels = lazy.map_blocks(model.predict, dtype=int, drop_axis=1)
    np.testing.assert_array_equal(labels.compute(), model.predict(X))


@pytest.fixture
def quick_processes():
    """Fork workers from a process that has imported what they need: some of them die, and others are born."""
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    # a cluster gives up a worker that is dead so long after a death: here it may be the next death
    with dask.config.set({**method, "distributed.deploy.lost-worker-timeout": "1 hour"}):
        context = distributed.utils.get_mp_context()
        context.set_forkserver_preload(["distributed", "edrvfl._parts.cluster"])
        yield


def make_deadly(monkeypatch, folder):
    """Let each pass over the rows kill the worker that works on partition 1, once."""
    total, passes = DaskParts.total, itertools.count()

    def deadly(self, function, heard=None):
        mark = folder / f"pass {next(passes)}"

        def dies_once(part):
            if part.number == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return function(part)

        return total(self, dies_once, heard)

    monkeypatch.setattr(DaskParts, "total", deadly)


def test_a_worker_that_dies_in_each_pass_changes_no_bit(quick_processes, rows, monkeypatch, tmp_path):
    X, y = rows
    died = tmp_path / "while rows are read"

    def read_and_die(block):
        if len(block) == 209 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    model = EDRVFLClassifier(**SMALL, weight_from="loo", class_weight="balanced")
    fitted = []
    with cluster(2, processes=True) as started, distributed.Client(started) as client:
        for deadly in (False, True):
            given = odd(X)
            if deadly:
                make_deadly(monkeypatch, tmp_path)
                given = given.rechunk({1: -1}).map_blocks(read_and_die, dtype=float, meta=np.empty((0, 0)))
            fitted.append(clone(model).fit(RowBlocks.from_dask(given, odd(y), client=client)))
    # survey, class weights, judged rows, encoder twice, inputs, two layers
    assert {f"pass {i}" for i in range(8)} == {mark.name for mark in tmp_path.iterdir()} - {died.name}
    assert died.exists()
    for of_calm, of_deadly in zip(*(model.network_.readouts for model in fitted), strict=True):
        np.testing.assert_array_equal(of_calm, of_deadly)


def test_a_worker_that_dies_within_the_fit_of_a_portfolio_changes_no_bit(
    quick_processes, rows, monkeypatch, tmp_path
):
    X, y = rows
    members = [("kernel", KernelRidgeClassifier()), ("network", EDRVFLClassifier(n_hidden=8, n_layers=2))]
    fitted = []
    with cluster(2, processes=True) as started, distributed.Client(started) as client:
        for deadly in (False, True):
            if deadly:
                make_deadly(monkeypatch, tmp_path)
            blocks = RowBlocks.from_dask(odd(X), odd(y), client=client)
            fitted.append(EDRVFLPortfolioClassifier(members=members, random_state=0).fit(blocks))
    assert len(list(tmp_path.iterdir())) >= 6  # a worker died in each pass
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in fitted))


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(any))
def test_a_total_is_in_order_whatever_the_partitions_are(pair, sizes):
    m = sum(sizes)
    X = da.from_array(np.arange(2.0 * m).reshape(m, 2), chunks=(tuple(sizes), (1, 1)))
    y, heard = da.from_array(np.arange(m), chunks=2), []
    parts = RowBlocks.from_dask(X, y, client=pair)
    found = parts.total(
        lambda part: None if len(part.y) == 0 else list(zip(part.X[:, 1], part.y, strict=True))
    )
    assert found == [(2.0 * i + 1, i) for i in range(m)]
    assert parts.total(lambda part: part.number, heard.append) == sum(range(len(sizes)))
    assert heard == list(range(1, len(sizes) + 1))


def test_a_total_that_tells_how_far_it_is_ends_with_an_error(pair, rows):
    parts, heard = RowBlocks.from_dask(*map(odd, rows), client=pair), []

    def refuse(part):
        if part.number == 3:
            raise ValueError("no")

    with pytest.raises(ValueError, match="Block 3 of the source: no"):
        parts.total(refuse, heard.append)
    assert len(heard) < len(ODD)

    def refuse_by_name(part):
        raise ValueError(f"Block {part.number} of the source: no")

    with pytest.raises(ValueError, match=r"^Block \d of the source: no$"):
        parts.total(refuse_by_name)


def test_a_thread_of_a_worker_has_one_blas_thread():
    with (
        threadpool_limits(2, user_api="blas"),
        cluster(1, threads_per_worker=2) as started,
        distributed.Client(started) as client,
    ):
        _release_control()
        parts = RowBlocks.from_dask(odd(np.zeros((sum(ODD), 5))), odd(np.zeros(sum(ODD))), client=client)
        found = parts.total(
            lambda part: [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
        )
    assert found
    assert set(found) == {1}


def test_dask_knows_how_large_partitions_are(pair, rows):
    tasks = pair.cluster.scheduler.tasks
    with RowBlocks.from_dask(*map(odd, rows), client=pair).opened() as parts:
        counted = sum(tasks[part.key].nbytes for part in parts._parts)
    held = sum(array.nbytes for array in rows)
    assert held <= counted < held + 1000


def test_dask_knows_how_large_the_sums_of_every_pass_are(pair, rows, monkeypatch):
    total, sizes = DaskParts.total, []

    def counted(self, function, heard=None):
        found = total(self, function, heard)
        sizes.append((sizeof(Parcel(found)), len(pickle.dumps(found))))
        return found

    monkeypatch.setattr(DaskParts, "total", counted)
    model = EDRVFLClassifier(
        n_hidden=50, n_layers=2, random_state=0, pair_share=0.5, input_scaling="gradient"
    )
    model.fit(RowBlocks.from_dask(*map(odd, rows), client=pair))
    known, pickled = np.asarray(sizes).T
    assert max(pickled) > 40_000
    assert (known > 0.9 * pickled - 2000).all()
    assert (known < 1.1 * pickled + 2000).all()


def test_of_a_long_collection_some_items_stand_for_all():
    texts = [f"{i:05d}" for i in range(5000)]
    assert sizeof(Parcel(Parcel)) == sys.getsizeof(Parcel)  # a class has no fields to count
    for many in (texts, set(texts), dict.fromkeys(texts, 1.0)):
        expected = sum(map(sys.getsizeof, many)) + 5000 * sys.getsizeof(1.0) * isinstance(many, dict)
        assert sizeof(Parcel(many)) == expected


@pytest.mark.parametrize("fails", ["not", "while rows are read", "in a pass"])
def test_workers_forget_everything_when_a_fit_ends(pair, rows, fails, monkeypatch):
    X, y = rows
    gc.collect()
    total, tasks, gone = DaskParts.total, pair.cluster.scheduler.tasks, []

    def refuse(block):
        raise OSError("the disk is gone")

    def slow(self, function, heard=None):
        # so slow that the client waits for a while, in vain: that leaves a cycle of frames
        return total(self, lambda part: time.sleep(0.06) or function(part), heard)

    monkeypatch.setattr(DaskParts, "total", slow)
    given = odd(np.where(X.max() == X, np.inf, X) if fails == "in a pass" else X)
    if fails == "while rows are read":
        given = given.rechunk({1: -1}).map_blocks(refuse, dtype=float, meta=np.empty((0, 0)))
    model = EDRVFLClassifier(**SMALL, encoder=None)
    before = set(tasks)
    gc.disable()  # nothing may hang on it, nor on an error that somebody keeps
    try:
        try:
            model.fit(RowBlocks.from_dask(given, odd(y), client=pair))
        except (RuntimeError, ValueError) as error:
            gone.append(error)
        until = time.monotonic() + 60
        while set(tasks) - before and time.monotonic() < until:
            time.sleep(0.01)
        assert not set(tasks) - before
    finally:
        gc.enable()
    assert bool(gone) == (fails != "not")


def test_a_client_need_not_be_the_default_one(rows, monkeypatch):
    X, y = rows
    # other tests have made default clients
    monkeypatch.setattr(distributed.client, "_global_clients", weakref.WeakValueDictionary())
    monkeypatch.setattr(distributed.client, "_current_client", ContextVar("none", default=None))
    model = EDRVFLClassifier(**SMALL)
    with pytest.raises(ValueError, match=r"there is no Dask client. Make one by distributed.Client\(\)"):
        model.fit(RowBlocks.from_dask(odd(X), odd(y)))
    with cluster(1) as started, distributed.Client(started, set_as_default=False) as client:
        given = client.persist([odd(X), odd(y)])
        model.fit(RowBlocks.from_dask(*given, client=client))
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


def test_an_error_names_its_partition(pair, rows):
    X, y = rows
    model = EDRVFLClassifier(**SMALL, encoder=None).fit(RowBlocks.from_dask(odd(X), odd(y), client=pair))
    before = model.network_

    def refuse(block):
        if len(block) == 209:
            raise OSError("the disk is gone")
        return block

    broken = odd(X).rechunk({1: -1}).map_blocks(refuse, dtype=float, meta=np.empty((0, 0)))
    bad = X.copy()
    bad[350, 2] = np.nan
    shorter = odd(y).map_blocks(lambda block: block[: 208 if len(block) > 200 else None], dtype=int)
    for arrays, kind, message in [
        ((broken, odd(y)), RuntimeError, r"Block 3 of the source: OSError: the disk is gone"),
        ((odd(bad), odd(y)), ValueError, r"^Block 4 of the source: (?!Block).*(NaN|not finite)"),
        ((odd(X), shorter), ValueError, r"Block 3 of the source: .* same rows in each partition, got X 209"),
    ]:
        with pytest.raises(kind, match=message):
            model.fit(RowBlocks.from_dask(*arrays, client=pair))
    assert model.network_ is before


LOST = "closed, or it lost rows that it cannot compute again"


def test_rows_that_are_lost_with_their_worker_are_told(quick_processes, rows):
    X, y = rows
    with cluster(2, processes=True) as started, distributed.Client(started) as client:
        where, process = next(iter(client.run(os.getpid).items()))
        scattered = client.scatter(X, workers=[where])  # nobody could make it again
        blocks = RowBlocks.from_dask(da.from_delayed(scattered, X.shape, float), da.from_array(y, chunks=-1))
        os.kill(process, signal.SIGKILL)
        with pytest.raises(RuntimeError, match=LOST):
            EDRVFLClassifier(**SMALL).fit(blocks)


def test_a_cluster_that_is_closed_within_a_fit_is_told(rows):
    with cluster(1) as started, distributed.Client(started) as client:
        blocks = RowBlocks.from_dask(*map(odd, rows), client=client)
        threading.Timer(1, client.close).start()
        with pytest.raises(RuntimeError, match=LOST):
            blocks.total(lambda part: time.sleep(3))


def test_a_cluster_without_workers_is_told(rows):
    X, y = rows
    with cluster(1) as started, distributed.Client(started) as client:
        expected = EDRVFLClassifier(**SMALL).fit(RowBlocks.from_dask(odd(X), odd(y), client=client))
        started.scale(0)
        while client.nthreads():
            time.sleep(0.01)
        threading.Timer(4, started.scale, [1]).start()
        with pytest.warns(UserWarning, match="The Dask cluster has no workers. Waiting for some"):
            found = EDRVFLClassifier(**SMALL).fit(RowBlocks.from_dask(odd(X), odd(y), client=client))
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_what_cannot_be_aligned_is_refused(rows):
    X, y = rows
    with pytest.raises(TypeError, match=r"y must be a Dask array.*got ndarray"):
        aligned(odd(X), y)
    with pytest.raises(ValueError, match="X has 400 rows, but y has 399"):
        aligned(odd(X), da.from_array(y[1:], chunks=50))
    with pytest.raises(ValueError, match="X has 5 partitions and sample_weight has 8"):
        aligned(unknown(X), unknown(y), da.from_array(y, chunks=50))
    with pytest.raises(ValueError, match="two dimensions"):
        aligned(odd(y), odd(y))


def test_arguments_are_checked(table, read, rows):
    X, y = map(odd, rows)
    for options, kind, message in [
        ({}, TypeError, "either y, or target"),
        ({"y": y, "target": "a"}, TypeError, "either y, or target"),
        ({"target": "a"}, TypeError, "X must be a Dask DataFrame, got Array"),
        ({"y": y, "columns": ["a"]}, TypeError, "columns goes with target"),
        ({"X": read, "target": "label", "sample_weight": y}, TypeError, "the name of a column"),
        ({"X": read, "target": "z"}, ValueError, "There are no columns 'z'. There are 'a', 'b'"),
    ]:
        with pytest.raises(kind, match=message):
            RowBlocks.from_dask(**{"X": X, **options})


def test_dask_is_imported_by_its_own_method_alone():
    code = (
        "import sys, edrvfl; edrvfl.EDRVFLClassifier, edrvfl.RowBlocks\n"
        "assert 'dask' not in sys.modules\n"
        "sys.modules['distributed'] = None\n"
        "try: edrvfl.RowBlocks.from_dask(None)\n"
        "except ImportError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "RowBlocks.from_dask needs Dask: pip install 'edrvfl[dask]'" in told
