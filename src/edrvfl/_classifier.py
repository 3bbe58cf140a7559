"""The scikit-learn estimator: parameters, validation, fit, predict; a thin shell around the network."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackContext, CallbackSupportMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _network
from ._activations import ACTIVATIONS
from ._arrays import Array, array_namespace, device, from_numpy, row_blocks
from ._ensemble import RULES, combine, combine_staged
from ._sklearn import (
    Interval,
    StrOptions,
    _check_sample_weight,
    _convert_to_numpy,
    _estimator_with_converted_arrays,
    _fit_context,
    check_same_namespace,
    get_namespace,
    get_namespace_and_device,
    move_to,
    supported_float_dtypes,
)

Estimator = TypeVar("Estimator")


def _predicts(estimator: PredictsByProbabilities) -> bool:
    return estimator._can_predict()


class PredictsByProbabilities(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """What both estimators do alike: checks of the input, and predictions from `_probabilities`."""

    @property
    def _fitted_array(self) -> Array:
        raise NotImplementedError

    def _probabilities(self, X: Any, method: str) -> Array:
        raise NotImplementedError

    def _can_predict(self) -> bool:
        return True

    def _validated(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Rows and labels as arrays to fit on."""
        xp, _, where = get_namespace_and_device(X)
        dtypes = [t for t in supported_float_dtypes(xp, where) if t in (xp.float64, xp.float32)]
        with naming_columns(self, X):
            X, y = validate_data(self, X, y, dtype=dtypes)
        check_classification_targets(y)
        return X, y

    def _checked(self, X: Any, method: str) -> Array:
        """X as an array with the columns, the namespace and the precision of the fit."""
        check_is_fitted(self)
        check_same_namespace(X, self, attribute="_fitted_array", method=method)
        with naming_columns(self, X):
            return validate_data(self, X, reset=False, dtype=[self._fitted_array.dtype])

    def _labels(self, decision: Array) -> Array:
        xp = array_namespace(decision)
        binary = decision.ndim == 1
        codes = xp.astype(decision > 0, xp.int64) if binary else xp.argmax(decision, axis=-1)
        if isinstance(self.classes_, numpy.ndarray):
            return self.classes_[to_host(codes)]
        return xp.take(self.classes_, codes, axis=0)

    @available_if(_predicts)
    def predict(self, X: Any) -> Array:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        y : array of shape (n_samples,)
            Labels as they came in `fit`.
        """
        return self._labels(log_odds(self._probabilities(X, "predict")))

    @available_if(_predicts)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of each row: what the ensemble says.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : array of shape (n_samples, n_classes)
            In the order of `classes_`; each row sums to 1.
        """
        return self._probabilities(X, "predict_proba")

    @available_if(_predicts)
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : array of shape (n_samples, n_classes)
            In the order of `classes_`; minus infinity where no layer votes for a class.
        """
        P = self._probabilities(X, "predict_log_proba")
        with numpy.errstate(divide="ignore"):
            return array_namespace(P).log(P)

    @available_if(_predicts)
    def decision_function(self, X: Any) -> Array:
        """Logarithm of the probabilities; for two classes the log-odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            Always finite. `predict` takes the largest, or for two classes the sign.
        """
        return log_odds(self._probabilities(X, "decision_function"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags


class EDRVFLClassifier(PredictsByProbabilities):
    """Ensemble deep random vector functional link network, with weighting and pruning.

    Hidden layers are random and never trained. Each layer re-normalises the random projection of
    [previous hidden features, inputs], applies an activation function, and has a ridge read-out of
    its own, in closed form; the layers vote. Samples that a layer gets wrong weigh more in the next
    layer, and neurons that its read-out hardly uses do not feed the next layer.

    The methods of the paper are values of these parameters; :func:`edrvfl.variant` knows their names.

    Parameters
    ----------
    n_layers : int, default=10
        Hidden layers, l_max in the paper. One fit serves every smaller depth: see ``staged_predict``.

    n_hidden : int, default=512
        Neurons in each hidden layer, n.

    regularization : float or "loo", default=64.0
        Ridge penalty of every read-out, lambda, on the squared output weights. 0 gives the
        Moore-Penrose solution. "loo" lets every layer choose among 25 powers of two, 2^-12 to 2^12, by
        its leave-one-out accuracy; of equals it takes the larger.

    activation : {"relu", "selu", "sigmoid", "tanh", "sin", "radbas", "swish"}, default="relu"
        Activation function g of the hidden neurons.

    renormalize : bool, default=True
        Whether every neuron's input is brought to mean 0 and variance 1 over the training rows (batch
        normalisation). False is the original edRVFL, in which `norm_scale` and `norm_shift` do nothing.

    norm_scale : float, default=1.0
        Factor after re-normalisation, gamma. 1 is neutral.

    norm_shift : float, default=0.0
        Shift after re-normalisation, alpha. 0 is neutral.

    correct_weight : float, default=0.8
        Weight in the next layer of the samples that this layer classifies correctly, omega_r, in
        (0, 1]; the others get what keeps the sum. 1 is neutral: no weighting.

    weight_from : {"train", "loo"}, default="train"
        Whose predictions decide which samples are classified correctly: the layer's own on its training
        rows, as in the paper, or its exact leave-one-out predictions. The latter act also where a layer
        learns its training rows by heart.

    prune_rate : float, default=0.2
        Share of hidden neurons, those of least importance, that do not feed the next layer, p, in
        [0, 1). 0 is neutral: no pruning.

    ensemble : {"softmax", "mean", "vote"}, default="softmax"
        How layers become one answer: the mean of the layers' softmax, the softmax of their mean score,
        or the share of layers that vote for a class.

    standardize : bool, default=True
        Whether inputs are brought to mean 0 and variance 1 with the training rows' statistics.
        Constant columns become 0.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors in every read-out. They do not count rows as `sample_weight` does:
        the statistics of re-normalisation and the weighting of Eq. 12-14 do not see them. A class with
        weight 0 is left out.

    random_state : int, RandomState instance or None, default=None
        Seed of the random layers. The same seed gives the same network with every array library.

    verbose : int, default=0
        1 prints a line for each layer.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, as they came.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when `X` has string names.

    train_accuracies_ : tuple of float
        Each layer's own accuracy on the training rows.

    fallback_layers_ : tuple of int
        Layers (from 1) whose Gram matrix was numerically singular, so that the least-norm solution
        was taken. A warning names them.

    regularization_ : tuple of float
        Each layer's penalty, as given or as chosen.

    neurons_kept_ : tuple of int
        How many neurons of each layer feed the next one.

    network_ : Network
        The fitted arrays, layer by layer, in the namespace and on the device of the training `X`.

    Notes
    -----
    Each layer is a task for scikit-learn's callbacks (``set_callbacks``): a progress bar, a monitor of scores
    by layer, or a callback that ends the fit there.

    Leave-one-out is exact given a layer's features: its read-out is the one fitted without the row (without
    one unit of the row's weight), in closed form. The re-normalisation, the pruning and the layers before
    did see the row.

    ``sample_weight`` counts rows: weight 2 is the row twice, weight 0 is the row left out. The fit holds
    one (n_samples, n_hidden + n_features + 1) matrix; ``predict`` works by blocks of rows.

    References
    ----------
    Q. Shi, P. N. Suganthan, R. Katuwal, "Weighting and Pruning based Ensemble Deep Random Vector
    Functional Link Network for Tabular Data Classification", Pattern Recognition 132 (2022).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import EDRVFLClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = EDRVFLClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.95
    True
    >>> len(list(model.staged_predict(X_test)))
    10
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "regularization": [Interval(Real, 0, None, closed="left"), StrOptions({"loo"})],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "renormalize": ["boolean"],
        "norm_scale": [Interval(Real, 0, None, closed="neither")],
        "norm_shift": [Interval(Real, None, None, closed="neither")],
        "correct_weight": [Interval(Real, 0, 1, closed="right")],
        "weight_from": [StrOptions({"train", "loo"})],
        "prune_rate": [Interval(Real, 0, 1, closed="left")],
        "ensemble": [StrOptions(set(RULES))],
        "standardize": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_layers: int = 10,
        n_hidden: int = 512,
        regularization: float | str = 64.0,
        activation: str = "relu",
        renormalize: bool = True,
        norm_scale: float = 1.0,
        norm_shift: float = 0.0,
        correct_weight: float = 0.8,
        weight_from: str = "train",
        prune_rate: float = 0.2,
        ensemble: str = "softmax",
        standardize: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_layers = n_layers
        self.n_hidden = n_hidden
        self.regularization = regularization
        self.activation = activation
        self.renormalize = renormalize
        self.norm_scale = norm_scale
        self.norm_shift = norm_shift
        self.correct_weight = correct_weight
        self.weight_from = weight_from
        self.prune_rate = prune_rate
        self.ensemble = ensemble
        self.standardize = standardize
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EDRVFLClassifier:
        """Fit the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numeric, finite training rows: a NumPy array, a pandas or polars frame, or, with
            scikit-learn's array API dispatch on, a torch or CuPy array.

        y : array-like of shape (n_samples,)
            Labels of at least two classes: strings, integers or booleans.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None is 1 for each.

        Returns
        -------
        self : EDRVFLClassifier
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> EDRVFLClassifier:
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        X, y = self._validated(X, y)
        X, classes, codes, s, cost = counted(X, y, sample_weight, self.class_weight)
        if classes.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y holds only one class "
                f"({classes[0]!r}) in the rows with positive weight."
            )
        settings = _network.Settings(
            n_layers=self.n_layers,
            n_hidden=self.n_hidden,
            activation=self.activation,
            renormalize=self.renormalize,
            lam=None if self.regularization == "loo" else self.regularization,
            gamma=self.norm_scale,
            alpha=self.norm_shift,
            omega_r=self.correct_weight,
            p=self.prune_rate,
            weight_from=self.weight_from,
        )
        seed = check_random_state(self.random_state).randint(numpy.iinfo(numpy.int32).max)
        n_classes = classes.shape[0]
        whole = self._init_callback_context(max_subtasks=self.n_layers).call_on_fit_task_begin(**given)
        on_layer = self._reporting(whole, classes, given)
        fit = _network.fit(X, codes, n_classes, settings, seed, s, cost, self.standardize, on_layer)
        self.classes_ = classes
        self.network_ = fit.network
        self.train_accuracies_ = fit.accuracies
        self.fallback_layers_ = tuple(l + 1 for l, fell in enumerate(fit.fell_back) if fell)
        self.neurons_kept_ = fit.kept
        self.regularization_ = tuple(float(lam) for lam in fit.lam)
        if self.fallback_layers_:
            warnings.warn(
                f"The Gram matrix is numerically singular in layer(s) "
                f"{', '.join(map(str, self.fallback_layers_))} with regularization="
                f"{self.regularization}; the least-norm solution was taken there. Increase "
                "regularization, or set renormalize=True if it is off.",
                LinAlgWarning,
                stacklevel=4,
            )
        whole.call_on_fit_task_end(**given, reconstruction_attributes=dict)
        return self

    def _reporting(
        self, whole: CallbackContext, classes: Array, given: dict[str, Any]
    ) -> Callable[[int, float, Callable[[], _network.Network]], bool]:
        """What is done after each layer: a line if verbose, and the callbacks, which may say stop."""
        width = len(str(self.n_layers))

        def begin() -> CallbackContext:
            return whole.subcontext(task_name="layer").call_on_fit_task_begin(**given)

        task = begin()

        def on_layer(layer: int, accuracy: float, network: Callable[[], _network.Network]) -> bool:
            nonlocal task
            if self.verbose:
                print(
                    f"[{type(self).__name__}] layer {layer + 1:{width}d}/{self.n_layers}: "
                    f"training accuracy {accuracy:.4f}"
                )
            stop: bool = task.call_on_fit_task_end(
                **given, reconstruction_attributes=lambda: {"network_": network(), "classes_": classes}
            )
            if not stop and layer + 1 < self.n_layers:
                task = begin()
            return stop

        return on_layer

    @property
    def _fitted_array(self) -> Array:
        return self.network_.layers[0].beta

    def _probabilities(self, X: Any, method: str) -> Array:
        return self._by_blocks(self._checked(X, method), (), combine)

    def _staged_probabilities(self, X: Any, method: str) -> Array:
        X = self._checked(X, method)
        return self._by_blocks(X, (len(self.network_.layers),), combine_staged)

    def _by_blocks(self, X: Array, leading: tuple[int, ...], rule: Callable[..., Array]) -> Array:
        """Probabilities (*leading, n_samples, n_classes), a block of rows at a time."""
        m = X.shape[0]
        shape = (*leading, m, self._fitted_array.shape[-1])
        answer = array_namespace(X).empty(shape, dtype=X.dtype, device=device(X))
        for rows in row_blocks(X, m, _network.row_numbers(self.network_)):
            scores = _network.layer_scores(self.network_, X[rows, :])
            answer[..., rows, :] = rule(scores, self.ensemble)
        return answer

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """`predict` of the networks of 1, 2, ... `n_layers` layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Yields
        ------
        y : array of shape (n_samples,)
            Labels as they came in `fit`.
        """
        for P in _slices(self._staged_probabilities(X, "staged_predict")):
            yield self._labels(log_odds(P))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` of the networks of 1, 2, ... `n_layers` layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Yields
        ------
        P : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        yield from _slices(self._staged_probabilities(X, "staged_predict_proba"))

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` of the networks of 1, 2, ... `n_layers` layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Yields
        ------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            As in `decision_function`.
        """
        for P in _slices(self._staged_probabilities(X, "staged_decision_function")):
            yield log_odds(P)


