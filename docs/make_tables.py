"""Write the tables of compare.md, guide/looking.md and README.md from results/: `python docs/make_tables.py`.

A table stands between the comments `<!-- name -->` and `<!-- /name -->`. Ranks are of rounded figures, as in
the report. The best of a column is bold, and the heading of the column that rows are sorted by says so.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from edrvfl.bench.comparison import mean, round_half_up
from edrvfl.bench.data import FRAME_GROUPS, GROUPS
from edrvfl.bench.data.frames import CONFIRMATION, FRAMES, VALUES
from edrvfl.bench.data.records import LATER
from edrvfl.bench.record import RunRecord

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "docs" / "compare.md",
    ROOT / "docs" / "guide" / "looking.md",
    ROOT / "docs" / "guide" / "groups.md",
    ROOT / "README.md",
)
SORTED = "{} (rows are sorted by it)"
OURS = ("edRVFL", "LaplaceRidge")
KINDS = ("defaults", "values")  # of records of methods at their defaults
TABLE_3 = ROOT / "src" / "edrvfl" / "bench" / "published" / "table3_accuracy.csv"
TWELVE = (
    *("SNN", "MSRAinit", "Highway", "ResNet", "SCN", "BLS", "H-ELM"),
    *("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL"),
)
PEERS = ("LightGBM", "XGBoost", "HistGradientBoosting", "RandomForest", "RBF-SVM")  # tuned on all 24
PORTFOLIO = "edRVFL portfolio"
RELATIVES = ("dRVFL", "RVFL")  # searched as the twelve, but not in the paper's table
NONE = "\N{EN DASH}"
Searches = dict[tuple[str, str], RunRecord]  # by method and dataset
TREES = ("RandomForest", "HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost")
# Of the common groups these were not run with all methods, for lack of time.
LARGE = ("fars", "kr-vs-k", "sylva")
DATASETS = {
    "uci24": GROUPS["uci24"],
    "frames": tuple(FRAMES),
    # one fit of CatBoost on leaf_id_flavia takes longer than seven minutes
    "confirmation": tuple(name for name in CONFIRMATION if name != "leaf_id_flavia"),
    "values": tuple(VALUES),
    **{
        group: tuple(name for name in FRAME_GROUPS[group] if name not in LARGE)
        for group in ("common", "common-values", "common-apart", "common-values-apart")
    },
}


def read_records(kinds: tuple[str, ...] = KINDS) -> list[dict[str, Any]]:
    """Return the records of some kinds, by default of methods at their defaults."""
    with gzip.open(ROOT / "results" / "study.jsonl.gz", "rt") as lines:
        few = (line for line in lines if line.startswith('{"line": "record"'))
        return [line["record"] for line in map(json.loads, few) if line["kind"] in kinds]


def by_dataset(
    records: Iterable[dict[str, Any]], datasets: Iterable[str], metric: str, complete: bool = True
) -> pd.DataFrame:
    """Return the means over splits and seeds: rows are datasets, columns the methods (that have them all)."""
    asked = list(datasets)
    found = [
        (r["dataset"], r["method"], pd.DataFrame(r[metric]).to_numpy().mean())
        for r in records
        if r["dataset"] in asked and r.get(metric)
    ]
    table = pd.DataFrame(found, columns=["dataset", "method", "mean"])
    wide = table.pivot(index="dataset", columns="method", values="mean").loc[asked]
    return wide.dropna(axis="columns") if complete else wide


def rows_of(head: list[str], rows: Iterable[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def with_best(rows: list[list[str]], signs: dict[int, int]) -> list[list[str]]:
    """Make the best of some columns bold: the largest where the sign is 1, the least where it is -1."""
    for column, sign in signs.items():
        shown = [sign * float(row[column]) for row in rows if row[column] != NONE]
        for row in rows:
            if row[column] != NONE and sign * float(row[column]) == max(shown):
                row[column] = f"**{row[column]}**"
    return rows


def bold(method: str) -> str:
    """Return the name, bold if it is ours."""
    return f"**{method}**" if method.startswith(OURS) else method


def classes_table(records: list[dict[str, Any]], datasets: Iterable[str]) -> str:
    """Compare classifiers by accuracy, log-loss and calibration error, the best rank by log-loss first."""
    accuracy, loss, error = (
        by_dataset(records, datasets, metric) for metric in ("test_accuracy", "log_loss", "calibration_error")
    )
    accuracy_ranks = (100 * accuracy).round(2).rank(axis=1, ascending=False).mean()
    loss_ranks = loss.round(4).rank(axis=1).mean().sort_values()
    head = ["", "accuracy (%)", "log-loss", "calibration error", "rank by accuracy"]
    head.append(SORTED.format("rank by log-loss"))
    rows = [
        [
            bold(m),
            f"{100 * accuracy[m].mean():.2f}",
            f"{loss[m].mean():.3f}",
            f"{error[m].mean():.3f}",
            f"{accuracy_ranks[m]:.2f}",
            f"{rank:.2f}",
        ]
        for m, rank in loss_ranks.items()
    ]
    return rows_of(head, with_best(rows, {1: 1, 2: -1, 3: -1, 4: -1, 5: -1}))


def values_table(records: list[dict[str, Any]], datasets: Iterable[str]) -> str:
    """Compare regressors by R², the best rank first."""
    r2 = by_dataset(records, datasets, "r2")
    ranks = r2.round(4).rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    rows = [[bold(m), f"{r2[m].mean():.4f}", f"{rank:.2f}"] for m, rank in ranks.items()]
    return rows_of(["", "R²", SORTED.format("rank by R²")], with_best(rows, {1: 1, 2: -1}))


def each_table(records: list[dict[str, Any]], datasets: Iterable[str], methods: tuple[str, ...]) -> str:
    """Compare some regressors on each dataset by R²."""
    r2 = by_dataset(records, datasets, "r2")
    rows = ([name, *(f"{r2.loc[name, m]:.3f}" for m in methods)] for name in r2.index)
    return rows_of(["R²", *methods], rows)


def kinds_table(records: list[dict[str, Any]], groups: tuple[str, str]) -> str:
    """Compare methods on each frame of two groups: by log-loss where there are classes, by R² elsewhere.

    The portfolio that sees no dates and no text comes last and has no rank: it has no answer for a frame of
    nothing but text.
    """
    loss, r2 = (
        by_dataset(records, FRAME_GROUPS[group], metric, complete=False)
        for group, metric in zip(groups, ("log_loss", "r2"), strict=True)
    )
    plain = f"{PORTFOLIO} without dates and text"
    both = pd.concat([loss, -r2]).round(3)  # so that less is better in all of it
    ranks = both.drop(columns=plain).dropna(axis="columns").rank(axis=1).mean().sort_values(kind="stable")
    rows = []
    for name, row in both[[*ranks.index, plain]].iterrows():
        metric, sign = ("log-loss", 1) if name in loss.index else ("R²", -1)
        cells = [NONE if pd.isna(v) else f"{sign * v:.3f}" for v in row]
        best = [f"**{cell}**" if v == row.min() else cell for cell, v in zip(cells, row, strict=True)]
        rows.append([str(name).removesuffix(LATER), metric, *best])
    rows.append([f"mean rank of {len(both)}", "", *(f"{rank:.2f}" for rank in ranks), NONE])
    return rows_of(["", "", *map(bold, ranks.index), bold(plain)], rows)


def trees_table(records: list[dict[str, Any]], names: Iterable[str], metric: str) -> str:
    """List the datasets on which a tree ensemble is ahead of the portfolio, the largest gap first."""
    scores = by_dataset(records, names, metric)
    factor, digits = (100, 2) if metric == "test_accuracy" else (1, 3)
    trees = scores[[m for m in TREES if m in scores]] * factor
    ours = scores[PORTFOLIO] * factor
    gap = (trees.max(axis=1).round(digits) - ours.round(digits)).sort_values(ascending=False)
    word = "accuracy (%)" if factor == 100 else "R²"
    head = ["dataset", f"portfolio, {word}", f"best tree ensemble, {word}", "which"]
    rows = (
        [name, f"{ours[name]:.{digits}f}", f"{trees.loc[name].max():.{digits}f}", trees.loc[name].idxmax()]
        for name, behind in gap.items()
        if behind > 0
    )
    return rows_of(head, rows)


def twelve_table(found: Searches) -> str:
    """Compare the paper's methods, published and measured by both choices, the best strict rank first."""
    published = pd.read_csv(TABLE_3, index_col="dataset").loc[list(GROUPS["uci24"])]
    frames = [published, *(_means(found, (*TWELVE, *RELATIVES), choice) for choice in ("paper", "strict"))]
    ranks = [frame[list(TWELVE)].rank(axis=1, ascending=False).mean() for frame in frames]
    head = ["", "configurations", "seeds", "published", "the paper's choice", "strict choice"]
    head += ["rank, published", "rank, the paper's choice", SORTED.format("rank, strict choice")]
    rows = []
    for m in (*sorted(TWELVE, key=lambda m: round(ranks[2][m], 2)), *RELATIVES):
        own = [found[m, d] for d in frames[2].index]
        extent = [_span(r.n_configurations for r in own), _span(r.seeds for r in own)]
        means = [f"{mean(f[m]):.2f}" if m in f else NONE for f in frames]
        shown = [f"{rank[m]:.2f}" if m in TWELVE else NONE for rank in ranks]
        rows.append([f"**{m}**" if m == "WPedRVFL" else m, *extent, *means, *shown])
    return rows_of(head, with_best(rows, {3: 1, 4: 1, 5: 1, 6: -1, 7: -1, 8: -1}))


