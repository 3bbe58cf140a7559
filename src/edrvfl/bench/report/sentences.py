"""The report's English that several places share: what edRVFL is, what was compared, what a choice means."""

from __future__ import annotations

from collections.abc import Mapping

from .. import paper
from ..comparison import ALPHA, FEWEST, Ranking
from ..names import listing, plural
from ..scores import CALIBRATION_BINS
from .page import p_text
from .standing import Standing
from .summary import Summary

CALIBRATION_ERROR = (
    f"the gap between confidence and accuracy in {CALIBRATION_BINS} bins of equal width of the largest "
    "probability, weighted by their rows"
)

MEANINGS: Mapping[str, str] = {
    "strict": (
        "Each split chooses its configuration and depth by its own validation rows. No test label of a "
        "split takes part in its choice. This is the figure to quote."
    ),
    "paper": (
        "One configuration and depth for all splits, by the mean validation accuracy of the four, as in "
        "the paper. The four draws overlap: on datasets without a fixed test file 97 to 99 % of a "
        "split's test rows are fit or validation rows of another split, so test labels enter the choice "
        "through the other splits, and the figure is flattered. It is shown to be compared with the "
        "published one."
    ),
}


def points_apart(gap: float) -> str:
    """Write a difference in points: 0.25 points above, 1.00 points below."""
    return f"{abs(gap):.2f} points {'above' if gap > 0 else 'below'}"


def compared(standing: Standing) -> str:
    """Say what was compared, on what, and by which choice."""
    entries, datasets, printed = standing.entries.values(), standing.scores.index, paper.accuracies()
    papers = sum(e.name in printed for e in entries)
    tuned = sum(e.tuned for e in entries)
    counts = {
        f"of the paper's {len(printed.columns)} methods": papers,
        "other tuned": tuned - papers,
        "without any search": len(entries) - tuned,
    }
    who = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    uci = "UCI " if set(datasets) <= set(printed.index) else ""
    return (
        f"Compared: {who or 'nothing yet'}; {plural(len(datasets), f'{uci}dataset')}; strict choice (by a "
        f"split's own validation rows); {len(standing.ranks)} of these {len(entries)} have all "
        "datasets and are ranked."
    )


def leader(ranking: Ranking, figure: str) -> tuple[str, str]:
    """Say which method has the best average rank, and whether its lead is more than chance."""
    if len(ranking.ranks) < 2:
        return "There are no two methods with a dataset in common.", "So nothing can be ranked or tested."
    best, second = ranking.by_rank[:2]
    where = (
        f"Over the {plural(len(ranking.common), 'dataset')} that all {len(ranking.ranks)} compared methods "
    )
    tied = [name for name in ranking.by_rank if ranking.ranks[name] == ranking.ranks[best]]
    if len(tied) > 1:
        rank = f"share the best average rank by {figure}, {ranking.ranks[best]:.2f}."
        return f"{where}have, {listing(tied)} {rank}", "A tie is no lead."
    first = (
        f"{where}have, {best} has the best average rank by {figure}, {ranking.ranks[best]:.2f}, with a mean "
        f"of {ranking.means[best]:.{ranking.digits}f}; the second is {second}, with "
        f"{ranking.ranks[second]:.2f} and {ranking.means[second]:.{ranking.digits}f}."
    )
    if len(ranking.common) < FEWEST:
        return first, f"Fewer than {FEWEST} datasets cannot show that this is more than chance."
    p = ranking.pairs.pair(best, second).p_holm
    beaten = sum(ranking.pairs.sign(best, other, holm=True) == "+" for other in ranking.by_rank[1:])
    return first, (
        f"The lead over the second is {'' if p < ALPHA else 'not '}significant at {ALPHA:g} (Wilcoxon with "
        f"Holm, p = {p_text(p)}); over {beaten} of the {len(ranking.ranks) - 1} others it is."
    )


def friedman_sentence(ranking: Ranking, what: str) -> tuple[str, ...]:
    """Say what Friedman's test finds, if it can be run."""
    f = ranking.friedman
    if f is None:
        return ()
    return (
        f"Friedman's test, {what}: chi-square {f.statistic:.2f}, p = {p_text(f.p_value)}, "
        f"{f.n_methods} methods, {f.n_datasets} datasets.",
    )


def notes(summary: Summary) -> tuple[str, ...]:
    """Say what was left out, and where results are not on equal terms."""
    found = []
    if summary.n_not_shown:
        found.append(
            f"{plural(summary.n_not_shown, 'record')} not shown: where a method has several on a dataset, "
            "the one that succeeded, then the one of the most configurations and seeds, then the latest is."
        )
    listed = ", ".join(f"{plural(n, 'configuration')} and {plural(k, 'seed')}" for n, k in summary.extents)
    if len(summary.extents) > 1:
        found.append(
            f"Cells were searched to different extents: {listed}. Their figures are not on equal terms."
        )
    elif listed:
        found.append(f"Every cell was searched to the same extent: {listed}.")
    if mixed := [dataset for dataset, checksums in summary.checksums.items() if len(checksums) > 1]:
        found.append(f"Methods saw different data or partitions of the same name: {', '.join(mixed)}.")
    return tuple(found)
