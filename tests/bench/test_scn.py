"""SCN: the residual, the inequality and the read-out recomputed from the fitted nodes."""

import numpy as np
import pytest
from helpers import to_host
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from edrvfl.bench.baselines.scn import (
    CONTRACTIONS,
    NODES,
    SCALES,
    Rules,
    SCNClassifier,
    configurations,
    configure,
    find_node,
    orthogonalise,
)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    return X, y, np.eye(3)[y]


@pytest.fixture(scope="module")
def fitted(wine):
    X, y, _ = wine
    return SCNClassifier(max_nodes=60, standardize=False, random_state=0).fit(X, y)


def hidden(model, X):
    """The hidden matrix from the weights, by the formula."""
    return expit(X @ model.hidden_weights_[:-1] + model.hidden_weights_[-1])


def residual(H, Y):
    return Y - H @ np.linalg.lstsq(H, Y, rcond=None)[0]


def test_every_node_lowers_the_residual_as_much_as_it_promised(wine, fitted):
    """|E| falls strictly; each output's squared residual falls to at most r times itself less the margin."""
    X, _, Y = wine
    H = hidden(fitted, X)
    assert fitted.n_nodes_ == 60
    assert np.all(np.diff(fitted.residual_norms_) < 0)
    assert len(fitted.residual_norms_) == 61
    for l in range(60):
        before, after = residual(H[:, :l], Y), residual(H[:, : l + 1], Y)
        np.testing.assert_allclose(fitted.residual_norms_[l], np.linalg.norm(before), rtol=1e-7)
        bound = fitted.admitted_at_[l] * (before**2).sum(0) - fitted.margins_[l]
        assert np.all((after**2).sum(0) <= bound * (1 + 1e-7))


def test_every_admitted_node_satisfies_the_inequality(wine, fitted):
    X, _, Y = wine
    H = hidden(fitted, X)
    for l, (xi, r) in enumerate(zip(fitted.margins_, fitted.admitted_at_, strict=True)):
        E, g = residual(H[:, :l], Y), H[:, l]
        again = [(e @ g) ** 2 / (g @ g) - (1 - r) * (e @ e) for e in E.T]
        np.testing.assert_allclose(xi, again, rtol=1e-6, atol=1e-9)
        assert min(again) > 0
        mu = (1 - r) / (l + 2)  # the paper's inequality is the weaker one
        assert all((e @ g) ** 2 >= (g @ g) * (1 - r - mu) * (e @ e) for e in E.T)


