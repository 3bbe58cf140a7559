"""
Imbalanced classes
==================

One row in twenty is of the class that matters. There are two honest ways. Keep the probabilities as they are
and choose the threshold by what errors cost; or let ``class_weight="balanced"`` move the classes, and give up
probabilities that come true.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, confusion_matrix, log_loss
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier

X, y = make_classification(6000, 12, n_informative=6, weights=[0.95], class_sep=0.8, random_state=0)
X, X_new, y, y_new = train_test_split(X, y, stratify=y, random_state=0)
options = {"n_hidden": 256, "n_layers": 4, "random_state": 0}
plain = EDRVFLClassifier(**options).fit(X, y)
balanced = EDRVFLClassifier(class_weight="balanced", **options).fit(X, y)

# %%
# A case that is missed costs ten times as much as a false alarm. With probabilities that can be believed the
# threshold follows from the costs: say "case" where p exceeds 1 / (1 + 10).

MISSED, ALARM = 10, 1
P = {"plain": plain.predict_proba(X_new)[:, 1], "balanced": balanced.predict_proba(X_new)[:, 1]}
rules = {
    "plain, threshold 1/2": P["plain"] > 0.5,
    "plain, threshold 1/11": P["plain"] > ALARM / (ALARM + MISSED),
    "balanced, threshold 1/2": P["balanced"] > 0.5,
}
for name, said in rules.items():
    (_, false), (missed, found) = confusion_matrix(y_new, said)
    cost = MISSED * missed + ALARM * false
    print(f"{name:24} found {found:3} of {np.sum(y_new)}, false alarms {false:3}, cost {cost:4}")

# %%
# Both order the rows about equally well. The plain model costs least near the threshold that the costs ask
# for. The other one's best threshold has to be searched: its probabilities are no frequencies any more.

thresholds = np.geomspace(0.005, 0.95, 200)
figure, axes = plt.subplots(figsize=(6, 4.4), layout="constrained")
for name, p in P.items():
    missed = [np.sum((p <= threshold) & (y_new == 1)) for threshold in thresholds]
    alarms = [np.sum((p > threshold) & (y_new == 0)) for threshold in thresholds]
    precision = average_precision_score(y_new, p)
    label = f"{name}: log-loss {log_loss(y_new, p):.2f}, average precision {precision:.2f}"
    axes.plot(thresholds, MISSED * np.array(missed) + ALARM * np.array(alarms), label=label)
for threshold, name in ((1 / 11, "1/11"), (1 / 2, "1/2")):
    axes.axvline(threshold, color="0.6", linewidth=1, linestyle=":")
    axes.annotate(
        name, (threshold, 0.02), (3, 0), xycoords=("data", "axes fraction"), textcoords="offset points"
    )
axes.set(xscale="log", xlabel="threshold", ylabel="cost on new rows", ylim=(0, 1300))
axes.set_title("What errors cost, threshold by threshold")
figure.legend(frameon=False, loc="outside lower center", fontsize="small")  # the curves are everywhere else
axes.spines[["top", "right"]].set_visible(False)
plt.show()
