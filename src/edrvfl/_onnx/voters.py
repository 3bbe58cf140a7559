"""Voters as graphs: networks layer by layer, and the kernel voter."""

from __future__ import annotations

import numpy

from .._kernel.voter import KernelModel
from .._network.activations import SELU_ALPHA, SELU_SCALE
from .._network.records import Network
from .answers import calibrated, combined
from .graph import Graph, Name


def network_answer(graph: Graph, network: Network, encoded: Name) -> Name:
    """Return the probabilities or values (rows, k) of a network, in float64."""
    k = int(network.readouts[0].shape[-1])
    scores = _scores(graph, network, encoded)
    votes = (1.0,) if network.joint else network.votes
    P = combined(graph, scores, network.rule, votes, k)
    return calibrated(graph, P, network.calibrations[-1], k)


def _scores(graph: Graph, network: Network, encoded: Name) -> Name:
    """Return the layers' scores side by side (rows, layers k); of a joint network those of all layers (rows, k).

    Hidden features are in the graph's precision. Their scores are summed in float64 with the constant, which
    holds the mean of values: it may be far larger than what the features say.
    """
    X = graph.from_double(encoded)
    if network.joint:
        betas, of_X, constants = _joint_parts(network)
    else:
        betas, of_X, constants = _layer_parts(network)
    orders, H, parts = _orders(network), None, []
    for l in range(len(network.layers)):
        H = _layer(graph, network, l, orders, X, H)
        parts.append(graph.add("MatMul", H, graph.constant(betas[l][orders[l]], graph.dtype)))
    direct = graph.add("MatMul", X, graph.constant(of_X, graph.dtype))
    scores = graph.add("Sum", *parts, direct) if network.joint else graph.add("Add", graph.concat(parts), direct)
    return graph.add("Add", graph.to_double(scores), graph.constant(constants))


def _layer_parts(network: Network) -> tuple[list[numpy.ndarray], numpy.ndarray, numpy.ndarray]:
    """Return each layer's read-out of its features, and all read-outs of X and of 1 side by side."""
    n, betas = network.n_hidden, [_double(beta) for beta in network.readouts]
    of_X = numpy.concatenate([beta[n:-1] for beta in betas], axis=1)
    return [beta[:n] for beta in betas], of_X, numpy.concatenate([beta[-1] for beta in betas])


def _joint_parts(network: Network) -> tuple[list[numpy.ndarray], numpy.ndarray, numpy.ndarray]:
    """Return the parts of the one read-out over [X, 1, H1, ..., HL]."""
    n, d, beta = network.n_hidden, network.inputs.width, _double(network.readouts[-1])
    of_layers = [beta[d + 1 + l * n : d + 1 + (l + 1) * n] for l in range(len(network.layers))]
    return of_layers, beta[:d], beta[d]


def _orders(network: Network) -> list[numpy.ndarray]:
    """Return an order of each layer's neurons in which those that feed the next layer stand first.

    So what was pruned is cut off by a slice, and no zeros are multiplied.
    """
    n, orders = network.n_hidden, []
    for l in range(len(network.layers)):
        feeding = numpy.arange(n)
        if l + 1 < len(network.layers):
            feeding = _columns_read(network, l + 1)
            feeding = feeding[feeding < n]
        rest = numpy.setdiff1d(numpy.arange(n), feeding)
        orders.append(numpy.concatenate([feeding, rest]))
    return orders


def _columns_read(network: Network, l: int) -> numpy.ndarray:
    """Return which columns of [H, X, 1] a layer reads."""
    columns = numpy.arange(network.n_hidden + network.inputs.width + 1)
    found: numpy.ndarray = columns[network.layers[l].inputs]
    return found


