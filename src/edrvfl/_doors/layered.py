"""What EDRVFLClassifier and EDRVFLRegressor share: a fit that grows a network layer by layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy
from scipy.linalg import LinAlgWarning
from sklearn import config_context
from sklearn.callback import CallbackContext, CallbackSupportMixin

from .._fitting.history import Figures, History
from .._fitting.parts import prepare_fit
from .._inputs.inputs import Inputs
from .._inputs.judged import Judged
from .._inputs.rows import Rows, to_host
from .._inputs.table import Columns
from .._layers.activations import ACTIVATIONS
from .._layers.draws import DRAW_SCHEME, Draws, Recipe
from .._layers.grow import Grown, Problem, grow, start
from .._layers.layers import fill_inputs, new_features
from .._layers.pruning import n_pruned
from .._layers.readers import READOUTS, check_readout
from .._layers.records import DrawSettings, Settings
from .._loo.follow import LAYER_VOTES, Follower, Stage, needs_loo
from .._models.network import Network
from .._parts.encoding import learn_parted_encoding
from .._parts.grow import PartedNetwork
from .._parts.parts import Parts
from .._parts.progress import BlockTasks
from .._parts.source import RowBlocks
from .._seam.arrays import Array, array_namespace, converted, ignore_overflow, product
from .._seam.sklearn import Count, Interval, Pair, StrOptions
from .._seam.threads import suitable_threads
from .coverage import COMMON, CoveringShell, Evidence
from .encoder import ENCODERS, TabularEncoder, as_encoder, learn_network_inputs

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


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """How a fit reports its layers: by which rows, and to which callbacks."""

    rows: Rows  # those that are in memory
    judged: Judged | None  # the rows that have leave-one-out scores, if not all have them
    n_layers: int  # that will be grown
    given: dict[str, Any]  # what callbacks are given
    begin_layer: Callable[[int], CallbackContext]  # begins the task of a layer
    stand_for: Array | None = None  # how many rows each row in memory stands for; None for itself

    @property
    def counts(self) -> Array | None:
        """How much the rows count in a mean over the training rows."""
        return product(self.rows.weights.counts, self.stand_for)


class LayeredEstimator(CallbackSupportMixin, CoveringShell):
    """An estimator whose fit grows a network. Subclasses name the parameters and the figures."""

    _figures: Figures
    network_: Network

    def _validate_params(self) -> None:
        super()._validate_params()
        check_readout(self)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        if not isinstance(X, RowBlocks):
            self._fit_rows(X, y, sample_weight)
            return
        if y is not None or sample_weight is not None:
            raise ValueError(
                "y and sample_weight belong to the blocks of a RowBlocks, (X, y) or (X, y, weight). Give "
                f"{type(self).__name__}.fit the blocks alone."
            )
        with X.opened() as parts:
            self._fit_parts(parts)

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit from rows in memory."""
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        table, y, columns = self._check_training_rows(X, y, as_encoder(self.encoder))
        seed = self._draw_seed()
        rows, held = self._divide_rows(table, y, sample_weight, seed)
        settings = Settings.of(self).for_rows(rows.worth)
        n, depth = settings.n_hidden, settings.n_layers
        task = self._init_callback_context(max_subtasks=depth).call_on_fit_task_begin(**given)

        def begin(_: int) -> CallbackContext:
            return task.subcontext(task_name="layer").call_on_fit_task_begin(**given)

        with ignore_overflow():
            inputs = learn_network_inputs(rows, self, columns, seed)
            network = self._new_network(columns, inputs, n, rows.classes, seed)
            with suitable_threads(rows.X, n + inputs.width + 1, n):
                D = new_features(rows.X.shape[0], rows.X, n, inputs)
                fill_inputs(D, rows.X, inputs)
                draws = Draws(Recipe.of(settings, seed, inputs, rows), rows.X)
                problem = Problem(rows.targets, rows.weights, draws, judges=needs_loo(self))
                judged = problem.judged if problem.judges else None
                report = Report(rows, judged, depth, given, begin)
                stage = self._keep_layers(network, grow(start(D, settings), problem), report)
        self._warn_of_fallbacks()
        P = None if stage is None else stage.P
        self._learn_coverage(Evidence(rows, columns, judged, P, held, seed))
        task.call_on_fit_task_end(**given, reconstruction_attributes=dict)

    def _fit_parts(self, parts: Parts) -> None:
        """Fit from rows that come in parts. The model is in NumPy, as the rows are before they are moved."""
        given: dict[str, Any] = {"estimator": self, "X": parts, "y": None, "metadata": {}}
        # the passes before the first layer are a task as well
        n_tasks = None if self.n_layers == "auto" else 1 + self.n_layers
        task = self._init_callback_context(max_subtasks=n_tasks).call_on_fit_task_begin(**given)
        tasks = BlockTasks(task, given)
        with config_context(array_api_dispatch=True) if parts.device is not None else nullcontext():
            reading = tasks.begin("reading", None)
            prepared = prepare_fit(parts, self, tasks)
            parted, rows, judged = prepared.parted, prepared.rows, prepared.judged
            inputs, settings, seed = prepared.inputs, prepared.settings, prepared.seed
            n, columns = settings.n_hidden, parted.reader.columns
            network = self._new_network(columns, inputs, n, rows.classes, seed)
            reading.call_on_fit_task_end(**given)
            grower = PartedNetwork(parted, rows, judged, settings, inputs)

            def begin(l: int) -> CallbackContext:
                return tasks.begin("layer", grower.n_passes(l) * parted.parts.n_parts)

            stand_for = None if judged is None else judged.stand_for
            report = Report(rows, judged, settings.n_layers, given, begin, stand_for)
            with ignore_overflow(), suitable_threads(rows.X, n + inputs.width + 1, n):
                stage = self._keep_layers(network, grower.grow(prepared.draws, needs_loo(self)), report)
            tasks.end()
            self._warn_of_fallbacks()
            P, learn = None if stage is None else stage.P, partial(learn_parted_encoding, parted)
            self._learn_coverage(Evidence(rows, columns, judged, P, prepared.held, seed, learn))
            task.call_on_fit_task_end(**given, reconstruction_attributes=dict)
        if parts.device is not None:
            self.network_ = converted(self.network_, to_host)
            self.coverage_ = converted(self.coverage_, to_host)

    def _new_network(
        self, columns: Columns | None, inputs: Inputs, n_hidden: int, classes: Array | None, seed: int
    ) -> Network:
        """Return a network without layers."""
        of_answers = (self.ensemble, classes, seed, DRAW_SCHEME)
        joint = self.readout == "joint"
        draws = DrawSettings.of(self)
        return Network(columns, inputs, self.activation, n_hidden, *of_answers, joint=joint, draws=draws)

    def _keep_layers(self, network: Network, layers: Iterator[Grown], report: Report) -> Stage | None:
        """Keep the layers that are grown; after each of them print a line and ask the callbacks.

        Return what leave-one-out says about the layers that answer.
        """
        rows, given = report.rows, report.given
        follower = None
        if needs_loo(self):
            follower = Follower(rows.targets, rows.weights, report.judged, self)
        history, kept = History(self._figures), None
        layer = report.begin_layer(0)
        for grown in layers:
            # Keep only the hidden weights and the read-out: the next layer overwrites the features in D.
            beta = rows.targets.in_units(grown.readout.beta[0, ...], network.bias)
            stage = None if follower is None else follower.add(grown.loo[0, ...])
            vote, calibration = (1.0, None) if stage is None else (stage.vote, stage.calibration)
            network = network.with_layer(grown.hidden, beta, vote, calibration)
            history.add(grown, stage, report.counts)
            if kept is None or stage is None or self.layer_votes != "prefix" or stage.loss < kept.loss:
                kept = stage
            self._print_layer(history, report.n_layers)
            # a function, so that without callbacks nobody waits for the figures
            so_far = partial(_so_far, network, history)
            if layer.call_on_fit_task_end(**given, reconstruction_attributes=so_far):
                break
            if len(network.layers) < report.n_layers:
                layer = report.begin_layer(len(network.layers))
        if rows.classes is not None:
            self._warn_if_scores_vanish(grown.D, network)
        self._keep(network, history)
        return kept

    def _keep(self, network: Network, history: History) -> None:
        """Store what was fitted."""
        if self.layer_votes == "prefix":
            network = network.prefix(1 + int(numpy.argmin(history.loo_losses)))
        self.network_, self.n_layers_, self.n_hidden_ = network, len(network.layers), network.n_hidden
        for name, figures in history.figures().items():
            setattr(self, name, figures)
        self.regularization_ = tuple(self.regularization if lam is None else lam for lam in history.lams)
        self.fallback_layers_ = tuple(l for l, fell in enumerate(history.fell_back, start=1) if bool(fell))
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
                stacklevel=6,  # the line that calls fit
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
                stacklevel=7,
            )

    @property
    def _fitted_array(self) -> Array:
        return self.network_.readouts[0]

    @property
    def _columns(self) -> Columns | None:
        return self.network_.columns

    def _answer(self, X: Array) -> Array:
        return self.network_.answer(X)

    def _staged_answers(self, X: Any, method: str) -> Iterator[Array]:
        X = self._check_new_rows(X, method)
        yield from self.network_.staged(X)


def _so_far(network: Network, history: History) -> dict[str, Any]:
    """Return the attributes of an estimator that has grown some of its layers."""
    return {"network_": network, **history.figures()}
