"""DepthDisplay: how good a network is at every depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.utils.validation import check_is_fitted

from .canvas import FIRST, SECOND, Display, divided, legend_above, new_axes, on_host, tidy, whole_numbers


@dataclass(kw_only=True, eq=False, repr=False)
class DepthDisplay(Display):
    """How good the networks of 1, 2, ... layers are: by leave-one-out, and on rows with known answers.

    A classifier has a panel for the accuracy and one for the log-loss, a regressor one for R^2. A dotted line
    is the depth that answers, where that is not the deepest (``layer_votes="prefix"``).

    It is best made by :meth:`from_estimator`.

    Parameters
    ----------
    loo : dict of str to sequence of float
        What leave-one-out says, for each depth: "accuracy" and "log-loss", or "R^2". It may be empty.

    test : dict of str to sequence of float
        The same on other rows. It may be empty.

    n_layers : int, default=None
        The depth that answers. None is the deepest.

    Attributes
    ----------
    ax_ : tuple of matplotlib Axes
        A panel for each figure.

    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    EDRVFLClassifier : Its `loo_accuracies_` and `loo_log_losses_` are drawn here.
    EDRVFLRegressor : Its `loo_r2_scores_` are drawn here.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import DepthDisplay, EDRVFLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EDRVFLClassifier(n_hidden=20, random_state=0).fit(X[::2], y[::2])
    >>> display = DepthDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    >>> display.figure_.savefig("depth.png")  # doctest: +SKIP
    """

    loo: Mapping[str, Sequence[float]]
    test: Mapping[str, Sequence[float]]
    n_layers: int | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> DepthDisplay:
        """Draw what leave-one-out says of each depth of a fitted network, and what other rows say.

        Parameters
        ----------
        estimator : EDRVFLClassifier or EDRVFLRegressor
            A fitted network, or a search that tuned one.

        X : array-like of shape (n_samples, n_features), default=None
            Rows that were not in the fit. None draws leave-one-out alone.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Their labels or values.

        ax : matplotlib Axes, default=None
            Where to draw. Its place is divided if there are two panels. None makes a new figure.

        Returns
        -------
        display : DepthDisplay
            The display, with the axes and the figure.
        """
        check_is_fitted(estimator)
        network = getattr(estimator, "best_estimator_", estimator)
        if not hasattr(network, "network_"):
            raise TypeError(
                "DepthDisplay draws a fitted EDRVFLClassifier or EDRVFLRegressor, or a search that refitted "
                f"one, but got {type(network).__name__}. MembersDisplay draws portfolios."
            )
        if (X is None) != (y is None):
            raise ValueError("DepthDisplay needs X and y, or neither of them; only one was given.")
        classes = network.classes_ if is_classifier(network) else None
        loo = {words: getattr(network, name) for words, name in network._figures.by_layer.items()}
        test: dict[str, list[float]] = {}
        if X is not None:
            staged = network.staged_predict(X) if classes is None else network.staged_predict_proba(X)
            test = _figures_by_depth(y, staged, classes)
        elif not any(map(len, loo.values())):
            raise ValueError(
                "This network has no leave-one-out figures, because nothing asked for them: fit it with "
                'calibration="loo" or coverage_from="loo", or give X and y.'
            )
        loo = {name: figures for name, figures in loo.items() if len(figures)}
        return cls(loo=loo, test=test, n_layers=network.n_layers_).plot(ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_staged: Iterable[Any], *, classes: Any = None, ax: Any = None
    ) -> DepthDisplay:
        """Draw how good answers are that were given at each depth.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or values.

        y_staged : iterable of arrays
            For each depth the probabilities (n_samples, n_classes) that ``staged_predict_proba`` gave, or
            the values that ``staged_predict`` of a regressor gave.

        classes : array-like of shape (n_classes,), default=None
            The labels, in the order of the probabilities. None is for values.

        ax : matplotlib Axes, default=None
            Where to draw. Its place is divided if there are two panels. None makes a new figure.

        Returns
        -------
        display : DepthDisplay
            The display, with the axes and the figure.
        """
        return cls(loo={}, test=_figures_by_depth(y_true, y_staged, classes)).plot(ax)

    def _drawn(self, ax: Any) -> Any:
        names = list(dict.fromkeys([*self.loo, *self.test]))
        ax = new_axes(ax, 4.4 * len(names), 3.3)
        panels = divided(ax, len(names), len(names), across=0.85) if len(names) > 1 else (ax,)
        for panel, name in zip(panels, names, strict=True):
            self._draw(panel, name)
        legend_above(panels[0], 3)
        return panels

    def _draw(self, panel: Any, name: str) -> None:
        lines = (("leave-one-out", self.loo, FIRST, "o"), ("test", self.test, SECOND, "s"))
        for label, figures, colour, marker in lines:
            if name in figures:
                depths = range(1, 1 + len(figures[name]))
                panel.plot(depths, figures[name], color=colour, marker=marker, markersize=4.5, label=label)
        grown = max(len(figures.get(name, ())) for figures in (self.loo, self.test))
        if self.n_layers is not None and self.n_layers < grown:
            panel.axvline(self.n_layers, color="0.35", linestyle=":", zorder=1, label="answers")
        panel.set(xlabel="layers", ylabel=name, xlim=(0.7, grown + 0.3))
        whole_numbers(panel)
        tidy(panel, "y")


def _figures_by_depth(y: Any, staged: Iterable[Any], classes: Any) -> dict[str, list[float]]:
    """Measure the answers of each depth."""
    if classes is None:
        y = on_host(y)
        return {"R^2": [float(r2_score(y, on_host(values))) for values in staged]}
    found: dict[str, list[float]] = {"accuracy": [], "log-loss": []}
    y, classes = on_host(y), on_host(classes)
    for probabilities in staged:
        P = on_host(probabilities)
        found["accuracy"].append(float(accuracy_score(y, classes[P.argmax(axis=1)])))
        found["log-loss"].append(float(log_loss(y, P, labels=classes)))
    return found
