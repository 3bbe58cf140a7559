"""What was learnt about the columns of X, and how rows become the columns that the network sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from .._seam.arrays import Array, array_namespace, device, ignore_overflow, row_blocks, take_columns
from .._seam.fields import Between, Long, Places, floats

SMOOTH = 3.0  # a robust column stays within this many robust deviations, by x / sqrt(1 + (x / 3)^2)
MISSING = -2.0  # the code of a missing category, where codes are compared; -1 was never seen
CUT = 8.0  # no robust column, bin or value goes further from 0: rare values would rule a layer


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The place of a number among the training rows: sum_i height_i clip((z - left_i) slope_i, 0, 1)."""

    left: Annotated[Array, floats("steps", "numbers")]
    slope: Annotated[Array, floats("steps", "numbers")]
    height: Annotated[Array, floats("steps", "numbers", low=0, high=1)]

    def of(self, Z: Array) -> Array:
        """Return the places, from 0 to 1, of filled numbers."""
        xp = array_namespace(Z)
        places, zero = xp.zeros_like(Z), xp.zeros_like(Z[:1, :])
        one = zero + 1
        for i in range(self.left.shape[0]):
            # a library's clip looks at its arguments for longer than few rows take
            step = xp.minimum(xp.maximum((Z - self.left[i, :]) * self.slope[i, :], zero), one)
            places += step * self.height[i, :]
        return places


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """How each number column becomes one column of mean 0 and variance 1."""

    columns: Annotated[Array, Places("numbers", ("d",))] | None  # in X; None takes all
    # the largest absolute value of the column; infinity where the column is constant
    divisor: Annotated[Array, floats("numbers", positive=True, infinite=True)]
    fill: Annotated[Array, floats("numbers")]  # what stands for a missing value, after the division
    center: Annotated[Array, floats("numbers")] | None  # the median, on the robust scale; None without it
    spread: Annotated[Array, floats("numbers", positive=True)] | None
    mean: Annotated[Array, floats("numbers")]
    sd: Annotated[Array, floats("numbers", positive=True)]
    ranks: Ranks | None = None

    def filled(self, X: Array) -> Array:
        """Return the numbers of X, divided, without gaps. Far outliers are clipped: no layer overflows."""
        xp = array_namespace(X)
        bound = _bound(X)
        Z = xp.clip(taken(X, self.columns) / self.divisor, -bound, bound)
        if Z.shape[0] and bool(xp.isnan(xp.min(Z))):  # the smallest of numbers with gaps is NaN: a fast look
            Z = xp.where(xp.isnan(Z), self.fill, Z)
        return Z

    def clipped(self, Z: Array) -> Array:
        """Return Z / sqrt(1 + (Z / 3)^2), Z in robust deviations from the median; ranks, or Z itself."""
        if self.ranks is not None:
            return self.ranks.of(Z)
        if self.center is None:
            return Z
        xp = array_namespace(Z)
        bound = _bound(Z)  # the square below stays finite
        Z = xp.clip((Z - self.center) / self.spread, -bound, bound)
        return Z / xp.sqrt(1 + (Z / SMOOTH) ** 2)

    def scaled(self, Z: Array) -> Array:
        """Return what `filled` gave with mean 0 and variance 1."""
        scaled = self.clipped(Z) - self.mean
        scaled /= self.sd
        return scaled if self.center is None else array_namespace(Z).clip(scaled, -CUT, CUT)


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Piecewise-linear bins: clip((z - left) slope + offset, low, high)."""

    columns: Annotated[Array, Places("bins", ("numbers",))]
    left: Annotated[Array, floats("bins")]
    slope: Annotated[Array, floats("bins")]
    offset: Annotated[Array, floats("bins")]
    low: Annotated[Array, floats("bins")]
    high: Annotated[Array, floats("bins")]

    def of(self, Z: Array) -> Array:
        """Return the bins of filled numbers."""
        A = taken(Z, self.columns)
        A -= self.left
        A *= self.slope
        A += self.offset
        return array_namespace(Z).clip(A, self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """How the codes of categorical columns become places among the one-hot columns of their column.

    The table of a column has an entry for -1, for each code up to the largest seen, for all codes beyond,
    and for missing. The place of what was not seen is -1, so that no column is hot.
    """

    columns: Annotated[Array, Places("categories", ("d",))]  # in X
    table: Annotated[Array, floats("")]  # the tables of all columns, one after another
    start: Annotated[Array, floats("categories")]  # the entry of -1
    end: Annotated[Array, floats("categories")]  # the entry of missing

    def places(self, X: Array) -> Array:
        """Return the place of each category in X, as numbers."""
        xp = array_namespace(X)
        codes = taken(X, self.columns)
        known = xp.clip(codes + (self.start + 1), self.start, self.end - 1)
        entries = xp.astype(xp.where(xp.isnan(codes), self.end, known), xp.int64)
        return xp.reshape(xp.take(self.table, xp.reshape(entries, (-1,))), codes.shape)


@dataclass(frozen=True, slots=True, eq=False)
class OneHots:
    """One-hot columns: `on` where low <= z < high, else `off`; 1 and 0 for categories."""

    columns: Annotated[Array, Places("hots", ("numbers", "categories"))]  # numbers, then places of categories
    low: Annotated[Array, floats("hots", infinite=True)]
    high: Annotated[Array, floats("hots", infinite=True)]
    on: Annotated[Array, floats("hots")]
    off: Annotated[Array, floats("hots")]

    def of(self, F: Array) -> Array:
        """Return the one-hot columns of filled numbers and places side by side."""
        A = taken(F, self.columns)
        return array_namespace(F).where((self.low <= A) & (self.high > A), self.on, self.off)


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What was learnt about the columns: how a row of X becomes the columns that the network sees."""

    width: Annotated[int, Between(side="width")]
    # the column of X that each encoded column comes from
    source: Annotated[tuple[Annotated[int, Between(among="d")], ...], Long("width")]
    # what each encoded column adds to that column's name; a number is a code
    labels: Annotated[tuple[str | Annotated[int, Between()], ...], Long("width")]
    numbers: Numbers | None = None
    missing: Annotated[Array, Places("missing", ("d",))] | None = None  # the number columns that had gaps
    bins: Bins | None = None
    categories: Categories | None = None
    onehots: OneHots | None = None
    # by which the encoded columns are multiplied; None for ones
    factors: Annotated[Array, floats("width")] | None = None
    # the columns of X with more categories than one-hot columns; `levels.py` makes codes of them for kernels
    many: Annotated[Array, Places("many", ("d",))] | None = None
    # the columns of X whose codes are the last encoded columns; a kernel asks whether two codes are equal
    codes: Annotated[Array, Places("codes", ("d",))] | None = None

    @property
    def plain(self) -> bool:
        """Whether the columns of X stay as they are."""
        return self.numbers is None and self.categories is None and self.codes is None

    @property
    def n_compared(self) -> int:
        """How many columns a kernel compares: a code counts as two, the one-hot columns that would differ."""
        return self.width if self.codes is None else self.width + int(self.codes.shape[0])

    def contrasts(self, like: Array) -> Array:
        """Return how far two categories are apart in each column of codes."""
        xp, q = array_namespace(like), self.n_compared - self.width
        if self.factors is None:
            return xp.ones((q,), dtype=like.dtype, device=device(like))
        return xp.astype(self.factors[self.width - q :], like.dtype)

    def apply(self, X: Array) -> Array:
        """Return the rows of X as the network sees them. Temporaries are of the size of the result."""
        with ignore_overflow():  # infinities are clipped
            return side_by_side(list(self._parts(X)))

    def write(self, X: Array, out: Array) -> None:
        """Write the rows of X as the network sees them into `out` (..., m, width), by blocks of rows."""
        with ignore_overflow():
            for rows in row_blocks(X, X.shape[0], max(X.shape[1], self.width)):
                start = 0
                for part in self._parts(X[rows, :]):
                    out[..., rows, start : start + part.shape[1]] = part
                    start += part.shape[1]

    def _parts(self, X: Array) -> Iterator[Array]:
        """Yield the encoded columns times their factors, one kind after another."""
        start = 0
        for part in self._encoded(X):
            yield part if self.factors is None else part * self.factors[start : start + part.shape[1]]
            start += part.shape[1]
        if self.codes is not None:  # their factors tell how far different codes are apart
            codes = taken(X, self.codes)
            xp = array_namespace(codes)
            yield xp.where(xp.isnan(codes), xp.full_like(codes, MISSING), codes)

    def _encoded(self, X: Array) -> Iterator[Array]:
        if self.plain:
            yield X
            return
        bases = []
        if self.numbers is not None:
            bases.append(self.numbers.filled(X))
            yield self.numbers.scaled(bases[0])
        if self.missing is not None:
            yield array_namespace(X).astype(array_namespace(X).isnan(taken(X, self.missing)), X.dtype)
        if self.bins is not None:
            yield self.bins.of(bases[0])
        if self.categories is not None:
            bases.append(self.categories.places(X))
        if self.onehots is not None:
            yield self.onehots.of(side_by_side(bases))

    def names(self, columns: Sequence[str], categories: Sequence[Any]) -> list[str]:
        """Name the encoded columns, each name once, from the names and the categories of the columns of X."""
        names: dict[str, None] = {}
        for j, label in zip(self.source, self.labels, strict=True):
            part = categories[j][label] if isinstance(label, int) else label
            name = columns[j] if label == "" else f"{columns[j]}_{part}"
            while name in names:  # a column may be called like what is made of another
                name += "_"
            names[name] = None
        return list(names)


def taken(X: Array, columns: Array | None) -> Array:
    """Return the named columns of X, as a copy; X itself for None."""
    return X if columns is None else take_columns(X, columns)[..., : columns.shape[0]]


def _bound(like: Array) -> float:
    """Return how large a number may be so that squares and their sums stay finite."""
    return float(array_namespace(like).finfo(like.dtype).max) ** 0.25


def side_by_side(parts: list[Array]) -> Array:
    """Return the columns of all parts in one array; a single part as it is."""
    return parts[0] if len(parts) == 1 else array_namespace(parts[0]).concat(parts, axis=1)
