"""Algorithm 1, the whole of it: one network against the plain reference, many against one."""

import dataclasses
import itertools
import tracemalloc

import hypothesis
import numpy as np
import pytest
import reference
from helpers import beside, grow_alone, noisy_rows, scores_by_layer, to_host
from hypothesis import assume, given
from hypothesis import strategies as st

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.targets import Classes, RowWeights, side_by_side
from edrvfl._layers.draws import Draws, Recipe
from edrvfl._layers.grow import Problem, grow, start
from edrvfl._layers.layers import ACTIVATIONS, fill_inputs, new_features
from edrvfl._layers.records import DrawSettings, Settings
from edrvfl._seam.arrays import ignore_overflow, row_blocks

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
PRIMAL_AND_DUAL = pytest.mark.parametrize("n_hidden", [12, 120], ids=["primal", "dual"])


def changed(**values):
    return dataclasses.replace(BASE, **values)


def stacked_scores(network, X):
    """Scores (layers, rows, classes) in NumPy."""
    return scores_by_layer(network, X)


def scores_of(X, y, settings, X_new, **weights):
    return stacked_scores(grow_alone(X, y, settings, **weights)[0], X_new)


def reference_scores(X, y, settings, X_new, seed=5):
    s = settings
    return reference.layer_scores(
        X, y, X_new, seed, s.n_layers, s.n_hidden, "loo" if s.lam is None else s.lam, s.activation,
        s.renormalize, s.draws.scales or s.gamma, s.draws.shifts or s.alpha, s.omega_r, s.p, s.weight_from,
        s.draws.inputs_per_neuron, s.draws.hidden_per_neuron,
    )  # fmt: skip


def decided(network, layers, X, settings):
    """Tell whether no label and no pruning cut hangs on a difference that rounding could turn."""
    clear = True
    loo = [to_host(grown.readout.loo) for grown in layers if grown.readout.loo is not None]
    for scores in (stacked_scores(network, X), *loo):
        top = np.sort(scores, axis=-1)
        clear &= (top[..., -1] - top[..., -2]).min() > 1e-6
    cut = int(settings.p * settings.n_hidden + 1e-9)
    for beta in network.readouts:
        theta = np.sort(np.abs(to_host(beta)[: settings.n_hidden]).sum(axis=-1))
        clear &= cut == 0 or theta[cut] - theta[cut - 1] > 1e-6
    return clear


# --- one network, against the reference ------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
@PRIMAL_AND_DUAL
def test_the_plain_reference_agrees(xp, noisy, rng, name, n_hidden):
    X, y = noisy
    X_new = rng.standard_normal((11, 5))
    settings = changed(**VARIANTS[name], n_hidden=n_hidden)
    scores = scores_of(xp.asarray(X), xp.asarray(y), settings, xp.asarray(X_new))
    np.testing.assert_allclose(scores, reference_scores(X, y, settings, X_new), atol=1e-10)


