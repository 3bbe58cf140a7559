"""EDRVFLRegressor: its parameters, its fit, its answers."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

from sklearn.base import RegressorMixin

from .answers import Predicts
from .base import fields_are_parameters
from .encoder import TabularEncoder
from .layered import CONSTRAINTS, Layered
from .telling import R2


@fields_are_parameters
class EDRVFLRegressor(Layered, RegressorMixin, Predicts):
    """Ensemble deep random vector functional link network for values.

    It takes arrays and frames as they come, with categories, dates, text and missing values, and one
    output or several.

    Hidden layers are random and never trained. Each layer re-normalises the random projection of
    [previous hidden features, inputs], applies an activation function, and has a ridge read-out of its own,
    in closed form; the answer is the mean of the layers. Every layer chooses its penalty by exact
    leave-one-out. Neurons that a read-out hardly uses need not feed the next layer, and samples that a layer
    predicts badly can weigh more in it, as in :class:`EDRVFLClassifier`.

    Parameters
    ----------
    n_layers : int, default=4
        Hidden layers, l_max in the paper. One fit serves every smaller depth: see ``staged_predict``. A mean
        of values gains less by many layers than a vote does.

    n_hidden : int or "auto", default=512
        Neurons in each hidden layer, n. "auto" is 512; with more than 10,000 training rows, which can use
        more of them, 896, and with more than 300,000, where these would take too long, 768.

    regularization : float or "loo", default="loo"
        Ridge penalty of every read-out, lambda, on the squared output weights of standardised outputs. 0
        gives the Moore-Penrose solution. "loo" lets every layer choose among 25 powers of two, 2^-12 to
        2^12 (times the mean weight if all weights are small), by its leave-one-out squared error.

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
        value, drawn at random, instead of random numbers. Such neurons look along directions in which the
        values change. 0 is neutral.

    input_scaling : {"loo", "gradient"} or None, default=None
        "gradient" multiplies the inputs by how much the values depend on each column of `X`: a kernel ridge
        is fitted to at most 1,000 rows and thrown away, and the factor is its root mean squared gradient.
        Random weights then no longer give columns of noise as much room as the others. None: all columns
        alike, as in the paper. "loo" is "gradient" if the kernel ridge is better with the factors, on rows
        whose values did not shape them, else None.

    correct_weight : float or "loo", default=1.0
        Weight in the next layer of the samples that this layer predicts well, omega_r, in (0, 1]; the others
        get what keeps the sum. Well means a squared error not above the median. 1 is neutral: no weighting.
        "loo" is 0.8 if the network is better with it, else 1, as for :class:`EDRVFLClassifier`.

    weight_from : {"train", "loo"}, default="loo"
        Which predictions decide what counts as predicted well: the layer's own on its training rows, or its
        exact leave-one-out predictions.

    prune_rate : float or "loo", default=0.0
        Share of hidden neurons, those of least importance, that do not feed the next layer, p, in
        [0, 1). 0 is neutral: no pruning. "loo" is 0.2 if the network is better with it, else 0.

    readout : {"layers", "joint"}, default="layers"
        "layers": each layer has a read-out of its own, and the answer is their mean. "joint" is dRVFL: one
        read-out over the inputs and all hidden layers, at every depth, as for :class:`EDRVFLClassifier`,
        where its cost is told. It has neither weighting nor pruning nor votes.

    layer_votes : {"equal", "prefix", "weighted"}, default="equal"
        Which layers answer, and how much each counts. "equal": the mean of all of them. "prefix": that of the
        first ones, as many as give the smallest leave-one-out squared error. "weighted": a weighted mean,
        chosen layer after layer so that this error falls, and pulled to an equal one.

    encoder : {"standard", "robust", "bins", "ranks"}, TabularEncoder or None, default="robust"
        How the columns of a frame or array become the network's inputs, learnt from the training rows.
        "standard" brings numbers to mean 0 and variance 1; beside skewed columns its values run away.
        "robust" uses median and quartiles and clips outliers, smoothly. "bins" puts piecewise-linear bins
        beside that, for effects that have thresholds. "ranks" gives a number its place among the training
        rows. Each of these takes missing values and columns of categories and text. A
        :class:`TabularEncoder` sets the details, for instance which columns of numbers are categories.
        None takes finite numbers as they are.

    coverage_from : {"loo", "split"} or None, default="loo"
        Where `predict_interval` takes its quantiles from. "loo": from the training rows' leave-one-out
        errors. "split" holds a fifth of the rows back from the fit, drawn by the seed (at least 39 or half of
        them, at most 5,000), and takes the quantiles from these; then the share of covered rows has a
        guarantee. None: there are no intervals, and unless layers vote by leave-one-out it is not
        computed, which saves time, and `loo_r2_scores_` is empty.

    remember : {"sums", "rows"} or None, default=None
        What the fit keeps, so that the model can change and explain itself afterwards (the guide, "After the
        fit"). It changes no answer. None keeps nothing. "sums": of each layer the sums that its read-out
        is solved from, (n + d + 1)^2 numbers for n neurons and d inputs (with ``readout="joint"`` once, for
        the features of all layers), and about 30 bytes for each row, a fingerprint among them. "rows": the
        rows too.

    random_state : int, RandomState instance or None, default=None
        Seed of the random layers. The same seed gives the same network with every array library.

    verbose : int, default=0
        1 prints a line for each layer: the R^2 of the layers so far, by leave-one-out (without it, the
        layer's R^2 on the training rows).

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, when `X` has string names.

    target_name_ : str
        Name of y. Only if it was a Series with a name.

    loo_r2_scores_ : tuple of float
        Leave-one-out R^2 of the first one, two, ... layers together, by the rows' weights; the mean over the
        outputs if there are several. It needs no further rows, and is a little optimistic on small data,
        because the penalties, pruning and weighting saw the values. Of more than 10,000 rows a fixed part
        is judged. Empty if neither `coverage_from` nor `layer_votes` asks for leave-one-out.

    train_r2_scores_ : tuple of float
        Each layer's own R^2 on the training rows. With ``readout="joint"``, that of the first one, two, ...
        layers together. From a :class:`RowBlocks`, on the rows that leave-one-out judges.

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
        What became of the parameters that were "loo" and had to prove themselves.

    coverage_ : Coverage or None
        What `predict_interval` needs beside the predictions: sorted errors, and where the widths of intervals
        vary, a small network for the spread. None if `coverage_from` is.

    memory_ : Memory
        What the fit kept for `update` and `forget`. Only if `remember` is not None.

    network_ : Network
        Everything that decides an answer: the fitted arrays, layer by layer, in the namespace and on the
        device of the training `X`, the encoding of the columns, how the layers vote, and the seed.

    See Also
    --------
    EDRVFLClassifier : The same network for classes.

    Notes
    -----
    Each layer is a task for scikit-learn's callbacks (``set_callbacks``): a progress bar, a monitor of scores
    by layer, or a callback that ends the fit there.

    Outputs are standardised inside, and the penalty is on the scale of standardised outputs.

    Leave-one-out is exact given a layer's features and the mean and scale of y: the read-out is the one
    fitted without the row, whatever its weight, and without its exact copies, in closed form. Where rows are
    few they are dealt into folds, as for :class:`EDRVFLClassifier`: what looks at values, penalties too, is
    learnt once more without those of a fold before the read-out answers its rows.

    Rows that agree by chance, because columns have few values, are no copies: each is left out alone.

    ``sample_weight`` counts rows: weight 2 is the row twice, weight 0 is the row left out. (Copies are looked
    for among up to 100,000 rows in memory; of more rows weight 2 is only nearly the row twice. With
    ``coverage_from="split"`` it is not, because a row is held back or not as a whole.)

    References
    ----------
    Q. Shi, P. N. Suganthan, R. Katuwal, "Weighting and Pruning based Ensemble Deep Random Vector
    Functional Link Network for Tabular Data Classification", Pattern Recognition 132 (2022).

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import EDRVFLRegressor
    >>> X, y = make_friedman1(500, noise=1.0, random_state=0)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = EDRVFLRegressor(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.8
    True
    >>> len(model.loo_r2_scores_)
    4
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CONSTRAINTS}
    _figures = R2

    _: KW_ONLY
    n_layers: int = 4
    n_hidden: int | str = 512
    regularization: float | str = "loo"
    activation: str = "relu"
    renormalize: bool = True
    norm_scale: float | tuple[float, float] = 1.0
    norm_shift: float | tuple[float, float] = 0.0
    inputs_per_neuron: int | None = None
    hidden_per_neuron: int | None = None
    pair_share: float = 0.0
    input_scaling: str | None = None
    correct_weight: float | str = 1.0
    weight_from: str = "loo"
    prune_rate: float | str = 0.0
    readout: str = "layers"
    layer_votes: str = "equal"
    encoder: str | TabularEncoder | None = "robust"
    coverage_from: str | None = "loo"
    remember: str | None = None
    random_state: Any = None
    verbose: int = 0