def tuned_table(found: Searches, records: list[dict[str, Any]]) -> str:
    """Compare tuned peers with themselves at their defaults, and with ours, the best strict rank first."""
    searched = (*PEERS, "WPedRVFL")
    paper, strict = (_means(found, searched, choice) for choice in ("paper", "strict"))
    loss = _means(found, searched, "strict", "log_loss")
    default, default_loss = (
        by_dataset(records, GROUPS["uci24"], metric) for metric in ("test_accuracy", "log_loss")
    )
    strict[PORTFOLIO] = (100 * default[PORTFOLIO]).map(round_half_up)
    ranks = strict.rank(axis=1, ascending=False).mean()
    head = ["", "configurations", "accuracy (%), the paper's choice", "strict choice"]
    head += [SORTED.format("rank"), "log-loss"]
    head += ["accuracy (%) at its defaults", "log-loss at its defaults"]
    rows = []
    for m in sorted(strict, key=lambda m: round(ranks[m], 2)):
        tried, chosen, lost = "1", [NONE, NONE], NONE  # of the portfolio, which has no search
        if m in searched:
            tried = _span(found[m, d].n_configurations for d in GROUPS["uci24"])
            chosen = [f"{mean(paper[m]):.2f}", f"{mean(strict[m]):.2f}"]
            lost = f"{loss[m].mean():.3f}"
        as_it_comes = [NONE, NONE]
        if m in default:
            as_it_comes = [f"{100 * default[m].mean():.2f}", f"{default_loss[m].mean():.3f}"]
        name = m if m in PEERS else f"**{m}**"
        rows.append([name, tried, *chosen, f"{ranks[m]:.2f}", lost, *as_it_comes])
    return rows_of(head, with_best(rows, {2: 1, 3: 1, 4: -1, 5: -1, 6: 1, 7: -1}))


