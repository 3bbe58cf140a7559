"""The rows of a fit: which are dropped, how labels are coded, what rows weigh."""

import numpy as np
import pytest
import sklearn
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl import EDRVFLClassifier
from edrvfl._inputs.rows import first_of_equals, prepare_rows, prepare_values, row_hashes

X = np.arange(12.0).reshape(6, 2)
Y = np.array(["b", "a", "b", "c", "a", "b"])


def test_without_weights_rows_stay_and_labels_are_coded():
    rows = prepare_rows(X, Y)
    assert rows.X is X
    assert rows.classes.tolist() == ["a", "b", "c"]
    assert rows.targets.codes.tolist() == [1, 0, 1, 2, 0, 1]
    assert rows.targets.width == 3
    assert rows.weights.base is None


def test_rows_of_weight_zero_are_dropped_and_so_are_classes_that_had_no_other_rows():
    rows = prepare_rows(X, Y, [1, 0, 2, 0, 3, 1])
    np.testing.assert_array_equal(rows.X, X[[0, 2, 4, 5]])
    assert rows.classes.tolist() == ["a", "b"]
    assert rows.targets.codes.tolist() == [1, 1, 0, 1]
    assert rows.weights.counts.tolist() == [1, 2, 3, 1]
    assert rows.weights.costs is None


def test_a_class_of_weight_zero_is_dropped():
    rows = prepare_rows(X, Y, [1, 1, 2, 1, 3, 0], {"b": 0, "c": 5})
    np.testing.assert_array_equal(rows.X, X[[1, 3, 4]])
    assert rows.classes.tolist() == ["a", "c"]
    assert rows.weights.counts.tolist() == [1, 1, 3]
    assert rows.weights.costs.tolist() == [1, 5, 1]  # a class that is not named has weight 1
    assert rows.weights.base.tolist() == [1, 5, 3]


@pytest.mark.parametrize("sample_weight", [None, [1, 1, 2, 4, 3, 0]])
def test_balanced_classes_weigh_the_same_together(sample_weight):
    rows = prepare_rows(X, Y, sample_weight, "balanced")
    base, codes = rows.weights.base, rows.targets.codes
    totals = [base[codes == code].sum() for code in range(3)]
    np.testing.assert_allclose(totals, np.mean(totals))


@pytest.mark.parametrize("labels", ["strings in NumPy", "numbers beside X"])
def test_rows_of_another_library(xp, labels):
    counts = np.array([1.0, 0.0, 2.0, 1.0, 3.0, 1.0])
    y = Y if labels.startswith("strings") else np.array([5, 3, 5, 9, 3, 5])
    with sklearn.config_context(array_api_dispatch=True):
        given = y if labels.startswith("strings") else xp.asarray(y)
        rows = prepare_rows(xp.asarray(X), given, counts, {y[3]: 0.5})
    alone = prepare_rows(X, y, counts, {y[3]: 0.5})
    np.testing.assert_array_equal(to_host(rows.X), alone.X)
    np.testing.assert_array_equal(to_host(rows.classes), alone.classes)
    np.testing.assert_array_equal(to_host(rows.targets.codes), alone.targets.codes)
    np.testing.assert_array_equal(to_host(rows.weights.base), alone.weights.base)
    assert isinstance(rows.weights.base, type(xp.asarray(X)))
    assert isinstance(rows.targets.codes, type(xp.asarray(X)))


@pytest.mark.parametrize(
    ("sample_weight", "class_weight"),
    [([1e307] * 6, None), ([1, 1, 1, 1, 1, 1e300], None), ([1e100] * 6, {"a": 1e100}), (None, {"a": 1e160})],
)
def test_weights_that_overflow_are_named_as_the_cause(sample_weight, class_weight):
    with pytest.raises(ValueError, match=r"weights are too large.*overflow float64\. Divide the weights"):
        prepare_rows(X, Y, sample_weight, class_weight)


