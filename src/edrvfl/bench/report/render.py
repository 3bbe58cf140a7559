"""Summary in, text out: one HTML file, Markdown, LaTeX or CSV."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from .. import experiments, figures, published
from ..experiments import Sensitivity, Timing
from ..published import Table, Value, two_digits
from ..statistics import mean
from .summarise import (
    CHOICES,
    ODDITIES,
    ChoiceSummary,
    Summary,
    heatmap_table,
    long_table,
    p_text,
    published_rows,
    published_table,
    ranks_table,
    read_study,
    sensitivity_tables,
    summarise,
    time_table,
)

FORMATS: Mapping[str, str] = {"html": "report.html", "md": "report.md", "latex": "report.tex", "csv": ""}
SUFFIXES: Mapping[str, str] = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".markdown": "md",
    ".tex": "latex",
    ".latex": "latex",
    ".csv": "csv",
}


# --- the page as data ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows, what it is sorted by, and a word on it for the eye and for style sheets."""

    text: str
    value: Value = None
    mark: str = ""  # "best", "differs", "agrees", "failed" or "missing"


@dataclass(frozen=True, slots=True)
class Row:
    """A heading and cells; it hides with the method, or either of the two, that it is about."""

    head: str
    cells: tuple[Cell, ...]
    method: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table for the eye. `methods` says which method a column belongs to, if any."""

    key: str
    caption: str
    columns: tuple[str, ...]  # the first is that of the row headings
    rows: tuple[Row, ...]
    foot: tuple[Row, ...] = ()
    methods: tuple[str | None, ...] = ()
    notes: tuple[str, ...] = ()
    scores: bool = False  # a table of accuracies, whose foot follows the methods shown
    folded: bool = False  # long and seldom read: shown when asked for


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure with its data."""

    key: str
    title: str
    description: str
    table: Table
    draw: Callable[[Table], Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what is under it, in this order."""

    key: str
    title: str
    text: tuple[str, ...] = ()
    items: tuple[tuple[str, str], ...] = ()  # a term and its meaning; or "" and a point of a list
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = ()


def sections(summary: Summary) -> tuple[Section, ...]:
    """The report, part by part; the same for every format."""
    parts = (
        _how,
        _accuracy,
        _statistics,
        _published,
        _depth_and_time,
        _sensitivity,
        _timing,
        _missing,
        _origins,
        _oddities,
    )
    return tuple(section for part in parts if (section := part(summary)) is not None)


# --- the parts -------------------------------------------------------------------------------------------


def _how(s: Summary) -> Section:
    done, failed = len(s.with_status("ok")), len(s.with_status("failed"))
    rest = len(s.results) - done - failed
    sizes = sorted({(r.trials, r.seeds) for r in s.with_status("ok")}, key=str)
    extent = "; ".join(f"{t} configurations in each search and {seeds} hidden seeds" for t, seeds in sizes)
    text = [
        f"{_count(len(s.methods), 'method')} on {_count(len(s.datasets), 'dataset')}: {done} cells done, "
        f"{failed} failed, {rest} missing." + (f" {extent}." if extent else ""),
        "A cell is one method on one dataset. Every configuration is fitted on a split's fit rows and scored "
        "on its validation rows at every depth; the chosen one is fitted again on fit and validation rows "
        "and "
        "scored on the test rows. A figure is the mean over the splits; mean and standard deviation (±) are "
        "over the hidden seeds, which redraw the random layers only. A cell runs on one BLAS thread.",
    ]
    if s.finished:
        first, last = (date[:16].replace("T", " ") for date in s.finished)
        text.append(f"Finished {first} UTC." if first == last else f"Finished from {first} to {last} UTC.")
    items = tuple((f"{name} choice", meaning) for name, meaning in CHOICES.items())
    return Section("how", "What was run and how", (*text, *s.notes), items)


def _accuracy(s: Summary) -> Section:
    grids = tuple(_accuracy_grid(s, choice) for choice in s.choices.values() if choice.scores.methods)
    if not grids:
        return Section("accuracy", "Accuracy", ("There are no figures to show.",))
    table = heatmap_table(s)
    drawn: tuple[Picture, ...] = ()
    if table is not None:
        description = (
            f"{_count(len(s.strict.scores.datasets), 'row')}, one for each dataset, and a column for each "
            "method; "
            "the darker a cell, the farther it is behind the best of its row."
        )
        drawn = (Picture(table.name, table.title, description, table, figures.heatmap_figure),)
    gaps = [r.accuracy["paper"] - r.accuracy["strict"] for r in s.with_status("ok")]
    gap = sum(gaps) / len(gaps)
    text = (
        f"Over {_count(len(gaps), 'cell')} the paper's choice is on average {abs(gap):.2f} points "
        f"{'above' if gap > 0 else 'below'} the strict one."
    )
    return Section("accuracy", "Accuracy", (text,), grids=grids, pictures=drawn)


def _accuracy_grid(s: Summary, choice: ChoiceSummary) -> Grid:
    scores = choice.scores
    rows = []
    for d in scores.datasets:
        figures_of = [scores.get(d, m) for m in scores.methods]
        best = max((f for f in figures_of if f is not None), default=None)
        cells = []
        for m, figure in zip(scores.methods, figures_of, strict=True):
            result = s.result(d, m)
            if figure is None:
                cells.append(Cell(result.status, None, "failed" if result.status == "failed" else "missing"))
            else:
                sd = result.sd.get(choice.name)
                text = f"{figure:.2f}" + ("" if sd is None else f" ± {sd:.2f}")
                cells.append(Cell(text, figure, "best" if figure == best and len(figures_of) > 1 else ""))
        rows.append(Row(d, tuple(cells)))
    foot = [
        Row("mean", tuple(_number(choice.means.get(m)) for m in scores.methods)),
        Row("average rank", tuple(_number(choice.ranks.get(m)) for m in scores.methods)),
    ]
    return Grid(
        f"accuracy-{choice.name}",
        f"Test accuracy in percent, {choice.name} choice",
        ("dataset", *scores.methods),
        tuple(rows),
        tuple(foot),
        (None, *scores.methods),
        (_common(choice), "The best of a dataset is marked with *."),
        scores=True,
    )


def _common(choice: ChoiceSummary) -> str:
    common, every = choice.common, choice.scores.datasets
    left = [d for d in every if d not in common]
    behind = [m for m in choice.scores.methods if m not in choice.compared.methods]
    who = "the other methods" if behind else "all methods shown"
    text = f"Means, ranks and tests are over the {_count(len(common), 'dataset')} that {who} have"
    if left and common:
        text += f" ({', '.join(common)})"
    text += f"; left out: {', '.join(left)}." if left else "."
    return text + (f" Not compared, for they have fewer: {', '.join(behind)}." if behind else "")


def _statistics(s: Summary) -> Section:
    strict = s.strict
    if len(strict.scores.methods) < 2 or not strict.common:
        why = "Ranks and tests need two methods and a dataset that both have."
        return Section("statistics", "Ranks and tests", (why,))
    text = [
        "Wilcoxon's signed-rank test, paired by dataset, two-sided; equal figures are left out. The normal "
        "approximation corrects for ties and has no continuity correction; the exact test counts every "
        "assignment of signs. Accuracies are rounded to the printed digits first. Holm's adjustment is over "
        "all pairs."
    ]
    for choice in s.choices.values():
        if choice.friedman is not None:
            f = choice.friedman
            text.append(
                f"Friedman's test, {choice.name} choice: chi-square {f.statistic:.2f}, p = "
                f"{p_text(f.p_value)}, "
                f"{f.n_methods} methods, {f.n_datasets} datasets."
            )
    pictures = []
    table, cd = ranks_table(s), strict.critical_difference
    if table is None or cd is None:
        text.append("No critical-difference diagram: it needs two methods and two datasets.")
    else:
        groups = "; ".join(", ".join(group) for group in cd.groups) or "none"
        ranked = ", ".join(f"{m} {rank:.2f}" for m, rank in zip(cd.methods, cd.ranks, strict=True))
        description = (
            f"From best to worst: {ranked}. Ranks closer than {cd.difference:.2f} are not told apart by "
            f"Nemenyi's test at {cd.alpha:g}; "
            f"groups not told apart: {groups}."
        )
        pictures.append(
            Picture(table.name, table.title, description, table, figures.critical_difference_figure)
        )
    grids = [g for c in s.choices.values() for g in (_signs_grid(c), _pairs_grid(c))]
    return Section("statistics", "Ranks and tests", tuple(text), (), tuple(grids), tuple(pictures))


def _signs_grid(choice: ChoiceSummary) -> Grid:
    pairs = choice.pairs

    def cell(row: str, column: str) -> Cell:
        plain, adjusted = (pairs.sign(row, column, adjust=a) for a in (False, True))
        if row == column:
            return Cell("")
        return Cell(adjusted or (f"({plain})" if plain else "·"), adjusted or plain)

    rows = tuple(Row(m, tuple(cell(m, n) for n in pairs.methods), m) for m in pairs.methods)
    note = (
        f"+ the row's method is better than the column's at {pairs.alpha:g}, - worse, after Holm; in "
        "brackets: "
        "only without Holm; a dot: neither."
    )
    title = f"Pairwise signs, {choice.name} choice"
    return Grid(
        f"signs-{choice.name}", title, ("method", *pairs.methods), rows, (), (None, *pairs.methods), (note,)
    )


def _pairs_grid(choice: ChoiceSummary) -> Grid:
    rows = tuple(
        Row(
            f"{c.first} against {c.second}",
            (
                Cell(f"{c.wins} / {c.ties} / {c.losses}", c.wins - c.losses),
                Cell(f"{c.mean_difference:+.2f}", c.mean_difference),
                _p(c.p_normal),
                _p(c.p_exact),
                _p(adjusted),
            ),
            c.first,
            c.second,
        )
        for c, adjusted in zip(choice.pairs.comparisons, choice.pairs.adjusted, strict=True)
    )
    columns = ("pair", "win / tie / loss", "mean difference", "p, normal", "p, exact", "p, normal, Holm")
    title = f"All pairs, {choice.name} choice"
    return Grid(f"pairs-{choice.name}", title, columns, rows, folded=len(rows) > 12)


def _published(s: Summary) -> Section:
    differ = [p for p in published.printed_p_values() if p.differs]
    signs = published.printed_signs()
    wrong = sum(sign.differs for sign in signs)
    text = (
        "Published: as the paper prints it. Recomputed: what follows from the paper's own Table 3. Measured: "
        "this study, with the paper's choice. The measured mean is over the datasets of Table 3 that the "
        "method has here; beside it is the published mean over the same.",
        f"All 12 means and average ranks follow from Table 3; {len(differ)} of "
        f"{len(published.printed_p_values())} "
        f"p-values of Table 4 and {wrong} of {len(signs)} signs of Table 5 do not.",
    )
    pictures = []
    if (table := published_table(s)) is not None:
        rows = table.records()
        above = sum(float(r["measured"] or 0) > float(r["published"] or 0) for r in rows)
        description = f"{_count(len(rows), 'cell')}, {above} of them above the diagonal of equality."
        pictures.append(Picture(table.name, table.title, description, table, figures.published_figure))
    grids = (_foot_grid(s), _p_values_grid(s), _printed_signs_grid(), _sd_grid(s))
    return Section("published", "Published, recomputed, measured", text, (), grids, tuple(pictures))


def _foot_grid(s: Summary) -> Grid:
    measured: dict[str, list[tuple[float, float]]] = {}
    for _, method, printed, ours in published_rows(s.results):
        measured.setdefault(method, []).append((printed, ours))
    rows = []
    for foot in published.feet():
        pairs = measured.get(foot.method, [])
        our_mean, their_mean = (mean(p[i] for p in pairs) if pairs else None for i in (1, 0))
        gap = None if our_mean is None or their_mean is None else our_mean - their_mean
        cells = [_number(v) for v in (foot.mean, foot.recomputed_mean, foot.rank, foot.recomputed_rank)]
        cells += [_verdict(foot.differs), _number(s.paper.ranks.get(foot.method)), _number(our_mean)]
        cells += [_number(their_mean), Cell("" if gap is None else f"{gap:+.2f}", gap)]
        cells += [Cell(str(len(pairs)) if pairs else "", len(pairs) or None)]
        rows.append(Row(foot.method, tuple(cells), foot.method))
    columns = (
        "method",
        "mean, published",
        "mean, recomputed",
        "rank, published",
        "rank, recomputed",
        "verdict",
        "rank, measured",
        "mean, measured",
        "mean, published, same datasets",
        "difference",
        "datasets",
    )
    note = "The measured rank is among the methods compared, over the datasets that all of them have."
    title = "Mean accuracy in percent and average rank (Tables 3 and 4)"
    return Grid("published-means", title, columns, tuple(rows), notes=(note,))


def _sd_grid(s: Summary) -> Grid:
    rows = []
    for foot in published.feet():
        if foot.sd is not None:
            sds = [r.sd["paper"] for r in s.results if r.method == foot.method and "paper" in r.sd]
            known = [sd for sd in sds if sd is not None]
            cells = [_number(foot.sd), _number(foot.recomputed_sd), _verdict(foot.differs)]
            cells += [_number(sum(known) / len(known) if known else None)]
            cells += [Cell(str(len(known)) if known else "", len(known) or None)]
            rows.append(Row(foot.method, tuple(cells), foot.method))
    columns = ("method", "published", "recomputed", "verdict", "measured", "datasets")
    title = "Mean over datasets of the standard deviation over seeds, in points (Table 6)"
    return Grid("published-sd", title, columns, tuple(rows))


def _p_values_grid(s: Summary) -> Grid:
    rows = []
    for p in published.printed_p_values():
        c = p.comparison
        cells = [
            Cell(two_digits(p.printed), p.printed),
            Cell(two_digits(c.p_normal), c.p_normal),
            Cell(two_digits(c.p_exact), c.p_exact),
            _verdict(p.differs),
            Cell(f"{c.wins} / {c.ties} / {c.losses}", c.wins - c.losses),
        ]
        if {published.BEST, p.method} <= set(s.paper.pairs.methods) and s.paper.common:
            ours = s.paper.pairs.pair(published.BEST, p.method)
            cells += [
                _p(ours.p_normal),
                Cell(f"{ours.wins} / {ours.ties} / {ours.losses}", ours.wins - ours.losses),
            ]
        else:
            cells += [Cell(""), Cell("")]
        rows.append(Row(p.method, tuple(cells), p.method))
    columns = (
        "WPedRVFL against",
        "p, published",
        "p, recomputed (normal)",
        "p, recomputed (exact)",
        "verdict",
        "win / tie / loss, recomputed",
        "p, measured (normal)",
        "win / tie / loss, measured",
    )
    note = "The verdict compares the published value with the normal approximation, to two digits."
    title = "Wilcoxon p-values of WPedRVFL against each method (Table 4)"
    return Grid("published-p", title, columns, tuple(rows), notes=(note,))


def _printed_signs_grid() -> Grid:
    signs = {(sign.row, sign.column): sign for sign in published.printed_signs()}
    methods = tuple(dict.fromkeys(row for row, _ in signs))

    def cell(row: str, column: str) -> Cell:
        if row == column:
            return Cell("")
        sign = signs[row, column]
        printed, recomputed = sign.printed or "·", sign.recomputed or "·"
        if sign.differs:
            return Cell(f"{printed} differs: {recomputed}", recomputed, "differs")
        return Cell(printed, printed)

    rows = tuple(Row(m, tuple(cell(m, n) for n in methods), m) for m in methods)
    note = (
        "+ the row's method is better than the column's at 0.05, - worse, a dot: neither. Where they differ, "
        "the published sign comes first and the recomputed one, without Holm, after it."
    )
    title = "Signs of all pairs (Table 5), published and recomputed"
    return Grid("published-signs", title, ("method", *methods), rows, (), (None, *methods), (note,))


def _depth_and_time(s: Summary) -> Section | None:
    if not s.strict.scores.methods:
        return None
    pictures, text = [], []
    if s.depth is None:
        text.append("Accuracy by depth is not shown: the validation scores of the searches are not at hand.")
    else:
        note = "Each depth with its own best configuration, so these are choices, not test figures."
        pictures.append(Picture(s.depth.name, s.depth.title, note, s.depth, figures.depth_figure))
    if (table := time_table(s)) is not None:
        note = (
            "Seconds of one fit on training rows: the median over splits and seeds, then the geometric mean."
        )
        pictures.append(Picture(table.name, table.title, note, table, figures.time_figure))
    else:
        text.append("Time against accuracy is not shown: there is no dataset that all methods have.")
    return Section("depth-time", "Depth and time", tuple(text), pictures=tuple(pictures))


def _sensitivity(s: Summary) -> Section | None:
    if s.sensitivity is None:
        return None
    result = s.sensitivity
    settings = ", ".join(f"{key} = {value}" for key, value in result.settings.items())
    text = [
        f"Section 5.5 of the paper, with its fixed settings ({settings}) and "
        f"{_count(result.seeds, 'hidden seed')}; mean over the splits, bands of one standard deviation over "
        "the seeds. The paper does not name its activation; where training accuracy is 100 %, weighting has "
        "nothing to act on. The paper's figures are not in its source, so the comparison is with its text. A "
        "change is called clear beyond two standard errors, paired by seed; the best value is found on test "
        "rows, so gains are flattered.",
    ]
    grids, pictures = [], []
    for parameter, table in sensitivity_tables(s).items():
        sentences = experiments.sensitivity_sentences(result, parameter)
        text.append(" ".join(sentences))
        description = "Bands of one standard deviation over the seeds; a panel for each dataset."
        pictures.append(Picture(table.name, table.title, description, table, figures.sensitivity_figure))
        grids.append(_effects_grid(result, parameter))
    title = "Effects of weighting and pruning (section 5.5)"
    return Section("sensitivity", title, tuple(text), (), tuple(grids), tuple(pictures))


def _effects_grid(result: Sensitivity, parameter: str) -> Grid:
    rows = []
    for e in experiments.effects(result, parameter):
        cells = (
            Cell(e.activation, e.activation),
            _number(e.best_value),
            _plus_minus(e.gain, e.gain_error),
            _plus_minus(e.last_change, e.last_error),
            _number(e.train_accuracy),
            Cell(e.verdict, e.verdict),
            Cell(e.paper or "", e.paper),
            Cell("") if e.agrees is None else _verdict(not e.agrees),
        )
        rows.append(Row(e.dataset, cells))
    symbol = experiments.SYMBOLS[parameter]
    columns = (
        "dataset",
        "activation",
        f"best {symbol}",
        "gain in points ± standard error",
        "change at the last value",
        "training accuracy",
        "measured",
        "paper's text",
        "verdict",
    )
    return Grid(f"effects-{parameter}", f"What {symbol} does", columns, tuple(rows))


def _timing(s: Summary) -> Section | None:
    if s.timing is None:
        return None
    t: Timing = s.timing
    text = (
        f"Section 5.6 of the paper: seconds of one fit on the training rows of the first split, median of "
        f"{t.repeats} after {_count(t.warmups, 'warm-up')}, {_count(t.threads, 'BLAS thread')} "
        f"({'; '.join(t.blas) or 'BLAS unknown'}), {t.processor}.",
        " ".join(experiments.timing_sentences(t)),
    )
    rows = []
    for timed, record in zip(t.timed, t.table().records(), strict=True):
        spread = f"{record['least_s']:.4f} to {record['most_s']:.4f}"
        cells = (
            Cell(timed.method, timed.method),
            Cell(str(timed.rows), timed.rows),
            Cell(str(timed.features), timed.features),
            _number(timed.median, 4),
            Cell(spread, min(timed.seconds)),
            _number(record["published_s"], 4),
        )
        rows.append(Row(timed.dataset, cells, timed.method))
    columns = ("dataset", "method", "rows", "features", "median", "least to most", "published (Table 8)")
    used = tuple(dict.fromkeys(f"{timed.method}: {timed.parameters}" for timed in t.timed))
    grid = Grid("timing", "Training time in seconds", columns, tuple(rows), notes=used)
    return Section("timing", "Training time (section 5.6)", text, (), (grid,))


def _missing(s: Summary) -> Section:
    without = [r for r in s.results if r.status != "ok"]
    if not without:
        text = (
            "None: every method has a figure on every dataset." if s.results else "There are no cells at all."
        )
        return Section("missing", "Failed and missing cells", (text,))
    rows = tuple(
        Row(
            r.dataset,
            (
                Cell(r.method, r.method),
                Cell(r.status, r.status, "failed" if r.status == "failed" else "missing"),
                Cell(r.message or "", r.message),
            ),
            r.method,
        )
        for r in without
    )
    title = f"{_count(len(without), 'cell')} without a figure"
    grid = Grid("missing", title, ("dataset", "method", "status", "message"), rows)
    return Section("missing", "Failed and missing cells", grids=(grid,))


def _origins(s: Summary) -> Section:
    versions = tuple(
        Row(what, (Cell(", ".join(values), ", ".join(values)),)) for what, values in s.versions.items()
    )
    rows = []
    for f in s.facts:
        shape = "" if f.rows is None else f"{f.rows} / {f.features} / {f.classes}"
        sums = ", ".join(c[:16] for c in f.checksums) or "no record"
        cells = (shape, f.printed, f.partitions, sums)
        rows.append(Row(f.name, tuple(Cell(c, c) for c in cells)))
    columns = ("dataset", "rows / features / classes", "as the paper prints", "partitions", "checksum")
    note = "The checksum is the start of the SHA-256 of values, labels and partitions."
    grids = (
        Grid("versions", "Versions", ("what", "value"), versions),
        Grid("partitions", "Datasets and partitions", columns, tuple(rows), notes=(note,)),
    )
    return Section("origins", "Versions and partitions", grids=tuple(g for g in grids if g.rows))


def _oddities(s: Summary) -> Section:
    text = () if s.datasets else ("Of the paper's benchmark, whatever was run:",)
    return Section("oddities", "Oddities of the benchmark", text, tuple(("", oddity) for oddity in ODDITIES))


# --- cells -----------------------------------------------------------------------------------------------


def _number(value: Any, digits: int = 2) -> Cell:
    return Cell("") if value is None else Cell(f"{value:.{digits}f}", float(value))


def _verdict(differs: bool) -> Cell:
    word = "differs" if differs else "agrees"
    return Cell(word, word, word)


def _plus_minus(value: float, error: float | None) -> Cell:
    return Cell(f"{value:+.2f}" + ("" if error is None else f" ± {error:.2f}"), value)


def _p(value: float) -> Cell:
    return Cell(p_text(value), value)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


# --- text ------------------------------------------------------------------------------------------------


def render(summary: Summary, format: str = "html") -> str:
    """The report as text.

    Parameters
    ----------
    summary : Summary
        What `summarise` made.

    format : {"html", "md", "latex", "csv"}
        html is one file that needs nothing else; csv has one row for each method, dataset and choice.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
    if format == "csv":
        return long_table(summary).to_csv()
    values = {"summary": summary, "sections": sections(summary)}
    text = _environment(format).get_template(FORMATS[format]).render(values)
    return _with_policy(text) if format == "html" else text


def _environment(format: str) -> jinja2.Environment:
    html = format == "html"
    finalize = {"html": None, "md": markdown_text, "latex": latex_text}[format]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=html,
        finalize=finalize,  # every value that is printed passes it, so that none is forgotten
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["drawn"] = _drawn
    environment.filters["uri"] = _data_uri
    environment.filters["csv"] = lambda table: table.to_csv()
    environment.filters["letters"] = lambda n: "l" + "r" * (n - 1)
    environment.tests["number"] = lambda value: isinstance(value, int | float)
    return environment


@dataclass(frozen=True, slots=True)
class Drawn:
    """A picture as text: for the page, and as a file."""

    inline: Markup
    file: str


def _drawn(picture: Picture) -> Drawn:
    figure = picture.draw(picture.table)
    inline = figures.to_inline_svg(figure, picture.key, picture.title, picture.description)
    return Drawn(Markup(inline), figures.to_svg(figure))  # its own text is escaped


def _data_uri(text: str, kind: str) -> str:
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"


def _with_policy(page: str) -> str:
    """Allow the page's own script, by its hash, and nothing from anywhere else."""
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    return page.replace("POLICY", policy, 1)


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after the end of a row it would be its optional argument
    "]": "{]}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "*": r"$\ast$",
    "…": r"\dots{}",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
}


