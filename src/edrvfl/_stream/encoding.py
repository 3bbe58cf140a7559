"""Learn how columns are encoded from rows that come in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._inputs.encoding import EncoderSettings, learn_inputs
from .._inputs.inputs import Inputs
from .rows import PartedRows, joined_rows


def learn_parted_inputs(
    parted: PartedRows, settings: EncoderSettings | None, categorical: Sequence[bool] | None = None
) -> Inputs:
    """Learn the encoding of the columns, as `learn_inputs` does from rows in memory."""
    rows = joined_rows(parted.total(lambda rows, _: [rows]))
    return learn_inputs(rows.X, rows.weights.counts, settings, categorical)


def learn_parted_encoding(parted: PartedRows, encoder: Any) -> Inputs:
    """Learn how a TabularEncoder encodes the columns; None takes finite numbers as they are."""
    columns = parted.reader.columns
    if encoder is None or columns is None:
        d = parted.reader.n_features
        return Inputs(d, tuple(range(d)), ("",) * d)
    return learn_parted_inputs(parted, encoder._settings(), columns.categorical)
