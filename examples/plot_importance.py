"""
What a model looks at
=====================

``feature_importance`` gives a row the value of another row in one column, and measures how much the answer
changes. It needs no labels, and numbers, categories, text and gaps are treated alike. scikit-learn's
``permutation_importance`` measures what a column is worth for a score instead; both draw alike.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier, ImportanceDisplay, feature_importance

rng, n = np.random.default_rng(0), 2400
customers = pd.DataFrame(
    {
        "age": rng.integers(18, 90, n),
        "income": rng.lognormal(10, 0.8, n),
        "visits": rng.poisson(4, n),
        "distance": rng.exponential(12, n),
        "city": pd.Categorical(rng.choice(["Accra", "Busan", "Cusco", "Dakar", "Essen"], n)),
        "plan": rng.choice(["basic", "plus", "family"], n),
        "newsletter": rng.random(n) < 0.4,
        "shoe_size": rng.normal(41, 2, n),
    }
)
seldom = (customers["visits"] < 2) & (customers["plan"] != "family")
far = (customers["distance"] > 20) & ~customers["newsletter"]
logit = 4 * seldom + 3 * far + 2 * customers["age"].between(25, 40) - np.log(customers["income"] / 9000)
label = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "leaves", "stays")
customers.loc[rng.random(n) < 0.1, "distance"] = None  # gaps
X, X_new, y, y_new = train_test_split(customers, label, test_size=400, random_state=0)

options = {"encoder": "bins", "regularization": "loo", "n_hidden": 128, "n_layers": 2}
model = EDRVFLClassifier(**options, random_state=0).fit(X, y)

# %%
# An importance of 0.4 says: when all other columns are known, 40 % of the variance of the answers is still
# open, and this column decides it. In truth nothing depends on the city and on the size of shoes. The model
# uses them a little all the same: an importance says what a model does, not whether it is right.

found = feature_importance(model, X_new, random_state=0)
for j in found.importances_mean.argsort()[::-1]:
    print(f"{found.feature_names[j]:10} {found.importances_mean[j]:.3f}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
ImportanceDisplay(importances=found.importances, feature_names=found.feature_names).plot(axes)
axes.set_title("How much the answers depend on a column")
plt.show()

# %%
# How much worse the log-loss on new customers gets when a column is shuffled: the city and shoes are worth
# nothing. Labels are noisy, so the thin lines, from the smallest to the largest of the repeats, are longer.

worth = permutation_importance(model, X_new, y_new, scoring="neg_log_loss", n_repeats=5, random_state=0)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
ImportanceDisplay(
    importances=worth.importances, feature_names=found.feature_names, measure="loss of log-loss"
).plot(axes)
axes.set_title("What a column is worth on new customers")
plt.show()
