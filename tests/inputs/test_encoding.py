"""What is learnt about the columns of X, against an encoder in plain loops and against laws."""

import itertools
import math
import warnings
import zlib

import numpy as np
import pytest
from helpers import beside, to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._seam.arrays import converted

MODES = ["standard", "robust", "bins", "ranks"]
NAN = float("nan")

# --- an encoder in plain loops: one column, one row at a time, weights as repeated rows ------------------


def quantile(values, share):
    """The smallest value that at least a share of all values do not exceed."""
    ordered = sorted(values)
    return next(v for i, v in enumerate(ordered) if i + 1 >= share * len(ordered) - 1e-9)


def standardised(train, new, cut=math.inf):
    """Mean 0 and variance 1 by the training rows; constant columns become 0."""
    mean = math.fsum(train) / len(train)
    sd = math.sqrt(math.fsum((v - mean) ** 2 for v in train) / len(train))
    if min(train) == max(train):
        return [0.0 for _ in new]
    return [min(max((v - mean) / sd, -cut), cut) for v in new]


def number_columns(train, new, settings):
    """The columns that a number column becomes, by label."""
    seen = [v for v in train if not math.isnan(v)]
    columns = {}
    if 0 < len(seen) < len(train):
        columns["missing"] = [float(math.isnan(v)) for v in new]
    if not seen or min(seen) == max(seen):
        return columns | {"": [0.0 for _ in new]}
    robust = settings.numbers != "standard"
    fill = quantile(seen, 0.5) if robust else math.fsum(seen) / len(seen)
    train, new = ([fill if math.isnan(v) else v for v in rows] for rows in (train, new))
    if not robust:
        return columns | {"": standardised(train, new)}
    if settings.numbers == "ranks":
        edges = [quantile(seen, k / 64) for k in range(65)]
        return columns | {"": standardised(*([place_among(edges, v) for v in rows] for rows in (train, new)))}
    spread = (quantile(seen, 0.75) - quantile(seen, 0.25)) / 1.349
    spread = spread if spread > 0 else float(np.std(seen))

    def smooth(rows):
        z = [(v - fill) / spread for v in rows]
        return [v / math.hypot(1, v / 3) for v in z]

    columns[""] = standardised(smooth(train), smooth(new), 8)
    if settings.numbers == "bins":
        columns |= bin_or_value_columns(seen, train, new, settings)
    return columns


def place_among(edges, v):
    """The share of the edges below v, straight between two that differ."""
    place = 0.0
    for a, b in itertools.pairwise(sorted(set(edges))):
        place += (edges.index(b) - edges.index(a)) / 64 * min(max((v - a) / (b - a), 0), 1)
    return place


def bin_or_value_columns(seen, train, new, settings):
    values = sorted(set(seen))
    if len(values) <= settings.max_values:
        nearest = [[min(values, key=lambda u, v=v: (abs(u - v), -u)) for v in rows] for rows in (train, new)]
        hot = {u: [[float(n == u) for n in rows] for rows in nearest] for u in values}
        return {f"is_{u}": standardised(*hot[u], 8) for u in values if len(values) > 2}
    edges = sorted({quantile(seen, k / settings.n_bins) for k in range(settings.n_bins + 1)})
    columns = {}
    for k in range(len(edges) - 1 if len(edges) > 2 else 0):
        left, right = edges[k], edges[k + 1]
        part = [[min(max((v - left) / (right - left), 0), 1) for v in rows] for rows in (train, new)]
        columns[f"bin{k}"] = standardised(*part, 8)
    return columns


