"""ImportanceDisplay: how much a model's answers depend on each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from .canvas import FIRST, Display, bars_from_the_top, new_axes, plain, pyplot
from .importance import feature_importance


@dataclass(kw_only=True, eq=False, repr=False)
class ImportanceDisplay(Display):
    """The importances of columns, the largest on top.

    A bar is the mean over repeats; the thin line goes from the smallest of them to the largest.

    It is best made by :meth:`from_estimator`. With ``measure`` set, it also draws what scikit-learn's
    ``permutation_importance`` found.

    Parameters
    ----------
    importances : array-like of shape (n_features, n_repeats)
        What :func:`feature_importance` returns under this name.

    feature_names : sequence of str
        The names of the columns.

    measure : str, default="share of the answers' variance"
        What the importances are.

    max_features : int, default=20
        How many columns are drawn at most: the most important.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    feature_importance : Says what an importance is.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from edrvfl import EDRVFLClassifier, ImportanceDisplay
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = EDRVFLClassifier(random_state=0).fit(X, y)
    >>> display = ImportanceDisplay.from_estimator(model, X, random_state=0)  # doctest: +SKIP
    >>> display.figure_.savefig("importance.png")  # doctest: +SKIP
    """

    importances: Any
    feature_names: Sequence[str]
    measure: str = "share of the answers' variance"
    max_features: int = 20

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_repeats: int = 5,
        random_state: Any = None,
        max_features: int = 20,
        ax: Any = None,
    ) -> ImportanceDisplay:
        """Compute and draw the importances of the columns for a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier with ``predict_proba``, or a fitted regressor.

        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        n_repeats : int, default=5
            With how many other rows each row exchanges values.

        random_state : int, RandomState instance or None, default=None
            Decides which rows exchange values.

        max_features : int, default=20
            How many columns are drawn at most: the most important.

        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : ImportanceDisplay
            The display, with the axes and the figure.
        """
        pyplot()  # where it is missing, one should not wait for the importances first
        found = feature_importance(estimator, X, n_repeats=n_repeats, random_state=random_state)
        display = cls(
            importances=found.importances, feature_names=found.feature_names, max_features=max_features
        )
        return display.plot(ax)

    def _drawn(self, ax: Any) -> Any:
        found = numpy.asarray(self.importances, dtype=float)
        means = found.mean(axis=1)
        order = numpy.argsort(-means, kind="stable")[: self.max_features]
        ax = new_axes(ax, 6.4, 1.1 + 0.3 * len(order))
        places = numpy.arange(len(order))
        ax.barh(places, means[order], color=FIRST, height=0.62)
        ax.hlines(places, found.min(axis=1)[order], found.max(axis=1)[order], color="0.15", linewidth=1.2)
        ax.set_yticks(places, [plain(self.feature_names[j]) for j in order])
        label = f"importance: {self.measure}"
        if left_out := len(means) - len(order):
            label += f"\n({left_out} less important columns are not drawn)"
        ax.set_xlabel(label)
        if found.min() >= 0:
            ax.set_xlim(left=0)
        bars_from_the_top(ax, len(order))
        return ax
