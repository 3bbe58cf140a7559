"""
A stream that drifts
====================

These digits were written by thirteen people, and the table is not shuffled: hands change along it. A model of
the first 300 digits meets hands that it has never seen. ``update`` takes in what has come, without a new fit,
and ``drift_`` tells how many times the loss of the fit the newest rows have.
"""

import time

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_digits

from edrvfl import EDRVFLClassifier

X, y = load_digits(return_X_y=True)
first, step = 300, 75
model = EDRVFLClassifier(n_hidden=200, n_layers=3, remember="sums", random_state=0)
model.fit(X[:first], y[:first])
as_it_was = clone(model).set_params(remember=None).fit(X[:first], y[:first])

# %%
# Each batch is answered first, and learnt then: an honest test. The read-outs after an update are those of a
# fit to all rows so far, given what the fit froze: the encoding, the hidden weights, the calibration.

began, places, shares, drifts = time.process_time(), [], {"updated": [], "as it was": []}, []
for start in range(first, len(y), step):
    batch = slice(start, start + step)
    shares["updated"].append(model.score(X[batch], y[batch]))
    shares["as it was"].append(as_it_was.score(X[batch], y[batch]))
    model.update(X[batch], y[batch])
    places.append(start)
    drifts.append(model.drift_)
mean = {name: sum(found) / len(found) for name, found in shares.items()}
print(f"accuracy on rows to come: updated {mean['updated']:.3f}, as it was {mean['as it was']:.3f}")
print(f"{model.frozen_since_.came} rows came, in {time.process_time() - began:.1f} s with all predictions")

# %%
# The drift stays above 1 for long although read-outs are up to date: encoding, hidden weights and calibration
# are those of the first hands. A new fit to all rows learns these too.

again = clone(model).fit(X, y)
print(f"loss by leave-one-out: first fit {as_it_was.loo_log_losses_[-1]:.3f}, ", end="")
print(f"new fit {again.loo_log_losses_[-1]:.3f}; drift before the new fit {model.drift_:.1f}")

figure, (above, below) = plt.subplots(2, figsize=(6.5, 5), sharex=True, layout="constrained")
above.plot(places, shares["updated"], "o-", color="#0072b2", label="updated after each batch")
above.plot(places, shares["as it was"], "o-", color="0.7", label="as the first 300 rows left it")
above.set(ylabel="accuracy on the next batch", title="Digits in the order of the table, whose writers change")
above.legend(frameon=False, loc="lower right")
below.plot(places, drifts, "o-", color="#d55e00")
below.axhline(1, color="0.7", linewidth=1)
below.set(xlabel="rows so far", ylabel="drift_", ylim=(0, None))
for axes in (above, below):
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
