"""Calibration: the fits against scipy's optimiser on the printed objectives, and laws that must hold."""

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from edrvfl._loo.calibrate import LEAST_SLOPE, MOST_CLASSES, Calibration, calibrate, log_losses

RULES = ["temperature", "matrix"]


def log_loss(P, codes, weights):
    return np.average(log_losses(P, codes), weights=weights)


def sample(rng, m, k, sharpness=2.0):
    """Draw probabilities that are too timid and a little biased, classes, and weights that count rows."""
    logits = rng.standard_normal((m, k))
    truth = softmax(sharpness * (logits + 0.5 * rng.standard_normal(k)) + 0.3 * logits[:, ::-1], axis=1)
    codes = (rng.random((m, 1)) < truth.cumsum(axis=1)).argmax(axis=1)
    return softmax(logits, axis=1), codes, rng.integers(1, 4, m)


def smoothed(codes, k, n):
    """The labels with their 1/(n+1) of the uniform distribution."""
    return np.eye(k)[codes] * (n / (n + 1)) + 1 / (k * (n + 1))


def parameters(calibration):
    """All numbers of a calibration in one vector."""
    c = calibration
    parts = [c.a, c.uniform, c.floor, c.shift, c.low_slope, c.high_slope, c.low, c.high]
    return np.concatenate([parts, *(np.ravel(A) for A in (c.matrix, c.offset) if A is not None)])


@pytest.mark.parametrize("k", [2, 3, 12])
def test_temperature_is_scipys(rng, k):
    P, codes, w = sample(rng, 200, k)
    target = smoothed(codes, k, w.sum())

    def loss(log_a):
        return -np.sum(w[:, None] * target * log_softmax(np.exp(log_a) * np.log(P), axis=1))

    expected = minimize(loss, 0.0, tol=1e-12).x[0]
    n = w.sum()
    found = calibrate(P, codes, w, "temperature").a
    np.testing.assert_allclose(found, np.exp(expected) * n / (n + 2 * k), rtol=1e-5)


@pytest.mark.parametrize("k", [3, 5, MOST_CLASSES + 1])
def test_matrix_is_scipys(rng, k):
    P, codes, w = sample(rng, 300, k)
    n = w.sum()
    target, found = smoothed(codes, k, n), calibrate(P, codes, w, "matrix")
    Z = np.log(softmax(found.a * np.log(P), axis=1) * n / (n + 1) + 1 / (k * (n + 1)))
    diagonal = k > MOST_CLASSES

    def loss(theta):
        W, b = np.split(theta, [-k])
        W = np.diag(W) if diagonal else W.reshape(k, k)
        cross_entropy = -np.sum(w[:, None] * target * log_softmax(Z + Z @ W.T + b, axis=1)) / n
        off = W - np.diag(np.diag(W))
        return cross_entropy + (b @ b + np.sum(np.diag(W) ** 2) + (k - 1) * np.sum(off**2)) / n

    size = 2 * k if diagonal else k * (k + 1)
    W, b = np.split(minimize(loss, np.zeros(size), method="BFGS", options={"gtol": 1e-7}).x, [-k])
    W = np.diag(W) if diagonal else W.reshape(k, k)
    shrinkage = n / (n + 2 * min(k, 16))
    matrix = np.diag(found.matrix) if diagonal else found.matrix
    np.testing.assert_allclose(matrix, shrinkage * (np.eye(k) + W), atol=2e-4)
    np.testing.assert_allclose(found.offset, shrinkage * b, atol=2e-4)
    np.testing.assert_allclose(found.a * shrinkage, calibrate(P, codes, w, "temperature").a)


def curve_by_quadrature(z, low, high):
    """Integrate the slopes numerically: the shares of the low and of the high slope up to z."""
    steps = np.linspace(0, z, 4001)
    high_share = (np.clip(steps, low, high) - low) / (high - low)
    return np.trapezoid(1 - high_share, steps, axis=0), np.trapezoid(high_share, steps, axis=0)


