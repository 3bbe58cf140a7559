"""Blocks that could go wrong, and what is around a fit to them."""

import itertools
import pickle
import threading

import numpy as np
import pandas
import pytest
from helpers import Recorder, noisy_rows
from parted import DEVICES, NEAR, SMALL, Case, assert_same_answers, assert_same_decisions, fitted_twice
from sklearn import config_context
from sklearn.base import clone

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, RowBlocks

# rows that could go wrong


@pytest.fixture
def noisy_case(noisy):
    return Case(EDRVFLClassifier(**SMALL), *noisy, cuts=[20, 20, 21, 70])


def assert_equal_fits(case, folder):
    one, other = fitted_twice(case, folder)
    assert_same_decisions(one, other, case)
    assert_same_answers(one, other, case)
    return one, other


NAMES = np.array(["no", "yes", "maybe it is"])


@pytest.mark.parametrize(
    "of",
    [
        lambda y: NAMES[y],
        lambda y: NAMES[y].astype(object),
        lambda y: NAMES.astype("S")[y].astype("U"),
        lambda y: y > 0,
        lambda y: (y - 1).astype(np.int8),
        lambda y: pandas.Series(pandas.Categorical(NAMES[y])),
        lambda y: pandas.Series(y, dtype="Int64"),
        lambda y: pandas.Series(y > 0, dtype="boolean"),
    ],
    ids=["strings", "objects", "wider", "booleans", "int8", "categories", "Int64", "boolean"],
)
def test_labels_of_any_kind(of, noisy_case, tmp_path):
    case = noisy_case
    order = np.argsort(case.y, kind="stable")  # the last class is in the last block alone
    case.X, case.y = case.X[order], of(case.y[order])
    if hasattr(case.y, "iloc"):
        one, other = fitted_twice(case, tmp_path)
        case.y = case.y.to_numpy()
        assert_same_answers(one, other, case)
    else:
        assert_equal_fits(case, tmp_path)


def test_labels_in_a_column(noisy_case):
    X, y = noisy_case.X, noisy_case.y
    with pytest.warns(Warning, match="column-vector"):
        other = EDRVFLClassifier(**SMALL).fit(RowBlocks.from_arrays(X, y[:, None], rows=40))
    np.testing.assert_allclose(
        other.predict_proba(X), EDRVFLClassifier(**SMALL).fit(X, y).predict_proba(X), atol=NEAR
    )


@pytest.mark.parametrize("y", [lambda v: v[:, None], lambda v: v > 0, lambda v: v.astype(object), list])
def test_values_of_any_kind(y, noisy_case, tmp_path):
    values = y(noisy_case.X[:, 0] * 3 + noisy_case.X[:, 1] ** 2)
    case = Case(EDRVFLRegressor(**SMALL), noisy_case.X, values, cuts=[20, 20, 21])
    one, other = fitted_twice(case, tmp_path)
    np.testing.assert_allclose(one.predict(case.X), other.predict(case.X), atol=1e-9)


@pytest.mark.parametrize(
    "params",
    [
        {"n_layers": 1},
        {"prune_rate": 0.99},
        {"n_hidden": 1},
        {"n_hidden": 150},  # more columns than rows: the fit in memory solves the dual system
        {"n_hidden": 150, "regularization": "loo", "weight_from": "loo"},
        {"n_hidden": "auto"},
        {"correct_weight": 0.001},
        {"norm_scale": (0.1, 10.0), "norm_shift": (-1.0, 1.0)},
    ],
    ids=str,
)
def test_extreme_parameters(params, noisy_case, tmp_path):
    noisy_case.model.set_params(**params)
    assert_equal_fits(noisy_case, tmp_path)


@pytest.mark.parametrize("encoder", ["standard", "robust", "bins", None])
def test_columns_that_are_constant_or_empty(encoder, noisy_case, tmp_path):
    case = noisy_case
    case.X[:, 1] = 3.0
    case.X[:20, 2] = 0.0  # constant in the first block
    if encoder is not None:
        case.X[:, 3] = np.nan
        case.X[20:70, 4] = np.nan
    case.model.set_params(encoder=encoder)
    assert_equal_fits(case, tmp_path)


