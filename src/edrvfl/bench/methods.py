"""The rows of the study: method name -> estimator and search space. Adding a method is adding a row."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from edrvfl import draw_configurations
from edrvfl import variant as edrvfl_variant

from .baselines import bls, fnn, helm, peers, scn

Configuration = Mapping[str, Any]

DEPTH = 10  # l_max


@dataclass(frozen=True, slots=True)
class Method:
    """One row. Both functions must be importable by name, or partials of such, to reach other processes."""

    name: str
    estimator: Callable[..., Any]  # (random_state=seed, **fixed, **configuration) -> classifier, not fitted
    configurations: Callable[[int, int], list[dict[str, Any]]]  # (trials, seed) -> all that will be tried
    fixed: Mapping[str, Any] = field(default_factory=dict)  # parameters that are not searched
    depth: str | None = None  # the parameter whose every smaller value is scored too; None: no depth axis
    # configurations that differ in these alone are searched in one call
    together: tuple[str, ...] = ()
    variant: str | None = None  # of an edRVFL method, whose networks EDRVFLClassifierCV searches together
    # fitted attribute of the search fits whose mean over the splits becomes a parameter of the refit
    carry: tuple[str, str] | None = None
    cpu_only: bool = False  # takes NumPy arrays alone

    def build(self, configuration: Configuration, random_state: int, depth: int | None = None) -> Any:
        """The classifier of a configuration, not fitted; of a smaller depth where the method has one."""
        cut = {self.depth: depth} if self.depth is not None and depth is not None else {}
        return self.estimator(random_state=random_state, **{**self.fixed, **configuration, **cut})


def _drawn(name: str, trials: int, seed: int) -> list[dict[str, Any]]:
    return draw_configurations(trials, seed, name)


def _edrvfl(name: str) -> Method:
    return Method(
        name,
        partial(edrvfl_variant, name),
        partial(_drawn, name),
        fixed={"n_layers": DEPTH, "activation": "relu"},
        depth="n_layers",
        # all that is drawn but the width: networks of one width share their random layers
        together=("norm_scale", "norm_shift", "prune_rate", "regularization", "correct_weight"),
        variant=name,
    )


def _fnn(name: str, architecture: str) -> Method:
    return Method(
        name,
        partial(fnn.FNNClassifier, architecture),
        partial(fnn.configurations, architecture),
        carry=("n_epochs_", "n_epochs"),
    )


def _peer(name: str, peer: peers.Peer) -> Method:
    return Method(name, peer.estimator, peer.configurations, cpu_only=True)


_ROWS = (
    _fnn("SNN", "snn"),
    _fnn("MSRAinit", "msra"),
    _fnn("Highway", "highway"),
    _fnn("ResNet", "resnet"),
    Method("SCN", scn.SCNClassifier, scn.configurations),
    Method("BLS", bls.BLSClassifier, bls.configurations),
    Method("H-ELM", helm.HELMClassifier, helm.configurations),
    _edrvfl("edRVFL_O"),
    _edrvfl("edRVFL_N"),
    _edrvfl("WedRVFL"),
    _edrvfl("PedRVFL"),
    _edrvfl("WPedRVFL"),
    *(_peer(name, peer) for name, peer in peers.PEERS.items()),
)

METHODS: Mapping[str, Method] = MappingProxyType({row.name: row for row in _ROWS})

METHOD_GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "edrvfl": ("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL"),
        "randomised": ("SCN", "BLS", "H-ELM"),
        "fnn": ("SNN", "MSRAinit", "Highway", "ResNet"),
        "peers": tuple(peers.PEERS),
    }
)


def method_names(names_or_groups: Sequence[str]) -> tuple[str, ...]:
    """Methods in the order asked for, each once, groups expanded.

    Examples
    --------
    >>> method_names(["PedRVFL", "edrvfl"])
    ('PedRVFL', 'edRVFL_O', 'edRVFL_N', 'WedRVFL', 'WPedRVFL')
    """
    if isinstance(names_or_groups, str):
        raise TypeError(f"names must be a list of names, got the text {names_or_groups!r}: put it in a list")
    meaning = {name: (name,) for name in METHODS} | dict(METHOD_GROUPS)
    found: dict[str, None] = {}
    for name in names_or_groups:
        if name not in meaning:
            near = difflib.get_close_matches(name, meaning, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(f"there is no method {name!r}{hint} Methods and groups: {', '.join(meaning)}")
        found |= dict.fromkeys(meaning[name])
    return tuple(found)
