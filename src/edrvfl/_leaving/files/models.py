"""Save a fitted estimator to a file without pickle, and load it: which attributes a file holds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn

import numpy
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..._inputs.inputs import Bins, Categories, Inputs, Numbers, OneHots
from ..._inputs.table import Columns
from ..._layers.records import DrawSettings
from ..._loo.calibrate import Calibration
from ..._loo.coverage import Margins, OwnProbabilities, Widths
from ..._models.coverage import Coverage
from ..._models.encoding import Encoding
from ..._models.kernel import KernelModel, KernelVoter
from ..._models.network import Network
from ..._models.portfolio import Portfolio
from ..._models.stored import StoredLayer, drawn_bytes, networks_in, restored, stored, with_networks
from ..._seam.fields import Between
from ..._version import __version__
from ..moving import ANSWERING, record_of, to_numpy
from .check import check
from .container import packed, read_whole, unpacked, write_whole
from .figures import check_figures, check_members, check_names
from .reading import BUDGET, Reader, build
from .relations import need
from .trial import try_model
from .writing import Kinds, Writer, is_ours, parameters

VERSION = 1  # of the format; files of every version up to this one can be loaded
MAX_BYTES = 2**32
INPUTS = (Bins, Categories, Columns, Inputs, Numbers, OneHots)
OF_MODELS = (Calibration, DrawSettings, KernelVoter, Margins, OwnProbabilities, StoredLayer, Widths)
MODELS = (Coverage, Encoding, KernelModel, Network, Portfolio)
# Files name records as the classes are called. A class that gets another name keeps the old one here.
RECORDS: Mapping[str, type] = {kind.__name__: kind for kind in (*INPUTS, *OF_MODELS, *MODELS)}
LAYERED = ("network_", "n_layers_", "n_hidden_", "regularization_", "fallback_layers_", "neurons_kept_")
KERNEL = ("model_", "bandwidth_", "regularization_", "n_landmarks_")
# The fitted attributes of each estimator, beside those that all have.
FITTED: Mapping[str, tuple[str, ...]] = {
    "EDRVFLClassifier": (*LAYERED, "loo_accuracies_", "train_accuracies_", "loo_log_losses_", "coverage_"),
    "EDRVFLRegressor": (*LAYERED, "loo_r2_scores_", "train_r2_scores_", "coverage_"),
    "LaplaceRidgeClassifier": (*KERNEL, "loo_accuracy_", "loo_log_loss_", "coverage_"),
    "LaplaceRidgeRegressor": (*KERNEL, "loo_r2_score_", "coverage_"),
    "EDRVFLPortfolioClassifier": ("portfolio_", "members_", "loo_accuracy_", "loo_log_loss_", "coverage_"),
    "EDRVFLPortfolioRegressor": ("portfolio_", "members_", "loo_r2_score_", "coverage_"),
    "TabularEncoder": ("encoding_",),
}
# Attributes that only some models have, and what checks them.
OPTIONAL = {"feature_names_in_": check_names}
COLUMNS = ("n_features_in_", *OPTIONAL)
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
    model = to_numpy(model)
    held = {name: getattr(model, name) for name in (*COLUMNS, *FITTED[kind.__name__]) if hasattr(model, name)}
    writer = Writer(Kinds(RECORDS, (Columns, Inputs), FITTED))
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
    """Return the estimator that a file names. A fit on a cluster leaves a model that needs no cluster."""
    kind = next((kind for kind in type(model).__mro__ if is_ours(kind, FITTED)), None)
    if kind is None or type(model).__module__.partition(".")[0] != "edrvfl":
        raise ValueError(
            f"A file holds one of {', '.join(FITTED)}, but this is a {type(model).__name__}. Pickle it, or "
            "save what it is made of."
        )
    return kind


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
            try_model(record_of(model), getattr(model, "coverage_", None), model.n_features_in_)
        except Exception as error:  # whatever a hostile file makes go wrong has one name
            _refuse(error)
    return model


def _stored_model(content: bytes, estimators: Mapping[str, type], max_bytes: float) -> Any:
    """Return a model whose networks are still stored ones, after a look at all its parts."""
    try:
        tree, arrays = unpacked(content)
        _check_version(tree)
        reader = Reader(Kinds(RECORDS, (Columns, Inputs), estimators), arrays, BUDGET + len(content))
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
    """Refuse what is not a description of a version that is known. There is one version so far."""
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
    wanted = {"n_features_in_", *FITTED[type(model).__name__]}
    right = wanted <= set(fitted) <= {*wanted, *OPTIONAL}
    need(right, "fitted", f"the attributes {', '.join(sorted(wanted))}")
    d, (name, kind) = fitted["n_features_in_"], next(item for item in ANSWERING.items() if item[0] in fitted)
    check(d, Annotated[int, Between(1)], "n_features_in_", {})
    for optional in OPTIONAL.keys() & fitted.keys():
        OPTIONAL[optional](fitted[optional], optional, d)
    record = fitted[name]
    need(type(record) is kind, name, f"a record {kind.__name__}")
    known = {"d": d, "dtype": record.like.dtype, "classifies": is_classifier(model)}
    check(record, kind, name, dict(known))
    if name == "encoding_":
        return
    for inputs in record.encodings():
        plain = inputs.numbers is None and inputs.categories is None
        need(plain is (record.columns is None), f"{name}.columns", "absent where X is taken as it is")
    check(fitted["coverage_"], Coverage | None, "coverage_", {**known, "k": record.n_outputs})
    figures = {key: fitted[key] for key in wanted - {name, "n_features_in_", "coverage_", "members_"}}
    check_figures(figures, record)
    if "members_" in fitted:
        check_members(
            fitted["members_"], [key.removesuffix("_") for key in figures if key.startswith("loo_")]
        )


def _check_memory(fitted: dict[str, Any], most: float) -> None:
    """Refuse a model whose hidden weights, which a small file can ask for, take too much memory."""
    wanted = sum(drawn_bytes(network) for value in fitted.values() for network in networks_in(value))
    if wanted > most:
        raise ValueError(
            f"Its hidden weights would take {wanted} bytes, and max_bytes is {most}. If you trust the file, "
            f"load it with max_bytes={wanted} or more."
        )
