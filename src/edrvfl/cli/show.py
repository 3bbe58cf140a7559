"""What the commands of the study print: records as tables, and how far a run is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich import progress
from rich.table import Table

from edrvfl.bench.names import listing, plural
from edrvfl.bench.record import (
    DefaultsRecord,
    Record,
    RunRecord,
    SensitivityRecord,
    TimingRecord,
    ValuesRecord,
)
from edrvfl.bench.schedule import Progress

from .screen import Row, duration, progress_bar, put, say, table

__all__ = ["Row", "duration", "listing", "plural", "put", "say", "study_bar", "summaries", "table"]


def accuracy(record: RunRecord, choice: str) -> str:
    """Write the accuracy of one choice in percent, with its deviation over the seeds if there are several."""
    mean, deviation = record.choices[choice].mean_and_sd()
    return f"{100 * mean:.2f}" + (f" ± {100 * deviation:.2f}" if record.seeds > 1 else "")


def _study_cells(record: RunRecord) -> Row:
    choices = [accuracy(record, name) for name in ("paper", "strict")]
    return (record.dataset, record.method, *choices, f"{record.search_seconds:.1f} s")


def _sensitivity_cells(record: SensitivityRecord) -> Row:
    values = (f"{record.correct_weight:g}", f"{record.prune_rate:g}")
    return (record.dataset, record.activation, *values, f"{np.mean(record.test_accuracy):.2f}")


def _timing_cells(record: TimingRecord) -> Row:
    size = (str(record.rows), str(record.features))
    return (record.dataset, record.method, *size, f"{statistics.median(record.seconds):.4f} s")


def _defaults_cells(record: DefaultsRecord) -> Row:
    losses = f"{record.mean('log_loss'):.4f}, {record.mean('calibration_error'):.4f}{_more(record)}"
    accuracy = f"{100 * record.mean('test_accuracy'):.2f}"
    return (record.dataset, record.method, accuracy, losses, f"{record.seconds:.3f} s")


def _more(record: DefaultsRecord | ValuesRecord) -> str:
    """Name the metrics that came from elsewhere."""
    return "".join(f", {name} {record.mean(name):.4g}" for name in record.more)


def _values_cells(record: ValuesRecord) -> Row:
    scores = (f"{record.mean('r2'):.4f}", f"{record.mean('rmse'):.5g}{_more(record)}")
    return (record.dataset, record.method, *scores, f"{record.seconds:.3f} s")


# The columns of a table, and what a record that succeeded says in them, by the kind of the record.
KINDS: Mapping[str, tuple[Row, Callable[[Any], Row]]] = {
    "study": (("dataset", "method", "paper choice", "strict choice", "search"), _study_cells),
    "sensitivity": (("dataset", "activation", "omega_r", "p", "test accuracy"), _sensitivity_cells),
    "timing": (("dataset", "method", "rows", "features", "median"), _timing_cells),
    "defaults": (
        ("dataset", "method", "test accuracy", "log-loss, calibration error", "fit"),
        _defaults_cells,
    ),
    "values": (("dataset", "method", "R²", "root mean squared error", "fit"), _values_cells),
}


def summary_row(record: Record) -> Row:
    """Say in five words what came of a cell."""
    if record.status == "ok":
        return KINDS[record.kind][1](record)
    return (record.dataset, record.method, "failed", (record.message or "").partition("\n")[0], "")


def summary_line(record: Record) -> str:
    """Say it in a line: dataset, method, and each figure behind its name."""
    names = ("", "", *KINDS[record.kind][0][2:]) if record.status == "ok" else [""] * 5
    return "  ".join(f"{name} {text}".strip() for name, text in zip(names, summary_row(record), strict=True))


def summaries(records: Sequence[Record]) -> list[Table]:
    """Make a table of the records of each kind that occurs."""
    kinds = dict.fromkeys(record.kind for record in records) or (RunRecord.kind,)
    of_kind = {kind: [record for record in records if record.kind == kind] for kind in kinds}
    return [table(KINDS[kind][0], map(summary_row, some)) for kind, some in of_kind.items()]


@contextmanager
def study_bar(quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Show how far a run is: a line for every cell that ends and, on a terminal, a bar below the lines."""
    if quiet:
        yield None
        return
    # The lines are printed on standard error as ever: a bar that is shown lifts them above itself.
    with progress_bar(progress.MofNCompleteColumn(), progress.TextColumn("units")) as bar:
        yield _StudyBar(bar)


class _StudyBar:
    """Turn the reports of a run into lines and the state of a bar."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = bar.add_task("study", total=None)
        self._start = time.monotonic()
        self._before: int | None = None  # units that earlier runs did; the first report tells
        self._best: dict[str, tuple[float, str]] = {}

    def __call__(self, now: Progress) -> None:
        resumed = self._before is None
        if self._before is None:
            self._before = now.units_done
            # Not `update`: the bar would count the units of earlier runs into its speed.
            self._bar.reset(self._task, total=now.units, completed=now.units_done)
        for number, record in enumerate(now.new, now.cells_done - len(now.new) + 1):
            self._note_best(record)
            if not resumed:
                say(f"[{number}/{now.cells}] {summary_line(record)}{self._left(now)}")
        text = f"cells {now.cells_done}/{now.cells}{self._best_text()}"
        self._bar.update(self._task, total=now.units, completed=now.units_done, description=text)

    def _left(self, now: Progress) -> str:
        done = now.units_done - (self._before or 0)
        if not done or now.units == now.units_done:
            return ""
        pace = (time.monotonic() - self._start) / done
        return f"  (about {duration(pace * (now.units - now.units_done))} left)"

    def _note_best(self, record: Record) -> None:
        if isinstance(record, RunRecord) and record.status == "ok":
            found = (record.choices["strict"].mean_and_sd()[0], record.method)
            before = self._best.pop(record.dataset, found)  # so the dataset moves to the end
            self._best[record.dataset] = max(before, found, key=lambda pair: pair[0])

    def _best_text(self) -> str:
        if not self._best:
            return ""
        dataset, (best, method) = list(self._best.items())[-1]
        return f", best on {dataset}: {method} {100 * best:.2f}"
