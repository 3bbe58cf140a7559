"""
Tuning
======

A search tries many networks at every depth and shares their work, so many configurations cost far less than
as many fits. It is used as any search of scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier, EDRVFLSearchCV

X, y = make_classification(1000, 20, n_informative=8, n_classes=3, random_state=0)
X, X_new, y, y_new = train_test_split(X, y, stratify=y, random_state=0)

space = {
    "n_hidden": [64, 128],
    "activation": ["relu", "sigmoid"],
    "regularization": stats.loguniform(1e-2, 1e3),
}
network = EDRVFLClassifier(n_layers=6, random_state=0)
search = EDRVFLSearchCV(network, space, n_iter=20, cv=3, random_state=0).fit(X, y)
print("chosen:", search.best_params_)
print(f"accuracy in the search {search.best_score_:.3f}, on new rows {search.score(X_new, y_new):.3f}")

# %%
# Without a search, leave-one-out chooses the penalty of each layer.

untuned = EDRVFLClassifier(n_hidden=128, n_layers=6, regularization="loo", random_state=0).fit(X, y)
print(f"penalties by leave-one-out: accuracy on new rows {untuned.score(X_new, y_new):.3f}")

# %%
# Every configuration was scored at every depth.

table = search.cv_results_
depth, score = np.asarray(table["param_n_layers"], dtype=int), np.asarray(table["mean_test_score"])
penalty = np.asarray(table["param_regularization"], dtype=float)

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
points = axes.scatter(penalty, score, c=depth, s=14, cmap="viridis")
axes.plot(penalty[search.best_index_], search.best_score_, "o", mfc="none", mec="#d55e00", ms=14, mew=2)
axes.annotate("chosen", (penalty[search.best_index_], search.best_score_), (8, 8), textcoords="offset points")
axes.set(xscale="log", xlabel="regularization", ylabel="accuracy in the search")
axes.set_title("20 configurations at every depth")
axes.margins(y=0.1)
axes.spines[["top", "right"]].set_visible(False)
figure.colorbar(points, label="layers")
plt.show()
