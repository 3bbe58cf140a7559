"""Features in files are those that would be computed again."""

import itertools
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import EDRVFLClassifier, RowBlocks
from edrvfl._parts import spill as spilling
from edrvfl._parts.spill import InFiles, Load, OnDevice, in_memory, seconds_of_files, spill_folder
from edrvfl._seam.threads import _release_control


@pytest.mark.parametrize("device", [None, "cpu"])  # a device is torch's, also if it is the host
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spilled_features_change_nothing(device, dtype, rng, tmp_path):
    X = rng.standard_normal((500, 4)).astype(dtype)
    y = X[:, 0] * X[:, 1] > 0
    answers = []
    for spill in (False, tmp_path):
        blocks = RowBlocks.from_arrays(X, y, rows=200, spill=spill, device=device, threads=1)
        network = EDRVFLClassifier(n_hidden=20, n_layers=3, correct_weight=0.6, random_state=0)
        answers.append(network.fit(blocks).predict_proba(X))
    assert_array_equal(*answers)
    assert not any(tmp_path.iterdir())


def test_files_are_there_during_a_fit_and_gone_after_it(rng, tmp_path):
    X, y, sizes = rng.standard_normal((300, 2)), rng.integers(0, 2, 300), []

    def read():
        sizes.append(sum(file.stat().st_size for file in tmp_path.glob("*/*")))
        yield from [(X[:100], y[:100]), (X[:0], y[:0]), (X[100:], y[100:])]

    model = EDRVFLClassifier(n_hidden=8, n_layers=4, random_state=0)
    model.fit(RowBlocks(read, spill=tmp_path, threads=1))
    # the features of one layer for the passes of layers 2, 3 and 4, and never those of two
    assert sizes[-3:] == [300 * 8 * 8] * 3
    assert max(sizes) == 300 * 8 * 8
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["a changed block", "a truncated file", "a file that is gone"])
@pytest.mark.parametrize("threads", [1, 2])
def test_files_are_gone_after_an_error(what, threads, rng, tmp_path):
    X, y, layer = rng.standard_normal((300, 2)), rng.integers(0, 2, 300), itertools.count()

    def read():
        files = sorted(tmp_path.glob("*/*"))
        damaged = bool(files) and next(layer) == 1  # in the pass of the third layer
        if damaged and what == "a truncated file":
            os.truncate(files[-1], files[-1].stat().st_size - 1)
        if damaged and what == "a file that is gone":
            files[-1].unlink()
        for start in (0, 100, 200):
            changed = damaged and what == "a changed block" and start == 100
            yield X[start : start + 100] + changed, y[start : start + 100]

    messages = {
        "a changed block": (ValueError, "Block 1 of the source: it changed between two passes"),
        "a truncated file": (OSError, "2-2 ended early"),
        "a file that is gone": (FileNotFoundError, "2-2"),
    }
    error, message = messages[what]
    model = EDRVFLClassifier(n_hidden=8, n_layers=4, random_state=0)
    with pytest.raises(error, match=message):
        model.fit(RowBlocks(read, spill=tmp_path, threads=threads))
    assert not list(tmp_path.iterdir())
    assert not hasattr(model, "network_")


def test_files_are_gone_when_a_callback_fails(rng, tmp_path):
    X, seen = rng.standard_normal((300, 2)), []

    class Interrupt:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **given):
            pass

        def on_fit_task_end(self, estimator, context, **given):
            if context.task_name == "layer" and context.task_id == 2:
                seen.extend(tmp_path.glob("*/*"))
                raise KeyboardInterrupt

    model = EDRVFLClassifier(n_hidden=8, n_layers=4, random_state=0).set_callbacks(Interrupt())
    with pytest.raises(KeyboardInterrupt) as error:  # which holds the frames of the fit
        model.fit(RowBlocks.from_arrays(X, X[:, 0] > 0, rows=100, spill=tmp_path))
    assert len(seen) == 3
    assert not list(tmp_path.iterdir()), error


@pytest.mark.parametrize("kind", ["files", "device"])
def test_what_was_written_is_read(kind, xp, rng, tmp_path):
    if kind == "files" and "strict" in xp.__name__:
        pytest.skip("files are for NumPy and torch")
    rows = xp.asarray(rng.standard_normal((7, 2)).astype(np.float32))
    layers = [rng.standard_normal((7, 3)).astype(np.float32) for _ in range(3)]
    kept = InFiles(tmp_path, 3) if kind == "files" else OnDevice(3)
    for depth, H in enumerate(layers, start=1):
        with kept.part(5, depth, rows, keep=depth < 3) as features:
            for place in (slice(0, 4), slice(4, 7)):
                known = features.read(place.stop - place.start)
                assert (known is None) == (depth == 1)
                if known is not None:
                    assert known.dtype == rows.dtype
                    assert_array_equal(to_host(known), layers[depth - 2][place])
                features.write(xp.asarray(H[place]))
    assert not list(tmp_path.iterdir())  # nobody reads the last layer's features


