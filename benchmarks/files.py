"""How large files and pickles of models are, and how long it takes to save and to load them.

    python benchmarks/files.py

Bounds: a network on iris 0.5 MB, one on 200 rows of 10,000 columns 5 MB, a portfolio on iris 5 MB. "weights"
is what the hidden weights take, which are drawn again. Times are the best of several repeats.
"""

import pickle
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier

import edrvfl
from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    LaplaceRidgeClassifier,
)


def best_of(repeats, action):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = action()
        times.append(time.perf_counter() - start)
    return found, 1000 * min(times)


def weights(model):
    voters = model.portfolio_.voters if hasattr(model, "portfolio_") else [getattr(model, "network_", None)]
    return sum(layer.W.nbytes for voter in voters for layer in getattr(voter, "layers", ()))


def show(name, model, X, bound, folder):
    repeats = 3 if X.shape[1] > 1000 else 10
    path = folder / "model.edrvfl"
    _, save = best_of(repeats, lambda: model.save(path))
    loaded, load = best_of(repeats, lambda: edrvfl.load(path))
    content, dump = best_of(repeats, lambda: pickle.dumps(model))
    unpickled, undump = best_of(repeats, lambda: pickle.loads(content))
    method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    answers = [getattr(m, method)(X) for m in (model, loaded, unpickled)]
    same = all(np.array_equal(answers[0], other) for other in answers[1:])
    sizes = [path.stat().st_size / 1e6, len(content) / 1e6]
    print(
        f"{name:28s}{weights(model) / 1e6:9.1f}{sizes[0]:9.3f}{sizes[1]:9.3f}"
        f"{bound:8.1f}{max(sizes) / bound:8.2f}"
        f"{save:9.1f}{load:9.1f}{dump:9.1f}{undump:9.1f}   {'same bits' if same else 'DIFFERENT'}"
    )


def main():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((200, 10_000))
    of_wide = (wide[:, :5].sum(axis=1) > 0).astype(int)
    print(
        f"{'model':28s}{'weights':>9s}{'file':>9s}{'pickle':>9s}{'bound':>8s}{'ratio':>8s}"
        f"{'save':>9s}{'load':>9s}{'dumps':>9s}{'loads':>9s}   (MB, ms)"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        show("network, iris", EDRVFLClassifier(random_state=0).fit(X, y), X, 0.5, folder)
        show("network, 200 x 10,000", EDRVFLClassifier(random_state=0).fit(wide, of_wide), wide, 5.0, folder)
        show("portfolio, iris", EDRVFLPortfolioClassifier(random_state=0).fit(X, y), X, 5.0, folder)
        of_values = EDRVFLPortfolioRegressor(random_state=0).fit(X[:, :3], X[:, 3])
        show("portfolio of values, iris", of_values, X[:, :3], 5.0, folder)
        show("kernel voter, iris", LaplaceRidgeClassifier(random_state=0).fit(X, y), X, 5.0, folder)
    trees = pickle.dumps(HistGradientBoostingClassifier(random_state=0).fit(X, y))
    print(f"HistGradientBoostingClassifier on iris, pickled: {len(trees) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
