"""
A frame with categories and missing values
==========================================

Give a model the frame as it is. Text and categories become columns, gaps are filled and marked, rare and
unseen categories are fine, and the answer is a calibrated probability.
"""

import matplotlib.pyplot as plt
import pandas as pd
from customers import make_customers

from edrvfl import EDRVFLClassifier, TabularEncoder

X, y, _ = make_customers(1500, seed=0)
X_new, y_new, _ = make_customers(1500, seed=1)
print(pd.DataFrame({"type": X.dtypes, "gaps": X.isna().sum(), "first": X.iloc[0]}))

# %%
# One line fits it. ``encoder`` says how the model sees numbers: "standard", "robust" or "bins".

models = {
    encoder: EDRVFLClassifier(encoder=encoder, n_layers=4, random_state=0).fit(X, y)
    for encoder in ("standard", "robust", "bins")
}
for encoder, model in models.items():
    print(f"{encoder}: accuracy on new customers {model.score(X_new, y_new):.3f}")

# %%
# A customer with a city that no row had, and with gaps where there were none.

stranger = X_new.head(1).assign(city="Atlantis", age=None, plan=None)
print(models["bins"].classes_, models["bins"].predict_proba(stranger).round(3))

# %%
# What the model sees of the frame: the encoder is a transformer of its own.

seen = TabularEncoder("bins").set_output(transform="pandas").fit_transform(X)
print(f"{X.shape[1]} columns become {seen.shape[1]}, such as {', '.join(seen.columns[-4:])}")

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for encoder, model in models.items():
    axes.plot(range(1, 5), model.loo_log_losses_, "o-", label=encoder)
axes.set(xlabel="layers", ylabel="log-loss by leave-one-out", xticks=range(1, 5))
axes.set_title("Which encoder suits these rows, without a test set", fontsize=11)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
