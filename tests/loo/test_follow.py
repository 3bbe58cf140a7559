"""Following a network: leave-one-out by plain loops, combined and calibrated, against the stages."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import scores_without_each_row
from scipy.special import softmax

from edrvfl import EDRVFLClassifier
from edrvfl._fitting.settings import network_settings
from edrvfl._inputs.chosen import judge_some
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import first_of_equals, row_hashes
from edrvfl._inputs.targets import Classes, RowWeights
from edrvfl._layers.draws import Draws, Recipe
from edrvfl._layers.grow import Problem, grow, start
from edrvfl._layers.layers import fill_inputs, new_features
from edrvfl._loo.calibrate import calibrate, log_losses
from edrvfl._loo.follow import CALIBRATIONS, PULL, Follower
from edrvfl._loo.jury import jury_of

ENSEMBLES = ["softmax", "mean", "vote"]


def log_loss(P, codes, weights):
    return np.average(log_losses(P, codes), weights=weights)


def two_or_three_classes(rng, m, k):
    """Draw rows of k classes that no network separates."""
    X = rng.standard_normal((m, 4))
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(m), [-0.5, 0.6][: k - 1])


def some_scores(rng, codes, k, layers=3):
    """Draw scores of several layers that know something about the classes."""
    return 0.5 * np.eye(k)[codes] + 0.4 * rng.standard_normal((layers, len(codes), k))


def follow(scores, codes, k, counts=None, costs=None, xp=np, **params):
    """Return the stages of networks whose layers have these leave-one-out scores."""
    params = {"ensemble": "softmax", "layer_votes": "equal", "calibration": "loo", **params}
    arrays = (None if a is None else xp.asarray(a) for a in (counts, costs))
    targets = Classes(xp.asarray(codes), k, xp.asarray(scores[0][:0, 0]))
    follower = follower_of(targets, RowWeights(*arrays), None, EDRVFLClassifier(**params))
    return [follower.add(xp.asarray(layer)) for layer in scores]


def combined(scores, votes, ensemble):
    """Combine layers (layers, rows, k) by the rule, in one line each."""
    votes = np.array(votes)[:, None, None] / sum(votes)
    k = scores.shape[-1]
    return {
        "softmax": lambda: (votes * softmax(scores, axis=-1)).sum(axis=0),
        "mean": lambda: softmax((votes * scores).sum(axis=0), axis=-1),
        "vote": lambda: (votes * np.eye(k)[scores.argmax(axis=-1)]).sum(axis=0),
    }[ensemble]()


def assert_stages_alike(stages, others, tolerance=1e-5):
    rng = np.random.default_rng(0)
    for one, other in zip(stages, others, strict=True):
        assert one.vote == pytest.approx(other.vote, rel=2e-3)  # the share is found to 1e-3
        assert one.score == pytest.approx(other.score, abs=1e-12)
        assert one.loss == pytest.approx(other.loss, abs=tolerance)
        k = 2 if one.calibration.matrix is None else len(one.calibration.matrix)
        P = rng.dirichlet(np.ones(k), 50)
        np.testing.assert_allclose(one.calibration(P), other.calibration(P), atol=tolerance)


# --- a network that grows, against plain loops -----------------------------------------------------------


def follower_of(targets, weights, judged, estimator):
    """Follow a network with an estimator's parameters."""
    return Follower(jury_of(targets, weights, judged), network_settings(estimator).votes)


def omega_after(right, counts, omega_r):
    """Eq. 14 for the next layer."""
    n_right, m = counts[right].sum(), counts.sum()
    return np.where(right, omega_r, (m - n_right * omega_r) / (m - n_right))


def grown_scores(X, y, k, network, counts, costs, use, judged=None):
    """Grow a network; return each layer's leave-one-out scores by plain loops, and what `use` made of it."""
    settings = network_settings(network).layers
    given = [None if a is None else np.asarray(a) for a in (counts, costs)]
    m, targets, weights = len(y), Classes(y, k, X[:0, 0]), RowWeights(*given)
    inputs = learn_inputs(X, given[0], EncoderSettings())
    D = new_features(m, X, settings.n_hidden, inputs)
    fill_inputs(D, X, inputs)
    counts, costs = (np.ones(m) if a is None else a for a in given)
    omega, loops, used = np.ones(m), [], []
    draws, twins = Draws(Recipe(1, settings.n_hidden, inputs.source), X), first_of_equals(X, row_hashes(X))
    problem = Problem(targets, weights, draws, judged, judges=True, twins=twins)
    for grown in grow(start(D, settings), problem):
        D_l = np.array(grown.D[:m])
        loops.append(scores_without_each_row(D_l, np.eye(k)[y], settings.lam, omega * costs, counts, twins))
        used.append(use(grown))
        right = loops[-1].argmax(axis=1) == y if settings.weighs_by_loo else grown.losses[0] == 0
        omega = omega_after(right, counts, settings.omega_r)
    return np.array(loops), used


