"""Note what a fit tells about its layers: in fitted attributes, in verbose lines, and to callbacks."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._layers.grow import Grown
from .._loo.follow import Stage
from .._seam.arrays import Array, weighted_mean


@dataclass(frozen=True, slots=True)
class Figures:
    """How an estimator calls its score, which is 1 minus the mean loss, and what else it minimises."""

    score: str  # in words
    train_scores: str  # the fitted attributes
    loo_scores: str
    loo_score: str  # of one answer without layers
    loss: str = ""  # in words; empty if it says no more than the score
    loo_losses: str = ""
    loo_loss: str = ""

    def of_answer(self, score: float, loss: float) -> dict[str, float]:
        """Return the figures of an answer without layers, under the names of the fitted attributes."""
        figures = {self.loo_score: score}
        return {**figures, self.loo_loss: loss} if self.loss else figures

    def words(self, score: float, loss: float) -> str:
        """Say what leave-one-out says."""
        line = f"leave-one-out {self.score} {score:.4f}"
        return f"{line}, {self.loss} {loss:.4f}" if self.loss else line


ACCURACY = Figures(
    "accuracy",
    "train_accuracies_",
    "loo_accuracies_",
    "loo_accuracy_",
    "log-loss",
    "loo_log_losses_",
    "loo_log_loss_",
)
R2 = Figures("R^2", "train_r2_scores_", "loo_r2_scores_", "loo_r2_score_")


@dataclass(slots=True)
class History:
    """What is told about the layers of a fit."""

    names: Figures
    train_scores: list[Array] = field(default_factory=list)  # on the device: reading them early would stop it
    loo_scores: list[float] = field(default_factory=list)  # empty without leave-one-out
    loo_losses: list[float] = field(default_factory=list)
    fell_back: list[Array] = field(default_factory=list)
    lams: list[float | None] = field(default_factory=list)  # None where the user set the penalty

    def add(self, grown: Grown, stage: Stage | None, counts: Array | None) -> None:
        """Note a layer that was grown."""
        self.train_scores.append(weighted_mean(1 - grown.losses[0, :], counts))
        self.fell_back.append(grown.readout.fell_back[0])
        self.lams.append(grown.readout.lam)
        if stage is not None:
            self.loo_scores.append(stage.score)
            self.loo_losses.append(stage.loss)

    def figures(self) -> dict[str, tuple[float, ...]]:
        """Return the figures by layer, under the names of the fitted attributes."""
        names = self.names
        train_scores = tuple(float(score) for score in self.train_scores)
        found = {names.loo_scores: tuple(self.loo_scores), names.train_scores: train_scores}
        if names.loss:
            found[names.loo_losses] = tuple(self.loo_losses)
        return found

    def line(self) -> str:
        """Describe the network so far in words."""
        if not self.loo_scores:
            return f"training {self.names.score} {float(self.train_scores[-1]):.4f}"
        return self.names.words(self.loo_scores[-1], self.loo_losses[-1])
