"""
Regression, with intervals
==========================

Predict numbers from a frame of mixed columns, and say how far off each prediction may be. The customers are
made up. What those spend who come often is harder to foresee.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

from edrvfl import EDRVFLPortfolioRegressor, EDRVFLRegressor

rng, n, known = np.random.default_rng(0), 6_000, 1_500
customers = pd.DataFrame(
    {
        "age": rng.integers(18, 90, n),
        "visits": rng.poisson(4, n),
        "distance": rng.exponential(12, n),
        "city": pd.Categorical(rng.choice(["Accra", "Busan", "Cusco", "Dakar", "Essen"], n)),
        "plan": rng.choice(["basic", "plus", "family"], n),
    }
)
expected = 300 + 110 * np.sqrt(customers["visits"]) * np.where(customers["plan"] == "family", 1.8, 1.0)
expected += 120 * (customers["city"] == "Cusco") - 7 * customers["distance"].clip(upper=25)
spent = (expected + (25 + 22 * customers["visits"]) * rng.standard_normal(n)).to_numpy()
customers.loc[rng.random(n) < 0.1, "distance"] = None  # gaps
X, y, X_new, y_new = customers[:known], spent[:known], customers[known:], spent[known:]

portfolio = EDRVFLPortfolioRegressor(random_state=0).fit(X, y)
values = portfolio.predict(X_new)
print(f"R² by leave-one-out {portfolio.loo_r2_score_:.3f}, on new customers {r2_score(y_new, values):.3f}")

# %%
# ``predict_interval`` gives the two ends of an interval. Nine in ten of the new values should lie inside.
# The intervals are wider for those who come often, because a small network has learnt where errors are large.

lower, upper = portfolio.predict_interval(X_new, coverage=0.9)
inside = (lower <= y_new) & (y_new <= upper)
print(f"{100 * inside.mean():.1f} % of {len(y_new):,} new customers are inside")

some = np.arange(70)
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.vlines(values[some], lower[some], upper[some], color="0.75", linewidth=2.5)
for is_inside, colour, name in ((True, "#0072b2", "inside"), (False, "#d55e00", "outside")):
    rows = some[inside[some] == is_inside]
    axes.plot(values[rows], y_new[rows], "o", color=colour, markersize=5, label=name)
axes.set(xlabel="predicted, per year", ylabel="spent", title="90 % intervals of 70 new customers")
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# One network knows how good each of its depths is, before any new row is seen.

network = EDRVFLRegressor(random_state=0).fit(X, y)
on_new = [r2_score(y_new, answers) for answers in network.staged_predict(X_new)]
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(range(1, 5), network.loo_r2_scores_, "o-", color="0.6", label="by leave-one-out")
axes.plot(range(1, 5), on_new, "o-", color="#0072b2", label="on new customers")
axes.set(xlabel="layers", ylabel="R²", title="One network, every depth", xticks=range(1, 5), ylim=(0.4, 0.6))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
