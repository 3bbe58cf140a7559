"""The kernel voter on validation rows: exact, in parts, with landmarks; accuracy, log-loss, seconds.

    OPENBLAS_NUM_THREADS=1 EDRVFL_DATA=folder python benchmarks/kernel.py [--small] [dataset ...]

Fits are on the rows of the first split that are neither validation nor test rows. Seconds are those of the
processor. Sizes of parts below that of the default show what dealing rows into parts costs.
"""

import sys
import time

import numpy as np
from common import SMALL
from sklearn.metrics import log_loss

import edrvfl._fitting.iterated
import edrvfl._fitting.kernel
from edrvfl import KernelRidgeClassifier
from edrvfl.bench.data import load_dataset

NAMES = [
    *("glass", "arrhythmia", "cardiotocography-10clases", "statlog-image", "molec-biol-splice", "abalone"),
    *("wine-quality-white", "wall-following", "statlog-landsat", "pendigits", "letter"),
]
MARKS = 20 if SMALL else 1500
WAYS = {
    "auto": {},
    "2 parts": {"parts": 2},
    "4 parts": {"parts": 4},
    f"{MARKS} landmarks": {"n_landmarks": MARKS},
}


def measure(name: str, way: str) -> str:
    data = load_dataset(name)
    fit, validation = data.splits[0].fit, data.splits[0].validation
    params = dict(WAYS[way])
    rows = -(-int(fit.sum()) // params.pop("parts", 1))
    edrvfl._fitting.kernel.PART_ROWS = {False: min(rows, 5_000), True: 20_000}
    # what iteration brings is the matter of benchmarks/iterated.py
    edrvfl._fitting.iterated.LEAST_ITERATED = 10**9
    start = time.process_time()
    model = KernelRidgeClassifier(random_state=0, **params).fit(data.X[fit], data.y[fit])
    seconds = time.process_time() - start
    P = model.predict_proba(data.X[validation])
    y = data.y[validation]
    accuracy = 100 * np.mean(model.classes_[P.argmax(axis=1)] == y)
    loss = log_loss(y, P, labels=model.classes_)
    chosen = f"h {model.bandwidth_:5.3f} lambda 2^{np.log2(model.regularization_):+.0f}"
    return f"{name:26s} {fit.sum():6d} {way:15s} {chosen} {accuracy:6.2f} {loss:7.4f} {seconds:6.2f} s"


if __name__ == "__main__":
    for name in sys.argv[1:] or (["iris"] if SMALL else NAMES):
        for way in WAYS:
            print(measure(name, way), flush=True)
