"""
On a GPU, or without one
========================

The array decides where a network is fitted. With scikit-learn's ``array_api_dispatch`` on, a torch tensor on
a GPU is computed there. Where there is no GPU, as where this page was built if the picture says so, the same
lines run on the processor; then NumPy is the quicker of the two, and torch gains nothing.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before scipy is imported

import time

import matplotlib.pyplot as plt
import sklearn
import torch
from sklearn.datasets import make_classification

import edrvfl

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cpu":
    print("There is no GPU here: torch computes on the processor.")

# %%
# The labels may stay in NumPy. float32 stays float32. The first fit on a device warms it up and is not timed.

sizes, seconds = (1000, 1000, 2000, 4000, 8000), {"NumPy": [], f"torch on {device}": []}
for m in sizes:
    X, y = make_classification(m, 30, n_informative=10, random_state=0)
    moved = torch.asarray(X, dtype=torch.float32, device=device)
    for name, rows in zip(seconds, (X.astype("float32"), moved), strict=True):
        with sklearn.config_context(array_api_dispatch=True):
            start = time.perf_counter()
            model = edrvfl.EDRVFLClassifier(n_hidden=256, n_layers=4, random_state=0).fit(rows, y)
            seconds[name].append(time.perf_counter() - start)

# %%
# The model lives where its rows were. ``to_numpy`` brings it home, and it answers the same.

home = edrvfl.to_numpy(model)
with sklearn.config_context(array_api_dispatch=True):
    there = model.predict_proba(moved[:1000]).cpu().numpy()
here = home.predict_proba(X[:1000].astype("float32"))
print(f"largest difference between {device} and home: {abs(here - there).max():.1e}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, times), color in zip(seconds.items(), ("#d55e00", "#0072b2"), strict=True):
    axes.plot(sizes[1:], times[1:], "o-", color=color, label=name)
axes.set(xlabel="rows of 30 columns", ylabel="seconds to fit", ylim=(0, None))
axes.set_title("With a GPU" if device == "cuda" else "There is no GPU here: both use the processor")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
