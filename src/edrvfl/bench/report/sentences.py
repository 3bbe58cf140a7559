"""The report's English: what edRVFL is, what was compared, what a choice means, notes on what is unequal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .. import paper
from ..paper import two_digits
from ..scores import CALIBRATION_BINS
from .standing import Standing
from .summary import ChoiceSummary, Summary

TITLE = "edRVFL study"
WHAT = (
    "edRVFL, the ensemble deep random vector functional link network: random hidden layers that are never "
    "trained, a read-out of each in closed form, and their vote."
)
PAPER = (
    "Q. Shi, P. N. Suganthan and R. Katuwal, Weighting and Pruning based Ensemble Deep Random Vector "
    "Functional Link Network for Tabular Data Classification"
)
PAPER_LINK = "https://arxiv.org/abs/2201.05809"
CALIBRATION_ERROR = (
    f"the gap between confidence and accuracy in {CALIBRATION_BINS} bins of equal width of the largest "
    "probability, weighted by their rows"
)

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
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
    >>> p_text(0.5412), p_text(0.0497), p_text(0.000335)
    ('0.54', '0.050', '3.4e-4')
    """
    return f"{p:#.2g}" if p >= 0.001 else two_digits(p)


def points_apart(gap: float) -> str:
    """Write a difference in points: 0.25 points above, 1.00 points below."""
    return f"{abs(gap):.2f} points {'above' if gap > 0 else 'below'}"


def compared(standing: Standing) -> str:
    """Say what was compared, on what, and by which choice."""
    entries = standing.entries.values()
    if not entries:
        return "Nothing was compared: there is no figure yet."
    printed = paper.accuracies()
    papers = sum(e.name in printed for e in entries)
    tuned = sum(e.tuned for e in entries)
    who = []
    if papers:
        every = len(printed.columns)
        who.append(f"{'' if papers == every else f'{papers} of '}the paper's {every} methods")
    if tuned > papers:
        who.append(count(tuned - papers, "other tuned method" if papers else "tuned method"))
    if len(entries) > tuned:
        who.append(f"{len(entries) - tuned} without any search")
    uci = all(d in printed.index for d in standing.datasets)
    where = count(len(standing.datasets), "UCI dataset" if uci else "dataset")
    partitions = ", published partitions" if uci else ""
    strict = "; strict choice (by a split's own validation rows)" if tuned else ""
    n, every = len(standing.ranks), len(entries)
    ranked = f"; {n} of these {every} have all datasets and are ranked" if n < every else ""
    return f"Compared: {', '.join(who)}; {where}{partitions}{strict}{ranked}."


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
