"""The fit of EDRVFLClassifier and EDRVFLRegressor: grow a network, and tell of each layer how good it is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy
from scipy.linalg import LinAlgWarning
from sklearn.callback import CallbackSupportMixin

from .._fitting.data import Data
from .._fitting.inputs import learn_network_inputs
from .._fitting.network import Growing, fit_network, prove_layers
from .._fitting.settings import check_readout, network_settings
from .._layers.grow import READOUTS
from .._layers.layers import ACTIVATIONS, n_pruned
from .._loo.follow import LAYER_VOTES, Stage
from .._models.network import Network
from .._seam.arrays import Array, array_namespace, product
from .._seam.sklearn import Count, Interval, Pair, StrOptions
from .afterwards import Remembers
from .base import COMMON
from .encoder import ENCODERS, TabularEncoder
from .telling import History, Tasks

# What the parameters that both estimators have may be.
CONSTRAINTS: Mapping[str, list[Any]] = {
    **COMMON,
    "n_layers": [Count(1)],
    "n_hidden": [Count(1), StrOptions({"auto"})],
    "regularization": [Interval(Real, 0, None, closed="left"), StrOptions({"loo"})],
    "activation": [StrOptions(set(ACTIVATIONS))],
    "renormalize": ["boolean"],
    "norm_scale": [interval(Real, 0, None, closed="neither") for interval in (Interval, Pair)],
    "norm_shift": [interval(Real, None, None, closed="neither") for interval in (Interval, Pair)],
    "inputs_per_neuron": [Count(1), None],
    "hidden_per_neuron": [Count(1), None],
    "pair_share": [Interval(Real, 0, 1, closed="both")],
    "input_scaling": [StrOptions({"gradient", "loo"}), None],
    "correct_weight": [Interval(Real, 0, 1, closed="right"), StrOptions({"loo"})],
    "weight_from": [StrOptions({"train", "loo"})],
    "prune_rate": [Interval(Real, 0, 1, closed="left"), StrOptions({"loo"})],
    "readout": [StrOptions(set(READOUTS))],
    "layer_votes": [StrOptions(set(LAYER_VOTES))],
    "encoder": [StrOptions(set(ENCODERS)), TabularEncoder, None],
}


class Layered(CallbackSupportMixin, Remembers):
    """An estimator whose fit grows a network layer by layer."""

    network_: Network
    _record = "network_"
    _least_kept = "sums"

    def _validate_params(self) -> None:
        super()._validate_params()
        check_readout(self)

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        tasks = Tasks(self, X, y, sample_weight)
        n_layers = self.n_layers
        heard = tasks.begin_reading(None if n_layers == "auto" else n_layers)
        with self._read(X, y, sample_weight, groups, heard) as reading:
            data = reading.data
            settings = network_settings(self).for_rows(data.worth)
            learnt = learn_network_inputs(data, settings.inputs, reading.seed)
            tasks.begin(settings.layers.n_layers)
            begin = prove_layers(data, settings, learnt, reading.seed)
            grown, stage = _grow(self, data, begin, tasks)
            P = None if stage is None else stage.P
            self._keep_evidence(reading, [grown.remembered(self.n_layers_)], P)
        _warn_of_fallbacks(self)
        tasks.end(reconstruction_attributes=dict)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Yield `predict` of the networks of 1, 2, ... `n_layers_` layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Yields
        ------
        y : array of shape (n_samples,), or (n_samples, n_outputs) for several outputs
            Labels as they came in `fit`, or values in its units.
        """
        for P in self._staged_answers(X, "staged_predict"):
            yield self._said(P)

    def _staged_answers(self, X: Any, method: str) -> Iterator[Array]:
        """Yield the answers of the networks of one, two, ... layers."""
        yield from self.network_.staged(self._check_new_rows(X, method))