def _layer(
    graph: Graph, network: Network, l: int, orders: list[numpy.ndarray], X: Name, H: Name | None
) -> Name:
    """Return g(scale (A W) + shift), with the scale folded into W in float64."""
    n, d, layer = network.n_hidden, network.inputs.width, network.layers[l]
    W, shift, read = _double(layer.W), _double(layer.shift), _columns_read(network, l)
    if layer.scale is not None:
        W = W * _double(layer.scale)
    W, shift = W[:, orders[l]], shift[orders[l]]
    hidden, direct = read < n, (read >= n) & (read < n + d)
    of_X = numpy.zeros((d, n))
    of_X[read[direct] - n] = W[direct]
    shift = shift + W[read == n + d].sum(axis=0)
    Z = graph.add("Gemm", X, graph.constant(of_X, graph.dtype), graph.constant(shift, graph.dtype))
    if H is not None and hidden.any():
        A = graph.columns(H, numpy.arange(int(hidden.sum())), n)
        Z = graph.add("Gemm", A, graph.constant(W[hidden], graph.dtype), Z)
    return activated(graph, Z, network.activation)


def activated(graph: Graph, Z: Name, activation: str) -> Name:
    """Return g(Z) in the graph's precision."""

    def number(value: float) -> Name:
        return graph.constant(value, graph.dtype)

    if activation == "selu":  # the operator has its numbers in float32
        negative = graph.add("Sub", graph.add("Exp", graph.add("Min", Z, number(0.0))), number(1.0))
        negative = graph.add("Mul", negative, number(SELU_SCALE * SELU_ALPHA))
        return graph.add("Add", graph.add("Mul", graph.add("Relu", Z), number(SELU_SCALE)), negative)
    if activation == "radbas":
        return graph.add("Exp", graph.add("Neg", graph.add("Mul", Z, Z)))
    if activation == "swish":
        return graph.add("Mul", Z, graph.add("Sigmoid", Z))
    operators = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "sin": "Sin"}
    if activation not in operators:
        raise NotImplementedError(f"to_onnx does not know activation={activation!r}.")
    return graph.add(operators[activation], Z)


def kernel_answer(graph: Graph, model: KernelModel, encoded: Name) -> Name:
    """Return the probabilities or values (rows, k) of a kernel voter, in float64."""
    scores, k = _kernel_scores(graph, model, encoded), int(model.voter.alpha.shape[1])
    if model.classes is None:
        return scores
    return calibrated(graph, graph.add("Softmax", scores, axis=-1), model.calibration, k)


def _kernel_scores(graph: Graph, model: KernelModel, encoded: Name) -> Name:
    """Return prior + scale * sum_s alpha_s exp(-|x - z_s| / width).

    Squared distances are small differences of large numbers, so they are computed in float64; the landmarks
    are stored in the graph's precision.
    """
    voter = model.voter
    eps = float(numpy.finfo(voter.landmarks.dtype).eps)
    bound = float(numpy.finfo(graph.dtype).max) ** 0.25
    Z = _double(voter.landmarks)
    center = numpy.clip(Z, -bound, bound).mean(axis=0)
    Z = numpy.clip(Z - center, -bound, bound).astype(graph.dtype)
    X = graph.add("Sub", encoded, graph.constant(center))
    X = graph.add("Clip", X, graph.constant(-bound), graph.constant(bound))
    own = graph.add("ReduceSum", graph.add("Mul", X, X), graph.constant([1], numpy.int64), keepdims=1)
    of_landmarks = graph.constant(numpy.square(Z.astype(numpy.float64)).sum(axis=1))
    stored = graph.to_double(graph.constant(Z, graph.dtype))
    squares = graph.add("Gemm", X, stored, of_landmarks, transB=1, alpha=-2.0)
    squares = graph.add("Add", squares, own)
    # what could be rounding is 0, as in the fit
    clear = graph.add("Greater", squares, graph.add("Mul", own, graph.constant(16 * eps)))
    squares = graph.from_double(graph.add("Where", clear, squares, graph.constant(0.0)))
    minus = graph.constant(-1 / voter.width, graph.dtype)
    K = graph.add("Exp", graph.add("Mul", graph.add("Sqrt", squares), minus))
    found = graph.to_double(graph.add("MatMul", K, graph.constant(voter.alpha, graph.dtype)))
    scaled = graph.add("Mul", found, graph.constant(voter.scale))
    return graph.add("Add", scaled, graph.constant(voter.prior))


def _double(array: numpy.ndarray) -> numpy.ndarray:
    return numpy.asarray(array, dtype=numpy.float64)