# The paper's methods, and plain RVFL, as parameter values; what is not named keeps its default.
VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "RVFL": {"n_layers": 1, "renormalize": False, "correct_weight": 1.0, "prune_rate": 0.0},
        "edRVFL_O": {"renormalize": False, "correct_weight": 1.0, "prune_rate": 0.0},
        "edRVFL_N": {"correct_weight": 1.0, "prune_rate": 0.0},
        "WedRVFL": {"prune_rate": 0.0},
        "PedRVFL": {"correct_weight": 1.0},
        "WPedRVFL": {},
    }
)


def variant(name: str, **params: Any) -> EDRVFLClassifier:
    """A classifier by the name the paper gives it.

    Parameters
    ----------
    name : {"RVFL", "edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL"}
        The method.

    **params
        Parameters of :class:`EDRVFLClassifier`; they win over the method's own.

    Returns
    -------
    classifier : EDRVFLClassifier
        Not fitted.

    Examples
    --------
    >>> from edrvfl import variant
    >>> variant("PedRVFL", prune_rate=0.4)
    EDRVFLClassifier(correct_weight=1.0, prune_rate=0.4)
    """
    if name not in VARIANTS:
        raise ValueError(f"Unknown variant {name!r}; choose one of {', '.join(VARIANTS)}.")
    return EDRVFLClassifier(**{**VARIANTS[name], **params})


