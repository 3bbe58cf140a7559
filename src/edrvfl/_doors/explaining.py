"""What an estimator that remembers its training rows tells of them: influence, doubt, support."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy
from sklearn.utils import Bunch, check_scalar
from sklearn.utils.validation import check_is_fitted

from .._afterwards.doubt import doubts
from .._afterwards.explained import Explained
from .._afterwards.influence import most_moving
from .._afterwards.support import ranks
from .._inputs.rows import to_host
from .._models.memory import Memory
from .._seam.arrays import Array, from_numpy
from .base import Estimator


class Explains(Estimator):
    """An estimator that explains its answers by the rows that it was fitted to, if it remembers them."""

    memory_: Memory | None = None  # files that were written before there was one have none

    def influence(self, X: Any, n: int = 10, of: Any = None) -> Bunch:
        """Tell how much each training row moved the answers to new rows: f(x) - f_without_the_row(x).

        The model without a row has the encoding, the random layers, the weights of rows, penalties, votes,
        weights of members and the calibration of this fit, and read-outs that were solved without the row.
        Given these the change is exact, and it is that of the answer that users see: a calibrated
        probability, or a value. One copy of a row is left out, and not its copies. It needs
        ``remember="rows"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        n : int, default=10
            How many training rows are told for each row of X: those that moved its answer most.

        of : label or int, default=None
            Of which class the probability is asked about, or of a regressor with several outputs which
            output, counted from 0. None takes the most probable class of each row, or the first output.

        Returns
        -------
        table : :class:`~sklearn.utils.Bunch`
            Columns with n entries for each row of X, the strongest first: ``new_row``, the place in X;
            ``training_row``, its name in the index of the frame that was fitted, or its place; ``given``, its
            own label or value; ``change``, by how much the answer is larger with the row; ``answer``, the
            probability or value; ``of``, the class or output. ``pandas.DataFrame(table)`` shows it.
        """
        check_scalar(n, "n", Integral, min_val=1)
        explained = self._explained("influence")
        rows = to_host(self._check_new_rows(X, "influence"))
        asked = None if of is None else numpy.full(len(rows), self._place_of(explained, of))
        found = most_moving(explained, rows, asked, int(n))
        times = found.rows.shape[1]
        classes, given = explained.model.classes, explained.known.Y[found.rows.ravel()]
        own = given.argmax(axis=1) if classes is not None else numpy.repeat(found.of, times)
        return Bunch(
            new_row=numpy.repeat(numpy.arange(len(rows)), times),
            training_row=explained.rows.ids[found.rows.ravel()],
            given=classes[own] if classes is not None else given[numpy.arange(len(given)), own],
            change=found.change.ravel(),
            answer=numpy.repeat(found.answers, times),
            of=numpy.repeat(found.of if classes is None else classes[found.of], times),
        )

    def _place_of(self, explained: Explained, of: Any) -> int:
        """Return the place of a class or of an output."""
        classes, k = explained.model.classes, explained.model.n_outputs
        known = list(range(k)) if classes is None else classes.tolist()
        if of not in known:
            what = "an output, counted from 0" if classes is None else "a class"
            raise ValueError(f"of must name {what}: one of {known}. Got {of!r}.")
        return known.index(of)

    def doubtful_rows(self, n: int | None = None) -> Bunch:
        """Return the training rows whose own label the model without them denies: labels to check first.

        Each row is answered by leave-one-out, with its copies left out too, and all rows are, not a sample.
        Where rows are few these are the answers of the fit's folds, which the row's label did not shape. A
        class is denied if another one is more probable. A value is denied if it is more than three standard
        deviations off, by the median of all errors. It needs ``remember="rows"``.

        Parameters
        ----------
        n : int, default=None
            How many rows, denied or not. None returns those that are denied.

        Returns
        -------
        table : :class:`~sklearn.utils.Bunch`
            The most doubtful first: ``row``, its name in the index of the frame that was fitted, or its
            place; ``doubt``, the log-odds of the other class against the row's own, or how many standard
            deviations the value is off; ``given``, the label or value; ``said``, what the model without the
            row says. Of classes also ``given_probability`` and ``said_probability``, and of several outputs
            ``of``, the one that is farthest off, whose value is told. A row that is alone in its class is not
            among them: a model without it knows no such class.
        """
        if n is not None:
            check_scalar(n, "n", Integral, min_val=1)
        explained = self._explained("doubtful_rows")
        found, classes = doubts(explained), explained.model.classes
        some = numpy.arange(n if n is not None else (found.doubt > found.least).sum())[: len(found.rows)]
        rows, said = found.rows[some], found.said[some]
        table = {"row": explained.rows.ids[rows], "doubt": found.doubt[some]}
        given = explained.known.Y[rows]
        places = numpy.arange(len(rows))
        if found.of is not None:
            of = found.of[some]
            outputs = {"of": of} if explained.model.n_outputs > 1 else {}
            return Bunch(**table, given=given[places, of], said=said[places, of], **outputs)
        own, top = given.argmax(axis=1), said.argmax(axis=1)
        return Bunch(
            **table,
            given=classes[own],
            said=classes[top],
            given_probability=said[places, own],
            said_probability=said[places, top],
        )

    def support(self, X: Any) -> Array:
        """Return how far each row is from those that were fitted: 0 in their midst, 1 beyond all of them.

        In every layer that is the leverage of the row, in every kernel the variance that the training rows
        leave, and how far out the row is in any column as it came; each is ranked among those of up to 2,000
        training rows, each as the other rows see it.
        The largest of the ranks is ranked among those of the training rows. So new rows of the same kind
        have ranks that spread evenly from 0 to 1, and 5 of 100 have one above 0.95. An answer far beyond the
        rows should not be relied on. It needs ``remember="rows"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        ranks : array of shape (n_samples,)
            From 0 to 1.
        """
        explained = self._explained("support")
        X = self._check_new_rows(X, "support")
        return from_numpy(ranks(explained, to_host(X)), X)

    def _explained(self, method: str) -> Explained:
        """Return the model with its training rows, or say what to set."""
        check_is_fitted(self)
        kind, memory = type(self).__name__, self.memory_
        if memory is None or memory.rows.X is None:
            why = f"was fitted with remember={self.remember!r}"
            if memory is not None and not memory.rows.n_rows:
                why = "was fitted to rows that are read block by block"
            raise ValueError(
                f"{method} needs the training rows, and this {kind} {why}. Fit it again to rows in memory "
                'with remember="rows".'
            )
        return Explained.of(self._model, memory)
