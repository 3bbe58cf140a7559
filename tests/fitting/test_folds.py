"""Folds: a row is judged by a model that its label did not shape, and what sees labels proves itself."""

import dataclasses

import numpy as np
import pytest
from helpers import noisy_rows, to_host
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import kernel_scores_without_each_row, layer_scores, output_weights
from sklearn.base import clone

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, KernelRidgeClassifier, variant
from edrvfl._fitting.data import InMemory
from edrvfl._fitting.folds import deal_folds, n_folds, together
from edrvfl._fitting.inputs import learn_network_inputs
from edrvfl._fitting.kernel import judge_fold
from edrvfl._fitting.network import judge_by_folds, new_network
from edrvfl._fitting.settings import network_settings
from edrvfl._inputs.rows import prepare_rows, prepare_values
from edrvfl._layers.draws import Draws, Recipe

PAPER = {"n_layers": 3, "n_hidden": 8, "input_scaling": None, "correct_weight": 0.6, "prune_rate": 0.3}


def rows_of_fold(fold):
    return fold.order[-len(fold.places) :]


# --- dealing ---------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(8, 80), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_every_row_is_in_one_fold_and_classes_are_dealt_evenly(seed, m, k):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(m, 3)), np.arange(m) % k
    folds = deal_folds(prepare_rows(X, y), None)
    inside = [rows_of_fold(fold) for fold in folds]
    assert sorted(np.concatenate(inside)) == list(range(m))
    for c in range(k):
        shares = [int((y[some] == c).sum()) for some in inside]
        assert max(shares) - min(shares) <= 1
    for fold in folds:
        assert sorted(fold.order) == list(range(m))


def test_neither_order_nor_units_matter_and_equal_rows_stay_together(rng):
    X = rng.normal(size=(40, 3))
    X = np.concatenate([X, X[:10]])
    y = rng.integers(0, 2, 50)  # some copies have the other label, so that they are not merged
    y[40:] = 1 - y[:10]

    def fold_of(X, y):
        found = np.empty(len(y), dtype=int)
        for f, fold in enumerate(deal_folds(prepare_rows(X, y), None)):
            found[rows_of_fold(fold)] = f
        return found

    expected, order = fold_of(X, y), rng.permutation(50)
    assert (expected[:10] == expected[40:]).all()
    assert (fold_of(X[order], y[order]) == expected[order]).all()
    assert (fold_of(X * [1e200, 3e-7, 1e-200] + [0, 5, 0], y) == expected).all()


def test_many_rows_are_judged_by_one_fit():
    assert n_folds(100, 10) == 3
    assert n_folds(1_000, 10) == n_folds(2_000, 100) == 2
    assert n_folds(1_500, 10) == n_folds(10_000, 500) == 0
    rows = prepare_rows(np.arange(6.0).reshape(3, 2), np.array([0, 1, 1]))
    assert deal_folds(rows, None) == ()  # a fold alone has nothing to learn from


# --- judging ---------------------------------------------------------------------------------------------


def network_scores(estimator, rows, folds=None):
    """Return each layer's scores (layers, rows, k) by folds."""
    data, given = InMemory(rows, None), network_settings(estimator)
    folds = data.folds if folds is None else folds
    inputs = learn_network_inputs(data, dataclasses.replace(given.inputs, scaling=None), 0).inputs
    draws = Draws(Recipe.of(given.layers, 0, inputs, rows), rows.X, keep=True)
    scores = judge_by_folds(folds, (inputs,) * len(folds), given.layers, draws)
    return np.array([to_host(one)[0] for one in scores])


