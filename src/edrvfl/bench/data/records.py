"""What every dataset of the study is: inputs, targets, splits, and a checksum of all of them."""

from __future__ import annotations

import hashlib
import importlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import train_test_split

N_SPLITS = 4
SPLIT_SEED = 0  # seeds the splits that we draw ourselves; the checksum of a dataset depends on it
TEST_SHARE = 0.25  # of all rows
VALIDATION_SHARE = 0.25  # of the training rows, as in section 5.3 of the paper

LATER = "-later"  # ends the name of a frame that is split in time

Task = Literal["classification", "regression"]


class DataError(ValueError):
    """Data are absent, damaged, or not what they should be."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Masks over the rows: fit on `fit`, choose on `validation`, refit on `train`, score on `test`."""

    fit: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    @property
    def train(self) -> np.ndarray:
        return self.fit | self.validation


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Inputs (m, d), targets and splits; `checksum` identifies the values and the splits."""

    name: str
    X: Any  # an array of numbers or, in the groups of frames, a pandas frame; masks choose rows of both
    y: np.ndarray  # class codes 0..k-1, or values as they come
    splits: tuple[Split, ...]
    checksum: str
    classes: tuple[str, ...]  # what the codes stand for; empty if y holds values

    @property
    def task(self) -> Task:
        return "classification" if self.classes else "regression"


@dataclass(frozen=True, slots=True)
class Frame:
    """A row of the table: where a frame is, what is predicted, and what it holds without these columns."""

    package: str  # of R, or one of `SOURCES` in frames.py
    name: str
    target: str
    rows: int  # that have a target
    numbers: int  # columns of numbers
    categories: int  # columns of texts
    missing: int  # cells without a value
    classes: int  # 0 if values are predicted
    drop: tuple[str, ...] = ()  # `rownames` goes always
    noise: float = 0.0  # standard deviation, of a frame that is drawn
    dates: int = 0  # columns of dates
    when: str = ""  # the column of dates whose last quarter is tested; empty if test rows are drawn

    @property
    def task(self) -> Task:
        return "classification" if self.classes else "regression"

    @property
    def features(self) -> int:
        return self.numbers + self.categories + self.dates

    @property
    def item(self) -> str:
        """The name in the package."""
        return self.name.removesuffix(LATER) if self.when else self.name


def make_dataset(name: str, X: Any, y: Any, masks: Any, classes: tuple[str, ...]) -> Dataset:
    """Build the record from inputs, codes and eight 0/1 columns: test of split 0 to 3, then validation."""
    X, y = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(y, dtype=np.int64)
    test, validation = np.split(np.asarray(masks, dtype=bool).T.copy(), 2)
    splits = tuple(Split(~(t | v), v, t) for t, v in zip(test, validation, strict=True))
    digest = hashlib.sha256(repr(X.shape).encode())
    # Little-endian bytes, so that every machine computes the same checksum.
    for part in (X.astype("<f8", copy=False), y.astype("<i8", copy=False), test, validation):
        digest.update(part.tobytes())
    for array in (X, y, *(mask for s in splits for mask in (s.fit, s.validation, s.test))):
        array.flags.writeable = False  # all cells of a study share these arrays
    return Dataset(name, X, y, splits, digest.hexdigest(), classes)


def draw_dataset(name: str, X: Any, y: Any, classes: tuple[str, ...]) -> Dataset:
    """Build the record with splits of our own: stratified draws of test rows, then of validation rows."""
    masks = np.zeros((len(y), 2 * N_SPLITS), dtype=bool)
    for i in range(N_SPLITS):
        seed = SPLIT_SEED + i
        train, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, stratify=y, random_state=seed)
        _, validation = train_test_split(
            train, test_size=VALIDATION_SHARE, stratify=y[train], random_state=seed
        )
        masks[test, i] = masks[validation, N_SPLITS + i] = True
    return make_dataset(name, X, y, masks, classes)


def import_extra(package: str, purpose: str) -> Any:
    """Import a package of the extra `bench`, or say how to install it.

    The demo group works without that extra, so such packages are imported where they are needed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise DataError(
            f"{purpose} needs the package {package}, which comes with the extra `bench`: "
            "pip install 'edrvfl[bench]', or pip install '.[bench]' in a clone"
        ) from error
