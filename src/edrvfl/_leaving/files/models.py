"""Save a fitted estimator to a file without pickle, and load it: which attributes a file holds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

import numpy
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..._inputs.columns import Columns
from ..._inputs.dates import Dates
from ..._inputs.inputs import Bins, Categories, Inputs, Numbers, OneHots, Ranks
from ..._inputs.text import Text
from ..._layers.records import DrawSettings
from ..._loo.calibrate import Calibration
from ..._loo.coverage import Margins, OwnProbabilities, Widths
from ..._models.coverage import Coverage
from ..._models.encoding import Encoding
from ..._models.kernel import KernelModel, KernelVoter
from ..._models.memory import Judge, KernelMemory, Memory, NetworkMemory, RowsMemory, Sums
from ..._models.network import Network
from ..._models.portfolio import Portfolio
from ..._models.stored import StoredLayer, drawn_bytes, networks_in, restored, stored, with_networks
from ..._seam.fields import Between, Known, Long
from ..._version import __version__
from ..moving import record_of, to_numpy
from .check import check
from .container import packed, read_whole, unpacked, write_whole
from .figures import figure, members, names, proven
from .reading import BUDGET, Reader, build
from .relations import need, remembers
from .trial import try_model
from .writing import Kinds, Writer, is_ours, parameters

VERSION = 2  # of the format; files of every version up to this one can be loaded
MAX_BYTES = 2**32
INPUTS = (Bins, Categories, Columns, Dates, Inputs, Numbers, OneHots, Ranks, Text)
OF_MODELS = (Calibration, DrawSettings, KernelVoter, Margins, OwnProbabilities, StoredLayer, Widths)
MEMORIES = (Judge, KernelMemory, Memory, NetworkMemory, RowsMemory, Sums)
MODELS = (Coverage, Encoding, KernelModel, Network, Portfolio)
# Files name records as the classes are called. A class that gets another name keeps the old one here.
RECORDS: Mapping[str, type] = {kind.__name__: kind for kind in (*INPUTS, *OF_MODELS, *MEMORIES, *MODELS)}
SHARED = (Columns, Inputs)  # records that voters have in common
FIGURE: Any = Annotated[Any, figure]
GROWN: Any = Annotated[tuple[FIGURE, ...], Long("grown")]  # one for each layer that was grown
LOO: Any = Annotated[tuple[FIGURE, ...], Long("loo")]  # likewise, or none
LAYERED = {
    "network_": Network,
    "n_layers_": Annotated[int, Between(side="depth")],
    "n_hidden_": Annotated[int, Between(side="n")],
    "regularization_": GROWN,
    "fallback_layers_": tuple[FIGURE, ...],
    "neurons_kept_": GROWN,
}
KERNEL = {"model_": KernelModel, "bandwidth_": FIGURE, "regularization_": FIGURE, "n_landmarks_": FIGURE}
OF_CLASSES, OF_VALUES = dict.fromkeys(("loo_accuracy_", "loo_log_loss_"), FIGURE), {"loo_r2_score_": FIGURE}
COVERAGE = {"coverage_": Any}  # a Coverage, or None
CLASSES_BY_LAYER = {"loo_accuracies_": LOO, "train_accuracies_": GROWN, "loo_log_losses_": LOO}
VALUES_BY_LAYER = {"loo_r2_scores_": LOO, "train_r2_scores_": GROWN}


def _voted(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "portfolio_": Portfolio,
        "members_": Annotated[dict, members(tuple(figures))],
        **figures,
        **COVERAGE,
    }


# The fitted attributes of each estimator, and what they hold. The first one answers.
FITTED: Mapping[str, Mapping[str, Any]] = {
    "EDRVFLClassifier": {**LAYERED, **CLASSES_BY_LAYER, **COVERAGE},
    "EDRVFLRegressor": {**LAYERED, **VALUES_BY_LAYER, **COVERAGE},
    "KernelRidgeClassifier": {**KERNEL, **OF_CLASSES, **COVERAGE},
    "KernelRidgeRegressor": {**KERNEL, **OF_VALUES, **COVERAGE},
    "EDRVFLPortfolioClassifier": _voted(OF_CLASSES),
    "EDRVFLPortfolioRegressor": _voted(OF_VALUES),
    "TabularEncoder": {"encoding_": Encoding},
}
# What all estimators have, and what only some have.
COLUMNS: Mapping[str, Any] = {"n_features_in_": Annotated[int, Between(1, side="given")]}
OPTIONAL: Mapping[str, Any] = {
    "feature_names_in_": Annotated[numpy.ndarray, names],
    "target_name_": str,
    "proven_": Annotated[dict, proven],
    "memory_": Memory,
}
ENTRIES = {"format", "version", "edrvfl", "numpy", "estimator", "params", "fitted", "shared"}


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file. What cannot be loaded again is not written."""
    check_is_fitted(model)
    content, estimators = _packed(model)
    _stored_model(content, estimators, math.inf)
    write_whole(path, content)


