"""The table of the study's methods: whose each is, how it is searched, and what it is as it comes.

To add a method, add a row. A package that users would pick instead is one row too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import edrvfl

from .baselines import autoencoding, boosting, fnn, peers, scn
from .baselines.packages import missing_package
from .baselines.randomised import sample_configurations
from .contenders import (
    Contender,
    Prepared,
    as_categories,
    as_categories_or_codes,
    as_it_comes,
    as_named_texts,
    as_numbered_categories,
    without_dates_and_text,
)
from .data import Task
from .names import resolve_names
from .searching import SEARCH_MEMORY, Method, search_by_nodes, search_networks

DEPTH = 10  # l_max of the paper
# dRVFL holds the features of all layers: 1000 neurons in ten layers on the largest dataset take 9 GiB.
JOINT_MEMORY = {"cpu": 10 * 1024, "cuda": 24 * 1024}
TASKS: tuple[Task, ...] = ("classification", "regression")
_TREES_TOO, _LINEAR_TOO = "edRVFL portfolio with trees", "linear model"  # in no group
_PLAIN, _VECTORIZED = "edRVFL portfolio without dates and text", "TableVectorizer"  # for tables with both
KINDS = ("ours", "peer", "paper")  # whose a method is, in the order of every table


@dataclass(frozen=True, slots=True)
class Row:
    """One method."""

    name: str
    kind: str  # of KINDS
    tuned: Method | None = None  # how it is searched
    default: Mapping[Task, Contender] = field(default_factory=dict)  # what it is as it comes, by task
    package: str = "sklearn"
    boosting: bool = False

    def line(self, *, tuned: bool) -> str:
        """Name the method in tables: a peer is there twice, tuned and as it comes."""
        return self.name if self.kind != "peer" else f"{self.name}, {'tuned' if tuned else 'default'}"

    @property
    def lines(self) -> tuple[str, ...]:
        """All its names in tables."""
        return self.name, self.line(tuned=True), self.line(tuned=False)


# --- ours ----------------------------------------------------------------------------------------------


def _draw(name: str, trials: int, seed: int) -> list[dict[str, Any]]:
    return edrvfl.paper_configurations(trials, seed, edrvfl.variant(name))


def _searched(name: str, depth: int = DEPTH, memory: Mapping[str, int] = SEARCH_MEMORY) -> Row:
    method = Method(
        name,
        partial(edrvfl.variant, name),
        partial(_draw, name),
        fixed={"n_layers": depth, "activation": "relu"},
        search_with=search_networks,
        shares=("n_hidden",),  # networks of one width share their random layers
        depth="n_layers",
        memory=memory,
    )
    return Row(name, "ours", method)


def _ours(name: str, classifier: str, regressor: str | None = None, **settings: Any) -> Row:
    """Make a row of an estimator of ours as it comes."""
    kinds = zip(TASKS, (classifier, regressor), strict=True)
    made = {task: _our_contender(name, kind, settings) for task, kind in kinds if kind is not None}
    return Row(name, "ours", default=made)


def _our_contender(name: str, kind: str, settings: Mapping[str, Any]) -> Contender:
    """Make the contender. Its parameters are in the key: when a default changes, so does the cell."""
    make = getattr(edrvfl, kind)
    given = ", ".join(f'{key}="{value}"' for key, value in settings.items())
    known = {**make().get_params(deep=False), **settings}
    known.pop("remember", None)  # it decides no answer
    if "members" in known:  # None stands for a table, which may change too
        known["members"] = {name: str(estimator) for name, estimator in make.default_members()}
    return Contender(
        name, f"{kind}({given}).fit(X, y)", partial(make, **settings), as_it_comes, settings=known
    )


def _with_trees(name: str) -> Row:
    """Make the row of the portfolio that scikit-learn's trees are guests of."""
    found = {}
    for task, kind in zip(TASKS, ("EDRVFLPortfolioClassifier", "EDRVFLPortfolioRegressor"), strict=True):
        members = getattr(edrvfl, kind).default_members(trees=True)
        contender = _our_contender(name, kind, {})
        found[task] = replace(
            contender,
            code=f"{kind}(members={kind}.default_members(trees=True)).fit(X, y)",
            estimator=partial(contender.estimator, members=members),
            settings={**contender.settings, "members": {name: str(member) for name, member in members}},
        )
    return Row(name, "ours", default=found)


def _without_dates_and_text(row: Row) -> Row:
    """Let a method see numbers and categories alone."""
    seen = "X.drop(columns=[*dates, *texts])"
    made = {
        task: replace(one, name=_PLAIN, code=one.code.replace("X", seen), prepare=without_dates_and_text)
        for task, one in row.default.items()
    }
    return replace(row, name=_PLAIN, default=made)


# --- those of the paper --------------------------------------------------------------------------------