@pytest.mark.filterwarnings("ignore:The Gram matrix is numerically singular")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("model", [EDRVFLClassifier, EDRVFLRegressor])
def test_singular_systems_weigh_by_the_leave_one_out_scores_of_least_norm(model, weighted, rng, tmp_path):
    X = rng.standard_normal((200, 9))
    X[:, 4:6] = X[:, :2]
    X[:, 6:] = 0.0
    X[[20, 70, 170], [6, 7, 8]] = 1.0  # rows that lie outside the span of the others
    values = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(200) + 3 * X[:, 6:].sum(axis=1)
    y = values if model is EDRVFLRegressor else values > 0
    weight = rng.uniform(0.2, 1.0, size=200) if weighted else None
    params = SMALL | {"weight_from": "loo", "correct_weight": 0.5, "regularization": 1e-14}
    case = Case(model(**params, encoder=None), X, y, weight, cuts=[40, 100, 101])
    one, other = fitted_twice(case, tmp_path)
    assert one.fallback_layers_ == other.fallback_layers_ == (1, 2, 3)
    assert_same_answers(one, other, case)


def test_blocks_without_weight(noisy_case, tmp_path):
    noisy_case.weight = np.ones(len(noisy_case.y))
    noisy_case.weight[:21] = 0.0
    noisy_case.weight[70:] = 0.0
    assert_equal_fits(noisy_case, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda case: setattr(case, "y", np.zeros_like(case.y)), "at least two classes.*only one class .0."),
        (
            lambda case: case.model.set_params(class_weight={0: 0, 1: 0, 2: 1}),
            "two classes.*only one class .2.",
        ),
        (
            lambda case: case.model.set_params(class_weight={0: -1, 1: 0, 2: 1}),
            "class_weight must hold finite",
        ),
        (lambda case: case.model.set_params(class_weight={0: 1, 7: 0}), "not in class_weight"),
        (lambda case: setattr(case, "weight", np.full(90, 1e200)), "weights are too large.*1e.200"),
        (lambda case: setattr(case, "X", np.where(case.X > 2, np.nan, case.X)), "EDRVFLClassifier does not"),
        (lambda case: setattr(case, "X", case.X * 1e200), "features overflow float64 in layer 1"),
    ],
    ids=["one class", "one is left", "negative", "unknown", "huge weights", "gaps", "overflow"],
)
def test_errors_are_those_of_a_fit_in_memory(change, message, noisy_case, tmp_path):
    noisy_case.model.set_params(encoder=None)
    change(noisy_case)
    for rows in [(noisy_case.X, noisy_case.y, noisy_case.weight), (noisy_case.source(tmp_path),)]:
        with pytest.raises(ValueError, match=message):
            noisy_case.model.fit(*rows)
        assert not hasattr(noisy_case.model, "network_")


def test_values_that_float32_cannot_tell_apart_are_refused(noisy_case, tmp_path):
    case = Case(EDRVFLRegressor(**SMALL), noisy_case.X.astype(np.float32), noisy_case.X[:, 0] + 1e8)
    for rows in [(case.X, case.y), (case.source(tmp_path),)]:
        with pytest.raises(ValueError, match="too little to tell values apart"):
            case.model.fit(*rows)


@pytest.mark.parametrize("of", ["X", "y", "weight"])
def test_a_buffer_that_is_overwritten_is_an_error(of, noisy_case):
    case = noisy_case
    case.weight = np.arange(1.0, 91.0)
    buffers = {name: getattr(case, name)[:30].copy() for name in ("X", "y", "weight")}

    def read():
        for start in range(0, 90, 30):
            block = {name: getattr(case, name)[start : start + 30] for name in buffers}
            buffers[of][...] = block[of]
            yield tuple({**block, of: buffers[of]}.values())

    with pytest.raises(ValueError, match="Block 0 of the source: its arrays were overwritten when block 1"):
        case.model.fit(RowBlocks(read))


def test_the_same_block_twice_is_no_overwritten_one(noisy_case):
    X, y = noisy_case.X, noisy_case.y
    model = EDRVFLClassifier(**SMALL).fit(RowBlocks([(X, y)] * 3))
    twice = EDRVFLClassifier(**SMALL).fit(np.tile(X, (3, 1)), np.tile(y, 3))
    np.testing.assert_allclose(model.predict_proba(X), twice.predict_proba(X), atol=NEAR)


# what is around a fit


def test_a_warning_names_the_line_that_fits(noisy_case, tmp_path):
    noisy_case.model.set_params(regularization=1e20)
    with pytest.warns(UserWarning, match="all classes get nearly the same probability") as seen:
        noisy_case.model.fit(noisy_case.source(tmp_path))
    assert seen[0].filename == __file__


