"""feature_importance: how much a model's answers depend on each column."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import Bunch, check_array, check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted

from .._inputs.rows import to_host
from .._seam.arrays import array_namespace, from_numpy, take_entries

ROUNDING = 64  # answers that deviate by less than so many units in the last place are the same


def feature_importance(estimator: Any, X: Any, *, n_repeats: int = 5, random_state: Any = None) -> Bunch:
    """Tell how much the answers of a fitted model change when a column is taken from other rows.

    A row keeps all its values but one, which it takes from another row. Half the mean squared change of the
    answer, divided by the variance of the answers over the rows, is the importance of the column: 0 if the
    model ignores it, 1 if it decides alone. Importances of columns that work together add up to more than 1,
    those of columns that say the same to less.

    Answers are probabilities, whose squared changes and variances are added over the classes; or values,
    where the importance is the mean over the outputs that vary, each with its own variance.

    No labels are needed. It is the same for numbers, categories, text and gaps, because a column moves as a
    whole, before it is encoded.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier with ``predict_proba``, or a fitted regressor: one of this library, or any other
        that follows scikit-learn, for instance a pipeline.

    X : array-like of shape (n_samples, n_features)
        Rows with the columns of `fit`, at least two. Some hundred are enough, and they need not be those
        of the fit.

    n_repeats : int, default=5
        From how many other rows each row takes values, one after another; at most n_samples - 1. Then all
        pairs of rows are used, and nothing is random.

    random_state : int, RandomState instance or None, default=None
        Decides which rows give their values to which.

    Returns
    -------
    result : :class:`~sklearn.utils.Bunch`
        As from scikit-learn's ``permutation_importance``: ``importances_mean`` and ``importances_std`` of
        shape (n_features,), ``importances`` of shape (n_features, n_repeats); and ``feature_names``, a list.

    See Also
    --------
    ImportanceDisplay : Draws it.

    Notes
    -----
    This is the total-effect index of Sobol' where columns are independent. Columns that are not are torn
    apart, as by every permutation: the model answers for rows that cannot be, and two columns that say the
    same share what they are worth.

    An importance says what the model uses, not whether that is right: scikit-learn's
    ``permutation_importance`` says what a column is worth for a score, and needs labels.

    The model is asked n_features * n_repeats + 1 times.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from edrvfl import EDRVFLRegressor, feature_importance
    >>> X, y = make_friedman1(300, random_state=0)  # five columns matter, five do not
    >>> model = EDRVFLRegressor(n_hidden=100, random_state=0).fit(X, y)
    >>> importances = feature_importance(model, X, random_state=0).importances_mean
    >>> bool(importances[:5].min() > importances[5:].max())
    True
    """
    ask = _method(estimator)
    check_scalar(n_repeats, "n_repeats", Integral, min_val=1)
    rows = _as_rows(X)
    m, d = rows.shape
    if m < 2:
        raise ValueError(f"feature_importance takes values from other rows, but X has {m} row(s).")
    state = check_random_state(random_state)
    order = state.permutation(m)
    shifts = 1 + state.permutation(m - 1)[:n_repeats]  # different ones, so that no pair counts twice
    before = _answers(ask, X)
    variance = _variance(before)
    found = numpy.empty((d, len(shifts)))
    for r, shift in enumerate(shifts):
        other = numpy.empty(m, dtype=numpy.int64)
        other[order] = numpy.roll(order, -shift)
        for j, exchanged in enumerate(_exchanged(rows, other)):
            change = ((before - _answers(ask, exchanged)) ** 2).mean(axis=0, dtype=float) / 2
            found[j, r] = _share(change, variance, by_output=is_regressor(estimator))
    names = getattr(rows, "columns", None)  # of a frame
    names = names or getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(d)])
    return Bunch(
        importances_mean=found.mean(axis=1),
        importances_std=found.std(axis=1),
        importances=found,
        feature_names=[str(name) for name in names],
    )


def _method(estimator: Any) -> Any:
    """Return the method that gives the answers."""
    check_is_fitted(estimator)
    if is_classifier(estimator) and hasattr(estimator, "predict_proba"):
        return estimator.predict_proba
    if is_regressor(estimator):
        return estimator.predict
    raise TypeError(
        "feature_importance takes a regressor, or a classifier with predict_proba, but got "
        f"{type(estimator).__name__}."
    )


def _answers(ask: Any, X: Any) -> numpy.ndarray:
    """Return the answers for rows in NumPy, a column for each class or output."""
    answers = ask(X)
    if isinstance(answers, list):
        raise TypeError(
            f"feature_importance takes a classifier of one output, but this one has {len(answers)}: ask it "
            "about the classifier of each output."
        )
    answers = to_host(answers)
    answers = answers if answers.dtype.kind == "f" else answers.astype(float)
    return answers.reshape(answers.shape[0], -1)


def _variance(answers: numpy.ndarray) -> numpy.ndarray:
    """Return the variance of each output over the rows, 0 if they differ by rounding alone."""
    variance = answers.var(axis=0, ddof=1, dtype=float)
    least = ROUNDING * numpy.finfo(answers.dtype).eps * numpy.abs(answers).max(axis=0)
    return numpy.where(variance > least.astype(float) ** 2, variance, 0.0)


def _share(change: numpy.ndarray, variance: numpy.ndarray, by_output: bool) -> float:
    """E |f(x) - f(x')|^2 / (2 Var f), x' being x with one value of another row.

    Outputs have units of their own, so each is compared with its own variance. The probabilities of the
    classes have the same, and are added. Nothing decides an output that does not vary.
    """
    if not by_output:
        change, variance = change.sum(keepdims=True), variance.sum(keepdims=True)
    varies = variance > 0
    return float((change[varies] / variance[varies]).mean()) if varies.any() else 0.0


def _as_rows(X: Any) -> Any:
    """Return a frame of pandas, polars or pyarrow as one of narwhals, and other rows as an array."""
    if not hasattr(X, "__dlpack__"):
        frame = narwhals.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, narwhals.DataFrame):
            return frame
    if not hasattr(X, "__dlpack__") or X.ndim != 2:  # lists, in which numbers may stand beside text
        return check_array(X, dtype=object, ensure_all_finite=False)
    return X


def _exchanged(rows: Any, other: numpy.ndarray) -> Iterator[Any]:
    """Yield the rows with one column after another taken from the other rows."""
    if isinstance(rows, narwhals.DataFrame):
        for name in rows.columns:
            # by position: narwhals gives the moved values the index of the frame
            moved = rows.get_column(name)[other]
            yield rows.with_columns(moved.alias(name)).to_native()
        return
    xp = array_namespace(rows)
    other = from_numpy(other, rows, xp.int64)
    copy = xp.asarray(rows, copy=True)
    for j in range(rows.shape[1]):
        copy[:, j] = take_entries(rows[:, j], other)
        yield copy
        copy[:, j] = rows[:, j]
