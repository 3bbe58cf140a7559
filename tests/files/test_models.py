"""Models leave the process and come back the same, by file, by pickle and by skops."""

import dataclasses
import json
import os
import pickle
import re
import stat
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hostile import loaded, rewritten
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from small_models import NAMES, SMALL, all_answers, numbers, small_model

import edrvfl
from edrvfl import EDRVFLClassifier, EDRVFLSearchCV, TabularEncoder, load, to_numpy
from edrvfl._layers.records import HiddenLayer
from edrvfl._leaving.files.models import packed_model
from edrvfl._models.stored import drawn_bytes, restored, stored

VERSIONS = Path(__file__).parent


def assert_same(again, model, X):
    """Compare two models: what a file holds of them byte by byte, and their answers bit for bit."""
    assert packed_model(again) == packed_model(model)
    found = all_answers(again, X)
    for method, expected in all_answers(model, X).items():
        assert found[method].dtype == expected.dtype
        np.testing.assert_array_equal(found[method], expected, err_msg=method)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_gives_the_same_model(name, tmp_path):
    model, X = small_model(name)
    path = tmp_path / "model.edrvfl"
    assert model.save(path) is None
    again = load(str(path))
    assert {name for name in vars(model) if not name.startswith("_")} == vars(again).keys()
    assert_same(again, model, X)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.edrvfl"]


@pytest.mark.parametrize("name", NAMES)
def test_a_pickle_gives_the_same_model_without_the_hidden_weights(name):
    model, X = small_model(name)
    again = pickle.loads(pickle.dumps(model))
    assert vars(model).keys() == vars(again).keys()
    assert_same(again, model, X)


def test_files_and_pickles_are_small_and_do_not_hold_the_weights():
    X, y, _ = numbers()
    model = EDRVFLClassifier(n_hidden=200, n_layers=4, random_state=0).fit(X, y)
    weights = sum(layer.W.nbytes for layer in model.network_.layers)
    for content in (packed_model(model), pickle.dumps(model)):
        assert len(content) < weights / 10
        assert model.network_.layers[1].W[3].tobytes() not in content


def test_weights_that_no_seed_gives_are_stored():
    model, X = small_model("classifier")
    network = model.network_
    layer = network.layers[1]
    other = dataclasses.replace(
        network, layers=(network.layers[0], dataclasses.replace(layer, W=layer.W + 1), *network.layers[2:])
    )
    changed = clone(model)
    vars(changed).update(vars(model), network_=other)
    assert [part.W is None for part in stored(other).layers] == [True, False, True]
    for again in (loaded(packed_model(changed)), pickle.loads(pickle.dumps(changed))):
        np.testing.assert_array_equal(again.predict_proba(X), changed.predict_proba(X))
        assert isinstance(again.network_.layers[0], HiddenLayer)


def test_another_stream_of_random_numbers_is_refused(monkeypatch, tmp_path):
    model, _ = small_model("classifier")
    model.save(tmp_path / "m")
    content = pickle.dumps(model)
    from edrvfl._layers import draws

    monkeypatch.setattr(draws, "uniform", lambda seed, child, size: np.full(size, 0.25))
    for read in (lambda: load(tmp_path / "m"), lambda: pickle.loads(content)):
        with pytest.raises(ValueError, match=f"layer 1 are not those .* NumPy {np.__version__}"):
            read()


def test_a_model_of_torch_comes_back_in_numpy(tmp_path):
    torch = pytest.importorskip("torch")
    from sklearn import config_context

    X, y, _ = numbers()
    with config_context(array_api_dispatch=True):
        model = EDRVFLClassifier(**SMALL).fit(torch.asarray(X), torch.asarray(y))
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), to_numpy(model).predict_proba(X))


def test_a_search_saves_its_best(tmp_path):
    X, y, _ = numbers()
    search = EDRVFLSearchCV(EDRVFLClassifier(**SMALL), {"regularization": [1.0, 4.0]}, n_iter=None, cv=2).fit(
        X, y
    )
    search.save(tmp_path / "best")
    best = load(tmp_path / "best")
    assert type(best) is EDRVFLClassifier
    np.testing.assert_array_equal(best.predict_proba(X), search.predict_proba(X))
    with pytest.raises(NotFittedError):
        clone(search).save(tmp_path / "best")
    assert not hasattr(EDRVFLSearchCV(ensemble_size=2), "save")  # a file holds one model
    assert not hasattr(EDRVFLSearchCV(refit=False), "save")


@pytest.mark.parametrize("model", [EDRVFLClassifier(), TabularEncoder()])
def test_what_is_not_fitted_is_not_saved(model, tmp_path):
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_loaded_is_not_saved(tmp_path):
    model, _ = small_model("classifier")
    strange = clone(model)
    vars(strange).update({k: v for k, v in vars(model).items() if k.endswith("_")})
    (tmp_path / "m").write_bytes(b"before")
    with pytest.raises(ValueError, match="class_weight holds a dict with a tuple as key"):
        strange.set_params(class_weight={(1, 2): 1.0}).save(tmp_path / "m")
    with pytest.raises(ValueError, match="verbose holds a object"):
        strange.set_params(class_weight=None, verbose=object()).save(tmp_path / "m")

    class Mine(EDRVFLClassifier):
        pass

    with pytest.raises(ValueError, match="this is a Mine"):
        Mine(**SMALL).fit(*numbers()[:2]).save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == b"before"


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")
    model, _ = small_model("classifier")
    path = tmp_path / "m"
    path.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="too large, when the model was written into the folder") as caught:
            model.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_what_the_user_gave(tmp_path):
    model, _ = small_model("classifier")
    path = tmp_path / "no" / "m.edrvfl"
    with pytest.raises(FileNotFoundError, match=re.escape(f"into the folder {str(path.parent)!r}")) as caught:
        model.save(path)
    assert caught.value.filename == str(path)


