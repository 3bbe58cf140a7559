"""The portfolio beside what one would use today, on data that needs no download.

A made-up frame of customers with text, categories and gaps, and the datasets that scikit-learn ships. Two
stratified splits (75 % train, 25 % test) of each, every model at its default parameters. Prints accuracy,
log-loss, fit time and predict time, then what is inside the portfolio of the first, and draws it.

    python examples/demo.py ["breast cancer" ...]    # some of the datasets, or all of them
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    KernelRidgeClassifier,
    MembersDisplay,
    TabularEncoder,
)


def make_customers(n=2_000):
    """Return made-up customers with numbers, categories, text, booleans and gaps, and who of them leaves."""
    rng = np.random.default_rng(0)
    customers = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 0.8, n),
            "visits": rng.poisson(4, n),
            "distance": rng.exponential(12, n),
            "city": pd.Categorical(rng.choice(["Accra", "Busan", "Cusco", "Dakar", "Essen"], n)),
            "plan": rng.choice(["basic", "plus", "family"], n),
            "newsletter": rng.random(n) < 0.4,
        }
    )
    seldom = (customers["visits"] < 2) & (customers["plan"] != "family")
    far = (customers["distance"] > 20) & ~customers["newsletter"]
    logit = 4 * seldom + 3 * far + 2 * customers["age"].between(25, 40) - np.log(customers["income"] / 9000)
    label = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "leaves", "stays")
    customers.loc[rng.random(n) < 0.1, "distance"] = None
    customers.loc[rng.random(n) < 0.05, "plan"] = None
    return customers, label


DATASETS = {
    "customers, made up": make_customers,
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
}
# What reads no frames gets the columns as TabularEncoder makes them.
MODELS = {
    "portfolio": EDRVFLPortfolioClassifier(),
    "one network": EDRVFLClassifier(),
    "kernel voter": KernelRidgeClassifier(),
    "logistic regression": make_pipeline(TabularEncoder(), LogisticRegression(max_iter=1000)),
    "random forest": make_pipeline(TabularEncoder(), RandomForestClassifier()),
    "gradient boosting": make_pipeline(TabularEncoder(), HistGradientBoostingClassifier()),
}
SPLITS = 2
PICTURE = Path("demo") / "members.png"


def seeded(model, seed):
    """Return a copy of a model or pipeline that is not fitted, with a seed."""
    model = clone(model)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def measure(X, y):
    """Return accuracy, log-loss, fit and predict seconds of each model on each split; the last portfolio."""
    figures = {name: [] for name in MODELS}
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.25, stratify=y, random_state=seed
        )
        for name in MODELS:
            model = seeded(MODELS[name], seed)
            start = time.perf_counter()
            model.fit(X_train, y_train)
            fitted = time.perf_counter()
            labels = model.predict(X_test)
            predicted = time.perf_counter()
            loss = log_loss(y_test, model.predict_proba(X_test))
            figures[name].append((np.mean(labels == y_test), loss, fitted - start, predicted - fitted))
            if name == "portfolio":
                portfolio = model
    return figures, portfolio


def print_table(title, shape, figures):
    print(f"\n{title} ({shape[0]} rows, {shape[1]} columns)")
    print(f"  {'':20s} {'accuracy %':>11s} {'log-loss':>9s}  {'fit':>10s} {'predict':>10s}")
    means = {name: np.mean(rows, axis=0) for name, rows in figures.items()}
    most, least = max(row[0] for row in means.values()), min(row[1] for row in means.values())
    for name, (accuracy, loss, fit, predict) in means.items():
        best = "*" if np.isclose(accuracy, most) else " ", "*" if np.isclose(loss, least) else " "
        times = f"{1e3 * fit:7.0f} ms {1e3 * predict:7.1f} ms"
        print(f"  {name:20s} {100 * accuracy:10.2f}{best[0]} {loss:9.3f}{best[1]} {times}")


def look_inside(portfolio):
    """Print the members of a portfolio, and draw them."""
    table = pd.DataFrame(portfolio.members_).drop(columns="settings")
    print(table.round(3).to_string(index=False, na_rep=""))
    print(f"together: {portfolio.loo_accuracy_:.3f}, {portfolio.loo_log_loss_:.3f} by leave-one-out")
    PICTURE.parent.mkdir(exist_ok=True)
    MembersDisplay.from_estimator(portfolio).figure_.savefig(PICTURE, dpi=130)
    print(f"drawn in {PICTURE}")


def main(names):
    print(f"Means of {SPLITS} splits, * the best; default parameters, one thread.")
    portfolios = {}
    for title in names or DATASETS:
        X, y = DATASETS[title]()
        figures, portfolios[title] = measure(X, y)
        print_table(title, X.shape, figures)
    first = next(iter(portfolios))
    print(f"\nInside the portfolio of {first}:\n")
    look_inside(portfolios[first])


if __name__ == "__main__":
    with threadpool_limits(1):
        main(sys.argv[1:])
