"""
Wrong labels found
==================

A fit with ``remember="rows"`` knows what it would say of each training row without that row. Where this
denies the row's own label, the label should be checked first. Here 4 % of the labels of handwritten digits
are replaced by others, as a tired typist might do, and the model is not told which.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from edrvfl import DoubtfulRowsDisplay, EDRVFLClassifier, InfluenceDisplay

rng = np.random.default_rng(0)
digits = load_digits()
X, truth = digits.data[:600], digits.target[:600]
wrong = rng.choice(len(X), 24, replace=False)
y = truth.copy()
y[wrong] = (y[wrong] + rng.integers(1, 10, len(wrong))) % 10

model = EDRVFLClassifier(n_hidden=256, n_layers=2, input_scaling=None, remember="rows", random_state=0)
doubtful = model.fit(X, y).doubtful_rows()

# %%
# The list holds every training row that the model without it denies, the most doubtful first.

found = np.isin(doubtful.row, wrong)
print(f"{len(doubtful.row)} of {len(X)} labels are denied")
print(f"{found.sum()} of the {len(wrong)} wrong ones are there")

figure, axes = plt.subplots(3, 8, figsize=(9, 4.4), layout="constrained")
for place, axis in zip(range(24), axes.ravel(), strict=True):
    axis.set_axis_off()
    if place < len(doubtful.row):
        axis.imshow(X[doubtful.row[place]].reshape(8, 8), cmap="gray_r")
        colour = "#0072b2" if found[place] else "#d55e00"
        axis.set_title(f"{doubtful.given[place]}? {doubtful.said[place]}", color=colour)
figure.suptitle("Given label? What the model says. Blue: the label is wrong; orange: it is right")
plt.show()

# %%
# How sure the model is, with and against the label. Rows in which both are improbable are unlike the others.

display = DoubtfulRowsDisplay.from_estimator(model, n=15)
display.ax_.set_title("The most doubtful labels", pad=24)
plt.show()

# %%
# Wrong labels do harm where they are near. ``influence`` tells which training rows moved the answer to a new
# digit, as if each had been deleted: below zero are those that spoke against it.

new = digits.data[600:]
unsure = model.predict_proba(new).max(axis=1).argmin()
display = InfluenceDisplay.from_estimator(model, new[[unsure]], n=12)
display.ax_.set_title(f"Training rows behind the answer to a {digits.target[600:][unsure]}")
plt.show()
