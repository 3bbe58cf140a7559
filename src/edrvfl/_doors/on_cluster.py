"""What the estimators of `edrvfl.dask` share: a fit on the workers, answers that are computed later."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from typing import Any, Self

import dask
import numpy
from dask.delayed import delayed
from distributed import get_client
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .._inputs.rows import as_matrix
from .._parts.cluster import DaskParts, is_array, is_frame, one_block_of_columns
from .._seam.sklearn import CALLBACK_ATTRIBUTES
from .layered import LayeredEstimator


def with_client(plain: type) -> Callable[[Any], Any]:
    """Give a constructor the plain class's signature and `client`: scikit-learn reads parameters there."""

    def set_signature(init: Any) -> Any:
        signature = inspect.signature(plain.__init__)  # type: ignore[misc]
        client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)
        init.__signature__ = signature.replace(parameters=[*signature.parameters.values(), client])
        return init

    return set_signature


class OnCluster(LayeredEstimator):
    """A network whose rows lie on a cluster. Subclasses name the plain class."""

    _plain: type[LayeredEstimator]
    client: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit on the cluster.

        The partitions are computed, stay on the workers until the fit ends, and are read once for each layer
        and a few times before. A worker that dies changes nothing: its partitions are computed again.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Training rows. Partitions may have any sizes, also unknown ones, and may be empty.

        y : Dask array, Series or DataFrame of shape (n_samples,), for a regressor also (n_samples, n_outputs)
            Labels or values. If the sizes of the partitions of X and y are known and differ, y is divided as
            X is; else they must have the same partitions.

        sample_weight : Dask array or Series of shape (n_samples,), default=None
            Weights of the rows, divided as y is. None gives every row the weight 1.

        Returns
        -------
        self : estimator
            The fitted estimator. A fit that fails leaves it as it was.
        """
        fitted: Self = super().fit(X, y, sample_weight)
        return fitted

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        with closing(DaskParts(self.client_, X, y, sample_weight)) as parts:
            self._fit_parts(parts)

    @property
    def client_(self) -> Any:
        """The client that a fit uses: `client`, or the one that Dask has at the moment."""
        client = self.client
        if client is None:
            try:
                client = get_client()
            except ValueError as error:
                raise ValueError(
                    f"{type(self).__name__} needs a cluster, but there is no Dask client. Make one by "
                    "distributed.Client(), or pass one as client."
                ) from error
        if client.asynchronous:
            raise ValueError(f"{type(self).__name__} waits for its cluster, but its client is asynchronous.")
        return client

    def to_local(self) -> Any:
        """Return the plain estimator, fitted if this one is, for rows in memory.

        Returns
        -------
        estimator : EDRVFLClassifier or EDRVFLRegressor
            It has the same parameters and gives the same answers.
        """
        local = self._plain()
        hidden = ("client", *CALLBACK_ATTRIBUTES)
        local.__dict__ |= {name: value for name, value in vars(self).items() if not name.startswith(hidden)}
        return local

    def __getstate__(self) -> dict[str, Any]:
        # a connection belongs to this process
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Self:
        # a client cannot be copied: the clone has the same one
        cloned: Self = BaseEstimator.__sklearn_clone__(copy.copy(self))
        cloned.client = self.client
        return cloned

    def predict(self, X: Any) -> Any:
        """Return what the plain class's `predict` returns, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        y : Dask array of shape (n_samples,), for several outputs (n_samples, n_outputs)
            Labels or values. For a DataFrame a Series, or a DataFrame, with its index.
        """
        return self._lazily(X, "predict")

    def _like(self, method: str, values: numpy.ndarray) -> numpy.ndarray:
        """Return an array of the kind that a method answers with, from answers (rows, k) of a network."""
        raise NotImplementedError

    def _column_names(self, method: str) -> Any:
        """Return the names of the columns in which a method answers for a DataFrame; None for numbers."""
        raise NotImplementedError

    def _lazily(self, X: Any, method: str, depth: int | None = None, **options: Any) -> Any:
        """Return a collection of the answers of a method, block by block or partition by partition."""
        check_is_fitted(self)
        X = self._check_columns(X, method)
        local = self.to_local()
        if depth is not None:
            local.network_ = local.network_.prefix(depth)
        array = self._fitted_array
        like = self._like(method, numpy.zeros((1, array.shape[1]), dtype=array.dtype))
        # a task of its own, so that the graph holds the model once
        model = delayed(_same, pure=False)(delayed(local, traverse=False))
        ask = {"method": method, "like": like[:0], "options": options}
        if is_frame(X):
            names = self._column_names(method) if like.ndim == 2 else None
            meta = _framed(like, X._meta.index[:0], names)
            return X.map_partitions(_answer_frame, model, like_frame=meta, **ask, meta=meta)
        if like.ndim == 1:
            return X.map_blocks(_answer_block, model, **ask, drop_axis=1, dtype=like.dtype, meta=like[:0])
        chunks = (X.chunks[0], (like.shape[1],))
        return X.map_blocks(_answer_block, model, **ask, chunks=chunks, dtype=like.dtype, meta=like[:0])

    def _staged(self, X: Any, method: str) -> Iterator[Any]:
        for depth in range(1, self.n_layers_ + 1):
            yield self._lazily(X, method, depth)

    def _computed(self, *collections: Any) -> tuple[Any, ...]:
        """Compute collections on this estimator's cluster; without `client` where Dask would compute them."""
        with nullcontext() if self.client is None else self.client_.as_current():
            found: tuple[Any, ...] = dask.compute(*collections)
        return found

    def _check_columns(self, X: Any, method: str) -> Any:
        """Return X in one block of columns, which are those of the fit."""
        if not (is_frame(X) or is_array(X)) or X.ndim != 2:
            raise TypeError(
                f"{type(self).__name__}.{method} takes a Dask array or DataFrame, got {type(X).__name__}"
                f"{f' of {X.ndim} dimensions' if hasattr(X, 'ndim') else ''}. For rows in memory take "
                f"to_local().{method}."
            )
        columns = X._meta if is_frame(X) else numpy.empty((0, X.shape[1]))
        validate_data(self, columns, reset=False, skip_check_array=True)
        return one_block_of_columns(X)


def _same(model: Any) -> Any:
    return model


def _answer_block(block: Any, model: Any, method: str, like: Any, options: dict[str, Any]) -> Any:
    """Return a method's answers for the rows of a block; an empty one has none."""
    if len(block) == 0:
        return like
    found = getattr(model, method)(block, **options)
    return numpy.hstack([as_matrix(end) for end in found]) if isinstance(found, tuple) else found


def _answer_frame(frame: Any, model: Any, like_frame: Any, **ask: Any) -> Any:
    """Return a method's answers as a Series or a DataFrame with the index of the rows."""
    names = None if like_frame.ndim == 1 else like_frame.columns
    found = _framed(_answer_block(frame, model, **ask), frame.index, names)
    return found.astype(like_frame.dtype if like_frame.ndim == 1 else like_frame.dtypes)


def _framed(answers: Any, index: Any, names: Any) -> Any:
    import pandas

    if answers.ndim == 1:
        return pandas.Series(answers).iloc[: len(index)].set_axis(index)
    return pandas.DataFrame(answers, columns=names).iloc[: len(index)].set_axis(index)
