"""Influence of training rows on answers: the change when a row is deleted, by brute force."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import PAPER, noisy_rows, noisy_values
from without import without

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
)
from edrvfl._afterwards import readouts
from edrvfl._fitting import kernel as kernel_fit

SMALL = {"n_hidden": 12, "n_layers": 2, "remember": "rows", "random_state": 0}
ROWS = {"remember": "rows", "random_state": 0}
JOINT = {"readout": "joint", "correct_weight": 1.0, "prune_rate": 0.0}


def members(network, kernel):
    small = {"n_hidden": 10, "n_layers": 2, "random_state": None}
    return [("k", kernel()), ("n", network(**small)), ("p", network(**small, pair_share=0.5, encoder="bins"))]


CLASSIFIERS = {
    "network": EDRVFLClassifier(**SMALL, **PAPER),
    "network, balanced": EDRVFLClassifier(**SMALL, **PAPER, class_weight="balanced", ensemble="mean"),
    "more neurons than rows": EDRVFLClassifier(**{**SMALL, "n_hidden": 90}, regularization=0.1),
    "joint": EDRVFLClassifier(**SMALL, **JOINT),
    "not calibrated": EDRVFLClassifier(**SMALL, calibration=None, layer_votes="weighted"),
    "kernel": KernelRidgeClassifier(**ROWS, class_weight="balanced"),
    "landmarks": KernelRidgeClassifier(**ROWS, n_landmarks=15),
    "portfolio": EDRVFLPortfolioClassifier(members=members(EDRVFLClassifier, KernelRidgeClassifier), **ROWS),
}
REGRESSORS = {
    "value network": EDRVFLRegressor(**SMALL, correct_weight=0.6, prune_rate=0.2),
    "value joint": EDRVFLRegressor(**SMALL, **JOINT),
    "value kernel": KernelRidgeRegressor(**ROWS, kernel="matern"),
    "value portfolio": EDRVFLPortfolioRegressor(
        members=members(EDRVFLRegressor, KernelRidgeRegressor), **ROWS
    ),
}


def weighted_rows(values=False):
    """Rows with weights, some of which came twice, and others once more with another target."""
    rng = np.random.default_rng(4)
    X, y = (noisy_values if values else noisy_rows)(rng, 60, 4, *([2] if values else []))
    X, y = np.vstack([X, X[:6]]), np.concatenate([y, y[:3], y[10:13]])
    w = rng.integers(1, 4, len(X)).astype(float)
    w[20] = 0.0
    return X, y, w, rng.standard_normal((5, 4))


def changes(model, new, k):
    """By brute force: the change (rows that came, new rows, k) of each answer when one of them goes."""
    before, memory = model._model.answer(new), model.memory_
    return np.stack(
        [before - without(model._model, memory, [i]).answer(new) for i in range(memory.rows.n_rows)]
    )


def check(model, new, k):
    """Compare all influences on all answers with brute force."""
    expected = changes(model, new, k)
    m = len(expected)
    assert np.abs(expected).max() > 1e-4
    for c in range(k):
        of = model.classes_[c] if hasattr(model, "classes_") else c
        table = pd.DataFrame(model.influence(new, n=m, of=of))
        for x, rows in table.groupby("new_row"):
            places = [model.memory_.rows.ids.tolist().index(row) for row in rows.training_row]
            scale = max(1.0, np.abs(rows.answer).max())
            np.testing.assert_allclose(rows.change, expected[places, x, c], atol=1e-9 * scale)
            assert sorted(places) == list(range(m))
            assert (np.diff(np.abs(rows.change)) <= 0).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_influence_on_probabilities_is_what_deleting_a_row_changes(name):
    X, y, w, new = weighted_rows()
    model = CLASSIFIERS[name].fit(X, y, w)
    check(model, new, 3)
    first = model.influence(new, n=1)
    P = model.predict_proba(new)
    np.testing.assert_array_equal(first.of, model.predict(new))
    np.testing.assert_allclose(first.answer, P.max(axis=1))


@pytest.mark.parametrize("name", REGRESSORS)
def test_influence_on_values_is_what_deleting_a_row_changes(name):
    X, y, w, new = weighted_rows(values=True)
    y = y * [1.0, 1e6] + [0.0, 1e7]
    check(REGRESSORS[name].fit(X, y, w), new, 2)


def test_influence_on_a_kernel_in_parts(monkeypatch):
    monkeypatch.setattr(kernel_fit, "LEAST_PART", 20)
    monkeypatch.setattr(kernel_fit, "PART_ROWS", {False: 24, True: 24})
    X, y, _, new = weighted_rows()
    model = KernelRidgeClassifier(**ROWS).fit(X, y)
    assert len(model.memory_.voters[0].lams) > 1
    check(model, new, 3)


def test_rows_have_the_names_of_their_index():
    X, y, _, _ = weighted_rows()
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))], columns=list("abcd"))
    named = EDRVFLClassifier(**SMALL).fit(frame, y).influence(frame[:2], n=3)
    plain = EDRVFLClassifier(**SMALL).fit(X, y).influence(X[:2], n=3)
    assert named.training_row.tolist() == [f"row {i}" for i in plain.training_row]
    assert named.new_row.tolist() == [0, 0, 0, 1, 1, 1]


def test_other_libraries_and_float32_are_answered_alike():
    torch = pytest.importorskip("torch")
    X, y, _, new = weighted_rows()
    expected = EDRVFLClassifier(**SMALL).fit(X, y)
    table = expected.influence(new, n=5, of=1)
    for other in (lambda array: torch.asarray(array), lambda array: array.astype(np.float32)):
        with sklearn.config_context(array_api_dispatch=True):
            model = EDRVFLClassifier(**SMALL).fit(other(X), other(y))
            found, ranks = model.influence(other(new), n=5, of=1), model.support(other(new))
            assert type(ranks) is type(other(new))
            assert ranks.dtype == other(new).dtype
        np.testing.assert_array_equal(found.training_row, table.training_row)
        np.testing.assert_allclose(found.change, table.change, atol=1e-5)
        np.testing.assert_allclose(np.asarray(ranks), expected.support(new), atol=0.02)
        np.testing.assert_array_equal(model.doubtful_rows().row, expected.doubtful_rows().row)


def test_rows_that_came_later_have_influence_and_those_that_went_have_none():
    X, y, _, new = weighted_rows()
    model = EDRVFLClassifier(**SMALL, **PAPER).fit(X[:50], y[:50]).update(X[50:], y[50:])
    model.forget(X[:4], y[:4])
    check(model, new, 3)
    known = set(model.memory_.rows.ids)
    assert len(known) == 62
    assert set(model.influence(new, n=100).training_row) == known == set(model.doubtful_rows(n=100).row)


def test_what_cannot_be_told_is_refused(monkeypatch):
    X, y, _, new = weighted_rows()
    for remember in (None, "sums"):
        model = EDRVFLClassifier(**{**SMALL, "remember": remember}).fit(X, y)
        for ask in (model.support, model.influence):
            with pytest.raises(ValueError, match='with remember="rows"'):
                ask(new)
        with pytest.raises(ValueError, match=f"fitted with remember={remember!r}"):
            model.doubtful_rows()
    singular = EDRVFLClassifier(**{**SMALL, "n_hidden": 150}, regularization=0.0)
    with pytest.raises(ValueError, match="Fit with a larger regularization"):
        singular.fit(X, y).influence(new)
    monkeypatch.setattr(readouts, "free_bytes", lambda _: 1000)
    with pytest.raises(ValueError, match=r"system of a kernel over 63 rows takes .* Fit with fewer rows"):
        KernelRidgeClassifier(**ROWS).fit(X, y).influence(new)
    model = EDRVFLClassifier(**SMALL).fit(X, y)
    with pytest.raises(ValueError, match=r"of must name a class: one of \[0, 1, 2\]. Got 7"):
        model.influence(new, of=7)
    with pytest.raises(ValueError, match="n == 0"):
        model.influence(new, n=0)
