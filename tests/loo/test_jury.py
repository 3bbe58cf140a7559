"""The jury: whose leave-one-out answers count, and how much."""

import numpy as np
import pytest
from helpers import beside
from scipy.stats import norm
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score

from edrvfl._inputs.chosen import Judged, judge_some
from edrvfl._inputs.targets import Classes, RowWeights, Values
from edrvfl._loo.calibrate import calibrate
from edrvfl._loo.jury import Jury, ValueJury


def jury_of(codes, counts=None, costs=None, judged=None, xp=np):
    if judged is not None:
        judged = Judged(*(xp.asarray(part) for part in judged))
    targets = Classes(xp.asarray(codes), int(codes.max()) + 1, xp.zeros(0, dtype=xp.float64))
    return Jury.of(targets, RowWeights(beside(xp, counts), beside(xp, costs)), judged)


@pytest.fixture
def answers(rng):
    """The classes of 50 rows, all classes often, and probabilities that know something about them."""
    codes = np.append(rng.integers(0, 3, 44), [0, 0, 1, 1, 2, 2])
    P = rng.dirichlet(np.ones(3), 50) + 0.5 * np.eye(3)[codes]
    return codes, P / P.sum(axis=1, keepdims=True)


def test_figures_are_those_of_scikit_learn(rng, answers):
    codes, P = answers
    counts, costs = rng.choice([0.4, 1.0, 3.0], 50), rng.choice([0.5, 2.0], 50)
    for given in ((None, None), (counts, None), (None, costs), (counts, costs)):
        jury = jury_of(codes, *given)
        w = np.prod([np.ones(50) if part is None else part for part in given], axis=0)
        assert jury.score(P) == pytest.approx(accuracy_score(codes, P.argmax(axis=1), sample_weight=w))
        assert jury.loss(P) == pytest.approx(log_loss(codes, P, sample_weight=w))


def test_a_weight_of_two_is_the_row_twice(rng, answers):
    codes, P = answers
    counts = rng.integers(1, 4, 50)
    rows = np.repeat(np.arange(50), counts)
    weighted, repeated = jury_of(codes, counts.astype(float)), jury_of(codes[rows])
    assert weighted.weights.sum() == pytest.approx(repeated.weights.sum()) == counts.sum()
    assert weighted.loss(P) == pytest.approx(repeated.loss(P[rows]))
    assert weighted.score(P) == pytest.approx(repeated.score(P[rows]))


def test_costs_move_the_evidence_but_do_not_add_to_it(rng, answers):
    codes, _ = answers
    costs = np.array([1.0, 5.0, 0.1])[codes]
    jury = jury_of(codes, costs=costs)
    assert jury.weights.sum() == pytest.approx(50)
    np.testing.assert_allclose(jury.weights / jury.weights[0], costs / costs[0])


def test_small_weights_have_no_scale(rng, answers):
    codes, _ = answers
    counts = rng.uniform(0.1, 1, 50)
    expected = (counts.sum() / counts.max()) ** 2 / np.sum((counts / counts.max()) ** 2)
    for scale in (1e-2, 1e-300):
        assert jury_of(codes, scale * counts).weights.sum() == pytest.approx(max(expected, 0))


@pytest.mark.parametrize(("count", "honest"), [(1.0, False), (0.2, False), (2.0, False)])
def test_a_row_alone_in_its_class_does_not_calibrate_but_is_measured(answers, count, honest):
    codes, P = np.append(answers[0], 3), np.zeros((51, 4))
    P[:50, :3], P[50, 0] = answers[1], 1.0
    counts = np.append(np.ones(50), count)
    jury = jury_of(codes, counts)
    assert jury.honest.tolist() == [True] * 50 + [honest]
    assert jury.weights[jury.honest].sum() == pytest.approx(counts[jury.honest].sum())
    assert jury.score(P) == pytest.approx(np.average(P.argmax(axis=1) == codes, weights=counts))
    rows = slice(51 if honest else 50)
    expected = calibrate(P[rows], codes[rows], counts[rows], "temperature")
    np.testing.assert_allclose(jury.calibration(P, "temperature")(P), expected(P), atol=1e-8)


def test_where_everybody_is_alone_nobody_is_honest():
    jury = jury_of(np.arange(4))
    assert not jury.honest.any()
    assert jury.score(np.eye(4)) == 0  # what no model knows it names by luck
    assert np.isfinite(jury.loss(np.full((4, 4), 0.25)))


def test_judged_rows_stand_for_the_others(xp, answers):
    codes, P = answers
    some, stand_for = np.array([0, 7, 13, 20, 31, 44, 46, 48]), np.array([9.0, 2, 5, 5, 9, 2, 7, 1])
    jury = jury_of(codes, judged=(some, stand_for), xp=xp)
    np.testing.assert_array_equal(jury.codes, codes[some])
    assert jury.weights.sum() == pytest.approx(8)  # no more evidence than eight rows
    assert jury.loss(P[some]) == pytest.approx(
        log_loss(codes[some], P[some], sample_weight=stand_for, labels=[0, 1, 2])
    )


