"""
A file and ONNX
===============

A fitted model leaves the process in two ways. ``save`` writes a small file without pickle, and ``load`` gives
back the same answers bit for bit. ``to_onnx`` writes a model for onnxruntime, which needs neither Python nor
edrvfl; the encoder is inside, so the columns of a table go in as they are.
"""

import json
import tempfile
from functools import partial
from pathlib import Path
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd

import edrvfl

rng, n = np.random.default_rng(0), 2500
customers = pd.DataFrame(
    {
        "age": rng.integers(18, 90, n).astype(float),
        "visits": rng.poisson(4, n).astype(float),
        "city": pd.Categorical(rng.choice(["Accra", "Busan", "Cusco", "Dakar", "Essen"], n)),
        "plan": rng.choice(["basic", "plus", "family"], n),
        "newsletter": rng.random(n) < 0.4,
    }
)
y = np.where((customers["visits"] < 3) & (customers["plan"] != "family"), "leaves", "stays")
customers.loc[rng.random(n) < 0.05, "plan"] = None  # gaps
X, X_new = customers[:1500], customers[1500:]
model = edrvfl.EDRVFLClassifier(n_hidden=256, n_layers=4, random_state=0).fit(X, y[:1500])

folder = Path(tempfile.mkdtemp())
model.save(folder / "customers.edrvfl")
loaded = edrvfl.load(folder / "customers.edrvfl")
print("the same bits:", np.array_equal(loaded.predict_proba(X_new), model.predict_proba(X_new)))

# %%
# Every column is an input of shape (rows, 1): strings for text, else numbers. The metadata say which string
# stands for a missing text. The file has a seed for the hidden weights; ONNX knows no seeds and holds them.

onnx_model = edrvfl.to_onnx(model)
(folder / "customers.onnx").write_bytes(onnx_model.SerializeToString())
missing = json.loads({entry.key: entry.value for entry in onnx_model.metadata_props}["missing_text"])
texts = {name: X_new[[name]].astype(object).fillna(gap).to_numpy() for name, gap in missing.items()}
columns = {name: X_new[[name]].to_numpy(np.float32) for name in X_new if name not in texts} | texts
session = onnxruntime.InferenceSession(folder / "customers.onnx")
(answers,) = session.run(["probabilities"], columns)
print(f"largest difference in onnxruntime: {np.abs(answers - model.predict_proba(X_new)).max():.0e}")
print(", ".join(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB" for path in folder.iterdir()))

# %%
# One row is where onnxruntime shines: ``predict_proba`` reads and checks a frame, however small, first.

sizes, seconds = (1, 10, 100, 1000), {"edrvfl, from the frame": [], "onnxruntime, from arrays": []}
for m in sizes:
    arrays = {name: column[:m] for name, column in columns.items()}
    calls = (partial(loaded.predict_proba, X_new[:m]), partial(session.run, ["probabilities"], arrays))
    for times, call in zip(seconds.values(), calls, strict=True):
        times.append(1e3 * min(repeat(call, number=1, repeat=20)))
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, times in seconds.items():
    axes.loglog(sizes, times, "o-", label=f"{name}: {times[0]:.2g} ms for one row")
axes.set(xlabel="rows in a call", ylabel="milliseconds", title="The same answers, in and out of Python")
axes.legend(frameon=False)
plt.show()
