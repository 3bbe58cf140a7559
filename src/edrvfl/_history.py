"""Note what a fit tells about its layers: in fitted attributes, in verbose lines, and to callbacks."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._answers.follow import Stage
from ._arrays import Array, weighted_mean
from ._network.grow import Grown


@dataclass(slots=True)
class History:
    """What is told about the layers of a fit."""

    accuracies: list[float] = field(default_factory=list)
    loo_accuracies: list[float] = field(default_factory=list)
    loo_log_losses: list[float] = field(default_factory=list)
    fell_back: list[bool] = field(default_factory=list)
    lams: list[float | None] = field(default_factory=list)  # None where the user set the penalty

    def add(self, grown: Grown, stage: Stage | None, counts: Array | None) -> None:
        """Note a layer that was grown."""
        self.accuracies.append(float(weighted_mean(grown.right[0, :], counts)))
        self.fell_back.append(bool(grown.readout.fell_back[0]))
        self.lams.append(grown.readout.lam)
        if stage is not None:
            self.loo_accuracies.append(stage.accuracy)
            self.loo_log_losses.append(stage.log_loss)

    def figures(self) -> dict[str, tuple[float, ...]]:
        """Return the figures by layer, under the names of the fitted attributes."""
        return {
            "loo_accuracies_": tuple(self.loo_accuracies),
            "loo_log_losses_": tuple(self.loo_log_losses),
            "train_accuracies_": tuple(self.accuracies),
        }

    def line(self) -> str:
        """Describe the network so far in words."""
        if not self.loo_accuracies:
            return f"training accuracy {self.accuracies[-1]:.4f}"
        accuracy, loss = self.loo_accuracies[-1], self.loo_log_losses[-1]
        return f"leave-one-out accuracy {accuracy:.4f}, log-loss {loss:.4f}"
