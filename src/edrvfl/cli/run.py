"""The command `edrvfl bench run`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from edrvfl.bench import schedule
from edrvfl.bench.cell import Cell
from edrvfl.bench.data import DEMO, GROUPS, Dataset, csv_dataset, dataset_names, load_dataset
from edrvfl.bench.device import check_device
from edrvfl.bench.methods import METHOD_GROUPS, METHODS, method_names
from edrvfl.bench.record import RunRecord
from edrvfl.bench.searching import Method, check_installed

from . import options, show

TRIALS, SEEDS = 10, 3  # enough for a first look; the demo group takes about a minute on two cores
PAPER_TRIALS, PAPER_SEEDS = 200, 10
METHOD_DEFAULT = ["edrvfl"]

# Methods that draw the same hidden layers and differ in weighting and pruning alone.
SAME_LAYERS = ("edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL")
LEGEND = (
    "Test accuracy in percent: the mean over four splits, and its standard deviation over the seeds.\n"
    "paper choice: one configuration for all four splits, as in the paper.\n"
    "strict choice: each split chooses its own configuration, by its own validation rows alone."
)


# The signature is long because it is the list of the command's options.
# Most of its lines are its options: a command's signature is its documentation.
def run(
    methods: Annotated[
        list[str], options.names(f"Methods, or groups of them: {show.listing([*METHOD_GROUPS])}.")
    ] = METHOD_DEFAULT,
    datasets: Annotated[
        list[str] | None,
        options.names(f"Datasets, or groups of them: {show.listing([*GROUPS])}.", "demo, or none with --csv"),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table of your own: numeric columns and a header.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of that table which holds the classes.")
    ] = None,
    folder: options.Folder = None,
    trials: Annotated[
        int | None,
        options.counted("Configurations tried in each search.", f"{TRIALS}, with --paper {PAPER_TRIALS}"),
    ] = None,
    seeds: Annotated[
        int | None,
        options.counted(
            "Refits of what was chosen, each with other random hidden layers.",
            f"{SEEDS}, with --paper {PAPER_SEEDS}",
        ),
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="Take the paper's size.")] = False,
    store: options.Store = options.STORE,
    jobs: options.Jobs = None,
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="cuda needs torch.")] = "cpu",
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler whose workers compute instead of --jobs."),
    ] = None,
    quiet: options.Quiet = False,
) -> int:
    """Search, refit and score every method on every dataset. What the store holds is not done again."""
    if (csv is None) != (target is None):
        raise ValueError("--csv and --target go together: the table, and the column that holds its classes.")
    rows = [METHODS[name] for name in method_names(methods)]
    check_installed(rows)  # before datasets are downloaded
    check_device(device)
    names = dataset_names(datasets or ([] if csv else ["demo"]))
    tables = [load_dataset(name, folder, progress=not quiet) for name in names]
    tables += [csv_dataset(csv, target)] if csv is not None and target is not None else []
    tried, drawn = (PAPER_TRIALS, PAPER_SEEDS) if paper else (TRIALS, SEEDS)
    cells = list(schedule.grid(rows, tables, trials or tried, seeds or drawn, device))
    if not quiet:
        show.say(_plan(rows, tables, trials or tried, seeds or drawn) + f", in {store}")
    most = options.CUDA_JOBS if device == "cuda" else options.cores()
    workers = jobs or min(options.cores(), most)
    records, status = run_cells(cells, store, jobs=workers, scheduler=scheduler, quiet=quiet)
    for note in () if quiet else (LEGEND, *notes(records)):
        show.say(note)
    return status


def run_cells(
    cells: Sequence[Cell[Any]], store: Path, *, jobs: int, quiet: bool, scheduler: str | None = None
) -> tuple[list[Any], int]:
    """Bring cells to their records, show these as tables, and return them and the exit status."""
    with show.study_bar(quiet) as progress:
        records = schedule.run(cells, store, jobs=jobs, scheduler=scheduler, progress=progress)
    show.put(*show.summaries(records))
    failed = sum(record.status == "failed" for record in records)
    if failed:
        retry = shlex.join(["edrvfl", "bench", "retry", "--store", str(store)])
        show.say(f"{show.plural(failed, 'cell')} failed; `{retry}` and run again to try once more.")
    return records, 1 if failed else 0


def _plan(methods: Sequence[Method], datasets: Sequence[Dataset], trials: int, seeds: int) -> str:
    """Say how much work is ahead."""
    parts = f"{show.plural(len(methods), 'method')} on {show.plural(len(datasets), 'dataset')}"
    size = f"{show.plural(trials, 'configuration')} and {show.plural(seeds, 'seed')}"
    cells = show.plural(len(methods) * len(datasets), "cell")
    return f"{parts}: {cells} (a cell is one method on one dataset), each of {size}"


def notes(records: Sequence[RunRecord]) -> list[str]:
    """Explain figures that would surprise: equal ones, and ones that differ from those of `make demo`."""
    said = []
    if equal := equal_methods(records):
        where = [f"{show.listing(methods)} on {show.listing(names)}" for methods, names in equal.items()]
        said.append(
            f"The same figures: {'; '.join(where)}.\n"
            "The search settled on networks in which weighting and pruning change nothing, as happens on\n"
            "small, easily separated data: one layer, omega_r = 1 and p = 0, or no training row wrong."
        )
    if any(record.dataset in DEMO for record in records):
        said.append("`make demo` draws other splits of these datasets, so its figures differ.")
    return said


def equal_methods(records: Sequence[RunRecord]) -> dict[tuple[str, ...], list[str]]:
    """Find methods that score the same on every split and seed, and on which datasets they do."""
    alike: dict[tuple[str, object], list[str]] = {}
    for record in records:
        if record.status == "ok" and record.method in SAME_LAYERS:
            scores = tuple(record.choices[name].test_accuracy for name in ("paper", "strict"))
            alike.setdefault((record.dataset, scores), []).append(record.method)
    found: dict[tuple[str, ...], list[str]] = {}
    for (dataset, _), methods in alike.items():
        if len(methods) > 1:
            found.setdefault(tuple(methods), []).append(dataset)
    return found
