"""What a fitted network answers: its layers' scores, combined and calibrated."""

from __future__ import annotations

from collections.abc import Iterator

from .._answers.combine import combine, combine_staged
from .._arrays import Array, array_namespace, device, row_blocks
from .._threads import suitable_threads
from .layers import joint_scores, layer_scores
from .records import Network


def answers(network: Network, X: Array) -> Array:
    """Return the probabilities or values (m, k) of rows that were checked, block by block."""
    shape = (X.shape[0], network.readouts[0].shape[-1])
    answer = array_namespace(X).empty(shape, dtype=X.dtype, device=device(X))
    calibration = network.calibrations[-1]
    with suitable_threads(X, network.row_numbers, network.n_hidden):
        for rows in row_blocks(X, X.shape[0], network.row_numbers):
            P = _of_all_layers(network, X[rows, :])
            answer[rows, :] = P if calibration is None else calibration(P)
    return answer


def _of_all_layers(network: Network, X: Array) -> Array:
    """Return what all layers together answer, not yet calibrated."""
    if network.joint:
        return combine(joint_scores(network, X, network.readouts[-1:]), network.rule, (1.0,))
    return combine(layer_scores(network, X), network.rule, network.votes)


def _of_each_depth(network: Network, X: Array) -> Iterator[Array]:
    """Yield what the first one, two, ... layers together answer, not yet calibrated."""
    if network.joint:
        for scores in joint_scores(network, X, network.readouts):
            yield combine(iter([scores]), network.rule, (1.0,))
    else:
        yield from combine_staged(layer_scores(network, X), network.rule, network.votes)


def staged_answers(network: Network, X: Array) -> Iterator[Array]:
    """Yield the probabilities or values (m, k) of the first one, two, ... layers together.

    Either the features of all rows are held from layer to layer, or the answers of all layers are
    computed block by block: whichever holds fewer numbers.
    """
    (c, k), depth = network.readouts[0].shape, len(network.layers)
    threads = (X, network.row_numbers, network.n_hidden)
    if c < depth * k and not network.joint:  # a joint network holds the answers of all depths anyway
        stages = _staged(network, X)
        for _ in range(depth):
            with suitable_threads(*threads):  # not across a yield: the limit would reach the caller
                P = next(stages)
            yield P
        return
    answer = array_namespace(X).empty((depth, X.shape[0], k), dtype=X.dtype, device=device(X))
    with suitable_threads(*threads):
        for rows in row_blocks(X, X.shape[0], network.row_numbers):
            for l, P in enumerate(_staged(network, X[rows, :])):
                answer[l, rows, :] = P
    for l in range(depth):
        yield answer[l, ...]


def _staged(network: Network, X: Array) -> Iterator[Array]:
    for P, calibration in zip(_of_each_depth(network, X), network.calibrations, strict=True):
        if calibration is not None:
            for rows in row_blocks(P, P.shape[0], 6 * P.shape[1]):
                P[rows, :] = calibration(P[rows, :])
        yield P
