"""scikit-learn's own checks: every estimator as it comes, and the settings in which its code differs.

Widths and depths are small. The checks have about 50 rows, so that more neurons than rows mean dual systems.
Proof by leave-one-out is most of the time of a fit: the estimators as they come ask for it, and few others.
"""

import pytest
from cases import VALUE_MEMBERS
from helpers import PAPER, assert_passes_scikit_learns_checks
from sklearn.tree import DecisionTreeClassifier

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    EDRVFLSearchCV,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
    variant,
)
from edrvfl._doors.variants import VARIANTS

SMALL = {"n_layers": 3, "n_hidden": 16}
WIDE = {"n_layers": 2, "n_hidden": 150}
SPACE = {"regularization": [0.1, 4.0]}
GIVEN = {"correct_weight": 0.8, "prune_rate": 0.2}
DRAWN = {"inputs_per_neuron": 3, "hidden_per_neuron": 4, "norm_scale": (0.5, 2.0), "pair_share": 0.5}
NUMBERS_AS_THEY_ARE = {"encoder": None, "renormalize": False}


def narrow(portfolio):
    """A default kernel and a default network, of 16 neurons instead of hundreds, and inputs as they are."""
    members = dict(portfolio.default_members())
    members["sparse"].set_params(n_hidden=16)
    return [(name, members[name].set_params(input_scaling=None)) for name in ("product kernel", "sparse")]


SETTINGS = {  # why it is here: the estimator
    **{f"the paper's {name}, at its own depth": variant(name, n_hidden=16) for name in VARIANTS},
    "classifier as it comes: shape by the rows, calibrated": EDRVFLClassifier(),
    "classifier, dual systems, leave-one-out chooses and weighs": EDRVFLClassifier(
        **WIDE, **PAPER, regularization="loo", weight_from="loo"
    ),
    "classifier without a penalty, by class weights, votes of layers": EDRVFLClassifier(
        **SMALL, **PAPER, regularization=0.0, class_weight="balanced", ensemble="vote", layer_votes="weighted"
    ),
    "classifier, a column of categories, a temperature": EDRVFLClassifier(
        **SMALL,
        **PAPER,
        encoder=TabularEncoder("robust", categorical_features=[0]),
        calibration="temperature",
    ),
    "classifier, every draw, bins, a prefix, scaled inputs": EDRVFLClassifier(
        **SMALL, **DRAWN, **GIVEN, encoder="bins", layer_votes="prefix", input_scaling="gradient"
    ),
    "classifier, dual joint read-out, numbers as they are, matrix": variant(
        "dRVFL", **WIDE, **NUMBERS_AS_THEY_ARE, calibration="matrix", ensemble="mean"
    ),
    "classifier, rows held back, remembered": EDRVFLClassifier(
        **SMALL, **PAPER, coverage_from="split", remember="rows"
    ),
    "regressor as it comes": EDRVFLRegressor(),
    "regressor, dual systems, weighed rows, sums remembered": EDRVFLRegressor(
        **WIDE, correct_weight=0.4, remember="sums"
    ),
    "regressor without a penalty, numbers as they are": EDRVFLRegressor(
        **SMALL, **NUMBERS_AS_THEY_ARE, regularization=0.0
    ),
    "regressor, every draw, bins, votes, scaled inputs": EDRVFLRegressor(
        **SMALL, **DRAWN, encoder="bins", layer_votes="weighted", input_scaling="gradient"
    ),
    "regressor, joint read-out, rows held back": EDRVFLRegressor(
        **SMALL, readout="joint", prune_rate=0.0, coverage_from="split"
    ),
    "kernel classifier as it comes": KernelRidgeClassifier(),
    "kernel classifier, landmarks": KernelRidgeClassifier(
        n_landmarks=60, class_weight="balanced", input_scaling=None
    ),
    "kernel classifier, product, ranks, remembered": KernelRidgeClassifier(
        kernel="product", encoder="ranks", input_scaling=None, remember="rows"
    ),
    "kernel regressor, a kernel by leave-one-out": KernelRidgeRegressor(
        kernel="loo", encoder="ranks", input_scaling=None
    ),
    "kernel regressor as it comes": KernelRidgeRegressor(),
    "kernel regressor, landmarks, a given penalty": KernelRidgeRegressor(
        n_landmarks=60, regularization=0.1, encoder="robust", input_scaling=None
    ),
    "portfolio of classifiers, two members as they come": EDRVFLPortfolioClassifier(
        members=narrow(EDRVFLPortfolioClassifier)
    ),
    "portfolio of classifiers, not calibrated, equal weights": EDRVFLPortfolioClassifier(
        members=[
            ("kernel", KernelRidgeClassifier(regularization=0.3, bandwidth=1.0, input_scaling=None)),
            ("network", EDRVFLClassifier(**SMALL, **PAPER)),
        ],
        finalists=None,
        weights="equal",
        calibration=None,
        remember="rows",
    ),
    "portfolio of classifiers, a guest by folds": EDRVFLPortfolioClassifier(
        members=[("tree", DecisionTreeClassifier())]
    ),
    "portfolio of regressors, two members as they come": EDRVFLPortfolioRegressor(
        members=narrow(EDRVFLPortfolioRegressor)
    ),
    "portfolio of regressors, no time, categories": EDRVFLPortfolioRegressor(
        members=VALUE_MEMBERS[:1], categorical_features=[0], max_seconds=1e-9, n_jobs=2
    ),
    "search for a classifier, two networks, a scorer by call": EDRVFLSearchCV(
        EDRVFLClassifier(n_layers=2, n_hidden=16, calibration=None, **PAPER),
        SPACE,
        cv=2,
        ensemble_size=2,
        scoring="balanced_accuracy",
    ),
    "search for a regressor, two networks, squared error": EDRVFLSearchCV(
        EDRVFLRegressor(n_layers=2, n_hidden=16),
        SPACE,
        cv=2,
        ensemble_size=2,
        scoring="neg_mean_squared_error",
    ),
    "encoder as it comes": TabularEncoder(),
    "encoder of bins": TabularEncoder("bins"),
    "encoder of ranks": TabularEncoder("ranks"),
}
N_SETTINGS = len(SETTINGS)
EXPECTED_FAILURES = {
    # a row is held back or not as a whole, whatever it weighs
    "regressor, joint read-out, rows held back": ["check_sample_weight_equivalence_on_dense_data"],
    "classifier, rows held back, remembered": ["check_sample_weight_equivalence_on_dense_data"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_scikit_learns_checks_pass(name):
    no_other_libraries = isinstance(SETTINGS[name], TabularEncoder) or "guest" in name
    least = 55 if no_other_libraries else 60
    assert_passes_scikit_learns_checks(SETTINGS[name], EXPECTED_FAILURES.get(name, ()), at_least=least)


def test_every_public_estimator_is_checked_as_it_comes_and_there_are_not_many_settings():
    public = {
        EDRVFLClassifier, EDRVFLRegressor, KernelRidgeClassifier, KernelRidgeRegressor,
        EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor, EDRVFLSearchCV, TabularEncoder,
    }  # fmt: skip
    assert {type(model) for model in SETTINGS.values()} == public
    assert {type(SETTINGS[name]) for name in SETTINGS if "as it comes" in name} >= {
        EDRVFLClassifier, EDRVFLRegressor, KernelRidgeClassifier, KernelRidgeRegressor, TabularEncoder,
    }  # fmt: skip
    assert len(VARIANTS) + 8 <= N_SETTINGS <= 35