@pytest.mark.parametrize("bent", [0.0, 0.6, -0.6])
def test_curve_of_two_classes_is_scipys(rng, bent):
    z = 1.5 * rng.standard_normal(400)
    truth = 2 * z + bent * z**2 - 0.3
    codes = (rng.random(400) < 1 / (1 + np.exp(-truth))).astype(int)
    P, w = softmax(np.stack([np.zeros(400), z], axis=1), axis=1), rng.integers(1, 4, 400)
    found, n = calibrate(P, codes, w, "matrix"), w.sum()
    z = found.a * z
    np.testing.assert_allclose([found.low, found.high], [z.min(), z.max()])
    low_part, high_part = curve_by_quadrature(z, z.min(), z.max())
    target = smoothed(codes, 2, n)

    def loss(theta):
        eta = theta[0] + theta[1] * low_part + theta[2] * high_part
        log_q = log_softmax(np.stack([np.zeros_like(eta), eta], axis=1), axis=1)
        return -np.sum(w[:, None] * target * log_q) + np.sum((theta - [0, 1, 1]) ** 2)

    bounds = [(None, None), (LEAST_SLOPE, None), (LEAST_SLOPE, None)]
    options = {"ftol": 1e-15, "gtol": 1e-8}
    expected = minimize(loss, [0, 1, 1], bounds=bounds, options=options).x
    assert (min(expected[1:]) < LEAST_SLOPE + 1e-9) == (bent != 0)  # a strong bend meets the bound
    fitted = np.array([found.shift, found.low_slope, found.high_slope])
    np.testing.assert_allclose(fitted * (n + 4) / n, expected, atol=1e-4)
    np.testing.assert_allclose(
        found.bend(z), found.shift + found.low_slope * low_part + found.high_slope * high_part, atol=1e-5
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 3, 7])
def test_weights_count_rows_and_the_order_of_rows_does_not_matter(rng, rule, k):
    P, codes, w = sample(rng, 120, k)
    expected = calibrate(P, codes, w, rule)
    rows = rng.permutation(np.repeat(np.arange(120), w))
    for weights in (None, np.ones(len(rows))):
        found = calibrate(P[rows], codes[rows], weights, rule)
        np.testing.assert_allclose(parameters(found), parameters(expected), atol=1e-5)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 3, MOST_CLASSES + 1])
def test_huge_weights_are_many_rows(rng, rule, k):
    P, codes, w = sample(rng, 400, k)
    found, more = calibrate(P, codes, 1e9 * w, rule), calibrate(P, codes, 1e15 * w, rule)
    np.testing.assert_allclose(more(P), found(P), atol=1e-4)  # the penalty is gone in both


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 4])
def test_classes_have_no_order(rng, rule, k):
    P, codes, w = sample(rng, 150, k)
    places = np.roll(np.arange(k), 1)  # class j of the new order is class places[j]
    Q = calibrate(P, codes, w, rule)(P)
    moved = calibrate(P[:, places], np.argsort(places)[codes], w, rule)(P[:, places])
    np.testing.assert_allclose(moved, Q[:, places], atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 3, 12])
def test_a_start_changes_nothing_but_the_time(rng, rule, k):
    P, codes, w = sample(rng, 400, k)
    far = calibrate(P[::2] ** 3, codes[::2], None, rule)
    found, expected = calibrate(P, codes, w, rule, far), calibrate(P, codes, w, rule)
    np.testing.assert_allclose(found(P), expected(P), atol=2e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 3, 12])
def test_it_lowers_the_log_loss_of_new_rows(rng, rule, k):
    P, codes, _ = sample(rng, 4000, k)
    Q = calibrate(P[:2000], codes[:2000], None, rule)(P)
    assert log_loss(Q[2000:], codes[2000:], None) < 0.98 * log_loss(P[2000:], codes[2000:], None)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 3, 12])
def test_array_libraries_agree(xp, rng, k, rule, dtype):
    P, codes, w = sample(rng, 60, k)
    found = calibrate(P.astype(dtype), codes, w, rule)
    Q = found(xp.asarray(P.astype(dtype)))
    assert Q.dtype == getattr(xp, dtype)
    np.testing.assert_allclose(to_host(Q), found(P), rtol=1e-3 if dtype == "float32" else 1e-12)
    stacked = to_host(found(xp.asarray(P.astype(dtype).reshape(3, 20, k))))
    np.testing.assert_allclose(stacked.reshape(60, k), to_host(Q), rtol=1e-6)


@given(
    k=st.integers(2, 300),
    steps=st.integers(0, 6),
    a=st.floats(2.0**-6, 2.0**20),
    uniform=st.floats(0, 0.5),
    seed=st.integers(0, 2**31),
)
def test_temperature_changes_no_prediction(k, steps, a, uniform, seed):
    rng = np.random.default_rng(seed)
    P = np.full((20, k), 1 / k, dtype=np.float32)
    P *= 1 + np.finfo(np.float32).eps * rng.integers(-steps, steps + 1, P.shape).astype(np.float32)
    Q = Calibration(a, uniform)(P)
    assert Q.dtype == np.float32
    np.testing.assert_array_equal(Q.argmax(axis=1), P.argmax(axis=1))
    np.testing.assert_array_equal(Q.max(axis=1, keepdims=True) == Q, P.max(axis=1, keepdims=True) == P)


