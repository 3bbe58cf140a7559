"""Save an estimator to a file without pickle, and load it: what each estimator stores and must satisfy."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy
from sklearn.utils.validation import check_is_fitted

from ..._doors.base import to_numpy
from ..._doors.classifier import EDRVFLClassifier
from ..._doors.encoder import TabularEncoder
from ..._doors.kernel import LaplaceRidgeClassifier, LaplaceRidgeRegressor
from ..._doors.portfolio import EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor
from ..._doors.regressor import EDRVFLRegressor
from ..._inputs.inputs import Bins, Categories, Inputs, Numbers, OneHots
from ..._inputs.table import Columns
from ..._layers.records import DrawSettings, HiddenLayer
from ..._loo.calibrate import Calibration
from ..._loo.coverage import Margins, OwnProbabilities, Widths
from ..._models.coverage import Coverage
from ..._models.encoding import Encoding
from ..._models.kernel import KernelModel, KernelVoter
from ..._models.network import Network
from ..._models.portfolio import Portfolio
from ..._models.stored import StoredLayer, restored, stored
from ..._version import __version__
from .check import check_coverage, check_encoding, check_kernel, check_memory, check_network, check_portfolio
from .check_inputs import check_reading
from .container import packed, parsed, read_whole, unpacked, write_whole
from .tree import Kinds, Reader, Writer
from .trial import trial_rows, try_model
from .values import integer, need, refuse

VERSION = 1  # of the format; files of every version up to this one can be loaded
MAX_BYTES = 2**32
# The names that files give to records. They stay what they are, whatever the classes are called.
RECORDS: Mapping[str, type] = {
    "Bins": Bins,
    "Calibration": Calibration,
    "Categories": Categories,
    "Columns": Columns,
    "Coverage": Coverage,
    "DrawSettings": DrawSettings,
    "Encoding": Encoding,
    "Inputs": Inputs,
    "KernelModel": KernelModel,
    "KernelVoter": KernelVoter,
    "Margins": Margins,
    "Network": Network,
    "Numbers": Numbers,
    "OneHots": OneHots,
    "OwnProbabilities": OwnProbabilities,
    "Portfolio": Portfolio,
    "StoredLayer": StoredLayer,
    "Widths": Widths,
}
LAYERED = ("network_", "n_layers_", "n_hidden_", "regularization_", "fallback_layers_", "neurons_kept_")
KERNEL = ("model_", "bandwidth_", "regularization_", "n_landmarks_")
# The fitted attributes of each estimator, beside those that all have.
FITTED: Mapping[type, tuple[str, ...]] = {
    EDRVFLClassifier: (*LAYERED, "loo_accuracies_", "train_accuracies_", "loo_log_losses_", "coverage_"),
    EDRVFLRegressor: (*LAYERED, "loo_r2_scores_", "train_r2_scores_", "coverage_"),
    LaplaceRidgeClassifier: (*KERNEL, "loo_accuracy_", "loo_log_loss_", "coverage_"),
    LaplaceRidgeRegressor: (*KERNEL, "loo_r2_score_", "coverage_"),
    EDRVFLPortfolioClassifier: ("portfolio_", "members_", "loo_accuracy_", "loo_log_loss_", "coverage_"),
    EDRVFLPortfolioRegressor: ("portfolio_", "members_", "loo_r2_score_", "coverage_"),
    TabularEncoder: ("encoding_",),
}
# Names are there only where columns, or y, have some.
COLUMNS = ("n_features_in_", "feature_names_in_", "target_name_")
BY_NAME = {kind.__name__: kind for kind in FITTED}
# What skops must trust to load any of them: ``skops.io.load(file, trusted=list(edrvfl.TRUSTED_TYPES))``.
TRUSTED_TYPES = tuple(
    sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in (*FITTED, *RECORDS.values(), HiddenLayer))
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The constructor of an estimator."""

    kind: type

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return list(inspect.signature(self.kind).parameters)

    def parameters(self, estimator: Any) -> dict[str, Any]:
        """Return an estimator's parameters."""
        return {name: getattr(estimator, name) for name in self.names}

    def build(self, params: dict[str, Any]) -> Any:
        """Return an estimator that is not fitted, of parameters that it accepts."""
        if unknown := set(params) - set(self.names):
            refuse("The parameters", f"those of {self.kind.__name__}, not {sorted(unknown)[:5]}")
        estimator = self.kind(**params)
        estimator._validate_params()
        return estimator


def _parameters(name: Any) -> Parameters:
    if not isinstance(name, str) or name not in BY_NAME:
        raise ValueError(f"It holds a model {str(name)[:80]!r}, and this edrvfl knows {', '.join(BY_NAME)}.")
    return Parameters(BY_NAME[name])