def test_large_weights_overflow_sooner_in_float32():
    weights = np.full(6, 1e19)
    assert prepare_rows(X, Y, weights).weights.counts.tolist() == weights.tolist()
    with pytest.raises(ValueError, match="overflow float32"):
        prepare_rows(X.astype(np.float32), Y, weights)


def test_the_estimator_does_not_blame_the_features_for_its_weights():
    with pytest.raises(ValueError, match="The weights are too large"):
        EDRVFLClassifier(n_hidden=5).fit(X, Y, np.full(6, 1e307))


@pytest.mark.parametrize("class_weight", [{"a": -1}, {"a": np.nan}, {"a": np.inf}, dict.fromkeys("abc", 0)])
def test_impossible_class_weights(class_weight):
    with pytest.raises(ValueError, match=r"finite weights that are not negative and.*not all zero"):
        prepare_rows(X, Y, None, class_weight)


@pytest.mark.parametrize("n_hidden", [2, 20], ids=["primal", "dual"])
def test_weights_next_to_nothing_are_weights(n_hidden):
    weights = np.full(6, 1e-310)
    assert len(set(prepare_rows(X, Y, weights, "balanced").weights.counts.tolist())) == 1
    model = EDRVFLClassifier(n_hidden=n_hidden, n_layers=2, weight_from="loo", random_state=0)
    with pytest.warns(UserWarning, match="multiply the weights"):
        model.fit(X, Y, weights)
    assert np.isfinite(model.predict_proba(X)).all()


# --- values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e300, 1e-300])
def test_values_are_standardised_by_their_weights(xp, weighted, scale):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 2)), rng.uniform(1, 2, (50, 2)) * [1.0, 5.0]
    counts = rng.integers(0, 3, 50).astype(float) if weighted else np.ones(50)
    with sklearn.config_context(array_api_dispatch=True):
        rows = prepare_values(xp.asarray(X), xp.asarray(scale * y), xp.asarray(counts) if weighted else None)
    kept = counts > 0
    mean = np.average(y, axis=0, weights=counts)
    sd = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=counts))
    np.testing.assert_allclose(to_host(rows.targets.Y), ((y - mean) / sd)[kept], atol=1e-12)
    np.testing.assert_allclose(to_host(rows.targets.mean), mean * scale, rtol=1e-14)
    np.testing.assert_allclose(to_host(rows.targets.sd), sd * scale, rtol=1e-14)
    assert rows.classes is None
    np.testing.assert_array_equal(to_host(rows.X), X[kept])


@pytest.mark.parametrize("m", [1, 1000, 300_000])
def test_a_constant_among_outputs_has_no_scale(m):
    rng = np.random.default_rng(0)
    y = np.column_stack([np.full(m, 0.1), rng.standard_normal(m), np.zeros(m)])
    for counts in (None, rng.uniform(0.1, 3, m)):
        targets = prepare_values(np.zeros((m, 1)), y, counts).targets
        assert (targets.Y[:, [0, 2]] == 0).all()
        np.testing.assert_allclose(targets.mean[[0, 2]], [0.1, 0], rtol=1e-15)


def test_values_take_the_precision_of_the_rows():
    targets = prepare_values(np.zeros((3, 1), np.float32), np.array([1e6, 1e6 + 1e-3, 1e6 + 2e-3])).targets
    assert targets.Y.dtype == targets.mean.dtype == targets.sd.dtype == np.float32
    np.testing.assert_allclose(targets.Y[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)], atol=1e-6)
    with pytest.raises(ValueError, match="too large for float32"):
        prepare_values(np.zeros((3, 1), np.float32), np.array([0.0, 1e39, 0.0]))


# --- copies ----------------------------------------------------------------------------------------------


