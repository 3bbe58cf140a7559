"""A graph of ONNX operators that grows node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy

OPSET = 18  # of the standard operators; nothing newer than 13 is used, so older ones serve a pipeline too
ML_OPSET = 3  # of the standard's operators for tables: LabelEncoder reads text
IR_VERSION = 8  # what goes with these: onnxruntime 1.14 and later read it

Name = str  # of a tensor in the graph


def import_onnx() -> ModuleType:
    """Return the package onnx, or say how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "to_onnx needs the package onnx, which is not installed. Install it with: "
            "pip install 'edrvfl[onnx]'"
        ) from error
    return onnx


class Graph:
    """Nodes and constants so far. A tensor is known by its name.

    `dtype` is the precision of inputs, hidden layers and outputs. Encodings, scores and probabilities are
    few numbers beside the hidden features, and are always computed in float64: differences of large numbers,
    thresholds and logarithms would lose digits in float32.
    """

    def __init__(
        self, dtype: Any, taken: Sequence[Name] = (), namer: Callable[[str], Name] | None = None
    ) -> None:
        self.onnx = import_onnx()
        self.dtype = numpy.dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[Any, ...], Name] = {}  # a constant, or a tensor that was computed before
        self.outputs: list[Any] = []  # what the graph's outputs are called, and what they hold
        self._taken = set(taken)
        self._namer = namer  # gives names that nobody has, in a graph that somebody else began

    def new_name(self, what: str) -> Name:
        """Return a name that no tensor has."""
        if self._namer is not None:
            return self._namer(what)
        name = what
        while name in self._taken:
            name = f"{what}_{len(self._taken)}"
        self._taken.add(name)
        return name

    def constant(self, values: Any, dtype: Any = numpy.float64) -> Name:
        """Return a tensor with these values; equal small ones are stored once."""
        array = numpy.ascontiguousarray(values, dtype=dtype)
        array = array.reshape(numpy.shape(values))  # a number stays a number
        key = (array.dtype.str, array.shape, array.tobytes()) if array.dtype != object else ()
        if array.size > 64 or not key:
            return self._stored(array)
        if key not in self._known:
            self._known[key] = self._stored(array)
        return self._known[key]

    def _stored(self, array: numpy.ndarray) -> Name:
        name = self.new_name("constant")
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(
        self, operator: str, *inputs: Any, output: str | None = None, domain: str = "", **attributes: Any
    ) -> Name:
        """Add a node with one output, and return the name of that.

        Inputs are names of tensors, or numbers and arrays, which become constants in float64.
        """
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        name = self.new_name(operator) if output is None else output
        node = self.onnx.helper.make_node(
            operator, names, [name], name=f"{operator}:{name}", domain=domain, **attributes
        )
        self.nodes.append(node)
        return name

    def cast(self, tensor: Name, dtype: Any, output: str | None = None) -> Name:
        """Return the tensor in another precision."""
        to = self.onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))
        if output is not None:
            return self.add("Cast", tensor, output=output, to=to)
        key = ("cast", tensor, to)
        if key not in self._known:
            self._known[key] = self.add("Cast", tensor, to=to)
        return self._known[key]

    def to_double(self, tensor: Name) -> Name:
        """Return a tensor of the graph's precision in float64."""
        return tensor if self.dtype == numpy.float64 else self.cast(tensor, numpy.float64)

    def concat(self, parts: Sequence[Name], axis: int = 1) -> Name:
        """Return tensors side by side; a single one as it is."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=axis)

    def columns(self, tensor: Name, places: numpy.ndarray, width: int) -> Name:
        """Return the named columns of a tensor (rows, width); the tensor itself if these are all in order."""
        if numpy.array_equal(places, numpy.arange(width)):
            return tensor
        start, stop = int(places[0]), int(places[-1]) + 1
        if numpy.array_equal(places, numpy.arange(start, stop)):  # a slice is copied faster
            ends = (self.constant([end], numpy.int64) for end in (start, stop, 1))
            return self.add("Slice", tensor, *ends)
        return self.add("Gather", tensor, self.constant(places, numpy.int64), axis=1)

    def between(self, tensor: Name, low: Any, high: Any) -> Name:
        """Return clip(tensor, low, high). Clip takes numbers only, so arrays ask for Max and Min."""
        return self.add("Min", self.add("Max", tensor, low), high)

    def output_name(self, what: str) -> Name:
        """Return what an output is called: as it should be, with "_" if a column is called so."""
        while what in self._taken:
            what += "_"
        self._taken.add(what)
        return what

    def give_labels(self, codes: Name, classes: numpy.ndarray, output: Name) -> None:
        """Make the labels of these codes (rows,) an output: text, or whole numbers."""
        labels = label_values(classes)
        self.add("Gather", self.constant(labels, labels.dtype), codes, output=output, axis=0)
        kind = self.onnx.TensorProto.STRING if labels.dtype == object else self.onnx.TensorProto.INT64
        self.outputs.append(self.onnx.helper.make_tensor_value_info(output, kind, ["rows"]))

    def give(self, tensor: Name, shape: tuple[int, ...], output: Name) -> None:
        """Make a tensor (rows, *shape) of float64 an output, in the graph's precision."""
        self.cast(tensor, self.dtype, output)
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype)
        self.outputs.append(self.onnx.helper.make_tensor_value_info(output, kind, ["rows", *shape]))


def label_values(classes: numpy.ndarray) -> numpy.ndarray:
    """Return labels as ONNX has them: text as objects, numbers and booleans as int64."""
    values = classes.tolist()
    if all(isinstance(value, str) for value in values):
        return numpy.array(texts(values, "Label"), dtype=object)
    if all(isinstance(v, (bool, int, float)) and abs(v) < 2**63 and v == int(v) for v in values):
        return numpy.array(values, dtype=numpy.int64)
    raise NotImplementedError(
        f"to_onnx writes labels that are text, or whole numbers of 64 bits, but some are not: {values[:5]}. "
        "Encode them before the fit, for instance by sklearn.preprocessing.LabelEncoder."
    )


def texts(values: Sequence[str], what: str) -> list[str]:
    """Return texts that ONNX can hold. `what` says what they are, for messages."""
    for value in values:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{what} {value!r} is not valid Unicode, which ONNX needs. Correct it before the fit."
            ) from error
    return list(values)
