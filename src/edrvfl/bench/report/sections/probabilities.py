"""Log-loss and calibration error: how far the probabilities can be trusted, by the strict choice."""

from __future__ import annotations

import pandas as pd

from ...comparison import Ranking, score_table
from ...figures.charts import probabilities_figure
from ...methods import kind_of
from ...names import plural
from ..page import Grid, Picture, Section, make_row, number_cell, score_grid
from ..sentences import CALIBRATION_ERROR, friedman_sentence, leader
from ..standing import Standing
from ..summary import Summary
from .ranks import diagram, pair_grids

DIGITS = 4
METRICS = {"log_loss": "log-loss", "calibration_error": "calibration error"}
TEXT = (
    "Log-loss is the mean of -log p, p being the probability that a method gives to the true class: it "
    f"grows without bound when a method is sure and wrong. Calibration error is {CALIBRATION_ERROR}. "
    "Less is better for both. All figures are on test rows, means over splits and seeds: of searches by "
    "the strict choice, and of methods at their defaults; missing where a record is older than the metric."
)
COLUMNS = (
    *("method", "mean log-loss", "rank by log-loss"),
    *("mean calibration error", "rank by calibration error", "configurations tried"),
)


def show_probabilities(s: Summary) -> Section | None:
    """Show both metrics by dataset and method, their means and ranks, and the tests of log-loss."""
    losses, errors = (rank_losses(s.standing, metric) for metric in METRICS)
    if losses.scores.empty:
        return None
    table = _overview_table(s.standing, losses, errors)
    grids = [_overview(table)] if len(table) else []
    grids += [
        score_grid(
            f"strict-{name.replace(' ', '-')}",
            f"{name.capitalize()} on the test rows, strict choice",
            ranking,
        )
        for name, ranking in zip(METRICS.values(), (losses, errors), strict=True)
        if not ranking.scores.empty
    ]
    return Section(
        "probabilities",
        "Log-loss and calibration",
        (
            TEXT,
            " ".join(leader(losses, "log-loss")),
            *friedman_sentence(losses, "log-loss"),
            *_moves(s.standing, losses),
            *_errors(errors),
        ),
        pictures=(
            *([_dots(losses, table)] if len(table) else []),
            *diagram(losses, "critical_difference_log_loss", "Average ranks by log-loss"),
        ),
        grids=(*grids, *pair_grids(losses, "log-loss", "log-loss, strict choice")),
    )


def _moves(standing: Standing, losses: Ranking) -> tuple[str, ...]:
    """Name the methods that lose and gain most places between accuracy and log-loss."""
    by_loss = losses.by_rank
    both = [m for m in standing.by_rank if m in by_loss]
    moves = {m: by_loss.index(m) - both.index(m) for m in both}
    if not any(moves.values()):
        return ()
    falls, rises = (
        f"{m}, from place {both.index(m) + 1} by accuracy to place {by_loss.index(m) + 1} by log-loss"
        for pick in (max, min)
        for m in [pick(moves, key=moves.__getitem__)]
    )
    return (f"Of the {len(both)} methods {falls}, falls most; {rises}, rises most.",)


def _errors(errors: Ranking) -> tuple[str, ...]:
    if not errors.means:
        return ()
    least, *_, most = sorted((mean, method) for method, mean in errors.means.items()) * 2
    return (
        f"The least mean calibration error is that of {least[1]}, {least[0]:.4f}, the largest that of "
        f"{most[1]}, {most[0]:.4f}.",
    )


def rank_losses(standing: Standing, metric: str) -> Ranking:
    """Collect a metric of all methods; those are compared that accuracy compares, on the same datasets."""
    cells = {
        (dataset, entry.name): r.scored["strict"].mean(metric)
        for entry in standing.entries.values()
        for dataset, r in entry.results.items()
    }
    table = score_table(cells, standing.scores.index, tuple(standing.scores), DIGITS)
    table = table.dropna(how="all").dropna(how="all", axis="columns")
    common = [d for d in standing.common if d in table.index]
    ranked = [m for m in table if m in standing.ranks]
    return Ranking(table, table.loc[common, ranked].dropna(axis="columns"), DIGITS, sign=-1)


def _overview_table(standing: Standing, losses: Ranking, errors: Ranking) -> pd.DataFrame:
    """List the compared methods, best log-loss first."""
    rows = [
        (m, kind_of(m), loss, errors.means.get(m), losses.ranks[m], errors.ranks.get(m), entry.configurations)
        for m, loss in losses.means.items()
        for entry in [standing.entries[m]]
    ]
    columns = ["method", "kind", "log_loss", "calibration_error", "rank", "error_rank", "configurations"]
    return pd.DataFrame(rows, columns=columns, dtype=object).sort_values(["log_loss", "method"])


def _overview(table: pd.DataFrame) -> Grid:
    rows = [
        make_row(
            *(row.method, number_cell(row.log_loss, DIGITS), row.rank),
            *(number_cell(row.calibration_error, DIGITS), row.error_rank, row.configurations),
            method=row.method,
        )
        for row in table.itertuples()
    ]
    among = plural(int(table["error_rank"].notna().sum()), "method")
    return Grid(
        "probabilities-overview",
        "Probabilities in one table",
        COLUMNS,
        tuple(rows),
        notes=(f"Ranks by calibration error are among the {among} with one.",),
        sorted_by=COLUMNS[1],
        least_is_best=frozenset(COLUMNS[1:5]),
    )


def _dots(losses: Ranking, table: pd.DataFrame) -> Picture:
    best, worst = table.iloc[0], table.iloc[-1]
    return Picture(
        "log_loss_and_calibration",
        f"Mean log-loss and calibration error over {plural(len(losses.common), 'dataset')} (strict choice)",
        f"Sorted by log-loss; less is better. From {best.method}, {best.log_loss:.4f}, to {worst.method}, "
        f"{worst.log_loss:.4f}.",
        table.iloc[:, :4].astype({"log_loss": float, "calibration_error": float}),
        probabilities_figure,
    )
