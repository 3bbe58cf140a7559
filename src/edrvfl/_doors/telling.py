"""What a fit tells: figures in fitted attributes and verbose lines, and tasks to scikit-learn's callbacks."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TextIO

from sklearn.callback import CallbackContext

from .._inputs.reading import RowSource
from .._layers.grow import Grown
from .._loo.follow import Stage
from .._seam.arrays import Array, weighted_mean


class Tasks:
    """Tells the callbacks of an estimator how far its fit is.

    Reading is a task where it takes passes over blocks, and every block that is done is a subtask.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator, self._in_parts = estimator, isinstance(X, RowSource)
        # what callbacks give to scorers, which have no use for groups
        metadata = {} if self._in_parts else {"sample_weight": sample_weight}
        self.given = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._whole: Any = None
        self._task: Any = None  # what blocks belong to
        self._told = self._before = 0  # blocks of this task, and those of its newest pass

    def begin_reading(self, n_tasks: int | None) -> Callable[[int], None] | None:
        """Begin to read rows that come in parts; return what hears of the blocks. Other rows need no task."""
        if not self._in_parts:
            return None
        self._begin_whole(None if n_tasks is None else 1 + n_tasks)
        self._begin_task("reading", None)
        return self._hear

    def begin(self, n_tasks: int | None) -> CallbackContext:
        """Begin to fit: so many layers or members follow."""
        if self._whole is None:
            self._begin_whole(n_tasks)
        else:
            self._task.call_on_fit_task_end(**self.given)
        return self._whole

    def begin_layer(self, n_blocks: int | None) -> CallbackContext:
        """Begin a layer, which takes passes over so many blocks; None if no block is read."""
        return self._begin_task("layer", n_blocks or 0)

    def end_blocks(self) -> None:
        """Tell nobody about passes that come after the last task."""
        self._task = None

    def end(self, **more: Any) -> None:
        """End the fit."""
        self._whole.call_on_fit_task_end(**self.given, **more)

    def _begin_whole(self, n_tasks: int | None) -> None:
        context = self._estimator._init_callback_context(max_subtasks=n_tasks)
        self._whole = context.call_on_fit_task_begin(**self.given)

    def _begin_task(self, name: str, n_blocks: int | None) -> CallbackContext:
        """Begin a task that has so many blocks; None if nobody knows yet."""
        self._task = self._whole.subcontext(task_name=name, max_subtasks=n_blocks)
        self._told = self._before = 0
        return self._task.call_on_fit_task_begin(**self.given)

    def _hear(self, done: int) -> None:
        """Tell that so many blocks of a pass are done. A smaller number than before begins a new pass."""
        new = done - self._before if done > self._before else done
        self._before = done
        for _ in range(new):
            # a task may turn out to need one more pass than it was said to need
            if self._task is None or self._told == self._task.max_subtasks:
                return
            self._told += 1
            block = self._task.subcontext(task_name="block").call_on_fit_task_begin(**self.given)
            block.call_on_fit_task_end(**self.given)


PATIENCE = 5.0  # seconds of a fit before a bar is shown
WIDTH = 30  # characters of the bar


class Bar:
    """A line for somebody who waits: how much of a fit is done, and for how long it has run.

    It is drawn after five seconds and every second from then on, by a thread of its own because one piece of
    work may take a minute, and it is gone when the fit ends.
    """

    def __init__(self, stream: TextIO | None, patience: float = PATIENCE) -> None:
        self.stream, self._patience = stream, patience
        self._done, self._expected, self._over = 0, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @classmethod
    def of(cls, estimator: Any) -> Bar:
        """Return the bar of a fit; nobody sees it unless verbose is "auto" and somebody looks."""
        asked = estimator.verbose == "auto" and not getattr(estimator, "_skl_callbacks", ())
        return cls(sys.stderr if asked and somebody_looks() else None)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self.stream is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.stream is not None:
            self._thread.join()

    def expect(self, pieces: int) -> None:
        """Take note of how many more pieces of work there are."""
        self._expected = self._done + pieces

    def advance(self) -> None:
        """Take note of a piece of work that is done."""
        self._done += 1

    def line(self) -> str:
        """Say how far the fit is."""
        share = min(1.0, self._done / max(1, self._expected))
        filled = int(WIDTH * share)
        seconds = int(time.monotonic() - self._began)
        return (
            f"fit: [{'#' * filled}{'.' * (WIDTH - filled)}] {share:4.0%} {seconds // 60}:{seconds % 60:02d}"
        )

    def _watch(self) -> None:
        stream, width = self.stream, 0
        assert stream is not None
        over = self._over.wait(self._patience)
        while not over:
            line = self.line()
            width = max(width, len(line))
            stream.write("\r" + line.ljust(width))
            stream.flush()
            over = self._over.wait(1.0)
        if width:
            stream.write("\r" + " " * width + "\r")
            stream.flush()


