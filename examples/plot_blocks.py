"""
Rows in blocks
==============

Rows that do not fit into memory are read block by block, once for each layer and a few times before the
first. The network is that of a fit in memory, to rounding. Here the rows lie in a memory map; Parquet files
and functions of your own work alike.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from edrvfl import EDRVFLClassifier, RowBlocks

rng, folder = np.random.default_rng(0), Path(tempfile.mkdtemp())
X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=float, shape=(12_000, 10))
for start in range(0, len(X), 3000):  # written piece by piece, as large data would be
    X[start : start + 3000] = rng.standard_normal((3000, 10))
y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(len(X)) > 0).astype(int)

blocks = RowBlocks.from_arrays(X, y, rows=3000)
network = EDRVFLClassifier(n_hidden=128, n_layers=4, random_state=0)
parted = EDRVFLClassifier(n_hidden=128, n_layers=4, random_state=0).fit(blocks)
whole = network.fit(np.asarray(X), y)
print("in blocks", parted.score(X, y), "in memory", whole.score(X, y))

# %%
# The answers at every depth are the same but for the rounding of sums that were added in another order.

pairs = zip(parted.staged_predict_proba(X), whole.staged_predict_proba(X), strict=True)
differences = [np.abs(a - b).max() for a, b in pairs]
print(f"largest difference of a probability: {max(differences):.0e}")

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.semilogy(range(1, 5), differences, "o-")
axes.set(xlabel="layers", ylabel="largest difference of a probability", xticks=range(1, 5), ylim=(1e-16, 1))
axes.set_title("In blocks beside in memory")
axes.grid(alpha=0.25)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
