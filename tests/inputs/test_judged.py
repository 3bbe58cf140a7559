"""Which rows get leave-one-out scores."""

import numpy as np
import pytest
from array_api_compat import array_namespace
from helpers import to_host

from edrvfl._inputs.chosen import judge_some, n_judged
from edrvfl._inputs.targets import Classes, Values


def judge(xp, codes, k):
    judged = judge_some(Classes(xp.asarray(codes), k, xp.zeros(0, dtype=xp.float64)))
    assert array_namespace(judged.rows) is array_namespace(xp.zeros(1))
    return to_host(judged.rows), to_host(judged.stand_for)


def test_all_of_few_rows_are_judged():
    for m, k in [(10_000, 50), (3_000, 2), (1_500, 1000)]:
        assert judge_some(Classes(np.arange(m) % k, k, np.zeros(0))) is None


def test_with_two_classes_and_with_many_fewer_rows_are_judged():
    sizes = {k: n_judged(20_000, k) for k in (2, 50, 100, 1000)}
    assert sizes == {2: 3_000, 50: 10_000, 100: 5_000, 1000: 2_000}


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.998, 0.002), (0.7, 0.2, 0.0999, 0.0001)])
def test_every_row_of_a_rare_class_is_judged_and_the_others_cover_their_class(xp, rng, shares):
    m, k = 30_000, len(shares)
    codes = rng.choice(k, m, p=shares)
    rows, stand_for = judge(xp, codes, k)
    assert len(rows) == n_judged(m, k)
    assert (np.diff(rows) > 0).all()  # so no row is judged twice
    quota = np.bincount(codes[rows], minlength=k)
    for c in range(k):
        members = np.flatnonzero(codes == c)
        if len(members) < n_judged(m, k) // k:
            np.testing.assert_array_equal(rows[codes[rows] == c], members)
        else:
            tenths = np.histogram(rows[codes[rows] == c], bins=10, range=(0, m))[0] / quota[c]
            np.testing.assert_allclose(tenths, 0.1, atol=0.02)
        assert stand_for[codes[rows] == c].sum() == pytest.approx(len(members))
    np.testing.assert_array_equal(judge(xp, codes, k)[0], rows)  # always the same


def test_a_class_without_rows(xp):
    rows, stand_for = judge(xp, np.arange(20_000) % 2, 3)
    assert len(rows) == 4_500
    assert stand_for.sum() == pytest.approx(20_000)


@pytest.mark.parametrize("m", [10_000, 10_001, 47_000])
def test_of_many_values_ten_thousand_are_judged_all_along_the_file(xp, m):
    judged = judge_some(Values(xp.zeros((m, 2), dtype=xp.float64)))
    if m == 10_000:
        assert judged is None
        return
    rows, stand_for = to_host(judged.rows), to_host(judged.stand_for)
    assert len(rows) == 10_000
    assert (np.diff(rows) > 0).all()
    assert stand_for.sum() == pytest.approx(m)
    tenths = np.histogram(rows, bins=10, range=(0, m))[0]
    np.testing.assert_allclose(tenths, 1000, atol=2)