def honesty_table(task: str) -> str:
    """Tell for each size and model how far leave-one-out flatters, and what 90 % cover, before and after."""
    means = pd.read_csv(ROOT / "results" / "honesty.csv")
    means = means[means["task"] == task].copy()
    means["flatters"] = 100 * (means["loo"] - means["test"])
    means["covers"] = 100 * means["covered_90"]
    wide = means.pivot(index=["rows", "columns"], columns=["model", "code"], values=["flatters", "covers"])
    models = ("network", "kernel", "portfolio")
    head = ["rows x columns", *(word for model in models for word in (f"{model}: too good by", "covered"))]

    def cells(row: Any, model: str) -> list[str]:
        too_good, covered = (
            [f"{row[figure, model, code]:{form}}" for code in ("before", "after")]
            for figure, form in (("flatters", "+.1f"), ("covers", ".1f"))
        )
        return [f"{first} → **{second}**" for first, second in (too_good, covered)]

    rows = [
        [f"{m} x {d}", *(cell for model in models for cell in cells(row, model))]
        for (m, d), row in wide.iterrows()
    ]
    return rows_of(head, rows)


def groups_table() -> str:
    """Tell for each table what leave-one-out says of new groups, and what is true."""
    means = pd.read_csv(ROOT / "results" / "groups.csv")
    head = ["table", "rows", "groups", "without groups: by leave-one-out", "on new groups", "90 % hold"]
    head += ["with groups: by leave-one-group-out", "on new groups", "90 % hold"]

    def cells(row: Any, way: str) -> list[str]:
        figures = [f"{row[f'{figure}_{way}']:.2f}" for figure in ("loo", "new")]
        return [*figures, f"{100 * row[f'covered_{way}']:.0f} %"]

    rows = [
        [row["table"], str(row["rows"]), str(row["groups"]), *cells(row, "rows"), *cells(row, "groups")]
        for _, row in means.iterrows()
    ]
    return rows_of(head, rows)


