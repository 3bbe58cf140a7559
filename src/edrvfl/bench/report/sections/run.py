"""What was run, how, at what cost and with what; which cells lack a result; oddities of the benchmark."""

from __future__ import annotations

import math
from collections import Counter

from ...names import plural
from ..page import ABSENT, EMPTY, Grid, GridCell, Section, make_row
from ..sentences import MEANINGS, notes
from ..study import dataset_facts, on_gpu
from ..summary import Summary

KINDS = {
    "study": "searches and refits",
    "defaults": "methods at their defaults",
    "values": "methods at their defaults, values",
    "sensitivity": "section 5.5",
    "timing": "section 5.6",
}
CELL = (
    "A cell is one method on one dataset. Every configuration is fitted on a split's fit rows and scored "
    "on its validation rows at every depth; the chosen one is fitted again on fit and validation rows "
    "and scored on the test rows (SNN, MSRAinit, Highway and ResNet hold a tenth of these rows out, to "
    "stop early). A figure is the mean over the splits; mean and standard deviation (±) are over the "
    "hidden seeds, which redraw what is random in a method and nothing else. On a processor a cell runs "
    "on one BLAS thread."
)
ODDITIES = (
    "The four folds of the benchmark are four overlapping draws of 75 % and 25 %, not a partition: about "
    "68 % of the rows are a test row of at least one draw.",
    "Five datasets (adult, monks-3, pendigits, statlog-landsat, statlog-shuttle) have one fixed test file; "
    "their four splits differ in the validation rows only.",
    "Values were standardised before the data were published, with the test rows of the draws included, and "
    "training and test files each by its own mean and standard deviation.",
    "monks-3: its training and test files were standardised apart, so figures on it are near noise. The "
    "paper's 82 is not reached by tuning here, which gives 37 to 69.",
    "congressional-voting keeps only which answers are missing; 61 % is the rate of the larger class.",
    "oocytes_trisopterus_states_5b has 32 features and 3 classes; the paper prints 26 and 2.",
    "The paper's number of features counts the label.",
    "The SNN, MSRAinit, Highway and ResNet columns of Table 3 are figures of one split, quoted from "
    "Klambauer et al. (2017).",
    "The paper's means and average ranks follow from its Table 3 to the last digit. Most of its p-values "
    "(Table 4) and a quarter of its signs (Table 5) do not.",
)


def show_run(s: Summary) -> Section:
    """Say how many cells there are, how a cell is computed, and what the two choices mean."""
    done, failed = s.with_status("ok"), s.with_status("failed")
    rest = len(s.results) - len(done) - len(failed)
    text = [
        f"{plural(len(s.methods), 'searched method')} on {plural(len(s.datasets), 'dataset')}: "
        f"{plural(len(done), 'cell')} done, {len(failed)} failed, {rest} missing.",
        CELL,
    ]
    if dates := sorted(r.finished[:16].replace("T", " ") for r in (*done, *failed) if r.finished):
        text.append(f"Finished from {dates[0]} to {dates[-1]} UTC.")
    items = tuple((f"{name} choice", meaning) for name, meaning in MEANINGS.items())
    return Section("how", "What was run and how", (*text, *notes(s)), items)


def show_missing(s: Summary) -> Section:
    """Say in a sentence which cells have no result; the list with their messages is folded."""
    without = [r for r in s.results.values() if r.status != "ok"]
    methods = Counter(r.line for r in without)
    whose = ", ".join(f"{method} {n}" for method, n in methods.items()) or "none"
    failed = sum(r.status == "failed" for r in without)
    text = f"Cells without a figure: {len(without)} of {len(s.results)} ({whose}); {failed} of them failed."
    rows = tuple(
        make_row(r.dataset, r.line, GridCell(r.status, r.status, r.status), r.message or EMPTY, method=r.line)
        for r in without
    )
    grid = Grid("missing", "Which they are", ("dataset", "method", "status", "message"), rows, folded=True)
    return Section("missing", "Failed and missing cells", (text,), grids=(grid,) * bool(rows))


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


def show_oddities(_: Summary) -> Section:
    """List what must be known of the paper's benchmark to read its numbers, whatever was run."""
    return Section("oddities", "Oddities of the benchmark", items=tuple(("", oddity) for oddity in ODDITIES))
