"""DoubtfulRowsDisplay: training rows whose own label the model without them denies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from .canvas import FIRST, PALE, SECOND, Display, bars_from_the_top, legend_above, new_axes, plain, pyplot


@dataclass(kw_only=True, eq=False, repr=False)
class DoubtfulRowsDisplay(Display):
    """The most doubtful training rows, the worst on top: labels to check first.

    For each row one dot is what it says of itself, and the other what the model without it says: the
    probabilities of the two classes, or the two values.

    It is best made by :meth:`from_estimator`.

    Parameters
    ----------
    names : sequence of str
        The names of the rows.

    given : sequence of float
        The probabilities of the rows' own classes, or their values.

    said : sequence of float
        The probabilities of the classes that the model says, or its values.

    measure : str, default="probability without the row"
        What the numbers are.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    EDRVFLClassifier.doubtful_rows : The table that is drawn here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import DoubtfulRowsDisplay, EDRVFLClassifier
    >>> model = EDRVFLClassifier(remember="rows", random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = DoubtfulRowsDisplay.from_estimator(model)  # doctest: +SKIP
    >>> display.figure_.savefig("doubtful_rows.png")  # doctest: +SKIP
    """

    names: Sequence[str]
    given: Sequence[float]
    said: Sequence[float]
    measure: str = "probability without the row"

    @classmethod
    def from_estimator(cls, estimator: Any, *, n: int = 20, ax: Any = None) -> DoubtfulRowsDisplay:
        """Compute and draw the most doubtful training rows.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, or a fitted regressor of one output, with ``remember="rows"``.

        n : int, default=20
            How many rows are drawn, denied or not.

        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : DoubtfulRowsDisplay
            The display, with the axes and the figure.
        """
        pyplot()  # where it is missing, one should not wait for the doubts first
        found = estimator.doubtful_rows(n=n)
        rows = found.row.tolist()
        if estimator._model.classes is None:
            if (k := estimator._model.n_outputs) > 1:
                raise ValueError(
                    f"DoubtfulRowsDisplay draws values of one output, but this {type(estimator).__name__} "
                    f"has {k}. Look at doubtful_rows()."
                )
            names = [str(row) for row in rows]
            return cls(names=names, given=found.given, said=found.said, measure="value").plot(ax)
        told = zip(rows, found.given.tolist(), found.said.tolist(), strict=True)
        names = [
            f"{row}: {own}" if own == other else f"{row}: {own}, or {other}?" for row, own, other in told
        ]
        return cls(names=names, given=found.given_probability, said=found.said_probability).plot(ax)

    def _drawn(self, ax: Any) -> Any:
        given, said = (numpy.asarray(values, dtype=float) for values in (self.given, self.said))
        ax = new_axes(ax, 6.4, 1.3 + 0.3 * len(given))
        places = numpy.arange(len(given))
        ax.hlines(places, given, said, color=PALE, linewidth=2.5, zorder=1)
        ax.scatter(given, places, color=SECOND, s=36, zorder=2, label="its own label")
        ax.scatter(said, places, color=FIRST, s=36, zorder=2, label="what the model says without it")
        ax.set_yticks(places, [plain(name) for name in self.names])
        ax.set_xlabel(self.measure)
        bars_from_the_top(ax, len(given))
        legend_above(ax, 2)
        return ax
