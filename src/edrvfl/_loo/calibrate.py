"""From probabilities that only rank to probabilities that can be believed, by leave-one-out.

The fit runs on the host in float64, so every array library gets the same numbers. Two rules:

- "temperature": softmax(a log P), with one inverse temperature a > 0. It changes no prediction.
- "matrix": structured matrix scaling (Berta, Holzmueller, Jordan, Bach 2025) after the temperature: a
  multinomial logistic regression around the identity. Two classes have an increasing quadratic curve in
  the log-odds instead, so their ranking stays as it is.

Both shrink the logits by n/(n+2k), k at most 16: a guard from when leave-one-out was too good on few rows.
Both end with a mixture with 1/(n+1) of the uniform distribution, so no
probability is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import numpy
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, softmax

from .._seam.arrays import Array, array_namespace, from_numpy
from .._seam.fields import Between, floats

SMALLEST = 1e-30  # added to probabilities before a logarithm, also in float32
LOG_A = math.log(2.0**-6), math.log(2.0**20)  # the bounds of log a
LEAST_SLOPE = 0.05  # of the curve of two classes, against 1 for the identity
HUGE = 1e9  # no number of a calibration is larger
WIDE = {"low": -HUGE, "high": HUGE, "own": True}
MOST_CLASSES = 32  # above, the matrix is diagonal: a full one would cost too much
HESSIAN_FLOPS = 1e9  # what the Hessian of the matrix may cost; above, a part of the rows gives it


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A map from the ensemble's probabilities to calibrated ones. The defaults leave them nearly as they are.

    The logarithms are multiplied by `a`. Those of two classes are bent, see `bend`. Those of more classes are
    multiplied by a matrix, if there is one, after a first mixture with the uniform distribution.
    """

    a: Annotated[float, Between(1 / HUGE, HUGE)] = 1.0  # the inverse temperature
    uniform: Annotated[float, Between(0, 1)] = 0.0  # how much of the answer is the uniform distribution
    floor: Annotated[float, Between(1e-40, 1)] = SMALLEST  # added to every probability before the logarithm
    shift: Annotated[float, Between(-HUGE, HUGE)] = 0.0  # of the log-odds of two classes
    low_slope: Annotated[float, Between(0, HUGE)] = 1.0
    high_slope: Annotated[float, Between(0, HUGE)] = 1.0
    low: Annotated[float, Between(-HUGE, HUGE)] = 0.0
    high: Annotated[float, Between(-HUGE, HUGE)] = 0.0
    # with many classes the diagonal of the matrix
    matrix: Annotated[Array, floats("k", "k", **WIDE)] | Annotated[Array, floats("k", **WIDE)] | None = None
    offset: Annotated[Array, floats("k", **WIDE)] | None = None  # beside the matrix

    def __call__(self, P: Array) -> Array:
        """Return calibrated probabilities of the shape (..., rows, k) of P. All are above 0."""
        xp = array_namespace(P)
        top = xp.max(P, axis=-1, keepdims=True)
        # the winner's logarithm is exactly 0, so even one step of float32 below it is seen
        logits = self.a * xp.log((P + self.floor) / (top + self.floor))
        if P.shape[-1] == 2 and (self.shift, self.low_slope, self.high_slope) != (0, 1, 1):
            z = self.bend(logits[..., 1] - logits[..., 0])
            logits = xp.stack([xp.zeros_like(z), z], axis=-1)
        if self.matrix is None:
            Q = self.mix(softmax(logits, axis=-1))
            # rounding may let another class reach the winner; one step down keeps the prediction
            reached = (top > P) & (xp.max(Q, axis=-1, keepdims=True) == Q)
            return xp.where(reached, Q * (1 - 2 * float(xp.finfo(P.dtype).eps)), Q)
        Z = xp.log(self.mix(softmax(logits, axis=-1)))
        matrix, offset = from_numpy(self.matrix, P), from_numpy(self.offset, P)
        logits = (Z @ xp.matrix_transpose(matrix) if matrix.ndim == 2 else Z * matrix) + offset
        return self.mix(softmax(logits, axis=-1))

    def bend(self, z: Array) -> Array:
        """shift + the integral of a slope that goes linearly from low_slope at `low` to high_slope at `high`.

        Outside [low, high] the slope stays, so the curve increases everywhere if both slopes are positive.
        """
        return (
            self.shift + self.low_slope * z + (self.high_slope - self.low_slope) * bow(z, self.low, self.high)
        )

    def mix(self, Q: Array) -> Array:
        """Return probabilities with their part of the uniform distribution."""
        return (1 - self.uniform) * Q + self.uniform / Q.shape[-1]


