"""Scoring on one split: stacks side by side against one by one, and the memory it takes."""

import tracemalloc

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, EDRVFLSearchCV, variant
from edrvfl._inputs.table import learn_table, open_table
from edrvfl._search.candidates import result_rows
from edrvfl._search.metrics import metric_of
from edrvfl._search.plan import bytes_needed
from edrvfl._search.run import score_split
from edrvfl._search.scorer import Sample, Scoring, Search

JOINT = {"readout": "joint", "correct_weight": 1.0, "prune_rate": 0.0}


@pytest.mark.parametrize(
    ("library", "width", "weight_from"),
    [("numpy", 8, "train"), ("numpy", 100, "loo"), ("torch", 8, "loo"), ("torch", 100, "train")],
)
def test_stacks_side_by_side_score_the_same(library, width, weight_from):
    pytest.importorskip(library)
    X, y = make_classification(120, 10, n_informative=6, n_classes=3, flip_y=0.15, random_state=1)
    network = EDRVFLClassifier(n_hidden=width, n_layers=3, weight_from=weight_from, random_state=0)
    values = {"regularization": (0.1, 10.0, 0.0, "loo"), "norm_scale": (1.0, 1.5), "prune_rate": (0.0, 0.3)}
    grid = np.array(np.meshgrid(*(range(len(v)) for v in values.values()))).reshape(3, -1).T
    tried = [{name: values[name][i] for name, i in zip(values, row, strict=True)} for row in grid]
    candidates = list(dict.fromkeys(row.candidate for row in result_rows(network, tried)))
    assert len({candidate.stack for candidate in candidates}) == 1
    if library == "torch":
        import torch

        X = torch.asarray(X)
    split = (np.arange(80), np.arange(80, 120))
    found = []
    for stacked in (False, True):
        scoring = Scoring(np.unique(y), metric_of("neg_log_loss", classifies=True))
        search = Search(Sample(X, y, None), None, scoring, stacked)
        with sklearn.config_context(array_api_dispatch=True):
            scores, failures = score_split(search, candidates, split, memory=2**30)
        assert not failures
        found.append(scores)
    np.testing.assert_allclose(*found, atol=1e-9)
    assert len(np.unique(found[0].round(9), axis=0)) == len(candidates)


@pytest.mark.parametrize(
    ("kind", "shape", "params"),
    [
        (EDRVFLClassifier, (1500, 10, 3), {"n_hidden": 100, "weight_from": "loo"}),
        (EDRVFLClassifier, (1500, 10, 3), {"n_hidden": 100, "regularization": 0.0}),
        (EDRVFLClassifier, (3000, 10, 60), {"n_hidden": 10}),
        (EDRVFLClassifier, (3000, 10, 60), {"n_hidden": 10, "regularization": "loo"}),
        (EDRVFLClassifier, (1000, 500, 3), {"n_hidden": 20}),
        (EDRVFLClassifier, (300, 10, 3), {"n_hidden": 1000}),
        (EDRVFLClassifier, (600, 40, 3), {"encoder": "bins", "n_hidden": 20, "layer_votes": "prefix"}),
        (EDRVFLClassifier, (1500, 10, 3), {"n_hidden": 100, **JOINT}),
        (EDRVFLClassifier, (1500, 10, 3), {"n_hidden": 100, "regularization": 0.0, **JOINT}),
        (EDRVFLClassifier, (300, 10, 3), {"n_hidden": 500, **JOINT}),
        (EDRVFLRegressor, (1600, 10, 1), {"n_hidden": 60, "regularization": "loo"}),
        (EDRVFLRegressor, (1600, 10, 60), {"n_hidden": 10, "layer_votes": "weighted"}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("stacked", [False, True], ids=["one by one", "side by side"])
def test_the_estimate_of_the_memory_holds(kind, shape, params, stacked):
    (rows, columns, k), classifies = shape, kind is EDRVFLClassifier
    rng = np.random.default_rng(0)
    y = np.arange(rows) % k if classifies else rng.standard_normal((rows, k))
    X = rng.normal(size=(rows, columns)) + (y.reshape(rows, -1)[:, :1] % 3)
    network = kind(**{"n_layers": 3, "random_state": 0, "regularization": 1.0} | params)
    tried = [{}] if "regularization" in params else [{"regularization": 2.0**i} for i in range(4)]
    candidates = list(dict.fromkeys(row.candidate for row in result_rows(network, tried)))
    split = (np.arange(rows * 3 // 4), np.arange(rows * 3 // 4, rows))
    table, seen = learn_table(open_table(X))
    metric = metric_of("neg_log_loss" if classifies else None, classifies)
    scoring = Scoring(np.unique(y) if classifies else None, metric)
    search = Search(Sample(table, y, None), seen, scoring, stacked)
    few = np.split(np.arange(rows // 4), [rows // 8])
    score_split(search, candidates, few, memory=2**30)  # what is loaded only once
    need = bytes_needed([candidates], search.size(split, candidates[0].inputs))
    tracemalloc.start()
    score_split(search, candidates, split, memory=need)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.15 * need < peak < need  # the work space of LAPACK is not seen here


@pytest.mark.parametrize("name", ["edRVFL_N", "WPedRVFL"])
@pytest.mark.parametrize("weight_from", ["train", "loo"])
@pytest.mark.parametrize("shape", [(3000, 100), (200, 300)], ids=["primal", "dual"])
def test_the_budget_is_kept(name, weight_from, shape):
    rows, width = shape
    X, y = make_classification(rows, 10, n_informative=8, n_classes=5, random_state=0)
    network = variant(name, n_hidden=width, n_layers=4, weight_from=weight_from, random_state=0)
    split = [(np.arange(rows // 2), np.arange(rows // 2, rows))]
    space = {"regularization": [2.0**i for i in range(8)]}
    search = EDRVFLSearchCV(network, space, n_iter=None, cv=split, refit=False)
    for memory in (14, 28):
        tracemalloc.start()
        search.set_params(memory=memory).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        assert peak <= memory
    with pytest.raises(MemoryError, match="needs about"):
        search.set_params(memory=1).fit(X, y)
