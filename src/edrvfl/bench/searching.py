"""How the study searches a method: its estimator, what the search tries, and how it scores that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import edrvfl

from .baselines.packages import refuse_missing
from .device import arrays_on, to_host

Configuration = Mapping[str, Any]

SEARCH_MEMORY = {"cpu": 1024, "cuda": 12 * 1024}  # MiB for the networks that are searched together


@dataclass(frozen=True, slots=True, eq=False)
class SearchSplit:
    """What the search may see of a split. Test rows and test labels are not in it."""

    X_fit: np.ndarray
    y_fit: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """What the search found on one split."""

    scores: np.ndarray  # validation accuracy (configuration, depth)
    epochs: tuple[float, ...] | None = None  # by configuration, where the refit takes them over


def search_networks(
    method: Method, configurations: Sequence[Configuration], split: SearchSplit, seed: int, device: str
) -> SearchResult:
    """Search the edRVFL family: many networks at once, with the scores of networks that were fitted alone.

    This is the only place where the study calls the library's search.
    """
    m, v = len(split.y_fit), len(split.y_validation)
    search = edrvfl.EDRVFLSearchCV(
        method.build({}, seed),
        [{name: [value] for name, value in configuration.items()} for configuration in configurations],
        n_iter=None,
        cv=[(np.arange(m), np.arange(m, m + v))],
        refit=False,
        error_score="raise",
        memory=method.memory[device.split(":")[0]],
    )
    y = np.concatenate([split.y_fit, split.y_validation])
    with arrays_on(device, np.concatenate([split.X_fit, split.X_validation])) as (X,):
        table = search.fit(X, y).cv_results_
    # Configurations that happen to be the same share their rows, so rows are found by their parameters.
    rows = zip(table["params"], table["split0_test_score"], strict=True)
    found = {tuple(sorted(params.items())): score for params, score in rows}
    depths = range(1, method.fixed["n_layers"] + 1)
    scores = [[found[tuple(sorted({**c, "n_layers": l}.items()))] for l in depths] for c in configurations]
    return SearchResult(np.array(scores))


def search_one_by_one(
    method: Method, configurations: Sequence[Configuration], split: SearchSplit, seed: int, device: str
) -> SearchResult:
    """Fit one configuration after another and score each on the validation rows."""
    with arrays_on(device, split.X_fit, split.X_validation) as (X_fit, X_validation):
        fitted = (method.build(c, seed).fit(X_fit, split.y_fit) for c in configurations)
        return _judge(method, fitted, X_validation, split.y_validation)


def _judge(
    method: Method, fitted: Iterable[Any], X_validation: Any, y_validation: np.ndarray
) -> SearchResult:
    scores, epochs = [], []
    for model in fitted:
        # A deep network answers at every smaller depth too; other methods have one answer.
        answers = model.staged_predict(X_validation) if method.depth else [model.predict(X_validation)]
        scores.append([float(np.mean(to_host(labels) == y_validation)) for labels in answers])
        if method.epochs:
            epochs.append(float(getattr(model, f"{method.epochs}_")))
    return SearchResult(np.array(scores), tuple(epochs) or None)


def search_by_nodes(
    method: Method, configurations: Sequence[Configuration], split: SearchSplit, seed: int, device: str
) -> SearchResult:
    """Search SCN: configurations that differ in their number of nodes alone are parts of one network."""
    with arrays_on(device, split.X_fit, split.X_validation) as (X_fit, X_validation):
        largest = max(configurations, key=lambda c: c["max_nodes"])
        network = method.build(largest, seed).fit(X_fit, split.y_fit)
        smaller = (network.first_nodes(c["max_nodes"]) for c in configurations)
        return _judge(method, smaller, X_validation, split.y_validation)


def _miss_nothing() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Method:
    """A method that is searched. Its functions are importable, or partials of such, for other processes."""

    name: str
    estimator: Callable[..., Any]  # (random_state=seed, **fixed, **configuration) -> classifier, not fitted
    configurations: Callable[[int, int], list[dict[str, Any]]]  # (trials, seed) -> all that will be tried
    fixed: Mapping[str, Any] = field(default_factory=dict)  # parameters that are not searched
    search_with: Callable[..., SearchResult] = search_one_by_one  # on one split
    shares: tuple[str, ...] = ()  # configurations that agree in these are searched in one call
    depth: str | None = None  # the parameter of which one fit scores all smaller values too
    epochs: str | None = None  # the parameter that early stopping finds in the search, for the refit
    final: Callable[..., Any] | None = None  # makes what is refitted, where that is not what is searched
    cpu_only: bool = False  # the estimator takes NumPy arrays alone
    memory: Mapping[str, int] = field(default_factory=lambda: SEARCH_MEMORY)  # of a search, MiB by device
    # returns a message about what has to be installed first, or None
    missing: Callable[[], str | None] = _miss_nothing

    def search(
        self, configurations: Sequence[Configuration], split: SearchSplit, seed: int, device: str = "cpu"
    ) -> SearchResult:
        """Score configurations on the validation rows of a split, at every depth."""
        return self.search_with(self, configurations, split, seed, device)

    def build(
        self,
        configuration: Configuration,
        seed: int,
        depth: int | None = None,
        epochs: int | None = None,
        *,
        final: bool = False,
    ) -> Any:
        """Make the classifier of a configuration, not fitted, with the depth and epochs that were found.

        `final` asks for what is fitted on all training rows after the search.
        """
        make = self.final if final and self.final is not None else self.estimator
        found = ((self.depth, depth), (self.epochs, epochs))
        chosen = {name: value for name, value in found if name is not None and value is not None}
        return make(random_state=seed, **{**self.fixed, **configuration, **chosen})

    def batches(self, configurations: Sequence[Configuration]) -> list[tuple[int, ...]]:
        """Return the numbers of the configurations, grouped by who is searched in one call."""
        if not self.shares:
            return [(i,) for i in range(len(configurations))]
        found: dict[str, list[int]] = {}
        for i, configuration in enumerate(configurations):
            found.setdefault(str([configuration.get(name) for name in self.shares]), []).append(i)
        return [tuple(group) for group in found.values()]


def check_installed(methods: Iterable[Method]) -> None:
    """Raise an error that names everything the methods need and that is not installed."""
    refuse_missing(method.missing() for method in methods)