def test_every_library_has_the_same_jury(xp, rng, answers):
    codes, _ = answers
    counts, costs = (rng.uniform(0.5, 3, 50).astype(np.float32) for _ in range(2))
    expected, jury = jury_of(codes, counts, costs), jury_of(codes, counts, costs, xp=xp)
    for part in ("codes", "weights", "honest"):
        np.testing.assert_array_equal(getattr(jury, part), getattr(expected, part))
    assert jury.weights.dtype == np.float64


# --- values ----------------------------------------------------------------------------------------------


def value_jury(Y, counts=None, judged=None, xp=np):
    if judged is not None:
        judged = Judged(*(xp.asarray(part) for part in judged))
    return ValueJury.of(Values(xp.asarray(Y)), RowWeights(beside(xp, counts)), judged)


@pytest.mark.parametrize("weighted", [False, True])
def test_figures_of_values_are_those_of_scikit_learn(xp, rng, weighted):
    counts = rng.choice([0.4, 1.0, 3.0], 50)
    w = counts if weighted else np.ones(50)
    y = rng.standard_normal((50, 3)) * [1, 10, 0.1] + 5
    mean = np.average(y, axis=0, weights=w)
    sd = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=w))
    Y, P = (y - mean) / sd, rng.standard_normal((50, 3))
    jury = value_jury(Y, counts if weighted else None, xp=xp)
    assert jury.loss(P) == pytest.approx(mean_squared_error(Y, P, sample_weight=w))
    assert jury.score(P) == pytest.approx(r2_score(y, P * sd + mean, sample_weight=w))
    assert jury.calibration(P, "matrix", None, 0.5) is None
    # what errors of a normal law with their own variance say, but for a constant
    one = value_jury(Y[:, :1], counts if weighted else None)
    each = norm.logpdf((P - Y)[:, 0], scale=np.sqrt(one.loss(P[:, :1])))
    assert one.nats(P[:, :1]) == pytest.approx(-np.average(each, weights=w) - 0.5 * np.log(2 * np.pi) - 0.5)


def test_judged_values_stand_for_the_others(xp, rng):
    Y, P, counts = rng.standard_normal((50, 2)), rng.standard_normal((3, 2)), rng.choice([1.0, 3.0], 50)
    some, stand_for = np.array([3, 8, 40]), np.array([9.0, 2.0, 5.0])
    jury = value_jury(Y, counts, (some, stand_for), xp)
    expected = mean_squared_error(Y[some], P, sample_weight=counts[some] * stand_for)
    assert jury.loss(P) == pytest.approx(expected)
    assert jury.weights.sum() == pytest.approx(counts[some].sum())  # no more evidence than the judged rows


def test_a_weight_of_two_is_the_value_twice(rng):
    Y, P, counts = rng.standard_normal((30, 2)), rng.standard_normal((30, 2)), rng.integers(1, 4, 30)
    rows = np.repeat(np.arange(30), counts)
    weighted, repeated = value_jury(Y, counts.astype(float)), value_jury(Y[rows])
    assert weighted.loss(P) == pytest.approx(repeated.loss(P[rows]))
    assert weighted.weights.sum() == pytest.approx(repeated.weights.sum())
    assert value_jury(Y, 1e-200 * counts).weights.sum() == pytest.approx(
        value_jury(Y, 1e-3 * counts).weights.sum()
    )


def test_answers_without_an_error_are_finite():
    jury = value_jury(np.zeros((4, 1)))
    assert jury.score(np.zeros((4, 1))) == 1
    assert np.isfinite(jury.nats(np.zeros((4, 1))))


def test_a_rare_class_is_foretold_as_often_as_it_comes(rng):
    codes = (np.arange(50_000) < 12).astype(int)
    judged = judge_some(Classes(codes, 2, np.zeros(0)))
    jury = Jury.of(Classes(codes, 2, np.zeros(0)), RowWeights(), judged)
    z = rng.normal(size=50_000) + 2 * codes - 8  # log-odds that tell the rare class from the other
    P = np.stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], axis=1)
    expected = jury.calibration(P[judged.rows], "matrix")(P)[:, 1].sum()
    assert expected == pytest.approx(12, rel=0.25)


def test_judged_rows_of_equal_classes_count_as_rows(answers):
    codes = np.arange(20_000) % 2
    judged = judge_some(Classes(codes, 2, np.zeros(0)))
    assert Jury.of(Classes(codes, 2, np.zeros(0)), RowWeights(), judged).each == pytest.approx(1)
