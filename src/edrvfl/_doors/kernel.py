"""KernelRidgeClassifier and KernelRidgeRegressor: parameters and docstrings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin, RegressorMixin

from .answers import Classifies, Predicts
from .base import OF_CLASSES, fields_are_parameters
from .encoder import TabularEncoder
from .ridge import CONSTRAINTS, KernelRidge
from .telling import ACCURACY, R2


@fields_are_parameters
class KernelRidgeClassifier(KernelRidge, ClassifierMixin, Classifies):
    """Kernel ridge regression on the classes, chosen and calibrated by leave-one-out.

    It takes arrays and frames as they come, with categories, dates, text and missing values, and
    answers with calibrated probabilities. With the Laplace kernel it is the limit of an infinitely wide
    random layer, and a good companion of :class:`EDRVFLClassifier`: it is best where a row is most like its
    nearest neighbours.

    The score of a row x is the classes' shares plus a sum over training rows z of coefficients times
    K(x, z), which is 1 where the encoded rows agree and falls towards 0 as they are further apart. The
    coefficients have a closed form, and so have the scores that each training row gets without itself. These
    choose the bandwidth h and the penalty, and if asked the kernel.

    Parameters
    ----------
    kernel : {"laplace", "matern", "product", "additive", "loo"}, default="laplace"
        How alike two rows of d encoded columns are. "laplace": exp(-r / (h sqrt(d))), r being their Euclidean
        distance. "matern", smoother: (1 + q) exp(-q) with q = sqrt(3) r / (h sqrt(d)). "product": the product
        over the columns of exp(-a / (h d)), where a is by how much the rows differ in the column. "additive":
        the square of the mean over the columns of exp(-a / h). The last two compare column by column, which
        suits effects that have thresholds. "loo" takes the one of the four whose ridge has the smallest
        log-loss, on up to 640 rows whose labels did not shape it.

    bandwidth : float or "loo", default="loo"
        How far a training row is heard, h, in units of the encoded columns. "loo" chooses among 1/8, 1/4,
        ..., 8 (for kernels other than "laplace" 64), together with the penalty, by the leave-one-out log-loss
        after one temperature.

    regularization : float or "loo", default="loo"
        Ridge penalty, lambda, above 0. "loo" chooses among 2^-7 (for kernels other than "laplace" 2^-15),
        ..., 2^3, 2^5 (times the mean weight if all weights are small).

    n_landmarks : int, "auto" or None, default="auto"
        Which training rows the sum goes over. None takes all, in one system whose time grows with the cube
        and whose memory with the square of their number. "auto" does that up to 5,000 rows (on a GPU 20,000,
        if they fit into memory). More rows are one system that is solved by iteration, until the targets are
        met up to 1 % of their size; judged rows are then left out in groups (see Notes). Of more than 20,000
        rows only so many are taken. Where the square of the rows does not fit into two fifths of the free
        memory, with more than 40 classes, where the iteration comes to no end, and on a GPU, rows are dealt
        into parts of 5,000 (20,000) at most, and the score is the mean of the parts' scores; of more than
        20,000 rows (100,000) parts take only so many. A number takes so many rows, as many of each class, to
        approximate the kernel (Nystroem): a small model, but less accurate than parts.

    calibration : {"loo", "temperature", "matrix"} or None, default="loo"
        How scores become probabilities, as for :class:`EDRVFLClassifier`. None gives the softmax of the
        scores: its order is good, but it stays far from 0 and 1.

    encoder : {"standard", "robust", "bins", "ranks", "loo"}, TabularEncoder or None, default="bins"
        How the columns of a frame or array become numbers, as for :class:`EDRVFLClassifier`. "ranks" gives
        each number its place among the training rows. "loo" takes what suits the kernel: "bins" for
        "laplace", "standard" for "matern", "ranks" for "product" and "additive". None takes finite numbers as
        they are; then they should be scaled.

    input_scaling : {"loo", "gradient"} or None, default="loo"
        "gradient" multiplies each encoded column by how steep the scores of a first kernel ridge are along
        it, so that columns that decide nothing do not blur the distances. None leaves the columns as they
        are. "loo" is "gradient" if a kernel ridge is better with the factors, on rows whose labels did not
        shape them, else None; with many rows (see Notes) "laplace" uses them. Other kernels, and the
        kernel "loo", multiply up to three times, as often as proves best on up to 640 rows.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors and shares. With "balanced", the probabilities are those of classes
        that are equally frequent. A class with weight 0 is left out.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_set` takes its threshold from. "loo": from what each training row gives its own class
        without itself. "split" holds a fifth of the rows back from the fit, drawn by the seed (at least
        39 or half of them, at most 5,000), and takes the threshold from these; then the share of covered rows
        has a guarantee. All classes stay in the fit: of a class whose rows were all drawn one returns, and
        counts as a row that no set covers. None: there are no sets.

    remember : {"rows"} or None, default=None
        What the fit keeps, so that the model can change and explain itself afterwards (the guide, "After the
        fit"). It changes no answer. None keeps nothing. "rows": the training rows.

    random_state : int, RandomState instance or None, default=None
        Decides which of many rows are used, and which of them look for bandwidth and penalty. The order of
        the rows matters only where leave-one-out judges a part of them, of more than 3,000 rows.

    verbose : int, default=0
        1 prints what was chosen, with the leave-one-out accuracy and log-loss.

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

    kernel_ : str
        The kernel, as given or as chosen.

    bandwidth_ : float
        The bandwidth, as given or as chosen.

    regularization_ : float
        The penalty, as given or as chosen. It is larger than the given one where the system was singular.

    n_landmarks_ : int
        How many training rows the sum goes over.

    loo_accuracy_ : float
        Leave-one-out accuracy after calibration, by the rows' weights.

    loo_log_loss_ : float
        Leave-one-out log-loss after calibration (after a temperature if `calibration` is None).

    proven_ : dict
        What became of `input_scaling` if it was "loo".

    coverage_ : Coverage or None
        What `predict_set` needs beside the probabilities. None if `coverage_from` is.

    memory_ : Memory
        What the fit kept for `update` and `forget`. Only if `remember` is not None.

    model_ : KernelModel
        Everything that decides an answer: the landmarks and their coefficients, the encoding of the columns,
        the calibration, and the classes.

    See Also
    --------
    EDRVFLClassifier : A deep network of random layers.

    Notes
    -----
    Leave-one-out is exact given the encoding, the classes' shares and the landmarks: the scores are those of
    the coefficients fitted without the row and its exact copies. Where rows are few they are dealt into
    folds, as for :class:`EDRVFLClassifier`: factors, bandwidth and penalty are learnt once more without the
    labels of a fold before the ridge answers its rows.

    Of a system that is solved by iteration judged rows are left out in groups, with their copies: each group
    is answered by a system without it. A group has a fifth of the rows at most, with few classes a twentieth.
    The scores are those of a fit to slightly fewer rows, as near to it as the targets are met. With up to 17
    classes the penalty is tried again on one such group.

    Rows that agree by chance, because columns have few values, are no copies: each is left out alone.

    ``sample_weight`` counts rows: weight 2 is the row twice, weight 0 is the row left out. Copies are
    looked for among up to 100,000 rows in memory; of more rows weight 2 is only nearly the row twice. With
    ``coverage_from="split"`` it is not, because a row is held back or not as a whole.

    With more than 1,000 rows the kernel is computed in float32, which changes log-losses in the fifth digit.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import KernelRidgeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = KernelRidgeClassifier().fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.95
    True
    >>> model.loo_log_loss_ < 0.2
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS, **OF_CLASSES}
    _figures = ACCURACY

    _: KW_ONLY
    kernel: str = "laplace"
    bandwidth: float | str = "loo"
    regularization: float | str = "loo"
    n_landmarks: int | str | None = "auto"
    calibration: str | None = "loo"
    encoder: str | TabularEncoder | None = "bins"
    input_scaling: str | None = "loo"
    class_weight: Mapping[Any, float] | str | None = None
    coverage_from: str | None = "loo"
    remember: str | None = None
    random_state: Any = None
    verbose: int = 0


@fields_are_parameters
class KernelRidgeRegressor(KernelRidge, RegressorMixin, Predicts):
    """Kernel ridge regression, chosen by leave-one-out.

    It takes arrays and frames as they come, with categories, dates, text and missing values, and one
    output or several. With the Laplace kernel it is the limit of an infinitely wide random layer, and a good
    companion of :class:`EDRVFLRegressor`: it is best where a row is most like its nearest neighbours.

    The value of a row x is the mean of y plus a sum over training rows z of coefficients times K(x, z).

    Parameters
    ----------
    kernel : {"laplace", "matern", "product", "additive", "loo"}, default="laplace"
        How alike two rows are, as for :class:`KernelRidgeClassifier`. "matern" is for smooth targets. "loo"
        takes the one of the four whose ridge has the smallest squared error.

    bandwidth : float or "loo", default="loo"
        How far a training row is heard, h, in units of the encoded columns. "loo" chooses among 1/8, 1/4,
        ..., 32 (for kernels other than "laplace" 64), together with the penalty, by the leave-one-out squared
        error.

    regularization : float or "loo", default="loo"
        Ridge penalty, lambda, above 0. "loo" chooses among 2^-11 (for kernels other than "laplace" 2^-15),
        ..., 2^3, 2^5 (times the mean weight if all weights are small).

    n_landmarks : int, "auto" or None, default="auto"
        Which training rows the sum goes over, as for :class:`KernelRidgeClassifier`: those of an exact system
        of up to 8,000 rows (on a GPU 20,000), of an iterated one of up to 20,000, which meets the targets up
        to 0.1 % of their size, or of parts of 8,000, up to 40,000 rows, of more rows or where memory is too
        small (on a GPU of parts of 20,000, up to 100,000 rows).

    encoder : {"standard", "robust", "bins", "ranks", "loo"}, TabularEncoder or None, default="bins"
        How the columns of a frame or array become numbers, as for :class:`KernelRidgeClassifier`: "loo" takes
        what suits the kernel. None takes finite numbers as they are; then they should be scaled.

    input_scaling : {"loo", "gradient"} or None, default="loo"
        "gradient" multiplies each encoded column by how steep the values of a first kernel ridge are along
        it, so that columns that decide nothing do not blur the distances. None leaves the columns as they
        are. "loo" uses the factors if they prove themselves, and with kernels other than "laplace" up to
        three times, as for :class:`KernelRidgeClassifier`.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_interval` takes its quantiles from. "loo": from the training rows' leave-one-out
        errors. "split" holds a fifth of the rows back from the fit, drawn by the seed (at least 39 or half of
        them, at most 5,000), and takes the quantiles from these; then the share of covered rows has a
        guarantee. None: there are no intervals.

    remember : {"rows"} or None, default=None
        What the fit keeps, so that the model can change and explain itself afterwards (the guide, "After the
        fit"). It changes no answer. None keeps nothing. "rows": the training rows.

    random_state : int, RandomState instance or None, default=None
        Decides which of many rows are used, and which of them look for bandwidth and penalty. The order of
        the rows matters only where leave-one-out judges a part of them, of more than 3,000 rows.

    verbose : int, default=0
        1 prints what was chosen, with the leave-one-out R^2.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when `X` has string names.

    target_name_ : str
        Name of y. Only if it was a Series with a name.

    kernel_ : str
        The kernel, as given or as chosen.

    bandwidth_ : float
        The bandwidth, as given or as chosen.

    regularization_ : float
        The penalty, as given or as chosen. It is larger than the given one where the system was singular.

    n_landmarks_ : int
        How many training rows the sum goes over.

    loo_r2_score_ : float
        Leave-one-out R^2, by the rows' weights; the mean over the outputs if there are several.

    proven_ : dict
        What became of `input_scaling` if it was "loo".

    coverage_ : Coverage or None
        What `predict_interval` needs beside the predictions: sorted errors, and where the widths of intervals
        vary, a small network for the spread. None if `coverage_from` is.

    memory_ : Memory
        What the fit kept for `update` and `forget`. Only if `remember` is not None.

    model_ : KernelModel
        Everything that decides an answer: the landmarks and their coefficients, and the encoding of the
        columns.

    See Also
    --------
    EDRVFLRegressor : A deep network of random layers.

    Notes
    -----
    Leave-one-out is exact given the encoding, the mean and scale of y, and the landmarks. What
    :class:`KernelRidgeClassifier` says of iteration, of weights and of float32 is true here too.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from edrvfl import KernelRidgeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelRidgeRegressor().fit(X, y)
    >>> 0.4 < model.loo_r2_score_ < 0.6
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS}
    _figures = R2

    _: KW_ONLY
    kernel: str = "laplace"
    bandwidth: float | str = "loo"
    regularization: float | str = "loo"
    n_landmarks: int | str | None = "auto"
    encoder: str | TabularEncoder | None = "bins"
    input_scaling: str | None = "loo"
    coverage_from: str | None = "loo"
    remember: str | None = None
    random_state: Any = None
    verbose: int = 0
