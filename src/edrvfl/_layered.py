"""What EDRVFLClassifier and EDRVFLRegressor share: a fit that grows a network layer by layer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy
from scipy.linalg import LinAlgWarning
from sklearn.callback import CallbackContext, CallbackSupportMixin

from ._answers.follow import LAYER_VOTES, Follower, Stage, needs_loo
from ._arrays import Array, array_namespace, ignore_overflow
from ._coverage import COMMON, CoveringShell, Evidence
from ._encoder import ENCODERS, TabularEncoder, as_encoder, learn_network_inputs
from ._history import Figures, History
from ._inputs.rows import Rows
from ._inputs.table import Columns
from ._network.activations import ACTIVATIONS
from ._network.answer import answers, staged_answers
from ._network.draws import DRAW_SCHEME, Draws, Recipe
from ._network.grow import Problem, grow, start
from ._network.layers import fill_inputs, new_features
from ._network.pruning import n_pruned
from ._network.readers import READOUTS, check_readout
from ._network.records import Network, Settings
from ._sklearn import Count, Interval, Pair, StrOptions
from ._threads import suitable_threads

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
    "input_scaling": [StrOptions({"gradient"}), None],
    "correct_weight": [Interval(Real, 0, 1, closed="right")],
    "weight_from": [StrOptions({"train", "loo"})],
    "prune_rate": [Interval(Real, 0, 1, closed="left")],
    "readout": [StrOptions(set(READOUTS))],
    "layer_votes": [StrOptions(set(LAYER_VOTES))],
    "encoder": [StrOptions(set(ENCODERS)), TabularEncoder, None],
}


class LayeredEstimator(CallbackSupportMixin, CoveringShell):
    """An estimator whose fit grows a network. Subclasses name the parameters and the figures."""

    _figures: Figures

    def _validate_params(self) -> None:
        super()._validate_params()
        check_readout(self)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        table, y, columns = self._check_training_rows(X, y, as_encoder(self.encoder))
        seed = self._draw_seed()
        rows, held = self._divide_rows(table, y, sample_weight, seed)
        settings = Settings.of(self).for_rows(rows.worth)
        n, depth = settings.n_hidden, settings.n_layers
        task = self._init_callback_context(max_subtasks=depth).call_on_fit_task_begin(**given)
        with ignore_overflow():
            inputs = learn_network_inputs(rows, self, columns, seed)
            of_answers = (self.ensemble, rows.classes, seed, DRAW_SCHEME)
            network = Network(columns, inputs, self.activation, n, *of_answers, joint=self.readout == "joint")
            with suitable_threads(rows.X, n + inputs.width + 1, n):
                problem, stage = self._grow(network, settings, rows, (task, given))
        self._warn_of_fallbacks()
        judged, P = (None, None) if stage is None else (problem.judged, stage.P)
        self._learn_coverage(Evidence(rows, columns, judged, P, held, seed))
        task.call_on_fit_task_end(**given, reconstruction_attributes=dict)

    def _grow(
        self, network: Network, settings: Settings, rows: Rows, told: tuple[CallbackContext, dict[str, Any]]
    ) -> tuple[Problem, Stage | None]:
        """Grow the network and keep its layers; after each layer print a line and ask the callbacks.

        Return what leave-one-out says about the layers that answer, with the problem, which tells the rows.
        """
        D = new_features(rows.X.shape[0], rows.X, network.n_hidden, network.inputs)
        fill_inputs(D, rows.X, network.inputs)
        draws = Draws(Recipe.of(settings, network.seed, network.inputs, rows), rows.X)
        problem = Problem(rows.targets, rows.weights, draws, judges=needs_loo(self))
        follower = None
        if problem.judges:
            follower = Follower(rows.targets, rows.weights, problem.judged, self)
        history, kept = History(self._figures), None
        task, given = told
        layer = _begin_layer(task, given)
        for grown in grow(start(D, settings), problem):
            # Keep only the hidden weights and the read-out: the next layer overwrites the features in D.
            beta = rows.targets.in_units(grown.readout.beta[0, ...], network.bias)
            stage = None if follower is None else follower.add(grown.loo[0, ...])
            vote, calibration = (1.0, None) if stage is None else (stage.vote, stage.calibration)
            network = network.with_layer(grown.hidden, beta, vote, calibration)
            history.add(grown, stage, rows.weights.counts)
            if kept is None or stage is None or self.layer_votes != "prefix" or stage.loss < kept.loss:
                kept = stage
            self._print_layer(history, settings.n_layers)
            so_far = {"network_": network, **history.figures()}
            if layer.call_on_fit_task_end(**given, reconstruction_attributes=lambda so_far=so_far: so_far):
                break
            if len(network.layers) < settings.n_layers:
                layer = _begin_layer(task, given)
        if rows.classes is not None:
            self._warn_if_scores_vanish(grown.D, network)
        self._keep(network, history)
        return problem, kept

    def _keep(self, network: Network, history: History) -> None:
        """Store what was fitted."""
        if self.layer_votes == "prefix":
            network = network.prefix(1 + int(numpy.argmin(history.loo_losses)))
        self.network_, self.n_layers_, self.n_hidden_ = network, len(network.layers), network.n_hidden
        for name, figures in history.figures().items():
            setattr(self, name, figures)
        self.regularization_ = tuple(self.regularization if lam is None else lam for lam in history.lams)
        self.fallback_layers_ = tuple(l for l, fell in enumerate(history.fell_back, start=1) if fell)
        # p is the same for every layer, so the number of neurons that stay is too
        kept = network.n_hidden - int(n_pruned(network.n_hidden, self.prune_rate))
        self.neurons_kept_ = (kept,) * len(history.lams)

    def _print_layer(self, history: History, n_layers: int) -> None:
        if self.verbose:
            layer = len(history.lams)
            number = f"{layer:{len(str(n_layers))}d}/{n_layers}"
            print(f"[{type(self).__name__}] layer {number}: {history.line()}")

    def _warn_of_fallbacks(self) -> None:
        if self.fallback_layers_:
            warnings.warn(
                f"The Gram matrix is numerically singular in layer(s) "
                f"{', '.join(map(str, self.fallback_layers_))} with regularization="
                f"{self.regularization}; the least-norm solution was taken there. Increase "
                "regularization, or set renormalize=True if it is off.",
                LinAlgWarning,
                stacklevel=5,
            )

    def _warn_if_scores_vanish(self, D: Array, network: Network) -> None:
        """Warn if all scores are so small that every class gets the same probability."""
        xp = array_namespace(D)
        some = D[: min(1000, D.shape[0]), :]  # the scores of all rows vanish, or those of none
        scores = some @ network.readouts[-1]
        # softmax cannot tell scores apart that differ by a few eps
        if float(xp.max(scores) - xp.min(scores)) < 4 * float(xp.finfo(D.dtype).eps):
            warnings.warn(
                "The scores are so small that all classes get nearly the same probability, and rounding "
                f"decides the class. Lower regularization={self.regularization}, or multiply the weights.",
                UserWarning,
                stacklevel=6,
            )

    @property
    def _fitted_array(self) -> Array:
        return self.network_.readouts[0]

    @property
    def _columns(self) -> Columns | None:
        return self.network_.columns

    def _answer(self, X: Array) -> Array:
        return answers(self.network_, X)

    def _staged_answers(self, X: Any, method: str) -> Iterator[Array]:
        X = self._check_new_rows(X, method)
        yield from staged_answers(self.network_, X)


def _begin_layer(task: CallbackContext, given: dict[str, Any]) -> CallbackContext:
    return task.subcontext(task_name="layer").call_on_fit_task_begin(**given)
