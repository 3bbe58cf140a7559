"""Where the results come from: seconds, versions, devices, data and partitions."""

from __future__ import annotations

import math

from ..costs import on_gpu
from ..page import ABSENT, Grid, GridCell, GridRow, Section, count_cell, text_cell
from ..sentences import count
from ..study import dataset_facts
from ..summary import Summary

KINDS = {
    "study": "searches and refits",
    "defaults": "methods at their defaults",
    "values": "methods at their defaults, values",
    "sensitivity": "section 5.5",
    "timing": "section 5.6",
}
COMMIT_LETTERS = 12


def show_origins(s: Summary) -> Section:
    """Say what the records took, and list versions, devices, and every dataset with its partitions."""
    grids = (_costs_grid(s), _versions_grid(s), _partitions_grid(s))
    text = (_sentence(s),) if s.study.costs else ()
    return Section(
        "origins", "What it took, versions and partitions", text, grids=tuple(g for g in grids if g.rows)
    )


def _sentence(s: Summary) -> str:
    costs = s.study.costs
    seconds = {
        gpu: math.fsum(c.seconds or 0 for c in costs if on_gpu(c.device) is gpu) for gpu in (False, True)
    }
    spent = [
        f"{seconds[gpu]:,.0f} seconds of {what}"
        for gpu, what in ((False, "processors"), (True, "processes on GPUs"))
        if seconds[gpu]
    ]
    silent = sum(c.records for c in costs if c.seconds is None)
    records = count(sum(c.records for c in costs), "record")
    text = f"{records} took {' and '.join(spent) or 'a time that no record says'}"
    return text + (f"; {silent} of them do not say what they took." if silent else ".")


def _costs_grid(s: Summary) -> Grid:
    rows = []
    for c in s.study.costs:
        seconds = ABSENT if c.seconds is None else GridCell(f"{c.seconds:,.0f}", c.seconds)
        rows.append(GridRow(KINDS.get(c.kind, c.kind), (text_cell(c.device), count_cell(c.records), seconds)))
    note = (
        "Seconds of searches, fits and answers; reading data and warming up are not counted. Processes that "
        "share a GPU count one by one."
    )
    columns = ("records of", "device", "records", "seconds")
    return Grid("costs", "Seconds of all records", columns, tuple(rows), notes=(note,))


def _versions_grid(s: Summary) -> Grid:
    rows = []
    for what, values in s.origins.items():
        if what == "commit":
            values = tuple(_short(commit) for commit in values)
        rows.append(GridRow(what, (text_cell("; ".join(values)),)))
    return Grid("versions", "Versions, commits and devices", ("what", "value"), tuple(rows), folded=True)


def _short(commit: str) -> str:
    """Write the start of a commit, and whether it was changed.

    Examples
    --------
    >>> _short("2d193d78e86840c9705c99ea0742ace7bd194e19-dirty")
    '2d193d78e868-dirty'
    """
    start, dash, changed = commit.partition("-")
    return start[:COMMIT_LETTERS] + dash + changed


def _partitions_grid(s: Summary) -> Grid:
    rows = []
    for dataset in s.datasets:
        facts = dataset_facts(dataset)
        checksums = ", ".join(c[:16] for c in s.checksums[dataset]) or "no record"
        cells = (facts.shape, facts.printed, facts.partitions, checksums)
        rows.append(GridRow(dataset, tuple(text_cell(text) for text in cells)))
    columns = ("dataset", "rows / features / classes", "as the paper prints", "partitions", "checksum")
    note = "The checksum is the start of the SHA-256 of values, labels and partitions."
    return Grid("partitions", "Datasets and partitions", columns, tuple(rows), notes=(note,), folded=True)
