"""What changed between two runs of the study: the same methods on the same datasets, with paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .comparison import FEWEST, holm, signed_rank
from .exchange import read_records
from .record import RECORDS, Record, importance
from .scores import ACCURACY, FIT_SECONDS, LOG_LOSS, R2, Metric
from .store import Store

Cell = tuple[str, str, str]  # kind of the record, method, dataset


# By the kind of a record. What is not here, sensitivity and timing, is not compared.
FIGURES: Mapping[str, tuple[Metric, ...]] = {
    "study": (ACCURACY, LOG_LOSS, FIT_SECONDS),
    "defaults": (ACCURACY, LOG_LOSS, FIT_SECONDS),
    "values": (R2, FIT_SECONDS),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A method on a dataset in both runs."""

    cell: Cell
    figure: Metric
    before: float
    after: float
    same_data: bool

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def shown(self) -> float:
        """The difference in the digits that are printed, so that rounding noise is no change."""
        return round(self.figure.scale * self.difference, self.figure.digits)


@dataclass(frozen=True, slots=True)
class Trend:
    """A method over all datasets that both runs have."""

    kind: str
    method: str
    figure: Metric
    changes: tuple[Change, ...]
    p_exact: float  # Wilcoxon's signed-rank test over datasets, two-sided
    p_holm: float  # adjusted for the number of methods of this kind

    def counts(self) -> tuple[int, int, int]:
        """Count the datasets on which the second run is better, equal and worse."""
        differences = self.figure.sign * np.array([c.shown for c in self.changes])
        return int((differences > 0).sum()), int((differences == 0).sum()), int((differences < 0).sum())

    def both(self) -> tuple[list[float], list[float]]:
        """Return the figures of all datasets, before and after."""
        return [c.before for c in self.changes], [c.after for c in self.changes]

    @property
    def moved(self) -> bool:
        """Whether a figure differs in the digits that are shown."""
        return any(c.shown for c in self.changes)

    @property
    def testable(self) -> bool:
        """Whether there are datasets enough for a test that can say something."""
        return len(self.changes) >= FEWEST


@dataclass(frozen=True, slots=True)
class Changes:
    """All that differs between two runs."""

    trends: tuple[Trend, ...]
    only_before: tuple[Cell, ...]
    only_after: tuple[Cell, ...]
    broken: tuple[tuple[Cell, str], ...]  # cells that succeeded in one run and failed in the other

    def largest(self, most: int) -> list[Change]:
        """Return the figures that changed, without seconds, the largest difference of each figure first."""
        found = [c for trend in self.trends if not trend.figure.is_seconds for c in trend.changes]
        moved = [c for c in found if c.shown]
        return sorted(moved, key=lambda c: -abs(c.difference * c.figure.scale * 10**c.figure.digits))[:most]

    def other_data(self) -> list[Cell]:
        """Return the cells whose two records are of different rows or splits."""
        return sorted({c.cell for trend in self.trends for c in trend.changes if not c.same_data})


def find_changes(before: str | Path, after: str | Path) -> Changes:
    """Compare two stores or exports."""
    a, b = (_by_cell(_read(Path(path))) for path in (before, after))
    both = [cell for cell in a if cell in b]
    good = [cell for cell in both if a[cell].status == b[cell].status == "ok"]
    broken = [(cell, _broken(a[cell], b[cell])) for cell in both if a[cell].status != b[cell].status]
    trends: list[Trend] = []
    for kind, figures in FIGURES.items():
        methods = list(dict.fromkeys(method for k, method, _ in good if k == kind))
        for figure in figures:
            rows = [
                tuple(_change(cell, figure, a[cell], b[cell]) for cell in good if cell[:2] == (kind, method))
                for method in methods
            ]
            trends += _tested(kind, methods, figure, rows)
    gone, new = (tuple(cell for cell in these if cell not in those) for these, those in ((a, b), (b, a)))
    return Changes(tuple(trends), gone, new, tuple(broken))


def _tested(kind: str, methods: list[str], figure: Metric, rows: list[tuple[Change, ...]]) -> list[Trend]:
    """Test every method, on as many digits as are printed."""
    p_values = [signed_rank(np.array([c.shown for c in row]))[2] for row in rows]
    return [
        Trend(kind, method, figure, row, p, adjusted)
        for method, row, p, adjusted in zip(methods, rows, p_values, holm(p_values), strict=True)
    ]


def _broken(a: Record, b: Record) -> str:
    """Say in which run a cell failed, and why."""
    when, record = ("failed before", a) if a.status != "ok" else ("fails now", b)
    return f"{when}: {(record.message or 'no message').partition(chr(10))[0]}"


def _change(cell: Cell, figure: Metric, a: Any, b: Any) -> Change:
    """Compare two records: of a search by its strict choice."""
    scored = (record.choices["strict"] if hasattr(record, "choices") else record for record in (a, b))
    before, after = (each.mean(figure.key) for each in scored)
    return Change(cell, figure, before, after, a.checksum == b.checksum)


def _read(path: Path) -> list[Record]:
    """Read the records of a store, or of an export, whose lines begin with a brace or are packed."""
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file. Name a store or what `edrvfl bench export` wrote.")
    with path.open("rb") as file:
        is_store = file.read(6) == b"SQLite"
    if not is_store:
        return read_records(path)
    with Store(path, create=False) as opened:
        return [record for kind in FIGURES for record in opened.records_of(RECORDS[kind])]


def _by_cell(records: Iterable[Record]) -> dict[Cell, Any]:
    """Keep the most important record of each cell."""
    known = [record for record in records if record.kind in FIGURES]
    found = {(r.kind, r.method, r.dataset): r for r in sorted(known, key=importance)}
    return {cell: found[cell] for cell in sorted(found)}
