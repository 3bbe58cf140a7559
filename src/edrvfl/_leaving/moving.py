"""What leaves of a fitted estimator: its record, and its arrays in NumPy."""

from __future__ import annotations

from typing import Any, TypeVar

from .._inputs.rows import to_host
from .._seam.sklearn import _estimator_with_converted_arrays

Estimator = TypeVar("Estimator")


def record_of(model: Any) -> Any:
    """Return the record that decides the answers of a fitted estimator; None if it has none."""
    return getattr(model, getattr(model, "_record", ""), None)


def to_numpy(model: Estimator) -> Estimator:
    """Copy a fitted estimator with every array in NumPy, whatever device it was fitted on.

    Parameters
    ----------
    model : estimator
        A network, a kernel voter, a portfolio, a search or a :class:`TabularEncoder` of this library, or
        a scikit-learn estimator that holds some.

    Returns
    -------
    copy : estimator
        The same model, for NumPy arrays and frames.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, to_numpy
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EDRVFLClassifier(n_hidden=20, random_state=0).fit(X, y)
    >>> bool((to_numpy(model).predict(X) == model.predict(X)).all())
    True
    """
    copy: Estimator = _estimator_with_converted_arrays(model, to_host)
    return copy
