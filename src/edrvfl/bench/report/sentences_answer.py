"""The answer in two sentences: where the paper's method stands, and where the portfolio does."""

from __future__ import annotations

from collections import Counter

from .. import paper
from ..comparison import compare_pairs
from ..methods import TABLE
from ..names import listing, plural
from .page import p_text
from .sentences import leader
from .standing import Standing
from .summary import Summary

PORTFOLIO = "edRVFL portfolio"
BLANK = "\N{NO-BREAK SPACE}"  # keeps a number and its sign on one line


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
    first, second = leader(standing, "accuracy")
    return _among_the_papers(standing) or first, _among_boosting(standing) or second


def _among_the_papers(standing: Standing) -> str | None:
    """Say where WPedRVFL stands among the paper's methods and tuned boosting; None if it cannot be said."""
    every = tuple(paper.accuracies())
    methods = [m for m in standing.by_rank if m in every]
    if paper.BEST not in methods or len(methods) < 3:
        return None
    # The ranks are those of the table beside it, so that the two agree; the tests are among the paper's own.
    pairs = compare_pairs(standing.compared[methods])
    ahead = methods[: methods.index(paper.BEST)]
    signs = Counter(pairs.sign(paper.BEST, m, holm=True) for m in methods if m != paper.BEST)
    who = "" if len(methods) == len(every) else f"{len(methods)} of the "
    place = f"behind {listing(ahead)}" if ahead else "first"
    return (
        f"Among the {who}paper's {len(every)} methods, each tuned, {paper.BEST} "
        f"({_percent(standing.means[paper.BEST])}) ranks {place}, clearly better than "
        f"{signs['+'] or 'none'} of the other {len(methods) - 1} and clearly worse than "
        f"{signs['-'] or 'none'}{_against(standing, paper.BEST, '; it ranks ')}."
    )


def _among_boosting(standing: Standing) -> str | None:
    """Say where the portfolio stands among tuned and default boosting; None if it is not there."""
    if PORTFOLIO not in standing.ranks:
        return None
    losses = {m: standing.entries[m].mean("log_loss", standing.common, 3) for m in standing.ranks}
    mine, known = losses[PORTFOLIO] or 0.0, [loss for loss in losses.values() if loss is not None]
    defaults = _boosting(standing, tuned=False)
    beaten = sum(standing.ranks[PORTFOLIO] < standing.ranks[m] for m in defaults)
    at_defaults = f" and of {beaten or 'none'} of {len(defaults)} at their defaults" if defaults else ""
    return (
        f"The {PORTFOLIO}, without any search, reaches {_percent(standing.means[PORTFOLIO])}"
        f"{_against(standing, PORTFOLIO, ' and ranks ')}{at_defaults}; its log-loss, {mine:.3f}, has "
        f"place {1 + sum(loss < mine for loss in known)} of {len(known)}."
    )


def _boosting(standing: Standing, *, tuned: bool) -> list[str]:
    """List the boosting packages that have all datasets, best rank first."""
    packages = [row.name for row in TABLE.values() if row.boosting]
    entries = standing.entries
    return [m for m in standing.by_rank if entries[m].method in packages and entries[m].tuned is tuned]


def _against(standing: Standing, method: str, begin: str) -> str:
    """Say how many tuned boosting packages a method is ahead of, and how it compares with the best of them.

    The p-value is adjusted over all pairs of the table beside the sentence, as in the report's tables.
    """
    boosting = _boosting(standing, tuned=True)
    if not boosting:
        return ""
    best, beaten = boosting[0], sum(standing.ranks[method] < standing.ranks[m] for m in boosting)
    pair = standing.pairs.pair(method, best)
    clear = "significant" if pair.p_holm < standing.pairs.alpha else "not significant"
    return (
        f"{begin}ahead of {beaten or 'none'} of {plural(len(boosting), 'tuned boosting package')} (best: "
        f"{standing.entries[best].method}, {_percent(standing.means[best])}; ahead on {pair.wins} of "
        f"{len(standing.common)}, {clear} among {len(standing.ranks)} methods, "
        f"p{BLANK}={BLANK}{p_text(pair.p_holm)})"
    )


def _percent(value: float) -> str:
    return f"{value:.2f}{BLANK}%"
