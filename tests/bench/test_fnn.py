"""The four networks: what their formulas promise, the trainer, and scikit-learn's contract."""

import dataclasses
import json
import math
import pickle
import re
import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import check_estimator

from edrvfl.bench.baselines.fnn import FNNClassifier, configurations
from edrvfl.bench.baselines.fnn.grids import GRIDS
from edrvfl.bench.baselines.fnn.networks import (
    BUILDERS,
    FORMS,
    LECUN,
    Sizes,
    alpha_dropout,
    draw_layers,
    dropout,
    forward,
    highway_step,
)
from edrvfl.bench.baselines.fnn.training import SMOOTHING, hold_out
from edrvfl.bench.methods import METHODS

torch = pytest.importorskip("torch")

ARCHITECTURES = tuple(BUILDERS)
TORCH_DEFAULT = 1 / 3  # variance times inputs of what torch.nn.Linear draws


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def same(h):
    return h


def with_gain(design, gain):
    return dataclasses.replace(design, plan=tuple(dataclasses.replace(p, gain=gain) for p in design.plan))


def split(load):
    X, y = load(return_X_y=True)
    return train_test_split(X, y, stratify=y, random_state=0)


def dropped(h, rate, dropout, g):
    return dropout(h, torch.rand(h.shape, generator=g) < rate, rate)


# --- formulas ------------------------------------------------------------------------------------------


def hidden(architecture, gain=None, depth=16, rate=0.0):
    """The features after each layer, for standard normal inputs."""
    design = BUILDERS[architecture](Sizes(n_features=256, n_classes=3, n_layers=depth, n_units=256))
    if gain is not None:
        design = with_gain(design, gain)
    layers = draw_layers(design.plan, generator(1))
    X = torch.randn((2000, 256), generator=generator(2))
    g = generator(3)

    def drop(h):
        return dropped(h, rate, design.dropout, g)

    return [h.numpy() for h in design.hidden(layers[:-1], X, drop)]


@pytest.mark.parametrize("rate", [0.0, 0.05])
def test_selu_with_lecun_weights_keeps_mean_0_and_variance_1_through_16_layers(rate):
    """Of the layer as a whole; a single neuron has a mean of its own."""
    for h in hidden("snn", rate=rate):
        assert abs(h.mean()) < 0.1
        assert 0.8 < h.var() < 1.25


@pytest.mark.parametrize("gain", [LECUN, TORCH_DEFAULT])
def test_relu_without_he_weights_dies_out_and_with_them_does_not(gain):
    second_moments = [np.mean(h**2) for h in hidden("msra", gain)]
    assert second_moments[-1] < 1e-4
    assert second_moments[-1] / second_moments[0] == pytest.approx((gain / 2) ** 15, rel=2), (
        "halves, or worse"
    )
    assert 0.5 < np.mean(hidden("msra")[-1] ** 2) < 2


def test_variance_of_a_residual_network_is_bounded_whatever_its_depth():
    for depth in (4, 16, 32):
        h = hidden("resnet", depth=depth)
        assert 1 < np.mean(h[-1] ** 2) / np.mean(h[0] ** 2) < math.e**2


def test_highway_layer_with_closed_gates_is_the_identity_and_with_open_ones_is_the_transform():
    g = generator()
    h = torch.randn((50, 7), generator=g)
    transform, gate = ((torch.randn((7, 7), generator=g), torch.randn(7, generator=g)) for _ in range(2))
    closed = highway_step([transform, (gate[0], gate[1] - 200)], h, same)
    assert torch.equal(closed, h)
    opened = highway_step([transform, (gate[0], gate[1] + 200)], h, same)
    torch.testing.assert_close(opened, (h @ transform[0] + transform[1]).relu())


def test_highway_layer_by_hand():
    h, W = torch.tensor([[2.0]]), torch.tensor([[3.0]])
    T = 1 / (1 + math.exp(-(2 * 0.5 - 1.2)))
    gate = torch.tensor([[0.5]]), torch.tensor([-1.2])
    made = highway_step([(W, torch.tensor([1.0])), gate], h, same)
    assert made.item() == pytest.approx(T * 7 + (1 - T) * 2)


