"""ReliabilityDisplay: whether the most probable class is as probable as the model says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .canvas import SERIES, Display, legend_above, new_axes, on_host, plain, tidy

LONGEST = 26  # letters of a name: the legend is to be no wider than the axes
NINETY_FIVE = 1.959963984540054  # 95 % of a normal distribution are within so many deviations


@dataclass(kw_only=True, eq=False, repr=False)
class ReliabilityDisplay(Display):
    """How often the most probable class is right, beside the probability that it was given.

    It is for two classes or many; scikit-learn's ``CalibrationDisplay`` draws the probability of one class of
    two. Rows are sorted by their largest probability and divided into groups of nearly equal size. A dot is
    the share of right answers in a group; the line through it is where the share of a large group would be,
    with a confidence of 95 % (Wilson's interval). Dots on the diagonal are calibrated.
    Several displays can share axes.

    It is best made by :meth:`from_estimator`.

    Parameters
    ----------
    confidences : sequence of float
        The mean of the largest probabilities in each group.

    shares : sequence of float
        The share of right answers in each group.

    counts : sequence of int
        How many rows each group has.

    name : str, default=None
        What the legend calls it.

    Attributes
    ----------
    calibration_error : float
        The mean over the rows of the distance between share and confidence in their group.

    ax_ : matplotlib Axes
        The axes.

    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    EDRVFLClassifier : Its parameter `calibration` says how scores become probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EDRVFLClassifier(n_hidden=20, random_state=0).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    >>> display.figure_.savefig("reliability.png")  # doctest: +SKIP
    """

    confidences: Sequence[float]
    shares: Sequence[float]
    counts: Sequence[int]
    name: str | None = None

    @property
    def calibration_error(self) -> float:
        """The mean over the rows of the distance between share and confidence in their group."""
        gaps = numpy.abs(numpy.subtract(self.shares, self.confidences))
        return float(numpy.average(gaps, weights=self.counts))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, name: str | None = None, ax: Any = None
    ) -> ReliabilityDisplay:
        """Draw the reliability of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with ``predict_proba``.

        X : array-like of shape (n_samples, n_features)
            Rows that were not in the fit.

        y : array-like of shape (n_samples,)
            Their labels.

        n_bins : int, default=10
            How many groups there are at most.

        name : str, default=None
            What the legend calls it. None is the name of the class.

        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : ReliabilityDisplay
            The display, with the axes and the figure.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                "ReliabilityDisplay draws a classifier with predict_proba, but got "
                f"{type(estimator).__name__}."
            )
        P, name = estimator.predict_proba(X), type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, P, classes=estimator.classes_, n_bins=n_bins, name=name, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any,
        n_bins: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw the reliability of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.

        y_prob : array-like of shape (n_samples, n_classes)
            Probabilities of the classes.

        classes : array-like of shape (n_classes,)
            The labels, in the order of the probabilities. A label that is not among them is never right.

        n_bins : int, default=10
            How many groups there are at most.

        name : str, default=None
            What the legend calls it.

        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : ReliabilityDisplay
            The display, with the axes and the figure.
        """
        y, P, classes = column_or_1d(on_host(y_true)), on_host(y_prob).astype(float), on_host(classes)
        check_consistent_length(y, P)
        if P.ndim != 2 or P.shape[1] != len(classes):
            raise ValueError(
                f"y_prob must have a column for each of {len(classes)} classes, but its shape is {P.shape}."
            )
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, got {n_bins}.")
        confidence, right = P.max(axis=1), classes[P.argmax(axis=1)] == y
        order = numpy.argsort(confidence, kind="stable")
        groups = numpy.array_split(order, min(n_bins, len(y)))
        return cls(
            confidences=[float(confidence[group].mean()) for group in groups],
            shares=[float(right[group].mean()) for group in groups],
            counts=[len(group) for group in groups],
            name=name,
        ).plot(ax)

    def _drawn(self, ax: Any) -> Any:
        ax = new_axes(ax, 5.0, 4.9)
        drawn = len(ax.get_legend_handles_labels()[1])  # by other displays
        x, shares = numpy.array(self.confidences), numpy.array(self.shares)
        low, high = _wilson(shares, numpy.array(self.counts))
        if not drawn:
            ax.plot((0, 1), (0, 1), color="0.55", linestyle=":", linewidth=1.2, zorder=1)
        colour = SERIES[drawn % len(SERIES)]
        label = f"calibration error {self.calibration_error:.3f}"
        label = label if self.name is None else f"{plain(self.name, LONGEST)}: {label}"
        ax.plot(x, shares, color=colour, marker="o", markersize=5, linewidth=1.6, label=label)
        ax.vlines(x, low, high, color=colour, linewidth=1, alpha=0.6)
        least = min(x.min(), low.min()) - 0.03
        least = max(0.0, float(min(least, ax.get_xlim()[0]) if drawn else least))
        ax.set(xlim=(least, 1.02), ylim=(least, 1.02), aspect="equal")
        ax.set(xlabel="probability of the most probable class", ylabel="share of right answers")
        legend_above(ax, 1)
        tidy(ax, "both")
        return ax


def _wilson(shares: numpy.ndarray, counts: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """(p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)."""
    z2 = NINETY_FIVE**2 / counts
    half = numpy.sqrt(z2 * shares * (1 - shares) + z2**2 / 4)
    return (shares + z2 / 2 - half) / (1 + z2), (shares + z2 / 2 + half) / (1 + z2)