def test_a_fitted_model_is_like_any_other(noisy_case, tmp_path, capsys):
    case = noisy_case
    case.model.set_params(verbose=1)
    one, other = fitted_twice(case, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == lines[3:]
    again = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(again.predict_proba(case.X), other.predict_proba(case.X))
    fresh = clone(other).set_params(verbose=0).fit(case.X, case.y)
    assert fresh.get_params() == {**one.get_params(), "verbose": 0}
    np.testing.assert_array_equal(fresh.predict_proba(case.X), one.predict_proba(case.X))
    blocks = pickle.loads(pickle.dumps(RowBlocks(list(case.blocks()))))  # as a cluster would send it
    np.testing.assert_array_equal(clone(fresh).fit(blocks).predict_proba(case.X), other.predict_proba(case.X))


def test_metadata_are_routed_as_before(noisy_case, tmp_path):
    with config_context(enable_metadata_routing=True):
        model = noisy_case.model.set_fit_request(sample_weight=True).fit(noisy_case.source(tmp_path))
        assert model.get_metadata_routing().fit.requests == {"sample_weight": True, "groups": None}


def test_a_callback_that_stops_leaves_the_layers_so_far(noisy_case):
    case = noisy_case
    one, other = (clone(case.model).set_callbacks(Recorder(stop_after=2)) for _ in range(2))
    one.fit(case.X, case.y)
    other.fit(RowBlocks(case.blocks))
    assert one.n_layers_ == other.n_layers_ == 2
    assert_same_decisions(one, other, case)
    assert_same_answers(one, other, case)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_leaves_nothing_behind(threads, noisy_case):
    blocks, calls = list(noisy_case.blocks()), itertools.count()

    def read():
        for block in blocks:
            if next(calls) == 33:  # in the second layer's pass
                raise KeyboardInterrupt
            yield block

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        noisy_case.model.fit(RowBlocks(read, threads=threads))
    assert not hasattr(noisy_case.model, "network_")
    assert threading.active_count() == before


# float32


@pytest.mark.parametrize("options", [{}, {"device": DEVICES[-1]}], ids=str)
def test_float32_blocks_give_a_float32_model_near_the_other(options, rng):
    X, y = noisy_rows(rng, 3000, 4)
    model = EDRVFLClassifier(n_hidden=60, n_layers=3, random_state=0)
    double = clone(model).fit(RowBlocks.from_arrays(X, y, rows=700, **options))
    single = clone(model).fit(RowBlocks.from_arrays(X.astype(np.float32), y, rows=700, **options))
    arrays = [*single.network_.readouts, *(layer.W for layer in single.network_.layers)]
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
    P, Q = single.predict_proba(X.astype(np.float32)), double.predict_proba(X)
    assert P.dtype == np.float32
    assert np.abs(P - Q).mean() < 0.01  # a row that rounding calls wrong changes the layers after it
    assert abs(single.score(X.astype(np.float32), y) - double.score(X, y)) < 0.01


def test_blocks_of_two_precisions_are_fitted_in_the_higher(noisy_case):
    X, y = noisy_case.X, noisy_case.y
    model = EDRVFLClassifier(**SMALL).fit(RowBlocks([(X[:50].astype(np.float32), y[:50]), (X[50:], y[50:])]))
    assert model.predict_proba(X).dtype == np.float64


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e200])
def test_blocks_of_zeros_do_not_hide_the_scale_of_values(scale, noisy_case):
    X = noisy_case.X
    y = X[:, 0] * X[:, 1] + 1
    y[:21] = 0.0
    weight = np.ones(90)
    weight[70:] = 0.0
    model = EDRVFLRegressor(**SMALL)
    blocks = Case(model, X, y * scale, weight, cuts=[20, 21, 70]).blocks
    expected = clone(model).fit(X, y, weight).predict(X)
    np.testing.assert_allclose(model.fit(RowBlocks(blocks)).predict(X) / scale, expected, rtol=1e-8)


def test_penalties_follow_the_scale_of_sample_weights_and_not_of_class_weights(noisy_case, tmp_path):
    noisy_case.weight = np.linspace(0.1, 0.3, 90)
    noisy_case.model.set_params(regularization="loo", class_weight={0: 0.01, 1: 0.02, 2: 0.05})
    one, _ = assert_equal_fits(noisy_case, tmp_path)
    unit = np.sum(noisy_case.weight**2) / np.sum(noisy_case.weight)  # the weight of one row
    powers = np.log2(np.asarray(one.regularization_) / unit)
    np.testing.assert_allclose(powers, np.round(powers), atol=1e-9)
