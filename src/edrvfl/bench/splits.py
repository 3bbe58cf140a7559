"""Splits of a user's own rows: by chance, by groups, or forward in time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from .data import Task
from .names import listing, plural

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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # `check_splits` says what matters
        return [(train, test) for train, test in splitter.split(np.zeros((len(y), 1)), y, groups)]


def check_splits(parts: Sequence[Rows], y: np.ndarray, classes: Sequence[str]) -> None:
    """Refuse splits that train with one class alone, and warn of classes that are tested without training."""
    counts = np.bincount(y, minlength=len(classes))

    def words(codes: np.ndarray) -> str:
        return listing([f"{classes[code]!r} ({plural(int(counts[code]), 'row')})" for code in codes])

    unseen = []
    for i, (train, test) in enumerate(parts, 1):
        seen = np.unique(y[train])
        if len(seen) < 2:
            others = np.setdiff1d(np.arange(len(classes)), seen)
            raise ValueError(
                f"Split {i} of {len(parts)} trains with class {classes[seen[0]]!r} alone, and without "
                f"{words(others)}; a classifier needs two classes. Add rows of the rare class, join it with "
                "another, or ask for other splits."
            )
        unseen.append(np.setdiff1d(y[test], seen))
    if len(codes := np.unique(np.concatenate(unseen))):
        warnings.warn(
            f"There are splits that test rows of class {words(codes)} and train with none: every method is "
            "wrong there, at the highest log-loss. Leave such a class out, or join it with another.",
            stacklevel=3,
        )


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