def test_the_best_admissible_candidate_of_the_first_range_and_contraction_is_taken(wine):
    """The first node again, candidate by candidate, from the same draws."""
    X, _, Y = wine
    contractions = (0.6, 0.715)  # lambda = 0.01 has none, 0.4 has none at 0.6 and three at 0.715
    rules = Rules(max_nodes=1, n_candidates=30, scales=(0.01, 0.4), contractions=contractions, tol=0)
    found = configure(X, Y, rules, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    for scale in (0.01, 0.4):
        W = rng.uniform(-scale, scale, (14, 30))
        for r in contractions:
            scores = {}
            for w in W.T:
                g = expit(X @ w[:-1] + w[-1])
                xi = [(y @ g) ** 2 / (g @ g) - (1 - r) * (y @ y) for y in Y.T]
                if min(xi) > 0:
                    scores[sum(xi)] = w
            if scores:
                break
        if scores:
            break
    assert (scale, r, len(scores)) == (0.4, 0.715, 3)
    assert found.admitted_at == (r,)
    np.testing.assert_array_equal(found.W[:, 0], scores[max(scores)])


def test_output_weights_are_the_least_squares_solution(wine, fitted):
    X, _, Y = wine
    H = hidden(fitted, X)
    expected = np.linalg.lstsq(H, Y, rcond=None)[0]
    np.testing.assert_allclose(
        fitted.output_weights_, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max()
    )
    np.testing.assert_allclose(H @ fitted.output_weights_, fitted.decision_function(X), rtol=1e-9, atol=1e-9)


def test_a_smaller_network_is_the_first_nodes_of_a_larger(wine, fitted):
    X, y, _ = wine
    small = clone(fitted).set_params(max_nodes=12).fit(X, y)
    np.testing.assert_array_equal(small.hidden_weights_, fitted.hidden_weights_[:, :12])
    assert small.margins_ == fitted.margins_[:12]
    assert small.residual_norms_ == fitted.residual_norms_[:13]
    cut = fitted.first_nodes(12)
    np.testing.assert_allclose(cut.output_weights_, small.output_weights_, rtol=1e-12)
    np.testing.assert_array_equal(cut.predict(X), small.predict(X))
    told = ("max_nodes", "n_nodes_", "stop_reason_", "residual_norms_", "margins_", "admitted_at_")
    assert all(getattr(cut, name) == getattr(small, name) for name in told)
    assert fitted.n_nodes_ == 60, "the larger network stays as it is"
    assert fitted.first_nodes(1000).n_nodes_ == 60


def test_small_ranges_and_contractions_are_tried_first(fitted):
    assert np.abs(fitted.hidden_weights_[:, 0]).max() <= SCALES[0]
    assert set(fitted.admitted_at_) <= set(CONTRACTIONS)
    assert fitted.admitted_at_[0] < max(fitted.admitted_at_)


def test_the_three_reasons_to_stop(wine):
    X, y, _ = wine
    model = SCNClassifier(max_nodes=7, random_state=0).fit(X, y)
    assert (model.n_nodes_, model.stop_reason_) == (7, "max_nodes")
    model.set_params(max_nodes=100, tol=0.3).fit(X, y)
    assert model.stop_reason_ == "tolerance"
    assert model.residual_norms_[-1] <= 0.3 * np.sqrt(len(X)) < model.residual_norms_[-2]
    cut = model.first_nodes(model.n_nodes_)
    assert cut.stop_reason_ == clone(cut).fit(X, y).stop_reason_ == "max_nodes", (
        "before the residual is asked"
    )
    model.set_params(tol=0.0, contractions=[0.9]).fit(X, y)
    assert model.stop_reason_ == "no candidate"
    assert 0 < model.n_nodes_ < 100


def test_a_network_without_nodes_still_answers(wine):
    X, y, _ = wine
    model = SCNClassifier(contractions=[1e-6], random_state=0).fit(X, y)
    assert (model.n_nodes_, model.stop_reason_) == (0, "no candidate")
    np.testing.assert_allclose(model.predict_proba(X), 1 / 3)


@pytest.mark.parametrize("own", [1.0, 1e-3, 1e-6])
def test_a_new_column_of_the_factorisation_is_exact(xp, rng, own):
    """Also for a node that is nearly a combination of the others; one pass would lose eps / own."""
    Q = np.linalg.qr(rng.standard_normal((50, 12)))[0]
    g = Q @ rng.standard_normal(12) + own * rng.standard_normal(50)
    q, column = map(to_host, orthogonalise(xp.asarray(g), xp.asarray(Q.T)))
    assert np.abs(Q.T @ q).max() < 1e-14
    assert np.linalg.norm(q) == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(np.column_stack([Q, q]) @ column, g, atol=1e-14)
    np.testing.assert_allclose(column[:-1], Q.T @ g, atol=1e-14)


def test_a_dependent_node_is_refused(xp, rng):
    """Two distinct rows span two dimensions: with two nodes a third adds nothing, however well it fits."""
    Q = np.linalg.qr(np.repeat(np.eye(2), 20, axis=0))[0]
    X, E = np.repeat([[-1.0, 0.5], [1.0, 2.0]], 20, axis=0), np.repeat([[2.0], [1.0]], 20, axis=0)
    rules = Rules(max_nodes=3, n_candidates=10, scales=[1.0], contractions=[0.5, 0.9999], tol=0)
    X, E, Qt = (xp.asarray(A) for A in (X, E, Q.T))
    assert find_node(X, E, Qt, rules, rng) is None
    assert find_node(X, E, Qt[:1, :], rules, rng) is not None


def test_nodes_that_never_fire_do_no_harm():
    """Inputs so large that most sigmoids are exactly 0 or 1 in every row."""
    rng = np.random.default_rng(0)
    X, y = 1e6 * (3 + rng.random((40, 2))), np.tile([0, 1], 20)
    model = SCNClassifier(standardize=False, max_nodes=5, random_state=0).fit(X, y)
    assert np.isfinite(model.output_weights_).all()


def test_the_search_stretches_the_authors_scales():
    drawn = configurations(40, 5)
    assert [c["max_nodes"] for c in drawn] == [*NODES] * 8
    stretches = [np.divide(c["scales"], SCALES) for c in drawn]
    for stretch in stretches:
        np.testing.assert_allclose(stretch, stretch[0], rtol=0.01)
    first = [stretch[0] for stretch in stretches]
    assert 1 / 16.1 < min(first) < 0.25
    assert 1 < max(first) < 2.01
