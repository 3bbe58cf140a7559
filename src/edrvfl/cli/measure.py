"""The commands beside the search: sections 5.5 and 5.6 of the paper, and methods at their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edrvfl.bench import defaults, sensitivity, timing
from edrvfl.bench.data import (
    ADDED,
    ALL_FRAMES,
    FRAME_GROUPS,
    GROUPS,
    Dataset,
    dataset_names,
    load_dataset,
    load_frame,
)
from edrvfl.bench.data.frames import frame_dataset
from edrvfl.bench.data.own_table import check_class_sizes, table_name
from edrvfl.bench.methods import METHODS, method_names
from edrvfl.bench.names import listing
from edrvfl.bench.tables import need_column, open_table

from . import options
from .run import run_cells

# The defaults of the options, as the lists that typer wants.
PAPER_FOUR, PAPER_FIVE = list(sensitivity.DATASETS), list(timing.DATASETS)
WEIGHTS, RATES = list(sensitivity.WEIGHTS), list(sensitivity.RATES)
ACTIVATIONS = list(sensitivity.ACTIVATIONS)
TIMED_METHODS = ["WPedRVFL"]
FRAMES_ALONE = ["frames"]  # nothing to download


def measure_sensitivity(
    datasets: Annotated[list[str], options.names()] = PAPER_FOUR,
    weights: Annotated[list[float], options.numbers("OMEGA,...", "Values of omega_r.")] = WEIGHTS,
    rates: Annotated[list[float], options.numbers("P,...", "Values of p.")] = RATES,
    activations: Annotated[list[str], typer.Option(metavar="G,...")] = ACTIVATIONS,
    seeds: Annotated[int, options.counted("Redraws of the hidden layers.")] = sensitivity.SEEDS,
    folder: options.Folder = None,
    store: options.Store = options.STORE,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> int:
    """Measure accuracy as omega_r and p vary. It is section 5.5 of the paper; the report shows the curves."""
    loaded = [load_dataset(name, folder, progress=not quiet) for name in dataset_names(datasets)]
    cells = sensitivity.make_cells(loaded, weights=weights, rates=rates, activations=activations, seeds=seeds)
    return run_cells(cells, store, jobs=jobs or options.cores(), quiet=quiet)[1]


def measure_timing(
    methods: Annotated[list[str], options.names()] = TIMED_METHODS,
    datasets: Annotated[list[str], options.names()] = PAPER_FIVE,
    warmups: Annotated[int, options.counted("Fits that are not counted.")] = timing.WARMUPS,
    repeats: Annotated[int, options.counted("Fits whose median is taken.")] = timing.REPEATS,
    threads: Annotated[int, options.counted("BLAS threads.")] = timing.THREADS,
    folder: options.Folder = None,
    store: options.Store = options.STORE,
    quiet: options.Quiet = False,
) -> int:
    """Measure training times, as in the paper's Table 8. The report shows them beside the paper's."""
    rows = [METHODS[name] for name in method_names(methods)]
    loaded = [load_dataset(name, folder, progress=not quiet) for name in dataset_names(datasets)]
    cells = timing.make_cells(rows, loaded, warmups=warmups, repeats=repeats, threads=threads)
    return run_cells(cells, store, jobs=1, quiet=quiet)[1]  # processes side by side would slow each other


def measure_defaults(
    methods: Annotated[
        list[str] | None,
        options.names(
            "Methods, or the groups arrays, frames, tables and values.",
            "tables on tables, values on other values, frames on other frames, arrays on all else",
        ),
    ] = None,
    datasets: Annotated[
        list[str] | None,
        options.names(
            f"Datasets, or the groups {listing((*FRAME_GROUPS, *GROUPS))}.", "frames, or none with --csv"
        ),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table of your own: numbers, texts and gaps.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of that table which is predicted.")
    ] = None,
    seeds: Annotated[int, options.counted("Fits of each split, with other seeds.")] = defaults.SEEDS,
    folder: options.Folder = None,
    store: options.Store = options.STORE,
    jobs: options.Jobs = None,
    quiet: options.Quiet = False,
) -> int:
    """Fit and score methods at their packages' defaults. Frames have categories and gaps as they come."""
    if (csv is None) != (target is None):
        raise ValueError("--csv and --target go together: the table, and the column that is predicted.")
    names = dataset_names(datasets or ([] if csv else FRAMES_ALONE), frames=True)
    loaded = [
        load_frame(n) if n in ALL_FRAMES or n in ADDED else load_dataset(n, folder, progress=not quiet)
        for n in names
    ]
    loaded += [_load_own(csv, target, quiet)] if csv is not None and target is not None else []
    cells = defaults.make_cells(loaded, methods, seeds)
    return run_cells(cells, store, jobs=jobs or options.cores(), quiet=quiet)[1]


def _load_own(csv: Path, target: str, quiet: bool) -> Dataset:
    """Read a table as `edrvfl fit` reads it, and draw its splits."""
    from . import fit  # with pandas, which takes half a second

    name, table = table_name(csv, frames=True), open_table(csv, ",")
    names = [column for column in table.names if column != need_column(table, target, "--target")]
    fit.check_names(table, names, [])
    frame, y = fit.read_training(table, names, target, drop=False, quiet=quiet)
    for column in frame.select_dtypes(["datetime", "datetimetz"]):  # most packages take numbers alone
        frame[column] = (frame[column] - frame[column].min()).dt.total_seconds() / 86_400
    if not fit.has_classes(y, "auto"):
        return frame_dataset(name, frame.assign(**{target: fit.values_of(table, y)}), target, "regression")
    labels = fit.labels_of(table, y)
    check_class_sizes(csv, target, labels.tolist())
    return frame_dataset(name, frame.assign(**{target: labels}), target)