def somebody_looks() -> bool:
    """Tell whether the screen of this process is a terminal or a notebook, and not that of a worker."""
    notebook = "ipykernel" in sys.modules and type(sys.stderr).__module__.startswith("ipykernel")
    mine = multiprocessing.current_process().name == "MainProcess"
    return mine and (notebook or bool(getattr(sys.stderr, "isatty", bool)()))


@dataclass(frozen=True, slots=True)
class Figures:
    """The fitted attributes that tell how good an estimator is: by their words, score before loss."""

    train_scores: str  # of each layer, on the training rows
    by_layer: Mapping[str, str]  # by leave-one-out, of the first one, two, ... layers together
    of_all: Mapping[str, str]  # by leave-one-out, of an answer without layers

    def of_answer(self, score: float, loss: float) -> dict[str, float]:
        """Return the figures of an answer without layers, under the names of the fitted attributes."""
        return dict(zip(self.of_all.values(), (score, loss), strict=False))  # R^2 says what the loss says

    def words(self, score: float, loss: float) -> str:
        """Say what leave-one-out says."""
        figures = zip(self.of_all, (score, loss), strict=False)
        return "leave-one-out " + ", ".join(f"{words} {figure:.4f}" for words, figure in figures)


ACCURACY = Figures(
    "train_accuracies_",
    {"accuracy": "loo_accuracies_", "log-loss": "loo_log_losses_"},
    {"accuracy": "loo_accuracy_", "log-loss": "loo_log_loss_"},
)
R2 = Figures("train_r2_scores_", {"R^2": "loo_r2_scores_"}, {"R^2": "loo_r2_score_"})


@dataclass(slots=True)
class History:
    """What is told about the layers of a fit."""

    names: Figures
    train_scores: list[Array] = field(default_factory=list)  # on the device: reading them early would stop it
    loo_scores: list[float] = field(default_factory=list)  # empty without leave-one-out
    loo_losses: list[float] = field(default_factory=list)
    fell_back: list[Array] = field(default_factory=list)
    lams: list[float | None] = field(default_factory=list)  # None where the user set the penalty

    def add(self, grown: Grown, stage: Stage | None, counts: Array | None) -> None:
        """Note a layer that was grown."""
        self.train_scores.append(weighted_mean(1 - grown.losses[0, :], counts))
        self.fell_back.append(grown.readout.fell_back[0])
        self.lams.append(grown.readout.lam)
        if stage is not None:
            self.loo_scores.append(stage.score)
            self.loo_losses.append(stage.loss)

    def figures(self) -> dict[str, tuple[float, ...]]:
        """Return the figures by layer, under the names of the fitted attributes."""
        loo = zip(self.names.by_layer.values(), (self.loo_scores, self.loo_losses), strict=False)
        train_scores = tuple(float(score) for score in self.train_scores)
        return {self.names.train_scores: train_scores, **{name: tuple(figures) for name, figures in loo}}

    def line(self) -> str:
        """Describe the network so far in words."""
        if not self.loo_scores:
            return f"training {next(iter(self.names.by_layer))} {float(self.train_scores[-1]):.4f}"
        return self.names.words(self.loo_scores[-1], self.loo_losses[-1])
