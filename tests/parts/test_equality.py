"""Fits over blocks against fits in memory: the same masks, the same right rows, then the same answers."""

from collections import Counter

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from parted import (
    CLEAR,
    DEVICES,
    SMALL,
    Case,
    assert_same_answers,
    assert_same_decisions,
    assert_same_figures,
    assume_clear,
    decisions,
    fitted_twice,
)

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, variant
from edrvfl._doors.variants import VARIANTS


def holds_for(cases, folder, examples):
    """Compare fits of many cases; return how many there were, and how many were decided by rounding."""
    tried = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(cases)
    def compare(case):
        tried["all"] += 1
        one, other = fitted_twice(case, folder)
        tried["unclear"] += (found := decisions(case, one)).margin <= CLEAR
        assume_clear(found)
        # in memory a row of weight 2 that agrees with others by chance becomes two rows, in blocks one
        assume(case.weight is None or len(pandas.DataFrame(case.X).drop_duplicates()) == len(case.X))
        assert_same_decisions(one, other, case)
        assert_same_answers(one, other, case)
        assert_same_figures(one, other)

    compare()
    return tried


# cases


@st.composite
def tables(draw, rng, m):
    """Draw columns: numbers, or a frame with categories and gaps."""
    d = draw(st.integers(1, 5))
    X = rng.normal(size=(m, d)) * rng.uniform(0.1, 30, size=d) + rng.choice([0.0, 0.0, 20.0], size=d)
    kind = draw(st.sampled_from(["array", "array", "constant", "frame"]))
    if kind == "constant":
        X = np.column_stack([X, np.full(m, 3.0)])
    if kind != "frame":
        return X
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(d)])
    frame.iloc[rng.integers(0, m, m // 5), 0] = np.nan
    colours = rng.choice(["red", "green", "blue", None], size=m, p=[0.4, 0.3, 0.2, 0.1])
    frame["colour"] = pandas.Categorical(colours, categories=["red", "green", "blue", "never"])
    frame["text"] = rng.choice(["a", "b"], size=m)
    return frame


@st.composite
def models(draw, frame):
    """Draw parameters that both kinds of estimator have."""
    some = st.sampled_from
    params = {
        "n_hidden": draw(some([1, 5, 12, 12, 30])),
        "n_layers": draw(some([1, 2, 3, 3])),
        "regularization": draw(some([0.5, 8.0, 64.0, "loo"])),
        "activation": draw(some(["relu", "relu", "sigmoid", "selu", "sin"])),
        "weight_from": draw(some(["train", "loo"])),
        "encoder": draw(some(["standard", "robust", "bins"] + [None] * (not frame))),
        "pair_share": draw(some([0.0, 0.0, 0.5])),
        "input_scaling": draw(some([None, None, "gradient"])),
        "coverage_from": draw(some(["loo", "split"])),
        "layer_votes": draw(some(["equal", "prefix", "weighted"])),
        "norm_scale": draw(some([1.0, (0.5, 2.0)])),
        "inputs_per_neuron": draw(some([None, None, 2])),
        "hidden_per_neuron": draw(some([None, None, 3])),
        "random_state": draw(st.integers(0, 99)),
    }
    if params["activation"] == "sin" and params["encoder"] is None:
        params["encoder"] = "standard"  # the sine of large numbers magnifies their rounding
    return params


@st.composite
def cuts_of(draw, m):
    """Draw where blocks end: some are empty, and some have one row."""
    cuts = draw(st.lists(st.integers(0, m), min_size=1, max_size=5))
    extra = draw(st.sampled_from([[], [0], [m], [cuts[0]], [min(m, cuts[0] + 1)]]))
    return sorted(cuts + extra)


@st.composite
def sources(draw, case):
    """Draw how the rows come."""
    array = isinstance(case.X, np.ndarray)
    text = np.asarray(case.y).dtype.kind in "O"
    case.kind = draw(st.sampled_from(["callable", "map"] if array and not text else ["callable", "parquet"]))
    if case.kind == "parquet" and array:
        case.X = pandas.DataFrame(case.X, columns=[f"x{j}" for j in range(case.X.shape[1])])
    case.cuts = draw(cuts_of(len(case.y)))
    case.options = {"threads": draw(st.sampled_from([1, 2])), "device": draw(st.sampled_from(DEVICES))}
    return case


def draw_weights(draw, rng, m, keep, penalty):
    """Draw weights; rows in `keep` have some."""
    kind = draw(st.sampled_from(["none", "none", "whole", "real", "tiny"]))
    if kind == "none":
        return None
    weight = rng.integers(0, 4, m).astype(float) if kind == "whole" else rng.uniform(0, 2, m)
    weight[keep] += 1.0
    return weight * 1e-200 if kind == "tiny" and penalty == "loo" else weight  # others would be all penalty


@st.composite
def classified(draw):
    """Draw a problem with classes."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    m = draw(st.sampled_from([25, 60, 130]))
    X = draw(tables(rng, m))
    params = draw(models(isinstance(X, pandas.DataFrame)))
    k = draw(st.integers(2, 4))
    numbers = np.asarray(X if isinstance(X, np.ndarray) else X.iloc[:, 1:2].select_dtypes("number"), float)
    signal = numbers[:, 0] if numbers.shape[1] else np.zeros(m)
    signal = (signal - signal.mean()) / (signal.std() + 1e-9) + 0.7 * rng.normal(size=m)
    codes = np.digitize(signal, np.quantile(signal, np.arange(1, k) / k))
    if draw(st.booleans()):
        codes[codes == k - 1] = rng.integers(0, k - 1 if k > 2 else k, (codes == k - 1).sum())
        codes[-1] = k - 1  # a class of one row, the last
    labels = draw(
        st.sampled_from(
            [np.arange(k), np.arange(k) * 3.0 - 1, np.array(["no", "yes", "maybe", "?"], dtype=object)[:k]]
        )
    )
    y = labels[codes]
    seen = [int(np.flatnonzero(codes == c)[0]) for c in np.unique(codes)]
    weight = draw_weights(draw, rng, m, seen, params["regularization"])
    costs = draw(st.sampled_from([None, None, "balanced", "dict"]))
    if costs == "dict":
        costs = {label: [1.0, 2.5, 0.5, 0.0][i] for i, label in enumerate(labels.tolist())}
        if k == 2:
            costs = {label: 1.0 + i for i, label in enumerate(labels.tolist())}
    params["class_weight"] = costs
    params["calibration"] = draw(st.sampled_from(["loo", "temperature", None]))
    name = draw(st.sampled_from(sorted(VARIANTS)))
    if name == "dRVFL":
        params["layer_votes"] = "equal"
    if name == "RVFL":
        params["n_layers"] = 1
    return draw(sources(Case(variant(name, **params), X, y, weight)))


@st.composite
def valued(draw):
    """Draw a problem with one value or two."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    m = draw(st.sampled_from([25, 60, 130]))
    X = draw(tables(rng, m))
    params = draw(models(isinstance(X, pandas.DataFrame)))
    joint = draw(st.integers(0, 3)) == 0
    params["readout"] = "joint" if joint else "layers"
    if joint:
        params["layer_votes"] = "equal"
    else:
        params["correct_weight"] = draw(st.sampled_from([1.0, 0.7, 0.4]))
        params["prune_rate"] = draw(st.sampled_from([0.0, 0.3, 0.99]))
    y = rng.normal(size=m) * 3 + 50 + (np.asarray(X)[:, 0].astype(float) if isinstance(X, np.ndarray) else 0)
    if draw(st.booleans()):
        y = np.column_stack([y, rng.normal(size=m) ** 2])
    weight = draw_weights(draw, rng, m, [0, 1, 2], params["regularization"])
    return draw(sources(Case(EDRVFLRegressor(**params), X, y, weight)))


@pytest.mark.parametrize(
    ("cases", "examples"), [(classified(), 30), (valued(), 20)], ids=["classes", "values"]
)
def test_blocks_give_the_fit_in_memory(cases, examples, tmp_path):
    tried = holds_for(cases, tmp_path, examples)
    assert tried["unclear"] <= 0.1 * tried["all"], tried


# rows of which only a part is judged


def many_classes(rng, m=9000):
    X = rng.normal(size=(m, 3)) * [1, 20, 0.1]
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] / 2 + 0.5 * rng.normal(size=m), [0.0])
    y[rng.choice(m, 7, replace=False)] = 2  # a rare class: all of its rows are judged
    return X, y