DRAWS = {
    "few inputs": DrawSettings(inputs_per_neuron=2),
    "few neurons": DrawSettings(hidden_per_neuron=3),
    "scales": DrawSettings(scales=(0.5, 2.0)),
    "shifts": DrawSettings(shifts=(-1.0, 0.5)),
    "all": DrawSettings(3, 5, (0.3, 1.0), (-2.0, 2.0)),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("paper", ["edRVFL_O", "WPedRVFL"])
def test_the_plain_reference_agrees_on_other_draws(xp, noisy, rng, name, paper):
    X, y = noisy
    X_new = rng.standard_normal((11, 5))
    settings = changed(**VARIANTS[paper], draws=DRAWS[name])
    scores = scores_of(xp.asarray(X), xp.asarray(y), settings, xp.asarray(X_new))
    np.testing.assert_allclose(scores, reference_scores(X, y, settings, X_new), atol=1e-10)


@pytest.mark.parametrize("stacked", [False, True], ids=["one by one", "as a stack"])
def test_networks_with_other_draws_grown_together_are_those_grown_alone(xp, rng, stacked):
    (X, y), X_new = noisy_rows(rng, 90, 5), rng.standard_normal((7, 5))
    X, y, X_new = (xp.asarray(a) for a in (X, y, X_new))
    penalties, weights = np.array([0.1, 1.0, 8.0]), np.array([0.3, 1.0, 0.7])
    settings = changed(lam=penalties, omega_r=weights, p=0.4, draws=DRAWS["all"])
    scores = scores_of_many(X, y, settings, X_new, stacked=stacked)
    for i in range(3):
        np.testing.assert_allclose(scores[i], scores_of(X, y, alone(settings, (i,)), X_new), atol=1e-8)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_plain_reference_agrees_on_every_activation(noisy, activation):
    X, y = noisy
    settings = changed(**VARIANTS["WPedRVFL"], activation=activation)
    np.testing.assert_allclose(scores_of(X, y, settings, X), reference_scores(X, y, settings, X), atol=1e-10)


@pytest.mark.parametrize("values", [VARIANTS["edRVFL_N"], VARIANTS["WPedRVFL"]], ids=["plain", "weighted"])
def test_the_plain_reference_agrees_on_inputs_wider_than_the_layer(xp, rng, values):
    X, y = noisy_rows(rng, 90, 40)
    settings = changed(**values)
    scores = scores_of(xp.asarray(X), xp.asarray(y), settings, xp.asarray(X[:9]))
    np.testing.assert_allclose(scores, reference_scores(X, y, settings, X[:9]), atol=1e-10)


@PRIMAL_AND_DUAL
@pytest.mark.parametrize(
    "values", [{"weight_from": "loo"}, {"lam": None}, {"lam": None, "weight_from": "loo"}], ids=str
)
def test_the_plain_reference_agrees_on_leave_one_out(xp, noisy, n_hidden, values):
    X, y = noisy[0][:40], noisy[1][:40]
    settings = changed(**VARIANTS["WPedRVFL"] | {"n_hidden": n_hidden, "n_layers": 3} | values)
    scores = scores_of(xp.asarray(X), xp.asarray(y), settings, xp.asarray(X))
    np.testing.assert_allclose(scores, reference_scores(X, y, settings, X), atol=1e-9)


def test_two_neurons_by_hand(monkeypatch):
    # One input, standardised values -1, 1, -1, 1; W = (1, -1), b = (0, 1), no re-normalisation, relu:
    # x = -1 gives H = (0, 2), x = 1 gives H = (1, 0), so D has the rows (0, 2, -1, 1) and (1, 0, 1, 1).
    drawn = np.array([[1.0, -1.0]]), np.array([0.0, 1.0])
    monkeypatch.setattr("edrvfl._layers.draws.draw", lambda *_: drawn)
    X, y = np.array([[3.0], [5.0], [3.0], [5.0]]), np.array([0, 1, 0, 1])
    settings = changed(n_layers=1, n_hidden=2, renormalize=False, lam=2.0)
    scores = scores_of(X, y, settings, np.array([[3.0], [5.0]]))
    # With A = (0, 2, -1, 1) and B = (1, 0, 1, 1) orthogonal, each seen twice, the dual solution for a
    # class is a A + b B with (2 A.A + 2) a = 2 for its own rows: A.A = 6, B.B = 3.
    a, b = 2 * 6 / (2 * 6 + 2), 2 * 3 / (2 * 3 + 2)
    np.testing.assert_allclose(scores[0], [[a, 0.0], [0.0, b]], atol=1e-14)


# --- laws of one network ---------------------------------------------------------------------------------


def test_weighting_and_pruning_act(noisy):
    X, y = noisy
    plain = scores_of(X, y, BASE, X)
    for values in ({"omega_r": 0.4}, {"p": 0.4}):
        other = scores_of(X, y, changed(**values), X)
        np.testing.assert_array_equal(other[0], plain[0])  # they begin with the second layer
        assert np.abs(other[1] - plain[1]).max() > 1e-3


def test_weighting_by_leave_one_out_acts_where_training_rows_are_learnt_by_heart(noisy):
    X, y = noisy
    settings = changed(n_hidden=200, lam=1e-3, omega_r=0.5)
    network, layers = grow_alone(X, y, settings)
    assert all((grown.losses == 0).all() for grown in layers)
    plain = scores_of(X, y, changed(n_hidden=200, lam=1e-3), X)
    np.testing.assert_array_equal(stacked_scores(network, X), plain)
    by_loo = scores_of(X, y, dataclasses.replace(settings, weight_from="loo"), X + 0.1)
    assert np.abs(by_loo - scores_of(X, y, settings, X + 0.1)).max() > 1e-3


@pytest.mark.parametrize("n_hidden", [12, 150], ids=["primal", "dual"])
@given(seed=st.integers(0, 2**31))
def test_weight_two_is_the_row_twice(n_hidden, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int) + (X[:, 1] > 1)
    assume(len(np.unique(y)) == 3)
    counts = rng.integers(1, 4, 60)
    settings = changed(**VARIANTS["WPedRVFL"], n_hidden=n_hidden)
    network, layers = grow_alone(X, y, settings, counts=counts.astype(float))
    assume(decided(network, layers, X, settings))
    repeated = scores_of(np.repeat(X, counts, axis=0), np.repeat(y, counts), settings, X)
    np.testing.assert_allclose(stacked_scores(network, X), repeated, atol=1e-8)


def test_costs_weigh_errors_but_do_not_count_rows(noisy):
    X, y = noisy
    costs = np.where(y == 0, 3.0, 1.0)
    plain = changed(n_layers=1, renormalize=False)
    np.testing.assert_allclose(  # in one layer without statistics, a cost is a weight
        scores_of(X, y, plain, X, costs=costs, standardize=False),
        scores_of(X, y, plain, X, counts=costs, standardize=False),
        atol=1e-12,
    )
    network, _ = grow_alone(X, y, BASE, costs=costs)
    plain, _ = grow_alone(X, y, BASE)
    np.testing.assert_array_equal(network.inputs.numbers.mean, plain.inputs.numbers.mean)
    np.testing.assert_array_equal(network.layers[0].scale, plain.layers[0].scale)
    assert np.abs(network.readouts[0] - plain.readouts[0]).max() > 1e-3


@pytest.mark.parametrize("d", [5, 40], ids=["narrow", "wide"])
def test_blocks_of_rows_change_nothing_but_rounding(rng, limit, d):
    X, y = noisy_rows(rng, 360, d)
    settings = changed(**VARIANTS["WPedRVFL"])
    whole = scores_of(X, y, settings, X)
    limit(CPU_BLOCK_BYTES=1)
    assert len(list(row_blocks(X, *X.shape))) == 3
    np.testing.assert_allclose(scores_of(X, y, settings, X), whole, atol=1e-9)


def test_what_comes_with_each_layer(noisy):
    X, y = noisy
    network, layers = grow_alone(X, y, changed(p=0.26, n_hidden=10))
    assert [grown.layer for grown in layers] == [0, 1, 2, 3]
    for grown, scores in zip(layers, scores_by_layer(network, X), strict=True):
        np.testing.assert_array_equal(grown.losses[0] == 0, scores.argmax(axis=1) == y)
        assert not bool(grown.readout.fell_back[0])
        assert grown.members == slice(0, 1)
    assert [layer.W.shape for layer in network.layers] == [(5, 10), (13, 10), (13, 10), (13, 10)]


def test_one_matrix_is_all_it_holds(rng):
    X, y = rng.standard_normal((40_000, 8)), rng.integers(0, 2, 40_000)
    settings = changed(**VARIANTS["WPedRVFL"], n_hidden=100)
    tracemalloc.start()
    try:
        grow_alone(X, y, settings)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.6 * 40_000 * 108 * 8


def test_overflow_names_the_layer(noisy):
    X, y = noisy
    with (
        ignore_overflow(),
        pytest.raises(ValueError, match=r"overflow float64 in layer 1\. Set renormalize=True"),
    ):
        grow_alone(X * 1e200, y, BASE, standardize=False)
    with ignore_overflow(), pytest.raises(ValueError, match=r"overflow float32 in layer \d+"):
        grow_alone(X.astype(np.float32), y, changed(renormalize=False, n_layers=200, n_hidden=100))


# --- many networks, each against itself alone ------------------------------------------------------------


def begin(X, y, settings, X_new, *, stack=(), stacked=False, counts=None, costs=None):
    """Lay out D with the rows X_new behind the training rows X, and return what `grow` takes."""
    inputs = learn_inputs(X, counts, EncoderSettings())
    m, v = X.shape[0], X_new.shape[0]
    D = new_features(m + v, X, settings.n_hidden, inputs, stack)
    fill_inputs(D[..., :m, :], X, inputs)
    fill_inputs(D[..., m:, :], X_new, inputs)
    draws = Draws(Recipe(5, settings.n_hidden, inputs.source, settings.draws), X, keep=True)
    problem = Problem(Classes(y, 3, X[:0, 0]), RowWeights(counts, costs), draws, None, stacked)
    return start(D, settings), problem


def scores_of_many(X, y, settings, X_new, **how):
    """Grow networks together; return the scores of the rows X_new, (networks, layers, rows, classes)."""
    v, size = X_new.shape[0], np.size(settings.omega_r)
    scores = np.full((size, settings.n_layers, v, 3), np.nan)
    for grown in grow(*begin(X, y, settings, X_new, **how)):
        these = to_host(side_by_side(grown.D[..., -v:, :], grown.readout.beta))
        scores[grown.members, grown.layer] = these.reshape(-1, v, 3)
    return scores


def alone(settings, index):
    """Take the settings of one network of those that are grown together."""
    own = {name: float(getattr(settings, name)[index]) for name in ("lam", "omega_r")}
    shared = {
        name: float(np.asarray(getattr(settings, name))[index[:-1]]) for name in ("gamma", "alpha", "p")
    }
    return dataclasses.replace(settings, **own, **shared)


def draw_settings(data, rng, stack, r, n):
    """Draw settings of r read-outs for each hidden setting of the stack, some with lambda 0."""
    rate = data.draw(st.sampled_from([0.0, 0.3, 0.9]))
    zeros = rng.random((*stack, r)) < data.draw(st.sampled_from([0, 0.2]))
    return Settings(
        n_layers=3,
        n_hidden=n,
        activation=data.draw(st.sampled_from(["relu", "sigmoid"])),
        renormalize=data.draw(st.booleans()),
        lam=np.where(zeros, 0.0, 2.0 ** rng.uniform(-3, 6, (*stack, r))),
        gamma=rng.uniform(0.5, 2, stack) if stack else 1.3,
        alpha=rng.uniform(-1, 1, stack) if stack else -0.4,
        omega_r=rng.uniform(0.1, 1, (*stack, r)) if data.draw(st.booleans()) else np.ones((*stack, r)),
        p=np.full(stack, rate) if stack else rate,
        weight_from=data.draw(st.sampled_from(["train", "loo"])),
    )


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
@pytest.mark.parametrize("stacked", [False, True], ids=["one by one", "as a stack"])
@hypothesis.settings(max_examples=15)  # of each of the six
@given(data=st.data())
def test_every_network_is_the_one_grown_alone(library, stacked, data):
    xp = pytest.importorskip(library)
    # 30 columns are more than the smaller layers have neurons, so their part of the Gram is summed once
    m, n, d = (
        data.draw(values) for values in (st.integers(20, 70), st.integers(2, 90), st.sampled_from([4, 30]))
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    (X, y), X_new = noisy_rows(rng, m, d), rng.standard_normal((9, d))
    assume(len(np.unique(y)) == 3)
    stack = data.draw(st.sampled_from([(), (1,), (3,)])) if stacked else ()
    r = data.draw(st.integers(1, 4))
    settings = draw_settings(data, rng, stack, r, n)
    weights = {
        "counts": beside(xp, rng.integers(1, 4, m).astype(float) if data.draw(st.booleans()) else None),
        "costs": beside(xp, np.where(y == 1, 2.0, 1.0) if data.draw(st.booleans()) else None),
    }
    X, y, X_new = (xp.asarray(a) for a in (X, y, X_new))
    scores = scores_of_many(X, y, settings, X_new, stack=stack, stacked=stacked, **weights)
    for place, index in enumerate(np.ndindex((*stack, r))):
        one = alone(settings, index)
        network, layers = grow_alone(X, y, one, **weights)
        assert sum(grown.readout.loo is not None for grown in layers) == 2 * one.weighs_by_loo
        assume(decided(network, layers, X, one))
        np.testing.assert_allclose(scores[place], stacked_scores(network, X_new), atol=1e-8)


@pytest.mark.parametrize("stacked", [False, True], ids=["one by one", "as a stack"])
@pytest.mark.parametrize("d", [5, 40], ids=["narrow", "wide"])
@PRIMAL_AND_DUAL
def test_networks_grown_together_are_those_grown_alone(xp, rng, n_hidden, d, stacked):
    (X, y), X_new = noisy_rows(rng, 90, d), rng.standard_normal((7, d))
    X, y, X_new = (xp.asarray(a) for a in (X, y, X_new))
    settings = changed(
        n_hidden=n_hidden, lam=np.array([0.1, 1.0, 8.0]), omega_r=np.array([0.3, 1.0, 0.7]), p=0.4
    )
    scores = scores_of_many(X, y, settings, X_new, stacked=stacked)
    for i in range(3):
        np.testing.assert_allclose(scores[i], scores_of(X, y, alone(settings, (i,)), X_new), atol=1e-8)


@pytest.mark.parametrize("stacked", [False, True], ids=["one by one", "as a stack"])
@pytest.mark.parametrize("p", [0.0, 0.4], ids=["together", "parted"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_who_breaks_off_has_the_first_layers(noisy, stacked, p, depth):
    X, y = noisy
    settings = changed(lam=np.array([0.1, 1.0]), omega_r=np.array([0.3, 0.7]), p=p, gamma=0.8)
    some = list(itertools.islice(grow(*begin(X, y, settings, X, stacked=stacked)), depth))
    every = list(grow(*begin(X, y, settings, X, stacked=stacked)))
    for grown, same in zip(some, every, strict=False):
        assert (grown.layer, grown.members) == (same.layer, same.members)
        np.testing.assert_array_equal(grown.readout.beta, same.readout.beta)
        np.testing.assert_array_equal(grown.hidden.W, same.hidden.W)
        np.testing.assert_array_equal(grown.hidden.shift, same.hidden.shift)


def test_networks_that_part_come_one_after_the_other(noisy):
    X, y = noisy
    settings = changed(n_layers=3, lam=np.array([0.1, 1.0]), omega_r=np.ones(2), p=0.4)
    order = [(grown.layer, grown.members) for grown in grow(*begin(X, y, settings, X))]
    first, second = slice(0, 1), slice(1, 2)
    assert order == [(0, slice(0, 2)), (1, first), (2, first), (1, second), (2, second)]
    together = [(grown.layer, grown.members) for grown in grow(*begin(X, y, settings, X, stacked=True))]
    assert together == [(l, slice(0, 2)) for l in range(3)]


@pytest.mark.parametrize("stacked", [False, True], ids=["one by one", "as a stack"])
def test_overflow_of_networks_grown_together_is_an_error(noisy, stacked):
    X, y = noisy[0].astype(np.float32), noisy[1]
    settings = changed(
        lam=np.array([1.0, 2.0]), omega_r=np.ones(2), renormalize=False, n_layers=200, n_hidden=100
    )
    with ignore_overflow(), pytest.raises(ValueError, match="overflow float32 in layer"):
        scores_of_many(X, y, settings, X, stacked=stacked)
