"""SNN, MSRAinit, Highway and ResNet: one PyTorch trainer and four short builders.

Klambauer et al., "Self-Normalizing Neural Networks" (2017), compared these on the UCI datasets; the paper
of WPedRVFL quotes their columns. A builder makes a `Design`: how every layer is drawn, and one forward pass.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from edrvfl._sklearn import Interval, StrOptions, _fit_context

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Layer = tuple["Tensor", "Tensor"]  # W (inputs, outputs), b (outputs,)
Drop = Callable[["Tensor"], "Tensor"]

HE, LECUN = 2.0, 1.0  # variance of a weight times the number of inputs
GATE_BIAS = -2.0  # highway layers begin nearly closed; their authors give -1 to -3, by depth
SELU_FLOOR = -1.7580993408473766  # selu(-infinity) = -lambda alpha
SMOOTHING = 5  # epochs; the validation loss that stops the training is the mean of so many
SMALLEST_BATCH, LARGEST_BATCH, STEPS = 32, 128, 64  # batch_size="auto": between, for 64 steps an epoch
BLOCK = 4096  # rows of a forward pass without gradients


# --- builders ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a builder needs to know."""

    n_features: int
    n_classes: int
    n_layers: int
    n_units: int
    form: str = "rectangular"
    bottleneck: float = 0.5
    block_layers: int = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """One layer to draw: W is normal with variance gain / inputs, b is constant."""

    inputs: int
    outputs: int
    gain: float
    bias: float = 0.0


@dataclass(frozen=True, slots=True)
class Design:
    """Layers to draw, of which the last is the linear read-out; the others' forward pass; its dropout."""

    plan: tuple[Plan, ...]
    hidden: Callable[[Sequence[Layer], Tensor, Drop], Iterator[Tensor]]  # the features after each layer
    dropout: Callable[[Tensor, float, torch.Generator], Tensor]


def snn(sizes: Sizes) -> Design:
    """h <- selu(h W + b), LeCun-normal weights, alpha dropout (Klambauer et al., 2017)."""
    return Design(_chain(sizes, LECUN), partial(plain_hidden, activation="selu"), alpha_dropout)


def msra(sizes: Sizes) -> Design:
    """h <- relu(h W + b), He weights (He et al., "Delving Deep into Rectifiers", 2015)."""
    return Design(_chain(sizes, HE), partial(plain_hidden, activation="relu"), dropout)


def highway(sizes: Sizes) -> Design:
    """A projection to the width, then highway layers (Srivastava et al., "Highway Networks", 2015)."""
    n = sizes.n_units
    gated = (Plan(n, n, HE), Plan(n, n, LECUN, GATE_BIAS)) * sizes.n_layers
    plan = (Plan(sizes.n_features, n, HE), *gated, Plan(n, sizes.n_classes, LECUN))
    return Design(plan, highway_hidden, dropout)


def resnet(sizes: Sizes) -> Design:
    """A projection to the width, then h <- relu(h + F(h)) with F of two or three layers (He et al., 2016).

    There is no batch normalisation; instead the last weights of each F have 1 / n_layers of He's variance,
    so that the second moment of h grows by (1 + 2 / n_layers)^n_layers < e^2 at most, whatever the depth.
    """
    n = sizes.n_units
    inner = max(1, round(sizes.bottleneck * n)) if sizes.form == "diavolo" else n
    ends = [n, *[inner] * (sizes.block_layers - 1), n]
    gains = [*[HE] * (sizes.block_layers - 1), HE / sizes.n_layers]
    block = [Plan(i, o, g) for (i, o), g in zip(itertools.pairwise(ends), gains, strict=True)]
    plan = (Plan(sizes.n_features, n, HE), *block * sizes.n_layers, Plan(n, sizes.n_classes, LECUN))
    return Design(plan, partial(residual_hidden, block_layers=sizes.block_layers), dropout)