def category_columns(train, new, settings):
    """The columns that a categorical column becomes, by label."""
    codes = sorted({c for c in train if c >= 0})
    kept = sorted(
        (c for c in codes if train.count(c) >= settings.min_frequency), key=lambda c: -train.count(c)
    )
    crowded = len(kept) + (len(kept) < len(codes)) > settings.max_categories
    kept = kept[: settings.max_categories // 2] if crowded else kept
    tests = {int(c): lambda v, c=c: v == c for c in sorted(kept)}
    if crowded:
        n = settings.max_categories - len(kept)
        of = {c: f"shared{zlib.crc32(str(int(c)).encode()) % n}" for c in codes if c not in kept}
        tests |= {label: lambda v, label=label: of.get(v) == label for label in of.values()}
    elif len(kept) < len(codes):
        tests["rare"] = lambda v: v in codes and v not in kept
    if any(math.isnan(c) for c in train):
        tests["missing"] = math.isnan
    constant = len(tests) == 1
    return {label: [float(test(v) and not constant) for v in new] for label, test in tests.items()}


def encode(train, new, settings, categorical):
    """The encoded columns of `new` by source column and label, and their number."""
    columns = {}
    for j, is_code in enumerate(categorical):
        of_one = category_columns if is_code else number_columns
        made = of_one(train[:, j].tolist(), new[:, j].tolist(), settings)
        columns |= {(j, label): column for label, column in made.items()}
    return columns


def mixed_rows(rng, m, gaps=0.1):
    """Columns of every kind; the last three hold codes."""
    X = np.column_stack(
        [
            rng.standard_normal(m) * 5 + 1000,
            np.exp(3 * rng.standard_normal(m)),
            rng.integers(0, 30, m) // 6,  # few values
            rng.choice([-1.0, 0.5, 4.0], m, p=[0.9, 0.05, 0.05]),  # the quartiles are one value
            rng.integers(0, 2, m),
            np.where(rng.random(m) < 0.97, 0.0, rng.standard_normal(m).round(2)),  # nearly constant
            rng.integers(0, 3, m),
            np.floor(12 * rng.random(m) ** 3),  # some are rare
            rng.integers(0, 2, m) * 5,  # codes with holes
        ]
    )
    X[rng.random(X.shape) < gaps] = NAN
    return X


CATEGORICAL = (False,) * 6 + (True,) * 3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [0.0, 0.15])
@pytest.mark.parametrize("mode", MODES)
def test_every_column_is_that_of_plain_loops(xp, rng, mode, gaps, weighted):
    X, new = mixed_rows(rng, 150, gaps), mixed_rows(rng, 40, 0.2)
    new[:3, -3:] = [[-1, 40, 3], [7, 11, 4], [2, -1, 1]]  # unknown codes, and codes that only others have
    new[3:5, :6] = [[1e9] * 6, [-1e9] * 6]
    counts = rng.integers(1, 4, 150) if weighted else np.ones(150, int)
    settings = EncoderSettings(mode, n_bins=7, max_categories=6, min_frequency=9)
    expected = encode(np.repeat(X, counts, axis=0), new, settings, CATEGORICAL)
    weights = beside(xp, counts.astype(float)) if weighted else None
    inputs = learn_inputs(xp.asarray(X), weights, settings, CATEGORICAL)
    encoded = to_host(inputs.apply(xp.asarray(new)))
    assert encoded.shape == (40, inputs.width)
    assert set(zip(inputs.source, inputs.labels, strict=True)) == set(expected)
    for key, column in zip(zip(inputs.source, inputs.labels, strict=True), encoded.T, strict=True):
        np.testing.assert_allclose(column, expected[key], rtol=1e-9, atol=1e-10, err_msg=str(key))


# --- standardisation as before ---------------------------------------------------------------------------


@pytest.mark.parametrize("counted", [False, True])
def test_columns_get_mean_0_and_variance_1(xp, rng, counted):
    X = rng.standard_normal((200, 3)) * [1e-200, 3.0, 1e200] + [0, 50, 1e200]
    X = np.column_stack([X, np.full(200, 0.1), np.zeros(200)])
    counts = xp.ones(200, dtype=xp.float64) if counted else None
    inputs = learn_inputs(xp.asarray(X), counts, EncoderSettings())
    assert inputs.source == (0, 1, 2)  # constant columns say nothing
    scaled = to_host(inputs.apply(xp.asarray(X)))
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("numbers", MODES)
def test_columns_that_vary_are_encoded_as_if_constant_ones_were_not_there(rng, numbers):
    X = np.column_stack(
        [rng.standard_normal(50), rng.integers(0, 3, 50), np.where(rng.random(50) < 0.3, np.nan, 1)]
    )
    constant = np.column_stack([np.full(50, 7.0), np.full(50, np.nan), np.zeros(50), np.arange(50)])
    few = learn_inputs(X, None, EncoderSettings(numbers), [False, True, False])
    # one category, and categories that are all rare
    many = learn_inputs(np.column_stack([constant, X]), None, EncoderSettings(numbers), [0, 0, 1, 1, 0, 1, 0])
    assert many.source == tuple(j + 4 for j in few.source)
    np.testing.assert_array_equal(many.apply(np.column_stack([constant, X])), few.apply(X))


