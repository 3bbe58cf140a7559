"""Kernel ridges over many rows in one system, against systems that are factorised and fits without rows."""

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from helpers import noisy_rows, noisy_values, to_host
from scipy.linalg import LinAlgWarning
from scipy.spatial.distance import cdist

from edrvfl import KernelRidgeClassifier, KernelRidgeRegressor
from edrvfl._fitting.iterated import LEAST_ITERATED, MOST_ITERATED, Many, deal, fit_iterated, n_iterated
from edrvfl._fitting.systems import Choice, Draw, KernelSettings, Sample
from edrvfl._inputs.chosen import Judged
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_rows, prepare_values

LAM = 0.05


def sample_of(X, y, weights=None, judged=None, class_weight=None, classes=None):
    classes = y.dtype.kind == "i" if classes is None else classes
    rows = prepare_rows(X, y, weights, class_weight) if classes else prepare_values(X, y, weights)
    inputs = learn_inputs(rows.X, rows.weights.counts, EncoderSettings())
    return Sample.of(rows, inputs, "laplace", judged), Draw(rows, 0)


def choice_of(sample, h=1.0, lam=LAM):
    return Choice.of(KernelSettings(h, lam), sample)


def kernel_of(sample, X=None):
    Z = sample.encoded()
    return np.exp(-cdist(Z if X is None else sample.inputs.apply(X), Z) / np.sqrt(Z.shape[1]))


def solved_by_hand(sample, kept):
    """Scores of all rows by the ridge over the rows that are kept."""
    Y, K = to_host(sample.targets.rows(slice(None)) - sample.prior), kernel_of(sample)
    base = np.ones(len(Y)) if sample.weights.base is None else sample.weights.base / sample.unit
    ridge = K[np.ix_(kept, kept)] + np.diag(LAM / sample.unit / base[kept])
    return K[:, kept] @ np.linalg.solve(ridge, Y[kept])


def table(rng, task, m, weighted=False, copies=0):
    X, y = noisy_rows(rng, m, 3) if task == "classes" else noisy_values(rng, m, 3, 2)
    if copies:
        X[-copies:] = X[:copies]
        y[-copies:] = (y[:copies] + 1) % 3 if task == "classes" else y[:copies] + 1
    return X, y, rng.choice([0.5, 1.0, 3.0], m) if weighted else None