def first_gradient(architecture, n_layers):
    """Norm of the loss's gradient by the first layer's weights, with the weights of torch.nn.Linear."""
    design = BUILDERS[architecture](Sizes(n_features=20, n_classes=3, n_layers=n_layers, n_units=64))
    layers = draw_layers(with_gain(design, TORCH_DEFAULT).plan, generator(1))
    first = layers[0][0].requires_grad_()
    X = torch.randn((100, 20), generator=generator(2))
    y = torch.randint(3, (100,), generator=generator(3))
    loss = torch.nn.functional.cross_entropy(forward(design, layers, X), y)
    return torch.autograd.grad(loss, first)[0].norm().item()


def test_at_depth_32_the_residual_network_has_a_gradient_where_the_plain_one_has_none():
    plain, residual = first_gradient("msra", n_layers=32), first_gradient("resnet", n_layers=16)
    assert residual > 1e-3
    assert residual > 1e6 * plain


def test_residual_blocks_of_three_layers_with_a_bottleneck():
    sizes = Sizes(n_features=5, n_classes=3, n_layers=2, n_units=40, form="diavolo", bottleneck=0.25)
    shapes = [(p.inputs, p.outputs) for p in BUILDERS["resnet"](sizes).plan]
    assert shapes == [(5, 40), (40, 10), (10, 40), (40, 10), (10, 40), (40, 3)]
    longer = dataclasses.replace(sizes, block_layers=3, n_layers=1)
    shapes = [(p.inputs, p.outputs) for p in BUILDERS["resnet"](longer).plan]
    assert shapes == [(5, 40), (40, 10), (10, 10), (10, 40), (40, 3)]


def test_conic_widths_fall_to_the_classes_in_geometric_progression():
    sizes = Sizes(n_features=5, n_classes=4, n_layers=3, n_units=256, form="conic")
    assert [p.outputs for p in BUILDERS["snn"](sizes).plan] == [256, 64, 16, 4]


def test_dropout_keeps_the_mean_and_alpha_dropout_the_variance_too():
    h = torch.randn((1000, 500), generator=generator())
    plain = dropped(h + 1, 0.4, dropout, generator(1))
    assert (plain == 0).float().mean().item() == pytest.approx(0.4, abs=0.01)
    assert plain.mean().item() == pytest.approx(1, abs=0.01)
    alpha = dropped(h, 0.3, alpha_dropout, generator(1))
    assert alpha.mean().item() == pytest.approx(0, abs=0.01)
    assert alpha.var().item() == pytest.approx(1, abs=0.01)


def test_alpha_dropout_drops_to_where_torchs_does():
    ours = dropped(torch.zeros(10_000), 0.2, alpha_dropout, generator())
    with torch.random.fork_rng():
        torchs = torch.nn.functional.alpha_dropout(torch.zeros(10_000), 0.2, training=True)
    np.testing.assert_allclose(np.unique(ours), np.unique(torchs), atol=1e-5)


# --- trainer -------------------------------------------------------------------------------------------

