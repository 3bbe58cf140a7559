"""What calibration and its leave-one-out scores cost beside a fit.

    OPENBLAS_NUM_THREADS=1 python benchmarks/calibration_cost.py [rows ...]

The default network on make_classification(rows, 20) with two and with four classes, one thread. Times are
medians of several fits, taken in turns; what counts is the ratio to the fit without calibration.
"""

import itertools
import sys
import time

import numpy as np
from sklearn.datasets import make_classification

from edrvfl import EDRVFLClassifier

CALIBRATIONS = (None, "temperature", "loo")


def seconds(model, X, y):
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def main():
    sizes = [int(rows) for rows in sys.argv[1:]] or [1_000, 10_000, 100_000]
    for m, k in itertools.product(sizes, (2, 4)):
        X, y = make_classification(m, 20, n_informative=10, n_classes=k, random_state=0)
        times = {calibration: [] for calibration in CALIBRATIONS}
        for _ in range(3 if m > 20_000 else 7):
            for calibration in CALIBRATIONS:
                model = EDRVFLClassifier(calibration=calibration, random_state=0)
                times[calibration].append(seconds(model, X, y))
        median = {calibration: np.median(of) for calibration, of in times.items()}
        adds = {calibration: value / median[None] - 1 for calibration, value in median.items()}
        print(
            f"{m:>8d} rows, {k} classes: fit without calibration {median[None]:.3f} s; temperature adds "
            f"{adds['temperature']:.1%}, the default {adds['loo']:.1%}"
        )


if __name__ == "__main__":
    main()
