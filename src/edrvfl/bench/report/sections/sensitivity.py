"""Section 5.5 of the paper: what weighting and pruning do to accuracy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...figures import sensitivity_figure
from ...sensitivity import NEUTRAL, SYMBOLS, Sensitivity
from ..page import EMPTY, Grid, GridRow, Picture, Section, number_cell, signed_cell, text_cell, verdict_cell
from ..sentences import count
from ..sentences_experiments import effects, sensitivity_sentences
from ..summary import Summary


def show_sensitivity(s: Summary) -> Section | None:
    """Show the curves of omega_r and of p, and compare them with the paper's text."""
    result = s.sensitivity
    if result is None:
        return None
    settings = ", ".join(f"{key} = {value}" for key, value in result.settings.items())
    text = [
        f"Section 5.5 of the paper, with its fixed settings ({settings}) and "
        f"{count(result.seeds, 'hidden seed')}; mean over the splits, bands of one standard deviation over "
        "the seeds. The paper does not name its activation; where training accuracy is 100 %, weighting has "
        "nothing to act on. The paper's figures are not in its source, so the comparison is with its text. A "
        "change is called clear beyond two standard errors, paired by seed; the best value is found on test "
        "rows, so gains are flattered."
    ]
    measured = [parameter for parameter in NEUTRAL if result.curves(parameter)]
    text += [" ".join(sensitivity_sentences(result, parameter)) for parameter in measured]
    return Section(
        "sensitivity",
        "Effects of weighting and pruning (section 5.5)",
        tuple(text),
        pictures=tuple(_curves(result, parameter) for parameter in measured),
        grids=tuple(_effects_grid(result, parameter) for parameter in measured),
    )


def _curves(result: Sensitivity, parameter: str) -> Picture:
    rows = []
    for (dataset, activation), points in result.curves(parameter).items():
        for point in points:
            by_seed = point.by_seed
            sd = float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else np.nan
            scores = (float(np.mean(by_seed)), sd, point.train_accuracy)
            rows.append((dataset, activation, point.value, *(round(score, 4) for score in scores)))
    columns = ["dataset", "activation", SYMBOLS[parameter], "test_accuracy", "sd", "train_accuracy"]
    return Picture(
        f"sensitivity_{parameter}",
        f"Test accuracy in percent as {SYMBOLS[parameter]} varies",
        "Bands of one standard deviation over the seeds; a panel for each dataset.",
        pd.DataFrame(rows, columns=columns),
        sensitivity_figure,
    )


def _effects_grid(result: Sensitivity, parameter: str) -> Grid:
    rows = []
    for e in effects(result, parameter):
        cells = (
            text_cell(e.activation),
            number_cell(e.best_value),
            signed_cell(e.gain, e.gain_error),
            signed_cell(e.last_change, e.last_error),
            number_cell(e.train_accuracy),
            text_cell(e.verdict),
            text_cell(e.paper),
            EMPTY if e.agrees is None else verdict_cell(differs=not e.agrees),
        )
        rows.append(GridRow(e.dataset, cells))
    symbol = SYMBOLS[parameter]
    columns = (
        "dataset",
        "activation",
        f"best {symbol}",
        "gain in points ± standard error",
        "change at the last value",
        "training accuracy",
        "measured",
        "paper's text",
        "verdict",
    )
    return Grid(f"effects-{parameter}", f"What {symbol} does", columns, tuple(rows))
