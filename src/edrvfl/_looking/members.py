"""MembersDisplay: a picture of what is inside a portfolio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .canvas import FIRST, PALE, SECOND, Display, bars_from_the_top, divided, new_axes, plain


@dataclass(kw_only=True, eq=False, repr=False)
class MembersDisplay(Display):
    """The members of a fitted portfolio: what each weighs, and how good each is by leave-one-out.

    Bars on the left are the weights. On the right a dot is a member's leave-one-out log-loss, or R^2 in a
    regressor, and the line is that of the portfolio, after its calibration. Members are sorted by weight.
    Those without a say, which lost the race or got a negligible weight, are pale.

    It is best made by :meth:`from_estimator`.

    Parameters
    ----------
    names : sequence of str
        The members' names.

    weights : sequence of float
        The members' weights in the common answer, 0 for those without a say.

    figures : sequence of float
        The members' leave-one-out log-losses, or their R^2.

    common_figure : float
        That of the common answer.

    measure : {"log-loss", "R^2"}, default="log-loss"
        What the figures are.

    Attributes
    ----------
    ax_ : tuple of two matplotlib Axes
        The panel of the weights and the panel of the figures.

    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    EDRVFLPortfolioClassifier : Its ``members_`` is the table that is drawn here.
    EDRVFLPortfolioRegressor : The same for values.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLPortfolioClassifier, MembersDisplay
    >>> model = EDRVFLPortfolioClassifier(random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = MembersDisplay.from_estimator(model)  # doctest: +SKIP
    >>> display.figure_.savefig("members.png")  # doctest: +SKIP
    """

    names: Sequence[str]
    weights: Sequence[float]
    figures: Sequence[float]
    common_figure: float
    measure: str = "log-loss"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> MembersDisplay:
        """Draw the members of a fitted portfolio.

        Parameters
        ----------
        estimator : EDRVFLPortfolioClassifier or EDRVFLPortfolioRegressor
            A fitted portfolio.

        ax : matplotlib Axes, default=None
            Where to draw. Its place is divided into two panels. None makes a new figure.

        Returns
        -------
        display : MembersDisplay
            The display, with the axes and the figure.
        """
        if not hasattr(estimator, "default_members"):
            got = type(estimator).__name__
            raise TypeError(
                "MembersDisplay draws a fitted EDRVFLPortfolioClassifier or EDRVFLPortfolioRegressor, "
                f"but got {got}."
            )
        check_is_fitted(estimator)
        table = estimator.members_
        *_, (measure, name) = estimator._figures.of_all.items()
        display = cls(
            names=table["member"],
            weights=table["weight"],
            figures=table[name.removesuffix("_")],
            common_figure=getattr(estimator, name),
            measure=measure,
        )
        return display.plot(ax)

    def _drawn(self, ax: Any) -> Any:
        ax = new_axes(ax, 8, 1.3 + 0.34 * len(self.names))
        left, right = divided(ax, 2, 2)
        better = -1 if self.measure == "R^2" else 1  # the larger, or the smaller
        order = sorted(range(len(self.names)), key=lambda i: (-self.weights[i], better * self.figures[i]))
        colours = [FIRST if self.weights[i] > 0 else PALE for i in order]
        self._draw_weights(left, order, colours)
        self._draw_figures(right, order, colours)
        for panel in (left, right):
            bars_from_the_top(panel, len(order))
        return (left, right)

    def _draw_weights(self, panel: Any, order: list[int], colours: list[str]) -> None:
        """Draw a bar for each weight, with its figure at the end."""
        weights = [self.weights[i] for i in order]
        bars = panel.barh(range(len(order)), weights, color=colours, height=0.62)
        words = [f"{weight:.2f}" if weight > 0 else "no say" for weight in weights]
        panel.bar_label(bars, words, padding=4, color="0.35", fontsize="small")
        panel.set_yticks(range(len(order)), [plain(self.names[i]) for i in order])
        for label, weight in zip(panel.get_yticklabels(), weights, strict=True):
            label.set_color("black" if weight > 0 else "0.5")
        panel.set_xlim(0, 1.18 * max(weights))
        panel.set_xlabel("weight")

    def _draw_figures(self, panel: Any, order: list[int], colours: list[str]) -> None:
        """Draw a dot for each figure, and a line for that of the portfolio."""
        places = range(len(order))
        panel.scatter([self.figures[i] for i in order], places, c=colours, s=44, zorder=3)
        common = self.common_figure
        panel.axvline(common, color=SECOND, linewidth=1.8, zorder=2)
        panel.set_yticks(places, [""] * len(order))
        panel.margins(x=0.08)
        side = "left" if common < sum(panel.get_xlim()) / 2 else "right"  # where there is room for words
        above = {"transform": panel.get_xaxis_transform(), "ha": side, "va": "bottom"}
        panel.text(common, 1.01, f"portfolio {common:.3g}", color=SECOND, **above)
        panel.set_xlabel(f"leave-one-out {self.measure}")
