"""Networks that are fitted on a Dask cluster, from rows that no machine could hold.

The partitions of X, y and weights lie on the workers. Each pass of the fit sums over them there, and the
client gets the sums, so the model is the one that a fit in memory gives, to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from ._doors.base import without_axis
from ._doors.classifier import EDRVFLClassifier
from ._doors.regressor import EDRVFLRegressor
from ._loo.combine import log_odds

try:
    from ._doors.on_cluster import OnCluster, with_client
    from ._parts.cluster import is_frame
except ImportError as error:
    raise ImportError(f"edrvfl.dask needs Dask: pip install 'edrvfl[dask]' ({error}).") from error

__all__ = ["DaskEDRVFLClassifier", "DaskEDRVFLRegressor"]


class DaskEDRVFLClassifier(OnCluster, EDRVFLClassifier):
    """:class:`~edrvfl.EDRVFLClassifier` on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The client of the cluster. None: the one that Dask has when `fit` is called. It is not pickled.

    **params
        Parameters of :class:`~edrvfl.EDRVFLClassifier`.

    Attributes
    ----------
    client_ : distributed.Client
        The client that a fit uses.

    n_features_in_, classes_, network_, ... : see :class:`~edrvfl.EDRVFLClassifier`
        What the plain class has after a fit.

    See Also
    --------
    DaskEDRVFLRegressor : The same for values.

    Notes
    -----
    The network is that of a fit in memory, to rounding: every sum over rows is a sum over partitions, added
    up by pairs of neighbours, whoever computes them. So a fit gives the same bits again, also if workers die
    or partitions are computed twice, as long as the partitions and the kind of machine are the same.

    The client brings at most 10,000 rows together, those that leave-one-out judges. Each pass sends the
    network so far to the workers, and brings back sums of (n_hidden + n_inputs + 1)^2 numbers. A worker holds
    one sum for each of its threads and a few that wait to be added.

    Some options look for single rows among all of them. With `input_scaling="gradient"`, which "auto" means
    above 10,000 training rows, with `pair_share` and with `coverage_from="split"` the client also holds the
    target, the weight and a hash of every row, 16 to 24 bytes, and about 70 bytes a row at the peak; and it
    fetches the rows that are chosen. A regressor with `correct_weight` below 1 brings the loss and the weight
    of every row to the client. `input_scaling=None` with the defaults of the others avoids all this.

    Each thread of a worker computes with one BLAS thread: give workers as many threads as cores.

    Examples
    --------
    >>> import dask.array
    >>> from distributed import Client
    >>> from sklearn.datasets import load_wine
    >>> from edrvfl.dask import DaskEDRVFLClassifier
    >>> X, y = (dask.array.from_array(part, chunks=50) for part in load_wine(return_X_y=True))
    >>> with Client(processes=False, n_workers=2, dashboard_address=":0"):
    ...     model = DaskEDRVFLClassifier(n_layers=3, random_state=0).fit(X, y)
    ...     P = model.predict_proba(X)  # not computed yet
    ...     labels = model.predict(X).compute()
    >>> P.shape, labels.shape
    ((178, 3), (178,))
    >>> model.to_local()
    EDRVFLClassifier(n_layers=3, random_state=0)
    """

    _plain = EDRVFLClassifier

    @with_client(EDRVFLClassifier)
    def __init__(self, *, client: Any = None, **params: Any) -> None:
        EDRVFLClassifier.__init__(self, **params)
        self.client = client

    def predict_proba(self, X: Any) -> Any:
        """Return the class probabilities of each row, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : Dask array of shape (n_samples, n_classes)
            In the order of `classes_`. For a DataFrame a DataFrame with its index, a column for each class.
        """
        return self._lazily(X, "predict_proba")

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithm of `predict_proba`, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : Dask array of shape (n_samples, n_classes), or a DataFrame
            As in `predict_proba`.
        """
        return self._lazily(X, "predict_log_proba")

    def decision_function(self, X: Any) -> Any:
        """Return the logarithm of the probabilities; for two classes the log-odds of the second; lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        scores : Dask array of shape (n_samples, n_classes), or (n_samples,) for two classes
            For a DataFrame a DataFrame or a Series, with its index.
        """
        return self._lazily(X, "decision_function")

    def predict_set(self, X: Any, coverage: float = 0.9) -> Any:
        """Return for each row a set of classes that holds the true one with the stated probability, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        coverage : float, default=0.9
            The share of rows whose class is to be in their set, above 0 and below 1.

        Returns
        -------
        sets : Dask array of bool of shape (n_samples, n_classes), or a DataFrame
            Which classes are in the set of each row, in the order of `classes_`.
        """
        check_is_fitted(self)
        self._coverage_for(coverage)
        return self._lazily(X, "predict_set", coverage=coverage)

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Yield `predict` of the networks of 1, 2, ... `n_layers_` layers."""
        yield from self._staged(X, "predict")

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """Yield `predict_proba` of the networks of 1, 2, ... `n_layers_` layers."""
        yield from self._staged(X, "predict_proba")

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """Yield `decision_function` of the networks of 1, 2, ... `n_layers_` layers."""
        yield from self._staged(X, "decision_function")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; labels of all rows come to the client."""
        y, found, weight = self._computed(y, self.predict(X), sample_weight)
        return float(accuracy_score(y, found, sample_weight=weight))

    def _like(self, method: str, values: numpy.ndarray) -> numpy.ndarray:
        if method == "predict":
            return numpy.asarray(self.classes_)
        if method == "predict_set":
            return values > 0
        return numpy.asarray(log_odds(values + 0.5)) if method == "decision_function" else values

    def _column_names(self, method: str) -> Any:  # noqa: ARG002
        return list(self.classes_)