BUILDERS: Mapping[str, Callable[[Sizes], Design]] = MappingProxyType(
    {"snn": snn, "msra": msra, "highway": highway, "resnet": resnet}
)
FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "snn": ("rectangular", "conic"),
        "msra": ("rectangular", "conic"),
        "highway": ("rectangular",),
        "resnet": ("rectangular", "diavolo"),
    }
)


def _chain(sizes: Sizes, gain: float) -> tuple[Plan, ...]:
    """Layer after layer; conic: the widths fall to the number of classes in geometric progression."""
    n, k, L = sizes.n_units, sizes.n_classes, sizes.n_layers
    ratio = k / n if sizes.form == "conic" else 1.0
    widths = [max(1, round(n * ratio ** (l / L))) for l in range(L)]
    hidden = tuple(Plan(i, o, gain) for i, o in itertools.pairwise([sizes.n_features, *widths]))
    return (*hidden, Plan(widths[-1], k, LECUN))


def draw(plan: Sequence[Plan], generator: torch.Generator) -> list[Layer]:
    """Every layer's W and b, in float32 on the CPU, so that every device starts from the same network."""
    import torch

    layers = []
    for p in plan:
        W = torch.randn((p.inputs, p.outputs), generator=generator, dtype=torch.float32)
        b = torch.full((p.outputs,), p.bias, dtype=torch.float32)
        layers.append((W.mul_(math.sqrt(p.gain / p.inputs)), b))
    return layers


# --- kernels -----------------------------------------------------------------------------------------


def affine(h: Tensor, layer: Layer) -> Tensor:
    """h W + b."""
    W, b = layer
    return b.addmm(h, W)


def plain_hidden(layers: Sequence[Layer], h: Tensor, drop: Drop, *, activation: str) -> Iterator[Tensor]:
    """h <- g(h W + b)."""
    import torch

    g = getattr(torch, activation)
    for layer in layers:
        h = drop(g(affine(h, layer)))
        yield h


def highway_layer(h: Tensor, transform: Layer, gate: Layer, drop: Drop) -> Tensor:
    """T relu(h W_H + b_H) + (1 - T) h, T = sigmoid(h W_T + b_T); dropout leaves the carried h whole."""
    return h.lerp(drop(affine(h, transform).relu()), affine(h, gate).sigmoid())


def highway_hidden(layers: Sequence[Layer], h: Tensor, drop: Drop) -> Iterator[Tensor]:
    """The projection, then the highway layers."""
    first, *gated = layers
    h = affine(h, first).relu()
    yield h
    for transform, gate in zip(gated[::2], gated[1::2], strict=True):
        h = highway_layer(h, transform, gate, drop)
        yield h


def residual_hidden(layers: Sequence[Layer], h: Tensor, drop: Drop, *, block_layers: int) -> Iterator[Tensor]:
    """The projection, then h <- relu(h + F(h)); dropout is inside F, so that the shortcut stays whole."""
    first, *blocks = layers
    h = affine(h, first).relu()
    yield h
    for i in range(0, len(blocks), block_layers):
        *inner, last = blocks[i : i + block_layers]
        f = h
        for layer in inner:
            f = drop(affine(f, layer).relu())
        h = (h + affine(f, last)).relu()
        yield h


def logits(design: Design, layers: Sequence[Layer], X: Tensor, drop: Drop | None = None) -> Tensor:
    """The whole forward pass; `drop` in training only."""
    h = X
    for h in design.hidden(layers[:-1], X, drop or _as_it_is):  # noqa: B007  the last one is read out
        pass
    return affine(h, layers[-1])


def _as_it_is(h: Tensor) -> Tensor:
    return h


