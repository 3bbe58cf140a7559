"""
A right to be forgotten
=======================

A patient asks that her measurements be forgotten. ``forget`` gives the read-outs that a fit without her would
have given, in milliseconds. Twice is an error, and the file that is saved then does not hold her numbers. The
table: 569 tumours, 30 measurements each.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X.index = [f"patient {i}" for i in range(len(X))]
X, X_new, y, y_new = train_test_split(X, y.to_numpy(), stratify=y, random_state=0)
model = EDRVFLClassifier(n_hidden=128, n_layers=4, remember="rows", random_state=0).fit(X, y)
before = model.predict_proba(X_new)[:, 1]

# %%
# The rows have names, those of the index. What ``forget`` returns is what the fit froze and may hold numbers
# of single rows: that needs a new fit to go away.

her = X.index[7]
own = [value for value in X.loc[her] if (value == X).to_numpy().sum() == 1]  # what stands nowhere else
numbers = [np.float64(value).tobytes() for value in own]


def found_in_file(model):
    """Count the measurements that stand in the file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.edrvfl")
        content = (Path(folder) / "model.edrvfl").read_bytes()
    return sum(number in content for number in numbers)


print(f"measurements in the file before: {found_in_file(model)} of {len(numbers)}")
began = time.process_time()
frozen = model.forget(ids=[her])
print(f"forgotten in {1000 * (time.process_time() - began):.0f} ms")
print(f"measurements in the file after: {found_in_file(model)}. Frozen:", *frozen, sep="\n  ")
try:
    model.forget(ids=[her])
except ValueError as error:
    print("Again:", error)

# %%
# Half of the patients follow her. A fit without them is another one: it also learns the scale of columns, the
# re-normalisation, what to prune and the calibration again.

many = X.index[np.arange(len(X)) % 2 == 0]
model.forget(ids=many)
stays = ~X.index.isin([her, *many])
anew = clone(model).fit(X[stays], y[stays])
after, fresh = (one.predict_proba(X_new)[:, 1] for one in (model, anew))
print(f"accuracy: forgotten {model.score(X_new, y_new):.3f}, fitted anew {anew.score(X_new, y_new):.3f}")

figure, axes = plt.subplots(figsize=(5.5, 5), layout="constrained")
axes.plot([0, 1], [0, 1], color="0.8", linewidth=1)
axes.plot(before, fresh, "o", color="0.7", markersize=4, label="with all patients")
axes.plot(after, fresh, "o", color="#0072b2", markersize=4, label="half of them forgotten")
axes.set(xlabel="probability by the model", ylabel="by a fit that never saw them", aspect="equal")
axes.set_title("Benign or not, with half of the patients forgotten")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
