"""EDRVFLPortfolioClassifier and EDRVFLPortfolioRegressor: diverse networks and kernel voters, no search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin, RegressorMixin

from .answers import Classifies, Predicts
from .base import OF_CLASSES, fields_are_parameters
from .classifier import EDRVFLClassifier
from .kernel import KernelRidgeClassifier, KernelRidgeRegressor
from .members import MEMBERS, TREES, VALUE_MEMBERS, VALUE_TREES
from .raced import CONSTRAINTS, Raced
from .regressor import EDRVFLRegressor
from .telling import ACCURACY, R2


@fields_are_parameters
class EDRVFLPortfolioClassifier(Raced, ClassifierMixin, Classifies):
    """Diverse random networks and kernel voters, weighed and calibrated by exact leave-one-out.

    It needs no tuning and no validation rows, takes frames as they come, with categories, dates, text and
    missing values, and answers with calibrated probabilities.

    Its members are settings of :class:`EDRVFLClassifier` and :class:`KernelRidgeClassifier` that differ in
    how they see the inputs, in activation and sparsity, or in their kernel. Of more than two kernel voters
    only the two are fitted that prove best on some of the rows. Leave-one-out chooses each member's penalties
    and depth, its weight in the common answer, and the calibration of that answer.

    Parameters
    ----------
    members : list of (str, estimator) or None, default=None
        Names and settings of the members. None is a table that was found on validation rows;
        ``EDRVFLPortfolioClassifier.default_members()`` returns it as a list to change. The portfolio decides
        seeds, class weights, votes of layers, calibration and which columns hold categories; other values
        of these than the defaults in a member are an error.

        A member may also be any classifier of scikit-learn, a guest. It is judged by its answers out of bag
        if it has them, else by five folds, and keeps its parameters, but for seeds. Guests that take gaps,
        as trees do, see numbers and codes of categories; others see scaled and one-hot columns. They take
        NumPy arrays and frames, and rows in blocks only if all are in memory.

    effort : {"quick", "usual"}, default="usual"
        How much work a fit is. "usual" fits the best two of three kernel voters, and networks; "quick" fits
        the best of three kernel voters and no network, in about a third of the time. With members of your
        own it decides how many kernel voters are fitted, if there are more, and on how many rows these prove
        themselves.

    finalists : int or None, default=None
        How many networks grow beyond their first layer: those of the smallest leave-one-out log-loss. None
        lets all of them grow. A race saves time where members have many layers.

    weights : {"loo", "equal"}, default="loo"
        How much members count. "equal": the networks together count as much as the kernel voters together,
        and as the guests together.
        "loo" minimises the log-loss of the common leave-one-out answer, pulled to these equal weights, and
        drops members of negligible weight.

    calibration : {"loo", "temperature", "matrix"} or None, default="loo"
        How the common answer becomes a probability, as for :class:`EDRVFLClassifier`.

    categorical_features : "from_dtype", None, or array-like of str, int or bool, default="from_dtype"
        Which columns hold categories, as for :class:`TabularEncoder`.

    text_features : "from_dtype", None, or array-like of str, int or bool, default="from_dtype"
        Which columns hold short text, as for :class:`TabularEncoder`.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors, as for :class:`EDRVFLClassifier`.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_set` takes its threshold from. "loo": from what each training row gives its own class
        without itself. "split" holds a fifth of the rows back from the fit, drawn by the seed (at least
        39 or half of them, at most 5,000), and takes the threshold from these; then the share of covered rows
        has a guarantee. All classes stay in the fit: of a class whose rows were all drawn one returns, and
        counts as a row that no set covers. None: there are no sets.

    remember : {"sums", "rows"} or None, default=None
        What the fit keeps, so that the model can change and explain itself afterwards (the guide, "After the
        fit"). It changes no answer. None keeps nothing. "rows": the training
        rows, and of each layer of a network the sums that its read-out is solved from, (n + d + 1)^2 numbers
        for n neurons and d inputs. "sums", if no member is a kernel: the sums, and about 30 bytes for each
        row, a fingerprint among them.

    max_seconds : float or None, default=None
        After so many seconds no new work begins. What was fitted until then is the model, and one layer of
        one network is fitted whatever the time. Such a model depends on the speed of the machine, so it is
        not reproducible.

    n_jobs : int or None, default=None
        Processes over the members, as in joblib, which shares the BLAS threads among them. On a GPU, and
        where there is too little to do, everything stays in one process.

    random_state : int, RandomState instance or None, default=None
        Seed of the members.

    verbose : int or "auto", default="auto"
        "auto" shows a progress bar, in a terminal or a notebook, once a fit has taken five seconds. 0 shows
        nothing, and 1 prints a line for each piece of work. scikit-learn's callbacks are the other way to
        follow a fit: ``EDRVFLPortfolioClassifier().set_callbacks(sklearn.callback.ProgressBar())``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, as they were given to `fit`.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when `X` has string names.

    target_name_ : str
        Name of y. Only if it was a Series with a name.

    members_ : dict of lists
        A table with a row for each member that was fitted, for instance for ``pandas.DataFrame``: ``member``
        (its name), ``weight`` (0 for members that were dropped), ``loo_accuracy`` and ``loo_log_loss`` at
        its best depth, ``n_layers`` and ``n_hidden`` (None for the kernel), ``seconds``, and ``settings``, an
        estimator that is not fitted.

    loo_accuracy_ : float
        Leave-one-out accuracy of the common answer.

    loo_log_loss_ : float
        Leave-one-out log-loss of the common answer after calibration.

    coverage_ : Coverage or None
        What `predict_set` needs beside the probabilities. None if `coverage_from` is.

    memory_ : Memory
        What the fit kept for `update` and `forget`. Only if `remember` is not None.

    portfolio_ : Portfolio
        Everything that decides an answer: the members that are kept, their weights, and the calibration.

    See Also
    --------
    EDRVFLClassifier : A single network, the paper's.
    KernelRidgeClassifier : The kernel voter alone.

    Notes
    -----
    Leave-one-out scores are exact given the features. Where rows are few they are dealt into folds, as for
    :class:`EDRVFLClassifier`: each member learns all that looks at labels once more without those of a fold
    before it answers the rows of the fold, and the weights of members and the calibration that judge a fold
    come from the other folds.

    Of more than 10,000 rows a network's training predictions are nearly its leave-one-out predictions, and
    decide what it weighs.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import EDRVFLPortfolioClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = EDRVFLPortfolioClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.95
    True
    >>> round(sum(model.members_["weight"]), 6)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS, **OF_CLASSES}
    _figures = ACCURACY
    _table, _trees = MEMBERS, TREES
    _kinds = (EDRVFLClassifier, KernelRidgeClassifier)

    _: KW_ONLY
    members: Sequence[tuple[str, Any]] | None = None
    effort: str = "usual"
    finalists: int | None = None
    weights: str = "loo"
    calibration: str | None = "loo"
    categorical_features: Any = "from_dtype"
    text_features: Any = "from_dtype"
    class_weight: Mapping[Any, float] | str | None = None
    coverage_from: str | None = "loo"
    remember: str | None = None
    max_seconds: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int | str = "auto"


@fields_are_parameters
class EDRVFLPortfolioRegressor(Raced, RegressorMixin, Predicts):
    """Diverse random networks and kernel voters for values, weighed by exact leave-one-out.

    It needs no tuning and no validation rows, takes frames as they come, with categories, dates, text and
    missing values, and one output or several.

    Its members are settings of :class:`EDRVFLRegressor` and :class:`KernelRidgeRegressor` that differ in how
    they see the inputs, in activation and sparsity, or in their kernel. Of more than two kernel voters only
    the two are fitted that prove best on some of the rows. Leave-one-out chooses each member's penalties and
    depth, and its weight in the common answer, which is a weighted mean.

    Parameters
    ----------
    members : list of (str, estimator) or None, default=None
        Names and settings of the members. None is a table;
        ``EDRVFLPortfolioRegressor.default_members()`` returns it as a list to change. The portfolio decides
        seeds, votes of layers and which columns hold categories; other values of these than the defaults in
        a member are an error.

        A member may also be any regressor of scikit-learn, a guest. It is judged by its answers out of bag
        if it has them, else by five folds, and keeps its parameters, but for seeds. Guests that take gaps,
        as trees do, see numbers and codes of categories; others see scaled and one-hot columns. They take
        NumPy arrays and frames, and rows in blocks only if all are in memory.

    effort : {"quick", "usual"}, default="usual"
        How much work a fit is. "usual" fits the best two of three kernel voters, and networks; "quick" fits
        the best of three kernel voters and no network, in about a third of the time. With members of your
        own it decides how many kernel voters are fitted, if there are more, and on how many rows these prove
        themselves.

    finalists : int or None, default=None
        How many networks grow beyond their first layer: those of the smallest leave-one-out squared error.
        None lets all of them grow. A race saves time where members have many layers.

    weights : {"loo", "equal"}, default="loo"
        How much members count. "equal": the networks together count as much as the kernel voters together,
        and as the guests together.
        "loo" minimises the squared error of the common leave-one-out answer, pulled to these equal weights,
        and drops members of negligible weight.

    categorical_features : "from_dtype", None, or array-like of str, int or bool, default="from_dtype"
        Which columns hold categories, as for :class:`TabularEncoder`.

    text_features : "from_dtype", None, or array-like of str, int or bool, default="from_dtype"
        Which columns hold short text, as for :class:`TabularEncoder`.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_interval` takes its quantiles from. "loo": from the training rows' leave-one-out
        errors. "split" holds a fifth of the rows back from the fit, drawn by the seed (at least 39 or half of
        them, at most 5,000), and takes the quantiles from these; then the share of covered rows has a
        guarantee. None: there are no intervals.

    remember : {"sums", "rows"} or None, default=None
        What the fit keeps, so that the model can change and explain itself afterwards (the guide, "After the
        fit"). It changes no answer. None keeps nothing. "rows": the training
        rows, and of each layer of a network the sums that its read-out is solved from, (n + d + 1)^2 numbers
        for n neurons and d inputs. "sums", if no member is a kernel: the sums, and about 30 bytes for each
        row, a fingerprint among them.

    max_seconds : float or None, default=None
        After so many seconds no new work begins. What was fitted until then is the model, and one layer of
        one network is fitted whatever the time. Such a model depends on the speed of the machine, so it is
        not reproducible.

    n_jobs : int or None, default=None
        Processes over the members, as in joblib, which shares the BLAS threads among them. On a GPU, and
        where there is too little to do, everything stays in one process.

    random_state : int, RandomState instance or None, default=None
        Seed of the members.

    verbose : int or "auto", default="auto"
        "auto" shows a progress bar, in a terminal or a notebook, once a fit has taken five seconds. 0 shows
        nothing, and 1 prints a line for each piece of work. scikit-learn's callbacks are the other way to
        follow a fit: ``EDRVFLPortfolioRegressor().set_callbacks(sklearn.callback.ProgressBar())``.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when `X` has string names.

    target_name_ : str
        Name of y. Only if it was a Series with a name.

    members_ : dict of lists
        A table with a row for each member that was fitted, for instance for ``pandas.DataFrame``: ``member``
        (its name), ``weight`` (0 for members that were dropped), ``loo_r2_score`` at its best depth,
        ``n_layers`` and ``n_hidden`` (None for the kernel), ``seconds``, and ``settings``, an estimator that
        is not fitted.

    loo_r2_score_ : float
        Leave-one-out R^2 of the common answer; the mean over the outputs if there are several.

    coverage_ : Coverage or None
        What `predict_interval` needs beside the predictions: sorted errors, and where the widths of intervals
        vary, a small network for the spread. None if `coverage_from` is.

    memory_ : Memory
        What the fit kept for `update` and `forget`. Only if `remember` is not None.

    portfolio_ : Portfolio
        Everything that decides an answer: the members that are kept, and their weights.

    See Also
    --------
    EDRVFLRegressor : A single network.
    KernelRidgeRegressor : The kernel voter alone.

    Notes
    -----
    Leave-one-out values are exact given the features. Where rows are few they are dealt into folds, as for
    :class:`EDRVFLPortfolioClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import EDRVFLPortfolioRegressor
    >>> X, y = make_friedman1(400, noise=1.0, random_state=0)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = EDRVFLPortfolioRegressor(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.9
    True
    >>> round(sum(model.members_["weight"]), 6)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS}
    _figures = R2
    _table, _trees = VALUE_MEMBERS, VALUE_TREES
    _kinds = (EDRVFLRegressor, KernelRidgeRegressor)

    _: KW_ONLY
    members: Sequence[tuple[str, Any]] | None = None
    effort: str = "usual"
    finalists: int | None = None
    weights: str = "loo"
    categorical_features: Any = "from_dtype"
    text_features: Any = "from_dtype"
    coverage_from: str | None = "loo"
    remember: str | None = None
    max_seconds: float | None = None
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int | str = "auto"
