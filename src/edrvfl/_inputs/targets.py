"""The targets: classes or values. Both give the target matrix by blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass

from .._arrays import Array, array_namespace, device, row_blocks, take_entries, take_rows


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Targets that are numbers: Y is a matrix."""

    Y: Array  # (m, k)

    @property
    def width(self) -> int:
        """The number of columns of Y."""
        return int(self.Y.shape[1])

    def rows(self, which: slice | Array) -> Array:
        """Return the named rows of Y."""
        return take_rows(self.Y, which)


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Targets that are classes. Y is one-hot, made by blocks: with many classes it would fill memory."""

    codes: Array  # (m,), places in the list of classes
    width: int  # the number of classes
    like: Array  # an array whose dtype Y takes

    def rows(self, which: slice | Array) -> Array:
        """Return the named rows of Y, a matrix of 0 and 1."""
        xp = array_namespace(self.codes)
        codes = take_entries(self.codes, which)
        every = xp.arange(self.width, dtype=codes.dtype, device=device(codes))  # made where it is needed
        return xp.astype(codes[:, None] == every, self.like.dtype)

    def right(self, D: Array, beta: Array) -> Array:
        """Tell which rows of D (..., m, c) the read-outs (..., r, c, k) get right, as (..., r, m)."""
        xp = array_namespace(D)
        m, r, k = D.shape[-2], beta.shape[-3], beta.shape[-1]
        parts = [
            self.hits(side_by_side(D[..., rows, :], beta), rows)
            for rows in row_blocks(D, m, D.shape[-1] + 3 * r * k)
        ]
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-1)

    def hits(self, scores: Array, rows: slice | Array) -> Array:
        """Tell in which of the named rows the largest score is that of the row's own class."""
        return array_namespace(scores).argmax(scores, axis=-1) == take_entries(self.codes, rows)


def side_by_side(D: Array, beta: Array) -> Array:
    """Return D beta for all read-outs in one product: (..., rows, c), (..., r, c, k) -> (..., r, rows, k)."""
    xp = array_namespace(D)
    *stack, r, c, k = beta.shape
    if r == 1:
        return xp.expand_dims(D @ beta[..., 0, :, :], axis=-3)
    # one wide product is faster than r narrow ones
    together = D @ xp.reshape(xp.moveaxis(beta, -3, -2), (*stack, c, r * k))
    return xp.moveaxis(xp.reshape(together, (*D.shape[:-1], r, k)), -2, -3)
