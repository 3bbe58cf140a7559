"""A reader that knows only the page on the format gives the same answers."""

import json
from pathlib import Path

import independent_reader as reader
import numpy as np
import pytest
from small_models import NAMES, frame, numbers, small_model

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier
from edrvfl._doors.variants import VARIANTS, variant
from edrvfl._layers.layers import ACTIVATIONS

SMALL = {"n_hidden": 30, "n_layers": 4, "random_state": 1}
CASES = {
    **{activation: EDRVFLClassifier(activation=activation, **SMALL) for activation in ACTIVATIONS},
    **{name: variant(name, **SMALL) for name in VARIANTS},
    "mean": EDRVFLClassifier(ensemble="mean", layer_votes="weighted", calibration="temperature", **SMALL),
    "pairs": EDRVFLClassifier(pair_share=0.4, norm_scale=(1.0, 3.0), **SMALL),
    "sparse": EDRVFLClassifier(encoder="bins", inputs_per_neuron=1, hidden_per_neuron=7, **SMALL),
    "gradient": EDRVFLClassifier(encoder="robust", input_scaling="gradient", **SMALL),
}


def columns_of(X):
    """Return the columns of a matrix or of a frame, as a list of lists."""
    return [X[name].tolist() for name in X] if hasattr(X, "columns") else X.T.tolist()


def assert_same(path, model, X):
    found = reader.answer(reader.load(path), columns_of(X))
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", CASES.values(), ids=CASES)
def test_networks(model, n_classes, tmp_path):
    X, y, _ = numbers()
    X[::5, 1] = np.nan
    model.fit(X, np.minimum(y, n_classes - 1)).save(tmp_path / "m")
    assert_same(tmp_path / "m", model, X)


def test_portfolio_of_a_frame(tmp_path):
    T, y, _ = frame(80)
    model = EDRVFLPortfolioClassifier(random_state=0).fit(T[:60], y[:60])
    model.save(tmp_path / "m")
    T.loc[70, "ü"] = "a category that the fit did not see"
    assert_same(tmp_path / "m", model, T)


@pytest.mark.parametrize("name", NAMES)
def test_kept_files(name):
    newest = max(Path(__file__).parent.glob(f"v*/{name}.edrvfl"))
    record, X = reader.load(newest), small_model(name)[1][:6]
    stored = json.loads(newest.with_suffix(".json").read_text())
    if record.kind == "Encoding":
        found = reader.encode(record.columns, record.inputs, columns_of(X), record.like.dtype)
    else:
        found = reader.answer(record, columns_of(X))
    expected = next(
        stored[method] for method in ("predict_proba", "transform", "predict") if method in stored
    )
    single = "32" in name or name in ("kernel_values", "kernel_additive")
    np.testing.assert_allclose(np.squeeze(found), expected, rtol=1e-5 if single else 1e-9, atol=1e-11)


def test_it_is_short_and_alone():
    text = Path(reader.__file__).read_text()
    assert len(text.splitlines()) <= 255
    assert "import edrvfl" not in text
    assert "from edrvfl" not in text


@pytest.mark.parametrize("name", ["portfolio_remembers", "regressor_remembers"])
def test_what_a_fit_remembers_gives_its_read_outs(name, tmp_path):
    model, _ = small_model(name)
    model.save(tmp_path / "m")
    record, memory = reader.load(tmp_path / "m"), reader.load(tmp_path / "m", "memory_")
    networks = 0
    for kept, voter in zip(memory.voters, getattr(record, "voters", [record]), strict=True):
        if kept.kind == "NetworkMemory":
            networks += 1
            for found, beta in zip(reader.read_outs(memory, kept, voter), voter.readouts, strict=True):
                np.testing.assert_allclose(found, beta, atol=1e-9 * np.abs(beta).max())
        else:
            rows = np.bincount(kept.part[kept.part >= 0])
            assert all(rows >= kept.sizes)  # copies are one landmark
    assert networks
    assert len(memory.rows.keys) == model.memory_.rows.n_rows
