"""The tasks of a fit, as callbacks see them: reading, layers or members, and blocks of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.callback import CallbackContext

from .._inputs.reading import RowSource
from .._parts.progress import BlockTasks


class Tasks:
    """Tells the callbacks of an estimator how far its fit is. Reading is a task where it takes passes."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator, self._in_parts = estimator, isinstance(X, RowSource)
        self.given = {"estimator": estimator, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        if self._in_parts:
            self.given["metadata"] = {}
        self._whole: CallbackContext | None = None
        self._reading: CallbackContext | None = None
        self._blocks: BlockTasks | None = None

    def begin_reading(self, n_tasks: int | None) -> Callable[[int], None] | None:
        """Begin to read rows that come in parts; return what hears of the blocks. Other rows need no task."""
        if not self._in_parts:
            return None
        self._begin(None if n_tasks is None else 1 + n_tasks)
        assert self._whole is not None
        self._blocks = BlockTasks(self._whole, self.given)
        self._reading = self._blocks.begin("reading", None)
        return self._blocks

    def begin(self, n_tasks: int | None) -> CallbackContext:
        """Begin to fit: so many layers or members follow."""
        if self._reading is None:
            self._begin(n_tasks)
        else:
            self._reading.call_on_fit_task_end(**self.given)
        assert self._whole is not None
        return self._whole

    def begin_layer(self, n_blocks: int | None) -> CallbackContext:
        """Begin a layer, which takes passes over so many blocks."""
        if self._blocks is not None:
            return self._blocks.begin("layer", n_blocks)
        assert self._whole is not None
        return self._whole.subcontext(task_name="layer").call_on_fit_task_begin(**self.given)

    def end_blocks(self) -> None:
        """Tell nobody about passes that come after the last task."""
        if self._blocks is not None:
            self._blocks.end()

    def end(self, **more: Any) -> None:
        """End the fit."""
        assert self._whole is not None
        self._whole.call_on_fit_task_end(**self.given, **more)

    def _begin(self, n_tasks: int | None) -> None:
        context = self._estimator._init_callback_context(max_subtasks=n_tasks)
        self._whole = context.call_on_fit_task_begin(**self.given)
