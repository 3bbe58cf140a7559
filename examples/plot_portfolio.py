"""
A portfolio, and what is inside
===============================

A portfolio is the model to begin with: it takes a frame as it is, and nothing has to be tuned. Here it is
fitted to made-up customers, of whom some leave, and asked about new ones.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import log_loss

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, MembersDisplay

rng, n, known = np.random.default_rng(0), 6_000, 1_500
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
y = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "leaves", "stays")
customers.loc[rng.random(n) < 0.1, "distance"] = None  # gaps
customers.loc[rng.random(n) < 0.05, "plan"] = None

portfolio = EDRVFLPortfolioClassifier(random_state=0).fit(customers[:known], y[:known])
print(f"by leave-one-out: accuracy {portfolio.loo_accuracy_:.3f}, log-loss {portfolio.loo_log_loss_:.3f}")

# %%
# Inside are the two of four kernel voters that proved best, and four networks.
# Leave-one-out chooses how much each member counts. One without a vote would be pale.

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
MembersDisplay.from_estimator(portfolio, ax=axes).figure_.suptitle("The members of a portfolio")
plt.show()

# %%
# Do its probabilities come true? Beside it is a single network. Both are calibrated: of the customers to
# whom they give 0.6, about six in ten leave. The portfolio's are sharper, so its log-loss is smaller.

single = EDRVFLClassifier(random_state=0).fit(customers[:known], y[:known])
new, leaves = customers[known:], y[known:] == "leaves"
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, model, look in (("portfolio", portfolio, "s-"), ("one network", single, "o-")):
    P = model.predict_proba(new)[:, 0]
    label = f"{name}, log-loss {log_loss(leaves, P):.3f}"
    CalibrationDisplay.from_predictions(leaves, P, n_bins=15, strategy="quantile", name=label, ax=axes)
    axes.lines[-1].set(marker=look[0], markersize=5)
axes.set(xlabel="predicted probability to leave", ylabel="share that leaves")
axes.set_title("What is said of new customers, and what comes true")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
# sphinx_gallery_thumbnail_number = 2