@pytest.mark.parametrize("calibration", ["temperature", "matrix"])
@pytest.mark.parametrize("ensemble", ENSEMBLES)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_stages_are_those_of_leaving_each_row_out(rng, calibration, ensemble, k, weighted):
    X, y = two_or_three_classes(rng, 50, k)
    X[45:] = X[[0, 0, 1, 2, 3]]  # copies, of the same class and of others
    counts = rng.choice([0.4, 1.0, 3.0], 50) if weighted else None
    costs = np.array([1.0, 3.0, 0.5])[y] if weighted else None
    weight_from = "loo" if weighted else "train"
    params = {"n_layers": 3, "n_hidden": 7, "regularization": 0.5, "ensemble": ensemble}
    weighs = {"weight_from": weight_from, "correct_weight": 0.6, "prune_rate": 0.2}
    network = EDRVFLClassifier(**params, calibration=calibration, **weighs)
    follower = follower_of(Classes(y, k, X[:0, 0]), RowWeights(counts, costs), None, network)
    loops, stages = grown_scores(X, y, k, network, counts, costs, lambda g: follower.add(g.loo[0]))
    w = np.ones(50) if counts is None else counts
    n = max(w.sum(), w.sum() ** 2 / np.sum(w**2))
    w = w * (1 if costs is None else costs)
    w *= n / w.sum()
    for depth, stage in enumerate(stages, start=1):
        P = combined(loops[:depth], [1] * depth, ensemble)
        floor = 0.5 / depth if ensemble == "vote" else 1e-30  # no vote counts as half a vote
        expected = calibrate(P, y, w, calibration, floor=floor)
        assert stage.vote == 1
        np.testing.assert_allclose(stage.calibration(P), expected(P), atol=1e-5)
        assert stage.score == pytest.approx(w[expected(P).argmax(axis=1) == y].sum() / n)
        assert stage.loss == pytest.approx(log_loss(expected(P), y, w), abs=1e-5)


@pytest.mark.parametrize("weight_from", ["train", "loo"])
def test_a_part_of_the_rows_is_judged(rng, monkeypatch, weight_from):
    monkeypatch.setattr("edrvfl._inputs.chosen.n_judged", lambda m, k: min(m, 30))
    X, y = two_or_three_classes(rng, 80, 3)
    counts = rng.choice([1.0, 2.0], 80)
    judged = judge_some(Classes(y, 3, X[:0, 0]))
    some = judged.rows
    assert len(some) == 30
    # a row of the class that is judged best counts 1
    weights = counts[some] * judged.stand_for / judged.stand_for.min()
    weighs = {"weight_from": weight_from, "correct_weight": 0.8, "prune_rate": 0.2}
    network = EDRVFLClassifier(n_layers=2, n_hidden=7, regularization=0.5, **weighs)
    follower = follower_of(Classes(y, 3, X[:0, 0]), RowWeights(counts), judged, network)
    loops, stages = grown_scores(X, y, 3, network, counts, None, lambda g: follower.add(g.loo[0]), judged)
    for depth, stage in enumerate(stages, start=1):
        P = combined(loops[:depth, some], [1] * depth, "softmax")
        expected = calibrate(P, y[some], weights, "matrix")
        np.testing.assert_allclose(stage.calibration(P), expected(P), atol=1e-5)
        assert stage.loss == pytest.approx(log_loss(expected(P), y[some], weights), abs=1e-5)


