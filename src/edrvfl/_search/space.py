"""Which configurations a search tries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy
from scipy import stats
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_random_state

# The box of the paper's Table 2: lambda 2^-12 to 2^12, n 20 to 1000, gamma 0.5 to 2, alpha -2 to 2, p in
# [0, 1), omega_r in (0, 1]. Eight widths stand for [20, 1000], so that networks of one width share draws.
PAPER_BOX: Mapping[str, Any] = {
    "n_hidden": (20, 32, 50, 100, 200, 316, 500, 1000),
    "norm_scale": stats.uniform(0.5, 1.5),
    "norm_shift": stats.uniform(-2, 4),
    "prune_rate": stats.uniform(0, 0.999),
    "regularization": stats.loguniform(2.0**-12, 2.0**12),
    "correct_weight": stats.uniform(0.001, 0.999),
}
READ_OUT = ("regularization", "correct_weight")  # networks that differ only in these share their features
NEUTRAL_EVERY = 5  # every fifth draw switches pruning off (p = 0), every fifth weighting (omega_r = 1)


def draw_configurations(
    estimator: Any, distributions: Any, n_iter: int | None, random_state: Any
) -> list[dict[str, Any]]:
    """Return the configurations to try of dicts of lists and scipy distributions; None is the paper's box.

    `n_iter` says how many are drawn; None tries every combination of the lists, in order.
    """
    if n_iter is None and distributions is None:
        raise ValueError(
            "n_iter=None tries all combinations of lists, but the paper's box has distributions."
        )
    if n_iter is None:
        return list(ParameterGrid(distributions))
    if distributions is None:
        return paper_configurations(n_iter, random_state, estimator)
    spaces: list[Mapping[str, Any]] = ParameterSampler(distributions, n_iter).param_distributions
    # The grid refuses lists that are empty or no lists, with scikit-learn's messages.
    ParameterGrid([_select(space, lambda _, values: not hasattr(values, "rvs")) for space in spaces])
    if len(spaces) != 1:
        return _sample(spaces, n_iter, random_state)
    # Draw several read-outs for each hidden setting, because such networks can share their features.
    state = check_random_state(random_state)
    hidden = _select(spaces[0], lambda name, _: name not in READ_OUT)
    read_out = _select(spaces[0], lambda name, _: name in READ_OUT)
    n_read_outs = len(ParameterSampler(read_out, _read_outs_each(n_iter)))
    n_hidden = len(ParameterSampler(hidden, math.ceil(n_iter / n_read_outs)))
    settings = _sample(hidden, n_hidden, state)
    drawn = [(one, _sample(read_out, math.ceil(n_iter / n_hidden), state)) for one in settings]
    return [setting | weights for setting, several in drawn for weights in several][:n_iter]


def _select(space: Mapping[str, Any], keep: Any) -> dict[str, Any]:
    return {name: values for name, values in space.items() if keep(name, values)}


def _sample(space: Any, n: int, random_state: Any) -> list[dict[str, Any]]:
    """Draw n configurations, or as many as lists have."""
    return list(ParameterSampler(space, len(ParameterSampler(space, n)), random_state=random_state))


def _read_outs_each(n_iter: int) -> int:
    """Return how many read-outs a hidden setting gets: half as many as there are settings, and at most 10."""
    return min(10, max(1, round(math.sqrt(n_iter / 2))))


def paper_configurations(
    n_iter: int, random_state: Any = None, estimator: Any = None
) -> list[dict[str, Any]]:
    """Draw configurations from the box of the paper's Table 2: hidden settings times read-outs.

    200 configurations are 20 hidden settings with 10 read-outs each, the form in which networks share
    work; in general there are twice as many hidden settings as read-outs, until a setting has 10. An
    estimator whose read-out has nothing to tune gets as many hidden settings as configurations. One
    pruning rate in five is 0 and one weight omega_r in five is 1. Every value is drawn, and only those that
    the estimator uses are kept, so estimators that get the same seed share their settings.

    Parameters
    ----------
    n_iter : int
        How many configurations.

    random_state : int, RandomState instance or None, default=None
        Seed.

    estimator : EDRVFLClassifier or EDRVFLRegressor, default=None
        The method that is tuned. What it switches off (`renormalize=False`, `correct_weight=1`,
        `prune_rate=0`) or leaves to leave-one-out (`regularization="loo"`) is not drawn. None is WPedRVFL,
        which uses everything.

    Returns
    -------
    configurations : list of dict
        Parameters of the estimator.

    Examples
    --------
    >>> from edrvfl import paper_configurations, variant
    >>> paper_configurations(2, random_state=0, estimator=variant("edRVFL_O"))
    [{'n_hidden': 200, 'regularization': 1.67381}, {'n_hidden': 100, 'regularization': 7.70094}]
    """
    if n_iter < 1:
        raise ValueError(f"n_iter must be at least 1, got {n_iter}.")
    unused = set() if estimator is None else _switched_off(estimator)
    seeds = check_random_state(random_state)
    of_hidden, of_read_out = (numpy.random.RandomState(seeds.randint(2**31 - 1)) for _ in range(2))
    n_read_outs = 1 if unused.issuperset(READ_OUT) else _read_outs_each(n_iter)
    widths: list[int] = []

    def draw(name: str, state: numpy.random.RandomState) -> Any:
        if name != "n_hidden":
            return float(f"{PAPER_BOX[name].rvs(random_state=state):.6g}")
        if not widths:  # each width comes equally often
            widths.extend(PAPER_BOX[name][i] for i in state.permutation(len(PAPER_BOX[name])))
        return widths.pop()

    drawn: list[dict[str, Any]] = []
    for h in range(math.ceil(n_iter / n_read_outs)):
        hidden = {name: draw(name, of_hidden) for name in PAPER_BOX if name not in READ_OUT}
        if h % NEUTRAL_EVERY == 0:
            hidden["prune_rate"] = 0.0
        for r in range(n_read_outs):
            read_out = {name: draw(name, of_read_out) for name in READ_OUT}
            if (h * n_read_outs + r) % NEUTRAL_EVERY == 0:
                read_out["correct_weight"] = 1.0
            drawn.append(_select(hidden | read_out, lambda name, _: name not in unused))
    return drawn[:n_iter]


def _switched_off(estimator: Any) -> set[str]:
    """Name the parameters of the box that do nothing in this estimator, or that it does not leave open."""
    off = set() if estimator.renormalize else {"norm_scale", "norm_shift"}
    # a penalty for each layer by leave-one-out did better on validation rows than one that is drawn for all
    fixed = {"correct_weight": 1, "prune_rate": 0, "regularization": "loo"}
    return off | {name for name, value in fixed.items() if getattr(estimator, name) == value}
