"""An estimator is read here and nowhere else: its parameters become frozen records.

Two records that are equal mean the same work, so what may be shared in a search, or by the members of a
portfolio, derives from their fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sklearn.utils import get_tags

from .._inputs.encoding import EncoderSettings
from .._layers.records import OF_GROWTH, DrawSettings, Settings
from .._loo.follow import Votes
from .systems import KernelSettings

# Of so many rows a layer's training predictions are nearly its leave-one-out predictions, which would cost as
# much as the Gram matrix.
LOO_WEIGHTS_ROWS = 10_000


MOST_ROUNDS = 3  # of gradient factors in a kernel
RACE_ROWS = 640  # of which a kernel proves how good it is, and how often factors help it
# The inputs that suit each kernel: a smooth one sees numbers as they are, and one by columns their ranks.
SUITED = {"laplace": "bins", "matern": "standard", "product": "ranks", "additive": "ranks"}


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work a portfolio does: its members, if none are given, and the proof of its kernel voters."""

    kernels: tuple[str, ...]  # of the kernel voters
    n_hidden: int  # of the networks; 0: there are none
    kept: int  # how many kernel voters are fitted, if there are more
    rounds: int  # of gradient factors at most
    race_rows: int  # of which kernel voters prove how good they are


# What each gains and costs on validation rows: docs/decisions.md, the portfolio.
EFFORTS: Mapping[str, Effort] = {
    "quick": Effort(("laplace", "matern", "product"), 0, 1, 1, 300),
    "usual": Effort(("laplace", "matern", "product"), 256, 2, MOST_ROUNDS, RACE_ROWS),
}
PAPER_WEIGHTS = {"omega_r": 0.8, "p": 0.2}  # of the samples that were right, and of pruned neurons


@dataclass(frozen=True, slots=True)
class InputSettings:
    """How the columns of a frame or an array become the inputs of a model."""

    encoder: EncoderSettings | None  # None takes finite numbers as they are
    categorical_features: Hashable = "from_dtype"  # which columns hold categories: also None, or a tuple
    text_features: Hashable = "from_dtype"  # which hold short text, likewise
    scaling: str | None = None  # "gradient"; "loo" until that has proven itself
    kernel: str = "laplace"  # of the ridge that finds factors and proves them
    rounds: int = 1  # how often factors are found at most, each time in the columns times those before
    raced: bool = False  # a kernel, which proves itself on some of the rows beside other kernels

    @property
    def looks_at_labels(self) -> bool:
        """Whether labels shape the inputs, or a ridge that tells how good they are."""
        return self.scaling is not None or self.raced


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Everything that decides how a network is fitted, beside the training rows and the seed."""

    layers: Settings
    votes: Votes = field(metadata=OF_GROWTH)
    inputs: InputSettings
    judges: bool = field(metadata=OF_GROWTH)  # whether the leave-one-out scores of every layer are wanted

    grows: ClassVar = True  # layer by layer

    @property
    def depth(self) -> int:
        """How many layers there will be."""
        return int(self.layers.n_layers)

    @property
    def looks_at_labels(self) -> bool:
        """Whether labels shape more than read-outs of given penalties, whose leave-one-out is exact.

        The number of layers has no say, so that a prefix of a deep network is judged as the shallower one.
        """
        layers, scales = self.layers, self.inputs.scaling is not None
        return layers.lam is None or layers.weighs or layers.prunes or layers.draws.pair_share > 0 or scales

    @property
    def to_prove(self) -> tuple[str, ...]:
        """What of the layers is used only if leave-one-out is better with it."""
        return tuple(name for name in PAPER_WEIGHTS if getattr(self.layers, name) == "loo")

    def proven(self, used: bool) -> NetworkSettings:
        """Return the settings in which all that had to prove itself is used as in the paper, or is not."""
        values = PAPER_WEIGHTS if used else {"omega_r": 1.0, "p": 0.0}
        proven: dict[str, Any] = {name: values[name] for name in self.to_prove}
        layers = dataclasses.replace(self.layers, **proven)
        return dataclasses.replace(self, layers=layers)

    def as_member(self, m: float) -> NetworkSettings:
        """Return the settings of a portfolio's member: equal votes, and one temperature on their mean."""
        found = self.for_rows(m)
        layers = found.layers
        if m > LOO_WEIGHTS_ROWS:
            layers = dataclasses.replace(layers, weight_from="train")
        return dataclasses.replace(found, layers=layers, votes=Votes(found.votes.rule), judges=True)

    def as_fitted(self, n_layers: int, scaling: str | None) -> dict[str, Any]:
        """Return the parameters of an estimator that rows may have changed, after so many layers."""
        of_layers = {"n_layers": n_layers, "n_hidden": self.layers.n_hidden, "input_scaling": scaling}
        used = {"correct_weight": self.layers.omega_r, "prune_rate": self.layers.p}
        return {**of_layers, **used, "weight_from": self.layers.weight_from}

    def for_rows(self, m: float) -> NetworkSettings:
        """Return these settings with what "auto" stands for with so many training rows."""
        return dataclasses.replace(self, layers=self.layers.for_rows(m))


