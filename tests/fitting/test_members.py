"""One member of a portfolio is the estimator fitted alone."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from helpers import noisy_rows, to_host
from sklearn.base import clone
from sklearn.utils import check_random_state

from edrvfl import EDRVFLClassifier, KernelRidgeClassifier
from edrvfl._fitting.data import InMemory
from edrvfl._fitting.portfolio import LARGEST_SEED, prepare_members
from edrvfl._fitting.race import fit_member
from edrvfl._fitting.settings import voter_settings
from edrvfl._inputs.rows import prepare_rows
from edrvfl._inputs.table import learn_table, open_table

SMALL = EDRVFLClassifier(n_layers=3, n_hidden=12, regularization=0.5, calibration="temperature")
NETWORKS = {
    "paper": {},
    "mean": {"ensemble": "mean"},
    "vote": {"ensemble": "vote"},
    "leave-one-out": {"regularization": "loo", "weight_from": "loo"},
    "bins": {"encoder": "bins", "input_scaling": "gradient"},
    "sparse": {"inputs_per_neuron": 2, "hidden_per_neuron": 4},
    "pairs": {"pair_share": 0.5, "correct_weight": 1.0, "prune_rate": 0.0},
    "ranges": {"norm_scale": (0.5, 3.0), "norm_shift": (-1.0, 1.0), "activation": "sigmoid"},
    "width": {"n_hidden": "auto", "n_layers": 2},
    "dual, weighed": {"n_hidden": 120, "correct_weight": 0.4},
    "raw": {"renormalize": False, "prune_rate": 0.4},
}
KERNELS = {
    "plain": {"input_scaling": None},
    "scaled": {"encoder": "robust"},
    "landmarks": {"n_landmarks": 30},
    "given": {"bandwidth": 0.5, "regularization": 0.3},
}


def prepare(estimator, X, y, weights=None, class_weight=None, random_state=3):
    """Return the rows and the member that a portfolio makes of an estimator with this seed."""
    table, columns = learn_table(open_table(X), "from_dtype")
    rows = prepare_rows(table, y, weights, class_weight)
    seed = int(check_random_state(random_state).randint(LARGEST_SEED))
    data = InMemory(rows, columns)
    (member,) = prepare_members(data, {"it": voter_settings(estimator)}, seed)
    return data, replace(member, seed=seed)  # an estimator alone takes the seed itself


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_with_a_pause_is_the_estimator_alone(noisy, name, first):
    X, y = noisy
    estimator = clone(SMALL).set_params(**NETWORKS[name])
    alone = clone(estimator).set_params(random_state=3).fit(X, y)
    data, member = prepare(estimator, X, y)
    depth = estimator.n_layers
    done = fit_member(data, member, None, min(first, depth))
    if first < depth:
        assert done.growing.paused is not None
        done = fit_member(*pickle.loads(pickle.dumps((data, member, done))), depth)
    assert done.growing.paused is None
    assert member.settings.grows
    np.testing.assert_allclose([s.loss for s in done.stages], alone.loo_log_losses_, rtol=1e-6)
    np.testing.assert_allclose([s.score for s in done.stages], alone.loo_accuracies_, rtol=1e-9)
    np.testing.assert_allclose(done.voter.answer(X), alone.predict_proba(X), atol=1e-7)
    assert done.best == 1 + np.argmin(alone.loo_log_losses_)
    assert done.chosen is done.stages[done.best - 1]
    assert len(done.kept.layers) == done.best
    staged = list(alone.staged_predict_proba(X))
    np.testing.assert_allclose(done.kept.answer(X), staged[done.best - 1], atol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_voter_is_the_estimator_alone(noisy, name):
    X, y = noisy
    estimator = KernelRidgeClassifier(calibration="temperature", **KERNELS[name])
    alone = clone(estimator).set_params(random_state=3).fit(X, y)
    data, member = prepare(estimator, X, y)
    done = fit_member(data, member, None, 1)
    assert not member.settings.grows
    assert done.kept is done.voter
    assert (done.chosen.score, done.chosen.loss) == (alone.loo_accuracy_, alone.loo_log_loss_)
    np.testing.assert_allclose(done.voter.answer(X), alone.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("estimator", [SMALL, KernelRidgeClassifier(calibration="temperature")], ids=str)
def test_weights_of_rows_and_classes_are_those_of_the_estimator(noisy, rng, estimator):
    X, y = noisy
    weights, costs = rng.choice([0.0, 0.5, 1.0, 3.0], len(y)), {0: 1.0, 1: 4.0, 2: 0.5}
    alone = clone(estimator).set_params(random_state=3, class_weight=costs).fit(X, y, sample_weight=weights)
    data, member = prepare(estimator, X, y, weights, costs)
    if member.settings.grows:
        done = fit_member(data, member, fit_member(data, member, None, 2), 3)
    else:
        done = fit_member(data, member, None, 1)
    np.testing.assert_allclose(done.voter.answer(X), alone.predict_proba(X), atol=1e-8)


GIVEN = KernelRidgeClassifier(bandwidth=1.0, regularization=0.5, n_landmarks=40, input_scaling=None)


@pytest.mark.parametrize("estimator", [SMALL, GIVEN], ids=str)
def test_a_part_of_the_rows_is_judged(rng, estimator):
    X, y = noisy_rows(rng, 3200, 4)
    y = np.minimum(y, 1)  # of two classes 3,000 rows are judged
    estimator = clone(estimator).set_params(calibration="temperature")
    alone = clone(estimator).set_params(random_state=3).fit(X, y)
    data, member = prepare(estimator, X, y)
    done = fit_member(data, member, None, 3)
    if member.settings.grows:  # a pause holds the rows' weights, and not their features
        assert len(pickle.dumps(fit_member(data, member, None, 1).growing.paused)) < 3200 * 8 + 5000
    assert done.chosen.P.shape == (3000, 2)
    np.testing.assert_allclose(done.voter.answer(X), alone.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("name", ["paper", "leave-one-out", "bins", "pairs"])
def test_every_library_grows_the_same_network(xp, noisy, name):
    X, y = noisy
    estimator = clone(SMALL).set_params(**NETWORKS[name])
    with sklearn.config_context(array_api_dispatch=True):
        data, member = prepare(estimator, xp.asarray(X), xp.asarray(y))
    done = fit_member(data, member, None, 1)
    done = fit_member(data, member, done, 3)
    expected = clone(estimator).set_params(random_state=3).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(to_host(done.voter.answer(xp.asarray(X))), expected, atol=1e-7)
