"""
A frame with categories and missing values
==========================================

Give a model the frame as it is. Text and categories become columns, gaps are filled and marked, rare and
unseen categories are fine, and the answer is a calibrated probability.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier, TabularEncoder

rng, n = np.random.default_rng(0), 2000
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
customers.loc[rng.random(n) < 0.1, "distance"] = None  # gaps
customers.loc[rng.random(n) < 0.05, "plan"] = None
X, X_new, y, y_new = train_test_split(customers, label, random_state=0)
print(pd.DataFrame({"type": X.dtypes, "gaps": X.isna().sum(), "first": X.iloc[0]}))

# %%
# One line fits it. ``encoder`` says how a network sees numbers: "standard", "robust" or "bins".

models = {
    encoder: EDRVFLClassifier(encoder=encoder, n_layers=4, random_state=0).fit(X, y)
    for encoder in ("standard", "robust", "bins")
}
for encoder, model in models.items():
    print(f"{encoder}: accuracy on new customers {model.score(X_new, y_new):.3f}")

# %%
# A customer of a city that no row had, and with gaps where there were none, gets an answer too.

stranger = X_new.head(1).assign(city="Atlantis", age=None, plan=None)
print(models["bins"].classes_, models["bins"].predict_proba(stranger).round(3))

# %%
# What the network sees of the frame: the encoder is a transformer of its own.

seen = TabularEncoder("bins").set_output(transform="pandas").fit_transform(X)
print(f"{X.shape[1]} columns become {seen.shape[1]}, such as {', '.join(seen.columns[-4:])}")

# %%
# Leave-one-out tells which encoder suits these rows, without a test set.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for encoder, model in models.items():
    axes.plot(range(1, 5), model.loo_log_losses_, "o-", label=encoder)
axes.set(xlabel="layers", ylabel="log-loss by leave-one-out", xticks=range(1, 5))
axes.set_title("Three encoders of the same frame")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
