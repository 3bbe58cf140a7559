"""The command `edrvfl`: each subcommand parses, calls one function and prints."""

from __future__ import annotations

import argparse
import gzip
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # what scikit-learn asks for before it lets tensors through

import edrvfl
from edrvfl.bench.datasets import (
    Dataset,
    csv_dataset,
    dataset_names,
    describe_datasets,
    fetch_datasets,
    load_dataset,
)
from edrvfl.bench.methods import METHODS, method_names
from edrvfl.bench.protocol import RunRecord, check_device
from edrvfl.bench.schedule import Progress, StudyError, grid, run
from edrvfl.bench.store import CellState, Store, StoreError

TRIALS, SEEDS = 10, 3  # enough for a first look; the demo group takes about a minute on two cores
PAPER_TRIALS, PAPER_SEEDS = 200, 10
INTERRUPTED = 130  # what a shell calls a command ended by Ctrl-C

Row = Sequence[str]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status: 0 done, 1 something failed, 2 wrongly called, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        print(f"\nInterrupted. What was done is stored; go on with\n  {_again(arguments)}", file=sys.stderr)
        return INTERRUPTED
    except (StoreError, StudyError) as error:
        print(f"edrvfl: {error}", file=sys.stderr)
        return 1
    except ValueError as error:  # a mistake in what was asked for
        print(f"edrvfl: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, head or less, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _again(arguments: Sequence[str]) -> str:
    return shlex.join(["edrvfl", *arguments])


# --- the commands ------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    if (options.csv is None) != (options.target is None):
        raise ValueError("--csv and --target go together: the table, and the column that holds its classes.")
    trials = options.trials or (PAPER_TRIALS if options.paper else TRIALS)
    seeds = options.seeds or (PAPER_SEEDS if options.paper else SEEDS)
    methods = [METHODS[name] for name in method_names(options.methods)]
    check_device(options.device)
    jobs = options.jobs or (_cores() if options.device == "cpu" else min(8, _cores()))
    datasets = _datasets(options)
    cells = list(grid(methods, datasets, trials, seeds, options.device))
    parts = f"methods: {len(methods)}, datasets: {len(datasets)}"
    size = f"{trials} configurations and {seeds} seeds"
    _say(options, f"{len(cells)} cells ({parts}) of {size}, in {options.store}")
    with _bar(options) as progress:
        records = run(cells, options.store, jobs=jobs, scheduler=options.scheduler, progress=progress)
    print(table(("dataset", "method", "paper choice", "strict choice", "search"), summary(records)))
    _say(
        options,
        "Test accuracy in percent: mean over four splits, mean ± sd over seeds. paper: one configuration for "
        "all splits;\nstrict: each split chooses by its own validation rows.",
    )
    failed = [r for r in records if r.status == "failed"]
    if failed:
        retry = _again(["bench", "retry", "--store", str(options.store)])
        print(f"{len(failed)} cells failed; `{retry}` and run again to try them anew.", file=sys.stderr)
    return 1 if failed else 0


def _datasets(options: argparse.Namespace) -> list[Dataset]:
    names = options.datasets or ([] if options.csv else ["demo"])
    found = [load_dataset(name, options.folder, progress=not options.quiet) for name in dataset_names(names)]
    return [*found, csv_dataset(options.csv, options.target)] if options.csv else found


def _status(options: argparse.Namespace) -> int:
    with Store(options.store, create=False) as store:
        states, held = store.states(), sum(lease.live for lease in store.held())
    print(table(("dataset", "method", "trials", "seeds", "status", "units", "time"), map(_state_row, states)))
    print(overview(states) + (f" {held} units are in work." if held else ""))
    return 0


def _export(options: argparse.Namespace) -> int:
    with Store(options.store, create=False) as store:
        if options.file == "-":
            for line in store.export_lines():
                print(line)
            return 0
        target = Path(options.file)
        part = target.with_name(target.name + ".part")  # a broken export never takes the place of a good one
        opened = gzip.open if target.suffix == ".gz" else open
        try:
            with opened(part, "wt", encoding="utf-8") as lines:
                lines.writelines(line + "\n" for line in store.export_lines())
            part.replace(target)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise StudyError(
                f"{target}: cannot be written ({error.strerror}); the store is intact."
            ) from error
        print(f"{len(store.records())} records with their units: {target}")
    return 0


def _import(options: argparse.Namespace) -> int:
    conflicts = 0
    with Store(options.store) as store:
        for file in options.files:
            try:
                opened = gzip.open if file.endswith(".gz") else open
                with opened(file, "rt", encoding="utf-8") as lines:
                    report = store.import_lines(lines, file)
            except OSError as error:
                raise ValueError(f"{file}: cannot be read ({error.strerror}).") from error
            print(
                f"{file}: {report.new_records} new records, {report.known_records} known; "
                f"{report.new_units} new units, {report.known_units} known"
            )
            for conflict in report.conflicts:
                print(f"  differs from what is stored, which was kept: {conflict}", file=sys.stderr)
            conflicts += len(report.conflicts)
    return 1 if conflicts else 0


def _retry(options: argparse.Namespace) -> int:
    with Store(options.store, create=False) as store:
        print(f"{store.retry()} failed cells are open again; the next `edrvfl bench run` does them.")
    return 0


def _data(options: argparse.Namespace) -> int:
    if options.fetch:
        print(f"The paper's datasets are in {fetch_datasets()}")
    rows = describe_datasets(options.folder, verify=options.verify)
    shown = [(r.name, r.group, str(r.rows), str(r.features), str(r.classes), r.state, r.source) for r in rows]
    print(table(("dataset", "group", "rows", "features", "classes", "state", "source"), shown))
    return 1 if any(row.state.startswith("damaged") for row in rows) else 0


def _report(options: argparse.Namespace) -> int:
    with _needs_bench():
        from edrvfl.bench.report import report_command
    paths = report_command(
        options.store,
        options.out,
        options.format,
        sensitivity=options.sensitivity,
        timing=options.timing,
        figures_folder=options.figures,
    )
    for path in paths:
        print(path)
    return 0


def _sensitivity(options: argparse.Namespace) -> int:
    with _needs_bench():
        from edrvfl.bench.experiments import sensitivity_command
    given = ("datasets", "weights", "rates", "activations", "seeds", "folder")
    paths = sensitivity_command(options.out, progress=_steps(options), **_given(options, given))
    for path in paths:
        print(path)
    return 0


def _timing(options: argparse.Namespace) -> int:
    with _needs_bench():
        from edrvfl.bench.experiments import timing_command
    given = ("methods", "datasets", "warmups", "repeats", "threads", "folder")
    for path in timing_command(options.out, progress=_steps(options), **_given(options, given)):
        print(path)
    return 0


def _given(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """The options that were given; the others keep the function's own defaults."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


@contextmanager
def _needs_bench() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise StudyError(f"this needs the extra `bench`: pip install 'edrvfl[bench]' ({error})") from error


def _steps(options: argparse.Namespace) -> Callable[[int, int, str], None] | None:
    def step(done: int, of: int, what: str) -> None:
        print(f"[{done}/{of}] {what}", file=sys.stderr)

    return None if options.quiet else step


# --- data for the eye --------------------------------------------------------------------------------


def summary(records: Iterable[RunRecord]) -> list[Row]:
    """A row of text for each record: dataset, method, both choices' accuracy, seconds of the search."""
    rows: list[Row] = []
    for record in records:
        if record.status == "ok":
            choices = [_accuracy(record, name) for name in ("paper", "strict")]
            rows.append((record.dataset, record.method, *choices, f"{record.search_seconds:.1f} s"))
        else:
            first_line = (record.message or "").splitlines()[0]
            rows.append((record.dataset, record.method, "failed", first_line, ""))
    return rows


def _accuracy(record: RunRecord, choice: str) -> str:
    mean, sd = record.choices[choice].mean_and_sd()
    return f"{100 * mean:.2f}" if math.isnan(sd) else f"{100 * mean:.2f} ± {100 * sd:.2f}"


def _state_row(state: CellState) -> Row:
    units = f"{state.done}" if state.finished else f"{state.done} of {state.units}"
    numbers = (str(state.trials), str(state.seeds))
    message = f": {state.message.splitlines()[0]}" if state.message else ""
    return (state.dataset, state.method, *numbers, state.status + message, units, f"{state.seconds:.1f} s")


def overview(states: Sequence[CellState]) -> str:
    """How much is done, and how long the rest will take one worker."""
    number = {name: sum(s.status == name for s in states) for name in ("ok", "failed", "started", "waiting")}
    text = (
        f"{len(states)} cells: {number['ok']} done, {number['failed']} failed, {number['started']} started, "
        f"{number['waiting']} waiting."
    )
    left = seconds_left(states)
    if left is None:
        return text + " No unit is done yet, so how long the rest takes is not known."
    return text + (f" At most {duration(left)} of one worker's time left." if left else "")


def seconds_left(states: Sequence[CellState]) -> float | None:
    """Units left times the mean of those done on the dataset, or of all where it has none; None: no idea."""

    def pace(of: Iterable[CellState]) -> float | None:
        seconds, units = (sum(column) for column in zip(*((s.seconds, s.done) for s in of), strict=True))
        return seconds / units if units else None

    left = 0.0
    for state in (s for s in states if not s.finished):
        rate = pace([s for s in states if s.dataset == state.dataset]) or pace(states)
        if rate is None:
            return None
        left += rate * (state.units - state.done)
    return left


def duration(seconds: float) -> str:
    """A time in words.

    Examples
    --------
    >>> duration(42), duration(150), duration(3 * 3600)
    ('42 s', '2.5 min', '3.0 h')
    """
    size, unit = next(((n, u) for n, u in ((3600, "h"), (60, "min")) if seconds >= 2 * n), (1, "s"))
    return f"{seconds / size:.1f} {unit}" if size > 1 else f"{seconds:.0f} s"


def table(header: Row, rows: Iterable[Row]) -> str:
    """Columns of text, aligned."""
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


# --- progress ----------------------------------------------------------------------------------------


class _Bar:
    """A line for every finished cell, and on a terminal a bar with rate, time left and the best so far."""

    def __init__(self) -> None:
        try:
            from tqdm import tqdm
        except ImportError:  # the extra `bench` brings it; lines alone will do
            self._tqdm: Any = None
        else:
            self._tqdm = tqdm(desc="study", unit=" units", disable=None, dynamic_ncols=True, smoothing=0.05)
        self._start = time.monotonic()
        self._units_before: int | None = None
        self._best: dict[str, tuple[float, str]] = {}

    def __enter__(self) -> Callable[[Progress], None]:
        return self._report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._tqdm is not None:
            self._tqdm.close()

    def _report(self, progress: Progress) -> None:
        resumed = self._units_before is None  # the first report tells what earlier runs did
        if self._units_before is None:
            self._units_before = progress.units_done
        for record in progress.new:
            self._note_best(record)
        before = progress.cells_done - len(progress.new)
        for number, record in enumerate(() if resumed else progress.new, before + 1):
            self._write(
                f"[{number}/{progress.cells}] " + "  ".join(summary([record])[0]) + self._left(progress)
            )
        if self._tqdm is not None:
            bar = self._tqdm
            bar.total = progress.units
            if resumed:
                bar.initial = progress.units_done
            bar.n = progress.units_done
            bar.set_postfix_str(
                f"cells {progress.cells_done}/{progress.cells}{self._best_text()}", refresh=True
            )

    def _write(self, text: str) -> None:
        if self._tqdm is not None:
            self._tqdm.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr)

    def _left(self, progress: Progress) -> str:
        done = progress.units_done - (self._units_before or 0)
        if not done or progress.units == progress.units_done:
            return ""
        rate = (time.monotonic() - self._start) / done
        return f"  (about {duration(rate * (progress.units - progress.units_done))} left)"

    def _note_best(self, record: RunRecord) -> None:
        if record.status == "ok":
            accuracy = record.choices["strict"].mean_and_sd()[0]
            found = (accuracy, record.method)
            before = self._best.pop(record.dataset, found)  # the dataset moves to the end
            self._best[record.dataset] = max(before, found, key=lambda pair: pair[0])

    def _best_text(self) -> str:
        if not self._best:
            return ""
        dataset, (accuracy, method) = list(self._best.items())[-1]
        return f", best on {dataset}: {method} {100 * accuracy:.2f}"


def _bar(options: argparse.Namespace) -> AbstractContextManager[Callable[[Progress], None] | None]:
    return nullcontext(None) if options.quiet else _Bar()


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        print(text, file=sys.stderr)


# --- the parser --------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("edrvfl", description=edrvfl.__doc__)
    parser.add_argument("--version", action="version", version=f"edrvfl {edrvfl.__version__}")
    bench = parser.add_subparsers(title="commands", required=True).add_parser(
        "bench", help="the study: methods on datasets by the paper's protocol"
    )
    commands = bench.add_subparsers(title="commands", required=True)

    def command(name: str, function: Callable[[argparse.Namespace], int], text: str) -> Any:
        added = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        added.set_defaults(command=function)
        return added

    add = command(
        "run", _run, "search, refit and score; what the store holds already is not done again"
    ).add_argument
    add(
        "--methods", nargs="+", default=["edrvfl"], metavar="NAME", help="methods or groups (default: edrvfl)"
    )
    add("--datasets", nargs="+", metavar="NAME", help="datasets or groups: demo, uci24 (default: demo)")
    add("--csv", type=Path, metavar="PATH", help="a table of your own with numeric columns and a header")
    add("--target", metavar="NAME", help="the column of that table which holds the classes")
    add("--folder", type=Path, help="where the paper's datasets are (default: EDRVFL_DATA, or downloaded)")
    add("--trials", type=_count, help=f"configurations tried in each search (default: {TRIALS})")
    add("--seeds", type=_count, help=f"refits with other hidden layers (default: {SEEDS})")
    add(
        "--paper",
        action="store_true",
        help=f"the paper's size: --trials {PAPER_TRIALS} --seeds {PAPER_SEEDS}",
    )
    _add_store(add)
    add(
        "--jobs",
        type=_count,
        help=f"processes to work in (default: one a core, here {_cores()}; with cuda at most 8)",
    )
    add(
        "--device",
        default="cpu",
        choices=("cpu", "cuda"),
        help="cuda needs torch (default: cpu)",
    )
    add("--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers compute instead of --jobs")
    add("--quiet", action="store_true", help="print the table alone")

    _add_store(
        command("status", _status, "what is done, failed and left, and how long it will take").add_argument
    )

    add = command("export", _export, "write records and validation scores as JSON lines").add_argument
    _add_store(add)
    add("file", nargs="?", default="-", help="packed if it ends in .gz (default: standard output)")

    add = command(
        "import", _import, "add exported JSON lines; what is known already is left alone"
    ).add_argument
    _add_store(add)
    add("files", nargs="+")

    _add_store(
        command("retry", _retry, "forget failures, so that the next run tries them again").add_argument
    )

    add = command("report", _report, "write what the store holds as a page to read").add_argument
    _add_store(add)
    add("--out", type=Path, default=Path("report.html"), help="file to write (default: %(default)s)")
    add("--format", choices=("html", "md", "latex", "csv"), help="default: by the ending of --out")
    add("--sensitivity", type=Path, metavar="JSON", help="what `edrvfl bench sensitivity` wrote")
    add("--timing", type=Path, metavar="JSON", help="what `edrvfl bench timing` wrote")
    add("--figures", type=Path, metavar="FOLDER", help="also write every figure as SVG and CSV there")

    add = command(
        "sensitivity", _sensitivity, "accuracy against omega_r and p, as in section 5.5"
    ).add_argument
    add("--out", type=Path, default=Path("sensitivity"), help="folder to write (default: %(default)s)")
    add("--datasets", nargs="+", metavar="NAME", help="default: the paper's four")
    add("--weights", nargs="+", type=float, metavar="OMEGA", help="default: 1 0.8 0.6 0.4 0.2")
    add("--rates", nargs="+", type=float, metavar="P", help="default: 0 0.2 0.4 0.6 0.8")
    add("--activations", nargs="+", metavar="G", help="default: relu sigmoid")
    add("--seeds", type=_count, help="default: 10")
    add("--folder", type=Path, help="where the paper's datasets are")
    add("--quiet", action="store_true", help="print the paths alone")

    add = command("timing", _timing, "training times, as in the paper's Table 8").add_argument
    add("--out", type=Path, default=Path("timing"), help="folder to write (default: %(default)s)")
    add("--methods", nargs="+", metavar="NAME", help="default: WPedRVFL")
    add("--datasets", nargs="+", metavar="NAME", help="default: the paper's five")
    add("--warmups", type=_count, help="default: 1")
    add("--repeats", type=_count, help="default: 5")
    add("--threads", type=_count, help="BLAS threads (default: 1)")
    add("--folder", type=Path, help="where the paper's datasets are")
    add("--quiet", action="store_true", help="print the paths alone")

    add = command("data", _data, "the datasets, their shapes and where they are").add_argument
    add("--folder", type=Path, help="where to look first (default: EDRVFL_DATA)")
    add("--verify", action="store_true", help="read them and check their checksums")
    add("--fetch", action="store_true", help="download what is missing")
    return parser


def _add_store(add: Callable[..., Any]) -> None:
    add("--store", type=Path, default=Path("study.db"), help="the file that remembers (default: %(default)s)")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def _cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
