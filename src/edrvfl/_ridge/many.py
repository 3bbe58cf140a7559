"""Many read-outs of the same features: they share what does not depend on lambda and omega."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy

from .._seam.arrays import Array, array_namespace, on_accelerator
from .choose import ridge_by_loo
from .equations import Regression, dual_system, gram_of_rows, layer_equations, reweighted
from .solve import ReadOut, ridge


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
        return together([ridge_by_loo(_read_out(problem, 0), want_loo, on_accelerator(problem.D))])
    if stacked and not numpy.any(lam == 0):
        return ridge(replace(problem, D=D[..., None, :, :]), lam)
    if D.ndim > 2:  # a read-out with lambda 0 needs singular values, so all are solved one by one
        each = [read_outs(replace(_read_out(problem, i), D=D[i, ...]), lam[i]) for i in range(D.shape[0])]
        return together(each)
    if lam.shape[-1] == 1:
        return together([ridge(_read_out(problem, 0), float(lam[0]))])
    alone = [_read_out(problem, i) for i in range(len(lam))]
    if problem.primal:
        shared = layer_equations(replace(problem, omega=None))
        systems = (reweighted(shared, one) for one in alone)
    else:
        K = gram_of_rows(D)
        # A system without weights is K itself, which the solver overwrites; weights make a new one.
        systems = (dual_system(one, 1.0 * K if one.weights is None else K) for one in alone)
    systems_of = zip(alone, lam, systems, strict=True)
    return together([ridge(one, float(l), system) for one, l, system in systems_of])


def _read_out(problem: Regression, i: int) -> Regression:
    return problem if problem.omega is None else replace(problem, omega=problem.omega[i, ...])


def together(each: list[ReadOut]) -> ReadOut:
    """Put read-outs side by side along a new first axis."""

    def join(name: str) -> Array:
        parts = [getattr(one, name) for one in each]
        # One read-out stays a view: scores of many classes are large.
        return parts[0][None, ...] if len(parts) == 1 else array_namespace(parts[0]).stack(parts)

    loo = None if each[0].loo is None else join("loo")
    return ReadOut(join("beta"), join("fell_back"), loo, each[0].lam)
