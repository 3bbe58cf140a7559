"""A reader that knows only the page on the format gives the same probabilities."""

from pathlib import Path

import independent_reader
import numpy as np
import pytest
from small_models import numbers

from edrvfl import EDRVFLClassifier

CASES = {
    "default": {},
    "plain": {"encoder": None, "calibration": None, "renormalize": False, "prune_rate": 0.0},
    "mean": {
        "ensemble": "mean",
        "layer_votes": "weighted",
        "activation": "sigmoid",
        "calibration": "temperature",
    },
    "pairs": {"pair_share": 0.4, "norm_scale": (1.0, 3.0), "activation": "tanh"},
}


@pytest.mark.parametrize("params", CASES.values(), ids=CASES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_predicts_the_same(params, n_classes, tmp_path):
    X, y, _ = numbers()
    X = X.copy()
    if params.get("encoder", "") is not None:
        X[::5, 1] = np.nan
    model = EDRVFLClassifier(n_hidden=30, n_layers=4, random_state=1, **params).fit(
        X, np.minimum(y, n_classes - 1)
    )
    model.save(tmp_path / "m")
    np.testing.assert_allclose(
        independent_reader.predict_proba(tmp_path / "m", X), model.predict_proba(X), rtol=0, atol=1e-12
    )


def test_it_is_short_and_alone():
    text = Path(independent_reader.__file__).read_text()
    assert len(text.splitlines()) <= 150
    assert "import edrvfl" not in text
    assert "from edrvfl" not in text
