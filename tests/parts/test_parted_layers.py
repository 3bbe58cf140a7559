"""Sums over parts against plain NumPy with all features in one matrix."""

import operator
from dataclasses import replace
from functools import partial, reduce

import numpy as np
import pytest
from helpers import Recorder, beside, features_by_layer, noisy_rows, noisy_values, to_host
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, RowBlocks
from edrvfl._inputs.inputs import Inputs
from edrvfl._inputs.rows import Rows
from edrvfl._inputs.targets import Classes, RowWeights, Values
from edrvfl._layers.draws import draw
from edrvfl._layers.layers import folded
from edrvfl._layers.records import HiddenLayer
from edrvfl._parts.grow import unshifted
from edrvfl._parts.layers import Depth, SumLayer, Verdict, input_moments, losses_by_layer
from edrvfl._ridge.equations import NormalEquations
from edrvfl._seam.linalg import factorise

M, D, N = 40, 3, 5


def as_they_are(d=D):
    return Inputs(d, tuple(range(d)), ("",) * d)


def random_layers(rng, depth):
    """Draw layers; every second one reads some of the neurons before it."""
    layers = []
    for l in range(depth):
        inputs = slice(N, N + D) if l == 0 else np.array([0, 2, 3, *range(N, N + D)])
        A = D if l == 0 else 3 + D
        scale = None if l == 2 else rng.uniform(0.5, 2, N)
        layers.append(HiddenLayer(inputs, rng.uniform(-1, 1, (A, N)), scale, rng.normal(size=N)))
    return layers


def moved(xp, layer):
    inputs = layer.inputs if isinstance(layer.inputs, slice) else xp.asarray(layer.inputs)
    return HiddenLayer(inputs, *(beside(xp, array) for array in (layer.W, layer.scale, layer.shift)))


def features(layers, X):
    """[H, X, 1] of every layer."""
    before, found = np.hstack([np.full((len(X), N), np.nan), X]), []
    for layer in layers:
        Z = before[:, layer.inputs] @ layer.W
        H = np.maximum(Z * (1 if layer.scale is None else layer.scale) + layer.shift, 0)
        before = np.hstack([H, X])
        found.append(np.hstack([before, np.ones((len(X), 1))]))
    return found


def random_rows(rng, xp, kind, weighted):
    """Draw rows; return them with their targets (m, k), their sample weights and their class weights."""
    X = rng.normal([0, 5, -2], size=(M, D))
    counts = rng.uniform(0.1, 3, M) if weighted else None
    if kind == "values":
        Y = rng.normal(size=(M, 2))
        targets, costs = Values(xp.asarray(Y)), None
    else:
        codes = rng.integers(0, 3, M)
        Y = np.eye(3)[codes]
        targets = Classes(xp.asarray(codes), 3, xp.asarray(X[:0, 0]))
        costs = np.array([1.0, 0.3, 2.0])[codes] if weighted else None
    weights = RowWeights(beside(xp, counts), beside(xp, costs))
    classes = None if kind == "values" else np.arange(3)
    ones = np.ones(M)
    rows = Rows(xp.asarray(X), classes, targets, weights)
    return rows, X, Y, ones if counts is None else counts, ones if costs is None else costs


def cut(rows, xp, *stops):
    """Return the rows in parts."""
    parts = []
    for start, stop in zip((0, *stops), (*stops, M), strict=True):
        which = xp.arange(start, stop)
        parts.append(
            Rows(rows.X[start:stop, :], rows.classes, rows.targets.some(which), rows.weights.some(which))
        )
    return parts