def test_files_need_room(tmp_path):
    like = np.empty((0, 1))
    free = shutil.disk_usage(tmp_path).free
    assert seconds_of_files(tmp_path, 2 * free, like) == np.inf
    seconds = [seconds_of_files(tmp_path, n_bytes, like) for n_bytes in (10, 10_000_000)]
    assert 0 < seconds[0] < seconds[1] < np.inf
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("wanted", "pays"), [(True, False), ("auto", True), ("auto", False), (False, True)])
def test_a_folder_is_made_where_it_pays(wanted, pays, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked = []

    def tell(folder):
        asked.append(folder)
        assert not list(folder.iterdir())
        return pays

    with spill_folder(wanted, tell, 3) as kept:
        assert (kept is not None) == (wanted is True or (wanted == "auto" and pays))
        assert asked == [tmp_path] * (wanted == "auto")
        assert bool(list(tmp_path.iterdir())) == (kept is not None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_layers", [2, 3])
def test_a_fit_that_need_not_spill_needs_no_folder(n_layers, rng, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    X = rng.standard_normal((60, 2))
    model = EDRVFLClassifier(n_hidden=5, n_layers=n_layers, random_state=0)
    model.fit(RowBlocks.from_arrays(X, X[:, 0] > 0, spill="auto"))
    assert model.n_layers_ == n_layers
    with pytest.raises(FileNotFoundError):
        model.fit(RowBlocks.from_arrays(X, X[:, 0] > 0, spill=True))


def test_the_last_mount_that_holds_a_folder_tells_where_its_files_are(tmp_path):
    mounts, there = tmp_path / "mounts", tmp_path / "m"
    kinds = {
        ".": "ext4",
        "a": "tmpfs",
        "a/disk": "xfs",
        "a/disk/b c": "ramfs",
        "d": "tmpfs",
        "a/disk/b": "nfs",
    }
    lines = [
        f"none {str(there / at).replace(' ', chr(92) + '040')} {kind} rw 0 0" for at, kind in kinds.items()
    ]
    mounts.write_text("\n".join([*lines, f"none {there / 'd'} ext4 rw 0 0", ""]))
    held = {at: in_memory(there / at / "deeper", mounts) for at in kinds}
    assert held == {".": False, "a": True, "a/disk": False, "a/disk/b c": True, "d": False, "a/disk/b": False}
    assert not in_memory(there, tmp_path / "nothing")  # where nobody tells, folders are on a disk


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no folder in memory")
def test_files_in_memory_do_not_pay():
    shared = Path("/dev/shm")
    if not in_memory(shared):
        pytest.skip("/dev/shm is no folder in memory")
    load = Load(np.empty((1000, 2)), 1000, 2000, 50, 2, 1)  # of 16 MB, and many layers to compute again
    assert not load.files_pay(shared)


@given(st.integers(2, 9), st.integers(1, 40), st.integers(1, 40))
def test_files_save_the_layers_that_are_not_computed_again(depth, n, d):
    def flops(layer):
        return 2 * n * (d + 1 + n * (layer > 1))

    passes = range(1, depth + 1)
    again = sum(flops(layer) for last in passes for layer in range(1, last + 1))
    spilled = sum(map(flops, passes))
    assert Load(np.empty((1, d)), 1, n, depth, d, 1).projections_saved * flops(2) == pytest.approx(
        again - spilled
    )


@pytest.mark.parametrize(("threads", "of_blas"), [(1, 2), (2, 1)])
def test_a_projection_is_timed_with_the_threads_of_a_pass(threads, of_blas, monkeypatch):
    seen = set()

    def look(_function):
        seen.update(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return 1.0

    monkeypatch.setattr(spilling, "_seconds", look)
    with threadpool_limits(2, user_api="blas"):
        _release_control()
        assert Load(np.empty((100, 2)), 100, 5, 3, 2, threads)._seconds_of_projection() == 1 / 100
    assert seen == {of_blas}


@pytest.mark.parametrize("wanted", ["nowhere", 1, None, Path("/nowhere/at/all")])
def test_what_is_no_folder_is_refused(wanted, rng):
    X = rng.standard_normal((30, 2))
    with pytest.raises(ValueError, match='spill must be True, False, "auto" or a folder that exists, got'):
        EDRVFLClassifier(n_hidden=5).fit(RowBlocks.from_arrays(X, X[:, 0] > 0, spill=wanted))
