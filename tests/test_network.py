"""Algorithm 1, the whole of it."""

import dataclasses
import math

import numpy as np
import pytest
import reference
from conftest import to_host
from hypothesis import assume, given
from hypothesis import strategies as st

from edrvfl import _network
from edrvfl._activations import ACTIVATIONS
from edrvfl._network import Settings, fit, layer_scores

BASE = Settings(
    n_layers=4,
    n_hidden=12,
    activation="relu",
    renormalize=True,
    lam=0.5,
    gamma=1.0,
    alpha=0.0,
    omega_r=1.0,
    p=0.0,
)
VARIANTS = {
    "RVFL": {"n_layers": 1, "renormalize": False},
    "edRVFL_O": {"renormalize": False},
    "edRVFL_N": {"gamma": 1.5, "alpha": -0.5},
    "WedRVFL": {"omega_r": 0.4},
    "PedRVFL": {"p": 0.35},
    "WPedRVFL": {"omega_r": 0.6, "p": 0.5, "gamma": 0.7, "alpha": 1.0},
}


def changed(**values):
    return dataclasses.replace(BASE, **values)


def scores_of(X, y, settings, X_new, seed=5, **kwargs):
    n_classes = int(np.max(to_host(y))) + 1
    return layer_scores(fit(X, y, n_classes, settings, seed, **kwargs).network, X_new)


def reference_scores(X, y, settings, X_new, seed=5):
    s = settings
    return reference.layer_scores(
        X, y, X_new, seed, s.n_layers, s.n_hidden, "loo" if s.lam is None else s.lam, s.activation,
        s.renormalize, s.gamma, s.alpha, s.omega_r, s.p, s.weight_from,
    )  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("n_hidden", [12, 120], ids=["primal", "dual"])
def test_the_plain_reference_agrees(xp, noisy, rng, name, n_hidden):
    X, y = noisy
    X_new = rng.standard_normal((11, 5))
    settings = changed(**VARIANTS[name], n_hidden=n_hidden)
    scores = scores_of(xp.asarray(X), xp.asarray(y), settings, xp.asarray(X_new))
    np.testing.assert_allclose(to_host(scores), reference_scores(X, y, settings, X_new), atol=1e-10)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_plain_reference_agrees_on_every_activation(noisy, activation):
    X, y = noisy
    settings = changed(**VARIANTS["WPedRVFL"], activation=activation)
    scores = scores_of(X, y, settings, X)
    np.testing.assert_allclose(scores, reference_scores(X, y, settings, X), atol=1e-10)


@pytest.mark.parametrize("n_hidden", [12, 120], ids=["primal", "dual"])
@pytest.mark.parametrize(
    "values", [{"weight_from": "loo"}, {"lam": None}, {"lam": None, "weight_from": "loo"}], ids=str
)
def test_the_plain_reference_agrees_on_leave_one_out(xp, noisy, n_hidden, values):
    X, y = noisy[0][:40], noisy[1][:40]
    settings = changed(**VARIANTS["WPedRVFL"] | {"n_hidden": n_hidden, "n_layers": 3} | values)
    scores = scores_of(xp.asarray(X), xp.asarray(y), settings, xp.asarray(X))
    np.testing.assert_allclose(to_host(scores), reference_scores(X, y, settings, X), atol=1e-9)


