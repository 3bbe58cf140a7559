"""Rows in blocks beside the same rows in memory, and what layers decide about them, computed again."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from helpers import features_by_layer
from hypothesis import assume
from sklearn.utils.class_weight import compute_sample_weight

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, RowBlocks
from edrvfl._inputs.chosen import hold_back

NEAR = 1e-8  # how far probabilities may differ
# how far values may differ, in units of their standard deviation: a penalty of 2^-12 beside a Gram of columns
# that are not encoded has a condition of 10^8 and more, also in the model of the spread behind intervals
NEAR_VALUES = 1e-6
CLEAR = 1e-7  # what is closer than this may be decided by rounding
LAMBDAS = 2.0 ** np.arange(-12, 13)
SMALL = {"n_hidden": 12, "n_layers": 3, "random_state": 0}

try:
    import torch  # noqa: F401

    DEVICES = [None, None, "cpu"]
except ImportError:
    DEVICES = [None]


# rows that come in blocks


@dataclass
class Case:
    """Rows, a model for them, and how they are cut."""

    model: Any
    X: Any
    y: Any
    weight: Any = None
    cuts: list[int] = field(default_factory=list)  # where blocks end; equal ones make an empty block
    kind: str = "callable"
    options: dict[str, Any] = field(default_factory=dict)

    def source(self, folder):
        """Return the rows as blocks."""
        if self.kind == "map":
            mapped = []
            for name in ("X", "y", "weight"):
                array = getattr(self, name)
                if array is not None:
                    np.save(folder / f"{name}.npy", array)
                    array = np.load(folder / f"{name}.npy", mmap_mode="r")
                mapped.append(array)
            return RowBlocks.from_arrays(*mapped, rows=max(1, *np.diff([0, *self.cuts])), **self.options)
        if self.kind == "parquet":
            frame = self.X.copy()
            names = ["y"] if np.ndim(self.y) == 1 else [f"y{i}" for i in range(self.y.shape[1])]
            frame[names] = self.y.reshape(len(frame), -1)
            if self.weight is not None:
                frame["weight"] = self.weight
            frame.to_parquet(folder / "rows.parquet", row_group_size=max(1, len(frame) // 3))
            target = names[0] if len(names) == 1 else names
            weight = None if self.weight is None else "weight"
            step = max(1, *np.diff([0, *self.cuts]))
            return RowBlocks.from_parquet(
                folder / "rows.parquet", target, weight, rows=int(step), **self.options
            )
        return RowBlocks(self.blocks, **self.options)

    def blocks(self):
        """Yield the blocks between the cuts."""
        given = [self.X, self.y] if self.weight is None else [self.X, self.y, self.weight]
        for start, stop in itertools.pairwise([0, *sorted(self.cuts), len(self.y)]):
            yield tuple(a.iloc[start:stop] if hasattr(a, "iloc") else a[start:stop] for a in given)


# what a layer decides, computed again


@dataclass
class Decisions:
    """Which rows each layer got right, and how clear that was."""

    classes: bool
    right: list[np.ndarray] = field(default_factory=list)
    lams: list[float] = field(default_factory=list)  # where leave-one-out chooses them
    margin: float = np.inf  # how far the closest decision was from the other one


def decisions(case, model):
    """Compute again, in plain NumPy, what the layers of a fitted model decided about the training rows.

    Decisions are which rows are right (Eq. 12), which neurons are pruned (Eq. 17), and which penalty has the
    smallest leave-one-out loss.
    """
    X, y, counts = _fitted_rows(case, model)
    network, classes = model.network_, isinstance(model, EDRVFLClassifier)
    base = counts.copy()
    if classes:
        Y = (y[:, None] == model.classes_).astype(float)
        mean, sd = 0.0, 1.0
        if model.class_weight is not None:
            # scikit-learn's rule counts rows, so rows of whole weight are repeated by it here
            base = base * _costs(model.class_weight, y, counts)
    else:
        Y = y.reshape(len(y), -1).astype(float)
        mean = np.average(Y, axis=0, weights=counts)
        sd = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=counts))
        sd = np.where(sd > 0, sd, 1.0)
        Y = (Y - mean) / sd
    found = Decisions(classes)
    omega_r, p = ({**model.get_params(), **model.proven_}[name] for name in ("correct_weight", "prune_rate"))
    if network.joint:  # neither weighting nor pruning, and the read-out is over several layers
        return found
    omega = np.ones(len(y))
    for l, D in enumerate(features_by_layer(network, X)):
        beta = network.readouts[l].copy()
        beta[-1] -= mean
        beta = beta / sd
        if model.regularization == "loo" and len(y) < 1000:  # of more rows some are judged
            _choose(D, Y, base, omega, counts, found)
        scores = D @ beta
        if model.weight_from == "loo":
            scores = _without_themselves(D, Y, base * omega, counts, beta, model.regularization_[l], found)
        right = _right(scores, Y, counts, classes, found, asks=omega_r < 1)
        found.right.append(right)
        n_r, n_w = counts[right].sum(), counts[~right].sum()
        omega = np.ones(len(y))
        if omega_r < 1 and n_r > 0 and n_w > 0:
            omega_w = (n_r + n_w - n_r * omega_r) / n_w  # Eq. 14
            omega = np.where(right, omega_r, omega_w)
        _prune(beta, p, model.n_hidden_, found)
    return found


def _fitted_rows(case, model):
    """Return the rows that were fitted: neither held back nor without weight."""
    y = np.asarray(case.y)
    counts = np.ones(len(y)) if case.weight is None else np.asarray(case.weight, dtype=float)
    matrix = model._check_new_rows(case.X, "predict")
    classes = isinstance(model, EDRVFLClassifier)
    rows = np.flatnonzero(counts > 0)
    if model.coverage_from == "split":
        weight = None if case.weight is None else counts
        kept, _ = hold_back(np.arange(len(y))[:, None], y, weight, model.network_.seed, classes)
        rows = kept[0][:, 0]
    if classes:
        rows = rows[np.isin(y[rows], model.classes_)]  # a class of weight 0 is not fitted
    return matrix[rows], y[rows], counts[rows]


def _costs(class_weight, y, counts):
    if class_weight == "balanced":
        sums = {label: counts[y == label].sum() for label in np.unique(y)}
        return np.array([counts.sum() / (len(sums) * sums[label]) for label in y])
    return compute_sample_weight(class_weight, y)


def _leverages(D, weights, counts, lam):
    """The weight of each row, times d'(D'WD + lam I)^-1 d."""
    G = (D * weights[:, None]).T @ D + lam * np.eye(D.shape[1])
    forms = np.einsum("ij,ji->i", D, np.linalg.solve(G, D.T))
    return weights * forms


def _without_themselves(D, Y, weights, counts, beta, lam, found):
    h = _leverages(D, weights, counts, lam)[:, None]
    found.margin = min(found.margin, float((1 - h).min()))  # a row with leverage 1 has no score without it
    return (D @ beta - h * Y) / np.maximum(1 - h, 1e-300)


def _gaps(scores):
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def _right(scores, Y, counts, classes, found, asks):
    if classes:
        right = scores.argmax(axis=1) == Y.argmax(axis=1)
        if asks:
            found.margin = min(found.margin, float(_gaps(scores).min()))
        return right
    losses = ((scores - Y) ** 2).mean(axis=1)
    order = np.argsort(losses)
    reached = np.cumsum(counts[order])
    place = int((reached < (0.5 - 1e-9) * reached[-1]).sum())
    bound = losses[order[place]]
    above = losses[losses > bound * (1 + 2e-8)]
    if asks and len(above):
        found.margin = min(found.margin, float(above.min() / bound - 1 - 2e-8) if bound else np.inf)
    return losses <= bound * (1 + 2e-8)


def _prune(beta, p, n, found):
    drop = min(n - 1, int(p * n + 1e-9))
    theta = np.sort(np.abs(beta[:n]).sum(axis=1))
    if drop > 0 and theta[drop] > 0:  # dead neurons are equal to the last bit
        found.margin = min(found.margin, float(1 - theta[drop - 1] / theta[drop]))


def _choose(D, Y, base, omega, counts, found):
    """Try all penalties, times the weight of one row, and note the best of them."""
    shares = counts / counts.max()
    unit = counts.sum() / max(counts.sum(), shares.sum() ** 2 / (shares @ shares))
    weights = base / unit * omega
    classes, losses = found.classes, []
    W = (D * weights[:, None]).T
    for lam in LAMBDAS:
        beta = np.linalg.solve(W @ D + lam * np.eye(D.shape[1]), W @ Y)
        scores = _without_themselves(D, Y, weights, counts, beta, lam, found)
        if classes:
            found.margin = min(found.margin, float(_gaps(scores).min()))
            each = (scores.argmax(axis=1) != Y.argmax(axis=1)).astype(float)
        else:
            each = ((scores - Y) ** 2).mean(axis=1)
        losses.append(round(float(each @ weights / weights.sum()), 12))
    found.lams.append(
        unit * max(lam for lam, loss in zip(LAMBDAS, losses, strict=True) if loss == min(losses))
    )
    if not classes:
        first, second = sorted(losses)[:2]
        found.margin = min(found.margin, (second - first) / first if first else 0.0)


def assume_clear(found):
    """Give up examples in which rounding could decide.

    Scores of two classes, losses about the median, importances about the pruning edge or the losses of two
    penalties are so close there that either order is right.
    """
    assume(found.margin > CLEAR)


# the comparison


def fitted_twice(case, folder):
    """Return the model that was fitted in memory and the one that was fitted to blocks."""
    one, other = (type(case.model)(**case.model.get_params()) for _ in range(2))
    one.fit(case.X, case.y, case.weight)
    return one, other.fit(case.source(folder))


def assert_same_decisions(one, other, case):
    assert len(one.network_.layers) == len(other.network_.layers)
    for a, b in zip(one.network_.layers, other.network_.layers, strict=True):
        assert type(a.inputs) is type(b.inputs)
        if isinstance(a.inputs, slice):
            assert a.inputs == b.inputs
        else:
            np.testing.assert_array_equal(a.inputs, b.inputs)
    first, second = (decisions(case, model) for model in (one, other))
    for a, b in zip(first.right, second.right, strict=True):
        np.testing.assert_array_equal(a, b)
    for found in (first.lams, second.lams):  # empty where nobody chose, or not all rows were judged
        np.testing.assert_allclose(found, one.regularization_[: len(found)], rtol=1e-12)
    np.testing.assert_allclose(one.regularization_, other.regularization_, rtol=1e-12)


def assert_same_answers(one, other, case):
    X = case.X
    if isinstance(one, EDRVFLRegressor):
        unit = np.std(case.y, axis=0) + 1e-300
        pairs = zip(one.staged_predict(X), other.staged_predict(X), strict=True)
        for a, b in itertools.chain(
            pairs, zip(one.predict_interval(X), other.predict_interval(X), strict=True)
        ):
            np.testing.assert_allclose(a / unit, b / unit, rtol=NEAR_VALUES, atol=NEAR_VALUES)
        return
    np.testing.assert_array_equal(one.classes_, other.classes_)
    if case.kind != "parquet":  # whose text comes as strings, not as objects
        assert one.classes_.dtype == other.classes_.dtype
    for a, b in zip(one.staged_predict_proba(X), other.staged_predict_proba(X), strict=True):
        np.testing.assert_allclose(a, b, atol=NEAR, rtol=0)
    if one.coverage_ is None:
        assert other.coverage_ is None
        return
    thresholds = [model.coverage_.record.threshold(0.8) for model in (one, other)]
    np.testing.assert_allclose(*thresholds, atol=NEAR)
    P = one.predict_proba(X)
    # the largest one of a row is always in, so two that are equal may not be compared either
    clear = (np.abs(P - thresholds[0]).min(axis=1) > 2 * NEAR) & (_gaps(P) > 2 * NEAR)
    np.testing.assert_array_equal(one.predict_set(X, 0.8)[clear], other.predict_set(X, 0.8)[clear])


def assert_same_figures(one, other):
    names = ["loo_accuracies_", "loo_log_losses_", "loo_r2_scores_", "n_hidden_", "n_layers_"]
    for name in [*names, "neurons_kept_", "n_features_in_"]:
        assert hasattr(one, name) == hasattr(other, name)
        if hasattr(one, name):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=NEAR, err_msg=name)
