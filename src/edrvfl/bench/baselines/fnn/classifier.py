"""FNNClassifier: the four networks as one scikit-learn classifier."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from array_api_compat import is_torch_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import packages
from ..randomised import (
    COUNT,
    POSITIVE,
    Interval,
    ScoredClassifier,
    StrOptions,
    fit_context,
    seed_sequence,
    to_host,
)
from .networks import BUILDERS, FORMS, Design, Sizes, draw_layers, forward_by_blocks
from .training import Job, Rows, hold_out, train_again

if TYPE_CHECKING:
    import torch
    from torch import Tensor

NETWORKS = "Each of SNN, MSRAinit, Highway and ResNet"  # in the message about a missing package
SMALLEST_BATCH, LARGEST_BATCH, STEPS = 32, 128, 64  # batch_size="auto" aims at 64 steps in an epoch


@dataclass(eq=False, repr=False)
class FNNClassifier(ScoredClassifier):
    """Feed-forward network trained by gradient descent: SNN, MSRAinit, Highway or ResNet.

    Training is stochastic gradient descent with mini-batches, without momentum, in float32. `fit` holds out
    some rows, and stops early by their loss, averaged over the last five epochs. Inputs are standardised by
    the rows that train. The class needs PyTorch: install the extra ``fnn``.

    Predictions are computed in float64, so that those of a row do not depend on the rows beside it.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "architecture": [StrOptions(set(BUILDERS))],
        "n_layers": [COUNT],
        "n_units": [COUNT],
        "form": [StrOptions({form for forms in FORMS.values() for form in forms})],
        "bottleneck": [Interval(Real, 0, 1, closed="right")],
        "block_layers": [Interval(Integral, 2, 3, closed="both")],
        "learning_rate": [POSITIVE],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "batch_size": [COUNT, StrOptions({"auto"})],
        "max_epochs": [COUNT],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "patience": [COUNT],
        "restarts": [Interval(Integral, 0, None, closed="left")],
        "device": [str, None],
        "random_state": ["random_state"],
    }

    # "snn" has SELU, LeCun-normal weights and alpha dropout; "msra" has ReLU and He weights; "highway" has
    # highway layers; "resnet" has residual blocks.
    architecture: str = "snn"
    _: KW_ONLY
    n_layers: int = 4  # hidden layers, highway layers or residual blocks
    n_units: int = 256  # neurons in each hidden layer
    # "conic" (for "snn" and "msra"): widths shrink from `n_units` to the number of classes in a geometric
    # progression. "diavolo" (for "resnet"): layers inside a block have `bottleneck` times `n_units` neurons.
    form: str = "rectangular"
    bottleneck: float = 0.5
    block_layers: int = 2  # in a residual block, 2 or 3
    learning_rate: float = 0.1
    dropout: float = 0.0  # share of neurons dropped in each training step
    batch_size: int | str = "auto"  # rows in a step; "auto" makes 64 steps an epoch, of 32 to 128 rows
    max_epochs: int = 100
    validation_fraction: float = 0.1  # of the rows, held out class by class for early stopping
    patience: int = 20  # training ends after so many epochs without a smaller smoothed validation loss
    restarts: int = 3  # of a training that diverges, from the same weights, each with a tenth of the rate
    device: str | None = None  # "cpu" or "cuda"; None means that of `X` if it is a torch tensor, else the CPU
    # Seeds weights, held-out rows, batches and dropout: the same bits on one device, the same draws on every
    # device. torch's global generator is not used.
    random_state: Any = None

    @fit_context()
    def fit(self, X: Any, y: Any) -> FNNClassifier:
        """Train the network on numeric, finite rows with labels of at least two classes."""
        where = _choose_device(self.device, X)
        trained, self.learning_rate_ = train_again(self._prepare_job(X, y), where, self.restarts)
        self._layers: Any = trained.layers  # they stay on the device, where they will be asked
        self.n_epochs_ = (
            trained.epoch
        )  # whose weights were kept; 0 if the first one diverged in all trainings
        self.losses_ = tuple(trained.losses)
        self.validation_losses_ = tuple(trained.validation_losses)
        if trained.diverged:
            warnings.warn(
                f"The training diverged in epoch {len(trained.losses)} with learning_rate="
                f"{self.learning_rate_:g}; the weights of epoch {trained.epoch} were kept. "
                "Lower learning_rate, or allow more restarts.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _prepare_job(self, X: Any, y: Any) -> Job:
        """Check the rows, hold some out, learn the scaling and draw the network."""
        if self.form not in FORMS[self.architecture]:
            raise ValueError(
                f"form={self.form!r} is not one of architecture={self.architecture!r}; choose "
                f"{' or '.join(map(repr, FORMS[self.architecture]))}."
            )
        X, targets = self._prepare_training_rows(_to_host(X), _to_host(y))
        row_seed, weight_seed, batch_seed, dropout_seed = seed_sequence(self.random_state).spawn(4)
        self.scaler_, rows, held_out = self._divide(X.astype(np.float64), targets.codes, row_seed)
        design = self._design()
        return Job(
            design,
            draw_layers(design.plan, _generator(weight_seed)),
            rows,
            held_out,
            learning_rate=self.learning_rate,
            dropout=self.dropout,
            batch_size=_choose_batch_size(self.batch_size, len(rows.y)),
            epochs=self.max_epochs,
            patience=self.patience,
            batch_seed=_integer(batch_seed),
            dropout_seed=_integer(dropout_seed),
        )

    def _divide(
        self, X: np.ndarray, codes: np.ndarray, seed: np.random.SeedSequence
    ) -> tuple[StandardScaler, Rows, Rows | None]:
        """Divide rows into those that train and those that are held out, scaled by the former."""
        import torch

        held = hold_out(codes, self.validation_fraction, np.random.default_rng(seed))
        scaler = StandardScaler().fit(X[~held])

        def rows(mask: np.ndarray) -> Rows:
            inputs = torch.asarray(scaler.transform(X[mask]), dtype=torch.float32)
            return Rows(inputs, torch.asarray(codes[mask], dtype=torch.int64))

        return scaler, rows(~held), rows(held) if held.any() else None

    def _design(self) -> Design:
        sizes = Sizes(
            n_features=self.n_features_in_,
            n_classes=len(self.classes_),
            n_layers=self.n_layers,
            n_units=self.n_units,
            form=self.form,
            bottleneck=self.bottleneck,
            block_layers=self.block_layers,
        )
        return BUILDERS[self.architecture](sizes)

    def _scores(self, X: Any, method: str) -> np.ndarray:  # noqa: ARG002  rows of any library are taken
        """Compute the logits."""
        check_is_fitted(self)
        where = _choose_device(self.device, X)
        import torch

        X = self.scaler_.transform(validate_data(self, _to_host(X), reset=False, dtype=np.float64))

        def widen(array: Any) -> Tensor:
            return (torch.tensor(array) if isinstance(array, np.ndarray) else array).to(where, torch.float64)

        layers = [(widen(W), widen(b)) for W, b in self._layers]
        logits: np.ndarray = forward_by_blocks(self._design(), layers, widen(X)).cpu().numpy()
        return logits

    @property
    def weights_(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """W and b of each layer, the read-out last."""
        return [(_to_host(W), _to_host(b)) for W, b in self._layers]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "_layers" in state:  # a model trained on a GPU loads on a machine without one, and without torch
            state["_layers"] = self.weights_
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False  # rows of any library are taken, but answers are in NumPy
        return tags


def _choose_batch_size(batch_size: int | str, m: int) -> int:
    if isinstance(batch_size, str):
        return min(LARGEST_BATCH, max(SMALLEST_BATCH, m // STEPS))
    return batch_size


def _integer(seed: np.random.SeedSequence) -> int:
    return int(seed.generate_state(1, np.uint64)[0] >> 1)


def _generator(seed: np.random.SeedSequence) -> torch.Generator:
    import torch

    return torch.Generator().manual_seed(_integer(seed))


def _choose_device(device: str | None, X: Any) -> torch.device:
    """Find out where to compute. Every fit and prediction starts here, so here a missing torch is noticed."""
    torch = packages.import_package(NETWORKS, "torch", "fnn")
    if device is None:
        return X.device if is_torch_array(X) else torch.device("cpu")
    where = torch.device(device)
    if where.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r}, but torch finds no CUDA device; use device='cpu'.")
    return where


def _to_host(array: Any) -> Any:
    """Copy a torch tensor to NumPy; return anything else, a frame or a list, as it is."""
    return to_host(array.detach()) if is_torch_array(array) else array
