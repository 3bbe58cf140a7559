"""to_onnx: a fitted estimator becomes an ONNX model, encoder included."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy
from sklearn.utils.validation import check_is_fitted

from ..._inputs.columns import Columns
from ..._inputs.text import Text
from ..._models.encoding import Encoding
from ..._models.model import Model
from ..._version import __version__
from ..moving import record_of, to_numpy
from .answers import log_odds, pooled
from .encoder import Encoder, Source, holds_dates, holds_text, missing_text, read_columns
from .graph import IR_VERSION, ML_OPSET, OPSET, Graph, Name, import_onnx, texts
from .voters import answer

DTYPES = ("float32", "float64")


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A fitted estimator as its records: what decides an answer, and which columns it reads."""

    records: tuple[Model, ...]  # one; a search may hold several, whose answers are averaged
    names: tuple[str, ...] | None  # of the columns, if each is an input of its own
    n_columns: int

    @classmethod
    def of(cls, model: Any, n_layers: int | None) -> Fitted:
        """Take the records of a fitted estimator, those of a network with its first layers only."""
        check_is_fitted(model)
        models = getattr(model, "estimators_", [model])  # a search answers with its best
        records = tuple(_record_of(one, n_layers) for one in models)
        named = getattr(model, "feature_names_in_", None)
        names = None if named is None else tuple(texts(list(map(str, named)), "Column name"))
        d = int(model.n_features_in_)
        columns = records[0].columns
        _refuse_text(columns)
        several = (holds_text(columns, j) or holds_dates(columns, j) for j in range(d))
        if names is None and columns is not None and any(several):
            names = columns.names  # a tensor cannot hold numbers and text, nor dates
        return cls(records, names, d)

    @property
    def first(self) -> Model:
        """A record, of which the others have the columns, the classes and the outputs."""
        return self.records[0]

    @property
    def kind(self) -> str:
        """What the only output is, where there are no classes."""
        return "encoded" if isinstance(self.first, Encoding) else "value"

    def holds_text(self, j: int) -> bool:
        """Tell whether an input is text."""
        return any(holds_text(record.columns, j) for record in self.records)