@pytest.mark.parametrize("n_hidden", [12, 120], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [0.5, None], ids=["given", "chosen"])
def test_leave_one_out_takes_a_weight_as_repetition(noisy, rng, n_hidden, lam):
    X, y = noisy
    counts = rng.integers(1, 4, len(y))
    settings = changed(omega_r=0.5, p=0.3, n_hidden=n_hidden, lam=lam, weight_from="loo")
    weighted = scores_of(X, y, settings, X, s=counts.astype(float))
    repeated = scores_of(np.repeat(X, counts, axis=0), np.repeat(y, counts), settings, X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def test_weighting_by_leave_one_out_acts_where_training_rows_are_learnt_by_heart(noisy):
    X, y = noisy
    settings = changed(n_hidden=200, lam=1e-3, omega_r=0.5)
    fitted = fit(X, y, 3, settings, 5)
    assert set(fitted.accuracies) == {1.0}
    plain = scores_of(X, y, changed(n_hidden=200, lam=1e-3), X)
    np.testing.assert_array_equal(layer_scores(fitted.network, X), plain)
    by_loo = scores_of(X, y, dataclasses.replace(settings, weight_from="loo"), X + 0.1)
    assert np.abs(by_loo - scores_of(X, y, settings, X + 0.1)).max() > 1e-3


def test_weighting_and_pruning_act(noisy):
    X, y = noisy
    plain = scores_of(X, y, BASE, X)
    for values in ({"omega_r": 0.4}, {"p": 0.4}):
        other = scores_of(X, y, changed(**values), X)
        np.testing.assert_array_equal(other[0], plain[0])  # they begin with the second layer
        assert np.abs(other[1] - plain[1]).max() > 1e-3


def test_two_neurons_by_hand(monkeypatch):
    # One input, standardised values -1, 1, -1, 1; W = (1, -1), b = (0, 1), no re-normalisation, relu:
    # x = -1 gives H = (0, 2), x = 1 gives H = (1, 0), so D has the rows (0, 2, -1, 1) and (1, 0, 1, 1).
    monkeypatch.setattr(_network, "draw", lambda *_: (np.array([[1.0, -1.0]]), np.array([0.0, 1.0])))
    X, y = np.array([[3.0], [5.0], [3.0], [5.0]]), np.array([0, 1, 0, 1])
    settings = changed(n_layers=1, n_hidden=2, renormalize=False, lam=2.0)
    scores = scores_of(X, y, settings, np.array([[3.0], [5.0]]))
    # With A = (0, 2, -1, 1) and B = (1, 0, 1, 1) orthogonal, each seen twice, the dual solution for a
    # class is a A + b B with (2 A.A + 2) a = 2 for its own rows: A.A = 6, B.B = 3.
    a, b = 2 * 6 / (2 * 6 + 2), 2 * 3 / (2 * 3 + 2)
    np.testing.assert_allclose(scores[0], [[a, 0.0], [0.0, b]], atol=1e-14)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_prefix_of_a_deep_network_is_the_shallower_network(noisy, name):
    X, y = noisy
    deep = changed(**VARIANTS[name] | {"n_layers": 5})
    shallow = dataclasses.replace(deep, n_layers=2)
    np.testing.assert_array_equal(scores_of(X, y, deep, X)[:2], scores_of(X, y, shallow, X))


@pytest.mark.parametrize("n_hidden", [12, 150], ids=["primal", "dual"])
@given(seed=st.integers(0, 2**31))
def test_weight_two_is_the_row_twice(n_hidden, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int) + (X[:, 1] > 1)
    assume(len(np.unique(y)) == 3)
    counts = rng.integers(1, 4, 60)
    settings = changed(**VARIANTS["WPedRVFL"], n_hidden=n_hidden)
    assume(decided(X, y, settings, counts))
    weighted = scores_of(X, y, settings, X, s=counts.astype(float))
    repeated = scores_of(np.repeat(X, counts, axis=0), np.repeat(y, counts), settings, X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


def decided(X, y, settings, counts):
    """Whether no label and no pruning cut hangs on a difference that rounding could turn."""
    network = fit(X, y, 3, settings, 5, s=counts.astype(float)).network
    top = np.sort(layer_scores(network, X), axis=-1)
    clear = (top[..., -1] - top[..., -2]).min() > 1e-6
    for layer in network.layers:
        theta = np.sort(np.abs(layer.beta[: settings.n_hidden]).sum(axis=-1))
        cut = int(settings.p * settings.n_hidden)
        clear &= theta[cut] - theta[cut - 1] > 1e-6
    return clear


@pytest.mark.parametrize("n_hidden", [12, 120], ids=["primal", "dual"])
@pytest.mark.parametrize("renormalize", [True, False])
def test_one_network_in_a_stack_is_the_same_network_alone(xp, noisy, n_hidden, renormalize):
    X, y = (xp.asarray(a) for a in noisy)
    values = {
        "lam": np.array([0.1, 1.0, 8.0, 30.0]),
        "gamma": np.array([0.5, 1.0, 2.0, 1.0]),
        "alpha": np.array([-1.0, 0.0, 0.5, 2.0]),
        "omega_r": np.array([0.3, 1.0, 0.7, 0.9]),
        "p": np.array([0.0, 0.25, 0.5, 0.8]),
    }
    common = changed(n_hidden=n_hidden, renormalize=renormalize)
    stack = fit(X, y, 3, dataclasses.replace(common, **values), 5)
    scores = to_host(layer_scores(stack.network, X))
    for i in range(4):
        alone = dataclasses.replace(common, **{k: float(v[i]) for k, v in values.items()})
        single = fit(X, y, 3, alone, 5)
        np.testing.assert_allclose(scores[:, i], to_host(layer_scores(single.network, X)), atol=1e-8)
        assert [float(a[i]) for a in stack.accuracies] == list(single.accuracies)
        assert [int(k[i]) for k in stack.kept] == list(single.kept)


@given(order=st.permutations(range(90)))
def test_the_order_of_the_rows_does_not_matter(order):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((90, 5))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.8 * rng.standard_normal(90), [-0.6, 0.6])
    settings = changed(**VARIANTS["WPedRVFL"])
    np.testing.assert_allclose(
        scores_of(X[order], y[order], settings, X), scores_of(X, y, settings, X), atol=1e-8
    )


def test_costs_weigh_errors_but_do_not_count_rows(noisy):
    X, y = noisy
    cost = np.where(y == 0, 3.0, 1.0)
    one_layer = changed(n_layers=1)
    np.testing.assert_allclose(  # in one layer without re-normalisation, cost is weight
        scores_of(X, y, dataclasses.replace(one_layer, renormalize=False), X, cost=cost, standardize=False),
        scores_of(X, y, dataclasses.replace(one_layer, renormalize=False), X, s=cost, standardize=False),
        atol=1e-12,
    )  # fmt: skip
    result = fit(X, y, 3, one_layer, 5, cost=cost)
    right = layer_scores(result.network, X)[0].argmax(axis=-1) == y
    assert math.isclose(result.accuracies[0], right.mean())


def test_blocks_of_rows_change_nothing_but_rounding(noisy, monkeypatch):
    X, y = (np.tile(a.T, 4).T for a in noisy)
    settings = changed(**VARIANTS["WPedRVFL"])
    whole = scores_of(X, y, settings, X)
    monkeypatch.setattr("edrvfl._arrays.CPU_BLOCK_BYTES", 1)
    assert len(list(_network.row_blocks(X, *X.shape))) == 3
    np.testing.assert_allclose(scores_of(X, y, settings, X), whole, atol=1e-9)


def test_figures_of_the_fit(noisy):
    X, y = noisy
    result = fit(X, y, 3, changed(p=0.26, n_hidden=10), 5)
    scores = layer_scores(result.network, X)
    assert result.accuracies == tuple(float((s.argmax(axis=1) == y).mean()) for s in scores)
    assert result.fell_back == (False,) * 4
    assert result.kept == (8,) * 4
    assert [layer.W.shape for layer in result.network.layers] == [(5, 10), (13, 10), (13, 10), (13, 10)]


def test_one_matrix_is_all_it_holds(noisy):
    import tracemalloc

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40_000, 8)), rng.integers(0, 2, 40_000)
    settings = changed(**VARIANTS["WPedRVFL"], n_hidden=100)
    tracemalloc.start()
    try:
        fit(X, y, 2, settings, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.6 * 40_000 * 108 * 8


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_overflow_names_the_layer(noisy):
    X, y = noisy
    with pytest.raises(ValueError, match=r"overflow float64 in layer 1\. Set renormalize=True"):
        fit(X * 1e200, y, 3, BASE, 5, standardize=False)
    with pytest.raises(ValueError, match=r"overflow float32 in layer \d+"):
        fit(X.astype(np.float32), y, 3, changed(renormalize=False, n_layers=200, n_hidden=100), 5)


def test_overflow_at_prediction_is_an_error(noisy):
    X, y = noisy
    network = fit(X, y, 3, BASE, 5, standardize=False).network
    with pytest.raises(ValueError, match="far larger than those seen in fit"):
        layer_scores(network, np.full((1, 5), 1e308))