def many_values(rng, m=12_800):
    X = rng.normal(size=(m, 3))
    return X, 50 + X[:, 0] * X[:, 1] * 5 + rng.normal(size=m) * (1 + (X[:, 2] > 0))


MANY = {
    "calibrated": (
        variant("WPedRVFL", **SMALL, calibration="loo", regularization="loo", layer_votes="weighted"),
        {"threads": 2},
    ),
    "class weights": (
        variant("WPedRVFL", **SMALL, calibration="loo", weight_from="loo", class_weight="balanced"),
        {"threads": 2},
    ),
    "pairs": (
        variant("PedRVFL", **SMALL, pair_share=0.5, input_scaling="gradient", encoder="bins"),
        {"threads": 2},
    ),
    "held back": (
        variant("WPedRVFL", **SMALL, coverage_from="split", class_weight={0: 1, 1: 2, 2: 0}),
        {"threads": 2},
    ),
    "values": (
        EDRVFLRegressor(**SMALL, correct_weight=0.6, prune_rate=0.3, layer_votes="prefix"),
        {"threads": 2},
    ),
    "values held back": (
        EDRVFLRegressor(**SMALL, pair_share=0.5, input_scaling="gradient", coverage_from="split"),
        {"threads": 2},
    ),
}


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_give_the_fit_in_memory(name, weighted, rng, tmp_path):
    model, options = MANY[name]
    X, y = many_classes(rng) if isinstance(model, EDRVFLClassifier) else many_values(rng)
    weight = rng.integers(0, 3, len(y)).astype(float) if weighted else None
    if weighted and len(y) > 10_000:
        weight[:] += 0.25  # so that more than 10,000 have one
    case = Case(model, X, y, weight, [900, 901, 901, 4000], "callable", options)
    one, other = fitted_twice(case, tmp_path)
    assert decisions(case, one).margin > 1e-10  # nothing was decided by rounding
    assert_same_decisions(one, other, case)
    assert_same_answers(one, other, case)
    assert_same_figures(one, other)
