"""Rows that belong together are dealt, judged and left out together."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import noisy_rows, noisy_values, to_host
from sklearn.tree import DecisionTreeClassifier

from edrvfl._fitting import iterated
from edrvfl._fitting.folds import deal_folds, dealt, n_folds
from edrvfl._fitting.guest import without_folds
from edrvfl._fitting.iterated import fit_iterated
from edrvfl._fitting.kernel import _fit_parts
from edrvfl._fitting.systems import Choice, Draw, KernelSettings, Sample, deal_evenly, whole_groups
from edrvfl._inputs.chosen import hold_back, judge_some, n_judged
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_rows, prepare_values
from edrvfl._inputs.targets import Classes, Values
from edrvfl._loo.jury import counted_once, jury_of


def unequal(rng, m, n):
    """Numbers of n groups, the first of which has a third of the rows."""
    groups = rng.integers(1, n, m)
    groups[rng.permutation(m)[: m // 3]] = 0
    return groups


def keeps_groups(numbers, groups):
    """Whether rows of one group have one number."""
    return len(np.unique(np.column_stack([groups, numbers]), axis=0)) == len(np.unique(groups))


@pytest.mark.parametrize("classes", [True, False])
def test_folds_and_parts_hold_whole_groups_and_are_about_equal(rng, classes):
    X, y = (noisy_rows if classes else noisy_values)(rng, 300, 4)
    groups = rng.integers(0, 30, 300)
    rows = prepare_rows(X, y, groups=groups) if classes else prepare_values(X, y, groups=groups)
    found = dealt(deal_folds(rows, None))
    assert keeps_groups(found.folds, groups)
    assert keeps_groups(found.parts, groups)
    assert len(np.unique(found.parts)) == 5
    assert np.bincount(found.folds).min() > 85
    if classes:
        of_folds = np.array([np.bincount(y[found.folds == f]) for f in range(3)])
        assert (abs(of_folds - of_folds.mean(axis=0)) < 0.2 * of_folds.mean(axis=0)).all()
    order, renamed = rng.permutation(300), rng.permutation(30)[groups]
    again = (prepare_rows if classes else prepare_values)(X[order], y[order], groups=renamed[order])
    other = dealt(deal_folds(again, None))
    np.testing.assert_array_equal(other.parts, found.parts[order])
    same = np.equal.outer(other.folds, other.folds) == np.equal.outer(found.folds[order], found.folds[order])
    assert same.all()


def test_few_groups_of_many_rows_want_folds():
    assert n_folds(5_000, 10) == n_folds(5_000, 10, 2_000) == 0
    assert n_folds(5_000, 10, 10) == 2
    X, y = np.arange(12.0)[:, None], np.arange(12) % 2
    assert len(deal_folds(prepare_rows(X, y, groups=np.arange(12) // 4), None)) == 3
    assert deal_folds(prepare_rows(X, y, groups=np.arange(12) // 6), None) == ()


def test_copies_merge_within_a_group_alone(rng):
    X, y = rng.standard_normal((20, 3)), np.arange(20) % 2
    X[10:], y[10:] = X[:10], y[:10]
    rows = prepare_rows(X, y, groups=np.arange(20) % 10)
    assert rows.X.shape[0] == 10
    assert rows.weights.counts.tolist() == [2.0] * 10
    apart = prepare_rows(X, y, groups=np.arange(20) // 10)
    assert apart.X.shape[0] == 20
    assert apart.twins is None
    alone = prepare_rows(X, y, groups=np.arange(20))  # every row a group: equal ones are left out apart
    assert alone.groups is None
    assert alone.twins is None


@pytest.mark.parametrize("n", [10, 40, 4_000])
def test_of_many_rows_whole_groups_are_judged_if_they_are_small(rng, n):
    m = 24_000
    codes, groups = (rng.random(m) < 0.002).astype(int), np.arange(m) % n
    judged = judge_some(Classes(codes, 2, np.zeros(0)), groups)
    rows, most = judged.rows, n_judged(m, 2)
    assert (np.diff(rows) > 0).all()
    assert 0.5 * most < len(rows) <= 1.2 * most
    for c in (0, 1):
        assert judged.stand_for[codes[rows] == c].sum() == pytest.approx((codes == c).sum())
    sizes = np.bincount(groups[rows], minlength=n)
    if n > 100:
        assert set(sizes) <= {0, m // n}
    else:
        assert sizes.max() <= 1.5 * most / n + 50
    values = judge_some(Values(np.zeros((m, 1))), groups)
    assert 5_000 < len(values.rows) <= 10_000
    assert judge_some(Classes(codes[:900], 2, np.zeros(0)), groups[:900]) is None


def test_a_jury_counts_groups(rng):
    codes, groups = np.arange(60) % 2, np.repeat([0, 1, 2, 3], [30, 10, 10, 10])
    rows = prepare_rows(rng.standard_normal((60, 2)), codes, groups=groups)
    jury = jury_of(rows.targets, rows.weights, None, groups=groups)
    assert jury.weights.sum() == pytest.approx(60**2 / (30**2 + 3 * 10**2))  # Kish
    assert len(set(jury.weights)) == 1
    once = counted_once(jury.counts, jury.groups)
    np.testing.assert_allclose(np.bincount(groups, once), 1)
    values = prepare_values(rng.standard_normal((60, 2)), rng.standard_normal(60), groups=groups)
    assert jury_of(values.targets, values.weights, None, groups=groups).weights.sum() == pytest.approx(3.0)


def test_rows_of_a_class_that_one_group_has_are_not_honest(rng):
    codes, groups = np.array([0, 1, 2, 0, 1, 2, 0, 0]), np.array([0, 0, 1, 1, 0, 1, 2, 2])
    rows = prepare_rows(rng.standard_normal((8, 2)), codes, groups=groups)
    jury = jury_of(rows.targets, rows.weights, None, groups=groups)
    assert jury.honest.tolist() == (codes == 0).tolist()


def test_whole_groups_are_held_back(rng):
    X, y, groups = np.arange(200.0)[:, None], rng.integers(0, 3, 200), rng.permutation(200) // 4
    y[groups == 7] = 3  # a class of one group
    times = np.zeros(50)
    for seed in range(100):
        (fitted, labels, _, own), held = hold_back(X, y, None, seed, True, groups)
        assert not set(own) & set(held.groups)
        assert set(labels) == {0, 1, 2, 3}
        assert len(fitted) + len(held.X) == 200
        assert len(np.unique(held.groups)) + len(held.returned) == 25  # half of few groups
        times[np.unique(held.groups)] += 1
    assert times[7] == 0
    assert abs(np.delete(times, 7) - 50).max() < 5 * 5


def test_parts_hold_whole_groups_and_thin_out_one_that_is_too_large(rng):
    groups = unequal(rng, 3_000, 60)
    part = whole_groups(groups, 10)
    assert keeps_groups(part[part >= 0], groups[part >= 0])
    sizes = np.bincount(part[part >= 0])
    assert sizes.max() <= 1.25 * 300
    assert (groups[part < 0] == 0).all()
    assert (part[groups == 0] >= 0).sum() == 300
    assert set(whole_groups(np.zeros(40, dtype=int), 4)) == {-1, 0}
    assert deal_evenly(np.array([5, 1, 1, 3]), 2).tolist() == [0, 1, 1, 1]


def values_in_groups(rng, m, n):
    X, y = noisy_values(rng, m, 3)
    rows = prepare_values(X, y, groups=rng.integers(0, n, m))
    inputs = learn_inputs(rows.X, None, EncoderSettings())
    sample = Sample.of(rows, inputs, "laplace")
    return sample, rows, Choice.of(KernelSettings(1.0, 0.1), sample)


def changed(sample, rows, group):
    """The same rows, but those of a group have other targets."""
    Y = rows.targets.Y.copy()
    Y[rows.groups == group] *= -3.0
    return replace(sample, targets=replace(rows.targets, Y=Y))


@pytest.mark.parametrize("most", [600, 300], ids=["all rows", "some rows"])
def test_in_parts_no_answer_depends_on_the_targets_of_its_group(rng, most):
    sample, rows, choice = values_in_groups(rng, 600, 20)
    parts = Draw(rows, 0).parts(4, most)
    before = _fit_parts(sample, parts, choice, 1)[2].loo
    for group in (0, 7):
        after = _fit_parts(changed(sample, rows, group), parts, choice, 1)[2].loo
        inside = rows.groups == group
        np.testing.assert_allclose(after[inside], before[inside], atol=1e-9)
        assert abs(after[~inside] - before[~inside]).max() > 0.1


@pytest.mark.parametrize("most", [400, 250], ids=["all rows", "some rows"])
def test_by_iteration_no_answer_depends_on_the_targets_of_its_group(rng, monkeypatch, most):
    monkeypatch.setattr(iterated, "TOLERANCE", {False: 1e-9, True: 1e-9})
    sample, rows, choice = values_in_groups(rng, 400, 12)
    draw, loo = Draw(rows, 0), []
    for one in (sample, changed(sample, rows, 3)):
        loo.append(to_host(fit_iterated(replace(one, dtype=np.float64), draw, most, choice, 0)[2].loo))
    inside = rows.groups == 3
    np.testing.assert_allclose(loo[1][inside], loo[0][inside], atol=1e-6)
    assert abs(loo[1][~inside] - loo[0][~inside]).max() > 0.1


def test_guests_are_judged_by_folds_of_groups(rng):
    X, y = noisy_rows(rng, 200, 4)
    rows = prepare_rows(X, y, groups=rng.integers(0, 20, 200))
    folds = deal_folds(rows, None, 5)
    answers = [without_folds(DecisionTreeClassifier(random_state=0), rows, folds, np.arange(200))]
    codes = np.where(rows.groups == 4, (rows.targets.codes + 1) % 3, rows.targets.codes)
    other = replace(rows, targets=replace(rows.targets, codes=codes))
    answers.append(without_folds(DecisionTreeClassifier(random_state=0), other, folds, np.arange(200)))
    np.testing.assert_array_equal(*(P[rows.groups == 4] for P in answers))
    without = without_folds(DecisionTreeClassifier(), rows, (), np.arange(200))  # too few for folds
    for i in (0, 50):
        others = rows.targets.codes[rows.groups != rows.groups[i]]
        np.testing.assert_allclose(without[i], np.bincount(others, minlength=3) / len(others))