def _name_of(value: Any) -> str | None:
    return type(value).__name__ if type(value) in FITTED else None


KINDS = Kinds(RECORDS, (Columns, Inputs), _parameters, _name_of)


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file. What cannot be loaded again is not written."""
    check_is_fitted(model)
    content = packed_model(model)
    _stored_model(content, math.inf)
    write_whole(path, content)


def packed_model(model: Any) -> bytes:
    """Return the bytes of a model's file."""
    kind = _kind_of(model)
    model = to_numpy(model)
    held = {name: getattr(model, name) for name in (*COLUMNS, *FITTED[kind]) if hasattr(model, name)}
    writer = Writer(KINDS)
    tree = {
        "format": "edrvfl",
        "version": VERSION,
        "edrvfl": __version__,
        "numpy": numpy.__version__,
        "estimator": kind.__name__,
        "params": writer.fields(Parameters(kind).parameters(model), ""),
        "fitted": writer.fields({name: with_networks(value, stored) for name, value in held.items()}, ""),
        "shared": writer.shared,
    }
    return packed(json.dumps(tree, separators=(",", ":"), allow_nan=False), writer.arrays)


def _kind_of(model: Any) -> type:
    """Return the estimator that a file names."""
    kind = type(model)
    if kind not in FITTED:
        raise ValueError(
            f"A file holds one of {', '.join(BY_NAME)}, but this is a {type(model).__name__}. Pickle it, or "
            "save what it is made of."
        )
    return kind


