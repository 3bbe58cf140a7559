"""Where the results come from: versions, devices, data and partitions."""

from __future__ import annotations

from ..page import Grid, GridRow, Section, text_cell
from ..study import dataset_facts
from ..summary import Summary


def show_origins(s: Summary) -> Section:
    """List the versions that occur, and every dataset with its shape, partitions and checksum."""
    versions = tuple(GridRow(what, (text_cell(", ".join(values)),)) for what, values in s.origins.items())
    rows = []
    for dataset in s.datasets:
        facts = dataset_facts(dataset)
        checksums = ", ".join(c[:16] for c in s.checksums[dataset]) or "no record"
        cells = (facts.shape, facts.printed, facts.partitions, checksums)
        rows.append(GridRow(dataset, tuple(text_cell(text) for text in cells)))
    columns = ("dataset", "rows / features / classes", "as the paper prints", "partitions", "checksum")
    note = "The checksum is the start of the SHA-256 of values, labels and partitions."
    grids = (
        Grid("versions", "Versions", ("what", "value"), versions),
        Grid("partitions", "Datasets and partitions", columns, tuple(rows), notes=(note,)),
    )
    return Section("origins", "Versions and partitions", grids=tuple(grid for grid in grids if grid.rows))
