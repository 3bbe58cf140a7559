"""What a fitted estimator can still do: the methods of all that remember what they were fitted from."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._afterwards.changes import drift, equal_rows, frozen_parts, named_rows, with_rows, without_rows
from .._afterwards.remembered import Solved, remember
from .._fitting.coverage import Evidence, learn_coverage
from .._fitting.parts import Reading
from .._inputs.reading import as_ids, names_of
from .._inputs.rows import as_matrix, keep_weighted, to_host
from .._models.memory import Memory
from .._seam.arrays import Array
from .explaining import Explains


class Changes(NamedTuple):
    """How many rows came and went since a fit."""

    came: int
    went: int


class Remembers(Explains):
    """An estimator that can keep what its read-outs were solved from."""

    _least_kept = "rows"  # with which rows may come and go

    def _keep_evidence(self, reading: Reading, voters: Sequence[Solved], P: numpy.ndarray | None) -> None:
        """Learn how far answers may be off, and keep what the model was solved from, as far as asked for.

        P are its leave-one-out answers.
        """
        evidence = Evidence(reading.data, self._model, P, reading.held, reading.seed)
        self.coverage_ = learn_coverage(evidence, self.coverage_from)
        self.__dict__.pop("memory_", None)
        if self.remember is not None:
            self.memory_ = remember(self.remember, reading, voters, P)

    @property
    def frozen_since_(self) -> Changes:
        """How many rows came by `update` and went by `forget` since the fit."""
        memory = self.memory_
        return Changes(0, 0) if memory is None else Changes(memory.came, memory.went)

    @property
    def drift_(self) -> float | None:
        """How many times as large the loss of the newest rows is as that of the fit: about 1 without a drift.

        The loss of a row that came by `update`, of which the newest 300 count, is that of what the model
        foretold before it saw the row: -log of the probability of its class, or its squared error. The loss
        of the fit is by leave-one-out. None before an update, and where the fit has no leave-one-out.
        """
        return None if self.memory_ is None else drift(self.memory_)

    def update(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> Self:
        """Learn further rows: read-outs become what they were if the rows had been there from the start.

        That is exact given what `fit` froze: the encoding of the columns, hidden weights, re-normalisation
        and pruning, penalties and bandwidths, the scale of values, weights of layers and members, calibration
        and coverage. Rows of the fit keep the weights that layers gave them (Eq. 14), and new ones get theirs
        from the read-outs as they were fitted. Of kernels the smallest part is solved again, one system by
        iteration up to its tolerance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        y : array-like of shape (n_samples,), for a regressor also (n_samples, n_outputs)
            Labels that the fit knows, or finite numbers.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, as in `fit`.

        ids : array-like of shape (n_samples,), default=None
            Names of the rows, for `forget`: numbers or texts. None takes the index of a pandas frame. Where
            there is none, or one that counts from 0, rows are numbered in the order in which they came,
            beyond the largest number that is a name already.

        Returns
        -------
        self : estimator
            The estimator. An update that fails leaves it as it was.
        """
        memory = self._memory_for("update")
        ids = names_of(X) if ids is None else as_ids(ids)
        X, y = self._rows_of(X, y, "update")
        counts: Array = numpy.ones(len(y))
        if ids is not None:
            check_consistent_length(X, ids)
        if sample_weight is not None:
            places = numpy.arange(len(y))
            counts, X, y, places = keep_weighted(sample_weight, X, y, places)
            counts, ids = to_host(counts).astype(float), None if ids is None else ids[places]
        self._change(*with_rows(self._model, memory, X, y, counts, ids))
        return self

    def forget(self, X: Any = None, y: Any = None, *, ids: Any = None) -> tuple[str, ...]:
        """Forget rows: read-outs become what they were if the rows had never been there.

        That is exact given what `fit` froze, as for `update`. Rows are named by their values, X and y as they
        came, or by their ids. What is saved afterwards does not hold their numbers, but for what is frozen:
        the return value names it, and only a new fit is without it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows as they came. Each stands for one row that equals it, with its whole weight; of copies the
            newest goes.

        y : array-like of shape (n_samples,), for a regressor also (n_samples, n_outputs), default=None
            Their targets.

        ids : array-like of shape (n_ids,), default=None
            In place of X and y, the names of rows: those of the index of the frame of `fit`, or their numbers
            there, counted from 0, and what `update` was given. All rows of a name go. It needs
            ``remember="rows"``.

        Returns
        -------
        frozen : tuple of str
            What the model keeps from the fit that may hold numbers of single rows, such as edges of bins. A
            row that no remembered row equals, or that was forgotten before, is an error, which changes
            nothing.
        """
        memory = self._memory_for("forget")
        if (ids is None) is (X is None) or (X is None) is not (y is None):
            raise ValueError("forget takes rows by their values, X and y, or by their ids: give one of both.")
        split = self.coverage_ is not None and self.coverage_.source == "split"
        held = 'was held back from the fit by coverage_from="split", ' * split
        if ids is not None:
            if memory.rows.X is None:
                raise ValueError(
                    f"This {type(self).__name__} remembers sums, and no rows that an id could name. Give the "
                    'rows, forget(X, y), or fit with remember="rows".'
                )
            X, places = None, named_rows(memory, ids, held)
        else:
            X, y = self._rows_of(X, y, "forget")
            places = equal_rows(memory, X, y, held)
        if len(places) == memory.rows.n_rows > 0 and not memory.elsewhere:
            raise ValueError("forget would leave no row. Throw the model away instead.")
        if len(places):
            self._change(*without_rows(self._model, memory, places, X, y))
        return frozen_parts(self._model, memory, self.coverage_)

    def _memory_for(self, verb: str) -> Memory:
        """Return what the fit kept, which a verb needs."""
        check_is_fitted(self)
        if self.memory_ is None:
            raise ValueError(
                f"{verb} needs what this {type(self).__name__} was fitted from, and it was fitted with "
                f'remember=None. Fit it again with remember="{self._least_kept}".'
            )
        return self.memory_

    def _rows_of(self, X: Any, y: Any, method: str) -> tuple[Array, numpy.ndarray]:
        """Return rows beside the model, and codes of their classes or their values."""
        X = self._check_new_rows(X, method)
        y = to_host(copy.copy(self)._check_targets(y))  # a copy, because the check forgets names of columns
        check_consistent_length(X, y)
        if self._model.classes is None:
            return X, self._values_of(y, method)
        known = to_host(self._model.classes)
        strange = ~numpy.isin(y, known)
        if strange.any():
            raise ValueError(
                f"{method} got the class {y.tolist()[strange.argmax()]!r}, which the fit did not see. Fit "
                "again with all rows."
            )
        return X, numpy.searchsorted(known, y).astype(numpy.int64)

    def _values_of(self, y: numpy.ndarray, method: str) -> numpy.ndarray:
        """Return values as a matrix of as many columns as the fit had."""
        values, k = as_matrix(y).astype(float), self._model.n_outputs
        if values.shape[1] != k:
            raise ValueError(f"{method} got {values.shape[1]} outputs in y, and the fit had {k}.")
        return values

    def _change(self, model: Any, memory: Memory) -> None:
        """Take a changed model and what is remembered of it."""
        setattr(self, self._record, model)
        self.memory_ = memory