def bow(z: Array, low: float, high: float) -> Array:
    """Integrate from 0 to z a slope that goes linearly from 0 at `low` to 1 at `high`."""
    xp = array_namespace(z)
    width = max(high - low, SMALLEST)
    at_zero = (min(max(0.0, low), high) - low) ** 2 / (2 * width) + max(0.0, high) - high
    return (xp.clip(z, low, high) - low) ** 2 / (2 * width) + (xp.clip(z, high, None) - high) - at_zero


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """The rows that calibrate, in float64."""

    log_P: numpy.ndarray  # (m, k)
    codes: numpy.ndarray  # (m,)
    w: numpy.ndarray  # (m,), weights, which count rows
    floor: float

    @property
    def n(self) -> float:
        return float(numpy.sum(self.w))

    @property
    def uniform(self) -> float:
        """1 / (n + 1), never above a half: the prediction must stay visible."""
        return 1 / (max(self.n, 1.0) + 1)

    @property
    def shrinkage(self) -> float:
        """The factor of the fitted logits, n / (n + 2k); more than 16 classes count as 16."""
        return self.n / (self.n + 2 * min(self.log_P.shape[1], 16))


def calibrate(
    P: numpy.ndarray,
    codes: numpy.ndarray,
    weights: numpy.ndarray | None,
    rule: str,
    start: Calibration | None = None,
    floor: float = SMALLEST,
) -> Calibration:
    """Fit a calibration to leave-one-out probabilities.

    Parameters
    ----------
    P : array of shape (m, k), the ensemble's probabilities of each row by networks fitted without it
    codes : array of shape (m,), the places of the rows' classes
    weights : array of shape (m,) or None, sample weights: weight 2 is the row twice
    rule : "temperature" or "matrix"
    start : a calibration that is near, for instance that of the depth before. It saves time
    floor : what is added to every probability before the logarithm, for those that are 0
    """
    sample = _sample(P, codes, weights, floor)
    if not len(sample.codes):
        return Calibration(uniform=sample.uniform)
    a = _temperature(sample, start)
    if rule == "temperature":
        return Calibration(a * sample.shrinkage, sample.uniform, sample.floor)
    plain = Calibration(a, sample.uniform, sample.floor)
    if P.shape[1] == 2:
        return _curved(plain, sample)
    return _scaled(plain, sample, start)


def log_losses(P: numpy.ndarray, codes: numpy.ndarray) -> numpy.ndarray:
    """Return -log P of each row's own class."""
    own = P[numpy.arange(len(codes)), codes].astype(numpy.float64)
    losses: numpy.ndarray = -numpy.log(numpy.maximum(own, SMALLEST))
    return losses


def _sample(P: numpy.ndarray, codes: numpy.ndarray, weights: numpy.ndarray | None, floor: float) -> _Sample:
    w = numpy.ones(len(codes)) if weights is None else numpy.asarray(weights, dtype=numpy.float64)
    P = P.astype(numpy.float64) + floor
    return _Sample(numpy.log(P / P.max(axis=1, keepdims=True)), codes, w, floor)


def _temperature(sample: _Sample, start: Calibration | None) -> float:
    """Minimise the cross-entropy of softmax(a log P), in log a, by Newton's method within a bracket.

    1/(n+1) of each label is uniform, as in the answers: on separable rows a stays finite.
    """
    Z, w, u = sample.log_P, sample.w, sample.uniform
    own = Z[numpy.arange(len(Z)), sample.codes]
    target = w @ ((1 - u) * own + u * Z.mean(axis=1))
    low, high = LOG_A
    t = 0.0 if start is None else min(max(math.log(start.a), low), high)
    for _ in range(60):
        a = math.exp(t)
        E = numpy.exp(a * Z)  # the largest of a row is 1
        total, EZ = E.sum(axis=1), E * Z
        mean = EZ.sum(axis=1) / total
        variance = numpy.einsum("ij,ij->i", EZ, Z) / total - mean**2
        first = w @ mean - target  # of the convex function of a
        if first > 0:
            high = t
        else:
            low = t
        second = a * (w @ variance) + first  # in log a, both divided by a
        step = -first / second if second > 0 else math.inf
        if not low < t + step < high:
            step = (low + high) / 2 - t
        t += step
        if abs(step) < 1e-6:  # Newton's method squares the error
            break
    return math.exp(t)


