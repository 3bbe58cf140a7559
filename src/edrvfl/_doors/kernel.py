"""LaplaceRidgeClassifier and LaplaceRidgeRegressor: parameters and docstrings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

from scipy.linalg import LinAlgWarning
from sklearn.base import ClassifierMixin, RegressorMixin

from .._fitting.coverage import Evidence, learn_coverage
from .._fitting.inputs import best_kernel, learn_network_inputs
from .._fitting.kernel import fit_kernel_model
from .._fitting.settings import kernel_settings
from .._models.kernel import KernelModel
from .._ridge.kernels import KERNELS
from .._seam.sklearn import Count, Interval, StrOptions
from .answers import Classifies, Predicts
from .base import COMMON, OF_CLASSES, Estimator
from .encoder import ENCODERS, TabularEncoder
from .telling import ACCURACY, R2

# What the parameters that both estimators have may be.
CONSTRAINTS: Mapping[str, list[Any]] = {
    **COMMON,
    "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "regularization": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "n_landmarks": [Count(1), StrOptions({"auto"}), None],
    "kernel": [StrOptions({"loo", *KERNELS})],
    "encoder": [StrOptions({"loo", *ENCODERS}), TabularEncoder, None],
    "input_scaling": [StrOptions({"gradient", "loo"}), None],
}


class LaplaceRidge(Estimator):
    """A ridge with a Laplace kernel."""

    model_: KernelModel

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit a kernel model to rows in memory or in blocks, and store it with what leave-one-out says."""
        with self._read(X, y, sample_weight) as reading:
            data = reading.data
            settings, proof = best_kernel(data, kernel_settings(self), reading.seed)
            learnt = learn_network_inputs(data, settings.inputs, reading.seed, proof)
            done = fit_kernel_model(data, settings, learnt, reading.seed)
            evidence = Evidence(data, done.model, done.stage.P, reading.held, reading.seed)
            self.coverage_ = learn_coverage(evidence, self.coverage_from)
        voter, stage, figures = done.model.voter, done.stage, self._figures
        self.model_ = done.model
        self.kernel_, self.bandwidth_, self.regularization_ = voter.kernel, voter.bandwidth, voter.lam
        self.n_landmarks_ = int(voter.landmarks.shape[0])
        self.proven_ = {"input_scaling": learnt.scaling} if self.input_scaling == "loo" else {}
        for name, figure in figures.of_answer(stage.score, stage.loss).items():
            setattr(self, name, figure)
        if self.verbose:
            print(
                f"[{type(self).__name__}] {voter.kernel} kernel, bandwidth {voter.bandwidth:g}, regularization "
                f"{voter.lam:g}, {self.n_landmarks_} landmarks: {figures.words(stage.score, stage.loss)}"
            )
        if done.fell_back:
            warnings.warn(
                f"The kernel matrix is numerically singular with regularization={self.regularization}; "
                f"{voter.lam:.3g} was taken instead. Increase regularization.",
                LinAlgWarning,
                stacklevel=4,
            )

    @property
    def _model(self) -> KernelModel:
        return self.model_