class DaskEDRVFLRegressor(OnCluster, EDRVFLRegressor):
    """:class:`~edrvfl.EDRVFLRegressor` on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client or None, default=None
        The client of the cluster. None: the one that Dask has when `fit` is called. It is not pickled.

    **params
        Parameters of :class:`~edrvfl.EDRVFLRegressor`.

    Attributes
    ----------
    client_ : distributed.Client
        The client that a fit uses.

    n_features_in_, network_, ... : see :class:`~edrvfl.EDRVFLRegressor`
        What the plain class has after a fit.

    See Also
    --------
    DaskEDRVFLClassifier : The same for classes, with notes on what lies and travels where.

    Examples
    --------
    >>> import dask.array
    >>> from distributed import Client
    >>> from sklearn.datasets import make_friedman1
    >>> from edrvfl.dask import DaskEDRVFLRegressor
    >>> X, y = (dask.array.from_array(part, chunks=200) for part in make_friedman1(500, random_state=0))
    >>> with Client(processes=False, n_workers=2, dashboard_address=":0"):
    ...     model = DaskEDRVFLRegressor(n_layers=2, random_state=0).fit(X, y)
    ...     lower, upper = dask.compute(*model.predict_interval(X, coverage=0.8))
    >>> bool((lower < upper).all())
    True
    """

    _plain = EDRVFLRegressor

    @with_client(EDRVFLRegressor)
    def __init__(self, *, client: Any = None, **params: Any) -> None:
        EDRVFLRegressor.__init__(self, **params)
        self.client = client

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Any, Any]:
        """Return for each row an interval that holds the true value with the stated probability, lazily.

        Parameters
        ----------
        X : Dask array or DataFrame of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        coverage : float, default=0.9
            The share of rows whose value is to be in the interval, above 0 and below 1.

        Returns
        -------
        lower, upper : Dask arrays of shape (n_samples,), or (n_samples, n_outputs) for several outputs
            The ends of the intervals. For a DataFrame Series or DataFrames, with its index. Compute both
            together, by dask.compute: then each row is answered once.
        """
        check_is_fitted(self)
        self._coverage_for(coverage)
        both, k = self._lazily(X, "predict_interval", coverage=coverage), self._fitted_array.shape[1]
        if not is_frame(both):
            return without_axis(both[:, :k]), without_axis(both[:, k:])
        ends = [both[[f"{end}_{i}" for i in range(k)]] for end in ("lower", "upper")]
        if k == 1:
            return ends[0]["lower_0"].rename("lower"), ends[1]["upper_0"].rename("upper")
        for end in ends:
            end.columns = list(range(k))
        return ends[0], ends[1]

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Yield `predict` of the networks of 1, 2, ... `n_layers_` layers."""
        yield from self._staged(X, "predict")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2; values of all rows come to the client."""
        y, found, weight = self._computed(y, self.predict(X), sample_weight)
        return float(r2_score(y, found, sample_weight=weight))

    def _like(self, method: str, values: numpy.ndarray) -> numpy.ndarray:
        return numpy.hstack([values, values]) if method == "predict_interval" else without_axis(values)

    def _column_names(self, method: str) -> Any:
        k = self._fitted_array.shape[1]
        if method == "predict_interval":
            return [f"{end}_{i}" for end in ("lower", "upper") for i in range(k)]
        return list(range(k))