def packed_model(model: Any) -> bytes:
    """Return the bytes of a model's file."""
    return _packed(model)[0]


def _packed(model: Any) -> tuple[bytes, Mapping[str, type]]:
    """Return the bytes of a model's file, and the estimators that are in it."""
    kind = _kind_of(model)
    _refuse_guests(model)
    model = to_numpy(model)
    held = {
        name: getattr(model, name)
        for name in (*COLUMNS, *OPTIONAL, *FITTED[kind.__name__])
        if getattr(model, name, None) is not None or name in FITTED[kind.__name__]
    }
    writer = Writer(Kinds(RECORDS, SHARED, FITTED))
    writer.estimators[kind.__name__] = kind
    tree = {
        "format": "edrvfl",
        "version": VERSION,
        "edrvfl": __version__,
        "numpy": numpy.__version__,
        "estimator": kind.__name__,
        "params": writer.fields(parameters(model, kind), ""),
        "fitted": writer.fields({name: with_networks(value, stored) for name, value in held.items()}, ""),
        "shared": writer.shared,
    }
    return packed(tree, writer.arrays), writer.estimators


def _kind_of(model: Any) -> type:
    """Return the estimator that a file names."""
    kind = type(model)
    if not is_ours(kind, FITTED):
        raise ValueError(
            f"A file holds one of {', '.join(FITTED)}, but this is a {type(model).__name__}. Pickle it, or "
            "save what it is made of."
        )
    return kind


def _refuse_guests(model: Any) -> None:
    """Refuse members of a portfolio that are no estimators of this library: no file describes them."""
    for name, member in getattr(model, "members", None) or ():
        if not is_ours(type(member), FITTED):
            raise ValueError(
                f"Member {name!r} is a {type(member).__name__}, which a model file cannot hold. Save the "
                "portfolio by skops.io.dump, without pickle too, or pickle it: see docs/deployment.md."
            )


def load_model(path: str | os.PathLike[str], estimators: Mapping[str, type], max_bytes: int) -> Any:
    """Return the model of a file, which is one of these estimators."""
    try:
        return unpacked_model(read_whole(path, max_bytes), estimators, max_bytes)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded. {error}") from error


def unpacked_model(content: bytes, estimators: Mapping[str, type], max_bytes: int = MAX_BYTES) -> Any:
    """Return the model of a file's bytes, after it has answered some rows."""
    with numpy.errstate(all="ignore"):
        model = _stored_model(content, estimators, max_bytes)
        try:
            for name in FITTED[type(model).__name__]:
                setattr(model, name, with_networks(getattr(model, name), restored))
            try_model(record_of(model), getattr(model, "coverage_", None), _width(model))
        except Exception as error:  # whatever a hostile file makes go wrong has one name
            _refuse(error)
    return model


