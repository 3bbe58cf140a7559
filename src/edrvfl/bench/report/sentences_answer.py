"""The answer in two sentences: where the paper's method stands, and where the portfolio does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .. import paper
from ..comparison import FEWEST, compare_pairs, friedman
from ..methods import TABLE
from .sentences import count, p_text
from .standing import Standing
from .summary import Summary

PORTFOLIO = "edRVFL portfolio"
BLANK = "\N{NO-BREAK SPACE}"  # keeps a number and its sign on one line
FEW = 3  # methods that are named
NUMBERS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def answer(summary: Summary) -> tuple[str, str]:
    """Say where WPedRVFL stands among the paper's methods and where the portfolio stands among boosting.

    A study that has not enough of these says which method is best, and whether its lead is more than chance.
    """
    standing = summary.standing
    if not standing.entries:
        states = Counter(r.status for r in summary.results.values())
        counted = ", ".join(f"{n} {status}" for status, n in states.items()) or "no cells at all"
        return (
            f"There is no finished cell of a search to report on. The store holds {counted}.",
            "What follows from the published tables alone is below.",
        )
    return (
        among_the_papers(standing) or _who_is_best(standing),
        among_boosting(standing) or _is_it_chance(standing),
    )


def among_the_papers(standing: Standing) -> str | None:
    """Say where WPedRVFL stands among the paper's methods, and among boosting; None if it cannot be said."""
    every = tuple(paper.accuracies())
    methods = [m for m in every if m in standing.ranks]
    if paper.BEST not in methods or len(methods) < 3 or not standing.common:
        return None
    # The ranks are those of the table beside it, so that the two agree; the tests are among the paper's own.
    ranks, pairs = standing.ranks, compare_pairs(standing.compared[methods])
    ahead = sorted((m for m in methods if ranks[m] < ranks[paper.BEST]), key=ranks.__getitem__)
    others = [m for m in methods if m != paper.BEST]
    signs = Counter(pairs.sign(paper.BEST, m, holm=True) for m in others)
    n = len(methods)
    who = (
        f"paper's {n} methods"
        if n == len(every)
        else f"{n} of the paper's {len(every)} methods that are complete"
    )
    behind = f", behind {_listed(ahead)}" if 0 < len(ahead) <= FEW else ""
    text = (
        f"Among the {who}, each tuned, {paper.BEST} ({_percent(standing.means[paper.BEST])}) ranks "
        f"{_place(len(ahead) + 1)}{behind}, clearly better than {signs['+'] or 'none'} of the other "
        f"{len(others)} and clearly worse than {signs['-'] or 'none'}"
    )
    boosting = _boosting(standing, tuned=True) or _boosting(standing, tuned=False)
    return f"{text}; it ranks {_against(standing, paper.BEST, boosting)}." if boosting else f"{text}."


def among_boosting(standing: Standing) -> str | None:
    """Say where the portfolio stands among tuned and default boosting; None if one of them is not there."""
    groups = [found for tuned in (True, False) if (found := _boosting(standing, tuned=tuned))]
    if PORTFOLIO not in standing.ranks or not groups:
        return None
    against = _against(standing, PORTFOLIO, groups[0])
    if len(groups) > 1:
        against += f" and {_ahead_of(standing, PORTFOLIO, groups[1])}"
        against += " at their defaults" if len(groups[1]) > 1 else ""
    losses = {name: standing.entries[name].mean("log_loss", standing.common, 3) for name in standing.ranks}
    mine = losses[PORTFOLIO] or 0.0
    lower = sum(loss is not None and loss < mine for loss in losses.values())
    best = "lowest" if lower == 0 else f"{_place(lower + 1)} lowest"
    return (
        f"The {PORTFOLIO}, without any search, reaches {_percent(standing.means[PORTFOLIO])} and ranks "
        f"{against}; its log-loss, {mine:.3f}, is the {best} of {len(losses)}."
    )


def _boosting(standing: Standing, *, tuned: bool) -> list[str]:
    """List the boosting packages that have all datasets, best rank first."""
    packages = [row.name for row in TABLE.values() if row.boosting]
    entries = [e for e in standing.entries.values() if e.method in packages and e.tuned is tuned]
    return sorted((e.name for e in entries if e.name in standing.ranks), key=standing.ranks.__getitem__)