def test_where_no_column_varies_all_are_zero():
    X = np.full((5, 2), 3.0)
    assert not learn_inputs(X, None, EncoderSettings()).apply(X).any()


def test_columns_may_stay_as_they_are(xp, rng):
    X = xp.asarray(rng.standard_normal((5, 2)))
    inputs = learn_inputs(X, None, None)
    assert inputs.width == 2
    assert inputs.apply(X) is X
    assert inputs.names(["a", "b"], [None, None]) == ["a", "b"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_outlier_far_beyond_the_training_rows_stays_finite(rng, dtype, mode):
    X = rng.standard_normal((30, 1)).astype(dtype)
    far = np.array([[np.finfo(dtype).max], [-np.finfo(dtype).max]], dtype)
    scaled = learn_inputs(X, None, EncoderSettings(mode)).apply(far)
    assert np.isfinite(scaled).all()
    assert scaled[0, 0] > 1.5
    assert scaled[1, 0] < -1.5
    if mode == "standard":
        assert np.abs(scaled).min() > 1e6


# --- laws ------------------------------------------------------------------------------------------------

RANDOM = {"seed": st.integers(0, 2**31), "mode": st.sampled_from(MODES), "m": st.integers(1, 60)}


@given(**RANDOM)
def test_a_weight_counts_as_repetition(seed, mode, m):
    rng = np.random.default_rng(seed)
    X, counts, settings = mixed_rows(rng, m), rng.integers(1, 4, m), EncoderSettings(mode, n_bins=5)
    weighted = learn_inputs(X, counts.astype(float), settings, CATEGORICAL)
    repeated = learn_inputs(np.repeat(X, counts, axis=0), None, settings, CATEGORICAL)
    assert (weighted.source, weighted.labels) == (repeated.source, repeated.labels)
    np.testing.assert_allclose(weighted.apply(X), repeated.apply(X), atol=1e-12)
    if weighted.bins is not None:  # quantiles are not interpolated
        np.testing.assert_array_equal(weighted.bins.left, repeated.bins.left)
    if mode != "standard":
        np.testing.assert_array_equal(weighted.numbers.center, repeated.numbers.center)


@given(whole=st.booleans(), **RANDOM)
def test_the_order_of_the_rows_changes_nothing(seed, mode, m, whole):
    rng = np.random.default_rng(seed)
    X, order = mixed_rows(rng, m), rng.permutation(m)
    counts = rng.integers(1, 4, m) / (1 if whole else 10)  # tenths sum to other numbers in another order
    settings = EncoderSettings(mode, n_bins=5, min_frequency=1)
    straight = learn_inputs(X, counts, settings, CATEGORICAL)
    shuffled = learn_inputs(X[order], counts[order], settings, CATEGORICAL)
    assert (straight.source, straight.labels) == (shuffled.source, shuffled.labels)
    np.testing.assert_allclose(straight.apply(X), shuffled.apply(X), atol=1e-12)


@given(budget=st.integers(0, 60), **RANDOM)
def test_columns_have_a_source_a_name_and_a_budget(seed, mode, m, budget):
    X = mixed_rows(np.random.default_rng(seed), m)
    d = X.shape[1]
    inputs = learn_inputs(X, None, EncoderSettings(mode, max_columns=budget, min_frequency=1), CATEGORICAL)
    assert inputs.apply(X).shape == (m, inputs.width)
    assert len(inputs.source) == len(inputs.labels) == inputs.width
    varied = {j for j in range(d) if len(np.unique(X[:, j])) > 1}
    assert set(inputs.source) == (varied or set(range(d)))
    codes = [[f"value{c}" for c in range(12)] if c else None for c in CATEGORICAL]
    names = inputs.names([f"x{j}" for j in range(d)], codes)
    assert len(set(names)) == inputs.width
    assert all(name.startswith(f"x{j}") for j, name in zip(inputs.source, names, strict=True))
    # gaps have their columns beside the budget, and each category keeps two
    assert inputs.width <= d + inputs.labels.count("missing") + max(budget, sum(CATEGORICAL))


@given(cut=st.integers(0, 59), **RANDOM)
def test_blocks_of_rows_change_nothing(seed, mode, m, cut):
    X = mixed_rows(np.random.default_rng(seed), m)
    inputs = learn_inputs(X, None, EncoderSettings(mode), CATEGORICAL)
    parts = [inputs.apply(X[:cut]), inputs.apply(X[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), inputs.apply(X))


@pytest.mark.parametrize("mode", MODES)
def test_learning_by_blocks_changes_nothing_but_rounding(rng, limit, mode):
    X = mixed_rows(rng, 500)
    whole = learn_inputs(X, None, EncoderSettings(mode), CATEGORICAL).apply(X)
    limit(CPU_BLOCK_BYTES=1)
    inputs = learn_inputs(X, None, EncoderSettings(mode), CATEGORICAL)
    np.testing.assert_allclose(inputs.apply(X), whole, atol=1e-12)
    out = np.empty_like(whole)
    inputs.write(X, out)
    np.testing.assert_array_equal(out, inputs.apply(X))


extreme = st.sampled_from([0.0, -0.0, 1.0, 1e-320, 1e-30, -1e-30, 1e30, -1e30, 1.7e308, -1.7e308, NAN])


@given(
    rows=st.lists(
        st.tuples(extreme, extreme, st.sampled_from([-1.0, 0.0, 1.0, 9999.0, NAN])), min_size=1, max_size=20
    ),
    mode=st.sampled_from(MODES),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_answers_are_finite_and_silent(rows, mode, dtype):
    X = np.array(rows)
    X[:, :2] = np.clip(X[:, :2], -float(np.finfo(dtype).max), float(np.finfo(dtype).max))
    X = X.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inputs = learn_inputs(X, None, EncoderSettings(mode, n_bins=4, max_values=3), (False, False, True))
        encoded = inputs.apply(np.concatenate([X, -X]))
    assert encoded.dtype == dtype
    assert np.isfinite(encoded).all()


# --- cases -----------------------------------------------------------------------------------------------


def test_no_columns_make_no_columns():
    inputs = learn_inputs(np.empty((3, 0)), None, EncoderSettings())
    assert inputs.width == 0
    assert inputs.apply(np.empty((2, 0))).shape == (2, 0)


def test_what_was_not_seen_is_zero_and_not_rare(xp, rng):
    codes = np.append(rng.integers(0, 4, 96), [5, 6, 7.0, NAN])[:, None]
    inputs = learn_inputs(xp.asarray(codes), None, EncoderSettings(), (True,))
    assert inputs.labels == (0, 1, 2, 3, "rare", "missing")
    new = xp.asarray(np.array([[4.0], [-1.0], [8.0], [5.0], [NAN], [0.0]]))
    np.testing.assert_array_equal(to_host(inputs.apply(new)).argmax(axis=1)[3:], [4, 5, 0])
    assert (to_host(inputs.apply(new))[:3] == 0).all()
    full = learn_inputs(xp.asarray(codes[:96]), None, EncoderSettings(), (True,))
    assert (to_host(full.apply(new))[:5] == 0).all()  # the first missing one is like an unseen one


def test_ten_thousand_categories_stay_within_the_cap(rng):
    codes = np.concatenate([np.arange(10_000.0), np.repeat(np.arange(50.0), 20)])[:, None]
    inputs = learn_inputs(codes, None, EncoderSettings(), (True,))
    assert inputs.labels == (*range(50), "rare")
    capped = learn_inputs(codes, None, EncoderSettings(max_categories=40), (True,))
    assert capped.labels == (*range(20), *(f"shared{i}" for i in range(20)))
    assert ((capped.apply(codes) != 0).sum(axis=1) == 1).all()
    encoded = inputs.apply(codes)
    assert ((encoded != 0).sum(axis=1) == 1).all()
    alone = learn_inputs(codes[:10_000], None, EncoderSettings(), (True,))  # as an identifier is
    assert (alone.apply(codes) == 0).all()


def test_first_missing_at_predict_is_imputed(rng):
    X = rng.standard_normal((50, 2)) + 7
    for mode in MODES:
        inputs = learn_inputs(X, None, EncoderSettings(mode))
        filled = X.mean(axis=0) if mode == "standard" else np.sort(X, axis=0)[24]
        assert "missing" not in inputs.labels
        np.testing.assert_allclose(inputs.apply(X[:1] * NAN), inputs.apply(filled[None]), atol=1e-13)


def test_a_slightly_shifted_value_finds_its_column(rng):
    X = rng.integers(0, 5, (80, 1)) * 0.1
    inputs = learn_inputs(X, None, EncoderSettings("bins"))
    np.testing.assert_array_equal(inputs.apply(X + 0.03)[:, 1:], inputs.apply(X)[:, 1:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbouring_floats_are_different_values(dtype):
    one = np.ones((), dtype)
    values = np.stack([one, np.nextafter(one, 2 * one), 2 * one])
    inputs = learn_inputs(np.tile(values, 4)[:, None], None, EncoderSettings("bins"))
    assert (inputs.apply(values[:, None])[:, 1:].argmax(axis=1) == [0, 1, 2]).all()


def test_a_budget_narrows_all_columns_alike(rng):
    X = np.column_stack(
        [rng.standard_normal((300, 10)), rng.integers(0, 9, (300, 5)), rng.integers(0, 20, (300, 5))]
    )
    categorical = (False,) * 15 + (True,) * 5
    inputs = learn_inputs(X, None, EncoderSettings("bins", max_columns=100), categorical)
    assert inputs.width == 20 + 100
    assert [inputs.source.count(j) for j in range(20)] == [6] * 20
    assert sum(str(label).startswith("shared") for label in inputs.labels) == 15
    edges = np.sort(X[:, 0])[np.ceil(np.array([1e-9, 3, 6, 10, 13]) / 16 * 300).astype(int) - 1]
    np.testing.assert_allclose(inputs.bins.left[:5] * np.abs(X[:, 0]).max(), edges, rtol=1e-15)


def test_names_tell_what_a_column_is(rng):
    X = mixed_rows(rng, 300)[:, [0, 2, 6, 7]]
    settings = EncoderSettings("bins", n_bins=2, max_categories=3)
    inputs = learn_inputs(X, None, settings, (False, False, True, True))
    categories = [None, None, ["blue", "red", "red_"], list("abcdefghijkl")]
    assert inputs.names(["age", "kids", "color", "age_bin1"], categories) == [
        *("age", "kids", "age_missing", "kids_missing", "age_bin0", "age_bin1"),
        *("kids_is_0.0", "kids_is_1.0", "kids_is_2.0", "kids_is_3.0", "kids_is_4.0"),
        *("color_blue", "color_red", "color_red_", "color_missing"),
        *("age_bin1_a", "age_bin1_shared0", "age_bin1_shared1", "age_bin1_missing"),
    ]
    clash = inputs.names(["age", "age_missing", "color", "age_bin1"], categories)
    assert len(set(clash)) == inputs.width


@pytest.mark.parametrize("mode", MODES)
def test_float32_stays_float32(xp, rng, mode):
    X = mixed_rows(rng, 200)
    double = learn_inputs(X, None, EncoderSettings(mode), CATEGORICAL).apply(X)
    single = xp.asarray(X, dtype=xp.float32)
    inputs = learn_inputs(single, None, EncoderSettings(mode), CATEGORICAL)
    encoded = inputs.apply(single)
    assert encoded.dtype == xp.float32
    np.testing.assert_allclose(to_host(encoded), double, atol=2e-3)


@pytest.mark.parametrize("mode", MODES)
def test_what_was_learnt_moves_to_another_library(xp, rng, mode):
    X = mixed_rows(rng, 200)
    inputs = learn_inputs(X, None, EncoderSettings(mode), CATEGORICAL)
    moved = converted(inputs, xp.asarray)
    np.testing.assert_allclose(to_host(moved.apply(xp.asarray(X))), inputs.apply(X), rtol=1e-12)


def test_both_zeros_are_one_value_with_one_name():
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        X = np.array([*zeros, 1.0, 2.0])[:, None]
        assert learn_inputs(X, None, EncoderSettings("bins")).labels == ("", "is_0.0", "is_1.0", "is_2.0")


def test_a_column_has_bins_by_its_numbers_and_not_by_what_the_division_leaves_of_them():
    x = np.array([1e300, *(1e-30 * np.arange(20))])  # over the largest number, the others are 0
    assert learn_inputs(x[:, None], None, EncoderSettings("bins")).labels == ("",)
    near = np.nextafter(1.3, 2) - np.spacing(1.3) * np.arange(3)  # numbers that are neighbours, over another
    X = np.array([*near, 1.99, 0.5, -1.0] * 2)[:, None]
    inputs = learn_inputs(X, None, EncoderSettings("bins"))
    assert (np.diff(inputs.onehots.low) > 0).all()
