"""Networks on a Dask cluster, beside the same networks in memory."""

import gc
import itertools
import os
import pickle
import signal
import subprocess
import sys
import time
import weakref
from contextvars import ContextVar

import numpy as np
import pytest
from helpers import noisy_rows, noisy_values, scores_by_layer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, variant
from edrvfl._doors.variants import VARIANTS
from edrvfl._seam.threads import _release_control

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
from dask.sizeof import sizeof  # noqa: E402

from edrvfl._parts.cluster import DaskParts, Parcel, aligned  # noqa: E402
from edrvfl.dask import DaskEDRVFLClassifier, DaskEDRVFLRegressor  # noqa: E402

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


@pytest.fixture(scope="module")
def four():
    """Four workers that share this process."""
    with cluster(4) as started, distributed.Client(started) as connected:
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


def assert_same_networks(ours, plain, X, y):
    """Same masks, same right and wrong rows in each layer, same answers."""
    a, b = ours.network_, plain.network_
    for of_a, of_b in zip(a.layers, b.layers, strict=True):
        np.testing.assert_array_equal(np.r_[of_a.inputs], np.r_[of_b.inputs])
    if not a.joint:
        right = [np.argmax(scores_by_layer(network, X), axis=-1) == y for network in (a, b)]
        np.testing.assert_array_equal(*right)
    for of_a, of_b in zip(
        ours.to_local().staged_predict_proba(X), plain.staged_predict_proba(X), strict=True
    ):
        np.testing.assert_allclose(of_a, of_b, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("workers", "divide"), [("pair", odd), ("four", unknown)])
@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_is_that_of_a_fit_in_memory(request, rows, name, workers, divide):
    X, y = rows
    client = request.getfixturevalue(workers)
    plain = variant(name, n_hidden=30, random_state=0, **({} if name == "RVFL" else {"n_layers": 2}))
    ours = DaskEDRVFLClassifier(client=client, **plain.get_params()).fit(divide(X), divide(y))
    plain.fit(X, y)
    assert_same_networks(ours, plain, X, y)
    np.testing.assert_allclose(
        ours.predict_proba(divide(X)).compute(), plain.predict_proba(X), rtol=0, atol=1e-8
    )
    assert ours.train_accuracies_ == pytest.approx(plain.train_accuracies_)


@pytest.mark.parametrize(
    "params",
    [
        {"class_weight": "balanced"},
        {"class_weight": {0: 2.0, 1: 1.0, 2: 0.0}, "calibration": None},
        {"weight_from": "loo", "regularization": "loo", "layer_votes": "weighted"},
    ],
)
def test_weights_of_rows_and_classes(pair, rows, rng, params):
    X, y = rows
    weights = rng.integers(0, 3, len(y)).astype(float)
    plain = EDRVFLClassifier(n_hidden=30, n_layers=3, random_state=0, **params)
    ours = DaskEDRVFLClassifier(client=pair, **plain.get_params()).fit(odd(X), odd(y), odd(weights))
    plain.fit(X, y, weights)
    assert_same_networks(ours, plain, X, np.searchsorted(plain.classes_, y))
    np.testing.assert_array_equal(ours.classes_, plain.classes_)
    assert ours.loo_accuracies_ == pytest.approx(plain.loo_accuracies_)


def assert_same_answers(found, expected):
    """Labels are equal, and numbers to rounding: BLAS adds up a row otherwise if fewer rows are beside it."""
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected)
        return
    np.testing.assert_allclose(found, expected, atol=100 * np.finfo(found.dtype).eps)


SEEN = []  # the sizes of blocks that a worker in this process has computed


def watched(block):
    SEEN.append(len(block))
    return block


def test_answers_of_a_classifier_are_those_of_the_local_one_and_come_late(pair, rows):
    X, y = rows
    labels, seen = np.asarray(["no", "maybe", "yes"])[y], SEEN
    seen.clear()
    model = DaskEDRVFLClassifier(n_hidden=30, n_layers=2, random_state=0, client=pair)
    model.fit(odd(X), odd(labels))
    local, late = model.to_local(), odd(X).map_blocks(watched, dtype=float, meta=np.empty((0, 0)))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "predict_set"):
        found, expected = getattr(model, method)(late), getattr(local, method)(X)
        assert not seen
        assert (found.shape, found.dtype, found.chunks[0]) == (expected.shape, expected.dtype, ODD)
        assert_same_answers(found.compute(), expected)
        assert seen
        seen.clear()
        assert np.isnan(getattr(model, method)(unknown(X)).shape[0])
    for of_a, of_b in zip(model.staged_predict_proba(late), local.staged_predict_proba(X), strict=True):
        assert not seen
        np.testing.assert_allclose(of_a.compute(), of_b, atol=1e-14)
        seen.clear()
    assert model.score(odd(X), odd(labels)) == local.score(X, labels)
    np.testing.assert_array_equal(model.predict_set(odd(X), 0.5).compute(), local.predict_set(X, 0.5))