def summed(function, parts):
    return reduce(operator.add, (function(part, number) for number, part in enumerate(parts)))


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_sums_of_a_layer_without_weighting(xp, rng, depth, weighted, kind):
    rows, X, Y, counts, costs = random_rows(rng, xp, kind, weighted)
    layers, reference = random_layers(rng, depth), np.array([0.5, 4.0, -1.0])
    network = Depth(as_they_are(), N, "relu")
    for layer in layers:
        network = network.with_layer(moved(xp, layer))
    E = features(layers, X)[-1] if depth else np.hstack([X, np.ones((M, 1))])
    E[:, -1 - D : -1] -= reference
    sums = summed(SumLayer(network, xp.asarray(reference), wants_plain=True), cut(rows, xp, 11, 12))
    W = counts * costs
    np.testing.assert_allclose(to_host(sums.right.G), (E * W[:, None]).T @ E, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(to_host(sums.right.R), (E * W[:, None]).T @ Y, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(to_host(sums.gram), (E * counts[:, None]).T @ E, rtol=1e-11, atol=1e-11)
    assert sums.wrong is None
    np.testing.assert_allclose(float(sums.n_right), counts.sum())


def test_features_that_are_kept_give_the_same_sums(xp, rng):
    rows, *_ = random_rows(rng, xp, "classes", True)
    network, kept, parts = Depth(as_they_are(), N, "relu"), {}, cut(rows, xp, 11, 12)
    for layer in random_layers(rng, 3):
        network = network.with_layer(moved(xp, layer))
        again, found = (summed(SumLayer(network, kept=where), parts) for where in (None, kept))
        np.testing.assert_array_equal(to_host(found.right.G), to_host(again.right.G))
        H = network.walk(rows, slice(0, M)).D[:, :N]
        np.testing.assert_allclose(to_host(xp.concat(list(kept.values()))), to_host(H), rtol=1e-12)
    kept[1][...] += 1.0  # they are read, and not computed again
    assert not np.allclose(
        to_host(summed(SumLayer(network, kept=kept), parts).right.G), to_host(again.right.G)
    )


@pytest.mark.parametrize("by_loo", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["classes", "values"])
def test_right_and_wrong_rows_are_summed_apart(xp, rng, by_loo, weighted, kind):
    rows, X, Y, counts, costs = random_rows(rng, xp, kind, weighted)
    layers, lam = random_layers(rng, 3), 2.0
    found, omega, base = features(layers, X), np.ones(M), counts * costs
    network = Depth(as_they_are(), N, "relu")
    for l, layer in enumerate(layers):
        network = network.with_layer(moved(xp, layer))
        if l == 2:
            break
        E, W = found[l], base * omega
        beta = np.linalg.solve((E * W[:, None]).T @ E + lam * np.eye(E.shape[1]), (E * W[:, None]).T @ Y)
        scores, factor = E @ beta, None
        if by_loo:
            G = (E * W[:, None]).T @ E + lam * np.eye(E.shape[1])
            factor = factorise(xp.asarray(G))
            h = W * np.einsum("ij,ji->i", E, np.linalg.solve(G, E.T))
            scores = (scores - h[:, None] * Y) / (1 - h[:, None])
        if kind == "classes":
            right, bound = scores.argmax(axis=1) == Y.argmax(axis=1), 0.0
        else:
            losses = ((scores - Y) ** 2).mean(axis=1)
            bound = float(np.median(losses)) + 1e-6
            right = losses <= bound
        omega = np.where(right, 0.6, 1.9)
        verdict = Verdict(xp.asarray(beta), bound, factor, (0.6, 1.9) if l == 0 else None)
        if l == 1:  # what the newest layer would say about all rows
            listed = summed(
                partial(losses_by_layer, replace(network, verdicts=network.verdicts), verdict),
                cut(rows, xp, 20),
            )
            got = np.concatenate([to_host(part) for part, _ in listed])
            np.testing.assert_array_equal(got <= bound, right)
        network = replace(network, verdicts=(*network.verdicts, verdict))
    assert 3 < right.sum() < M - 3
    sums = summed(SumLayer(network, wants_plain=True), cut(rows, xp, 11, 12))
    for some, equations, weight in ((right, sums.right, sums.n_right), (~right, sums.wrong, sums.n_wrong)):
        E = found[2] * (base * some)[:, None]
        np.testing.assert_allclose(to_host(equations.G), E.T @ found[2], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(to_host(equations.R), E.T @ Y, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(float(weight), counts[some].sum())
    gram = (found[2] * counts[:, None]).T @ found[2]
    np.testing.assert_allclose(to_host(sums.gram), gram, rtol=1e-11, atol=1e-11)


def test_a_joint_read_out_is_of_all_layers(xp, rng):
    rows, X, Y, _, _ = random_rows(rng, xp, "classes", weighted=False)
    layers = random_layers(rng, 2)
    network = Depth(as_they_are(), N, "relu", joint=True)
    for layer in layers:
        network = network.with_layer(moved(xp, layer))
    reference = np.array([0.5, 4.0, -1.0])
    E = np.hstack([X - reference, np.ones((M, 1)), *(D[:, :N] for D in features(layers, X))])
    sums = summed(SumLayer(network, xp.asarray(reference)), cut(rows, xp, 30))
    np.testing.assert_allclose(to_host(sums.right.G), E.T @ E, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(to_host(sums.right.R), E.T @ Y, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("joint", [False, True])
def test_a_reference_is_added_again(xp, rng, joint):
    X, H, Y = rng.normal(size=(M, D)) + 100, rng.normal(size=(M, N)), rng.normal(size=(M, 2))
    one, reference = np.ones((M, 1)), rng.normal(size=D) + 100

    def equations(X):
        E = np.hstack([X, one, H] if joint else [H, X, one])
        return NormalEquations(xp.asarray(E.T @ E), xp.asarray(E.T @ Y))

    network = Depth(as_they_are(), N, "relu", joint=joint)
    found = unshifted(equations(X - reference), xp.asarray(reference), network)
    np.testing.assert_allclose(to_host(found.G), to_host(equations(X).G), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(to_host(found.R), to_host(equations(X).R), rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("l", [0, 1, 2])  # all of X; some columns; without a scale
def test_scale_and_shift_are_folded_into_the_weights(xp, rng, l):
    layer = random_layers(rng, 3)[l]
    E = np.hstack([rng.normal(size=(M, N + D)), np.ones((M, 1))])
    one = folded(moved(xp, layer), N + D)
    inputs = one.inputs if isinstance(one.inputs, slice) else to_host(one.inputs)
    Z = E[:, layer.inputs] @ layer.W * (1 if layer.scale is None else layer.scale) + layer.shift
    np.testing.assert_allclose(E[:, inputs] @ to_host(one.W), Z, atol=1e-12)


@given(cuts=st.lists(st.integers(1, M - 1), unique=True, max_size=4), offset=st.sampled_from([0, 1e4, 1e8]))
def test_moments_of_inputs_do_not_cancel(cuts, offset):
    rng = np.random.default_rng(len(cuts))
    rows, X, _, counts, _ = random_rows(rng, np, "values", weighted=True)
    rows = replace(rows, X=X + offset)
    found = summed(partial(input_moments, as_they_are()), cut(rows, np, *sorted(cuts)))
    mean = np.average(X, axis=0, weights=counts)
    np.testing.assert_allclose(found.mean - offset, mean, atol=1e-14 * offset + 1e-13)
    scatter = counts @ (X - mean) ** 2
    np.testing.assert_allclose(found.scatter, scatter, rtol=1e-12 + 1e-15 * offset)


@pytest.mark.parametrize("encoder", [None, "standard"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("joint", [False, True])
def test_moments_of_neurons_are_those_of_their_inputs(encoder, weighted, joint, rng):
    """Scale and shift of every layer (Eq. 8-11) come from a Gram: compare them with sums over the rows."""
    X, y = noisy_values(rng, 300, 4)
    X = X * [1, 3, 0.1, 1] + [1e6, 0, 1e4, -1e5]
    counts = rng.integers(1, 4, 300).astype(float) if weighted else None
    model = EDRVFLRegressor(
        n_hidden=10, n_layers=3, encoder=encoder, random_state=1, readout="joint" if joint else "layers"
    )
    network = model.fit(RowBlocks.from_arrays(X, y, counts, rows=77)).network_
    inputs = network.inputs.apply(X)
    before = [np.hstack([np.zeros((300, 10)), inputs]), *(E[:, :-1] for E in features_by_layer(network, X))]
    for l, layer in enumerate(network.layers):
        A = before[l][:, layer.inputs]
        centre = A.mean(axis=0)
        Z = (A - centre) @ layer.W
        mean = np.average(Z, axis=0, weights=counts)
        variance = np.average((Z - mean) ** 2, axis=0, weights=counts)
        b = draw(network.seed, l, len(layer.W), 10)[1]
        np.testing.assert_allclose(layer.scale, 1 / np.sqrt(variance + 1e-5), rtol=1e-9)
        np.testing.assert_allclose(layer.shift, b - (mean + centre @ layer.W) * layer.scale, rtol=1e-9)


def test_float32_is_summed_in_float64():
    """In float32 a sum of so many ones stops at 2^24."""
    m = 2**24 // 3 + 1000
    X = np.broadcast_to(np.float32(1.0), (m, 1))
    targets = Values(np.broadcast_to(np.float32(1.0), (m, 1)))
    rows = Rows(X, None, targets, RowWeights())
    sums = reduce(operator.add, (SumLayer(Depth(as_they_are(1), N, "relu"))(rows, i) for i in range(4)))
    assert sums.right.G.dtype == np.float64
    np.testing.assert_array_equal(sums.right.G, np.full((2, 2), 4.0 * m))
    np.testing.assert_array_equal(sums.right.R, np.full((2, 1), 4.0 * m))


@pytest.mark.parametrize(
    "model",
    [
        EDRVFLClassifier(),
        EDRVFLClassifier(weight_from="loo", regularization="loo"),
        EDRVFLClassifier(renormalize=False),
        EDRVFLClassifier(encoder=None),
        EDRVFLClassifier(class_weight="balanced"),
        EDRVFLClassifier(readout="joint", correct_weight=1.0, prune_rate=0.0),
        EDRVFLRegressor(),
        EDRVFLRegressor(correct_weight=0.5),
        EDRVFLRegressor(correct_weight=0.5, weight_from="train", encoder=None),
    ],
    ids=str,
)
def test_as_many_passes_happen_as_are_announced(model, rng):
    X, y = noisy_rows(rng, 100, 3)
    passes, announced, happened = [], [], []

    def read():
        passes.append(len(passes))
        yield from [(X[:40], y[:40]), (X[40:], y[40:])]

    class Counts(Recorder):
        def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None):
            if context.task_name == "layer":
                announced.append(context.max_subtasks / 2)
                self.before = len(passes)

        def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
            if context.task_name == "layer":
                happened.append(len(passes) - self.before)

    model = clone(model).set_params(n_hidden=8, n_layers=3, random_state=0).set_callbacks(Counts())
    model.fit(RowBlocks(read, threads=1))
    assert happened == announced
    assert len(happened) == 3