def _fnn(name: str, architecture: str) -> Row:
    method = Method(
        name,
        partial(fnn.FNNClassifier, architecture),
        partial(fnn.configurations, architecture),
        # Its defaults, here for the key: refits of old held nothing out, and nothing started again.
        fixed={"validation_fraction": 0.1, "restarts": 3},
        shares=("n_units", "form", "bottleneck", "block_layers"),  # a kind of networks
        missing=partial(missing_package, name, "torch", "fnn"),
    )
    return Row(name, "paper", method)


def _randomised(name: str, estimator: Callable[..., Any], draw: Callable[..., Any], **how: Any) -> Row:
    return Row(name, "paper", Method(name, estimator, draw, **how))


# --- peers -----------------------------------------------------------------------------------------------

Prepare = Callable[[Any, Any], Prepared]
_TEXTS = 'X.astype(dict.fromkeys(texts, "category"))'


def _peer(
    name: str,
    estimator: Callable[..., Any],
    default: Mapping[Task, Contender] = {},
    final: Callable[..., Any] | None = None,
) -> Row:
    """Make a row of scikit-learn's; `final` makes what is refitted, where that is not what is searched."""
    method = Method(name, estimator, partial(peers.configurations, space=name), final=final, cpu_only=True)
    return Row(name, "peer", method, default)


def _booster(name: str, prepare: Prepare, typed: str) -> Row:
    """Make a row of boosting. `typed` is what follows the name of its classifier or regressor."""
    booster = boosting.BOOSTERS[name]
    package = booster.package.partition(".")[0]
    make = partial(boosting.make_booster, name)
    method = Method(
        name,
        partial(boosting.boosting, name),
        partial(peers.configurations, space=name),
        epochs="n_rounds",
        cpu_only=True,
        missing=partial(missing_package, name, package, boosting.EXTRA),
    )
    default = _by_task(name, "{}" + typed, make, prepare, package, booster.kinds)
    return Row(name, "peer", method, default, package, boosting=True)


def _by_task(
    name: str,
    typed: str,
    make: Callable[..., Any],
    prepare: Prepare,
    package: str = "sklearn",
    kinds: tuple[str, str] = ("Classifier", "Regressor"),
) -> dict[Task, Contender]:
    """Make what a method is as it comes. `typed` has a place for the kind that its task needs."""
    return {
        task: Contender(name, typed.replace("{}", kind), partial(make, task=task), prepare, package)
        for task, kind in zip(TASKS, kinds, strict=True)
    }


_CALIBRATED = "CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False).fit(X, y)"
_CODED = f"().fit({_TEXTS}, y)"
_NAMED = '(cat_features=texts).fit(X.fillna(dict.fromkeys(texts, "missing")), y)'
_ENABLED = f"(enable_categorical=True).fit({_TEXTS}, y)"
_FOREST = _by_task(
    "RandomForest",
    "RandomForest{}().fit(X.assign(**codes_of_texts), y)",
    peers.random_forest,
    partial(as_categories_or_codes, most=0),
)
_LINEAR = _by_task(
    _LINEAR_TOO,
    "make_pipeline(one_hot_impute_and_scale, {}).fit(X, y)",
    peers.linear_model,
    partial(as_named_texts, parameter="texts"),
    kinds=("LogisticRegression(max_iter=5000)", "RidgeCV(alphas)"),
)
_VECTORIZING = _by_task(
    _VECTORIZED,
    "skrub.tabular_pipeline(HistGradientBoosting{}()).fit(X, y)",
    boosting.vectorized,
    as_it_comes,
    "skrub",
)

# --- the table -------------------------------------------------------------------------------------------

_ROWS = [  # ours and the paper's in the order of every table
    _ours("edRVFL portfolio", "EDRVFLPortfolioClassifier", "EDRVFLPortfolioRegressor"),
    _with_trees(_TREES_TOO),
    _without_dates_and_text(_ours("", "EDRVFLPortfolioClassifier", "EDRVFLPortfolioRegressor")),
    _ours("edRVFL default", "EDRVFLClassifier", "EDRVFLRegressor"),
    _ours("edRVFL bins", "EDRVFLClassifier", encoder="bins"),
    _searched("WPedRVFL"),
    _searched("PedRVFL"),
    _searched("WedRVFL"),
    _searched("edRVFL_N"),
    _searched("edRVFL_O"),
    _searched("dRVFL", memory=JOINT_MEMORY),
    _searched("RVFL", depth=1),
    _ours("LaplaceRidge", "KernelRidgeClassifier", "KernelRidgeRegressor"),
    _ours("edRVFL robust", "EDRVFLClassifier", encoder="robust"),
    _ours("edRVFL standard", "EDRVFLClassifier", encoder="standard"),
    _peer("LogisticRegression", peers.logistic_regression),
    Row(_LINEAR_TOO, "peer", default=_LINEAR),
    _peer(
        "RBF-SVM",
        peers.rbf_svm,
        {"classification": Contender("RBF-SVM", _CALIBRATED, peers.calibrated_svm)},
        final=peers.calibrated_svm,  # the search looks at labels, which need no calibration
    ),
    _peer("RandomForest", peers.random_forest, _FOREST),
    _booster("HistGradientBoosting", as_categories_or_codes, _CODED),
    Row(_VECTORIZED, "peer", default=_VECTORIZING, package="skrub"),
    _booster("LightGBM", as_numbered_categories, _CODED),
    _booster("XGBoost", partial(as_categories, enable_categorical=True), _ENABLED),
    _booster("CatBoost", as_named_texts, _NAMED),
    _fnn("SNN", "snn"),
    _fnn("MSRAinit", "msra"),
    _fnn("Highway", "highway"),
    _fnn("ResNet", "resnet"),
    _randomised(
        "SCN", scn.SCNClassifier, scn.configurations, search_with=search_by_nodes, shares=("scales",)
    ),
    _randomised("BLS", autoencoding.BLSClassifier, partial(sample_configurations, autoencoding.BLS_SPACE)),
    _randomised(
        "H-ELM", autoencoding.HELMClassifier, partial(sample_configurations, autoencoding.HELM_SPACE)
    ),
]
_TABLE = {row.name: row for row in _ROWS}
_CONTENDERS = {task: {row.name: row.default[task] for row in _ROWS if task in row.default} for task in TASKS}
TABLE: Mapping[str, Row] = _TABLE
METHODS: Mapping[str, Method] = {row.name: row.tuned for row in _ROWS if row.tuned is not None}
CONTENDERS: Mapping[Task, Mapping[str, Contender]] = _CONTENDERS

