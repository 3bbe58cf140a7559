"""
The paper's networks, layer by layer
====================================

One fit of ten layers is ten networks, of one layer to ten: ``staged_predict`` asks each. Here are five of
the paper's methods by their names. Without re-normalisation (edRVFL_O) features grow with every layer, and
accuracy can fall as layers are added.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from edrvfl import variant

NETWORKS = {"edRVFL_O": "o:", "edRVFL_N": "s--", "WedRVFL": "^-.", "PedRVFL": "D-", "WPedRVFL": "v-"}
SPLITS = 4
X, y = load_breast_cancer(return_X_y=True)

accuracies = {name: np.zeros(10) for name in NETWORKS}
for seed in range(SPLITS):
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=seed)
    for name in NETWORKS:
        model = variant(name, random_state=seed).fit(X_train, y_train)
        scores = [np.mean(labels == y_test) for labels in model.staged_predict(X_test)]
        accuracies[name] += 100 * np.array(scores) / SPLITS

for name, scores in accuracies.items():
    print(f"{name:9} one layer {scores[0]:.1f} %, ten layers {scores[-1]:.1f} %")

# %%
# Test accuracy by depth, mean of four splits.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, look in NETWORKS.items():
    axes.plot(range(1, 11), accuracies[name], look, label=name, markersize=5)
axes.set(xlabel="layers that vote", ylabel="test accuracy (%)", xticks=range(1, 11))
axes.set_title("Five networks of the paper, depth by depth")
axes.legend(frameon=False, ncols=2)
axes.grid(alpha=0.25)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
