"""Features in files are those that would be computed again."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from edrvfl import EDRVFLClassifier, RowBlocks


@pytest.mark.parametrize("device", [None, "cpu"])  # a device is torch's, also if it is the host
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spilled_features_change_nothing(device, dtype, rng, tmp_path):
    X = rng.standard_normal((500, 4)).astype(dtype)
    y = X[:, 0] * X[:, 1] > 0
    answers = []
    for spill in (False, tmp_path):
        blocks = RowBlocks.from_arrays(X, y, rows=200, spill=spill, device=device, threads=1)
        network = EDRVFLClassifier(n_hidden=20, n_layers=3, correct_weight=0.6, random_state=0)
        answers.append(network.fit(blocks).predict_proba(X))
    assert_array_equal(*answers)
    assert not any(tmp_path.iterdir())
