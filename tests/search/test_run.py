"""Scoring on one split: stacks side by side against one by one, and the memory it takes."""

import tracemalloc

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification

from edrvfl import EDRVFLClassifier
from edrvfl._search.metrics import Sample, Search
from edrvfl._search.plan import bytes_needed, groups, result_rows
from edrvfl._search.run import score_split

JOINT = {"readout": "joint", "correct_weight": 1.0, "prune_rate": 0.0}


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("width", [8, 100], ids=["primal", "dual"])
@pytest.mark.parametrize("weight_from", ["train", "loo"])
def test_stacks_side_by_side_score_the_same(library, width, weight_from):
    pytest.importorskip(library)
    X, y = make_classification(120, 10, n_informative=6, n_classes=3, flip_y=0.15, random_state=1)
    network = EDRVFLClassifier(n_hidden=width, n_layers=3, weight_from=weight_from, random_state=0)
    values = {"regularization": (0.1, 10.0, 0.0, "loo"), "norm_scale": (1.0, 1.5), "prune_rate": (0.0, 0.3)}
    grid = np.array(np.meshgrid(*(range(len(v)) for v in values.values()))).reshape(3, -1).T
    tried = [{name: values[name][i] for name, i in zip(values, row, strict=True)} for row in grid]
    candidates = list(dict.fromkeys(row.candidate for row in result_rows(network, tried)))
    assert len(groups(candidates, lambda c: c.problem)) == 1
    if library == "torch":
        import torch

        X = torch.asarray(X)
    split = (np.arange(80), np.arange(80, 120))
    found = []
    for stacked in (False, True):
        search = Search(Sample(X, y, None), None, np.unique(y), "neg_log_loss", "raise", stacked)
        with sklearn.config_context(array_api_dispatch=True):
            scores, failures = score_split(search, candidates, split, memory=2**30)
        assert not failures
        found.append(scores)
    np.testing.assert_allclose(*found, atol=1e-9)
    assert len(np.unique(found[0].round(9), axis=0)) == len(candidates)


@pytest.mark.parametrize(
    ("shape", "params"),
    [
        ((1500, 10, 3), {"n_hidden": 100}),
        ((1500, 10, 3), {"n_hidden": 100, "weight_from": "loo"}),
        ((1500, 10, 3), {"n_hidden": 100, "regularization": 0.0}),
        ((1500, 10, 3), {"n_hidden": 100, "regularization": 0.0, "weight_from": "loo"}),
        ((3000, 10, 200), {"n_hidden": 10}),
        ((3000, 10, 200), {"n_hidden": 10, "regularization": "loo"}),
        ((1000, 500, 3), {"n_hidden": 20}),
        ((300, 10, 3), {"n_hidden": 1000}),
        ((1500, 10, 3), {"n_hidden": 10, "input_scaling": "gradient"}),
        ((1500, 10, 3), {"n_hidden": 100, "inputs_per_neuron": 3, "hidden_per_neuron": 9, "pair_share": 0.5}),
        ((1500, 10, 3), {"n_hidden": "auto"}),
        ((1500, 10, 3), {"n_hidden": 100, **JOINT}),
        ((1500, 10, 3), {"n_hidden": 100, "calibration": None, **JOINT}),
        ((1500, 10, 3), {"n_hidden": 100, "regularization": "loo", **JOINT}),
        ((1500, 10, 3), {"n_hidden": 100, "regularization": 0.0, **JOINT}),
        ((300, 10, 3), {"n_hidden": 500, **JOINT}),
        ((3000, 10, 200), {"n_hidden": 10, **JOINT}),
    ],
    ids=repr,
)
def test_the_estimate_of_the_memory_holds(shape, params):
    rows, columns, k = shape
    y = np.arange(rows) % k
    X = np.random.default_rng(0).normal(size=(rows, columns)) + (y % 3)[:, None]
    network = EDRVFLClassifier(n_layers=3, random_state=0, **params)
    tried = [{}] if "regularization" in params else [{"regularization": 2.0**i} for i in range(4)]
    candidates = list(dict.fromkeys(row.candidate for row in result_rows(network, tried)))
    split = (np.arange(rows * 3 // 4), np.arange(rows * 3 // 4, rows))
    search = Search(Sample(X, y, None), None, np.unique(y), None, "raise", False)
    few = np.split(np.arange(rows // 4), [rows // 8])
    score_split(search, candidates, few, memory=2**30)  # what is loaded only once
    need = bytes_needed([candidates], search.size(split, candidates[0]))
    tracemalloc.start()
    score_split(search, candidates, split, memory=need)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.3 * need < peak < 1.2 * need  # the work space of LAPACK is not seen here