def _width(model: Any) -> int:
    """Return how many columns the coded matrix of a model has."""
    columns = record_of(model).columns
    return int(model.n_features_in_ if columns is None else columns.width)


def _stored_model(content: bytes, estimators: Mapping[str, type], max_bytes: float) -> Any:
    """Return a model whose networks are still stored ones, after a look at all its parts."""
    try:
        tree, arrays = unpacked(content)
        _check_version(tree)
        reader = Reader(Kinds(RECORDS, SHARED, estimators), arrays, BUDGET + len(content))
        reader.read_shared(tree["shared"])
        model = build(estimators, tree["estimator"], reader.fields(tree["params"]))
        fitted = reader.fields(tree["fitted"])
        _check_fitted(model, fitted)
        _check_memory(fitted, max_bytes)
        vars(model).update(fitted)
    except Exception as error:  # whatever a hostile file makes go wrong has one name
        _refuse(error)
    return model


def _refuse(error: Exception) -> NoReturn:
    if isinstance(error, ValueError):
        raise error
    what = f"{type(error).__name__}: {str(error)[:200]}"
    raise ValueError(f"Its parts do not make a model ({what}).") from error


def _check_version(tree: dict[str, Any]) -> None:
    """Refuse what is not a description of a version that is known."""
    version = tree.get("version")
    if tree.get("format") != "edrvfl" or type(version) is not int or version < 1:
        raise ValueError("Its description is not that of a model.")
    if version > VERSION:
        raise ValueError(
            f"It was written by edrvfl {str(tree.get('edrvfl'))[:20]} in version {version} of the format, "
            f"and this is edrvfl {__version__}, which reads up to version {VERSION}. Install a later edrvfl."
        )
    if set(tree) != ENTRIES or not isinstance(tree["shared"], list):
        raise ValueError(f"Its description must have the entries {', '.join(sorted(ENTRIES))}.")


def _check_fitted(model: Any, fitted: dict[str, Any]) -> None:
    """Refuse fitted attributes that do not make an estimator."""
    own = FITTED[type(model).__name__]
    wanted = COLUMNS.keys() | own.keys()
    right = wanted <= fitted.keys() <= wanted | OPTIONAL.keys()
    need(right, "fitted", f"the attributes {', '.join(sorted(wanted))}")
    name, kind = next(iter(own.items()))
    record = fitted[name]
    need(type(record) is kind, name, f"a record {kind.__name__}")
    # the coded matrix is as wide as X where there are neither dates nor text
    base = {"classifies": is_classifier(model), "dtype": record.like.dtype, "d": fitted["n_features_in_"]}
    known: Known = dict(base)
    for attribute, hint in {**COLUMNS, **OPTIONAL, **own}.items():
        if attribute in fitted:
            check(fitted[attribute], hint, attribute, known)
    depth, grown, loo = (known.get(side, 0) for side in ("depth", "grown", "loo"))
    need(grown >= depth and loo in (0, grown), "loo_", "empty, or as long as the other figures of the layers")
    for inputs in record.encodings():
        need(inputs.plain is (record.columns is None), f"{name}.columns", "absent where X is taken as it is")
    sides = {**base, "d": known["d"], "given": known["given"], "k": record.n_outputs}  # the spread has others
    check(fitted.get("coverage_"), Coverage | None, "coverage_", sides)
    if "memory_" in fitted:
        remembers(fitted["memory_"], record, known["d"])


def _check_memory(fitted: dict[str, Any], most: float) -> None:
    """Refuse a model whose hidden weights, which a small file can ask for, take too much memory."""
    wanted = sum(drawn_bytes(network) for value in fitted.values() for network in networks_in(value))
    if wanted > most:
        raise ValueError(
            f"Its hidden weights would take {wanted} bytes, and max_bytes is {most}. If you trust the file, "
            f"load it with max_bytes={wanted} or more."
        )