def test_log_odds_of_two_classes_and_float32(pair, rows):
    X, y = rows[0].astype(np.float32), rows[1] > 0
    model = DaskEDRVFLClassifier(n_hidden=20, n_layers=2, random_state=0, client=pair).fit(odd(X), odd(y))
    for method in ("decision_function", "predict_proba", "predict"):
        found, expected = getattr(model, method)(odd(X)), getattr(model.to_local(), method)(X)
        computed = found.compute()
        assert found.dtype == computed.dtype == expected.dtype
        assert_same_answers(computed, expected)


@pytest.mark.parametrize("k", [None, 2])
def test_a_regressor_and_its_intervals(pair, rng, k):
    X, y = noisy_values(rng, sum(ODD), 5, k)
    plain = EDRVFLRegressor(n_hidden=30, n_layers=2, correct_weight=0.7, random_state=0)
    model = DaskEDRVFLRegressor(client=pair, **plain.get_params()).fit(odd(X), odd(y))
    plain.fit(X, y)
    found = (model.predict(odd(X)), *model.predict_interval(odd(X), coverage=0.8))
    for ours, expected in zip(
        found, (plain.predict(X), *plain.predict_interval(X, coverage=0.8)), strict=True
    ):
        computed = ours.compute()
        assert (ours.shape, ours.dtype) == (computed.shape, computed.dtype)
        np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-8)
    assert model.score(odd(X), odd(y)) == pytest.approx(plain.score(X, y))
    assert model.loo_r2_scores_ == pytest.approx(plain.loo_r2_scores_)


@pytest.fixture
def frames(rng):
    """A frame with categories, text and gaps, its labels and its values, and their partitions."""
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y = noisy_rows(rng, 300, 3)
    X[rng.random(X.shape) < 0.1] = np.nan
    table = pandas.DataFrame(X, columns=["a", "b", "c"], index=np.arange(300) * 2)
    table["kind"] = pandas.Categorical(rng.choice(["x", "y", "z"], 300))
    table["text"] = np.where(rng.random(300) < 0.1, None, rng.choice(["u", "v"], 300))
    table["text"] = table["text"].astype(object)
    labels = pandas.Series(np.asarray(["no", "maybe", "yes"])[y], index=table.index)
    values = pandas.DataFrame({"p": y * 2.0 + rng.random(300), "q": rng.random(300)}, index=table.index)
    return table, labels, values, lambda frame: dd.from_pandas(frame, npartitions=4)


def test_frames_with_categories_and_gaps(pair, frames):
    table, labels, _, divided = frames
    plain = EDRVFLClassifier(n_hidden=30, n_layers=2, encoder="bins", random_state=0)
    model = DaskEDRVFLClassifier(client=pair, **plain.get_params()).fit(divided(table), divided(labels))
    plain.fit(table, labels)
    assert list(model.feature_names_in_) == list(table.columns)
    P = model.predict_proba(divided(table))
    computed = P.compute()
    assert list(P.columns) == list(computed.columns) == list(plain.classes_)
    assert (P.dtypes == computed.dtypes).all()
    np.testing.assert_array_equal(computed.index, table.index)
    np.testing.assert_allclose(computed, plain.predict_proba(table), rtol=0, atol=1e-8)
    found = model.predict(divided(table))
    assert found.divisions == divided(table).divisions
    assert found.dtype == found.compute().dtype
    assert (found.compute() == model.to_local().predict(table)).all()
    few = model.predict(divided(table)[divided(table)["a"] > 2.5])  # most partitions are empty
    np.testing.assert_array_equal(few.compute(), model.to_local().predict(table[table["a"] > 2.5]))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(divided(table)[["a", "b"]])


def test_a_frame_with_values_in_an_array_and_weights_in_a_series(pair, frames):
    table, _, values, divided = frames
    weights = table["a"].fillna(0).abs()
    plain = EDRVFLRegressor(n_hidden=20, n_layers=1, random_state=0)
    X = divided(table)
    chunks = tuple(X.map_partitions(len).compute())
    Y = da.from_array(values.to_numpy(), chunks=(chunks, (1, 1)))
    model = DaskEDRVFLRegressor(client=pair, **plain.get_params()).fit(X, Y, divided(weights))
    plain.fit(table, values, weights)
    for ours, expected in zip(
        (model.predict(X), *model.predict_interval(X)),
        (plain.predict(table), *plain.predict_interval(table)),
        strict=True,
    ):
        assert list(ours.columns) == [0, 1]
        computed = ours.compute()
        np.testing.assert_array_equal(computed.index, table.index)
        np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-8)
    alone = clone(model).fit(X, divided(values["p"]))
    lower, upper = dask.compute(*alone.predict_interval(X))
    np.testing.assert_array_equal((lower.name, upper.name), ("lower", "upper"))
    np.testing.assert_allclose((lower, upper), alone.to_local().predict_interval(table), rtol=0, atol=1e-12)


