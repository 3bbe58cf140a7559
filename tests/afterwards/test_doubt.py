"""Doubtful rows: what the model says of each training row without it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from helpers import noisy_rows, noisy_values
from test_influence import CLASSIFIERS, REGRESSORS, weighted_rows
from without import without

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, KernelRidgeClassifier, load
from edrvfl._afterwards.doubt import honest_answers
from edrvfl._afterwards.explained import Explained
from edrvfl._fitting import kernel as kernel_fit


def answers(model, judged=None):
    """What all rows get from the model without them: by read-outs, but where the fit judged them."""
    memory = model.memory_
    memory = dataclasses.replace(memory, rows=dataclasses.replace(memory.rows, answers=judged))
    return honest_answers(Explained.of(model._model, memory))


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_left_out_answers_are_those_of_read_outs_without_the_row_and_its_copies(name):
    values = name in REGRESSORS
    X, y, w, _ = weighted_rows(values)
    model = (REGRESSORS if values else CLASSIFIERS)[name].fit(X, y, w)
    rows, found = model.memory_.rows, answers(model)
    for i in range(rows.n_rows):
        copies = np.flatnonzero((rows.X[i] == rows.X).all(axis=1))
        alone = without(model._model, model.memory_, copies).answer(rows.X[i : i + 1])[0]
        np.testing.assert_allclose(found[i], alone, atol=1e-9)


def test_answers_of_a_kernel_in_parts(monkeypatch):
    monkeypatch.setattr(kernel_fit, "LEAST_PART", 20)
    monkeypatch.setattr(kernel_fit, "PART_ROWS", {False: 24, True: 24})
    X, y = noisy_rows(np.random.default_rng(0), 60, 3)
    model = KernelRidgeClassifier(remember="rows", random_state=0).fit(X, y)
    for i, P in enumerate(answers(model)):
        np.testing.assert_allclose(
            P, without(model._model, model.memory_, [i]).answer(X[i : i + 1])[0], atol=1e-9
        )


def test_rows_that_the_fit_judged_keep_its_honest_answers():
    X, y = noisy_rows(np.random.default_rng(1), 150, 4)
    model = EDRVFLClassifier(n_hidden=40, n_layers=2, remember="rows", random_state=0).fit(X, y)
    P = model.memory_.rows.answers
    assert np.mean(P.argmax(axis=1) == y) == pytest.approx(model.loo_accuracies_[-1])
    assert np.mean(np.log(P[np.arange(150), y])) == pytest.approx(-model.loo_log_losses_[-1])
    some = P.copy()
    some[::2] = np.nan
    mixed = answers(model, some)
    np.testing.assert_array_equal(mixed[1::2], P[1::2])
    np.testing.assert_array_equal(mixed[::2], answers(model)[::2])


def test_flipped_labels_come_first():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 4))
    y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
    far = np.flatnonzero(np.abs(X[:, 0] + X[:, 1]) > 1)
    wrong = rng.choice(far, 12, replace=False)
    y[wrong] = np.where(y[wrong] == "up", "down", "up")
    model = EDRVFLClassifier(n_hidden=30, n_layers=2, remember="rows", random_state=0)
    table = pd.DataFrame(model.fit(pd.DataFrame(X, index=1000 + np.arange(300)), y).doubtful_rows())
    assert np.isin(table.row[:12] - 1000, wrong).mean() > 0.8
    assert (table.given != table.said).all()
    assert (table.said_probability > table.given_probability).all()
    np.testing.assert_allclose(table.doubt, np.log(table.said_probability / table.given_probability))
    everything = model.doubtful_rows(n=1000)
    assert sorted(everything.row) == list(range(1000, 1300))
    np.testing.assert_array_equal(everything.row[: len(table)], table.row)


def test_values_are_doubted_in_standard_deviations_of_the_errors():
    X, y = noisy_values(np.random.default_rng(3), 200, 4, 2)
    y[[5, 50], [0, 1]] += [80.0, -40.0]
    model = EDRVFLRegressor(n_hidden=30, n_layers=2, remember="rows", random_state=0).fit(X, y)
    found = model.doubtful_rows()
    assert set(found.row[:2]) == {5, 50}
    errors = y - model.memory_.rows.answers
    spread = 1.4826 * np.median(np.abs(errors), axis=0)
    np.testing.assert_allclose(found.doubt, np.abs(errors / spread).max(axis=1)[found.row])
    assert (found.doubt > 3).all()
    assert dict(zip(found.row, found.of, strict=True)).items() >= {5: 0, 50: 1}.items()
    np.testing.assert_array_equal(found.given, y[found.row, found.of])
    np.testing.assert_array_equal(found.said, model.memory_.rows.answers[found.row, found.of])
    assert list(pd.DataFrame(found)) == ["row", "doubt", "given", "said", "of"]
    single = model.fit(X, y[:, 0]).doubtful_rows()
    assert list(pd.DataFrame(single)) == ["row", "doubt", "given", "said"]


def test_a_file_keeps_what_rows_tell(tmp_path):
    X, y, w, new = weighted_rows()
    model = CLASSIFIERS["portfolio"].fit(X, y, w)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.support(new), model.support(new))
    for ask in (lambda one: one.doubtful_rows(n=9), lambda one: one.influence(new, n=3)):
        found, expected = ask(again), ask(model)
        assert found.keys() == expected.keys()
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column)


def test_a_row_that_is_alone_in_its_class_is_not_doubted():
    X, y = noisy_rows(np.random.default_rng(4), 80, 3)
    y[7] = 9
    model = EDRVFLClassifier(n_hidden=10, n_layers=1, remember="rows", random_state=0).fit(X, y)
    assert 7 not in model.doubtful_rows().row
    assert len(model.doubtful_rows(n=80).row) == 79
