"""Ridge regression with a Laplace kernel: in the dual over all rows, or in the primal over landmarks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._seam.arrays import Array, array_namespace, device, row_blocks
from .._seam.linalg import add_to_diagonal, factorise, half_inverse, solve
from .equations import NormalEquations, Regression, dual_system, normal_equations
from .leave_one_out import from_dual
from .solve import ridge


@dataclass(frozen=True, slots=True, eq=False)
class KernelReadOut:
    """What one penalty gives: coefficients of the kernel functions, and leave-one-out scores."""

    alpha: Array  # (landmarks, k)
    loo: Array  # (judged rows, k)
    lam: float
    regular: bool  # False: the system was numerically singular


class Measure:
    """Distances to the rows of Z (s, d), whose part of the work is done once."""

    def __init__(self, Z: Array) -> None:
        xp = array_namespace(Z)
        self._bound = float(xp.finfo(Z.dtype).max) ** 0.25
        self._center = xp.mean(xp.clip(Z, -self._bound, self._bound), axis=0)  # large offsets would cancel
        Z = self._centred(Z)
        self._squares, self._minus = xp.sum(Z * Z, axis=1), -2 * xp.matrix_transpose(Z)

    def _centred(self, X: Array) -> Array:
        """Move the centre to 0. Absurdly far rows come nearer, so that no square overflows."""
        return array_namespace(X).clip(X - self._center, -self._bound, self._bound)

    def __call__(self, X: Array) -> Array:
        """|x - z| = sqrt(|x|^2 + |z|^2 - 2 x'z) for every row x of X (m, d), by blocks.

        What could be rounding is 0: a copy of a row is where the row is, whichever library multiplies.
        """
        xp, s = array_namespace(X), self._squares.shape[0]
        rounding = 16 * float(xp.finfo(X.dtype).eps)
        out = xp.empty((X.shape[0], s), dtype=X.dtype, device=device(X))
        for rows in row_blocks(X, X.shape[0], 2 * s + X.shape[1]):
            block = self._centred(X[rows, :])
            own = xp.sum(block * block, axis=1)[:, None]
            squares = block @ self._minus
            squares += own
            squares += self._squares
            out[rows, :] = xp.sqrt(xp.where(squares > rounding * own, squares, xp.zeros_like(squares)))
        return out


def distances(X: Array) -> Array:
    """Return the distances between the rows of X, exactly 0 from each row to itself.

    Rounding would keep a row from itself, in float32 by a thousandth.
    """
    xp, D = array_namespace(X), Measure(X)(X)
    places = xp.arange(X.shape[0], device=device(X))
    for rows in row_blocks(D, D.shape[0], 2 * D.shape[1]):
        D[rows, :] = xp.where(places[rows, None] == places, 0 * D[rows, :], D[rows, :])
    return D


def laplace(distance: Array, width: float) -> Array:
    """exp(-distance / width)."""
    xp = array_namespace(distance)
    K = xp.empty_like(distance)
    for rows in row_blocks(K, K.shape[0], 2 * K.shape[1]):
        K[rows, :] = xp.exp(distance[rows, :] * (-1 / width))
    return K


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
    return LandmarkFeatures(problem, whitening, normal_equations(problem, dtype=K.dtype))


def mean_squared_gradients(X: Array, alpha: Array, counts: Array, width: float) -> Array:
    """mean_x sum_c (ds_c / dx_j)^2 over the rows of X (m, d), weighted by their counts, for each column j.

    The score s_c(x) = sum_z alpha_zc exp(-|x - z| / width) has the gradient
    -sum_z alpha_zc M(x, z) (x - z) with M = exp(-|x - z| / width) / (width |x - z|). At z itself there is a
    kink, which counts as flat.
    """
    xp = array_namespace(X)
    distance = distances(X)
    near = distance < 1e-3 * float(xp.max(distance))  # the row itself, as far as rounding lets one see
    M = laplace(distance, width) / (width * xp.where(near, 0 * distance + 1, distance))
    M = xp.where(near, 0 * M, M)
    total = xp.zeros((X.shape[1],), dtype=X.dtype, device=device(X))
    for c in range(alpha.shape[1]):
        weighted = M * alpha[:, c]
        gradient = xp.sum(weighted, axis=1)[:, None] * X - weighted @ X
        total += counts @ (gradient * gradient)
    return total / xp.sum(counts)