METHOD_GROUPS: Mapping[str, tuple[str, ...]] = {
    "edrvfl": ("RVFL", "edRVFL_O", "edRVFL_N", "dRVFL", "WedRVFL", "PedRVFL", "WPedRVFL"),
    "randomised": ("SCN", "BLS", "H-ELM"),
    "fnn": ("SNN", "MSRAinit", "Highway", "ResNet"),
    "peers": tuple(row.name for row in _ROWS if row.kind == "peer" and row.tuned is not None),
}
_TREES = ("HistGradientBoosting", "LightGBM")
DEFAULT_GROUPS: Mapping[str, tuple[str, ...]] = {
    "arrays": (
        *("edRVFL portfolio", "edRVFL default", "edRVFL bins", "LaplaceRidge"),
        *("RBF-SVM", "RandomForest", *_TREES, "XGBoost", "CatBoost"),
    ),
    "frames": (
        *("edRVFL portfolio", "edRVFL standard", "edRVFL robust", "edRVFL bins"),
        *(*_TREES, "CatBoost"),
    ),
    "values": tuple(
        name
        for name in CONTENDERS["regression"]
        if name not in (_TREES_TOO, _LINEAR_TOO, _PLAIN, _VECTORIZED)
    ),
    "tables": ("edRVFL portfolio", _PLAIN, *_TREES, _VECTORIZED, "CatBoost"),
}


# --- names -----------------------------------------------------------------------------------------------


def method_names(names_or_groups: Sequence[str]) -> tuple[str, ...]:
    """Return searched methods in the order asked for, each once, with groups expanded."""
    return resolve_names(names_or_groups, METHODS, METHOD_GROUPS, "method")


def contender_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return methods as they come in the order asked for, each once, with groups expanded."""
    known = tuple(row.name for row in _ROWS if row.default)
    return resolve_names(names, known, DEFAULT_GROUPS, "method")


# --- tables ----------------------------------------------------------------------------------------------

_PLACES = {line: i for i, row in enumerate(_ROWS) for line in row.lines}


def add_row(row: Row) -> None:
    """Add a method that comes from elsewhere, as it comes: `edrvfl.bench.extend` does."""
    if taken := [line for line in row.lines if line in _PLACES]:
        raise ValueError(f"There is a method {taken[0]!r} already; take another name.")
    _PLACES.update(dict.fromkeys(row.lines, len(_ROWS)))
    _ROWS.append(row)
    _TABLE[row.name] = row
    for task, contender in row.default.items():
        _CONTENDERS[task][row.name] = contender


def line_name(method: str, *, tuned: bool) -> str:
    """Name the line of a method in tables, tuned or as it comes."""
    return TABLE[method].line(tuned=tuned) if method in TABLE else method


def kind_of(line: str) -> str:
    """Tell whose a method or its line is: ours, one of the paper's others, or a peer that a user has."""
    return _ROWS[_PLACES[line]].kind if line in _PLACES else "peer"


def subject_first(
    lines: Iterable[str], ranks: Mapping[str, float], empty: Collection[str] = ()
) -> tuple[str, ...]:
    """Order the columns of a table: ours, then peers, then the paper's others, then methods in `empty`.

    Ours are in the order of the table of methods, peers and others in the order of `ranks`, the least first;
    those without a rank follow. `empty` names the methods that have no figure at all.
    """

    def place(line: str) -> tuple[bool, int, int, float]:
        kind = kind_of(line)
        own = _PLACES[line] if kind == "ours" else 0
        return line in empty, KINDS.index(kind), own, ranks.get(line, math.inf)

    return tuple(sorted(lines, key=place))