def to_numpy(model: Estimator) -> Estimator:
    """A copy of a fitted estimator with every array in NumPy, whatever device it was fitted on.

    Parameters
    ----------
    model : estimator
        An :class:`EDRVFLClassifier`, or a scikit-learn estimator that holds some.

    Returns
    -------
    copy : estimator
        The same model, for NumPy arrays and frames.
    """
    copy: Estimator = _estimator_with_converted_arrays(model, to_host)
    return copy


def to_host(array: Array) -> numpy.ndarray:
    if isinstance(array, numpy.ndarray):
        return array
    host: numpy.ndarray = _convert_to_numpy(array, array_namespace(array))
    return host


def counted(
    X: Array, y: Array, sample_weight: Any, class_weight: Any
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """Rows that count, the labels and their codes beside X, the rows' weights and their costs."""
    xp, _, where = get_namespace_and_device(X)
    s = cost = None
    if sample_weight is not None:
        s = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        X, y, s = _select(s > 0, X, y, s)
    if class_weight is not None:
        host_s = None if s is None else to_host(s)
        cost = from_numpy(row_costs(class_weight, to_host(y), host_s), X)
        X, y, s, cost = _select(cost > 0, X, y, s, cost)
    found = get_namespace(y)[0].unique_inverse(y)
    classes, codes = found.values, move_to(found.inverse_indices, xp=xp, device=where)
    if not (isinstance(classes, numpy.ndarray) and classes.dtype.kind in "OUS"):
        classes = move_to(classes, xp=xp, device=where)  # strings stay in NumPy
    return X, classes, codes, s, cost


def row_costs(class_weight: Any, y: numpy.ndarray, s: numpy.ndarray | None) -> numpy.ndarray:
    """Each row's class weight."""
    classes, codes = numpy.unique(y, return_inverse=True)
    costs = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=s)
    if not (numpy.isfinite(costs).all() and (costs >= 0).all()):
        raise ValueError(
            f"class_weight must hold finite weights that are not negative, got {class_weight!r}."
        )
    of_rows: numpy.ndarray = costs[codes]
    return of_rows