def markdown_text(value: object) -> str:
    r"""Text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(markdown_text("a|b <i>"))
    a\|b &lt;i&gt;
    """
    line = _one_line(str(value)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", line)


def latex_text(value: object) -> str:
    r"""Text that LaTeX shows as it is, on one line.

    Examples
    --------
    >>> print(latex_text("50 % of edRVFL_O"))
    50 \% of edRVFL\_O
    """
    return "".join(_LATEX.get(letter, letter) for letter in _one_line(str(value)))


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


# --- commands --------------------------------------------------------------------------------------------


def report_command(
    store: str | Path,
    out: str | Path,
    format: str | None = None,
    *,
    sensitivity: str | Path | None = None,
    timing: str | Path | None = None,
    figures_folder: str | Path | None = None,
    title: str = "edRVFL study",
) -> list[Path]:
    """Write the report of a store; by default in the format of the file's ending. The files written.

    `sensitivity` and `timing` are the JSON files of those commands; `figures_folder` gets every figure as
    SVG and CSV.
    """
    target = Path(out)
    chosen = SUFFIXES.get(target.suffix.lower()) if format is None else format
    if chosen is None or chosen not in FORMATS:
        asked = (
            f"{target.name!r} does not tell the format"
            if format is None
            else f"there is no format {format!r}"
        )
        raise ValueError(f"{asked}; choose one of {', '.join(FORMATS)}.")
    study = read_study(store)
    summary = summarise(
        study.records,
        states=study.states,
        depth_accuracies=study.depth_accuracies,
        sensitivity=None if sensitivity is None else _read(sensitivity, Sensitivity.from_json),
        timing=None if timing is None else _read(timing, Timing.from_json),
        title=title,
    )
    part = target.with_name(target.name + ".part")  # a broken report never takes the place of a good one
    try:
        part.write_text(render(summary, chosen), encoding="utf-8")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ValueError(f"{target}: cannot be written ({error.strerror}).") from error
    written = [target]
    if figures_folder is not None:
        written += save_figures(summary, figures_folder)
    return written


def save_figures(summary: Summary, folder: str | Path) -> list[Path]:
    """Write every figure of the report as SVG, with its data as CSV."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    pictures: Iterable[Picture] = (p for section in sections(summary) for p in section.pictures)
    return [path for p in pictures for path in figures.save(p.draw(p.table), p.table, folder)]


def _read(path: str | Path, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a result of that experiment ({error}); measure it again.") from error