def to_onnx(
    model: Any, *, dtype: Any = "float32", n_layers: int | None = None, name: str | None = None
) -> Any:
    """Write a fitted estimator as an ONNX model, from the columns as they come to labels and probabilities.

    Parameters
    ----------
    model : estimator
        A fitted network, kernel voter, portfolio, search or :class:`TabularEncoder`.

    dtype : {"float32", "float64"}, default="float32"
        Precision of inputs, hidden layers and outputs. "float32" agrees with the estimator to about 1e-5, and
        is smaller and faster; "float64" agrees to 1e-9.

    n_layers : int or None, default=None
        How many layers of a network answer, as in ``staged_predict``. None: all of them.

    name : str or None, default=None
        Name of the graph. None takes the name of the estimator's class.

    Returns
    -------
    onnx_model : onnx.ModelProto
        Checked, with standard operators only (opset 18, and LabelEncoder of ai.onnx.ml 3 for text). An
        estimator that was fitted on an array has one input, "X" of shape (rows, columns); one that was
        fitted on a frame has an input of shape (rows, 1) for each column, under the column's name: numbers
        and booleans as numbers, NaN where missing, categories as strings, "" where missing. Dates, times of
        day and durations are whole microseconds, as ``column.astype("datetime64[us]").astype("int64")``
        gives them, of the least int64 where missing; dates with a zone are by the clocks of the zone that
        they had in the fit, which the property ``time_zones`` names. Short text cannot be exported. A
        classifier has the outputs "label" and "probabilities", a regressor "value", an encoder "encoded".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EDRVFLClassifier(n_hidden=20, random_state=0).fit(X, y)
    >>> [output.name for output in to_onnx(model).graph.output]  # doctest: +SKIP
    ['label', 'probabilities']
    """
    onnx = import_onnx()
    if (dtype := numpy.dtype(dtype)).name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype.name!r}.")
    fitted = Fitted.of(model, n_layers)
    names = ("X",) if fitted.names is None else fitted.names
    if "" in names:
        raise ValueError(
            "A column has an empty name, and ONNX needs names of inputs. Rename it before the fit."
        )
    graph = Graph(dtype, names)
    build(graph, fitted, "X" if fitted.names is None else names)
    helper = onnx.helper
    proto = helper.make_graph(
        graph.nodes, name or type(model).__name__, _inputs(graph, fitted), graph.outputs, graph.constants
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    made = helper.make_model(
        proto,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="edrvfl",
        producer_version=__version__,
    )
    helper.set_model_props(made, _properties(fitted))
    onnx.checker.check_model(made, full_check=True)
    return made


def build(
    graph: Graph, fitted: Fitted, X: Source, outputs: Sequence[Name] = (), raw_scores: bool = False
) -> None:
    """Add everything from the columns of X to the outputs; with `raw_scores` log-odds for probabilities.

    Outputs that somebody else has named are matrices, also of a single value.
    """
    wanted = ("label", "probabilities") if fitted.first.classes is not None else (fitted.kind,)
    names = [*outputs] or [graph.output_name(what) for what in wanted]
    answers = [answer(graph, record, _encoder(graph, record, fitted, X)) for record in fitted.records]
    k, P = fitted.first.n_outputs, answers[0]
    if len(answers) > 1:
        P = pooled(graph, answers, [1 / len(answers)] * len(answers), classes=False)
    if fitted.first.classes is not None:
        graph.give_labels(graph.add("ArgMax", P, axis=1, keepdims=0), fitted.first.classes, names[0])
        scores = log_odds(graph, P, fitted.first.like.dtype, k) if raw_scores else P
        graph.give(scores, (k,), names[1])
    elif k == 1 and not outputs and fitted.kind == "value":
        graph.give(graph.add("Squeeze", P, graph.constant([1], numpy.int64)), (), names[0])
    else:
        graph.give(P, (k,), names[0])


def _encoder(graph: Graph, record: Model, fitted: Fitted, X: Source) -> Encoder:
    """Read the columns. Far outliers are clipped as in the fit, or earlier if the graph is in float32."""
    largest = min(float(numpy.finfo(dtype).max) for dtype in (graph.dtype, record.like.dtype))
    return Encoder(graph, read_columns(graph, record.columns, X, fitted.n_columns, largest**0.25))


def _refuse_text(columns: Columns | None) -> None:
    """Refuse columns of short text, by name: ONNX has no operator that takes text to pieces."""
    if columns is None or columns.kinds is None:
        return
    names = zip(columns.names, columns.kinds, strict=True)
    if texts := [name for name, kind in names if isinstance(kind, Text)]:
        raise NotImplementedError(
            f"ONNX cannot hash short text, which is in {', '.join(map(repr, texts))}. Leave such columns out "
            "of the fit, or name them in categorical_features; save() keeps a model with text."
        )


def _record_of(model: Any, n_layers: Any) -> Model:
    """Return what decides the answers of a fitted estimator, in NumPy."""
    record: Any = record_of(model)
    if record is None:
        raise TypeError(
            f"to_onnx takes fitted estimators of edrvfl, got {type(model).__name__}. Pipelines are converted "
            "by skl2onnx after edrvfl.register_onnx_converters()."
        )
    record = record_of(to_numpy(model))
    if n_layers is None:
        return record
    if not hasattr(record, "prefix"):
        raise ValueError(f"n_layers is for networks; {type(model).__name__} has no depth to choose.")
    depth = len(record.layers)
    if not isinstance(n_layers, Integral) or not 1 <= int(n_layers) <= depth:
        raise ValueError(f"n_layers must be from 1 to {depth}, the layers grown, got {n_layers!r}.")
    return record.prefix(n_layers)


def _inputs(graph: Graph, fitted: Fitted) -> list[Any]:
    """Return what the graph's inputs are called, and what they hold."""
    helper = graph.onnx.helper
    number = helper.np_dtype_to_tensor_dtype(graph.dtype)
    if fitted.names is None:
        return [helper.make_tensor_value_info("X", number, ["rows", fitted.n_columns])]
    text = graph.onnx.TensorProto.STRING
    dates = graph.onnx.TensorProto.INT64
    kinds = [
        text if fitted.holds_text(j) else dates if holds_dates(fitted.first.columns, j) else number
        for j in range(fitted.n_columns)
    ]
    return [
        helper.make_tensor_value_info(name, kind, ["rows", 1])
        for name, kind in zip(fitted.names, kinds, strict=True)
    ]


def _properties(fitted: Fitted) -> dict[str, str]:
    """Return what a reader of the file may want to know, by column: what stands for missing, and zones."""
    names: Sequence[str] = fitted.names or ()
    columns = fitted.first.columns
    texts = {
        name: missing_text(columns.categories[j])  # type: ignore[arg-type]
        for j, name in enumerate(names)
        if columns is not None and holds_text(columns, j)
    }
    dates = {
        name: columns.kind_of[j].zone  # type: ignore[union-attr]
        for j, name in enumerate(names)
        if columns is not None and holds_dates(columns, j)
    }
    found = {"missing_text": texts, "time_zones": dates}
    return {name: json.dumps(values) for name, values in found.items() if values}