def largest_searches() -> Searches:
    """Return the records of all methods on the 24 datasets; of several searches the largest counts."""
    records = (RunRecord.from_json(json.dumps(record)) for record in read_records(("study",)))
    found = sorted(records, key=lambda r: r.n_configurations)
    return {(r.method, r.dataset): r for r in found if r.dataset in GROUPS["uci24"]}


def _means(
    found: Searches, methods: Iterable[str], choice: str, metric: str = "test_accuracy"
) -> pd.DataFrame:
    """Return mean accuracies in per cent with two digits, or means of another metric: rows are datasets."""

    def mean_of(record: RunRecord) -> float:
        value = record.choices[choice].mean_and_sd(metric)[0]
        return round_half_up(100 * value) if metric == "test_accuracy" else value

    datasets = GROUPS["uci24"]
    return pd.DataFrame({m: [mean_of(found[m, d]) for d in datasets] for m in methods}, index=list(datasets))


def _span(values: Iterable[int]) -> str:
    some = set(values)
    return " to ".join(str(value) for value in sorted({min(some), max(some)}))


def make_tables() -> dict[str, str]:
    """Return all tables by name."""
    records = read_records()
    classes = ("uci24", "frames", "confirmation", "common", "common-apart")
    tables = {name: classes_table(records, DATASETS[name]) for name in classes}
    for name in ("values", "common-values", "common-values-apart"):
        tables[name] = values_table(records, DATASETS[name])
    tables["values, each"] = each_table(records, DATASETS["values"], (PORTFOLIO, "CatBoost"))
    tables["trees"] = trees_table(records, DATASETS["uci24"], "test_accuracy")
    tables["trees, frames"] = trees_table(
        records, (*DATASETS["frames"], *DATASETS["confirmation"]), "test_accuracy"
    )
    tables["trees, values"] = trees_table(records, DATASETS["values"], "r2")
    for later in ("", LATER):
        tables[f"tables{later}"] = kinds_table(records, (f"tables{later}", f"tables-values{later}"))
    found = largest_searches()
    tables["twelve"] = twelve_table(found)
    tables["tuned"] = tuned_table(found, records)
    tables |= {f"honesty, {task}": honesty_table(task) for task in ("classes", "values")}
    tables["groups"] = groups_table()
    return tables


def put_tables(text: str, tables: dict[str, str]) -> str:
    """Return a page with every table that it has a place for as the records have it."""
    for name, table in tables.items():
        place = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        text = re.sub(place, lambda m, t=table: f"{m[1]}\n{t}\n\n{m[2]}", text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    found = make_tables()
    for page in PAGES:
        page.write_text(put_tables(page.read_text(), found))
