"""Splits of a user's own rows: by chance, by groups, or forward in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from .data import Task

Rows = tuple[np.ndarray, np.ndarray]  # the places of training and test rows


def split_rows(
    y: np.ndarray, task: Task, cv: Any, groups: np.ndarray | None, time: np.ndarray | None, seed: int
) -> list[Rows]:
    """Return the places of training and test rows of every split.

    A number of splits is drawn at random, with the classes in their shares; with `groups` no group is on both
    sides of a split, and with `time` every split tests rows that are later than all its training rows.
    """
    if time is not None:
        return list(_forward(time, cv, groups))
    if isinstance(cv, int):
        classes = task == "classification"
        if groups is not None:
            kind: Any = StratifiedGroupKFold if classes else GroupKFold
        else:
            kind = StratifiedKFold if classes else KFold
        splitter = kind(cv, shuffle=True, random_state=seed)
    else:
        splitter = check_cv(cv, y, classifier=task == "classification")
    return [(train, test) for train, test in splitter.split(np.zeros((len(y), 1)), y, groups)]


def _forward(time: np.ndarray, cv: Any, groups: np.ndarray | None) -> Iterator[Rows]:
    """Cut the rows into cv + 1 stretches of time of about as many rows, and test each but the first."""
    if not isinstance(cv, int):
        raise ValueError(f"With time, cv must be a number of splits, got {cv!r}.")
    moments, moment = np.unique(time, return_inverse=True)  # rows of one moment stay together
    begin = np.concatenate([[0], np.cumsum(np.bincount(moment))[:-1]])  # rows before each moment
    stretch = (begin * (cv + 1) // len(time))[moment]
    found = np.unique(stretch)
    if len(found) < cv + 1:
        raise ValueError(
            f"{cv} splits forward in time need {cv + 1} stretches of about equally many rows, but the "
            f"{len(moments)} moments of time give {len(found)}; ask for fewer splits."
        )
    for k in found[1:]:
        train, test = np.flatnonzero(stretch < k), np.flatnonzero(stretch == k)
        if groups is not None:  # a group that is tested is not known from before
            train = train[~np.isin(groups[train], groups[test])]
            if not len(train):
                raise ValueError(
                    f"Every group before stretch {k} of time is tested in it, so no row is left to train "
                    "with; drop groups or time, or ask for fewer splits."
                )
        yield train, test
