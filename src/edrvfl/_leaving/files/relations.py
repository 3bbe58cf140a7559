"""What must hold between the fields of a record, where no annotation and no answer would tell."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy

from ..._inputs.columns import Columns
from ..._inputs.dates import Dates, zone_of
from ..._inputs.inputs import Categories, Inputs, Numbers
from ..._layers.draws import DRAW_SCHEME
from ..._loo.calibrate import Calibration
from ..._loo.coverage import Margins, OwnProbabilities, Widths
from ..._models.coverage import Coverage
from ..._models.encoding import Encoding
from ..._models.kernel import KernelModel, KernelVoter
from ..._models.memory import KernelMemory, Memory, NetworkMemory, RowsMemory
from ..._models.network import Network
from ..._models.portfolio import Portfolio
from ..._seam.fields import Known

LONGEST_ZONE = 64  # letters of a name


def need(condition: Any, where: str, wanted: str) -> None:
    """Refuse a value for which a condition does not hold."""
    if not condition:
        raise ValueError(f"`{where}` must be {wanted}.")


def _columns(columns: Columns, where: str, known: Known) -> None:
    need(len(set(columns.names)) == len(columns.names), f"{where}.names", "different names")
    right = columns.categorical == tuple(values is not None for values in columns.categories)
    need(right, f"{where}.categorical", "true where there are categories, and only there")
    for values in columns.categories:
        if values is not None:
            right = _are_sorted(values)
            need(right, f"{where}.categories", "sorted texts, or sorted finite numbers, or absent")
    both = zip(columns.categories, columns.kind_of, strict=True)
    one = all(values is None or kind is None for values, kind in both)
    need(one, f"{where}.kinds", "absent where there are categories")
    known["d"] = columns.width  # the columns of the coded matrix, in which the places of the encoding are


def _dates(dates: Dates, where: str, _: Known) -> None:
    plain = dates.holds == "date" or (dates.origin == 0 and dates.zone is None)
    need(plain, f"{where}.origin", "0, and the zone absent, of what is no date")
    if dates.zone is not None:
        need(len(dates.zone) <= LONGEST_ZONE, f"{where}.zone", "the name of a time zone")
        zone_of(dates.zone)


def _are_sorted(values: numpy.ndarray) -> bool:
    """Tell whether these are texts, or finite numbers, and each is larger than the one before."""
    text = values.dtype == object and all(isinstance(v, str) for v in values.tolist())
    number = values.dtype == numpy.float64 and bool(numpy.isfinite(values).all())
    ordered = values.ndim == 1 and (text or number)
    return ordered and all(a < b for a, b in itertools.pairwise(values.tolist()))


def _numbers(numbers: Numbers, where: str, known: Known) -> None:
    both = (numbers.center is None) is (numbers.spread is None)
    need(both, f"{where}.center", "present where a spread is, and only there")
    three = numbers.ranks is None or numbers.center is None
    need(three, f"{where}.center", "absent where there are ranks")
    of_all = numbers.columns is not None or known["numbers"] == known["d"]
    need(of_all, f"{where}.columns", "a list of places where not all columns are numbers")


def _categories(categories: Categories, where: str, _: Known) -> None:
    start, end, size = categories.start, categories.end, len(categories.table)
    whole = (start == numpy.floor(start)).all() and (end == numpy.floor(end)).all()
    inside = (start >= 0).all() and (start < end).all() and (end < size).all()
    need(whole and inside, f"{where}.start", "a place in the table, before that of the end")


def _inputs(inputs: Inputs, where: str, known: Known) -> None:
    made = {
        "numbers": inputs.numbers,
        "missing": inputs.missing,
        "bins": inputs.bins,
        "hots": inputs.onehots,
        "categories": inputs.categories,
        "codes": inputs.codes,
    }
    if inputs.plain:  # X as it is
        plain = inputs.width == known["d"] and all(part is None for part in made.values())
        need(plain, where, "without parts, and as wide as X, where X is taken as it is")
        return
    found = sum(known[side] for side, part in made.items() if part is not None and side != "categories")
    need(found == inputs.width, f"{where}.width", f"{found}, the number of encoded columns")


def _classes(model: Any, where: str, known: Known) -> None:
    right = (model.classes is not None) is known["classifies"]
    need(right, f"{where}.classes", "present for a classifier and absent for a regressor")


def _calibration(calibration: Calibration, where: str, known: Known) -> None:
    need(known["classifies"], where, "absent for a regressor")
    both = (calibration.matrix is None) is (calibration.offset is None)
    need(both, f"{where}.offset", "present where a matrix is, and only there")


def _network(network: Network, where: str, known: Known) -> None:
    _classes(network, where, known)
    right = (network.rule == "value") is (network.classes is None)
    need(right, f"{where}.rule", "that of a regressor for values, and one of a classifier for classes")
    newest = f"{DRAW_SCHEME}, which this edrvfl knows: a later one needs a later edrvfl"
    need(network.draw_scheme == DRAW_SCHEME, f"{where}.draw_scheme", newest)
    n, width = network.n_hidden, network.inputs.width
    for l, beta in enumerate(network.readouts):
        rows = width + 1 + ((l + 1) * n if network.joint else n)
        need(len(beta) == rows, f"{where}.readouts.{l}", f"an array of {rows} rows")
    for l, layer in enumerate(network.layers):
        _layer(layer, f"{where}.layers.{l}", (n, width, l == 0))


def _layer(layer: Any, where: str, shape: tuple[int, int, bool]) -> None:
    n, width, first = shape
    n_inputs = width if first else n + width
    if layer.kept is not None:
        ascends = not first and (numpy.diff(layer.kept) > 0).all()
        need(ascends, f"{where}.kept", "in ascending order, and absent in the first layer")
        n_inputs = width + len(layer.kept)
    if layer.pairs is not None:
        few = first and layer.pairs.shape[1] <= n
        need(few, f"{where}.pairs", "at most one for each neuron, and only in the first layer")
    need(layer.W is None or len(layer.W) == n_inputs, f"{where}.W", f"an array of {n_inputs} rows")


def _voter(voter: KernelVoter, where: str, _: Known) -> None:
    right = len(voter.landmarks) > 0 and voter.landmarks.dtype == voter.alpha.dtype
    need(right, f"{where}.landmarks", "one row or more, in the precision of alpha")


def _portfolio(portfolio: Portfolio, where: str, known: Known) -> None:
    _classes(portfolio, where, known)
    need(abs(sum(portfolio.weights) - 1) < 1e-6, f"{where}.weights", "1 in all")
    alike = len({voter.n_outputs for voter in portfolio.voters}) == 1
    need(alike, f"{where}.voters", "models with equally many outputs")


def _encoding(encoding: Encoding, where: str, _: Known) -> None:
    parts = encoding.columns.parts
    for j, label in zip(encoding.inputs.source, encoding.inputs.labels, strict=True):
        categories = encoding.columns.categories[parts[j].column]
        right = isinstance(label, str) or (categories is not None and label < len(categories))
        need(right, f"{where}.inputs.labels", "texts, or codes of categories")


def _coverage(coverage: Coverage, where: str, known: Known) -> None:
    kind = OwnProbabilities if known["classifies"] else Margins
    need(type(coverage.record) is kind, f"{where}.record", f"a record {kind.__name__}")
    varies = getattr(coverage.record, "widths", None) is not None
    need(
        varies is (coverage.spread is not None),
        f"{where}.spread",
        "present where widths vary, and only there",
    )


def _sorted(record: OwnProbabilities | Margins, where: str, _: Known) -> None:
    values = record.values
    need((values[..., 1:] >= values[..., :-1]).all(), f"{where}.values", "sorted")


def _widths(widths: Widths, where: str, _: Known) -> None:
    need((widths.low <= widths.high).all(), f"{where}.low", "at most as large as `high`")


def _rows(rows: RowsMemory, where: str, _: Known) -> None:
    m = len(rows.counts)
    need(rows.keys.dtype == numpy.uint64 and rows.keys.shape == (m,), f"{where}.keys", f"{m} of uint64")
    texts = rows.ids.dtype == object and all(isinstance(name, str) for name in rows.ids.tolist())
    named = (rows.ids.dtype == numpy.int64 or texts) and rows.ids.shape == (m,)
    need(named, f"{where}.ids", f"{m} numbers or texts")
    need(len(rows.losses) <= m, f"{where}.losses", "at most one for each row")
    both = (rows.X is None) is (rows.y is None)
    long = rows.X is None or rows.y is None or len(rows.X) == len(rows.y) == m
    need(both and long, f"{where}.X", "absent, or all rows")


def remembers(memory: Memory, model: Any, d: int) -> None:
    """Refuse what is remembered of another model."""
    voters = model.voters if isinstance(model, Portfolio) else (model,)
    rows, values = memory.rows, memory.mean is not None
    right = (
        values is (memory.sd is not None) is (model.classes is None) and memory.n_outputs == model.n_outputs
    )
    need(right, "memory_.mean", "present for a regressor, and only there")
    if rows.X is not None and rows.y is not None:
        need(rows.X.ndim == 2 and rows.X.shape[1] == d, "memory_.rows.X", f"an array of {d} columns")
        need(rows.X.dtype == model.like.dtype, "memory_.rows.X", "in the precision of the model")
        places = rows.y.dtype == numpy.int64 and ((rows.y >= 0) & (rows.y < model.n_outputs)).all()
        numbers = rows.y.dtype == numpy.float64 and rows.y.shape[1:] == (model.n_outputs,)
        need(numbers if values else places and rows.y.ndim == 1, "memory_.rows.y", "targets of the model")
    if rows.answers is not None:
        shape = rows.answers.dtype == numpy.float64 and rows.answers.shape == (rows.n_rows, model.n_outputs)
        need(shape, "memory_.rows.answers", f"{rows.n_rows} x {model.n_outputs} numbers")
    need(len(memory.voters) == len(voters), "memory_.voters", f"{len(voters)} records")
    for i, (kept, voter) in enumerate(zip(memory.voters, voters, strict=True)):
        kind, fits = FITS[type(voter)]
        need(isinstance(kept, kind) and fits(kept, voter, rows.n_rows), f"memory_.voters.{i}", "of its voter")


def _fits_network(kept: NetworkMemory, network: Network, m: int) -> bool:
    widths = [len(beta) for beta in network.readouts]
    sums = widths[-1:] if network.joint else widths
    right = kept.right.dtype == bool and kept.right.shape == (len(widths), m)
    shapes = [(one.G.shape, len(one.R)) for one in kept.sums] == [((c, c), c) for c in sums]
    of_layers = [c for c, judge in zip(widths, kept.judges[1:], strict=False) if judge is not None]
    judges = [len(judge.beta) for judge in kept.judges if judge is not None] == of_layers
    return right and shapes and judges and len(kept.lams) == len(widths)


def _fits_kernel(kept: KernelMemory, model: KernelModel, m: int) -> bool:
    part, n = kept.part, len(kept.sizes)
    places = part.dtype == numpy.int64 and part.shape == (m,) == kept.counts.shape
    inside = places and bool(((part >= -1) & (part < n)).all())
    return inside and sum(kept.sizes) == len(model.voter.landmarks)


FITS: Mapping[Any, tuple[type, Callable[[Any, Any, int], bool]]] = {
    Network: (NetworkMemory, _fits_network),
    KernelModel: (KernelMemory, _fits_kernel),
}
RELATIONS: Mapping[Any, Callable[[Any, str, Known], None]] = {
    Calibration: _calibration,
    Categories: _categories,
    Columns: _columns,
    Coverage: _coverage,
    Dates: _dates,
    Encoding: _encoding,
    Inputs: _inputs,
    KernelModel: _classes,
    KernelVoter: _voter,
    Margins: _sorted,
    Network: _network,
    Numbers: _numbers,
    OwnProbabilities: _sorted,
    Portfolio: _portfolio,
    RowsMemory: _rows,
    Widths: _widths,
}
