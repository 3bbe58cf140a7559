"""Small fitted models of every kind that a file can hold, with rows to ask them about."""

import datetime

import numpy as np
import pandas as pd

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
)

SMALL = {"n_hidden": 12, "n_layers": 3, "random_state": 0}
SPARSE = {"inputs_per_neuron": 2, "hidden_per_neuron": 5}
JOINT = {"readout": "joint", "correct_weight": 1.0, "prune_rate": 0.0}


def numbers(m=60, dtype=float):
    """Rows of three columns of numbers, with three classes and a value."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((m, 3))
    value = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(m)
    return X.astype(dtype), np.digitize(value, [-0.5, 0.5]), value.astype(dtype)


def frame(m=60):
    """A frame with gaps, a column of text, categories that are numbers, and an empty column."""
    X, codes, value = numbers(m)
    table = pd.DataFrame({"a": X[:, 0], "b": np.round(X[:, 1]), "ü": np.array(["x", "yy", "ß"])[codes]})
    table["d"] = pd.Categorical((codes * 2.0).tolist())
    table["e"] = np.nan
    table.loc[::7, "a"] = np.nan
    table.loc[::9, "ü"] = None
    return table, codes, value


def kinds(m=60):
    """A frame of every kind of column: numbers, categories, dates, times of day, durations and text."""
    table, codes, value = frame(m)
    table["when"] = pd.Series(pd.date_range("2023-12-28 06:00", periods=m, freq="29h", tz="Europe/Paris"))
    table["at"] = [datetime.time(i % 24, i % 60) for i in range(m)]
    table["wait"] = pd.to_timedelta(np.abs(value), unit="h")
    table["say"] = [f"a {'high Größe' if c else 'low one'} of {i}" for i, c in enumerate(codes)]
    table.loc[::11, ["when", "wait", "say"]] = None
    return table, codes, value


def _portfolio(kind, network, kernel, **params):
    members = [
        ("k", kernel()),
        ("n", network(n_hidden=10, n_layers=2, pair_share=0.5, encoder="bins")),
        ("s", network(n_hidden=10, n_layers=2, encoder=TabularEncoder("robust"), **SPARSE)),
    ]
    return kind(members=members, random_state=0, **params)


def _fitted(name):
    """Return a fitted model of a name, and rows."""
    X, codes, value = numbers()
    T, _, _ = frame()
    K, _, _ = kinds()
    X32, _, value32 = numbers(dtype=np.float32)
    texts = np.array(["no", "maybe", "yes"])[codes]
    state = np.random.RandomState(5)
    several = np.column_stack([value, 1e6 + X[:, 1] * value])
    models = {
        "classifier": lambda: (EDRVFLClassifier(**SMALL).fit(X, codes), X),
        "classifier_32": lambda: (EDRVFLClassifier(**SMALL).fit(X32, texts), X32),
        "classifier_frame": lambda: (
            EDRVFLClassifier(**SMALL, encoder="bins", class_weight={"no": 2.0}, **SPARSE).fit(
                T, texts.astype(object)
            ),
            T,
        ),
        "classifier_two": lambda: (
            EDRVFLClassifier(
                n_hidden=9, n_layers=2, norm_scale=(1.0, 4.0), pair_share=0.5, random_state=state
            ).fit(X, codes > 0),
            X,
        ),
        "classifier_joint": lambda: (
            EDRVFLClassifier(**SMALL, **JOINT, activation="sigmoid").fit(X, codes),
            X,
        ),
        "classifier_plain": lambda: (
            EDRVFLClassifier(**SMALL, encoder=None, calibration=None, renormalize=False, ensemble="vote").fit(
                X, codes
            ),
            X,
        ),
        "classifier_split": lambda: (
            EDRVFLClassifier(**SMALL, coverage_from="split", layer_votes="weighted").fit(X, codes),
            X,
        ),
        "regressor": lambda: (EDRVFLRegressor(**SMALL).fit(X, value), X),
        "regressor_several": lambda: (EDRVFLRegressor(**SMALL, layer_votes="prefix").fit(T, several), T),
        "regressor_32": lambda: (EDRVFLRegressor(**SMALL, coverage_from=None).fit(X32, value32), X32),
        "kernel": lambda: (KernelRidgeClassifier(random_state=0).fit(T, texts), T),
        "kernel_values": lambda: (
            KernelRidgeRegressor(n_landmarks=20, random_state=0).fit(X32, value32),
            X32,
        ),
        "kernel_matern": lambda: (
            KernelRidgeRegressor(kernel="matern", encoder="loo", random_state=0).fit(T, several),
            T,
        ),
        "kernel_product": lambda: (
            KernelRidgeClassifier(kernel="product", encoder="ranks", random_state=0).fit(T, texts),
            T,
        ),
        "kernel_additive": lambda: (
            KernelRidgeRegressor(kernel="additive", encoder="ranks", random_state=0).fit(X32, value32),
            X32,
        ),
        "portfolio": lambda: (
            _portfolio(EDRVFLPortfolioClassifier, EDRVFLClassifier, KernelRidgeClassifier).fit(T, texts),
            T,
        ),
        "portfolio_values": lambda: (
            _portfolio(EDRVFLPortfolioRegressor, EDRVFLRegressor, KernelRidgeRegressor).fit(X, value),
            X,
        ),
        "portfolio_remembers": lambda: (
            _portfolio(EDRVFLPortfolioClassifier, EDRVFLClassifier, KernelRidgeClassifier, remember="rows")
            .fit(T[:50], texts[:50])
            .update(T[50:], texts[50:], ids=texts[50:]),
            T,
        ),
        "regressor_remembers": lambda: (
            EDRVFLRegressor(**SMALL, correct_weight=0.5, remember="sums").fit(X[:50], value[:50]),
            X,
        ),
        "kinds": lambda: (
            EDRVFLClassifier(
                **SMALL, encoder=TabularEncoder("bins", text_features=["say"]), input_scaling=None
            ).fit(K, texts),
            K,
        ),
        "encoder": lambda: (TabularEncoder("bins", min_frequency=1, categorical_features=["b"]).fit(T), T),
    }
    return models if name is None else models[name]()


NAMES = tuple(_fitted(None))
_known = {}


def small_model(name):
    """Return a fitted model of a name, and rows; fitted once."""
    if name not in _known:
        _known[name] = _fitted(name)
    return _known[name]


def all_answers(model, X):
    """Return every answer that a model gives, by the method, for rows with the columns that it names."""
    found = {}
    if hasattr(X, "columns") and len(X.columns) == model.n_features_in_:
        X = X.set_axis(getattr(model, "feature_names_in_", X.columns), axis=1)
    for method in ("transform", "predict", "predict_proba", "decision_function", "staged_predict_proba"):
        if hasattr(model, method):
            answer = getattr(model, method)(X)
            found[method] = np.stack(list(answer)) if method.startswith("staged") else answer
    if getattr(model, "coverage_", None) is not None:
        for method in ("predict_set", "predict_interval"):
            if hasattr(model, method):
                found[method] = np.asarray(getattr(model, method)(X, 0.8))
    return found