@given(
    m=st.integers(4, 60),
    spread=st.floats(1e-3, 30),
    slope=st.floats(-2, 2),
    curvature=st.floats(-3, 3),
    seed=st.integers(0, 2**31),
)
def test_two_classes_keep_their_ranking(m, spread, slope, curvature, seed):
    rng = np.random.default_rng(seed)
    z = spread * rng.standard_normal(m)
    codes = (rng.random(m) < 1 / (1 + np.exp(-np.clip(slope * z + curvature * z**2, -50, 50)))).astype(int)
    P = softmax(np.stack([np.zeros(m), z], axis=1), axis=1)
    found = calibrate(P, codes, None, "matrix")
    assert min(found.low_slope, found.high_slope) >= LEAST_SLOPE / 3
    far = np.concatenate([np.linspace(10 * found.low - 1, 10 * found.high + 1, 2001), [-1e6, 1e6]])
    assert (np.diff(found.bend(np.sort(far))) > 0).all()


def test_curve_is_linear_outside_the_sample(rng):
    P, codes, w = sample(rng, 200, 2)
    found = calibrate(P, codes, w, "matrix")
    assert found.low_slope != pytest.approx(found.high_slope, abs=1e-3)
    below, above = found.low - np.arange(5.0), found.high + np.arange(5.0)
    np.testing.assert_allclose(np.diff(found.bend(below)), -found.low_slope, rtol=1e-9)
    np.testing.assert_allclose(np.diff(found.bend(above)), found.high_slope, rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 3, 10, 30])
def test_separable_rows_give_finite_answers_that_are_not_certain(rng, rule, k):
    codes = np.arange(20 * k) % k
    P = softmax(3 * np.eye(k)[codes] + 0.1 * rng.standard_normal((20 * k, k)), axis=1)
    for given_P in (P, np.eye(k)[codes], np.eye(k, dtype=np.float32)[codes]):
        found = calibrate(given_P, codes, None, rule)
        assert np.isfinite(parameters(found)).all()
        Q = found(given_P)
        assert (Q.argmax(axis=1) == codes).all()
        assert Q.min() > 0
        assert 0.5 / (20 * k + 1) < 1 - Q.max() < 0.1  # about one wrong row among n


@given(
    k=st.integers(2, 30),
    m=st.integers(1, 40),
    layers=st.integers(1, 10),
    rule=st.sampled_from(RULES),
    seed=st.integers(0, 2**31),
)
def test_votes_and_rare_classes_give_probabilities(k, m, layers, rule, seed):
    rng = np.random.default_rng(seed)
    codes = np.minimum(rng.geometric(0.5, m) - 1, k - 1)
    ballots = rng.multinomial(layers, rng.dirichlet(np.ones(k)), size=m) / layers
    found = calibrate(ballots, codes, rng.choice([0.3, 1.0, 5.0], m), rule)
    far = np.concatenate([np.eye(k), softmax(300 * rng.standard_normal((5, k)), axis=1), ballots])
    for dtype in ("float32", "float64"):
        Q = found(far.astype(dtype))
        assert (Q > 0).all()
        np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [2, 5])
def test_without_rows_nothing_is_sharpened(rng, rule, k):
    P = softmax(rng.standard_normal((2, k)), axis=1)
    found = calibrate(P[:0], np.arange(0), None, rule)
    assert found.a == 1
    assert found.matrix is None
    np.testing.assert_allclose(found(P), P / 2 + 1 / (2 * k))


def test_votes_of_ten_layers_keep_their_steps(rng):
    ballots = np.array([[x / 10, 1 - x / 10] for x in range(11)])
    codes = rng.permutation(440) % 2
    found = calibrate(np.repeat(ballots, 40, axis=0), codes, None, "temperature", floor=0.05)
    log_odds = np.diff(np.log(found(ballots)), axis=1)[:, 0]
    steps = np.abs(np.diff(log_odds))
    assert steps.max() < 4 * steps.min()  # the step from one vote to none is a step like others


def test_log_loss_by_hand():
    P = np.array([[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]], dtype=np.float32)
    codes = np.array([0, 1, 0])
    np.testing.assert_allclose(log_loss(P, codes, None), -(np.log(0.5) + np.log(0.8)) / 3, rtol=1e-6)
    weights = np.array([2, 0, 1])
    np.testing.assert_allclose(log_loss(P, codes, weights), -2 * np.log(0.5) / 3, rtol=1e-6)
    assert np.isfinite(log_loss(P, np.array([0, 1, 1]), None))
