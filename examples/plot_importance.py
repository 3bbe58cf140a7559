"""
What a model looks at
=====================

``feature_importance`` gives a row the value of another row in one column, and measures how much the answer
changes. It needs no labels, and numbers, categories, text and gaps are treated alike. scikit-learn's
``permutation_importance`` measures what a column is worth for a score instead; both draw alike.
"""

import matplotlib.pyplot as plt
from customers import make_customers
from sklearn.inspection import permutation_importance

from edrvfl import EDRVFLClassifier, ImportanceDisplay, feature_importance

X, y, _ = make_customers(2000, seed=0)
X_new, y_new, _ = make_customers(400, seed=1)
options = {"encoder": "bins", "regularization": "loo", "n_hidden": 128, "n_layers": 2}
model = EDRVFLClassifier(**options, random_state=0).fit(X, y)

# %%
# An importance of 0.4 says: when all other columns are known, 40 % of the variance of the answers is still
# open, and this column decides it. In truth nothing depends on the size of a customer's shoes. The model
# uses it a little all the same: an importance says what a model does, not whether it is right.

found = feature_importance(model, X_new, random_state=0)
for j in found.importances_mean.argsort()[::-1]:
    print(f"{found.feature_names[j]:10} {found.importances_mean[j]:.3f}")

# %%
# Beside it, how much worse the log-loss on new customers gets when a column is shuffled: shoes are worth
# nothing. Labels are noisy, so the thin lines, from the smallest to the largest of the repeats, are longer.

worth = permutation_importance(model, X_new, y_new, scoring="neg_log_loss", n_repeats=5, random_state=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
ImportanceDisplay(importances=found.importances, feature_names=found.feature_names).plot(left)
ImportanceDisplay(
    importances=worth.importances, feature_names=found.feature_names, measure="loss of log-loss"
).plot(right)
plt.show()