def dropout(h: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """h / (1 - rate), or 0 with probability rate. torch's own draws from its global generator."""
    keep = h.detach().new_empty(h.shape).bernoulli_(1 - rate, generator=generator)
    return h * keep / (1 - rate)


def alpha_dropout(h: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """a (h, or selu(-infinity) with probability rate) + b: mean 0 and variance 1 are kept."""
    keep = h.detach().new_empty(h.shape).bernoulli_(1 - rate, generator=generator)
    a = (1 - rate + SELU_FLOOR**2 * rate * (1 - rate)) ** -0.5
    return a * (h * keep + SELU_FLOOR * (1 - keep)) - a * rate * SELU_FLOOR


# --- trainer -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """Inputs and codes on the device."""

    X: Tensor
    y: Tensor


@dataclass(frozen=True, slots=True)
class Trained:
    """The layers kept, of which epoch they are, the mean loss of each epoch, and whether it diverged."""

    layers: list[Layer]
    epoch: int
    losses: tuple[float, ...]
    validation_losses: tuple[float, ...]
    diverged: bool


def train(
    design: Design,
    layers: Sequence[Layer],
    rows: Rows,
    held_out: Rows | None,
    *,
    learning_rate: float,
    dropout: float,
    batch_size: int,
    epochs: int,
    patience: int,
    of_batches: torch.Generator,
    of_dropout: torch.Generator,
) -> Trained:
    """Plain stochastic gradient descent on the cross-entropy.

    With held-out rows the layers of the epoch of least smoothed validation loss are kept, and `patience`
    epochs without a smaller one end the training; else those of the last epoch. Epochs after which a
    number is not finite are thrown away and end it.
    """
    import torch
    from torch.nn.functional import cross_entropy

    layers = [(W.clone().requires_grad_(), b.clone().requires_grad_()) for W, b in layers]
    parameters = [p for layer in layers for p in layer]

    def drop(h: Tensor) -> Tensor:
        return design.dropout(h, dropout, of_dropout) if dropout else h

    kept, kept_epoch, least, diverged = _copy(layers), 0, math.inf, False
    losses: list[float] = []
    validation: list[float] = []
    for epoch in range(1, epochs + 1):
        total = torch.zeros((), device=rows.X.device)
        order = torch.randperm(len(rows.y), generator=of_batches).to(rows.X.device)
        for batch in torch.split(order, batch_size):
            loss = cross_entropy(logits(design, layers, rows.X[batch], drop), rows.y[batch])
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():  # torch.optim would do; importing it takes longer than a small fit
                for p, g in zip(parameters, gradients, strict=True):
                    p.sub_(g, alpha=learning_rate)
            total += loss.detach() * len(batch)
        losses.append(float(total) / len(rows.y))
        if held_out is not None:
            loss = cross_entropy(_logits_by_blocks(design, layers, held_out.X), held_out.y)
            validation.append(float(loss))
        finite = [math.isfinite(history[-1]) for history in (losses, validation) if history]
        if diverged := not (all(finite) and all(bool(p.isfinite().all()) for p in parameters)):
            break
        smoothed = float(np.mean(validation[-SMOOTHING:])) if held_out is not None else -float(epoch)
        if smoothed < least:
            kept, kept_epoch, least = _copy(layers), epoch, smoothed
        elif epoch - kept_epoch >= patience:
            break
    return Trained(kept, kept_epoch, tuple(losses), tuple(validation), diverged)


def _copy(layers: Sequence[Layer]) -> list[Layer]:
    return [(W.detach().clone(), b.detach().clone()) for W, b in layers]


def _logits_by_blocks(design: Design, layers: Sequence[Layer], X: Tensor) -> Tensor:
    import torch

    with torch.no_grad():
        return torch.cat([logits(design, layers, block) for block in torch.split(X, BLOCK)])


def hold_out(codes: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """Mask of the rows to hold out: a share of every class, but never all of it.

    Unlike scikit-learn's splitters it takes classes of one row, which stay in training. Where every share
    rounds to nothing the largest class gives one row, if it has two.
    """
    counts = np.bincount(codes)
    take = np.minimum(np.floor(fraction * counts + 0.5).astype(int), counts - 1)
    if not take.any():
        take[counts.argmax()] = min(1, counts.max() - 1)
    mask = np.zeros(len(codes), dtype=bool)
    for code, n in enumerate(take):
        mask[rng.permutation(np.flatnonzero(codes == code))[:n]] = True
    return mask


# --- estimator ---------------------------------------------------------------------------------------


class FNNClassifier(ClassifierMixin, BaseEstimator):
    """Feed-forward network trained by gradient descent: SNN, MSRAinit, Highway or ResNet.

    Mini-batches of plain stochastic gradient descent without momentum, in float32; early stopping on a
    validation loss of rows held out inside `fit`, averaged over the last five epochs. Inputs are
    standardised with the statistics of the rows trained on. Needs PyTorch: the extra ``fnn``.

    Parameters
    ----------
    architecture : {"snn", "msra", "highway", "resnet"}, default="snn"
        SELU with LeCun-normal weights and alpha dropout; ReLU with He weights; highway layers; residual
        blocks.

    n_layers : int, default=4
        Hidden layers; highway layers; residual blocks.

    n_units : int, default=256
        Neurons in each hidden layer.

    form : {"rectangular", "conic", "diavolo"}, default="rectangular"
        Conic ("snn", "msra"): widths fall from `n_units` to the number of classes in geometric progression.
        Diavolo ("resnet"): layers inside a block have `bottleneck` times `n_units` neurons.

    bottleneck : float, default=0.5
        Share of `n_units` inside a block of the form "diavolo".

    block_layers : int, default=2
        Layers of a residual block, 2 or 3.

    learning_rate : float, default=0.1
        Step of the gradient descent.

    dropout : float, default=0.0
        Share of neurons dropped in each training step, in [0, 1). 0 is neutral.

    batch_size : int or "auto", default="auto"
        Rows of a step. "auto" is what makes 64 steps an epoch, but at least 32 and at most 128.

    max_epochs : int, default=100
        Most passes over the rows.

    validation_fraction : float, default=0.1
        Share of the rows held out, class by class, for early stopping.

    patience : int, default=20
        Epochs without a smaller smoothed validation loss that end the training.

    n_epochs : int or None, default=None
        Number of epochs of a training on all rows, without early stopping: what a refit uses, with the
        mean of `n_epochs_` over the fits of a search.

    device : str or None, default=None
        Where torch computes, "cpu" or "cuda". None is where `X` lies if it is a torch tensor, else the CPU.

    random_state : int, RandomState instance or None, default=None
        Seed of weights, held-out rows, batches and dropout. On one device the same seed gives the same
        bits; all but the dropout is the same on every device. torch's global generator is not used.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when `X` has string names.

    n_epochs_ : int
        The epoch whose weights were kept; 0 if the first one diverged.

    losses_ : tuple of float
        Mean training loss of each epoch.

    validation_losses_ : tuple of float
        Loss on the held-out rows after each epoch, not smoothed; empty without such rows.

    scaler_ : StandardScaler
        Means and scales of the columns.

    weights_ : list of pair of ndarray
        W and b of each layer, the read-out last, whatever the device.

    Notes
    -----
    Training is in float32. Predictions are made in float64, so that a row's does not depend on the others.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl.bench.baselines.fnn import FNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = FNNClassifier("snn", n_layers=2, n_units=32, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "architecture": [StrOptions(set(BUILDERS))],
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "n_units": [Interval(Integral, 1, None, closed="left")],
        "form": [StrOptions({form for forms in FORMS.values() for form in forms})],
        "bottleneck": [Interval(Real, 0, 1, closed="right")],
        "block_layers": [Interval(Integral, 2, 3, closed="both")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "n_epochs": [Interval(Integral, 0, None, closed="left"), None],
        "device": [str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        architecture: str = "snn",
        *,
        n_layers: int = 4,
        n_units: int = 256,
        form: str = "rectangular",
        bottleneck: float = 0.5,
        block_layers: int = 2,
        learning_rate: float = 0.1,
        dropout: float = 0.0,
        batch_size: int | str = "auto",
        max_epochs: int = 100,
        validation_fraction: float = 0.1,
        patience: int = 20,
        n_epochs: int | None = None,
        device: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.architecture = architecture
        self.n_layers = n_layers
        self.n_units = n_units
        self.form = form
        self.bottleneck = bottleneck
        self.block_layers = block_layers
        self.learning_rate = learning_rate
        self.dropout = dropout
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_epochs = n_epochs
        self.device = device
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> FNNClassifier:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numeric, finite training rows.

        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self : FNNClassifier
            The fitted estimator.
        """
        if self.form not in FORMS[self.architecture]:
            raise ValueError(
                f"form={self.form!r} is not one of architecture={self.architecture!r}; choose "
                f"{' or '.join(map(repr, FORMS[self.architecture]))}."
            )
        where = _device(self.device, X)
        X, y = validate_data(self, _host(X), _host(y), dtype=np.float64)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"{type(self).__name__} needs at least two classes, but y holds one class.")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        of_rows, *of_torch = np.random.SeedSequence(seed).spawn(4)
        of_weights, of_batches = (_generator(s, "cpu") for s in of_torch[:2])
        held = np.zeros(len(codes), dtype=bool)
        if self.n_epochs is None:
            held = hold_out(codes, self.validation_fraction, np.random.default_rng(of_rows))
        self.classes_ = classes
        self.scaler_ = StandardScaler().fit(X[~held])
        design = self._design()
        trained = train(
            design,
            [(W.to(where), b.to(where)) for W, b in draw(design.plan, of_weights)],
            self._rows(X[~held], codes[~held], where),
            self._rows(X[held], codes[held], where) if held.any() else None,
            learning_rate=self.learning_rate,
            dropout=self.dropout,
            batch_size=_batch_size(self.batch_size, int((~held).sum())),
            epochs=self.max_epochs if self.n_epochs is None else self.n_epochs,
            patience=self.patience,
            of_batches=of_batches,
            of_dropout=_generator(of_torch[2], where),
        )
        self.weights_ = [(W.cpu().numpy(), b.cpu().numpy()) for W, b in trained.layers]
        self.n_epochs_ = trained.epoch
        self.losses_ = trained.losses
        self.validation_losses_ = trained.validation_losses
        if trained.diverged:
            warnings.warn(
                f"The training diverged in epoch {len(trained.losses)} with learning_rate="
                f"{self.learning_rate}; the weights of epoch {trained.epoch} were kept. Lower learning_rate.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

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

    def _rows(self, X: np.ndarray, codes: np.ndarray, where: torch.device) -> Rows:
        import torch

        inputs = torch.asarray(self.scaler_.transform(X), dtype=torch.float32, device=where)
        return Rows(inputs, torch.asarray(codes, dtype=torch.int64, device=where))

    def _logits(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        where = _device(self.device, X)
        import torch

        X = self.scaler_.transform(validate_data(self, _host(X), reset=False, dtype=np.float64))

        def wide(array: np.ndarray) -> Tensor:
            return torch.asarray(np.array(array, dtype=np.float64), device=where)

        layers = [(wide(W), wide(b)) for W, b in self.weights_]
        answer: np.ndarray = _logits_by_blocks(self._design(), layers, wide(X)).cpu().numpy()
        return answer

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels as they came in `fit`.
        """
        codes = self._logits(X).argmax(axis=1)
        labels: np.ndarray = self.classes_[codes]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Softmax of the outputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; each row sums to 1.
        """
        P: np.ndarray = softmax(self._logits(X), axis=1)
        return P

    def decision_function(self, X: Any) -> np.ndarray:
        """The outputs; for two classes the second less the first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            `predict` takes the largest, or for two classes the sign.
        """
        F = self._logits(X)
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F


def _batch_size(batch_size: int | str, m: int) -> int:
    if isinstance(batch_size, str):
        return min(LARGEST_BATCH, max(SMALLEST_BATCH, m // STEPS))
    return batch_size


def _generator(seed: np.random.SeedSequence, where: torch.device | str) -> torch.Generator:
    import torch

    return torch.Generator(where).manual_seed(int(seed.generate_state(1, np.uint64)[0] >> 1))


def _device(device: str | None, X: Any) -> torch.device:
    """Where to compute; the first to need torch, so the one to say that it is absent."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "FNNClassifier needs PyTorch, which is not installed: pip install 'edrvfl[fnn]'."
        ) from error
    if device is None:
        return X.device if isinstance(X, torch.Tensor) else torch.device("cpu")
    where = torch.device(device)
    if where.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r}, but torch finds no CUDA device; use device='cpu'.")
    return where


def _host(array: Any) -> Any:
    """A torch tensor as NumPy, anything else as it is."""
    return array.detach().cpu().numpy() if hasattr(array, "detach") else array


# --- search spaces -----------------------------------------------------------------------------------

# Depths, widths and learning rates are as in a public re-run of the SNN study on these data. Not verified
# against that study's appendix: dropout, forms, bottlenecks, the blocks of ResNet.
_DEPTHS, _WIDTHS, _RATES = (2, 3, 4, 8, 16, 32), (1024, 512, 256), (0.01, 0.1, 1.0)
_PLAIN = {"n_layers": _DEPTHS, "n_units": _WIDTHS, "learning_rate": _RATES, "form": FORMS["snn"]}
_BLOCKS = {
    "n_layers": (2, 3, 4, 8, 16),
    "n_units": _WIDTHS,
    "learning_rate": _RATES,
    "dropout": (0.0, 0.5),
    "block_layers": (2, 3),
}
GRIDS: Mapping[str, tuple[Mapping[str, Sequence[Any]], ...]] = MappingProxyType(
    {
        "snn": ({**_PLAIN, "dropout": (0.0, 0.05)},),
        "msra": ({**_PLAIN, "dropout": (0.0, 0.5)},),
        "highway": (
            {"n_layers": _DEPTHS, "n_units": _WIDTHS, "learning_rate": _RATES, "dropout": (0.0, 0.5)},
        ),
        "resnet": (
            {**_BLOCKS, "form": ("rectangular",)},
            {**_BLOCKS, "form": ("diavolo",), "bottleneck": (0.25, 0.5)},
        ),
    }
)


def _four(*rows: tuple[int, int, float, float]) -> tuple[Mapping[str, Any], ...]:
    keys = ("n_layers", "n_units", "learning_rate", "dropout")
    return tuple(dict(zip(keys, row, strict=True)) for row in rows)


# Four points of each grid, at most 16 layers deep and 512 wide, for a study that cannot run them all.
REDUCED: Mapping[str, tuple[Mapping[str, Any], ...]] = MappingProxyType(
    {
        "snn": _four((4, 256, 0.1, 0.0), (2, 512, 0.01, 0.05), (8, 256, 0.01, 0.05), (16, 256, 0.01, 0.0)),
        "msra": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.01, 0.0), (16, 256, 0.01, 0.0)),
        "highway": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.1, 0.0), (16, 256, 0.01, 0.0)),
        "resnet": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.1, 0.0), (8, 256, 0.01, 0.0)),
    }
)


def configurations(architecture: str, trials: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """What to try: up to four trials the reduced grid; else a draw without repetition from the whole grid.

    More trials than the grid has points are the whole grid.

    Examples
    --------
    >>> configurations("snn")[0]
    {'n_layers': 4, 'n_units': 256, 'learning_rate': 0.1, 'dropout': 0.0}
    >>> len(configurations("snn", 50, seed=1)), len(configurations("snn", 1000, seed=1))
    (50, 216)
    """
    if architecture not in GRIDS:
        raise ValueError(f"Unknown architecture {architecture!r}; choose one of {', '.join(GRIDS)}.")
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    if trials <= len(REDUCED[architecture]):
        return [dict(configuration) for configuration in REDUCED[architecture][:trials]]
    points = [
        dict(zip(grid, values, strict=True))
        for grid in GRIDS[architecture]
        for values in itertools.product(*grid.values())
    ]
    order = np.random.default_rng(seed).permutation(len(points))
    return [points[i] for i in order[:trials]]
