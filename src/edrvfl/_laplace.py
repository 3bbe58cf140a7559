"""LaplaceRidgeClassifier and LaplaceRidgeRegressor: parameters, fit, answers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

from scipy.linalg import LinAlgWarning
from sklearn.utils import check_random_state

from ._answers.follow import CALIBRATIONS
from ._arrays import Array, ignore_overflow
from ._encoder import ENCODERS, TabularEncoder, as_encoder, learn_network_inputs
from ._history import ACCURACY, R2, Figures
from ._inputs.judged import judge_some
from ._inputs.table import Columns
from ._kernel.voter import kernel_answers
from ._members.voters import Data, Member, fit_voter
from ._shell import LARGEST_SEED, ClassifierShell, RegressorShell, Shell, unchanged_on_failure
from ._sklearn import Count, Interval, StrOptions, _fit_context

# What the parameters that both estimators have may be.
CONSTRAINTS: Mapping[str, list[Any]] = {
    "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "regularization": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "n_landmarks": [Count(1), StrOptions({"auto"}), None],
    "encoder": [StrOptions(set(ENCODERS)), TabularEncoder, None],
    "input_scaling": [StrOptions({"gradient"}), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class LaplaceRidge(Shell):
    """What LaplaceRidgeClassifier and LaplaceRidgeRegressor share: their fit."""

    _figures: Figures

    def _validate_params(self) -> None:
        super()._validate_params()
        if isinstance(self.encoder, TabularEncoder):
            self.encoder._validate_params()

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit the voter, and store it with what leave-one-out says about it."""
        table, y, columns = self._check_training_rows(X, y, as_encoder(self.encoder))
        rows = self._prepare_rows(table, y, sample_weight)
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        with ignore_overflow():
            inputs = learn_network_inputs(rows, self, columns, seed)
        data = Data(rows, columns, judge_some(rows.targets))
        done = fit_voter(data, Member("kernel", self, inputs, seed), self.calibration)
        self.model_, voter, stage = done.voter, done.voter.voter, done.chosen
        self.bandwidth_, self.regularization_ = voter.bandwidth, voter.lam
        self.n_landmarks_ = int(voter.landmarks.shape[0])
        for name, figure in self._figures.of_answer(stage.score, stage.loss).items():
            setattr(self, name, figure)
        if self.verbose:
            print(
                f"[{type(self).__name__}] bandwidth {voter.bandwidth:g}, regularization {voter.lam:g}, "
                f"{self.n_landmarks_} landmarks: {self._figures.words(stage.score, stage.loss)}"
            )
        if done.fell_back:
            warnings.warn(
                f"The kernel matrix is numerically singular with regularization={self.regularization}; "
                f"{voter.lam:.3g} was taken instead. Increase regularization.",
                LinAlgWarning,
                stacklevel=4,
            )

    @property
    def _fitted_array(self) -> Array:
        return self.model_.voter.prior

    @property
    def _columns(self) -> Columns | None:
        return self.model_.columns

    def _answers(self, X: Any, method: str) -> Array:
        X = self._check_new_rows(X, method)  # first: it tells that nothing was fitted
        return kernel_answers(self.model_, X)


class LaplaceRidgeClassifier(LaplaceRidge, ClassifierShell):
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

    input_scaling : "gradient" or None, default="gradient"
        "gradient" multiplies each encoded column by how steep the scores of a first kernel ridge are along
        it, so that columns that decide nothing do not blur the distances. None leaves the columns as they
        are.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors and shares. With "balanced", the probabilities are those of classes
        that are equally frequent. A class with weight 0 is left out.

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

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when `X` has string names.

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

    model_ : KernelModel
        Everything that decides an answer: the landmarks and their coefficients, the encoding of the columns,
        the calibration, and the classes.

    See Also
    --------
    EDRVFLClassifier : A deep network of random layers.

    Notes
    -----
    Leave-one-out is exact given the encoding, the classes' shares and the landmarks: the scores are those of
    the coefficients fitted without the row (without one unit of its weight).

    ``sample_weight`` counts rows: weight 2 is the row twice, weight 0 is the row left out. Of more than 1,000
    rows some look for bandwidth and penalty, and of more than 5,000 there are parts: then weight 2 is only
    nearly the row twice.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "calibration": [StrOptions(set(CALIBRATIONS)), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _figures = ACCURACY

    def __init__(
        self,
        *,
        bandwidth: float | str = "loo",
        regularization: float | str = "loo",
        n_landmarks: int | str | None = "auto",
        calibration: str | None = "loo",
        encoder: str | TabularEncoder | None = "bins",
        input_scaling: str | None = "gradient",
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_landmarks = n_landmarks
        self.calibration = calibration
        self.encoder = encoder
        self.input_scaling = input_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LaplaceRidgeClassifier:
        """Fit the coefficients.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: a NumPy array, a pandas, polars or pyarrow table, or, with scikit-learn's array API
            dispatch on, a torch or CuPy array. Columns may hold numbers, booleans, categories or text, and
            missing values.

        y : array-like of shape (n_samples,)
            Labels of at least two classes: strings, integers or booleans.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None gives every row the weight 1.

        Returns
        -------
        self : LaplaceRidgeClassifier
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight)
        return self

    @property
    def classes_(self) -> Array:
        """The labels, as they came in `fit`."""
        return self.model_.classes


class LaplaceRidgeRegressor(LaplaceRidge, RegressorShell):
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

    input_scaling : "gradient" or None, default="gradient"
        "gradient" multiplies each encoded column by how steep the values of a first kernel ridge are along
        it, so that columns that decide nothing do not blur the distances. None leaves the columns as they
        are.

    random_state : int, RandomState instance or None, default=None
        Decides which of many rows are used, and which of them look for bandwidth and penalty. The order of
        the rows matters only where leave-one-out judges a part of them, of more than 3,000 rows.

    verbose : int, default=0
        1 prints what was chosen, with the leave-one-out R^2.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when `X` has string names.

    bandwidth_ : float
        The bandwidth, as given or as chosen.

    regularization_ : float
        The penalty, as given or as chosen. It is larger than the given one where the system was singular.

    n_landmarks_ : int
        How many training rows the sum goes over.

    loo_r2_score_ : float
        Leave-one-out R^2, by the rows' weights; the mean over the outputs if there are several.

    model_ : KernelModel
        Everything that decides an answer: the landmarks and their coefficients, and the encoding of the
        columns.

    See Also
    --------
    EDRVFLRegressor : A deep network of random layers.

    Notes
    -----
    Leave-one-out is exact given the encoding, the mean and scale of y, and the landmarks. What
    :class:`LaplaceRidgeClassifier` says of weights and of float32 is true here too.

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
        encoder: str | TabularEncoder | None = "bins",
        input_scaling: str | None = "gradient",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.regularization = regularization
        self.n_landmarks = n_landmarks
        self.encoder = encoder
        self.input_scaling = input_scaling
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LaplaceRidgeRegressor:
        """Fit the coefficients.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: a NumPy array, a pandas, polars or pyarrow table, or, with scikit-learn's array API
            dispatch on, a torch or CuPy array. Columns may hold numbers, booleans, categories or text, and
            missing values.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Finite numbers.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None gives every row the weight 1.

        Returns
        -------
        self : LaplaceRidgeRegressor
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight)
        return self
