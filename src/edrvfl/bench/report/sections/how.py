"""What was run and how."""

from __future__ import annotations

from ..page import Section
from ..sentences import MEANINGS, count, notes
from ..summary import Summary


def show_run(s: Summary) -> Section:
    """Say how many cells there are, how a cell is computed, and what the two choices mean."""
    done, failed = s.with_status("ok"), s.with_status("failed")
    rest = len(s.results) - len(done) - len(failed)
    extent = ""
    if len(s.extents) == 1:  # if there are several, the notes say so
        ((n, seeds),) = s.extents
        extent = f" {count(n, 'configuration')} in each search and {count(seeds, 'hidden seed')}."
    text = [
        f"{count(len(s.methods), 'searched method')} on {count(len(s.datasets), 'dataset')}: "
        f"{count(len(done), 'cell')} done, {len(failed)} failed, {rest} missing.{extent}",
        "A cell is one method on one dataset. Every configuration is fitted on a split's fit rows and scored "
        "on its validation rows at every depth; the chosen one is fitted again on fit and validation rows "
        "and scored on the test rows (SNN, MSRAinit, Highway and ResNet hold a tenth of these rows out, to "
        "stop early). A figure is the mean over the splits; mean and standard deviation (±) are over the "
        "hidden seeds, which redraw what is random in a method and nothing else. On a processor a cell runs "
        "on one BLAS thread.",
    ]
    if dates := sorted(r.finished for r in s.finished if r.finished):
        first, last = (date[:16].replace("T", " ") for date in (dates[0], dates[-1]))
        text.append(f"Finished {first} UTC." if first == last else f"Finished from {first} to {last} UTC.")
    items = tuple((f"{name} choice", meaning) for name, meaning in MEANINGS.items())
    return Section("how", "What was run and how", (*text, *notes(s)), items)