@pytest.mark.parametrize("weight_from", ["train", "loo"])
@pytest.mark.parametrize("lam", [0.5, "loo"])
@pytest.mark.parametrize("m", [40, 15], ids=["primal", "dual"])
def test_scores_are_those_of_leaving_each_row_out(rng, m, lam, weight_from):
    X, y = noisy_rows(rng, m, 3)
    rows = prepare_rows(X, y)
    model = variant("WPedRVFL", **PAPER, regularization=lam, weight_from=weight_from, encoder=None)
    scores = network_scores(model, rows)
    Y = np.eye(3)[y]
    for fold in deal_folds(rows, None):
        inside, outside, seen = rows_of_fold(fold), fold.order[: -len(fold.places)], []
        layer_scores(
            X[outside], y[outside], X[inside], 0, 3, 8, lam, "relu", True, 1.0, 0.0, 0.6, 0.3, weight_from,
            encode=False, seen=seen,
        )  # fmt: skip
        for l, (D, D_new, omega, penalty) in enumerate(seen):
            for j, i in enumerate(inside):
                others = np.arange(len(inside)) != j
                features = np.concatenate([D, D_new[others]])
                weights = np.concatenate([omega, np.ones(others.sum())])
                targets = np.concatenate([Y[outside], Y[inside][others]])
                expected = D_new[j] @ output_weights(features, targets, weights, penalty)
                np.testing.assert_allclose(scores[l, i], expected, atol=1e-8)


@pytest.mark.parametrize(
    "more",
    [{}, {"weight_from": "loo", "regularization": "loo"}, {"pair_share": 0.5}, {"readout": "joint"}],
    ids=["paper", "by leave-one-out", "pairs", "joint"],
)
def test_a_rows_own_label_has_no_say_in_its_scores(rng, more):
    X, y = noisy_rows(rng, 36, 3)
    joint = {"correct_weight": 1.0, "prune_rate": 0.0} if more.get("readout") == "joint" else {}
    model, rows = EDRVFLClassifier(**{**PAPER, **more, **joint}), prepare_rows(X, y)
    folds = deal_folds(rows, None)
    before = network_scores(model, rows, folds)
    for i in (0, 7, 20):
        other = y.copy()
        other[i] = (y[i] + 1) % 3
        changed = prepare_rows(X, other)
        same = [dataclasses.replace(fold, rows=changed) for fold in folds]
        after = network_scores(model, changed, same)
        np.testing.assert_allclose(after[:, i], before[:, i], atol=1e-9)
        assert np.abs(np.delete(after - before, i, axis=1)).max() > 1e-3


@pytest.mark.parametrize("values", [False, True], ids=["classes", "values"])
def test_factors_and_kernels_of_a_fold_do_not_see_its_labels(rng, values):
    X, y = noisy_rows(rng, 40, 4)
    y = X[:, 0] + 0.1 * rng.normal(size=40) if values else y
    data = InMemory((prepare_values if values else prepare_rows)(X, y), None)
    inputs = dataclasses.replace(network_settings(EDRVFLClassifier()).inputs, scaling="gradient")
    learnt = learn_network_inputs(data, inputs, 0)
    fold = data.folds[0]
    other = y.copy()
    some = rows_of_fold(fold)
    other[some] = rng.permutation(y[some][::-1])
    changed = InMemory((prepare_values if values else prepare_rows)(X, other), None)
    object.__setattr__(changed, "folds", tuple(dataclasses.replace(f, rows=changed.rows) for f in data.folds))
    again = learn_network_inputs(changed, inputs, 0)
    np.testing.assert_allclose(again.of_folds[0].factors, learnt.of_folds[0].factors, rtol=1e-9)
    assert again.ridges[0] == pytest.approx(learnt.ridges[0])
    assert np.abs(again.inputs.factors - learnt.inputs.factors).max() > 1e-6


def test_a_kernel_judges_by_leaving_each_row_out(rng):
    X, y = noisy_rows(rng, 30, 3)
    data = InMemory(prepare_rows(X, y), None)
    inputs = data.encoding(None)
    scores = together(data.folds, [judge_fold(fold, inputs, (0.5, 0.25)) for fold in data.folds])
    for fold in data.folds:
        inside = rows_of_fold(fold)
        prior = np.bincount(y[fold.order[: -len(inside)]], minlength=3) / (30 - len(inside))
        expected = kernel_scores_without_each_row(X, np.eye(3)[y], 0.5, 0.25, prior)
        np.testing.assert_allclose(scores[inside], expected[inside], atol=1e-9)


def test_a_network_that_looks_at_no_label_is_judged_by_one_fit(rng):
    X, y = noisy_rows(rng, 60, 3)
    neutral = EDRVFLClassifier(
        n_hidden=10, n_layers=2, correct_weight=1.0, prune_rate=0.0, input_scaling=None, random_state=0
    )
    data, given = InMemory(prepare_rows(X, y), None), network_settings(neutral)
    assert not given.looks_at_labels
    learnt = learn_network_inputs(data, given.inputs, 0)
    assert new_network(data, given, learnt, 0).of_folds == (learnt.inputs,) * 3


