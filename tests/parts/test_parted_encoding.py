"""An encoding that is learnt from parts is the encoding that is learnt from all rows at once."""

import itertools
import pickle
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given, settings
from hypothesis import strategies as st

from edrvfl import EDRVFLRegressor, TabularEncoder
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.ranked import Ranked
from edrvfl._parts import quantiles
from edrvfl._parts.encoding import learn_parted_inputs
from edrvfl._parts.rows import parted_rows
from edrvfl._parts.source import RowBlocks
from edrvfl._parts.survey import take_survey
from edrvfl._parts.watched import WatchedParts
from edrvfl._seam.arrays import converted

MODES = ["standard", "robust", "bins", "ranks"]
NAN = float("nan")
SUMMED = {"mean", "sd", "fill", "spread", "slope", "offset", "low", "high", "on", "off"}  # equal to rounding


class Passes(RowBlocks):
    """Blocks of the rows, cut at these places, that count how often they are read."""

    def __init__(self, X, counts, cuts):
        edges = [0, *sorted(cuts), len(X)]
        self.passes = 0

        def read():
            self.passes += 1
            for a, b in itertools.pairwise(edges):
                yield X[a:b], np.arange(a, b), None if counts is None else counts[a:b]

        super().__init__(read)

    def total(self, function, heard=None):
        """Sum what the function says after it was sent to another process."""
        return super().total(pickle.loads(pickle.dumps(function)), heard)


def parted(X, counts, cuts, categorical=(), xp=np):
    """Rows in parts after their survey. The last columns hold categories."""
    source = Passes(X, counts, cuts)
    encoder = TabularEncoder(categorical_features=list(categorical))
    watched = WatchedParts(source)
    survey = take_survey(watched, EDRVFLRegressor(), encoder)
    rows = parted_rows(watched, survey, None, xp.asarray(np.empty(0, dtype=X.dtype)))
    source.passes = 0
    return source, rows


def assert_same(found, expected, rtol, path=""):
    """Codes and knots are the same, sums are equal to rounding."""
    if is_dataclass(expected):
        for field in fields(expected):
            of_both = (getattr(one, field.name) for one in (found, expected))
            assert_same(*of_both, rtol, f"{path}.{field.name}")
    elif isinstance(expected, np.ndarray) and path.rpartition(".")[2] in SUMMED:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=path)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected, err_msg=path, strict=True)
    else:
        assert found == expected, path


def assert_learnt_alike(X, counts, cuts, encoder, n_coded=0, rtol=1e-12, xp=np):
    """Compare the encodings of rows in parts and of all rows; return how many passes the parts took."""
    kept = slice(None) if counts is None else counts > 0
    d = X.shape[1]
    categorical = [j >= d - n_coded for j in range(d)]
    source, rows = parted(X, counts, cuts, np.flatnonzero(categorical).tolist(), xp)
    codes = X.copy()
    for j in np.flatnonzero(categorical):
        values = np.unique(X[~np.isnan(X[:, j]), j])
        codes[:, j] = np.where(np.isnan(X[:, j]), NAN, np.searchsorted(values, X[:, j]))
    weights = None if counts is None else counts[kept].astype(X.dtype)
    expected = learn_inputs(codes[kept], weights, encoder, categorical)
    found = learn_parted_inputs(rows, encoder, categorical)
    assert_same(converted(found, to_host), expected, rtol)
    return source.passes


# no two so near that rounding decides a variance
values = st.one_of(
    st.sampled_from([NAN, 0.0, -0.0, 1.0, -3.0]), st.integers(-5000, 5000).map(lambda i: i / 7)
)


