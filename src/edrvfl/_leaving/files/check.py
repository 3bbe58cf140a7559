"""What a tree of records must satisfy before it becomes a model: shapes that belong together, finite numbers.

Whoever can write a checksum can write any numbers. A model that passes here may be wrong, but it answers.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..._layers.draws import DRAW_SCHEME
from ..._layers.layers import ACTIVATIONS
from ..._layers.records import DrawSettings
from ..._loo.calibrate import Calibration
from ..._loo.combine import CLASS_RULES
from ..._loo.coverage import Margins, OwnProbabilities, Widths
from ..._models.coverage import Coverage
from ..._models.encoding import Encoding
from ..._models.kernel import KernelModel, KernelVoter
from ..._models.network import Network
from ..._models.portfolio import Portfolio
from ..._models.stored import StoredLayer, drawn_bytes
from .check_inputs import check_columns, check_inputs
from .values import FLOATS, floats, indices, integer, items, need, number, one_of, record, refuse


def check_classes(classes: Any, classifies: bool) -> int | None:
    """Return the number of classes; None for a model of values."""
    need((classes is not None) is classifies, "classes", "there for a classifier, and only there")
    if classes is None:
        return None
    need(
        isinstance(classes, numpy.ndarray) and classes.ndim == 1 and len(classes) >= 2,
        "classes",
        "two or more",
    )
    labels = classes.tolist()
    need(classes.dtype.kind != "f" or numpy.isfinite(classes).all(), "classes", "finite")
    need(len({(type(label), label) for label in labels}) == len(labels), "classes", "different")
    return len(labels)


def check_calibration(calibration: Any, k: int | None) -> None:
    """Refuse a calibration that does not give probabilities of k classes; values have none."""
    if calibration is None:
        return
    if k is None:
        refuse("calibration", "None for values")
    record(calibration, "calibration", Calibration)
    number(calibration.a, "calibration.a", 1e-9, 1e9)
    number(calibration.uniform, "calibration.uniform", 0.0, 1.0)
    number(calibration.floor, "calibration.floor", 1e-40, 1.0)
    for name in ("shift", "low", "high"):
        number(getattr(calibration, name), f"calibration.{name}", -1e9, 1e9)
    for name in ("low_slope", "high_slope"):
        number(getattr(calibration, name), f"calibration.{name}", 0.0, 1e9)
    matrix, offset = calibration.matrix, calibration.offset
    need((matrix is None) is (offset is None), "calibration", "with a matrix and an offset, or none")
    if matrix is not None:
        need(isinstance(matrix, numpy.ndarray) and matrix.ndim in (1, 2), "calibration.matrix", "a matrix")
        floats(matrix, "calibration.matrix", (k,) * matrix.ndim)
        floats(offset, "calibration.offset", (k,))
        need(max(numpy.abs(matrix).max(), numpy.abs(offset).max()) < 1e9, "calibration.matrix", "below 1e9")


def check_network(network: Any, d: int, dtype: Any, classifies: bool) -> int:
    """Return the number of outputs of a stored network."""
    record(network, "network", Network)
    if network.columns is not None:
        check_columns(network.columns, d)
    check_inputs(network.inputs, d, dtype)
    one_of(network.activation, "network.activation", ACTIVATIONS)
    one_of(network.rule, "network.rule", CLASS_RULES if classifies else ("value",))
    k = check_classes(network.classes, classifies)
    n, width = integer(network.n_hidden, "network.n_hidden", 1), network.inputs.width
    integer(network.seed, "network.seed", 0, 2**63 - 1)
    if network.draw_scheme != DRAW_SCHEME or type(network.draw_scheme) is not int:
        refuse("network.draw_scheme", f"{DRAW_SCHEME}: later ones need a later edrvfl")
    need(type(network.joint) is bool, "network.joint", "true or false")
    _check_draws(network.draws)
    depth = len(items(network.layers, "network.layers"))
    need(depth >= 1, "network.layers", "one or more")
    readouts = items(network.readouts, "network.readouts", depth)
    need(isinstance(readouts[0], numpy.ndarray) and readouts[0].ndim == 2, "network.readouts", "matrices")
    outputs = int(readouts[0].shape[1])
    need(outputs == k if classifies else outputs >= 1, "network.readouts", "a column for each class")
    for l, beta in enumerate(readouts):
        c = width + 1 + ((l + 1) * n if network.joint else n)
        floats(beta, "network.readouts", (c, outputs), dtype)
    for vote in items(network.votes, "network.votes", depth):
        number(vote, "network.votes", 1e-30, 1e30)
    for calibration in items(network.calibrations, "network.calibrations", depth):
        check_calibration(calibration, k)
    for l, layer in enumerate(network.layers):
        _check_layer(network, layer, l, dtype)
    return outputs


def _check_draws(draws: Any) -> None:
    record(draws, "network.draws", DrawSettings)
    for name in ("inputs_per_neuron", "hidden_per_neuron"):
        if getattr(draws, name) is not None:
            integer(getattr(draws, name), f"network.draws.{name}", 1)
    number(draws.pair_share, "network.draws.pair_share", 0.0, 1.0)
    for name in ("scales", "shifts"):
        if (ends := getattr(draws, name)) is not None:
            for end in items(ends, f"network.draws.{name}", 2):
                number(end, f"network.draws.{name}")


def _check_layer(network: Network, layer: Any, l: int, dtype: Any) -> None:
    where, n, width = f"layer {l + 1}", network.n_hidden, network.inputs.width
    record(layer, where, StoredLayer)
    integer(layer.checksum, f"{where}.checksum", 0, 2**32 - 1)
    floats(layer.shift, f"{where}.shift", (n,), dtype)
    if layer.scale is not None:
        floats(layer.scale, f"{where}.scale", (n,), dtype)
    n_inputs = width if l == 0 else n + width
    if layer.kept is not None:
        need(l > 0, f"{where}.kept", "None for the first layer")
        n_inputs = width + len(indices(layer.kept, f"{where}.kept", n, ascending=True))
    if layer.pairs is not None:
        need(
            l == 0 and isinstance(layer.pairs, numpy.ndarray) and layer.pairs.ndim == 2,
            where,
            "with pairs if first",
        )
        need(layer.pairs.shape[1] <= n, f"{where}.pairs", "at most one for each neuron")
        floats(layer.pairs, f"{where}.pairs", (width, layer.pairs.shape[1]), dtype)
    if layer.W is not None:
        floats(layer.W, f"{where}.W", (n_inputs, n), dtype)


def check_kernel(model: Any, d: int, dtype: Any, classifies: bool) -> int:
    """Return the number of outputs of a kernel model."""
    record(model, "model", KernelModel)
    voter = model.voter
    record(voter, "model.voter", KernelVoter)
    if model.columns is not None:
        check_columns(model.columns, d)
    check_inputs(voter.inputs, d, dtype)
    k = check_classes(model.classes, classifies)
    check_calibration(model.calibration, k)
    need(isinstance(voter.alpha, numpy.ndarray) and voter.alpha.ndim == 2, "voter.alpha", "a matrix")
    s, outputs = voter.alpha.shape
    need(s >= 1 and (outputs == k if classifies else outputs >= 1), "voter.alpha", "a column for each class")
    floats(voter.alpha, "voter.alpha", (s, outputs))
    floats(voter.landmarks, "voter.landmarks", (s, voter.inputs.width), voter.alpha.dtype)
    for name in ("scale", "prior"):
        floats(getattr(voter, name), f"voter.{name}", (outputs,), dtype)
    number(voter.bandwidth, "voter.bandwidth", 1e-30, 1e30)
    number(voter.lam, "voter.lam", 0.0)
    return int(outputs)


def check_portfolio(portfolio: Any, d: int, classifies: bool) -> int:
    """Return the number of outputs of a portfolio."""
    record(portfolio, "portfolio", Portfolio)
    check_columns(portfolio.columns, d)
    like = portfolio.like
    need(
        isinstance(like, numpy.ndarray) and like.dtype in FLOATS and like.shape == (0,),
        "portfolio.like",
        "empty",
    )
    k = check_classes(portfolio.classes, classifies)
    check_calibration(portfolio.calibration, k)
    voters = items(portfolio.voters, "portfolio.voters")
    need(len(voters) >= 1, "portfolio.voters", "one or more")
    for weight in items(portfolio.weights, "portfolio.weights", len(voters)):
        number(weight, "portfolio.weights", 0.0, 1.0)
    need(abs(sum(portfolio.weights) - 1) < 1e-6, "portfolio.weights", "1 in all")
    outputs = set()
    for voter in voters:
        check = check_network if isinstance(voter, Network) else check_kernel
        outputs.add(check(voter, d, like.dtype, classifies))
    need(len(outputs) == 1 and (k is None or outputs == {k}), "portfolio.voters", "of the same outputs")
    return outputs.pop()


def check_encoding(encoding: Any, d: int) -> None:
    """Refuse what a TabularEncoder cannot encode or name columns with."""
    record(encoding, "encoding", Encoding)
    check_columns(encoding.columns, d)
    like = encoding.like
    need(
        isinstance(like, numpy.ndarray) and like.dtype in FLOATS and like.shape == (0, d),
        "encoding.like",
        "empty",
    )
    check_inputs(encoding.inputs, d, like.dtype)
    for j, label in zip(encoding.inputs.source, encoding.inputs.labels, strict=True):
        categories = encoding.columns.categories[j]
        known = isinstance(label, str) or (categories is not None and label < len(categories))
        need(known, "inputs.labels", "codes of categories")


def check_coverage(coverage: Any, d: int, dtype: Any, outputs: int, classifies: bool) -> None:
    """Refuse what gives no sets or intervals for so many outputs."""
    if coverage is None:
        return
    record(coverage, "coverage", Coverage)
    one_of(coverage.source, "coverage.source", ("loo", "split"))
    integer(coverage.n_rows, "coverage.n_rows")
    kept = coverage.record
    record(kept, "coverage.record", OwnProbabilities if classifies else Margins)
    if classifies:
        need(coverage.spread is None, "coverage.spread", "None for classes")
        shape: tuple[int, ...] = (coverage.n_rows,)
    else:
        shape = (outputs, coverage.n_rows)
        need(type(kept.guaranteed) is bool, "coverage.record.guaranteed", "true or false")
        need((kept.widths is None) is (coverage.spread is None), "coverage.spread", "there if widths vary")
        if kept.widths is not None:
            _check_widths(kept.widths, outputs)
            found = check_network(coverage.spread, d, dtype, False)
            need(found == outputs, "coverage.spread", "of as many outputs")
    floats(kept.values, "coverage.record.values", shape, infinite=classifies)
    weights = floats(kept.weights, "coverage.record.weights", shape)
    need((weights >= 0).all(), "coverage.record.weights", "0 or more")
    need((kept.values[..., 1:] >= kept.values[..., :-1]).all(), "coverage.record.values", "sorted")


def _check_widths(widths: Any, outputs: int) -> None:
    record(widths, "coverage.record.widths", Widths)
    for name in ("powers", "low", "high"):
        floats(getattr(widths, name), f"coverage.record.widths.{name}", (outputs,))
    need((widths.low <= widths.high).all(), "coverage.record.widths", "from low to high")
    need((widths.powers >= 0).all() and (widths.powers <= 1).all(), "widths.powers", "from 0 to 1")


def networks_of(value: Any) -> list[Network]:
    """Return the networks of a fitted attribute."""
    if isinstance(value, Network):
        return [value]
    if isinstance(value, Portfolio):
        return [voter for voter in value.voters if isinstance(voter, Network)]
    if isinstance(value, Coverage) and value.spread is not None:
        return [value.spread]
    return []


def check_memory(values: list[Any], most: float) -> None:
    """Refuse a model whose hidden weights, which a small file can ask for, take too much memory."""
    wanted = sum(drawn_bytes(network) for value in values for network in networks_of(value))
    if wanted > most:
        raise ValueError(
            f"Its hidden weights would take {wanted} bytes, and max_bytes is {most}. If you trust the file, "
            f"load it with max_bytes={wanted} or more."
        )