def _curved(plain: Calibration, sample: _Sample) -> Calibration:
    """Bend the log-odds of two classes by a logistic regression around the identity.

    The curve has a shift and two slopes, at the lowest and the highest log-odds of the sample. A slope below
    the least one is held there: of the four sets of held slopes the best admissible one is the optimum,
    because the problem is convex.
    """
    z = plain.a * (sample.log_P[:, 1] - sample.log_P[:, 0])
    low, high = float(z.min()), float(z.max())
    B = bow(z, low, high)
    features = numpy.stack([numpy.ones_like(z), z - B, B], axis=1)
    u = sample.uniform
    target = (1 - u) * (sample.codes == 1) + u / 2
    tried = []
    for held in ((), (1,), (2,), (1, 2)):
        theta, loss = _logistic(features, target, sample.w, held)
        if min(theta[1:]) >= LEAST_SLOPE:
            tried.append((loss, theta.tolist()))
            if not held:  # the optimum without a bound
                break
    shift, low_slope, high_slope = (sample.shrinkage * value for value in min(tried)[1])
    slopes = {"shift": shift, "low_slope": low_slope, "high_slope": high_slope}
    return replace(plain, **slopes, low=low, high=high)


def _logistic(
    A: numpy.ndarray, target: numpy.ndarray, w: numpy.ndarray, held: tuple[int, ...]
) -> tuple[numpy.ndarray, float]:
    """Minimise cross-entropy(A theta) + |theta - (0, 1, 1)|^2, some slopes held at the least one."""
    identity = numpy.array([0.0, 1.0, 1.0])
    theta = identity.copy()
    theta[list(held)] = LEAST_SLOPE
    free = [i for i in range(3) if i not in held]

    def value(theta: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        eta = A @ theta
        loss = w @ (numpy.logaddexp(0, eta) - target * eta) + numpy.sum((theta - identity) ** 2)
        return float(loss), eta

    loss, eta = value(theta)
    for _ in range(50):
        p = expit(eta)
        gradient = (A.T @ (w * (p - target)) + 2 * (theta - identity))[free]
        H = (A.T * (w * p * (1 - p))) @ A + 2 * numpy.eye(3)
        step = numpy.zeros(3)
        # beside a huge weight the penalty is lost in rounding, and H is singular
        step[free] = -numpy.linalg.lstsq(H[numpy.ix_(free, free)], gradient)[0]
        decrease = -float(gradient @ step[free])
        if decrease < 1e-14 * (1 + abs(loss)):
            break
        size = 1.0
        while True:
            new, eta = value(theta + size * step)
            if new <= loss - 0.1 * size * decrease or size < 1e-9:
                break
            size /= 2
        theta, loss = theta + size * step, new
    return theta, loss


def _scaled(plain: Calibration, sample: _Sample, start: Calibration | None) -> Calibration:
    """Scale Z, the logarithms after the temperature, to Z + Z W' + b by a penalised logistic regression."""
    k = sample.log_P.shape[1]
    Z = numpy.log(plain.mix(softmax(plain.a * sample.log_P, axis=1)))
    problem = _Scaling(Z, sample)
    identity = numpy.ones(k) if problem.diagonal else numpy.eye(k)
    W, b, s = numpy.zeros_like(identity), numpy.zeros(k), sample.shrinkage
    if start is not None and start.matrix is not None and start.offset is not None:
        W, b = start.matrix / s - identity, start.offset / s
    theta = _minimise(problem, numpy.vstack([W.T, b]))
    W = theta[0] if problem.diagonal else theta[:-1].T
    return replace(plain, matrix=s * (identity + W), offset=s * theta[-1])


class _Scaling:
    """Mean cross-entropy of Z + Z W' + b, plus a penalty around the identity.

    theta holds W' and below it b, or with many classes the diagonal of W and below it b. The penalty is
    (|b|^2 + |diagonal of W|^2 + (k-1) |the rest of W|^2) / n. It is a k-th of the published one, which held
    letter, with 26 classes, too close to the identity (benchmarks/calibration.py).
    """

    def __init__(self, Z: numpy.ndarray, sample: _Sample) -> None:
        (m, k), n, u = Z.shape, sample.n, sample.uniform
        self.Z, self.w, self.diagonal = Z, sample.w / n, k > MOST_CLASSES
        self.A = numpy.concatenate([Z, numpy.ones((m, 1))], axis=1)
        self.target = numpy.full((m, k), u / k)
        self.target[numpy.arange(m), sample.codes] += 1 - u
        self.target *= self.w[:, None]
        self.penalty = numpy.full((2 if self.diagonal else k + 1, k), 1 / n)
        if not self.diagonal:
            self.penalty[:k] *= k - 1 - (k - 2) * numpy.eye(k)

    def __call__(self, theta: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        """Return the loss and its gradient."""
        logits = self._logits(theta)
        logits -= logits.max(axis=1, keepdims=True)
        rest = numpy.exp(logits)
        total = rest.sum(axis=1)
        loss = self.w @ numpy.log(total) - numpy.vdot(self.target, logits)
        rest *= (self.w / total)[:, None]
        rest -= self.target
        gradient = (
            numpy.stack([(self.Z * rest).sum(axis=0), rest.sum(axis=0)]) if self.diagonal else self.A.T @ rest
        )
        return float(loss + numpy.vdot(self.penalty, theta**2)), gradient + 2 * self.penalty * theta

    def _logits(self, theta: numpy.ndarray) -> numpy.ndarray:
        return self.Z * (1 + theta[0]) + theta[1] if self.diagonal else self.Z + self.A @ theta

    def curvature(self, theta: numpy.ndarray) -> numpy.ndarray:
        """Return about the Hessian, summed over as many rows as the budget allows."""
        step = math.ceil(len(self.Z) * theta.size**2 / HESSIAN_FLOPS)
        A, w, (c, k) = self.A[::step], self.w[::step], theta.shape
        w = w / w.sum()
        Q = softmax(self._logits(theta)[::step], axis=1)
        outer = (A[:, :, None] * (numpy.sqrt(w)[:, None] * Q)[:, None, :]).reshape(len(A), -1)
        H = -(outer.T @ outer).reshape(c, k, c, k)
        for j in range(k):
            H[:, j, :, j] += (A.T * (w * Q[:, j])) @ A
        square = H.reshape(theta.size, theta.size)
        # softmax does not see a shift of all logits, and beside huge weights the penalty is lost in rounding
        square += numpy.diag(2 * self.penalty.ravel() + 1e-10 * square.trace() / theta.size)
        return square

    def own_curvature(self, theta: numpy.ndarray) -> numpy.ndarray:
        """Return the diagonal of the Hessian of a diagonal W and b."""
        Q = softmax(self._logits(theta), axis=1)
        Q = (Q - Q * Q) * self.w[:, None]
        return numpy.stack([(Q * self.Z**2).sum(axis=0), Q.sum(axis=0)]) + 2 * self.penalty


def _minimise(problem: _Scaling, start: numpy.ndarray) -> numpy.ndarray:
    """Minimise by L-BFGS in coordinates in which the curvature at the start is about the identity."""
    if problem.diagonal:
        L = numpy.sqrt(problem.own_curvature(start)).ravel()

        def solve(v: numpy.ndarray, trans: int) -> numpy.ndarray:  # noqa: ARG001
            return v / L
    else:
        L = numpy.linalg.cholesky(problem.curvature(start))

        def solve(v: numpy.ndarray, trans: int) -> numpy.ndarray:
            solved: numpy.ndarray = solve_triangular(L, v, lower=True, trans=trans, check_finite=False)
            return solved

    def place(v: numpy.ndarray) -> numpy.ndarray:
        return start + solve(v, 1).reshape(start.shape)

    def value(v: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        loss, gradient = problem(place(v))
        return loss, solve(gradient.ravel(), 0)

    # the loss is within gtol^2 of its minimum where the curvature is about 1
    options = {"gtol": 1e-7, "ftol": 1e-15, "maxiter": 500}
    found = minimize(value, numpy.zeros(start.size), jac=True, method="L-BFGS-B", options=options)
    return place(found.x)
