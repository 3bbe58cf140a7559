"""EDRVFLClassifier: its parameters, its fit, its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

from sklearn.base import ClassifierMixin

from .._loo.follow import CLASS_RULES, log_odds
from .._seam.arrays import Array
from .._seam.sklearn import StrOptions
from .answers import Classifies
from .base import OF_CLASSES, fields_are_parameters
from .encoder import TabularEncoder
from .layered import CONSTRAINTS, Layered
from .telling import ACCURACY


@fields_are_parameters
class EDRVFLClassifier(Layered, ClassifierMixin, Classifies):
    """Ensemble deep random vector functional link network, with weighting and pruning.

    It takes arrays and frames as they come, with categories, dates, text and missing values, and
    answers with calibrated probabilities.

    Hidden layers are random and never trained. Each layer re-normalises the random projection of
    [previous hidden features, inputs], applies an activation function, and has a ridge read-out of
    its own, in closed form; the layers vote. Samples that a layer gets wrong weigh more in the next
    layer, and neurons that its read-out hardly uses do not feed the next layer.

    The defaults are the paper's WPedRVFL, with calibration; with more than 10,000 training rows it has fewer
    and wider layers, and its inputs are scaled, which is faster and more accurate there. The other methods of
    the paper are other values of these parameters; :func:`edrvfl.variant` knows their names.

    Parameters
    ----------
    n_layers : int or "auto", default="auto"
        Hidden layers, l_max in the paper. One fit serves every smaller depth: see ``staged_predict``. "auto"
        is 10, and 2 with more than 10,000 training rows. In a search "auto" is 10 layers of 512 neurons
        and no scaling of the inputs, whatever the rows.

    n_hidden : int or "auto", default="auto"
        Neurons in each hidden layer, n. "auto" is 512; with more than 10,000 training rows, which can use
        more of them, 896, and with more than 300,000, where these would take too long, 768.

    regularization : float or "loo", default=64.0
        Ridge penalty of every read-out, lambda, on the squared output weights. 0 gives the
        Moore-Penrose solution. "loo" lets every layer choose among 25 powers of two, 2^-12 to 2^12 (times the
        mean weight if all weights are small), by its leave-one-out accuracy; if several are equally good, it
        takes the largest. With a few classes that takes about half as long again; with hundreds of classes
        the scores of all 25 take most of the time.

    activation : {"relu", "selu", "sigmoid", "tanh", "sin", "radbas", "swish"}, default="relu"
        Activation function g of the hidden neurons.

    renormalize : bool, default=True
        Whether every neuron's input is brought to mean 0 and variance 1 over the training rows (batch
        normalisation). False is the original edRVFL, in which `norm_scale` and `norm_shift` do nothing.

    norm_scale : float or pair of float, default=1.0
        Factor after re-normalisation, gamma. 1 is neutral. A pair (low, high) draws a factor for each neuron,
        evenly on the logarithmic scale: a layer then has smooth and sharp neurons, and nobody needs to know
        which the data want.

    norm_shift : float or pair of float, default=0.0
        Shift after re-normalisation, alpha. 0 is neutral. A pair (low, high) draws a shift for each neuron,
        so that some are active for most rows and some for few.

    inputs_per_neuron : int or None, default=None
        How many columns of `X` a neuron sees at most. Each neuron, in every layer, draws a number from 1 to
        this one, and then so many columns, each with all that the encoder makes of it; its other weights
        are 0. Small numbers suit data where effects are of one column or of a few together, and where many
        columns are noise: a neuron that sees all columns sees mostly noise. None: all, as in the paper.

    hidden_per_neuron : int or None, default=None
        How many neurons of the layer before a neuron sees; its other weights are 0. They are drawn before
        pruning, so some of them may be pruned. Few of them keep the neurons of deep layers different
        from each other. None: all, as in the paper.

    pair_share : float, default=0.0
        Share of the first layer's neurons whose weights are the difference of two training rows of different
        classes, drawn at random, instead of random numbers. Such neurons look along directions in which
        classes differ, which random ones rarely do where there are many columns. 0 is neutral.

    input_scaling : {"loo", "gradient"} or None, default="loo"
        "gradient" multiplies the inputs by how much the classes depend on each column of `X`: a kernel ridge
        is fitted to at most 1,000 rows and thrown away, and the factor is the root mean squared gradient of
        its scores. Random weights then no longer give columns of noise as much room as the others. None: all
        columns alike, as in the paper. "loo" is "gradient" if the kernel ridge is better with the factors,
        on rows whose labels did not shape them (see Notes), else None.

    correct_weight : float or "loo", default="loo"
        Weight in the next layer of the samples that this layer classifies correctly, omega_r, in
        (0, 1]; the others get what keeps the sum. 1 is neutral: no weighting. "loo" is 0.8 if the network is
        better with it, on rows whose labels did not shape it, else 1. What is "loo" of `correct_weight` and
        `prune_rate` is tried together, with up to 600 rows; with more it is used without a proof, which
        would double the time.

    weight_from : {"train", "loo"}, default="train"
        Which predictions decide what counts as classified correctly: the layer's own on its training
        rows, as in the paper, or its exact leave-one-out predictions. Leave-one-out still finds wrong samples
        where a layer has learnt its training rows by heart.

    prune_rate : float or "loo", default="loo"
        Share of hidden neurons, those of least importance, that do not feed the next layer, p, in
        [0, 1). 0 is neutral: no pruning. "loo" is 0.2 if the network is better with it, else 0, as for
        `correct_weight`.

    readout : {"layers", "joint"}, default="layers"
        "layers": each layer has a read-out of its own, and the layers vote. "joint" is dRVFL: one read-out
        over the inputs and all hidden layers, at every depth, and no vote; `ensemble` then acts on a single
        score. Weighting and pruning take a layer's own read-out, so "joint" has neither: ``correct_weight``
        may be 1 or "loo", and ``prune_rate`` 0 or "loo"; nor can layers be "weighted". It costs more: the
        features of all layers are held, and the time grows with the square of their number. All depths share
        one factorisation as long as there are no more features than rows; with `regularization` 0 or "loo"
        each depth is solved anew.

    ensemble : {"softmax", "mean", "vote"}, default="softmax"
        How layers become one answer: the mean of the layers' softmax, the softmax of their mean score,
        or the share of layers that vote for a class.

    layer_votes : {"equal", "prefix", "weighted"}, default="equal"
        Which layers vote, and how much. "equal": all of them equally, as in the paper. "prefix": the first
        ones, as many as give the smallest leave-one-out log-loss. "weighted": each with a positive weight,
        chosen layer after layer so that the leave-one-out log-loss falls, and pulled to an equal one.

    calibration : {"loo", "temperature", "matrix"} or None, default="loo"
        How the ensemble's answer becomes a probability. The calibration is learnt from exact leave-one-out
        scores, for every depth. No rows are held back; of many rows a fixed part is scored, 1,500 for each
        class and at most 10,000.
        "temperature" is one factor on the logarithms of the probabilities and changes no prediction.
        "matrix" is structured matrix scaling, for two classes an increasing quadratic curve of the log-odds;
        it may change predictions. "loo" is the rule that did better on validation rows, "matrix". None
        leaves the ensemble's answer as it is: its order is good, but it stays far from 0 and 1.

    encoder : {"standard", "robust", "bins", "ranks"}, TabularEncoder or None, default="standard"
        How the columns of a frame or array become the network's inputs, learnt from the training rows.
        "standard" brings numbers to mean 0 and variance 1, as in the paper. "robust" also clips outliers,
        smoothly. "bins" puts piecewise-linear bins beside them, for effects that have thresholds. "ranks"
        gives a number its place among the training rows. All take missing values and columns of categories
        and text. A :class:`TabularEncoder` sets the details, for instance which columns of numbers are
        categories. None takes finite numbers as they are.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors in every read-out. They do not count rows as `sample_weight` does:
        the statistics of re-normalisation and the weighting of Eq. 12-14 do not see them. Calibration does:
        with "balanced", the probabilities are those of classes that are equally frequent. A class with
        weight 0 is left out.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_set` takes its threshold from. "loo": from what each training row gives its own class
        without itself, which calibration needs anyway; with ``calibration=None`` and equal votes it is not
        computed, and there are no sets. "split" holds a fifth of the rows back from the fit, drawn by the
        seed (at least 39 or half of them, at most 5,000), and takes the threshold from these; then the share
        of covered rows has a guarantee. All classes stay in the fit: of a class whose rows were all drawn one
        returns, and counts as a row that no set covers. None: there are no sets.

    remember : {"sums", "rows"} or None, default=None
        What the fit keeps, so that the model can change and explain itself afterwards (the guide, "After the
        fit"). It changes no answer. None keeps nothing. "sums": of each layer the sums that its read-out
        is solved from, (n + d + 1)^2 numbers for n neurons and d inputs (with ``readout="joint"`` once, for
        the features of all layers), and about 30 bytes for each row, a fingerprint among them. "rows": the
        rows too.

    random_state : int, RandomState instance or None, default=None
        Seed of the random layers. The same seed gives the same network with every array library.

    verbose : int, default=0
        1 prints a line for each layer: the accuracy and log-loss of the layers so far, by leave-one-out
        (without it, the layer's accuracy on the training rows).

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

    loo_accuracies_ : tuple of float
        Leave-one-out accuracy of the first one, two, ... layers together, by the rows' weights. It needs no
        further rows, and each row is judged by a network that its label did not shape (see Notes). Empty if
        neither `calibration` nor `layer_votes` asks for leave-one-out.

    loo_log_losses_ : tuple of float
        Leave-one-out log-loss of the first one, two, ... layers together, after calibration (after a
        temperature if `calibration` is None). Empty where `loo_accuracies_` is.

    train_accuracies_ : tuple of float
        Each layer's own accuracy on the training rows. It may fall while the network gets better. With
        ``readout="joint"``, that of the first one, two, ... layers together. From a :class:`RowBlocks`, on
        the rows that leave-one-out judges.

    fallback_layers_ : tuple of int
        Layers (from 1) whose Gram matrix was numerically singular, so that the least-norm solution
        was taken. A warning names them.

    regularization_ : tuple of float
        Each layer's penalty, as given or as chosen.

    neurons_kept_ : tuple of int
        How many neurons of each layer feed the next one.

    n_hidden_ : int
        How many neurons each layer has: `n_hidden`, or what "auto" stands for.

    n_layers_ : int
        How many layers answer: `n_layers`, or fewer if a callback ended the fit or with
        ``layer_votes="prefix"``.

    proven_ : dict
        What became of the parameters that were "loo" and had to prove themselves: `input_scaling`,
        `correct_weight` and `prune_rate`.

    coverage_ : Coverage or None
        What `predict_set` needs beside the probabilities; None if `coverage_from` is, and where neither
        leave-one-out answers nor held-back rows tell it.

    memory_ : Memory
        What the fit kept for `update` and `forget`. Only if `remember` is not None.

    network_ : Network
        Everything that decides an answer: the fitted arrays, layer by layer, in the namespace and on the
        device of the training `X`, the encoding of the columns, how the layers vote, the calibrations, the
        classes and the seed.

    Notes
    -----
    Each layer is a task for scikit-learn's callbacks (``set_callbacks``): a progress bar, a monitor of scores
    by layer, or a callback that ends the fit there.

    Leave-one-out is exact given a layer's features: the read-out is the one fitted without the row, whatever
    its weight, and without its exact copies, in closed form. But weighting, pruning, input scaling, pairs and
    chosen penalties have seen its label. So where there are fewer than 1,500 rows, or fewer than 33 for each
    column (and fewer than 10,000), the rows are dealt into folds, three up to 600 rows and two above, and
    all of these are learnt once more without the labels of a fold before the read-out answers its rows.
    Calibrations that judge a fold come from the other folds too. With more rows one fit is enough: its
    leave-one-out accuracy was at most half a point too good. The network that answers new rows learns from
    all rows. How far the figures hold on new rows: the guide, "How far leave-one-out can be trusted".

    Rows that agree by chance, because columns have few values, are no copies: each is left out alone.

    ``sample_weight`` counts rows: weight 2 is the row twice, weight 0 is the row left out. (Copies are looked
    for among up to 100,000 rows in memory; of more rows weight 2 is only nearly the row twice. With
    ``coverage_from="split"`` it is not, because a row is held back or not as a whole.)

    The fit holds one (n_samples, n_hidden + n_features + 1) matrix, with ``readout="joint"`` the features of
    all layers beside it; ``predict`` works by blocks of rows.
    Small problems are computed on one BLAS thread, because more threads would only wait for each other.

    References
    ----------
    Q. Shi, P. N. Suganthan, R. Katuwal, "Weighting and Pruning based Ensemble Deep Random Vector
    Functional Link Network for Tabular Data Classification", Pattern Recognition 132 (2022).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import EDRVFLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = EDRVFLClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.95
    True
    >>> len(list(model.staged_predict(X_test)))
    10
    >>> model.loo_log_losses_[-1] < 0.2
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        **OF_CLASSES,
        "n_layers": [*CONSTRAINTS["n_layers"], StrOptions({"auto"})],
        "ensemble": [StrOptions(set(CLASS_RULES))],
    }
    _figures = ACCURACY

    _: KW_ONLY
    n_layers: int | str = "auto"
    n_hidden: int | str = "auto"
    regularization: float | str = 64.0
    activation: str = "relu"
    renormalize: bool = True
    norm_scale: float | tuple[float, float] = 1.0
    norm_shift: float | tuple[float, float] = 0.0
    inputs_per_neuron: int | None = None
    hidden_per_neuron: int | None = None
    pair_share: float = 0.0
    input_scaling: str | None = "loo"
    correct_weight: float | str = "loo"
    weight_from: str = "train"
    prune_rate: float | str = "loo"
    readout: str = "layers"
    ensemble: str = "softmax"
    layer_votes: str = "equal"
    calibration: str | None = "loo"
    encoder: str | TabularEncoder | None = "standard"
    class_weight: Mapping[Any, float] | str | None = None
    coverage_from: str | None = "loo"
    remember: str | None = None
    random_state: Any = None
    verbose: int = 0

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Yield `predict_proba` of the networks of 1, 2, ... `n_layers_` layers, each calibrated on its own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Yields
        ------
        P : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        yield from self._staged_answers(X, "staged_predict_proba")

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield `decision_function` of the networks of 1, 2, ... `n_layers_` layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Yields
        ------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            As in `decision_function`.
        """
        for P in self._staged_answers(X, "staged_decision_function"):
            yield log_odds(P)
