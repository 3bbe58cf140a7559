"""InfluenceDisplay: which training rows moved an answer most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from .canvas import FIRST, SECOND, Display, bars_from_the_top, new_axes, plain, pyplot


@dataclass(kw_only=True, eq=False, repr=False)
class InfluenceDisplay(Display):
    """The training rows that moved the answer to one row most, the strongest on top.

    A bar to the right is by how much the answer is larger with the training row, one to the left by how much
    it is smaller. Behind the name of a training row stands its own label or value.

    It is best made by :meth:`from_estimator`.

    Parameters
    ----------
    names : sequence of str
        The names of the training rows.

    changes : sequence of float
        How much each of them moved the answer.

    answer : str, default="the answer"
        What was moved, in words.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    EDRVFLClassifier.influence : The table that is drawn here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, InfluenceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EDRVFLClassifier(remember="rows", random_state=0).fit(X[1:], y[1:])
    >>> display = InfluenceDisplay.from_estimator(model, X[:1])  # doctest: +SKIP
    >>> display.figure_.savefig("influence.png")  # doctest: +SKIP
    """

    names: Sequence[str]
    changes: Sequence[float]
    answer: str = "the answer"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, n: int = 10, of: Any = None, ax: Any = None
    ) -> InfluenceDisplay:
        """Compute and draw the influence of training rows on the answer to the first row of X.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier or regressor with ``remember="rows"``.

        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        n : int, default=10
            How many training rows are drawn.

        of : label or int, default=None
            The class or the output that is asked about, as for ``influence``.

        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : InfluenceDisplay
            The display, with the axes and the figure.
        """
        pyplot()  # where it is missing, one should not wait for the influences first
        found = estimator.influence(X[:1], n=n, of=of)
        values = estimator._model.classes is None
        given = [f"{one:.4g}" if values else one for one in found.given.tolist()]
        names = [f"{row}: {own}" for row, own in zip(found.training_row.tolist(), given, strict=True)]
        what = "value" if values else f"probability of {found.of[0]}"
        return cls(names=names, changes=found.change, answer=f"{what}, {found.answer[0]:.3g}").plot(ax)

    def _drawn(self, ax: Any) -> Any:
        changes = numpy.asarray(self.changes, dtype=float)
        ax = new_axes(ax, 6.4, 1.1 + 0.3 * len(changes))
        places = numpy.arange(len(changes))
        ax.barh(places, changes, color=[FIRST if one >= 0 else SECOND for one in changes], height=0.62)
        ax.axvline(0, color="0.15", linewidth=0.8)
        ax.set_yticks(places, [plain(name) for name in self.names])
        ax.set_xlabel(f"what the training row adds to the {self.answer}")
        bars_from_the_top(ax, len(changes))
        return ax