# --- proof -----------------------------------------------------------------------------------------------


def test_noise_is_called_noise():
    figures = []
    for draw in range(6):
        rng = np.random.default_rng(draw)
        X, y = rng.normal(size=(1080, 10)), rng.integers(0, 2, 1080)
        model = EDRVFLClassifier(random_state=0).fit(X[:80], y[:80])
        P = model.predict_proba(X[80:])
        covered = model.predict_set(X[80:])[np.arange(1000), y[80:]].mean()
        figures.append((model.loo_accuracies_[-1], -np.log(P[np.arange(1000), y[80:]]).mean(), covered))
    accuracy, loss, covered = np.mean(figures, axis=0)
    assert accuracy < 0.58  # with labels that everything had seen it was 0.66
    assert loss < 0.72  # 0.82
    assert covered > 0.86  # 0.74


def test_what_helps_is_used_and_what_does_not_is_not(rng):
    X = rng.normal(size=(120, 40))
    one, none = (X[:, 0] > 0).astype(int), rng.integers(0, 2, 120)
    assert KernelRidgeClassifier().fit(X, one).proven_ == {"input_scaling": "gradient"}
    assert EDRVFLRegressor(input_scaling="loo", random_state=0).fit(X, X[:, 0]).proven_["input_scaling"]
    proven = EDRVFLClassifier(n_layers=3, random_state=0).fit(X, one).proven_
    assert set(proven) == {"input_scaling", "correct_weight", "prune_rate"}
    assert (proven["correct_weight"], proven["prune_rate"]) in [(1.0, 0.0), (0.8, 0.2)]
    given = EDRVFLClassifier(
        n_layers=3, input_scaling=None, correct_weight=0.7, prune_rate=0.1, random_state=0
    ).fit(X, none)
    assert given.proven_ == {}
    assert given.neurons_kept_ == (461,) * 3


def test_a_proven_network_is_the_one_with_these_parameters(rng):
    X, y = noisy_rows(rng, 90, 6)
    loo = EDRVFLClassifier(n_hidden=30, n_layers=3, random_state=0, calibration=None).fit(X, y)
    plain = EDRVFLClassifier(n_hidden=30, n_layers=3, random_state=0, calibration=None, **loo.proven_).fit(
        X, y
    )
    np.testing.assert_array_equal(loo.predict_proba(X), plain.predict_proba(X))


# --- rows that agree by chance ---------------------------------------------------------------------------


def poll(m, seed):
    """Three questions with two to four answers, and a label that they do not decide."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(n, size=m) for n in (4, 2, 3)]).astype(float)
    return X, (X[:, 0] + X[:, 1] + 1.5 * rng.standard_normal(m) > 2).astype(int)


@pytest.mark.parametrize("estimator", [EDRVFLClassifier(n_hidden=64, n_layers=4), KernelRidgeClassifier()])
def test_few_cells_are_judged_as_new_rows_are(estimator):
    X, y = poll(500, 0)
    X_new, y_new = poll(20_000, 1)
    model = clone(estimator).set_params(random_state=0).fit(X, y)
    told = model.loo_accuracies_[-1] if isinstance(model, EDRVFLClassifier) else model.loo_accuracy_
    # 500 rows know an accuracy of 0.75 with a standard error of 0.02
    assert abs(told - model.score(X_new, y_new)) < 0.05
    sets = model.predict_set(X_new, coverage=0.9)
    assert sets[np.arange(len(y_new)), y_new].mean() > 0.87


def test_a_table_of_counts_is_the_table_of_its_rows():
    X, y = poll(300, 0)
    cells, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    of_rows = KernelRidgeClassifier(random_state=0).fit(X, y)
    of_counts = KernelRidgeClassifier(random_state=0).fit(cells[:, :3], cells[:, 3].astype(int), counts)
    # leave-one-out, which calibrates, may have the digits of float32
    np.testing.assert_allclose(of_counts.predict_proba(X), of_rows.predict_proba(X), atol=1e-6)
    assert of_counts.loo_accuracy_ == pytest.approx(of_rows.loo_accuracy_)
