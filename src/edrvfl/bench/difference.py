"""What a comparison on one's own table found, in scores, differences, words and a picture."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from .data import Task
from .names import listing, plural
from .scores import ACCURACY, LOG_LOSS, R2, RMSE, Metric

LEVEL = 0.95
BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
COLOURS = {BETTER: "#d55e00", WORSE: "#0072b2", UNCLEAR: "0.45"}  # than the portfolio
_SECONDS = {"fit_seconds": "fit s", "predict_seconds": "predict s"}


# The first of a task is the one that the picture shows.
METRICS: Mapping[Task, tuple[Metric, ...]] = {
    "classification": (LOG_LOSS, replace(ACCURACY, words="accuracy")),
    "regression": (RMSE, R2),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """How much larger the mean score of a method is than that of the portfolio, and between which ends."""

    mean: float
    low: float
    high: float
    verdict: str  # BETTER, WORSE or UNCLEAR

    @classmethod
    def of(cls, differences: np.ndarray, share: float, sign: int) -> Difference:
        """mean +- t_(J-1) * sqrt((1/J + m_test / m_train) * s^2): the corrected resampled t of J splits.

        Training rows of different splits overlap, so their scores vary together, and s / sqrt(J) is too
        small. Nadeau and Bengio, "Inference for the Generalization Error" (2003), add the share of test rows.
        """
        n, mean = len(differences), float(np.mean(differences))
        if n < 2:
            return cls(mean, -math.inf, math.inf, UNCLEAR)
        error = math.sqrt((1 / n + share) * np.var(differences, ddof=1))
        half = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * error
        low, high = mean - half, mean + half
        clear = 0 if low <= 0 <= high else math.copysign(1, mean) * sign
        return cls(mean, low, high, {0: UNCLEAR, 1: BETTER, -1: WORSE}[int(clear)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compared:
    """Scores of the portfolio and of other packages on the same splits of a table."""

    task: Task
    scores: Mapping[str, Mapping[str, np.ndarray]]  # by method and metric, a score for each split
    failures: Mapping[str, str]  # why methods could not be fitted
    absent: tuple[str, ...]  # packages that are not installed
    share: float  # test rows for each training row
    n_rows: int

    @classmethod
    def of(
        cls,
        task: Task,
        found: Mapping[tuple[str, int], Mapping[str, float] | str],
        names: Sequence[str],
        shares: Sequence[float],
        absent: Sequence[str],
        n_rows: int,
    ) -> Compared:
        """Put the scores of all fits together. A method that failed on one split has no scores."""
        scores, failures = {}, {}
        for name in names:
            row = [found[name, i] for i in range(len(shares))]
            if wrong := [each for each in row if isinstance(each, str)]:
                failures[name] = wrong[0]
            else:
                scores[name] = {key: np.array([each[key] for each in row]) for key in row[0]}  # type: ignore[index]
        return cls(task, scores, failures, tuple(absent), float(np.mean(shares)), n_rows)

    @property
    def subject(self) -> str:
        """The method that the others are compared with: the first."""
        return next(iter(self.scores))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What is measured."""
        return METRICS[self.task]

    def differences(self, metric: str) -> dict[str, Difference]:
        """Return for each other method by how much its score is larger than the portfolio's.

        `metric` is "log_loss" or "test_accuracy" of classes, "rmse" or "r2" of values.
        """
        known = {m.key: m.sign for m in self.metrics}
        if metric not in known:
            raise ValueError(f"There is no metric {metric!r} of {self.task}; these are: {listing([*known])}.")
        ours = self.scores[self.subject][metric]
        return {
            name: Difference.of(row[metric] - ours, self.share, known[metric])
            for name, row in self.scores.items()
            if name != self.subject
        }

    def better(self) -> list[str]:
        """Name the methods that are clearly better than the portfolio by one of the metrics."""
        found = [self.differences(m.key).items() for m in self.metrics]
        return list(dict.fromkeys(name for row in found for name, d in row if d.verdict == BETTER))

    # --- words ---------------------------------------------------------------------------------------

    def sentences(self) -> list[str]:
        """Say who is better, by each metric, and what could not be compared."""
        said = [self._sentence(metric) for metric in self.metrics]
        said += [f"{name} failed: {message}" for name, message in self.failures.items()]
        if self.absent:
            said.append(f"Not installed: {listing(self.absent)} (pip install 'edrvfl[peers]').")
        return said

    def _sentence(self, metric: Metric) -> str:
        differences = self.differences(metric.key)
        named = {word: [n for n, d in differences.items() if d.verdict == word] for word in COLOURS}
        if named[BETTER]:
            best = max(named[BETTER], key=lambda name: metric.sign * differences[name].mean)
            d = differences[best]
            ends = f"{LEVEL:.0%} interval {d.low:+.3g} to {d.high:+.3g}"
            said = f"{listing(named[BETTER])} {_is(named[BETTER])} better than the portfolio"
            return f"By {metric.words}, {said}; take {best} ({d.mean:+.3g}, {ends})."
        said = f"By {metric.words}, no other is clearly better than the portfolio"
        means = {name: float(np.mean(row[metric.key])) for name, row in self.scores.items()}
        best = max(means, key=lambda name: metric.sign * means[name])
        if best != self.subject:
            ours = means[self.subject]
            said += f", though {best} has the best mean ({means[best]:.4g} against {ours:.4g})"
        worse = named[WORSE]
        return f"{said}; {f'clearly worse {_is(worse)} {listing(worse)}' if worse else 'nor clearly worse'}."

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Return a table as texts: its header, and a row for each method."""
        header = ["method"]
        for metric in self.metrics:
            header += [metric.words, "difference", ""]
        differences = {m.key: self.differences(m.key) for m in self.metrics}
        rows = []
        for name, row in self.scores.items():
            cells = [name]
            for m in self.metrics:
                d = differences[m.key].get(name)
                ends = "" if d is None else f"{d.mean:+.3g} [{d.low:+.3g}, {d.high:+.3g}]"
                cells += [f"{np.mean(row[m.key]):.4g}", ends, "" if d is None else d.verdict]
            rows.append([*cells, *(f"{np.median(row[key]):.3g}" for key in _SECONDS)])
        return [*header, *_SECONDS.values()], rows

    def legend(self) -> str:
        """Say what the table shows."""
        n = len(self.scores[self.subject][self.metrics[0].key])
        return (
            f"Means over {plural(n, 'split')} of {plural(self.n_rows, 'row')}. A difference is that from the "
            f"portfolio, with its {LEVEL:.0%} interval by the corrected resampled t of the splits, each by "
            "itself; seconds are medians, on one thread."
        )

    def __str__(self) -> str:
        """Write sentences and table."""
        header, rows = self.rows()
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = [
            "  ".join(t.ljust(w) for t, w in zip(r, widths, strict=True)).rstrip() for r in (header, *rows)
        ]
        return "\n".join([*self.sentences(), "", *lines, "", self.legend()])

    __repr__ = __str__

    def table(self) -> Any:
        """Return means, differences and their ends as a pandas frame."""
        found: dict[str, dict[str, Any]] = {}
        differences = {m.key: self.differences(m.key) for m in self.metrics}
        for name, row in self.scores.items():
            found[name] = {key: float(np.mean(row[key])) for key in differences}
            for key, of in differences.items():
                if name in of:
                    d = of[name]
                    found[name] |= {f"{key}_difference": d.mean, f"{key}_low": d.low, f"{key}_high": d.high}
            found[name] |= {key: float(np.median(row[key])) for key in _SECONDS}
        return importlib.import_module("pandas").DataFrame.from_dict(found, orient="index")

    # --- a picture -----------------------------------------------------------------------------------

    def plot(self, metric: str | None = None, ax: Any = None) -> Any:
        """Draw the differences from the portfolio with their intervals, and return the axes.

        A small dot is a split. What is clearly better than the portfolio is red, what is clearly worse blue.
        """
        differences = self.differences(metric or self.metrics[0].key)
        chosen = next(m for m in self.metrics if metric in (None, m.key))
        if ax is None:
            _, ax = _pyplot().subplots(figsize=(6.4, 1.5 + 0.42 * len(differences)), layout="constrained")
        ours = self.scores[self.subject][chosen.key]
        for i, (name, d) in enumerate(differences.items()):
            each = self.scores[name][chosen.key] - ours
            colour = COLOURS[d.verdict]
            ax.plot(each, np.full(len(each), i + 0.22), "o", color=colour, alpha=0.6, markersize=3)
            if math.isfinite(d.low):
                ax.plot([d.low, d.high], [i, i], color=colour, linewidth=2)
            ax.plot(d.mean, i, "o", color=colour, markersize=7)
        ax.axvline(0, color="0.3", linewidth=1)
        ax.set_title(f"Mean, {LEVEL:.0%} interval and single splits", fontsize="medium", loc="left")
        ax.set_yticks(range(len(differences)), list(differences))
        ax.set_ylim(len(differences) - 0.5, -0.5)
        where = "left" if chosen.sign < 0 else "right"
        ax.set_xlabel(f"{chosen.words}: difference from the portfolio\n(further {where} is better)")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", alpha=0.25)
        return ax


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _pyplot() -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError(
            "The picture needs matplotlib, which edrvfl does not install by itself: "
            "pip install 'edrvfl[demo]'."
        ) from error