@dataclass(frozen=True, slots=True)
class KernelFit:
    """Everything that decides how a kernel model is fitted, beside the training rows and the seed."""

    kernel: KernelSettings
    inputs: InputSettings
    calibration: str | None = "temperature"

    grows: ClassVar = False
    depth: ClassVar = 1

    def candidates(self) -> tuple[KernelFit, ...]:
        """Return the fits among which leave-one-out chooses: one for each kernel, if none is named."""
        named = self.kernel.kernel
        return tuple(self._with(kernel) for kernel in (SUITED if named == "loo" else (named,)))

    def as_raced(self, rounds: int = MOST_ROUNDS) -> KernelFit:
        """Return this fit as one that proves on some of the rows how good it is."""
        inputs = dataclasses.replace(self.inputs, rounds=rounds, raced=True)
        return dataclasses.replace(self, inputs=inputs)

    def _with(self, kernel: str) -> KernelFit:
        """Return this fit with a kernel, which sees the inputs that suit it if none are named."""
        encoder = self.inputs.encoder
        if encoder is not None and encoder.numbers == "loo":
            encoder = EncoderSettings(SUITED[kernel])
        inputs = dataclasses.replace(self.inputs, encoder=encoder, kernel=kernel)
        return dataclasses.replace(
            self, kernel=dataclasses.replace(self.kernel, kernel=kernel), inputs=inputs
        )

    def as_member(self, m: float) -> KernelFit:  # noqa: ARG002
        """Return the settings of a portfolio's member: one temperature."""
        return dataclasses.replace(self, calibration="temperature")

    def as_fitted(self, n_layers: int, scaling: str | None) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters of an estimator that rows may have changed."""
        return {"kernel": self.kernel.kernel, "input_scaling": scaling}


@dataclass(frozen=True, slots=True)
class GuestFit:
    """An estimator of scikit-learn that is a member, and how it sees columns."""

    estimator: Any
    inputs: InputSettings

    grows: ClassVar = False
    depth: ClassVar = 1

    def as_member(self, m: float) -> GuestFit:  # noqa: ARG002
        """Return the settings as they are."""
        return self

    def as_fitted(self, n_layers: int, scaling: str | None) -> dict[str, Any]:  # noqa: ARG002
        """Rows change no parameter beyond those that the fit notes."""
        return {}


VoterSettings = NetworkSettings | KernelFit | GuestFit


def encoder_settings(encoder: Any) -> EncoderSettings | None:
    """Read the parameter `encoder`: a name, a TabularEncoder, or None."""
    if encoder is None:
        return None
    if isinstance(encoder, str):
        return EncoderSettings(encoder)
    names = [one.name for one in dataclasses.fields(EncoderSettings)]
    return EncoderSettings(**{name: getattr(encoder, name) for name in names})


def column_settings(given: Any) -> Hashable:
    """Read which columns hold categories, or text: "from_dtype", None, or names, positions or a mask."""
    if given is None or isinstance(given, str):
        return given
    return tuple(getattr(given, "tolist", lambda: given)())


def input_settings(e: Any) -> InputSettings:
    """Read how an estimator sees columns. A portfolio has no encoder: its members have."""
    if not hasattr(e, "encoder"):
        return InputSettings(
            EncoderSettings(), column_settings(e.categorical_features), column_settings(e.text_features)
        )
    named = ("categorical_features", "text_features")
    columns, texts = (column_settings(getattr(e.encoder, name, "from_dtype")) for name in named)
    return InputSettings(encoder_settings(e.encoder), columns, texts, e.input_scaling)


def network_settings(e: Any) -> NetworkSettings:
    """Read the parameters of an EDRVFLClassifier or EDRVFLRegressor."""
    lam = None if e.regularization == "loo" else float(e.regularization)
    pairs = [isinstance(value, (tuple, list)) for value in (e.norm_scale, e.norm_shift)]
    # a pair is drawn for each neuron, which only re-normalised neurons have a use for
    scales, shifts = (
        (float(value[0]), float(value[1])) if pair and e.renormalize else None
        for value, pair in zip((e.norm_scale, e.norm_shift), pairs, strict=True)
    )
    layers = Settings(
        n_layers=e.n_layers,
        n_hidden=e.n_hidden,
        activation=e.activation,
        renormalize=e.renormalize,
        lam=lam,
        gamma=1.0 if pairs[0] else e.norm_scale,
        alpha=0.0 if pairs[1] else e.norm_shift,
        omega_r=e.correct_weight,
        p=e.prune_rate,
        weight_from=e.weight_from,
        draws=DrawSettings(e.inputs_per_neuron, e.hidden_per_neuron, scales, shifts, float(e.pair_share)),
        joint=e.readout == "joint",
    )
    votes = Votes(
        getattr(e, "ensemble", "value"), e.layer_votes, getattr(e, "calibration", None), layers.joint
    )
    calls = e.coverage_from if votes.rule == "value" else votes.calibration  # who asks for leave-one-out
    return NetworkSettings(layers, votes, input_settings(e), calls is not None or e.layer_votes != "equal")


def kernel_settings(e: Any) -> KernelFit:
    """Read the parameters of a KernelRidgeClassifier or KernelRidgeRegressor."""
    h, lam = (None if value == "loo" else float(value) for value in (e.bandwidth, e.regularization))
    n = e.n_landmarks
    kernel = KernelSettings(h, lam, n if n is None or n == "auto" else int(n), e.kernel)
    found = KernelFit(kernel, input_settings(e), getattr(e, "calibration", None))
    return found if e.kernel == "laplace" else found.as_raced()


def voter_settings(e: Any) -> VoterSettings:
    """Read the parameters of an estimator that can be a member of a portfolio."""
    return network_settings(e) if hasattr(e, "n_layers") else kernel_settings(e)


def guest_settings(e: Any) -> GuestFit:
    """Read an estimator of scikit-learn: one that takes gaps, as trees do, sees numbers and codes."""
    takes_gaps = get_tags(e).input_tags.allow_nan
    return GuestFit(e, InputSettings(None if takes_gaps else EncoderSettings("robust")))


def check_readout(e: Any) -> None:
    """Refuse parameters that ask for the read-out of a single layer where there is one for all of them."""
    if e.readout == "layers":
        return
    neutral = {"correct_weight": 1.0, "prune_rate": 0.0}
    given = {name: getattr(e, name) for name in neutral}
    if wrong := [name for name in neutral if given[name] not in (neutral[name], "loo")]:
        came, wanted = (
            " and ".join(f"{name}={values[name]}" for name in wrong) for values in (given, neutral)
        )
        raise ValueError(
            'readout="joint" has one read-out over all layers. Weighting and pruning take that of a single '
            f"layer, but {came}. Set {wanted}."
        )
    if e.layer_votes == "weighted":
        raise ValueError(
            'readout="joint" has one read-out over all layers, so that layers do not vote, but '
            'layer_votes="weighted". Set layer_votes="equal", or "prefix" to choose the depth.'
        )
