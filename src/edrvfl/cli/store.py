"""Commands on the store: `edrvfl bench status | export | import | compare | retry | report`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from edrvfl.bench import exchange
from edrvfl.bench.store import CellState, Store

from . import options, show

if TYPE_CHECKING:
    from edrvfl.bench.changes import Change, Trend

TREND_COLUMNS = (
    *("method", "figure", "datasets", "before", "after", "change"),
    *("better / equal / worse", "p", "p Holm"),
)
CHANGE_COLUMNS = ("dataset", "method", "figure", "before", "after", "change", "now")
CHANGE_LEGEND = (
    "Figures of searches are those of the strict choice. Equal is equal in the digits shown. p: Wilcoxon's\n"
    "signed-rank test over datasets, two-sided and exact, from six datasets on; Holm: over the methods of a\n"
    "table and figure. Seconds of different machines are no finding."
)
STATES = {"ok": "done", "failed": "failed", "started": "started", "waiting": "waiting"}


def show_status(store: options.Store = options.STORE) -> int:
    """Show what is done, failed and left. It says how long the rest will take, too."""
    with Store(store, create=False) as opened:
        states = opened.states(kind=None)
    header = ("dataset", "method", "trials", "seeds", "status", "units", "time")
    show.put(show.table(header, map(_state_row, states)))
    for state in states:  # below the table, which a long message would make too wide to read
        if state.message:
            show.put(f"{state.method} on {state.dataset} failed: {state.message.splitlines()[0]}")
    show.put(overview(states))
    show.say("A cell is one method on one dataset; a unit is one step of its search, or one refit.")
    return 0


def export_store(
    file: Annotated[
        Path | None, typer.Argument(help="Packed if the name ends in .gz.", show_default="standard output")
    ] = None,
    store: options.Store = options.STORE,
) -> int:
    """Write records and validation scores as lines of JSON."""
    with Store(store, create=False) as opened:
        if file is None or str(file) == "-":
            for line in exchange.export_lines(opened):
                show.put(line)
            return 0
        exchange.export_file(opened, file)
        show.put(f"{show.plural(len(opened.finished()), 'record')} with all searches: {file}")
    return 0


def import_files(
    files: Annotated[list[Path], typer.Argument(help="What `edrvfl bench export` wrote.")],
    store: options.Store = options.STORE,
) -> int:
    """Add exported lines of JSON. What is known already is left alone."""
    reports = exchange.import_files(store, files)
    for file, report in reports.items():
        show.put(
            f"{file}: {show.plural(report.new_records, 'new record')}, {report.known_records} known; "
            f"{show.plural(report.new_units, 'new unit')}, {report.known_units} known"
        )
        for conflict in report.conflicts:
            show.say(f"  differs from what is stored, which was kept: {conflict}")
    return 1 if any(report.conflicts for report in reports.values()) else 0


def retry_failures(
    cell: Annotated[
        str | None, typer.Option(metavar="KEY", help="Forget this cell instead, by the start of its key.")
    ] = None,
    store: options.Store = options.STORE,
) -> int:
    """Forget failures, so that the next run tries them again."""
    with Store(store, create=False, own=True) as opened:
        if cell is not None:
            show.put(f"{show.plural(opened.forget(cell), 'cell')} forgotten, with all that was stored of it.")
            return 0
        failed = opened.retry()
    show.put(f"{show.plural(failed, 'failed cell')} open again; the next `edrvfl bench run` tries them.")
    return 0


def compare_runs(
    before: Annotated[Path, typer.Argument(help="A store, or what `edrvfl bench export` wrote.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    most: Annotated[int, options.counted("Single figures to show, the largest changes first.")] = 20,
) -> int:
    """Show what changed between two runs. By method with paired tests, and by dataset."""
    from edrvfl.bench.changes import find_changes  # SciPy's tests are slow to import

    found = find_changes(before, after)
    for kind in dict.fromkeys(trend.kind for trend in found.trends):
        of_kind = [trend for trend in found.trends if trend.kind == kind]
        moved = [trend for trend in of_kind if trend.moved]
        equal = f"; {len(of_kind) - len(moved)} of {len(of_kind)} figures of a method did not change"
        show.put(f"{kind}: means over the datasets of both runs{equal}")
        if moved:
            show.put(show.table(TREND_COLUMNS, map(_trend_row, moved)))
        show.put("")
    if largest := found.largest(most):
        show.put("The largest changes", show.table(CHANGE_COLUMNS, map(_change_row, largest)), "")
    elif found.trends:
        show.put("No figure changed but seconds.")
    for (_, method, dataset), what in found.broken:
        show.put(f"{method} on {dataset} {what}")
    for path, cells in ((before, found.only_before), (after, found.only_after)):
        if cells:
            methods = {method: [d for _, m, d in cells if m == method] for _, method, _ in cells}
            names = [f"{method} on {show.listing(datasets)}" for method, datasets in methods.items()]
            show.put(f"Only in {path}: {'; '.join(names)}.")
    if other := found.other_data():
        names = sorted({dataset for *_, dataset in other})
        show.say(f"Other rows or splits in the two runs, so not the same task: {show.listing(names)}.")
    if found.trends:
        show.say(CHANGE_LEGEND)
    elif not found.broken:
        show.put("The two have no cell in common.")
    return 0


def write_page(
    store: options.Store = options.STORE,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("report.html"),
    format: Annotated[
        Literal["html", "md", "csv"] | None, typer.Option(show_default="by the ending of --out")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write every figure there too, as SVG and CSV.")
    ] = None,
) -> int:
    """Write what the store holds as a page to read."""
    from edrvfl.bench.report import write_report  # matplotlib is slow to import

    show.put(*map(str, write_report(store, out, format, figures_folder=figures)))
    return 0


def _trend_row(trend: Trend) -> show.Row:
    f = trend.figure
    means = [f.scale * statistics.fmean(values) for values in trend.both()]
    texts = [f"{mean:.{f.digits}f}" for mean in means]
    p_values = [f"{p:.2g}" for p in (trend.p_exact, trend.p_holm)] if trend.testable else ["", ""]
    counts = " / ".join(map(str, trend.counts()))
    change = f"{means[1] - means[0]:+.{f.digits}f}"
    return (trend.method, f.words, str(len(trend.changes)), *texts, change, counts, *p_values)


def _change_row(change: Change) -> show.Row:
    f, (_, method, dataset) = change.figure, change.cell
    values = [f"{f.scale * value:.{f.digits}f}" for value in (change.before, change.after)]
    difference = f"{f.scale * change.difference:+.{f.digits}f}"
    word = "better" if f.sign * change.difference > 0 else "worse"
    return (dataset, method, f.words, *values, difference, word)


def _state_row(state: CellState) -> show.Row:
    units = f"{state.done}" if state.finished else f"{state.done} of {state.units}"
    numbers = (str(state.trials), str(state.seeds))
    return (state.dataset, state.method, *numbers, state.status, units, f"{state.seconds:.1f} s")


def overview(states: Sequence[CellState]) -> str:
    """Say how much is done, and how long the rest will take one worker."""
    numbers = [f"{sum(s.status == name for s in states)} {word}" for name, word in STATES.items()]
    text = f"{show.plural(len(states), 'cell')}: {', '.join(numbers)}."
    left = seconds_left(states)
    if left is None:
        return f"{text} No unit is done yet, so how long the rest takes is not known."
    return f"{text} At most {show.duration(left)} of one worker's time left." if left else text


def seconds_left(states: Sequence[CellState]) -> float | None:
    """Multiply the units left by the mean time of a unit done on the dataset, or on all if it has none.

    None stands for no idea: no unit is done at all.
    """
    left = 0.0
    for state in (s for s in states if not s.finished):
        pace = _pace(s for s in states if s.dataset == state.dataset) or _pace(states)
        if pace is None:
            return None
        left += pace * (state.units - state.done)
    return left


def _pace(states: Iterable[CellState]) -> float | None:
    """Return the mean seconds of a unit, None if no unit is done."""
    known = list(states)
    units = sum(state.done for state in known)
    return sum(state.seconds for state in known) / units if units else None