@st.composite
def problems(draw):
    """Rows with gaps and ties, weights, and where they are cut, also at the same place twice."""
    m, d, n_coded = draw(st.integers(2, 40)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    numbers = draw(st.lists(values, min_size=m * d, max_size=m * d))
    codes = draw(st.lists(st.sampled_from([NAN, 0, 1, 2, 7]), min_size=m * n_coded, max_size=m * n_coded))
    X = np.concatenate(
        [np.reshape(numbers, (m, d)), np.reshape(np.array(codes, float), (m, n_coded))], axis=1
    )
    weight = st.one_of(st.integers(0, 3), st.sampled_from([0.1, 0.3, 1.7]))
    counts = draw(st.none() | st.lists(weight, min_size=m, max_size=m).filter(any))
    cuts = draw(st.lists(st.integers(0, m), max_size=4))
    return X, None if counts is None else np.array(counts, float), cuts, n_coded


@settings(max_examples=80)
@given(problem=problems(), mode=st.sampled_from(MODES), tight=st.booleans(), n_bins=st.integers(2, 5))
def test_parts_say_what_all_rows_say(problem, mode, tight, n_bins):
    X, counts, cuts, n_coded = problem
    encoder = EncoderSettings(mode, n_bins, max_values=3, max_categories=3)
    with pytest.MonkeyPatch.context() as patch:
        if tight:  # so that a few rows need many passes
            patch.setattr(quantiles, "FIRST_BITS", 13)
            patch.setattr(quantiles, "FEW", 1)
            patch.setattr(quantiles, "CELLS", 1)
        assert_learnt_alike(X, counts, cuts, encoder, n_coded)


@settings(max_examples=150)
@given(
    data=st.data(),
    floats=st.sampled_from([32, 64]).flatmap(
        lambda width: st.tuples(
            st.just(width),
            st.lists(st.floats(width=width, allow_nan=False, allow_infinity=False), min_size=2),
        )
    ),
    cells=st.integers(1, 40),
)
def test_quantiles_of_any_floats_are_those_of_the_sorted_column(data, floats, cells):
    width, floats = floats
    x = np.array(floats, dtype=f"f{width // 8}")
    weight = st.one_of(st.integers(1, 3), st.sampled_from([0.1, 0.7, 1.7]))
    counts = data.draw(st.none() | st.lists(weight, min_size=len(x), max_size=len(x)))
    counts = None if counts is None else np.array(counts, dtype=x.dtype)
    cut = data.draw(st.integers(1, len(x) - 1))

    def total(step):
        pieces = [(x[rows, None], None if counts is None else counts[rows]) for rows in np.s_[:cut, cut:]]
        return step(*pieces[0]) + step(*pieces[1])

    shares = [0.25, 0.5, 0.75, *(k / 7 for k in range(8))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantiles, "FEW", 3)
        patch.setattr(quantiles, "CELLS", cells)
        counted = total(quantiles.first_count([0], 3))
        (found,) = quantiles.in_order(total, counted, {0: x.dtype.type(1)}, shares)
    expected = Ranked.of(x, counts)
    np.testing.assert_array_equal(found.quantiles(shares), expected.quantiles(shares), strict=True)
    if expected.distinct(3) is None:
        assert found.distinct(3) is None
    else:
        np.testing.assert_allclose(found.distinct(3), expected.distinct(3), rtol=1e-15)


def test_rounded_sums_of_weights_move_no_quantile():
    X, counts = np.array([[1.0], [2], [2], [2]]), np.array([0.3, 0.1, 0.1, 0.1])
    assert counts[0] < counts[1:].sum()  # one half of the weight, but for rounding
    counted = quantiles.first_count([0], 3)(X, counts)
    (found,) = quantiles.in_order(None, counted, {0: 2.0}, [0.5])  # without another pass
    assert found.quantiles([0.5]) == 1


def skewed(rng, m):
    """Continuous columns of several shapes, one with few values, one with many ties, one with gaps."""
    Z = rng.standard_normal((m, 7))
    Z[:, 1] = np.exp(3 * Z[:, 1])
    Z[:, 2] = Z[:, 2] * 1e-3 + 1000
    Z[:, 3] = np.floor(5 * rng.random(m))
    Z[:, 4] = np.where(rng.random(m) < 0.8, 2.0, Z[:, 4])
    Z[rng.random(m) < 0.2, 5] = NAN
    Z[:, 6] = np.floor(np.abs(Z[:, 6]) * 4)
    return Z


@pytest.mark.parametrize("weights", [None, "integers", "reals"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", MODES)
def test_thousands_of_rows(rng, mode, dtype, weights):
    X = skewed(rng, 6000).astype(dtype)
    counts = {None: None, "integers": rng.integers(0, 4, 6000).astype(dtype), "reals": rng.random(6000)}
    rtol = 1e-11 if dtype == "float64" else 1e-4
    passes = assert_learnt_alike(X, counts[weights], [0, 1, 1000, 4000, 4000], EncoderSettings(mode), 1, rtol)
    assert passes == (2 if mode == "standard" else 3)


@pytest.mark.parametrize("mode", MODES)
def test_few_values_take_two_passes_and_categories_one(rng, mode):
    X = rng.integers(0, 20, (500, 3)).astype(float)
    assert assert_learnt_alike(X, None, [100], EncoderSettings(mode)) == 2
    assert assert_learnt_alike(X, None, [100], EncoderSettings(mode), n_coded=3) == 1


@pytest.mark.parametrize("mode", MODES)
def test_constant_and_missing_columns(mode):
    X = np.array([[1.0, NAN, 1e300, 0.0, NAN], [1.0, NAN, -1e300, -0.0, 3.0], [1.0, NAN, 5.0, 0.0, 3.0]] * 4)
    for cuts in ([], [1], [1, 2, 3, 3], range(12)):
        assert_learnt_alike(X, None, cuts, EncoderSettings(mode, max_values=2))


@pytest.mark.parametrize("mode", MODES)
def test_huge_numbers(rng, mode):
    X = skewed(rng, 3000) * [1e300, 1.0, 1e-300, 1e200, 1e300, 1e-200, 1.0]
    assert_learnt_alike(X, None, [1000, 1001], EncoderSettings(mode), rtol=1e-11)


@pytest.mark.parametrize("mode", MODES)
def test_every_library(xp, rng, mode):
    assert_learnt_alike(skewed(rng, 2000), None, [700], EncoderSettings(mode), 1, 1e-11, xp)


def test_cells_hold_the_passes_within_their_memory(rng, monkeypatch):
    """Passes grow by the logarithm of what a pass may not hold; ties are no reason for more."""
    monkeypatch.setattr(quantiles, "FEW", 8)
    X = np.concatenate([rng.standard_normal((5000, 1)), np.round(rng.standard_normal((5000, 1)), 2)], axis=1)
    passes = []
    for cells in (2**21, 2**10, 2**6):
        monkeypatch.setattr(quantiles, "CELLS", cells)
        passes.append(assert_learnt_alike(X, None, [2000], EncoderSettings("bins")))
    assert passes[0] == 3
    assert passes == sorted(passes)


def test_keys_are_in_the_order_of_the_floats(rng):
    for dtype in ("float32", "float64"):
        limits = np.finfo(dtype)
        x = np.array([0.0, 1.0, limits.max, limits.tiny, limits.smallest_subnormal, *rng.standard_normal(50)])
        x = np.sort(np.concatenate([x, -x]).astype(dtype))
        keys = quantiles.keys_of(x)
        assert (np.diff(keys) > 0).sum() == len(x) - 2  # both zeros are one
        np.testing.assert_array_equal(keys, np.sort(keys))
        np.testing.assert_array_equal(quantiles.values_of(keys), x, strict=True)


def test_an_encoder_of_none_takes_numbers_as_they_are(rng):
    _, rows = parted(rng.standard_normal((20, 3)), None, [5])
    assert learn_parted_inputs(rows, None).width == 3