@pytest.fixture
def quick_processes():
    """Fork workers from a process that has imported what they need: some of them die, and others are born."""
    method = {"distributed.worker.multiprocessing-method": "forkserver"}
    # a cluster gives up a worker that is dead so long after a death: here it may be the next death
    with dask.config.set({**method, "distributed.deploy.lost-worker-timeout": "1 hour"}):
        context = distributed.utils.get_mp_context()
        context.set_forkserver_preload(["distributed", "edrvfl.dask"])
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

    fitted = []
    with cluster(2, processes=True) as started, distributed.Client(started) as client:
        model = DaskEDRVFLClassifier(
            n_hidden=30, n_layers=2, weight_from="loo", class_weight="balanced", random_state=0, client=client
        )
        for deadly in (False, True):
            read = odd(X)
            if deadly:
                make_deadly(monkeypatch, tmp_path)
                read = read.rechunk({1: -1}).map_blocks(read_and_die, dtype=float, meta=np.empty((0, 0)))
            fitted.append(clone(model).fit(read, odd(y)).to_local())
    # survey, class weights, sample, encoder, inputs, two layers
    assert {f"pass {i}" for i in range(7)} <= {mark.name for mark in tmp_path.iterdir()}
    assert died.exists()
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in fitted))
    for of_calm, of_deadly in zip(*(model.network_.readouts for model in fitted), strict=True):
        np.testing.assert_array_equal(of_calm, of_deadly)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5), min_size=1, max_size=9).filter(any))
def test_a_total_is_in_order_whatever_the_partitions_are(pair, sizes):
    m = sum(sizes)
    X = da.from_array(np.arange(2.0 * m).reshape(m, 2), chunks=(tuple(sizes), (1, 1)))
    y, heard = da.from_array(np.arange(m), chunks=2), []
    parts = DaskParts(pair, X, y)
    found = parts.total(
        lambda part: None if len(part.y) == 0 else list(zip(part.X[:, 1], part.y, strict=True))
    )
    assert found == [(2.0 * i + 1, i) for i in range(m)]
    assert parts.total(lambda part: part.number, heard.append) == sum(range(len(sizes)))
    assert heard == list(range(1, len(sizes) + 1))