@pytest.mark.parametrize("task", ["classes", "values"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_a_factor_and_judged_ones_of_fits_without_the_group(rng, task, weighted):
    X, y, weights = table(rng, task, 240, weighted, copies=6)
    costs = {0: 1.0, 1: 2.0, 2: 0.5} if task == "classes" and weighted else None
    sample, _ = sample_of(X, y, weights, class_weight=costs)
    order = rng.permutation(240)
    many = replace(Many.of(sample, (1.0, LAM), order, 0), tolerance=1e-6)
    groups = deal(rng.permutation(240)[:70], sample.twins, order, 2)
    alpha, left_out, _ = many.solved(LAM, groups)
    every = np.ones(240, bool)
    np.testing.assert_allclose(kernel_of(sample) @ alpha, solved_by_hand(sample, every), atol=1e-4)
    assert len(groups) >= 2
    for group in groups:
        expected = solved_by_hand(sample, np.setdiff1d(np.arange(240), group))
        np.testing.assert_allclose(left_out[group], expected[group], atol=1e-4)


@pytest.mark.parametrize("task", ["classes", "values"])
@pytest.mark.parametrize("judged", [None, [3, 4, 50, 51, 99, 140]])
def test_what_a_fit_returns_is_near_what_factors_return(xp, rng, task, judged):
    X, y, _ = table(rng, task, 300)
    chosen = None if judged is None else Judged(xp.asarray(judged), xp.ones(6, dtype=xp.float64))
    host, _ = sample_of(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        sample, draw = sample_of(xp.asarray(X), xp.asarray(y), judged=chosen, classes=task == "classes")
    choice, landmarks, found = fit_iterated(sample, draw, 1_000, choice_of(sample), 3)
    assert (choice.values, found.lam, found.regular) == ((1.0, LAM), LAM, True)
    np.testing.assert_allclose(to_host(landmarks), host.encoded(), atol=1e-12)
    every = np.arange(300)
    scores = kernel_of(host) @ to_host(found.alpha)
    np.testing.assert_allclose(scores, solved_by_hand(host, every), atol=0.03)
    rows = every if judged is None else np.array(judged)
    groups = deal(rows, None, draw.order, 2)
    for group in groups:
        expected = solved_by_hand(host, np.setdiff1d(every, group))[group]
        np.testing.assert_allclose(to_host(found.loo)[np.searchsorted(rows, group)], expected, atol=0.03)


def test_rows_that_are_not_in_the_system_are_answered_by_it(rng):
    X, y, _ = table(rng, "values", 400)
    sample, draw = sample_of(X, y)
    _, landmarks, found = fit_iterated(sample, draw, 250, choice_of(sample), 3)
    assert len(landmarks) == 250
    Z = sample.encoded()
    apart = cdist(Z, landmarks)
    outside = apart.min(axis=1) > 0
    assert outside.sum() == 150
    expected = np.exp(-apart[outside] / np.sqrt(3)) @ found.alpha
    np.testing.assert_allclose(found.loo[outside], expected, atol=1e-10)
    Y = to_host(sample.targets.Y) - sample.prior
    losses = [((Y - found.loo)[rows] ** 2).mean() for rows in (outside, ~outside)]
    assert 0.75 < losses[0] / losses[1] < 1.33  # both are honest


@pytest.mark.parametrize("task", ["classes", "values"])
def test_the_order_of_rows_does_not_matter(rng, task):
    X, y, _ = table(rng, task, 200)
    moved = rng.permutation(200)
    answers = []
    for rows in (np.arange(200), moved):
        sample, draw = sample_of(X[rows], y[rows])
        _, _, found = fit_iterated(sample, draw, 1_000, choice_of(sample), 3)
        answers.append((kernel_of(sample, X) @ found.alpha, found.loo))
    np.testing.assert_allclose(answers[0][0], answers[1][0], atol=2e-3)
    np.testing.assert_allclose(answers[0][1][moved], answers[1][1], atol=2e-3)


def test_weight_two_is_the_row_twice(rng):
    X, y, _ = table(rng, "classes", 150)
    counts = rng.integers(1, 4, 150)
    rows = np.repeat(np.arange(150), counts)
    scores = []
    for sample, draw in (sample_of(X, y, counts.astype(float)), sample_of(X[rows], y[rows])):
        _, _, found = fit_iterated(sample, draw, 1_000, choice_of(sample), 3)
        scores.append((kernel_of(sample, X) @ found.alpha, found.loo))
    for one, other in zip(*scores, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


@pytest.mark.parametrize("m_judged", [1, 30, 200])
@pytest.mark.parametrize("k", [1, 4, 30])
def test_judged_rows_are_dealt_evenly_and_with_their_copies(rng, m_judged, k):
    order, judged = rng.permutation(200), rng.permutation(200)[:m_judged]
    groups = deal(judged, None, order, k)
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.sort(judged))
    sizes = [len(group) for group in groups]
    assert max(sizes) <= min(40, min(sizes) + 1)
    assert max(sizes) <= 13 or k > 1
    twins = rng.integers(0, 150, 200)
    groups = deal(judged, twins, order, k)
    assert set(twins[judged]) == set(twins[np.concatenate(groups)])
    assert sum(len(np.unique(twins[group])) for group in groups) == len(np.unique(twins[judged]))
    assert sum(map(len, groups)) == np.isin(twins, twins[judged]).sum()


def test_a_penalty_that_suits_the_many_rows_is_found(rng):
    X, y = noisy_values(rng, 400, 3)
    y = y + 2 * rng.standard_normal(400)
    sample, draw = sample_of(X, y)
    lams = (0.01, 0.1, 1.0, 10.0, 100.0)
    for start in range(5):
        choice, _, _ = fit_iterated(sample, draw, 1_000, Choice((1.0,), lams, 0, start), 3)
        assert choice.lams[choice.j] in (1.0, 10.0)


def test_steps_without_an_end_raise_the_penalty_or_leave_the_system(rng):
    X, y = noisy_values(rng, 300, 3)
    X = np.concatenate([X, X + 1e-7 * rng.standard_normal(X.shape)])
    y = np.concatenate([y, y + 1])
    sample, draw = sample_of(X, y)
    sample = replace(sample, dtype=np.dtype(np.float32))
    assert fit_iterated(sample, draw, 1_000, choice_of(sample, lam=1e-12), 3) is None
    choice, _, found = fit_iterated(sample, draw, 1_000, Choice((1.0,), (1e-12, 1e-11, 1.0), 0, 0), 3)
    assert choice.j == 2
    assert np.isfinite(found.alpha).all()


def test_a_system_has_as_many_rows_as_parts_would_take(rng):
    X, y, _ = table(rng, "values", 20)
    sample, _ = sample_of(X, y)

    def n_of(m, of_parts=0, **fields):
        return n_iterated(replace(sample, raw=np.broadcast_to(X[:1], (m, 3)), **fields), of_parts)

    most = MOST_ITERATED[False]
    assert n_of(LEAST_ITERATED - 1) == 0
    assert n_of(LEAST_ITERATED) == LEAST_ITERATED  # K of 80 MB
    assert n_of(most, of_parts=2 * most) == n_of(10**7, of_parts=most)
    assert n_of(10**7, of_parts=2 * most) == 0
    assert n_of(LEAST_ITERATED, targets=replace(sample.targets, Y=np.zeros((20, 100)))) == 0


# --- fitted estimators -----------------------------------------------------------------------------------


def test_a_classifier_of_many_rows_is_that_of_one_factor(rng):
    X, y = noisy_rows(rng, 7_000, 3)
    fixed = {"bandwidth": 1.0, "regularization": 1.0, "encoder": "standard", "input_scaling": None}
    one, exact = (
        KernelRidgeClassifier(**fixed, n_landmarks=n, random_state=0).fit(X[:5_200], y[:5_200])
        for n in ("auto", None)
    )
    assert one.n_landmarks_ == exact.n_landmarks_ == 5_200
    P, Q = one.predict_proba(X[5_200:]), exact.predict_proba(X[5_200:])
    assert np.abs(P - Q).mean() < 5e-3
    assert abs(one.loo_log_loss_ - exact.loo_log_loss_) < 0.01 * exact.loo_log_loss_


def test_a_classifier_whose_steps_come_to_no_end_has_parts(rng):
    X, y = noisy_rows(rng, 2_600, 3)
    X = np.concatenate([X, X * (1 + 1e-6)])
    y = np.concatenate([y, (y + 1) % 3])
    given = {"bandwidth": 8.0, "regularization": 1e-6, "encoder": "standard", "input_scaling": None}
    with pytest.warns(LinAlgWarning, match="numerically singular"):
        model = KernelRidgeClassifier(**given, random_state=0).fit(X, y)
    assert model.regularization_ > 1e-6  # a part raises the penalty, an iterated system does not
    assert np.isfinite(model.predict_proba(X[:50])).all()


def test_a_regressor_of_many_rows_is_honest(rng):
    X, y = noisy_values(rng, 12_000, 4)
    fixed = {"bandwidth": 1.0, "encoder": "standard", "input_scaling": None}
    model = KernelRidgeRegressor(**fixed, random_state=0).fit(X[:8_200], y[:8_200])
    assert model.n_landmarks_ == 8_200
    assert abs(model.loo_r2_score_ - model.score(X[8_200:], y[8_200:])) < 0.02
