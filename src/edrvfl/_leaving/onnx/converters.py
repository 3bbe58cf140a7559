"""Converters for skl2onnx, so that pipelines with our estimators become ONNX models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from .encoder import holds_dates
from .export import Fitted, build
from .graph import Graph, label_values

LABEL_ENCODER = 2  # the version of the operator that opset 3 of ai.onnx.ml has
OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [False, True],  # what decision_function gives: CalibratedClassifierCV asks for it
}


def register(classifiers: Iterable[type], others: Iterable[type]) -> None:
    """Tell skl2onnx how to convert estimators: classifiers, and those that have one output."""
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError(
            "Pipelines are converted by the package skl2onnx, which is not installed. Install it with: "
            "pip install 'edrvfl[onnx]'"
        ) from error
    for kind in classifiers:
        alias = f"Edrvfl{kind.__name__}"
        update_registered_converter(kind, alias, _set_classifier_types, _convert, options=dict(OPTIONS))
    for other in others:
        update_registered_converter(other, f"Edrvfl{other.__name__}", _set_types, _convert)


def _dtype(operator: Any) -> type[numpy.floating[Any]]:
    """Return the precision of the inputs: float64 if they are, float32 for everything else."""
    from skl2onnx.common.data_types import DoubleTensorType

    double = any(isinstance(variable.type, DoubleTensorType) for variable in operator.inputs)
    return numpy.float64 if double else numpy.float32


def _tensor_type(operator: Any, width: int) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = DoubleTensorType if _dtype(operator) is numpy.float64 else FloatTensorType
    return kind([operator.inputs[0].get_first_dimension(), width])


def _set_classifier_types(operator: Any) -> None:
    """Say what the outputs hold: the labels, and the probabilities."""
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    classes: Any = Fitted.of(operator.raw_operator, None).first.classes
    text = label_values(classes).dtype == object
    rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].set_type((StringTensorType if text else Int64TensorType)([rows]))
    operator.outputs[1].set_type(_tensor_type(operator, len(classes)))


def _set_types(operator: Any) -> None:
    """Say what the output holds: values, or encoded columns."""
    width = Fitted.of(operator.raw_operator, None).first.n_outputs
    operator.outputs[0].set_type(_tensor_type(operator, width))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of an estimator to the one that skl2onnx builds."""
    fitted = Fitted.of(operator.raw_operator, None)
    graph = Graph(_dtype(operator), namer=scope.get_unique_variable_name)
    dates = [holds_dates(fitted.first.columns, j) for j in range(fitted.n_columns)]
    each = dates if len(operator.inputs) == len(dates) else [False] * len(operator.inputs)
    names = [_in_precision(graph, *pair) for pair in zip(operator.inputs, each, strict=True)]
    if len(names) not in (1, fitted.n_columns) or (any(dates) and each is not dates):
        raise NotImplementedError(
            f"{type(operator.raw_operator).__name__} takes one tensor of {fitted.n_columns} columns, or each "
            f"column as a tensor, but it gets {len(names)} inputs. Concatenate them first."
        )
    outputs = [variable.full_name for variable in operator.outputs]
    options = {} if fitted.first.classes is None else scope.get_options(operator.raw_operator)
    X = names[0] if len(names) == 1 else names
    build(graph, fitted, X, outputs, bool(options.get("raw_scores", False)))
    onnx = graph.onnx
    for tensor in graph.constants:
        if tensor.data_type == onnx.TensorProto.STRING:
            container.add_initializer(tensor.name, tensor.data_type, tensor.dims, list(tensor.string_data))
        else:
            container.add_initializer(tensor.name, tensor.data_type, tensor.dims, tensor)
    for node in graph.nodes:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        # of ai.onnx.ml there is LabelEncoder alone; None lets skl2onnx look up the others
        version = LABEL_ENCODER if node.domain else None
        tensors = list(node.input), list(node.output)
        container.add_node(node.op_type, *tensors, node.domain, version, node.name, **attributes)


def _in_precision(graph: Graph, variable: Any, dates: bool) -> str:
    """Return an input in the graph's precision, text as it is, dates as whole numbers."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    name: str = variable.full_name
    if dates:
        return graph.cast(name, numpy.int64)
    own = DoubleTensorType if graph.dtype == numpy.float64 else FloatTensorType
    return name if isinstance(variable.type, (StringTensorType, own)) else graph.cast(name, graph.dtype)
