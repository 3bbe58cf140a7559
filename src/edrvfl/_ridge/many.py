"""Many read-outs of the same features: they share what does not depend on lambda and omega."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy

from .._arrays import array_namespace
from .choose import ridge_by_loo
from .equations import Regression, layer_equations, reweighted
from .solve import ReadOut, gram_of_rows, ridge


def read_outs(problem: Regression, lam: Any, stacked: bool = False, want_loo: bool = True) -> ReadOut:
    """Fit r read-outs on the same features.

    Parameters
    ----------
    problem : Regression with D (..., m, c) and omega (..., r, m) or None
    lam : NumPy array of shape (..., r), one penalty for each read-out; None lets leave-one-out choose the
        penalty of a single read-out
    stacked : whether the systems are solved side by side, which suits a GPU, or one after another, which
        holds one system at a time and shares more on a CPU
    want_loo : whether the scores are wanted too where leave-one-out chooses the penalty

    Returns
    -------
    ReadOut
        beta of shape (..., r, c, k)
    """
    D = problem.D
    if lam is None:
        return _stack([ridge_by_loo(_read_out(problem, 0), want_loo)])
    if stacked and not numpy.any(lam == 0):
        return ridge(replace(problem, D=D[..., None, :, :]), lam)
    if D.ndim > 2:  # the Moore-Penrose solution of one read-out keeps all from being stacked
        each = [read_outs(replace(_read_out(problem, i), D=D[i, ...]), lam[i]) for i in range(D.shape[0])]
        return _stack(each)
    if lam.shape[-1] == 1:
        return _stack([ridge(_read_out(problem, 0), float(lam[0]))])
    if problem.primal:
        shared = layer_equations(replace(problem, omega=None))
        alone = [_read_out(problem, i) for i in range(len(lam))]
        return _stack(
            [ridge(one, float(l), reweighted(shared, one)) for one, l in zip(alone, lam, strict=True)]
        )
    K = gram_of_rows(D)
    # A ridge with weights makes a K of its own; one without weights overwrites the shared one.
    own = problem.weights is not None
    return _stack(
        [ridge(_read_out(problem, i), float(l), K=K if own else 1.0 * K) for i, l in enumerate(lam)]
    )


def _read_out(problem: Regression, i: int) -> Regression:
    return problem if problem.omega is None else replace(problem, omega=problem.omega[i, ...])


def _stack(each: list[ReadOut]) -> ReadOut:
    """Put read-outs side by side along a new first axis."""
    first, xp = each[0], array_namespace(each[0].beta)
    if len(each) == 1:  # a view: scores of many classes are large
        loo = None if first.loo is None else first.loo[None, ...]
        return ReadOut(
            first.beta[None, ...], xp.reshape(first.fell_back, (1, *first.fell_back.shape)), loo, first.lam
        )
    loo = None if first.loo is None else xp.stack([one.loo for one in each])
    beta, fell_back = (xp.stack([getattr(one, name) for one in each]) for name in ("beta", "fell_back"))
    return ReadOut(beta, fell_back, loo)
