"""The table of results, and who is best."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from edrvfl import EDRVFLClassifier
from edrvfl._search.candidates import result_rows
from edrvfl._search.results import best_first, rank, results_table

ROWS = result_rows(EDRVFLClassifier(n_layers=2), [{"n_hidden": 5}, {"class_weight": {0: 1, 1: 2}}])


def test_the_table_has_the_columns_of_scikit_learns_search(noisy):
    scores = np.array([[0.5, 0.7], [0.6, 0.6], [0.9, 0.8], [0.1, 0.3]])
    table = results_table(ROWS, scores)
    grid = [{name: [value] for name, value in row.params.items()} for row in ROWS]
    theirs = GridSearchCV(EDRVFLClassifier(), grid, cv=2, refit=False).fit(*noisy).cv_results_
    assert set(theirs) - set(table) == {
        f"{what}_{of}_time" for what in ("mean", "std") for of in ("fit", "score")
    }
    for name in ("params", *(f"param_{p}" for p in ("n_hidden", "class_weight", "n_layers"))):
        assert list(table[name]) == list(theirs[name])
    np.testing.assert_array_equal(table["split1_test_score"], scores[:, 1])
    np.testing.assert_allclose(table["std_test_score"], [0.1, 0, 0.05, 0.1])
    assert table["rank_test_score"].tolist() == [2, 2, 1, 4]


def test_equal_means_of_different_sums_rank_equal():
    assert rank(np.array([0.3, 0.1 + 0.2, 0.2])).tolist() == [1, 1, 3]


@pytest.mark.parametrize(
    ("means", "ranks"),
    [
        ([0.5, np.nan, 0.7, np.nan], [2, 3, 1, 3]),
        ([np.nan, np.nan], [1, 1]),
        ([-np.inf, 0.2, np.inf], [3, 2, 1]),
    ],
)
def test_what_is_not_a_number_ranks_last(means, ranks):
    with pytest.warns(UserWarning, match=r"\d of \d mean scores are not finite"):
        assert rank(np.array(means)).tolist() == ranks


def test_of_equal_rows_the_shallower_comes_first():
    assert best_first(np.array([2, 1, 1, 1]), ROWS) == [2, 1, 3, 0]
    assert best_first(np.array([1, 1, 1, 1]), ROWS) == [0, 2, 1, 3]


def test_values_that_are_pairs_or_lists_stay_whole():
    pairs = [(0.5, 1.0), (1.0, 2.0)]
    rows = result_rows(EDRVFLClassifier(n_layers=1), [{"norm_scale": pair} for pair in pairs])
    assert results_table(rows, np.ones((2, 1)))["param_norm_scale"].tolist() == pairs