class LaplaceRidgeClassifier(LaplaceRidge, ClassifierMixin, Classifies):
    """Ridge regression on the classes with a Laplace kernel, chosen and calibrated by leave-one-out.

    It takes arrays and frames as they come, with categories, text and missing values, and answers with
    calibrated probabilities. It is the limit of an infinitely wide random layer, and a good companion of
    :class:`EDRVFLClassifier`: it is best where a row is most like its nearest neighbours.

    The score of a row x is the classes' shares plus a sum over training rows z of coefficients times
    exp(-distance / (h sqrt(d))), with the Euclidean distance from x to z over the d encoded columns. The
    coefficients have a closed form, and so have the scores that each training row gets without itself. These
    choose the bandwidth h and the penalty.

    Parameters
    ----------
    bandwidth : float or "loo", default="loo"
        How far a training row is heard, h, in units of the encoded columns. "loo" chooses among 1/8, 1/4,
        ..., 8, together with the penalty, by the leave-one-out log-loss after one temperature.

    regularization : float or "loo", default="loo"
        Ridge penalty, lambda, above 0. "loo" chooses among 2^-7, 2^-5, ..., 2^5 (times the
        mean weight if all weights are small).

    n_landmarks : int, "auto" or None, default="auto"
        Which training rows the sum goes over. None takes all, in one system whose time grows with the cube
        and whose memory with the square of their number. "auto" does that up to 5,000 rows (on a GPU 20,000,
        if they fit into memory); more rows are dealt into parts of that size at most, and the score is the
        mean of the parts' scores. Of more than 20,000 rows (100,000) only so many are used. A number takes
        so many rows, as many of each class, to approximate the kernel (Nystroem): a small model, but less
        accurate than parts.

    calibration : {"loo", "temperature", "matrix"} or None, default="loo"
        How scores become probabilities, as for :class:`EDRVFLClassifier`. None gives the softmax of the
        scores: its order is good, but it stays far from 0 and 1.

    encoder : {"standard", "robust", "bins"}, TabularEncoder or None, default="bins"
        How the columns of a frame or array become numbers, as for :class:`EDRVFLClassifier`. None takes
        finite numbers as they are; then they should be scaled.

    input_scaling : {"loo", "gradient"} or None, default="loo"
        "gradient" multiplies each encoded column by how steep the scores of a first kernel ridge are along
        it, so that columns that decide nothing do not blur the distances. None leaves the columns as they
        are. "loo" is "gradient" if a kernel ridge is better with the factors, on rows whose labels did not
        shape them, else None; with many rows (see Notes) it is "gradient".

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors and shares. With "balanced", the probabilities are those of classes
        that are equally frequent. A class with weight 0 is left out.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_set` takes its threshold from. "loo": from what each training row gives its own class
        without itself. "split" holds a fifth of the rows back from the fit, drawn by the seed (at least
        39 or half of them, at most 5,000), and takes the threshold from these; then the share of covered rows
        has a guarantee. All classes stay in the fit: of a class whose rows were all drawn one returns, and
        counts as a row that no set covers. None: there are no sets.

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

    Rows that agree by chance, because columns have few values, are no copies: each is left out alone.

    ``sample_weight`` counts rows: weight 2 is the row twice, weight 0 is the row left out. Copies are
    looked for among up to 100,000 rows in memory; of more rows weight 2 is only nearly the row twice. With
    ``coverage_from="split"`` it is not, because a row is held back or not as a whole.

    With more than 1,000 rows the kernel is computed in float32, which changes log-losses in the fifth digit.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import LaplaceRidgeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = LaplaceRidgeClassifier().fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.95
    True
    >>> model.loo_log_loss_ < 0.2
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS, **OF_CLASSES}
    _figures = ACCURACY

    def __init__(
        self,
        *,
        bandwidth: float | str = "loo",
        regularization: float | str = "loo",
        n_landmarks: int | str | None = "auto",
        kernel: str = "laplace",
        calibration: str | None = "loo",
        encoder: str | TabularEncoder | None = "bins",
        input_scaling: str | None = "loo",
        class_weight: Mapping[Any, float] | str | None = None,
        coverage_from: str | None = "loo",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_landmarks = n_landmarks
        self.kernel = kernel
        self.calibration = calibration
        self.encoder = encoder
        self.input_scaling = input_scaling
        self.class_weight = class_weight
        self.coverage_from = coverage_from
        self.random_state = random_state
        self.verbose = verbose


class LaplaceRidgeRegressor(LaplaceRidge, RegressorMixin, Predicts):
    """Ridge regression with a Laplace kernel, chosen by leave-one-out.

    It takes arrays and frames as they come, with categories, text and missing values, and one output or
    several. It is the limit of an infinitely wide random layer, and a good companion of
    :class:`EDRVFLRegressor`: it is best where a row is most like its nearest neighbours.

    The value of a row x is the mean of y plus a sum over training rows z of coefficients times
    exp(-distance / (h sqrt(d))), with the Euclidean distance from x to z over the d encoded columns.

    Parameters
    ----------
    bandwidth : float or "loo", default="loo"
        How far a training row is heard, h, in units of the encoded columns. "loo" chooses among 1/8, 1/4,
        ..., 32, together with the penalty, by the leave-one-out squared error.

    regularization : float or "loo", default="loo"
        Ridge penalty, lambda, above 0. "loo" chooses among 2^-11, 2^-9, ..., 2^5 (times the
        mean weight if all weights are small).

    n_landmarks : int, "auto" or None, default="auto"
        Which training rows the sum goes over, as for :class:`LaplaceRidgeClassifier`: all of up to 8,000
        (on a GPU 20,000), and parts of that size, up to 40,000 rows (100,000), if there are more.

    encoder : {"standard", "robust", "bins"}, TabularEncoder or None, default="bins"
        How the columns of a frame or array become numbers, as for :class:`EDRVFLRegressor`. None takes
        finite numbers as they are; then they should be scaled.

    input_scaling : {"loo", "gradient"} or None, default="loo"
        "gradient" multiplies each encoded column by how steep the values of a first kernel ridge are along
        it, so that columns that decide nothing do not blur the distances. None leaves the columns as they
        are. "loo" uses the factors if they prove themselves, as for :class:`LaplaceRidgeClassifier`.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_interval` takes its quantiles from. "loo": from the training rows' leave-one-out
        errors. "split" holds a fifth of the rows back from the fit, drawn by the seed (at least 39 or half of
        them, at most 5,000), and takes the quantiles from these; then the share of covered rows has a
        guarantee. None: there are no intervals.

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

    model_ : KernelModel
        Everything that decides an answer: the landmarks and their coefficients, and the encoding of the
        columns.

    See Also
    --------
    EDRVFLRegressor : A deep network of random layers.

    Notes
    -----
    Leave-one-out is exact given the encoding, the mean and scale of y, and the landmarks. What
    :class:`LaplaceRidgeClassifier` says of many columns, of weights and of float32 is true here too.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from edrvfl import LaplaceRidgeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LaplaceRidgeRegressor().fit(X, y)
    >>> 0.4 < model.loo_r2_score_ < 0.6
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS}
    _figures = R2

    def __init__(
        self,
        *,
        bandwidth: float | str = "loo",
        regularization: float | str = "loo",
        n_landmarks: int | str | None = "auto",
        kernel: str = "laplace",
        encoder: str | TabularEncoder | None = "bins",
        input_scaling: str | None = "loo",
        coverage_from: str | None = "loo",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_landmarks = n_landmarks
        self.kernel = kernel
        self.encoder = encoder
        self.input_scaling = input_scaling
        self.coverage_from = coverage_from
        self.random_state = random_state
        self.verbose = verbose
