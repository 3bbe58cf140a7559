"""Ridge regression with a kernel: in the dual over all rows, or in the primal over landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._seam.arrays import Array, array_namespace, row_blocks
from .._seam.linalg import add_to_diagonal, factorise, half_inverse, solve
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


def kernel_ridge(K: Array, problem: Regression, lam: float) -> KernelReadOut:
    """alpha = W^(1/2) (W^(1/2) K W^(1/2) + lam I)^-1 W^(1/2) Y, with K in place of DD' in Eq. 16.

    K (m, m) is overwritten. Of the problem only targets, weights, twins and judged rows are used.
    """
    system = dual_system(problem, K)
    factor = factorise(add_to_diagonal(system.G, lam))
    solution, root = solve(factor, system.R), problem.root
    alpha = solution if root is None else solution * root[:, None]
    return KernelReadOut(alpha, from_dual(problem, factor, solution), lam, bool(factor.regular))


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
