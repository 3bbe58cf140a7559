"""SearchDisplay: what a search tried, and how good it was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy
from sklearn.utils.validation import check_is_fitted

from .canvas import FIRST, PALE, SECOND, Display, divided, new_axes, plain, tidy, whole_numbers

WIDE = 30.0  # numbers that differ by this factor are drawn on a logarithmic scale
LONGEST = 18  # letters of a value that is no number
FEW = 5  # so many numbers are all named on the axis
LOW = 0.1  # the worst tenth of the scores is drawn at the edge, so that it does not squeeze the others


@dataclass(kw_only=True, eq=False, repr=False)
class SearchDisplay(Display):
    """The configurations that a search tried: a panel for each parameter, a dot for each of its rows.

    The height of a dot is the mean score over the splits. For a parameter other than the depth of a network a
    configuration is drawn once, at its best depth. Bold dots are the best for each value, or each eighth of
    the values' range; the star is the winner. The worst tenth is pale and drawn at the lower edge.

    It is best made by :meth:`from_estimator`.

    Parameters
    ----------
    values : dict of str to sequence
        For each parameter its value in each row of the table; ``numpy.ma.masked`` where it was not set.

    scores : sequence of float
        The mean score of each row.

    best_index : int
        The row of the winner.

    configurations : sequence of int, default=None
        The number of the configuration in each row, where a configuration has a row for each depth. None:
        each row is one.

    Attributes
    ----------
    ax_ : tuple of matplotlib Axes
        A panel for each parameter.

    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    EDRVFLSearchCV : Its `cv_results_` is the table that is drawn here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, EDRVFLSearchCV, SearchDisplay
    >>> space = {"n_hidden": [8, 16, 32], "activation": ["relu", "tanh"]}
    >>> search = EDRVFLSearchCV(EDRVFLClassifier(n_layers=3, random_state=0), space, n_iter=None, cv=3)
    >>> search = search.fit(*load_iris(return_X_y=True))
    >>> display = SearchDisplay.from_estimator(search)  # doctest: +SKIP
    >>> display.figure_.savefig("search.png")  # doctest: +SKIP
    """

    values: Mapping[str, Sequence[Any]]
    scores: Sequence[float]
    best_index: int
    configurations: Sequence[int] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, params: Sequence[str] | None = None, ax: Any = None
    ) -> SearchDisplay:
        """Draw what a fitted search tried.

        Parameters
        ----------
        estimator : EDRVFLSearchCV
            A fitted search, or one of scikit-learn's searches with one metric.

        params : sequence of str, default=None
            The parameters that are drawn. None draws those that have several values.

        ax : matplotlib Axes, default=None
            Where to draw. Its place is divided into panels. None makes a new figure.

        Returns
        -------
        display : SearchDisplay
            The display, with the axes and the figure.
        """
        check_is_fitted(estimator)
        table = getattr(estimator, "cv_results_", {})
        if "mean_test_score" not in table:
            raise TypeError(
                "SearchDisplay draws a search with one metric, such as EDRVFLSearchCV, but got "
                f"{type(estimator).__name__}{' with several' if table else ''}."
            )
        known = {key.removeprefix("param_"): column for key, column in table.items() if key[:6] == "param_"}
        if unknown := [name for name in params or () if name not in known]:
            raise ValueError(
                f"The search did not set {', '.join(unknown)}. It set {', '.join(known) or 'nothing'}."
            )
        values = {name: list(column) for name, column in known.items()}
        drawn = params or [name for name, column in values.items() if len(set(map(repr, column))) > 1]
        alike = [repr({k: v for k, v in row.items() if k != "n_layers"}) for row in table["params"]]
        return cls(
            values={name: values[name] for name in drawn},
            scores=[float(score) for score in table["mean_test_score"]],
            best_index=int(estimator.best_index_),
            configurations=numpy.unique(alike, return_inverse=True)[1].tolist(),
        ).plot(ax)

    def _drawn(self, ax: Any) -> Any:
        if not self.values:
            raise ValueError("No parameter has several values, so there is nothing to draw.")
        n_columns = min(len(self.values), 3)
        n_rows = math.ceil(len(self.values) / n_columns)
        # words that are turned need room below
        down = 1.15 if any(map(_turned, self.values.values())) else 0.62
        ax = new_axes(ax, 0.6 + 2.9 * n_columns, 0.3 + (1.9 + down) * n_rows)
        panels = divided(ax, len(self.values), n_columns, across=0.3, down=down)
        scores = numpy.asarray(self.scores, dtype=float)
        finite = scores[numpy.isfinite(scores)]
        if not finite.size:
            raise ValueError("Every score is missing or infinite, so there is nothing to draw.")
        floor, top = float(numpy.quantile(finite, LOW)), float(finite.max())
        margin = 0.08 * (top - floor) or 0.05
        for i, (panel, (name, values)) in enumerate(zip(panels, self.values.items(), strict=True)):
            kept = self._rows_of(name, scores)
            self._draw(panel, name, values, kept, floor)
            panel.set(xlabel=name, ylim=(floor - margin, top + margin))
            panel.set_ylabel("mean score" if i % n_columns == 0 else None)
            panel.tick_params(axis="y", labelleft=i % n_columns == 0)
            panel.margins(x=0.08)
            if name == "n_layers" and len(set(values)) > FEW:
                whole_numbers(panel)
            tidy(panel, "y")
        return panels

    def _rows_of(self, name: str, scores: numpy.ndarray) -> list[int]:
        """Return the rows that a panel draws: all depths of each configuration, or its best."""
        kept = [
            i
            for i, value in enumerate(self.values[name])
            if value is not numpy.ma.masked and math.isfinite(scores[i])
        ]
        if name == "n_layers" or self.configurations is None:
            return kept
        best: dict[int, int] = {}
        for i in sorted(kept, key=lambda i: (i != self.best_index, -scores[i])):
            best.setdefault(self.configurations[i], i)
        return sorted(best.values())

    def _draw(self, panel: Any, name: str, values: Sequence[Any], kept: list[int], floor: float) -> None:
        scores = numpy.array([self.scores[i] for i in kept])
        x, group = _places(panel, name, [values[i] for i in kept])
        best = [max(numpy.flatnonzero(group == g), key=lambda i: scores[i]) for g in numpy.unique(group)]
        low = scores < floor
        panel.scatter(x[~low], scores[~low], s=14, color=FIRST, alpha=0.3, linewidth=0)
        panel.scatter(x[low], numpy.full(low.sum(), floor), s=14, color=PALE, marker="v", linewidth=0)
        above = [i for i in best if not low[i]]
        panel.scatter(x[above], scores[above], s=26, color=FIRST, zorder=3)
        if self.best_index in kept:
            winner = kept.index(self.best_index)
            panel.scatter(x[winner], scores[winner], s=150, color=SECOND, marker="*", zorder=4)


def _places(panel: Any, name: str, values: list[Any]) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return where the values of a parameter are drawn, and which of them belong together."""
    if _are_numbers(values):
        x = numpy.array(values, dtype=float)
        different = numpy.unique(x)
        if different[0] > 0 and different[-1] / different[0] >= WIDE:
            panel.set_xscale("log", base=2)
        if len(different) <= FEW:
            panel.set_xticks(different, [f"{value:.3g}" for value in different])
            panel.minorticks_off()
        if name == "n_layers" or len(different) <= 12:
            return x, x
        scaled = numpy.log2(x) if panel.get_xscale() == "log" else x
        ends = numpy.linspace(scaled.min(), scaled.max(), 9)
        return x, numpy.digitize(scaled, ends[1:-1])
    words = [str(value) for value in values]
    different_words = list(dict.fromkeys(words))
    x = numpy.array([different_words.index(word) for word in words], dtype=float)
    turned = {"rotation": 30, "ha": "right"} if _turned(values) else {}
    labels = [plain(word, LONGEST) for word in different_words]
    panel.set_xticks(range(len(labels)), labels, **turned)
    return x, x


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, Real) and not isinstance(value, bool) for value in values)


def _turned(values: Iterable[Any]) -> bool:
    """Tell whether words are too long to stand beside each other below a panel."""
    present = [value for value in values if value is not numpy.ma.masked]
    return not _are_numbers(present) and sum(map(len, {plain(value, LONGEST) for value in present})) > LONGEST