def test_equal_rows_are_one_row_with_the_sum_of_their_weights(xp):
    X = np.arange(60.0).reshape(20, 3) ** 2  # measurements, of which no two are the same
    X = np.concatenate([[[0.0, np.nan, 5.0], X[4], [-0.0, np.nan, 5.0], X[4], X[4] + 1e-12, X[4]], X[5:]])
    y, counts = np.array([4, 4, 4, 7, 4, 4, *[7] * 15]), np.array([1.0, 0.5, 2.0, 1.0, 1.0, 3.0, *[1.0] * 15])
    kept = [0, 1, 3, 4, *range(6, 21)]  # the first of equal rows keeps its place
    with sklearn.config_context(array_api_dispatch=True):
        rows = prepare_rows(xp.asarray(X), xp.asarray(y), xp.asarray(counts), "balanced")
        values = prepare_values(xp.asarray(X), xp.asarray(np.stack([y, y], axis=1) / 2))
    for found in (rows, values):
        np.testing.assert_array_equal(to_host(found.X), X[kept])
        assert found.twins.tolist() == [0, 1, 1, *range(3, 19)]  # the same numbers with another target
        assert found.hashes.tolist() == row_hashes(X)[kept].tolist()
    assert to_host(rows.weights.counts)[:4].tolist() == [3.0, 3.5, 1.0, 1.0]
    assert to_host(values.weights.counts)[:4].tolist() == [2.0, 2.0, 1.0, 1.0]
    np.testing.assert_allclose(to_host(rows.weights.costs)[:4], 23.5 / 2 / np.array([7.5, 7.5, 16.0, 7.5]))
    np.testing.assert_allclose(to_host(values.targets.mean), [66 / 21, 66 / 21])
    assert prepare_rows(X, y, merge=False).X is X


def answers_of_a_poll(m, seed=0):
    """Three questions with two to four answers, and a label that they do not decide."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(n, size=m) for n in (4, 2, 3)]).astype(float)
    return X, (X[:, 0] + X[:, 1] + 1.5 * rng.standard_normal(m) > 2).astype(int)


def test_rows_that_agree_by_chance_are_rows_of_their_own():
    X, y = answers_of_a_poll(200)
    rows = prepare_rows(X, y)
    assert rows.X is X
    assert rows.apart
    assert rows.twins is None
    assert prepare_values(X, y + 0.5).X is X
    weights = np.random.default_rng(1).uniform(0.5, 2, 200)  # they count, but they do not say how many rows
    np.testing.assert_array_equal(prepare_rows(X, y, weights).weights.counts, weights)


@pytest.mark.parametrize("scale", [1, 3])
def test_whole_weights_of_rows_that_agree_by_chance_are_rows(scale):
    X, y = answers_of_a_poll(200)
    cells, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    rows = prepare_rows(cells[:, :3], cells[:, 3], scale * counts)
    order = np.lexsort(np.column_stack([X, y])[:, ::-1].T)
    np.testing.assert_array_equal(rows.X, X[order])
    np.testing.assert_array_equal(rows.targets.codes, y[order])
    assert rows.apart
    assert rows.weights.counts is None or (rows.weights.counts == scale).all()
    twice = prepare_rows(np.repeat(X, scale, axis=0), np.repeat(y, scale))
    assert twice.X.shape == rows.X.shape


def test_copies_of_measurements_do_not_agree_by_chance():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), rng.integers(2, size=200)
    some = rng.integers(200, size=100)
    rows = prepare_rows(np.concatenate([X, X[some]]), np.concatenate([y, y[some]]))
    assert not rows.apart
    np.testing.assert_array_equal(rows.X, X)
    assert rows.weights.counts.sum() == 300
    polled, _ = answers_of_a_poll(200)  # nor do rows whose label the columns decide: they may be copies
    assert not prepare_rows(polled, (polled[:, 0] > 1).astype(int)).apart


@given(seed=st.integers(0, 2**31), width=st.integers(1, 3), single=st.booleans())
def test_the_first_of_equals_is_the_first_of_equals(seed, width, single):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, -0.0, 1.0, 1.0 + 1e-12, np.nan], (20, width)).astype("float32" if single else float)
    # the representation of numbers, in which a gap equals a gap
    texts = [str((row + 0.0).tolist()) for row in X]
    expected = [texts.index(text) for text in texts]
    found = first_of_equals(X, row_hashes(X))
    assert (list(range(20)) if found is None else found.tolist()) == expected