def test_save_replaces_the_content_and_leaves_links_modes_and_pipes(tmp_path):
    model, _ = small_model("classifier")
    file, link, pipe, long = (tmp_path / name for name in ("file", "link", "pipe", "n" * 250))
    file.write_bytes(b"before")
    file.chmod(0o600)
    link.symlink_to("file")
    os.mkfifo(pipe)
    model.save(link)
    assert link.is_symlink()
    assert file.read_bytes() == packed_model(model)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with ThreadPoolExecutor() as pool:
        found = pool.submit(pipe.read_bytes)
        model.save(pipe)
        assert found.result() == packed_model(model)
    assert pipe.is_fifo()
    model.save(long)
    assert load(long).n_features_in_ == 3


def test_save_removes_what_a_dead_process_left(tmp_path):
    left, fresh = tmp_path / ".edrvfl.old.part", tmp_path / ".edrvfl.new.part"
    left.touch()
    fresh.touch()
    os.utime(left, (0, 0))
    small_model("classifier")[0].save(tmp_path / "m")
    assert not left.exists()
    assert fresh.exists()  # somebody may be writing it


def test_labels_of_numpys_newest_text_come_back(tmp_path):
    X, y, _ = numbers()
    labels = np.array(["no", "maybe", "yes"], dtype=np.dtypes.StringDType())[y]
    model = EDRVFLClassifier(**SMALL).fit(X, labels)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.predict(X).tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_other_tools_list_the_arrays(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    model, _ = small_model("classifier")
    model.save(tmp_path / "m")
    with safetensors.safe_open(tmp_path / "m", framework="np") as file:
        found = file.get_tensor("network_.readouts.0")
        described = json.loads(file.metadata()["edrvfl"])
    np.testing.assert_array_equal(found, model.network_.readouts[0].T)  # as it lies in memory
    assert described["estimator"] == "EDRVFLClassifier"
    assert described["version"] == 2


def test_a_portfolio_holds_what_members_share_once():
    model, _ = small_model("portfolio")
    content = packed_model(model)
    (length,) = struct.unpack("<Q", content[:8])
    text = json.loads(content[8 : 8 + length])["__metadata__"]["edrvfl"]
    assert text.count('"record":"Columns"') == 1
    kinds = {
        id(voter.inputs if hasattr(voter, "inputs") else voter.voter.inputs)
        for voter in model.portfolio_.voters
    }
    assert text.count('"record":"Inputs"') == len(kinds)


def test_a_later_version_is_refused():
    model, _ = small_model("classifier")

    def later(tree, arrays):
        tree["version"], tree["edrvfl"] = 99, "9.9"

    with pytest.raises(ValueError, match=r"written by edrvfl 9.9 in version 99 .* Install a later edrvfl"):
        loaded(rewritten(packed_model(model), later))


def test_memory_that_a_small_file_asks_for_is_limited(tmp_path):
    X, y, _ = numbers()
    model = EDRVFLClassifier(n_hidden=300, n_layers=2, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    size, needed = (tmp_path / "m").stat().st_size, 8 * 300 * (3 + 243 + 303)
    with pytest.raises(ValueError, match=f"It has {size} bytes, and max_bytes is 1000"):
        load(tmp_path / "m", max_bytes=1000)
    with pytest.raises(ValueError, match=f"hidden weights would take {needed} bytes"):
        load(tmp_path / "m", max_bytes=size)
    assert type(load(tmp_path / "m", max_bytes=needed)) is EDRVFLClassifier
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "sparse", [{}, {"hidden_per_neuron": 4}, {"inputs_per_neuron": 2, "prune_rate": 0.0}]
)
def test_the_memory_that_is_counted_is_the_memory_that_is_taken(sparse):
    X, y, _ = numbers()
    network = stored(EDRVFLClassifier(n_hidden=300, n_layers=2, random_state=0, **sparse).fit(X, y).network_)
    tracemalloc.start()
    restored(network)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 * drawn_bytes(network) < taken < 1.02 * drawn_bytes(network)


@pytest.mark.parametrize("name", NAMES)
def test_skops_loads_what_it_trusts_by_name(name):
    io = pytest.importorskip("skops.io")
    model, X = small_model(name)
    again = io.loads(io.dumps(model), trusted=list(edrvfl.TRUSTED_TYPES))
    assert_same(again, model, X)


@pytest.mark.parametrize(
    "path", sorted(VERSIONS.glob("v*/*.edrvfl")), ids=lambda path: f"{path.parent.name}/{path.stem}"
)
def test_files_of_every_version_load(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    model = load(path)
    X = small_model(path.stem)[1][:6]
    for method, values in expected.items():
        found = np.asarray(all_answers(model, X)[method])
        if found.dtype.kind == "f":
            # sums round otherwise on other machines
            np.testing.assert_allclose(
                found,
                np.asarray(values, dtype=float),
                rtol=1e-4 if found.dtype == np.float32 else 1e-9,
                atol=1e-5 if found.dtype == np.float32 else 1e-9,
            )
        else:
            assert found.tolist() == values


def test_there_is_a_file_of_each_kind():
    assert {path.stem for path in VERSIONS.glob("v*/*.edrvfl")} == set(NAMES)
