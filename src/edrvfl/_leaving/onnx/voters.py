"""Models as graphs: networks layer by layer, kernel models, portfolios and encoders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy

from ..._layers.layers import SELU_ALPHA, SELU_SCALE
from ..._models.encoding import Encoding
from ..._models.guest import GuestModel
from ..._models.kernel import KernelModel, KernelVoter
from ..._models.network import Network
from ..._models.portfolio import Portfolio
from ..._ridge.kernels import ROOT3
from .answers import calibrated, combined, pooled
from .encoder import Encoder
from .graph import Graph, Name


def answer(graph: Graph, record: Any, encoder: Encoder) -> Name:
    """Return what a model answers (rows, k), in float64: probabilities, values or encoded columns."""
    return ANSWERS[type(record)](graph, record, encoder)


def _portfolio(graph: Graph, portfolio: Portfolio, encoder: Encoder) -> Name:
    answers = [answer(graph, voter, encoder) for voter in portfolio.voters]
    P = pooled(graph, answers, portfolio.weights, portfolio.classes is not None)
    return calibrated(graph, P, portfolio.calibration, portfolio.n_outputs)


def _encoding(_: Graph, encoding: Encoding, encoder: Encoder) -> Name:
    return encoder(encoding.inputs)


def _network(graph: Graph, network: Network, encoder: Encoder) -> Name:
    k = network.n_outputs
    scores = _scores(graph, network, encoder(network.inputs))
    votes = (1.0,) if network.joint else network.votes
    P = combined(graph, scores, network.rule, votes, k)
    return calibrated(graph, P, network.calibrations[-1], k)


def _scores(graph: Graph, network: Network, encoded: Name) -> Name:
    """Return the scores of the layers side by side (rows, layers k); of a joint network one (rows, k).

    Their sum with the constant is in float64: it holds the mean of values, which may be far larger than
    what the features say.
    """
    dtype = _hidden_precision(graph, network)
    betas, of_X, constants = _joint_parts(network) if network.joint else _layer_parts(network)
    orders, H, parts = _orders(network), None, []
    for l in range(len(network.layers)):
        H = _layer(graph, network, l, orders, encoded, H)
        parts.append(graph.add("Gemm", H, graph.constant(betas[l][orders[l]], dtype)))
    together = graph.add("Sum", *parts) if network.joint else graph.concat(parts)
    direct = _direct(graph, network, encoded, of_X)
    if dtype != numpy.float64:
        together, direct = graph.cast(together, numpy.float64), graph.cast(direct, numpy.float64)
    scores = graph.add("Add", together, direct)
    return graph.add("Add", scores, constants)


def _hidden_precision(graph: Graph, network: Network) -> Any:
    """Return the graph's precision; float64 without re-normalisation, and without an encoder.

    Without the one features grow from layer to layer, and read-outs cancel them. Without the other columns
    may be far from 0, which shifts undo, or so small that layers have to magnify them.
    """
    encoded = network.inputs.numbers is not None or network.inputs.categories is not None
    exact = network.layers[0].scale is None or not encoded
    return numpy.dtype(numpy.float64) if exact else graph.dtype


def _direct(graph: Graph, network: Network, encoded: Name, W: numpy.ndarray, *shift: numpy.ndarray) -> Name:
    """Return X W + shift in the precision of the hidden layers."""
    dtype = _hidden_precision(graph, network)
    X = encoded if dtype == numpy.float64 else graph.cast(encoded, dtype)
    # Gemm, not MatMul: onnxruntime would draw a scalar factor of X into that, in float32
    return graph.add("Gemm", X, *(graph.constant(array, dtype) for array in (W, *shift)))


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
    graph: Graph, network: Network, l: int, orders: list[numpy.ndarray], encoded: Name, H: Name | None
) -> Name:
    """Return g(scale (A W) + shift), with the scale folded into W in float64."""
    dtype = _hidden_precision(graph, network)
    n, d, layer = network.n_hidden, network.inputs.width, network.layers[l]
    W, shift, read = _double(layer.W), _double(layer.shift), _columns_read(network, l)
    if layer.scale is not None:
        W = W * _double(layer.scale)
    W, shift = W[:, orders[l]], shift[orders[l]]
    hidden, direct = read < n, (read >= n) & (read < n + d)
    of_X = numpy.zeros((d, n))
    of_X[read[direct] - n] = W[direct]
    shift = shift + W[read == n + d].sum(axis=0)
    Z = _direct(graph, network, encoded, of_X, shift)
    if H is not None and hidden.any():
        A = graph.columns(H, numpy.arange(int(hidden.sum())), n)
        Z = graph.add("Gemm", A, graph.constant(W[hidden], dtype), Z)
    return ACTIVATED[network.activation](graph, Z, dtype)


def _operator(name: str) -> Callable[[Graph, Name, Any], Name]:
    return lambda graph, Z, _: graph.add(name, Z)


def _selu(graph: Graph, Z: Name, dtype: Any) -> Name:
    """Return selu(Z) in any precision. The operator has its numbers in float32."""
    zero, one = (graph.constant(value, dtype) for value in (0.0, 1.0))
    low, high = (graph.constant(value, dtype) for value in (SELU_SCALE * SELU_ALPHA, SELU_SCALE))
    negative = graph.add("Sub", graph.add("Exp", graph.add("Min", Z, zero)), one)
    return graph.add("Add", graph.add("Mul", graph.add("Relu", Z), high), graph.add("Mul", negative, low))


# What writes g(Z), by the name of the activation.
ACTIVATED: Mapping[str, Callable[[Graph, Name, Any], Name]] = {
    "relu": _operator("Relu"),
    "selu": _selu,
    "sigmoid": _operator("Sigmoid"),
    "tanh": _operator("Tanh"),
    "sin": _operator("Sin"),
    "radbas": lambda graph, Z, _: graph.add("Exp", graph.add("Neg", graph.add("Mul", Z, Z))),
    "swish": lambda graph, Z, _: graph.add("Mul", Z, graph.add("Sigmoid", Z)),
}


def _kernel(graph: Graph, model: KernelModel, encoder: Encoder) -> Name:
    scores = _kernel_scores(graph, model, encoder(model.inputs))
    if model.classes is None:
        return scores
    return calibrated(graph, graph.add("Softmax", scores, axis=-1), model.calibration, model.n_outputs)


def _kernel_scores(graph: Graph, model: KernelModel, encoded: Name) -> Name:
    """Return prior + scale * sum_s alpha_s K(x, z_s).

    All of it is in float64: squared distances are small differences of large numbers, and so is the sum where
    the penalty is small. Landmarks and coefficients are stored in the precision that they have.
    """
    voter = model.voter
    K = KERNELS[voter.kernel](graph, voter, encoded)
    found = graph.add("Gemm", K, _stored(graph, voter.alpha))
    return graph.add("Add", graph.add("Mul", found, voter.scale), voter.prior)


def _laplace(graph: Graph, voter: KernelVoter, encoded: Name) -> Name:
    distances = _distances(graph, voter, encoded)
    return graph.add("Exp", graph.add("Mul", distances, -1 / voter.width))


def _matern(graph: Graph, voter: KernelVoter, encoded: Name) -> Name:
    distances = _distances(graph, voter, encoded)
    q = graph.add("Mul", distances, ROOT3 / voter.width)
    return graph.add("Mul", graph.add("Add", q, 1.0), graph.add("Exp", graph.add("Neg", q)))


def _product(graph: Graph, voter: KernelVoter, encoded: Name) -> Name:
    def scaled(apart: Name) -> Name:
        return graph.add("Mul", apart, -1 / voter.width)

    return graph.add("Exp", _over_columns(graph, voter, encoded, scaled))


def _additive(graph: Graph, voter: KernelVoter, encoded: Name) -> Name:
    d = max(1, voter.inputs.n_compared)

    def shrunk(apart: Name) -> Name:
        near = graph.add("Exp", graph.add("Mul", apart, -1 / voter.width))
        return graph.add("Mul", near, 1 / d)

    mean = _over_columns(graph, voter, encoded, shrunk)
    return graph.add("Mul", mean, mean)


def _over_columns(graph: Graph, voter: KernelVoter, encoded: Name, of_column: Callable[[Name], Name]) -> Name:
    """Return sum_j g(|x_j - z_j|), column by column: all at once would be rows x landmarks x columns.

    Different codes count as two columns that differ by their contrast.
    """
    landmarks, total = voter.landmarks, graph.constant(0.0)
    d = landmarks.shape[1]
    for different, contrast in _different(graph, voter, encoded):
        apart = of_column(graph.add("Mul", different, contrast))
        total = graph.add("Add", total, graph.add("Mul", apart, 2.0))
    for j in range(d - _n_codes(voter)):
        column = graph.columns(encoded, numpy.array([j]), d)
        apart = graph.add("Sub", column, _stored(graph, landmarks[:, j][None, :]))
        total = graph.add("Add", total, of_column(graph.add("Abs", apart)))
    return total


def _n_codes(voter: KernelVoter) -> int:
    return 0 if voter.inputs.codes is None else len(voter.inputs.codes)


def _different(graph: Graph, voter: KernelVoter, encoded: Name) -> Iterator[tuple[Name, float]]:
    """Yield 1 where codes differ (rows, landmarks), else 0, and their contrast, for each column of codes."""
    d, contrasts = voter.landmarks.shape[1], voter.inputs.contrasts(voter.landmarks)
    for i in range(_n_codes(voter)):
        j = d - _n_codes(voter) + i
        column = graph.columns(encoded, numpy.array([j]), d)
        equal = graph.add("Equal", column, _stored(graph, voter.landmarks[:, j][None, :]))
        yield graph.cast(graph.add("Not", equal), numpy.float64), float(contrasts[i])


def _distances(graph: Graph, voter: KernelVoter, encoded: Name) -> Name:
    """Return |x - z| (rows, landmarks); different codes add twice the square of their contrast."""
    d = voter.landmarks.shape[1]
    n = d - _n_codes(voter)
    squares = graph.constant(0.0)
    if n:
        others = encoded if n == d else graph.columns(encoded, numpy.arange(n), d)
        squares = _squared_distances(graph, voter.landmarks[:, :n], others)
    for different, contrast in _different(graph, voter, encoded):
        more = graph.add("Mul", different, 2 * contrast**2)
        squares = graph.add("Add", squares, more)
    return graph.add("Sqrt", squares)


def _squared_distances(graph: Graph, landmarks: numpy.ndarray, encoded: Name) -> Name:
    """Return |x - z|^2 (rows, landmarks), as `Euclid` does."""
    limits = numpy.finfo(landmarks.dtype)
    bound = float(limits.max) ** 0.25
    ends = graph.constant(-bound), graph.constant(bound)
    center = numpy.clip(_double(landmarks), -bound, bound).mean(axis=0)  # large offsets would cancel

    def centred(tensor: Name) -> Name:
        return graph.add("Clip", graph.add("Sub", tensor, center), *ends)

    X, Z = centred(encoded), centred(_stored(graph, landmarks))  # a runtime computes Z once
    own = graph.add("ReduceSum", graph.add("Mul", X, X), graph.constant([1], numpy.int64), keepdims=1)
    squares_of_Z = numpy.square(numpy.clip(_double(landmarks) - center, -bound, bound)).sum(axis=1)
    squares = graph.add("Gemm", X, Z, squares_of_Z, transB=1, alpha=-2.0)
    squares = graph.add("Add", squares, own)
    # what could be rounding is 0, as in the fit
    clear = graph.add("Greater", squares, graph.add("Mul", own, 16 * float(limits.eps)))
    return graph.add("Where", clear, squares, 0.0)


def _guest(_: Graph, model: GuestModel, __: Encoder) -> NoReturn:
    """Refuse estimators of scikit-learn: skl2onnx sends gaps in trees the wrong way, without an error."""
    raise NotImplementedError(
        f"to_onnx writes networks and kernel voters, but a member is a {type(model.estimator).__name__}. Fit "
        "the portfolio without it."
    )


def _stored(graph: Graph, array: numpy.ndarray) -> Name:
    """Return an array in float64 that is stored in its own precision."""
    stored = graph.constant(array, array.dtype)
    return stored if array.dtype == numpy.float64 else graph.cast(stored, numpy.float64)


def _double(array: numpy.ndarray) -> numpy.ndarray:
    return numpy.asarray(array, dtype=numpy.float64)


# What writes K(x, z), by the name of the kernel.
KERNELS: Mapping[str, Callable[[Graph, KernelVoter, Name], Name]] = {
    "laplace": _laplace,
    "matern": _matern,
    "product": _product,
    "additive": _additive,
}
# What writes the graph of a model, by its kind.
ANSWERS: Mapping[type[Any], Callable[[Graph, Any, Encoder], Name]] = {
    Encoding: _encoding,
    GuestModel: _guest,
    KernelModel: _kernel,
    Network: _network,
    Portfolio: _portfolio,
}