def with_networks(value: Any, change: Any) -> Any:
    """Return a fitted attribute with its networks changed."""
    if isinstance(value, Network):
        return change(value)
    if isinstance(value, Portfolio):
        return replace(value, voters=tuple(with_networks(voter, change) for voter in value.voters))
    if isinstance(value, Coverage) and value.spread is not None:
        return replace(value, spread=change(value.spread))
    return value


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model that `save` wrote.

    Nothing in the file is executed, and a file that was cut or changed is refused. So is one whose parts do
    not make a model, even if its checksum is right: a file may come from anyone. What it says may still be
    wrong, as any model's answers may.

    Parameters
    ----------
    path : str or path-like
        The file.

    max_bytes : int, default=4 GiB
        How large the file may be, and how much memory its hidden weights may take. A small file can ask for
        a wide network, because a seed stands for the weights.

    Returns
    -------
    model : estimator
        The estimator that was saved, with its parameters and fitted attributes; of a search, its best. It
        answers bit for bit as it did, on the same kind of machine.

    Raises
    ------
    ValueError
        If the file is no model, was changed, comes from a later version, or needs more memory.

    Examples
    --------
    >>> import tempfile, pathlib, edrvfl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = edrvfl.EDRVFLClassifier(n_hidden=20, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.edrvfl"
    ...     model.save(path)
    ...     again = edrvfl.load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    try:
        content = read_whole(path, max_bytes)
        return unpacked_model(content, max_bytes)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded. {error}") from error


def unpacked_model(content: bytes, max_bytes: int = MAX_BYTES) -> Any:
    """Return the model of a file's bytes, after it has answered some rows."""
    with numpy.errstate(all="ignore"):
        model = _stored_model(content, max_bytes)
        try:
            for name in FITTED[type(model)]:
                if hasattr(model, name):
                    setattr(model, name, with_networks(getattr(model, name), restored))
            _try(model)
        except Exception as error:  # whatever a hostile file makes go wrong has one name
            _refuse(error)
    return model


def _stored_model(content: bytes, max_bytes: float) -> Any:
    """Return a model whose networks are still stored ones, after a look at all its parts."""
    try:
        text, arrays = unpacked(content)
        tree = _upgraded(parsed(text))
        reader = Reader(KINDS, arrays)
        for entry in tree["shared"]:
            reader.shared.append(reader.read(entry))
        model = _parameters(tree["estimator"]).build(reader.fields(tree["params"]))
        fitted = reader.fields(tree["fitted"])
        _check_fitted(type(model), fitted)
        check_memory(list(fitted.values()), max_bytes)
        vars(model).update(fitted)
    except Exception as error:  # whatever a hostile file makes go wrong has one name
        _refuse(error)
    return model


def _refuse(error: Exception) -> NoReturn:
    if isinstance(error, ValueError):
        raise error
    raise ValueError(f"Its parts do not make a model ({type(error).__name__}: {error}).") from error


def _upgraded(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a description in the form of the newest version. There is one version so far."""
    version = tree.get("version")
    if tree.get("format") != "edrvfl" or type(version) is not int or version < 1:
        raise ValueError("Its description is not that of a model.")
    if version > VERSION:
        raise ValueError(
            f"It was written by edrvfl {str(tree.get('edrvfl'))[:20]} in version {version} of the format, "
            f"and this is edrvfl {__version__}, which reads up to version {VERSION}. Install a later edrvfl."
        )
    wanted = {"format", "version", "edrvfl", "numpy", "estimator", "params", "fitted", "shared"}
    if set(tree) != wanted or not isinstance(tree["shared"], list):
        raise ValueError(f"Its description should have {', '.join(sorted(wanted))}.")
    return tree


def _check_fitted(kind: type, fitted: dict[str, Any]) -> None:
    """Refuse fitted attributes that do not make an estimator of a kind."""
    wanted = {"n_features_in_", *FITTED[kind]}
    need(wanted <= set(fitted) <= {*wanted, *COLUMNS}, "The fitted attributes", ", ".join(sorted(wanted)))
    d = integer(fitted["n_features_in_"], "n_features_in_", 1)
    if "feature_names_in_" in fitted:
        names = fitted["feature_names_in_"]
        right = isinstance(names, numpy.ndarray) and names.dtype == object and names.shape == (d,)
        need(
            right and all(isinstance(n, str) for n in names.tolist()), "feature_names_in_", "a name a column"
        )
    need(isinstance(fitted.get("target_name_", ""), str), "target_name_", "a name")
    if kind is TabularEncoder:
        check_encoding(fitted["encoding_"], d)
        return
    classifies = bool(kind._classifies)  # type: ignore[attr-defined]
    outputs, dtype = _check_answering(fitted, d, classifies)
    check_coverage(fitted["coverage_"], d, dtype, outputs, classifies)
    for name in wanted - {"network_", "model_", "portfolio_", "coverage_", "members_"}:
        _check_figure(fitted[name], name)


def _check_answering(fitted: dict[str, Any], d: int, classifies: bool) -> tuple[int, Any]:
    """Check what answers; return its number of outputs and its precision."""
    if "portfolio_" in fitted:
        _check_members(fitted["members_"])
        outputs = check_portfolio(fitted["portfolio_"], d, classifies)
        return outputs, fitted["portfolio_"].like.dtype
    if "model_" in fitted:
        dtype = _float_dtype(getattr(getattr(fitted["model_"], "voter", None), "prior", None))
        outputs = check_kernel(fitted["model_"], d, dtype, classifies)
        check_reading(fitted["model_"].columns, fitted["model_"].voter.inputs)
        return outputs, dtype
    network = fitted["network_"]
    readouts = getattr(network, "readouts", None)
    dtype = _float_dtype(readouts[0] if isinstance(readouts, tuple) and readouts else None)
    outputs = check_network(network, d, dtype, classifies)
    check_reading(network.columns, network.inputs)
    depth = len(network.layers)
    need(fitted["n_layers_"] == depth and fitted["n_hidden_"] == network.n_hidden, "n_layers_", str(depth))
    return outputs, dtype


def _float_dtype(array: Any) -> Any:
    need(isinstance(array, numpy.ndarray) and array.dtype.kind == "f", "The model", "of floats")
    return array.dtype


def _check_figure(value: Any, name: str) -> None:
    """Refuse figures about a fit that are neither numbers nor tuples of numbers."""
    values = value if isinstance(value, tuple) else (value,)
    plain = (int, float, str, numpy.floating, numpy.integer)
    need(all(isinstance(v, plain) and not isinstance(v, bool) for v in values), name, "numbers")


def _check_members(table: Any) -> None:
    columns = list(table.values()) if isinstance(table, dict) else []
    need(columns and all(isinstance(c, list) for c in columns), "members_", "a table")
    need(
        len({len(c) for c in columns}) == 1 and all(isinstance(k, str) for k in table), "members_", "a table"
    )


def _try(model: Any) -> None:
    """Let a model answer some rows."""
    d = model.n_features_in_
    if isinstance(model, TabularEncoder):
        inputs = model.encoding_.inputs
        X = trial_rows(inputs, d, model.encoding_.like.dtype, True)
        encoded = inputs.apply(X)
        need(
            encoded.shape == (len(X), inputs.width) and not numpy.isnan(encoded).any(), "encoding_", "numbers"
        )
        model.get_feature_names_out()
        return
    network = getattr(model, "network_", None)
    if hasattr(model, "portfolio_"):
        voter = model.portfolio_.voters[0]
        inputs = voter.inputs if isinstance(voter, Network) else voter.voter.inputs
    else:
        inputs = network.inputs if network is not None else model.model_.voter.inputs
    X = trial_rows(inputs, d, model._fitted_array.dtype, model._columns is not None)
    try_model(model._model.answer, network, model.coverage_, X, model._classifies)