def test_a_total_that_tells_how_far_it_is_ends_with_an_error(pair, rows):
    parts, heard = DaskParts(pair, *map(odd, rows)), []

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
        parts = DaskParts(client, odd(np.zeros((sum(ODD), 5))), odd(np.zeros(sum(ODD))))
        found = parts.total(
            lambda part: [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
        )
    assert found
    assert set(found) == {1}


def test_dask_knows_how_large_partitions_are(pair, frames):
    table, labels, _, divided = frames
    parts = DaskParts(pair, divided(table), divided(labels))
    tasks = pair.cluster.scheduler.tasks
    counted = sum(tasks[part.key].nbytes for part in parts._parts)
    held = table.memory_usage(deep=True).sum() + labels.memory_usage(deep=True)
    assert 0.3 * held < counted < 1.5 * held  # texts that are equal are one object, or several


def test_dask_knows_how_large_the_sums_of_every_pass_are(pair, rows, monkeypatch):
    total, sizes = DaskParts.total, []

    def counted(self, function, heard=None):
        found = total(self, function, heard)
        sizes.append((sizeof(Parcel(found)), len(pickle.dumps(found))))
        return found

    monkeypatch.setattr(DaskParts, "total", counted)
    model = DaskEDRVFLClassifier(
        client=pair, n_hidden=50, n_layers=2, random_state=0, pair_share=0.5, input_scaling="gradient"
    )
    model.fit(*map(odd, rows))
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
    model = DaskEDRVFLClassifier(client=pair, n_hidden=10, n_layers=2, encoder=None, random_state=0)
    before = set(tasks)
    gc.disable()  # nothing may hang on it, nor on an error that somebody keeps
    try:
        try:
            model.fit(given, odd(y))
        except (RuntimeError, ValueError) as error:
            gone.append(error)
        until = time.monotonic() + 5
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
    with cluster(1) as started, distributed.Client(started, set_as_default=False) as client:
        with pytest.raises(ValueError, match="No clients found"):
            distributed.default_client()
        X, y, values = client.persist([odd(X), odd(y), odd(X[:, 0])])
        for estimator, target in ((DaskEDRVFLClassifier, y), (DaskEDRVFLRegressor, values)):
            model = estimator(n_hidden=10, n_layers=1, random_state=0, client=client).fit(X, target)
            found, expected = client.compute([X, target], sync=True)
            assert model.score(X, target) == pytest.approx(model.to_local().score(found, expected))


def test_an_error_names_its_partition(pair, rows):
    X, y = rows
    model = DaskEDRVFLClassifier(client=pair, n_hidden=10, n_layers=1, encoder=None, random_state=0)
    model.fit(odd(X), odd(y))
    before = model.network_

    def refuse(block):
        if len(block) == 209:
            raise OSError("the disk is gone")
        return block

    broken = odd(X).rechunk({1: -1}).map_blocks(refuse, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(RuntimeError, match=r"Block 3 of the source: OSError: the disk is gone"):
        model.fit(broken, odd(y))
    bad = X.copy()
    bad[350, 2] = np.nan
    with pytest.raises(ValueError, match=r"^Block 4 of the source: (?!Block).*(NaN|not finite)"):
        model.fit(odd(bad), odd(y))
    shorter = odd(y).map_blocks(lambda block: block[: 208 if len(block) > 200 else None], dtype=int)
    with pytest.raises(
        ValueError, match=r"Block 3 of the source: .* same rows in each partition, got X 209, y 208"
    ):
        model.fit(odd(X), shorter)
    assert model.network_ is before


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


def test_frames_with_other_divisions_are_divided_as_X_is(frames):
    table, labels, _, divided = frames
    X, y = aligned(divided(table), divided(labels).repartition(npartitions=2))
    assert X.divisions == y.divisions
    assert X.npartitions == 4


@pytest.mark.parametrize(
    "params", [{"pair_share": 0.5}, {"input_scaling": "gradient"}, {"coverage_from": "split"}]
)
def test_what_looks_at_single_rows(pair, rows, params):
    X, y = rows
    plain = EDRVFLClassifier(n_hidden=20, n_layers=2, random_state=0, **params)
    ours = DaskEDRVFLClassifier(client=pair, **plain.get_params()).fit(odd(X), odd(y))
    plain.fit(X, y)
    assert_same_networks(ours, plain, X, y)
    np.testing.assert_array_equal(ours.predict_set(odd(X)).compute(), plain.predict_set(X))


def test_bad_parameters_are_refused(pair, rows):
    with pytest.raises(ValueError, match="n_layers"):
        DaskEDRVFLClassifier(client=pair, n_layers=0).fit(*map(odd, rows))


def test_without_a_fit_there_are_no_answers():
    with pytest.raises(NotFittedError):
        DaskEDRVFLClassifier().predict(da.zeros((4, 2)))


def test_parameters_clones_and_pickles(pair, rows):
    X, y = rows
    model = DaskEDRVFLClassifier(n_hidden=10, n_layers=2, random_state=0, client=pair)
    assert set(model.get_params()) == {*EDRVFLClassifier().get_params(), "client"}
    assert set(DaskEDRVFLRegressor().get_params()) == {*EDRVFLRegressor().get_params(), "client"}
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(n_layers=1) is model
    assert (
        repr(model.set_params(client=None)) == "DaskEDRVFLClassifier(n_hidden=10, n_layers=1, random_state=0)"
    )
    model.fit(odd(X), odd(y))  # with the client of the moment
    model.client = pair
    back = pickle.loads(pickle.dumps(model))
    assert back.client is None
    np.testing.assert_array_equal(back.predict(odd(X)).compute(), model.predict(odd(X)).compute())
    local = model.to_local()
    assert type(local) is EDRVFLClassifier
    assert local.get_params() == {k: v for k, v in model.get_params().items() if k != "client"}
    with pytest.raises(
        TypeError, match=r"takes a Dask array or DataFrame, got ndarray.*to_local\(\).predict"
    ):
        model.predict(X)
    with pytest.raises(TypeError):
        DaskEDRVFLClassifier(depth=3)


def test_dask_is_imported_by_its_own_module_alone_and_needs_a_client():
    code = (
        "import sys, edrvfl; edrvfl.EDRVFLClassifier\n"
        "assert 'dask' not in sys.modules\n"
        "sys.modules['distributed'] = None\n"
        "try: import edrvfl.dask\n"
        "except ImportError as error: print(error)\n"
        "del sys.modules['distributed']\n"
        "from edrvfl.dask import DaskEDRVFLClassifier\n"
        "try: DaskEDRVFLClassifier().fit(None, None)\n"
        "except ValueError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "edrvfl.dask needs Dask: pip install 'edrvfl[dask]'" in told
    assert "there is no Dask client. Make one by distributed.Client()" in told
