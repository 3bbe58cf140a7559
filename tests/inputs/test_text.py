"""Columns of short text: the rule that finds them, and what a text becomes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, TabularEncoder
from edrvfl._inputs import text as module
from edrvfl._inputs.table import learn_table, open_table, read_table
from edrvfl._inputs.text import N_COLUMNS, Text, holds_text

WHOLE, GOLDEN, PI, MIX = 2**64 - 1, 0x9E3779B97F4A7C15, 0x243F6A8885A308D3, 0xBF58476D1CE4E5B9
WORDS = ["red", "bicycle", "for", "sale", "Lyon", "garden", "old", "wooden", "table", "bright", "Größe", "猫"]


def stirred(state, number):
    state = (state ^ number) * GOLDEN & WHOLE
    return state ^ state >> 29


def mixed(state):
    state = state * MIX & WHOLE
    return state ^ state >> 32


def by_hand(text, n_columns=N_COLUMNS):
    """The columns of a text in plain Python."""
    text = f" {' '.join(text.lower().split())} "
    total, n_pieces = [0] * n_columns, 0
    for n in (3, 4, 5):
        for start in range(len(text) - n + 1):
            state = PI
            for letter in text[start : start + n]:
                state = stirred(state, ord(letter))
            bits = mixed(stirred(PI, mixed(state) % 2**16))
            total = [value + 1 - 2 * (bits >> k & 1) for k, value in enumerate(total)]
            n_pieces += 1
    return [value / max(n_pieces, 1) ** 0.5 for value in total]


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.none() | st.text(max_size=12), min_size=1, max_size=8),
    n_columns=st.integers(1, 40),
    block=st.integers(1, 30),
)
def test_a_text_becomes_what_plain_python_says(values, n_columns, block):
    """Whatever other texts there are, and wherever the blocks end in which they are worked."""
    before, module.BLOCK = module.BLOCK, block
    try:
        found = Text(n_columns).coded(values)
    finally:
        module.BLOCK = before
    gap = [np.nan] * n_columns
    assert_allclose(found, [gap if v is None else by_hand(v, n_columns) for v in values], rtol=1e-12)


def sentences(rng, m):
    return [f"{' '.join(rng.choice(WORDS, 4))} {i}" for i in range(m)]


def test_like_texts_become_like_columns(rng):
    """Distances of the columns are those of the pieces, but for chance."""
    a, b, c = Text(64).coded(["the old wooden table", "an old wooden table", "bright bicycles in Lyon"])
    assert np.square(a - b).sum() < 0.7 * np.square(a - c).sum()
    X = Text().coded(sentences(rng, 500))
    assert 0.8 < X.var() < 1.2


def learn(X, **features):
    return learn_table(open_table(X), **features)


@pytest.fixture
def frame(rng):
    X = pd.DataFrame({"size": rng.standard_normal(240), "comment": sentences(rng, 240)})
    X.loc[::9, "comment"] = None
    return X


def test_the_same_bits_in_every_library(frame):
    X, columns = learn(frame)
    assert columns.words(1) == "text"
    assert np.isnan(X[0, 1:]).all()
    others = [pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.astype({"comment": object})]
    others.append(frame.astype({"comment": "category"}))  # new rows may have another type
    for other in others:
        assert_array_equal(read_table(open_table(other, np.float64), columns), X)
    for other in others[:-1]:
        assert_array_equal(learn(other)[0], X)


def test_the_rule_of_text(rng):
    """Many different values, more than half of the cells new, of two words or more."""
    many = sentences(rng, 200)
    assert holds_text(many, 200)
    assert holds_text([*many, None], 399)
    assert not holds_text(many, 400)
    assert not holds_text(many[:99], 99)
    assert not holds_text([text.replace(" ", "") for text in many], 200)


def test_both_parameters_overrule_the_rule(frame):
    few = frame.assign(kind=["a b", "c d", "e f"] * 80, code=[f"id{i}" for i in range(240)])
    assert [learn(few)[1].words(j) for j in range(4)] == ["numbers", "text", "categories", "categories"]
    for text in (["kind", "code"], [2, 3], [False, False, True, True]):
        assert [learn(few, text_features=text)[1].words(j) for j in (1, 2, 3)] == ["text"] * 3
    assert learn(few, text_features=None)[1].words(1) == "categories"
    assert learn(few, categorical_features=["comment"])[1].words(1) == "categories"
    assert learn(few.drop(columns=["kind", "code"]), categorical_features=None, text_features=["comment"])
    with pytest.raises(ValueError, match="categorical_features and text_features both name kind"):
        learn(few, categorical_features=["kind"], text_features=["kind"])
    with pytest.raises(ValueError, match="Column 'size' is named in text_features, but it holds numbers"):
        learn(few, text_features=["size"])
    with pytest.raises(ValueError, match="text_features, but it holds numbers"):
        learn(np.zeros((3, 2)), text_features=[0])
    with pytest.raises(ValueError, match="text_features names columns that X does not have: 'zip'"):
        learn(few, text_features=["zip"])
    with pytest.raises(ValueError, match="Column 'comment' holds text"):
        learn(few, categorical_features=None)


def test_other_rows_have_no_say(frame):
    encoder = TabularEncoder().fit(frame)
    assert_array_equal(encoder.transform(frame)[5:9], encoder.transform(frame[5:9]))
    names = encoder.get_feature_names_out().tolist()
    assert names == ["size", *(f"comment_text{i}" for i in range(N_COLUMNS)), "comment_missing"]
    Z = encoder.transform(frame)[:, 1:-1]
    assert_allclose([Z.mean(), Z.var(axis=0).sum()], [0, module.VARIANCE], atol=1e-9)
    new = frame[:3].assign(comment=["never seen before", "", None])
    assert np.isfinite(encoder.transform(new)).all()


def test_models_read_text(frame):
    y = frame["comment"].fillna("").str.contains("bicycle")
    model = EDRVFLClassifier(n_hidden=80, n_layers=2, random_state=0).fit(frame, y)
    assert model.loo_accuracies_[-1] > y.value_counts(normalize=True).max() + 0.05
    members = [("network", EDRVFLClassifier(n_hidden=20, n_layers=1))]
    portfolio = EDRVFLPortfolioClassifier(members=members, text_features=None, random_state=0)
    assert portfolio.fit(frame, y).portfolio_.columns.categorical == (False, True)


@pytest.mark.parametrize("gap", [None, np.nan, "", "  "])
def test_a_column_that_is_declared_text_may_be_empty_in_the_fit(gap):
    X = pd.DataFrame({"a": np.arange(5.0), "b": [gap] * 5})
    _, columns = learn_table(open_table(X), text_features=["b"])
    assert columns.words(1) == "text"
    some = read_table(open_table(X.assign(b="red bicycle")), columns)
    assert_allclose(some[0, 1:], by_hand("red bicycle"), atol=1e-6)
