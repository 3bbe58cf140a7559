"""Ridge regression with a kernel: in the dual over all rows, or in the primal over landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._seam.arrays import Array, array_namespace, row_blocks
from .._seam.linalg import Cholesky, add_to_diagonal, factorise, half_inverse, solve
from .equations import NormalEquations, Regression, dual_system, linear_system
from .leave_one_out import from_dual
from .solve import ridge


@dataclass(frozen=True, slots=True, eq=False)
class KernelReadOut:
    """What one penalty gives: coefficients of the kernel functions, and leave-one-out scores."""

    alpha: Array  # (landmarks, k)
    loo: Array  # (judged rows, k)
    lam: float
    regular: bool  # False: the system was numerically singular


# From so many rows on a factor in float32 saves time. It serves where the penalty is so many times the one
# at which float32 takes the system for a singular one.
ROUGH_ROWS, ROUGH_PENALTIES = 128, 64


def kernel_ridge(K: Array, problem: Regression, lam: float) -> KernelReadOut:
    """alpha = W^(1/2) (W^(1/2) K W^(1/2) + lam I)^-1 W^(1/2) Y, with K in place of DD' in Eq. 16.

    K (m, m) is overwritten. Of the problem only targets, weights, twins and judged rows are used. A K of
    float64 is factorised in float32 where the penalty is large enough; then a second solve, for what the
    first one left, brings the solution back to the digits of float64.
    """
    xp, system = array_namespace(K), dual_system(problem, K)
    trace = float(xp.sum(xp.linalg.diagonal(system.G)))
    enough = lam > ROUGH_PENALTIES * float(xp.finfo(xp.float32).eps) * trace
    rough = K.dtype == xp.float64 and K.shape[0] >= ROUGH_ROWS and enough and problem.groups is None
    G, R = add_to_diagonal(system.G, lam), system.R
    if rough:
        factor = factorise(xp.astype(G, xp.float32), overwrite=True)
        solution = _solved_roughly(factor, R)
        solution += _solved_roughly(factor, R - G @ solution)
    else:
        factor = factorise(G, overwrite=True)
        solution = solve(factor, R)
    root = problem.root
    alpha = solution if root is None else solution * root[:, None]
    return KernelReadOut(alpha, from_dual(problem, factor, solution), lam, bool(factor.regular))


def _solved_roughly(factor: Cholesky, B: Array) -> Array:
    """Solve by a factor in float32; return the solution as float64."""
    xp = array_namespace(B)
    return xp.astype(solve(factor, xp.astype(B, xp.float32)), xp.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LandmarkFeatures:
    """Features whose products are the kernel as far as landmarks know it, and their normal equations."""

    problem: Regression  # its D is K_mZ L^-T, with K_ZZ = LL'
    whitening: Array  # L^-T (s, s)
    system: NormalEquations

    def ridge(self, lam: float) -> KernelReadOut:
        """Fit coefficients of the landmarks' kernel functions."""
        system = NormalEquations(self.system.G * 1.0, self.system.R)  # the solver overwrites G
        found = ridge(self.problem, lam, system)
        return KernelReadOut(self.whitening @ found.beta, found.loo, lam, not bool(found.fell_back))


def landmark_features(K: Array, of_landmarks: Array, problem: Regression) -> LandmarkFeatures:
    """K L^-T with LL' = `of_landmarks` (s, s), for K (m, s), which is overwritten (Nystroem)."""
    xp = array_namespace(K)
    G = xp.astype(of_landmarks, xp.float64)
    jitter = 0.0
    while not bool((factor := factorise(add_to_diagonal(G * 1.0, jitter))).regular):
        jitter = 4 * jitter or float(xp.finfo(xp.float64).eps) * 4 * G.shape[0]
    whitening = xp.astype(half_inverse(factor), K.dtype)
    for rows in row_blocks(K, K.shape[0], 2 * K.shape[1]):
        K[rows, :] = K[rows, :] @ whitening
    problem = replace(problem, D=K)
    return LandmarkFeatures(problem, whitening, linear_system(problem, K.dtype))