def _grow(estimator: Any, data: Data, begin: Growing, tasks: Tasks) -> tuple[Growing, Stage | None]:
    """Grow the layers; after each of them print a line and ask the callbacks.

    Return them, and what leave-one-out says about those that answer.
    """
    settings, n_layers = begin.settings, begin.settings.depth
    counts = product(data.rows.weights.counts, data.stand_for)  # how much rows count in a mean over them
    history, now = History(estimator._figures), begin
    layer = tasks.begin_layer(data.n_blocks(settings.layers, begin.network.inputs, 0))
    # closed, so that nothing is left open when a callback raises
    with closing(fit_network(data, begin)) as layers:
        for now in layers:
            stage = now.stages[-1] if now.stages else None
            assert now.grown is not None
            history.add(now.grown, stage, counts)
            depth = len(now.network.layers)
            if estimator.verbose:
                number = f"{depth:{len(str(n_layers))}d}/{n_layers}"
                print(f"[{type(estimator).__name__}] layer {number}: {history.line()}")
            # a function, so that without callbacks nobody waits for the figures
            so_far = partial(_so_far, now.network, history)
            if layer.call_on_fit_task_end(**tasks.given, reconstruction_attributes=so_far):
                break
            if depth < n_layers:
                layer = tasks.begin_layer(data.n_blocks(settings.layers, begin.network.inputs, depth))
        if data.rows.classes is not None:
            _warn_if_scores_vanish(now, estimator.regularization)
    tasks.end_blocks()
    _keep(estimator, now, history)
    now = replace(now, grown=None)  # its features are large
    if not now.stages:
        return now, None
    return now, now.stages[now.best - 1 if settings.votes.layer_votes == "prefix" else -1]


def _so_far(network: Network, history: History) -> dict[str, Any]:
    """Return the attributes of an estimator that has grown some of its layers."""
    return {"network_": network, **history.figures()}


def _keep(estimator: Any, now: Growing, history: History) -> None:
    """Store what was fitted."""
    network, settings = now.network, now.settings.layers
    if estimator.layer_votes == "prefix":
        network = network.prefix(1 + int(numpy.argmin(history.loo_losses)))
    estimator.network_ = network
    estimator.n_layers_, estimator.n_hidden_ = len(network.layers), network.n_hidden
    for name, figures in history.figures().items():
        setattr(estimator, name, figures)
    given = estimator.regularization
    estimator.regularization_ = tuple(given if lam is None else lam for lam in history.lams)
    estimator.fallback_layers_ = tuple(l for l, fell in enumerate(history.fell_back, start=1) if bool(fell))
    # p is the same for every layer, so the number of neurons that stay is too
    kept = network.n_hidden - int(n_pruned(network.n_hidden, settings.p))
    estimator.neurons_kept_ = (kept,) * len(history.lams)
    scaling = None if network.inputs.factors is None else "gradient"
    found = {"input_scaling": scaling, "correct_weight": settings.omega_r, "prune_rate": settings.p}
    estimator.proven_ = {name: value for name, value in found.items() if getattr(estimator, name) == "loo"}


def _warn_of_fallbacks(estimator: Any) -> None:
    if layers := estimator.fallback_layers_:
        warnings.warn(
            f"The Gram matrix is numerically singular in {'layers' if len(layers) > 1 else 'layer'} "
            f"{', '.join(map(str, layers))} with regularization={estimator.regularization}; the least-norm "
            "solution was taken there. Increase regularization, or set renormalize=True if it is off.",
            LinAlgWarning,
            stacklevel=5,  # the line that calls fit
        )


def _warn_if_scores_vanish(now: Growing, regularization: Any) -> None:
    """Warn if all scores are so small that every class gets the same probability."""
    assert now.grown is not None
    D = now.grown.D
    xp = array_namespace(D)
    some = D[: min(1000, D.shape[0]), :]  # the scores of all rows vanish, or those of none
    scores = some @ now.network.readouts[-1]
    # softmax cannot tell scores apart that differ by a few eps
    if float(xp.max(scores) - xp.min(scores)) < 4 * float(xp.finfo(D.dtype).eps):
        warnings.warn(
            "The scores are so small that all classes get nearly the same probability, and rounding "
            f"decides the class. Lower regularization={regularization}, or multiply the weights.",
            UserWarning,
            stacklevel=6,
        )
