"""The report's English: the answer in three sentences, what a choice means, notes on what is unequal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from ..paper import two_digits
from .summary import AgainstPaper, ChoiceSummary, Summary

TITLE = "edRVFL study"

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "strict": (
            "Each split chooses its configuration and depth by its own validation rows. No test label of a "
            "split takes part in its choice. This is the figure to quote."
        ),
        "paper": (
            "One configuration and depth for all splits, by the mean validation accuracy of the four, as in "
            "the paper. The four draws overlap: 97 to 99 % of a split's test rows are fit or validation rows "
            "of another split, so test labels enter the choice through the other splits, and the figure "
            "is flattered. It is shown to be compared with the published one."
        ),
    }
)


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun in the singular or plural.

    Examples
    --------
    >>> count(1, "cell"), count(2, "cell"), count(0, "loss", "losses")
    ('1 cell', '2 cells', '0 losses')
    """
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def p_text(p: float) -> str:
    """Write a p-value with two digits.

    Examples
    --------
    >>> p_text(0.5412), p_text(0.0123), p_text(0.000335)
    ('0.54', '0.012', '3.4e-4')
    """
    return f"{p:.2g}" if p >= 0.001 else two_digits(p)


# --- the answer ------------------------------------------------------------------------------------------


def answer(summary: Summary) -> tuple[str, str, str]:
    """Say which method is best, whether the lead is more than chance, and how it compares with the paper."""
    if not summary.strict.methods:
        states = Counter(r.status for r in summary.results.values())
        counted = ", ".join(f"{n} {status}" for status, n in states.items()) or "no cells at all"
        below = "What follows from the published tables alone is below."
        if summary.defaults is not None:
            below = "Methods at their defaults are below, and what follows from the published tables."
        return ("There is no finished cell of a search to report on.", f"The store holds {counted}.", below)
    return (
        _who_is_best(summary.strict, summary.paper),
        _is_it_chance(summary.strict),
        _how_far_from_paper(summary.against_paper),
    )


def _who_is_best(strict: ChoiceSummary, paper: ChoiceSummary) -> str:
    k, every = strict.compared.shape[1], len(strict.methods)
    if not strict.common:
        return f"No dataset has a figure for all {k} methods, so they cannot be ranked."
    n = count(len(strict.common), "dataset")
    if k == 1:
        (only,) = strict.methods
        return (
            f"{only} reaches a mean test accuracy of {strict.means[only]:.2f} % over {n} with the strict "
            f"choice and {paper.means[only]:.2f} % with the paper's."
        )
    best, theirs = strict.by_rank[0], paper.by_rank[0]
    same = "it is best too," if best == theirs else f"the best is {theirs},"
    who = f"all {k}" if k == every else f"{k} of the {every}"
    return (
        f"Over the {n} that {who} methods have, {best} has the best average rank, "
        f"{strict.ranks[best]:.2f}, with a mean test accuracy of {strict.means[best]:.2f} % (strict choice); "
        f"with the paper's choice {same} at rank {paper.ranks[theirs]:.2f} and {paper.means[theirs]:.2f} %."
    )


def _is_it_chance(choice: ChoiceSummary) -> str:
    if choice.compared.shape[1] < 2:
        return "With one method there is nothing to rank or to test."
    if not choice.common:
        return "Nothing can be tested without a dataset that all methods have."
    best, second = choice.by_rank[:2]
    pair, alpha = choice.pairs.pair(best, second), choice.pairs.alpha
    overall = ""
    if choice.friedman is not None:
        p = choice.friedman.p_value
        differ = "differ" if p < alpha else "do not clearly differ"
        overall = f"The methods' ranks {differ} (Friedman p = {p_text(p)}); "
    clear = "significant" if pair.p_holm < alpha else "not significant"
    sentence = (
        f"{overall}the lead of {best} over the second, {second}, is {count(pair.wins, 'win')}, "
        f"{count(pair.ties, 'tie')} and {count(pair.losses, 'loss', 'losses')}, which is {clear} at "
        f"{alpha:g} (Wilcoxon p = {p_text(pair.p_normal)}, after Holm {p_text(pair.p_holm)})."
    )
    return sentence[0].upper() + sentence[1:]


def _how_far_from_paper(cells: tuple[AgainstPaper, ...]) -> str:
    if not cells:
        return "None of these cells is in the paper's Table 3, so nothing is compared with it."
    gap = sum(c.measured - c.published for c in cells) / len(cells)
    farthest = max(cells, key=lambda c: abs(c.measured - c.published))
    return (
        f"On the {count(len(cells), 'cell')} that the paper prints too, the measured accuracy (the paper's "
        f"choice) is on average {points_apart(gap)} the published one; farthest apart is {farthest.method} "
        f"on {farthest.dataset}, {farthest.measured:.2f} % measured and {farthest.published:.2f} % published."
    )


def points_apart(gap: float) -> str:
    """Write a difference in points: 0.25 points above, 1.00 points below."""
    return f"{abs(gap):.2f} points {'above' if gap > 0 else 'below'}"


# --- notes -----------------------------------------------------------------------------------------------


def notes(summary: Summary) -> tuple[str, ...]:
    """Say what was left out, and where results are not on equal terms."""
    found = []
    if summary.n_not_shown:
        found.append(
            f"{count(summary.n_not_shown, 'record')} not shown: where a method has several on a dataset, the "
            "one that succeeded, then the one of the most configurations and seeds, then the latest is."
        )
    if len(summary.extents) > 1:
        listed = ", ".join(f"{count(n, 'configuration')} and {count(k, 'seed')}" for n, k in summary.extents)
        found.append(
            f"Cells were searched to different extents: {listed}. Their figures are not on equal terms."
        )
    if mixed := [dataset for dataset, checksums in summary.checksums.items() if len(checksums) > 1]:
        found.append(f"Methods saw different data or partitions of the same name: {', '.join(mixed)}.")
    return tuple(found)


def what_is_compared(choice: ChoiceSummary) -> str:
    """Say which datasets means, ranks and tests are over, and which methods are not compared."""
    common = choice.common
    left = [d for d in choice.scores.index if d not in common]
    behind = [m for m in choice.methods if m not in choice.compared]
    who = "the other methods" if behind else "all methods shown"
    text = f"Means, ranks and tests are over the {count(len(common), 'dataset')} that {who} have"
    if left and common:
        text += f" ({', '.join(common)})"
    text += f"; left out: {', '.join(left)}." if left else "."
    return text + (f" Not compared, because they have fewer: {', '.join(behind)}." if behind else "")
