"""
A warning out of range
======================

A model answers every row, also one that is like none that it has seen. ``support`` tells how far out a row
is, as a rank among the training rows: 0 in their midst, 1 beyond all of them. Here a model of the progress of
diabetes is fitted to people with a body mass index below 30, and asked about others too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
lean = X["bmi"] < 30
X_train, X_like, y_train, y_like = train_test_split(X[lean], y[lean], test_size=0.4, random_state=0)
X_other, y_other = X[~lean], y[~lean]
model = EDRVFLRegressor(n_hidden=128, n_layers=2, remember="rows", random_state=0).fit(X_train, y_train)

# %%
# New people of the same kind have ranks that spread evenly from 0 to 1, about 5 in 100 of them above 0.95.
# Of people with a larger index more than half are beyond that line, and all that are far above 30, though
# they were chosen by one column alone.

like, other = model.support(X_like), model.support(X_other)
for name, ranks in {"below 30": like, "30 and more": other}.items():
    print(f"body mass index {name}: mean rank {ranks.mean():.2f}, above 0.95: {(ranks > 0.95).mean():.0%}")

figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
axis.scatter(X_like["bmi"], like, s=18, color="#0072b2", label="of the same kind")
axis.scatter(X_other["bmi"], other, s=18, color="#d55e00", label="beyond")
axis.axhline(0.95, color="0.5", linewidth=1)
axis.axvline(30, color="0.5", linewidth=1, linestyle=":")
axis.set_xlabel("body mass index")
axis.set_ylabel("support: rank among training rows")
axis.legend(frameon=False, loc="lower right")
axis.set_title("Who is beyond what the model has seen")
plt.show()

# %%
# What to do beyond the line is for whoever uses the model to say: to ask a person, to measure again, or to
# fit with such rows. The errors there may be larger, as here.

for name, known, rows in (("below 30", y_like, X_like), ("30 and more", y_other, X_other)):
    error = np.sqrt(np.mean((model.predict(rows) - known) ** 2))
    print(f"body mass index {name}: root mean squared error {error:.0f}")
