"""Where the results come from: seconds, versions, devices, data and partitions."""

from __future__ import annotations

import math

from ...names import plural
from ..costs import on_gpu
from ..page import ABSENT, Grid, GridCell, Section, make_row
from ..study import dataset_facts
from ..summary import Summary

KINDS = {
    "study": "searches and refits",
    "defaults": "methods at their defaults",
    "values": "methods at their defaults, values",
    "sensitivity": "section 5.5",
    "timing": "section 5.6",
}


def show_origins(s: Summary) -> Section:
    """Say what the records took, and list versions, devices, and every dataset with its partitions."""
    costs = s.study.costs
    cpu, gpu = (
        math.fsum(c.seconds or 0 for c in costs if on_gpu(c.device) is there) for there in (False, True)
    )
    silent = sum(c.records for c in costs if c.seconds is None)
    text = (
        f"{plural(sum(c.records for c in costs), 'record')} took {cpu:,.0f} seconds of processors and "
        f"{gpu:,.0f} seconds of processes on GPUs; {silent} of them do not say what they took."
    )
    grids = tuple(grid for grid in (_costs_grid(s), _versions_grid(s), _partitions_grid(s)) if grid.rows)
    return Section("origins", "What it took, versions and partitions", (text,), grids=grids)


def _costs_grid(s: Summary) -> Grid:
    rows = []
    for c in s.study.costs:
        seconds = ABSENT if c.seconds is None else GridCell(f"{c.seconds:,.0f}", c.seconds)
        rows.append(make_row(KINDS.get(c.kind, c.kind), c.device, c.records, seconds))
    note = (
        "Seconds of searches, fits and answers; reading data and warming up are not counted. Processes that "
        "share a GPU count one by one."
    )
    columns = ("records of", "device", "records", "seconds")
    return Grid("costs", "Seconds of all records", columns, tuple(rows), notes=(note,))


def _versions_grid(s: Summary) -> Grid:
    rows = []
    for what, values in s.origins.items():
        if what == "commit":  # its start, and whether the files were changed since
            values = tuple(start[:12] + dash + end for start, dash, end in (v.partition("-") for v in values))
        rows.append(make_row(what, "; ".join(values)))
    return Grid("versions", "Versions, commits and devices", ("what", "value"), tuple(rows), folded=True)


def _partitions_grid(s: Summary) -> Grid:
    rows = []
    for dataset in s.datasets:
        checksums = ", ".join(c[:16] for c in s.checksums[dataset]) or "no record"
        rows.append(make_row(dataset, *dataset_facts(dataset), checksums))
    columns = ("dataset", "rows / features / classes", "as the paper prints", "partitions", "checksum")
    note = "The checksum is the start of the SHA-256 of values, labels and partitions."
    return Grid("partitions", "Datasets and partitions", columns, tuple(rows), notes=(note,), folded=True)
