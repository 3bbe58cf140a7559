"""What tests of searches share: the scores of a search, and those of its rows fitted alone."""

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV


def by_split(search):
    """Return scores (row, split)."""
    return np.stack([search.cv_results_[f"split{i}_test_score"] for i in range(search.n_splits_)], axis=1)


def theirs(search, X, y, **metadata):
    """Return scores (row, split) of GridSearchCV over the rows of a search, every network fitted alone."""
    grid = [{name: [value] for name, value in row.items()} for row in search.cv_results_["params"]]
    found = GridSearchCV(search.estimator, grid, cv=search.cv, scoring=search.scoring, refit=False)
    return by_split(found.fit(X, y, **metadata))


def mixed_rows(m=90, k=3):
    """Return numbers with gaps, whole numbers and text with gaps, and labels that depend on all of them."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {
            "real": rng.standard_normal(m),
            "whole": rng.integers(0, 4, m),
            "text": rng.choice(["red", "blue", "green"], m).astype(object),
        }
    )
    score = X["real"] + (X["text"] == "red") + (X["whole"] == 2) + 0.5 * rng.standard_normal(m)
    X.loc[rng.random(m) < 0.1, "real"] = None
    X.loc[rng.random(m) < 0.1, "text"] = None
    return X, np.digitize(score, [0.3, 1.2][: k - 1])