# --- votes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", ["softmax", "mean"])
@pytest.mark.parametrize("k", [2, 3])
def test_a_weighted_vote_has_the_smallest_pulled_loss(rng, ensemble, k):
    codes = rng.integers(0, k, 300)
    scores = some_scores(rng, codes, k, 4)
    scores[2] = rng.standard_normal((300, k))  # a layer that knows nothing
    stages = follow(scores, codes, k, ensemble=ensemble, layer_votes="weighted")
    votes = [stage.vote for stage in stages]
    for l in range(1, 4):

        def loss(share, l=l):
            P = combined(scores[: l + 1], [*votes[:l], sum(votes[:l]) * share / (1 - share)], ensemble)
            P = calibrate(P, codes, None, "temperature")(P)
            pull = (np.log(share) + l * np.log(1 - share)) / (l + 1)
            return log_loss(P, codes, None) - PULL / 300 * pull

        share = votes[l] / sum(votes[: l + 1])
        assert loss(share) <= min(map(loss, np.linspace(0.01, 0.99, 99))) + 1e-6
    assert votes[0] == 1
    assert votes[2] < 0.5 * min(votes[1], votes[3])
    P = combined(scores, votes, ensemble)
    expected = calibrate(P, codes, None, "matrix")(P)
    assert stages[-1].loss == pytest.approx(log_loss(expected, codes, None), abs=1e-5)


def test_votes_are_equal_where_rows_are_few_and_layers_alike(rng):
    codes = rng.integers(0, 3, 12)
    scores = np.repeat(some_scores(rng, codes, 3, 1), 5, axis=0)
    stages = follow(scores, codes, 3, layer_votes="weighted")
    np.testing.assert_allclose([stage.vote for stage in stages], 1, rtol=0.02)


@pytest.mark.parametrize("layer_votes", ["equal", "prefix"])
def test_other_votes_are_equal(rng, layer_votes):
    codes = rng.integers(0, 3, 60)
    stages = follow(some_scores(rng, codes, 3), codes, 3, layer_votes=layer_votes)
    assert [stage.vote for stage in stages] == [1, 1, 1]


def test_without_calibration_the_figures_are_those_of_a_temperature(rng):
    codes = rng.integers(0, 3, 60)
    scores = some_scores(rng, codes, 3)
    plain, by_temperature = (
        follow(scores, codes, 3, layer_votes="prefix", calibration=calibration)
        for calibration in (None, "temperature")
    )
    assert [stage.calibration for stage in plain] == [None] * 3
    assert [(s.score, s.loss) for s in plain] == [(s.score, s.loss) for s in by_temperature]


# --- weights ---------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(
    seed=st.integers(0, 99),
    k=st.integers(2, 4),
    ensemble=st.sampled_from(ENSEMBLES),
    calibration=st.sampled_from(["temperature", "matrix"]),
)
def test_weights_count_rows(seed, k, ensemble, calibration):
    rng = np.random.default_rng(seed)
    codes, counts = rng.integers(0, k, 40), rng.integers(1, 4, 40)
    scores, params = some_scores(rng, codes, k), {"ensemble": ensemble, "calibration": calibration}
    weighted = follow(scores, codes, k, counts.astype(float), **params)
    repeated = follow(np.repeat(scores, counts, axis=1), np.repeat(codes, counts), k, **params)
    assert_stages_alike(weighted, repeated)


def test_weighted_votes_count_rows_too(rng):
    codes, counts = rng.integers(0, 3, 80), rng.integers(1, 4, 80)
    scores = some_scores(rng, codes, 3)
    weighted = follow(scores, codes, 3, counts.astype(float), layer_votes="weighted")
    twice = follow(np.repeat(scores, counts, axis=1), np.repeat(codes, counts), 3, layer_votes="weighted")
    assert_stages_alike(weighted, twice, 1e-3)


@pytest.mark.parametrize("scale", [1e-3, 1e-30, 1e-200, 1e-300])
def test_weights_below_one_have_no_scale(rng, scale):
    codes, counts = rng.integers(0, 3, 60), rng.uniform(0.1, 1, 60)
    scores = some_scores(rng, codes, 3)
    assert_stages_alike(follow(scores, codes, 3, scale * counts), follow(scores, codes, 3, 1e-2 * counts))
    equal = np.full(60, scale)
    assert_stages_alike(follow(scores, codes, 3, equal), follow(scores, codes, 3))


def test_class_weights_add_no_rows(rng):
    codes = rng.integers(0, 3, 60)
    scores = some_scores(rng, codes, 3)
    costs = np.array([1.0, 4.0, 0.25])[codes]
    stages = follow(scores, codes, 3, costs=costs)
    assert_stages_alike(stages, follow(scores, codes, 3, costs=1000 * costs))
    assert stages[0].calibration.uniform == pytest.approx(1 / 61)
    # what is counted as rows moves with the weights, and so do the probabilities
    P = combined(scores[:1], [1], "softmax")
    plain = follow(scores, codes, 3)[0].calibration(P)
    assert stages[0].calibration(P)[:, 1].mean() > 1.5 * plain[:, 1].mean()