SMALL = {"n_layers": 2, "n_units": 16, "random_state": 0}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_learns(architecture):
    X_train, X_test, y_train, y_test = split(load_wine)
    model = FNNClassifier(architecture, n_units=64, random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.9
    assert model.losses_[-1] < model.losses_[0] / 2


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_same_seed_same_bits_and_the_global_generators_stay_as_they_are(architecture):
    X, _, y, _ = split(load_wine)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    model = FNNClassifier(architecture, **SMALL, dropout=0.1, max_epochs=5)
    one, two = (clone(model).fit(X, y).predict_proba(X) for _ in range(2))
    other = clone(model).set_params(random_state=1).fit(X, y).predict_proba(X)
    assert np.array_equal(one, two)
    assert not np.allclose(one, other)
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


@pytest.fixture
def noise():
    """Labels that have nothing to do with the inputs: the more it learns, the worse the held-out rows."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((200, 10)), rng.integers(0, 2, 200)


def test_early_stopping_stops_and_keeps_the_best_epochs_weights(noise):
    X, y = noise
    model = FNNClassifier("msra", n_units=64, patience=4, random_state=0).fit(X, y)
    losses = np.array(model.validation_losses_)
    smoothed = [losses[max(0, e - SMOOTHING) : e].mean() for e in range(1, len(losses) + 1)]
    assert model.n_epochs_ == np.argmin(smoothed) + 1
    assert len(losses) == model.n_epochs_ + 4 < 100
    # the same seed draws the same held-out rows, weights and batches: stop it there, and compare
    shorter = clone(model).set_params(max_epochs=model.n_epochs_).fit(X, y)
    assert np.array_equal(shorter.predict_proba(X), model.predict_proba(X))
    assert shorter.n_epochs_ == model.n_epochs_


def test_held_out_rows_are_a_share_of_every_class_but_never_all_of_it():
    codes = np.repeat([0, 1, 2, 3], [100, 41, 4, 1])
    mask = hold_out(codes, 0.2, np.random.default_rng(0))
    assert np.bincount(codes[mask], minlength=4).tolist() == [20, 8, 1, 0]
    assert hold_out(np.array([0, 0, 1]), 0.1, np.random.default_rng(0)).sum() == 1
    assert not hold_out(np.array([0, 1, 2]), 0.5, np.random.default_rng(0)).any()
    assert np.bincount(codes[~hold_out(codes, 0.99, np.random.default_rng(0))]).tolist() == [1, 1, 1, 1]


def test_held_out_rows_do_not_train(noise):
    """A held-out row decides which epoch is kept and nothing else: one epoch is the same without it."""
    X, y = noise
    model = FNNClassifier("snn", **SMALL, max_epochs=1).fit(X, y)
    assert model.scaler_.n_samples_seen_ == 180
    expected = model.predict_proba(X)
    moves = np.array([_moved(model, X, y, row, expected) for row in range(0, 200, 4)])
    assert 0 < (~moves).sum() < 20, "about one in ten of the rows is held out"


def _moved(model, X, y, row, expected):
    changed = X.copy()
    changed[row] += 10
    return not np.array_equal(clone(model).fit(changed, y).predict_proba(X), expected)


def test_divergence_warns_and_keeps_finite_weights():
    X, y = load_wine(return_X_y=True)
    model = FNNClassifier("resnet", n_layers=8, learning_rate=50.0, random_state=0, restarts=0)
    with pytest.warns(ConvergenceWarning, match=r"diverged in epoch 1 .* Lower learning_rate, or allow"):
        model.fit(X, y)
    assert model.n_epochs_ == 0
    assert np.isfinite(model.predict_proba(X)).all()


def test_what_diverges_starts_again_from_the_same_weights_with_a_smaller_rate():
    X, y = load_wine(return_X_y=True)
    rates = {"n_layers": 8, "n_units": 32, "max_epochs": 30, "random_state": 0}
    again = FNNClassifier("resnet", learning_rate=50.0, **rates).fit(X, y)  # without a warning
    assert again.learning_rate_ in (5.0, 0.5, 0.05)
    assert again.n_epochs_ > 0
    assert again.score(X, y) > 0.9
    plain = FNNClassifier("resnet", learning_rate=again.learning_rate_, restarts=0, **rates).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), plain.predict_proba(X))
    steady = FNNClassifier("resnet", learning_rate=0.05, **rates).fit(X, y)
    assert steady.learning_rate_ == 0.05  # what does not diverge is as before


# --- estimator -----------------------------------------------------------------------------------------


def test_scikit_learns_checks_pass():
    results = check_estimator(FNNClassifier(**SMALL, max_epochs=12), on_skip=None, on_fail=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) >= 45


def test_pickle_predicts_the_same_and_holds_only_numpy():
    X, y = load_iris(return_X_y=True)
    model = FNNClassifier("resnet", **SMALL, max_epochs=3).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert b"torch" not in pickle.dumps(model), "a model trained on a GPU loads on a machine without one"


def test_labels_scores_and_probabilities_agree():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = FNNClassifier(**SMALL).fit(X, names)
    P, F = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.array_equal(model.classes_[P.argmax(1)], model.predict(X))
    assert np.array_equal(F.argmax(1), P.argmax(1))
    binary = FNNClassifier(**SMALL).fit(X, y == 0)
    odds = np.log(binary.predict_proba(X)[:, 1] / binary.predict_proba(X)[:, 0])
    np.testing.assert_allclose(binary.decision_function(X), odds, atol=1e-8)


def test_scale_and_shift_of_the_inputs_do_not_matter():
    X, y = load_iris(return_X_y=True)
    model = FNNClassifier(**SMALL, max_epochs=10)
    one, two = model.fit(X, y).predict_proba(X), model.fit(1000 * X + 5e4, y).predict_proba(1000 * X + 5e4)
    np.testing.assert_allclose(one, two, atol=1e-4)


def test_torch_tensors_are_taken_where_they_lie():
    X, y = load_iris(return_X_y=True)
    model = FNNClassifier(**SMALL, max_epochs=3)
    expected = clone(model).fit(X, y).predict_proba(X)
    made = model.fit(torch.asarray(X), torch.asarray(y)).predict_proba(torch.asarray(X))
    assert isinstance(made, np.ndarray)
    assert np.array_equal(made, expected)


def test_a_missing_torch_is_named_with_its_extra_before_and_in_a_fit(monkeypatch):
    assert METHODS["ResNet"].missing() is None
    monkeypatch.setitem(sys.modules, "torch", None)
    message = METHODS["ResNet"].missing()
    assert message == "ResNet needs the package torch: pip install 'edrvfl[fnn]'"
    with pytest.raises(ImportError, match=re.escape(message)):
        FNNClassifier().fit([[0.0], [1.0]], [0, 1])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_absent_device_is_named():
    with pytest.raises(ValueError, match="no CUDA device; use device='cpu'"):
        FNNClassifier(device="cuda").fit([[0.0], [1.0]], [0, 1])


def test_form_of_another_architecture_is_refused():
    with pytest.raises(ValueError, match="'diavolo' is not one of architecture='snn'; choose 'rectangular'"):
        FNNClassifier("snn", form="diavolo").fit([[0.0], [1.0]], [0, 1])


# --- search spaces -------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_four_trials_are_the_reduced_grid_and_more_are_drawn_from_the_whole(architecture):
    reduced = configurations(architecture)
    assert len(reduced) == len({json.dumps(c) for c in reduced}) == 4
    assert configurations(architecture, 2, seed=9) == reduced[:2]
    for c in reduced:
        layers_each = 2 if architecture == "resnet" else 1
        assert c["n_layers"] * layers_each <= 16
        assert c["n_units"] <= 512
        assert any(all(v in grid[k] for k, v in c.items()) for grid in GRIDS[architecture])
    drawn = configurations(architecture, 60, seed=1)
    assert len({json.dumps(c, sort_keys=True) for c in drawn}) == 60
    assert drawn == configurations(architecture, 60, seed=1) != configurations(architecture, 60, seed=2)
    assert json.loads(json.dumps(drawn)) == drawn
    whole = configurations(architecture, 10_000, seed=1)
    assert len(whole) == sum(math.prod(map(len, grid.values())) for grid in GRIDS[architecture])
    for c in drawn:
        assert FNNClassifier(architecture, **c).form in FORMS[architecture]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_more_trials_are_of_few_kinds_and_evenly_spread(architecture):
    drawn = configurations(architecture, 24, seed=3)
    kinds = Counter(tuple(c.get(k) for k in ("n_units", "form", "bottleneck", "block_layers")) for c in drawn)
    assert len(kinds) == (3 if architecture == "highway" else 4)
    assert len(set(kinds.values())) == 1
    for name in ("n_layers", "learning_rate", "dropout", "n_units"):
        counts = Counter(c[name] for c in drawn)
        assert set(counts) == set(GRIDS[architecture][0][name])
        assert max(counts.values()) - min(counts.values()) <= (6 if name == "n_units" else 2), name
    for kind in kinds:
        depths = [c["n_layers"] for c in drawn if c["n_units"] == kind[0] and c.get("form") == kind[1]]
        assert len(set(depths)) >= 5, "a kind has almost all depths"


def test_bad_requests_are_refused():
    with pytest.raises(ValueError, match="Unknown architecture 'mlp'; choose one of snn"):
        configurations("mlp")
    with pytest.raises(ValueError, match="trials must be at least 1"):
        configurations("snn", 0)