def _select(keep: Array, *arrays: Array | None) -> list[Array | None]:
    """The rows to keep, of arrays that need not share a namespace. Weight 0 is the row left out."""
    if bool(array_namespace(keep).all(keep)):
        return list(arrays)
    chosen = []
    for array in arrays:
        if array is not None:
            xp, _, where = get_namespace_and_device(array)
            array = array[move_to(keep, xp=xp, device=where)]
        chosen.append(array)
    return chosen


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Give the estimator back the attributes it had, unless all goes well."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        # what scikit-learn needs to end the callbacks stays until it has done so
        callbacks = {k: v for k, v in vars(estimator).items() if k.startswith(("_callback", "_skl"))}
        estimator.__dict__ = before | callbacks
        raise


def log_odds(P: Array) -> Array:
    """Finite log-probabilities (n, k); for two classes the log-odds (n,) of the second."""
    xp = array_namespace(P)
    log_P = xp.log(xp.clip(P, float(xp.finfo(P.dtype).smallest_normal), 1.0))
    return log_P[..., 1] - log_P[..., 0] if P.shape[-1] == 2 else log_P


def _slices(staged: Array) -> Iterator[Array]:
    for l in range(staged.shape[0]):
        yield staged[l, ...]


@contextmanager
def naming_columns(estimator: BaseEstimator, X: Any) -> Iterator[None]:
    """Make an error about a frame name the columns that are not numbers."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if columns := [str(name) for name in getattr(X, "columns", ()) if not _is_numeric(X[name])]:
            raise type(error)(
                f"{type(estimator).__name__} takes numeric columns, but these are not: "
                f"{', '.join(columns)}. Encode them first, for instance with "
                f"sklearn.preprocessing.OneHotEncoder in make_column_transformer. ({error})"
            ) from error
        raise


def _is_numeric(column: Any) -> bool:
    try:
        numpy.asarray(column, dtype=float)
    except (ValueError, TypeError):
        return False
    return True