def test_huge_weights_are_many_rows(rng):
    codes = rng.integers(0, 3, 60)
    scores = some_scores(rng, codes, 3)
    stages = follow(scores, codes, 3, np.full(60, 1e12))
    assert np.isfinite([stage.loss for stage in stages]).all()
    assert stages[0].calibration.uniform == pytest.approx(1 / 6e13, rel=1e-6)


# --- rows that nobody else vouches for -------------------------------------------------------------------


@pytest.mark.parametrize("calibration", ["temperature", "matrix"])
def test_a_row_alone_in_its_class_does_not_calibrate(rng, calibration):
    codes = np.append(rng.integers(0, 2, 59), 2)
    scores = some_scores(rng, codes, 3)
    scores[:, -1] = [5.0, 0.0, -5.0]  # as far from its class as can be
    rule = CALIBRATIONS[calibration]
    for depth, stage in enumerate(follow(scores, codes, 3, calibration=calibration), start=1):
        P = combined(scores[:depth], [1] * depth, "softmax")
        Q = calibrate(P[:-1], codes[:-1], None, rule)(P)
        np.testing.assert_allclose(stage.calibration(P), Q, atol=1e-5)
        # but the figures count it
        assert stage.score == pytest.approx(np.mean(Q.argmax(axis=1) == codes))
        assert stage.loss == pytest.approx(log_loss(Q, codes, None), abs=1e-5)


@pytest.mark.parametrize(
    ("of_class", "alone"),
    [([1.0], True), ([0.3], True), ([1e-12], True), ([2.0], True), ([1e-3] * 5, False), ([1e-12] * 5, False)],
    ids=str,
)
def test_who_is_alone_in_a_class(rng, of_class, alone):
    size = len(of_class)
    codes = np.append(rng.integers(0, 2, 59), [2] * size)
    counts = np.append(np.ones(59), of_class)
    scores = some_scores(rng, codes, 3, 1)
    scores[:, 59:] = [5.0, 0.0, -5.0]
    P = combined(scores, [1], "softmax")
    rows = slice(59) if alone else slice(None)
    n = max(counts[rows].sum(), counts[rows].sum() ** 2 / np.sum(counts[rows] ** 2))
    w = counts * (n / counts[rows].sum())
    expected = calibrate(P[rows], codes[rows], w[rows], "matrix")
    (stage,) = follow(scores, codes, 3, counts)
    np.testing.assert_allclose(stage.calibration(P), expected(P), atol=1e-6)


def test_where_every_row_is_alone_nothing_is_sharpened(rng):
    scores = rng.standard_normal((2, 4, 4))
    for stage in follow(scores, np.arange(4), 4, layer_votes="weighted"):
        assert stage.calibration.matrix is None
        assert stage.calibration.a == 1
        assert np.isfinite([stage.vote, stage.loss, stage.score]).all()


# --- array libraries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer_votes", ["equal", "weighted"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_library_is_followed_alike(xp, rng, layer_votes, dtype):
    codes, counts = rng.integers(0, 3, 60), rng.integers(1, 3, 60).astype(dtype)
    costs = np.array([1.0, 2.0, 0.5], dtype=dtype)[codes]
    scores = some_scores(rng, codes, 3).astype(dtype)
    expected = follow(scores, codes, 3, counts, costs, layer_votes=layer_votes)
    stages = follow(scores, codes, 3, counts, costs, xp, layer_votes=layer_votes)
    for one, other in zip(stages, expected, strict=True):
        assert (one.vote, one.score, one.loss) == (other.vote, other.score, other.loss)
        np.testing.assert_array_equal(one.calibration.matrix, other.calibration.matrix)


def test_the_weight_of_a_class_with_one_row_is_no_evidence_about_the_others(rng):
    codes = np.append(rng.integers(0, 2, 200), 2)
    scores = some_scores(rng, codes, 3, 1)
    P = combined(scores, [1], "softmax")
    calibrations = []
    for cost in (1.0, 1e4):
        costs = np.where(codes == 2, cost, 1.0)
        network = EDRVFLClassifier()
        follower = follower_of(Classes(codes, 3, np.zeros(0)), RowWeights(None, costs), None, network)
        calibrations.append(follower.add(scores[0]).calibration(P))
    np.testing.assert_allclose(*calibrations, atol=1e-6)
