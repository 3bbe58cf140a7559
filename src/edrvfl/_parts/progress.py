"""Tell callbacks how far a pass over blocks is."""

from __future__ import annotations

from typing import Any

from sklearn.callback import CallbackContext


class BlockTasks:
    """Makes a subtask of every block that is done, for the task that the passes belong to."""

    def __init__(self, task: CallbackContext, given: dict[str, Any]) -> None:
        self._given, self._root = given, task
        self._task: CallbackContext | None = None
        self._told, self._before = 0, 0

    def begin(self, name: str, n_blocks: int | None) -> CallbackContext:
        """Begin a task that has so many blocks; None if nobody knows yet."""
        self._task = self._root.subcontext(task_name=name, max_subtasks=n_blocks)
        self._told = self._before = 0
        return self._task.call_on_fit_task_begin(**self._given)

    def __call__(self, done: int) -> None:
        """Tell that so many blocks of a pass are done. A smaller number than before begins a new pass."""
        new = done - self._before if done > self._before else done
        self._before = done
        for _ in range(new):
            # a task may turn out to need one more pass than it was said to need
            if self._task is None or self._told == self._task.max_subtasks:
                return
            self._told += 1
            block = self._task.subcontext(task_name="block").call_on_fit_task_begin(**self._given)
            block.call_on_fit_task_end(**self._given)

    def end(self) -> None:
        """Tell nobody about passes that come after the last task."""
        self._task = None