def _against(standing: Standing, method: str, boosting: Sequence[str]) -> str:
    """Say how many boosting packages a method is ahead of, and how it compares with the best of them."""
    best = boosting[0]
    tuned, name = standing.entries[best].tuned, standing.entries[best].method
    figures = f"{_percent(standing.means[best])}; {_ahead_on(standing, method, best)}"
    if len(boosting) == 1:
        return f"{_ahead_of(standing, method, boosting)} ({figures})"
    how = "tuned boosting packages" if tuned else "boosting packages at their defaults"
    return f"{_ahead_of(standing, method, boosting)} {how} (best: {name}, {figures})"


def _ahead_on(standing: Standing, method: str, other: str) -> str:
    """Count the datasets on which one method is ahead of another, and say whether that is significant.

    The p-value is adjusted over all pairs of the table beside the sentence, as in the report's tables.
    """
    c, n = standing.pairs.pair(method, other), len(standing.common)
    said = f"ahead on {c.wins} of {n}"
    if n < FEWEST:
        return said
    clear = "significant" if c.p_holm < standing.pairs.alpha else "not significant"
    p = f"p{BLANK}={BLANK}{p_text(c.p_holm)}"
    return f"{said}, {clear} among {len(standing.ranks)} methods, {p}"


def _ahead_of(standing: Standing, method: str, others: Sequence[str]) -> str:
    """Say how many of several methods one is ahead of; one method is named."""
    n, beaten = len(others), sum(standing.ranks[method] < standing.ranks[name] for name in others)
    if n == 1:
        return f"{'ahead of' if beaten else 'behind'} {others[0]}"
    return (
        f"ahead of all {n}" if beaten == n else f"ahead of {beaten} of {n}" if beaten else f"behind all {n}"
    )


def _percent(value: float) -> str:
    return f"{value:.2f}{BLANK}%"


def _place(n: int) -> str:
    """Write a place in words as far as they are short.

    Examples
    --------
    >>> _place(2), _place(11)
    ('second', '11th')
    """
    return NUMBERS[n] if n < len(NUMBERS) else f"{n}th"


def _listed(names: Sequence[str]) -> str:
    """List a few names.

    Examples
    --------
    >>> _listed(["a", "b", "c"]), _listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# --- other studies -----------------------------------------------------------------------------------


def _who_is_best(standing: Standing) -> str:
    k, every = len(standing.ranks), len(standing.entries)
    if not standing.common:
        return f"No dataset has a figure for all {every} methods, so they cannot be ranked."
    n = count(len(standing.common), "dataset")
    best = next(iter(standing.entries))
    if every == 1:
        return f"{best} reaches a mean test accuracy of {standing.means[best]:.2f} % over {n}."
    who = f"all {k}" if k == every else f"{k} of the {every}"
    first = _first(standing)
    if len(first) > 1:
        accuracies = _listed([f"{standing.means[name]:.2f}" for name in first])
        return (
            f"Over the {n} that {who} methods have, {_listed(first)} share the best average rank, "
            f"{standing.ranks[best]:.2f}, with mean test accuracies of {accuracies} %."
        )
    return (
        f"Over the {n} that {who} methods have, {best} has the best average rank, "
        f"{standing.ranks[best]:.2f}, with a mean test accuracy of {standing.means[best]:.2f} %."
    )


def _first(standing: Standing) -> list[str]:
    """List the methods with the best average rank; several have it where there is a tie."""
    least = min(standing.ranks.values())
    return [name for name in standing.entries if standing.ranks.get(name) == least]


def _is_it_chance(standing: Standing) -> str:
    if len(standing.entries) < 2:
        return "With one method there is nothing to rank or to test."
    if not standing.common or len(standing.ranks) < 2:
        return "Nothing can be tested without a dataset that all methods have."
    found, pairs = friedman(standing.compared), standing.pairs
    overall = ""
    if found is not None and found.n_datasets >= FEWEST:
        differ = "differ" if found.p_value < pairs.alpha else "do not clearly differ"
        overall = f"The methods' ranks {differ} (Friedman p = {p_text(found.p_value)}). "
    if len(_first(standing)) > 1:
        return f"{overall}There is no single best method whose lead could be tested."
    best, second = list(standing.entries)[:2]
    pair = pairs.pair(best, second)
    counted = f"{count(pair.wins, 'win')}, {count(pair.ties, 'tie')}"
    lead = f"{overall}The lead of {best} over the second, {second}, is {counted} and "
    lead += count(pair.losses, "loss", "losses")
    if len(standing.common) < FEWEST:
        return f"{lead}; fewer than {FEWEST} datasets cannot show that this is more than chance."
    clear = "significant" if pair.p_holm < pairs.alpha else "not significant"
    return f"{lead}, which is {clear} at {pairs.alpha:g} (Wilcoxon with Holm, p = {p_text(pair.p_holm)})."
