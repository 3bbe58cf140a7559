"""Load models from files, and let skl2onnx and skops know the estimators: the one table of them."""

from __future__ import annotations

import os
from typing import Any

from .._layers.records import HiddenLayer
from .._leaving.files.models import MAX_BYTES, RECORDS, load_model
from .._leaving.onnx.converters import register
from .._models.guest import GuestModel
from .classifier import EDRVFLClassifier
from .encoder import TabularEncoder
from .kernel import KernelRidgeClassifier, KernelRidgeRegressor
from .portfolio import EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor
from .regressor import EDRVFLRegressor

CLASSIFIERS = (EDRVFLClassifier, KernelRidgeClassifier, EDRVFLPortfolioClassifier)
OTHERS = (EDRVFLRegressor, KernelRidgeRegressor, EDRVFLPortfolioRegressor, TabularEncoder)
ESTIMATORS = {kind.__name__: kind for kind in (*CLASSIFIERS, *OTHERS)}
# What skops must trust to load any of them: ``skops.io.load(file, trusted=list(edrvfl.TRUSTED_TYPES))``.
TRUSTED_TYPES = tuple(
    sorted(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in (*ESTIMATORS.values(), *RECORDS.values(), GuestModel, HiddenLayer)
    )
)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model that `save` wrote.

    Nothing in the file is executed, and a file that was cut or changed is refused. So is one whose parts do
    not make a model, even if its checksum is right: a file may come from anyone. What it says may still be
    wrong, as any model's answers may.

    Parameters
    ----------
    path : str or path-like
        The file.

    max_bytes : int, default=4 GiB
        How large the file may be, and how much memory its hidden weights may take. A small file can ask for
        a wide network, because a seed stands for the weights.

    Returns
    -------
    model : estimator
        The estimator that was saved, with its parameters and fitted attributes; of a search, its best. It
        answers bit for bit as it did, on the same kind of machine.

    Raises
    ------
    ValueError
        If the file is no model, was changed, comes from a later version, or needs more memory.

    Examples
    --------
    >>> import tempfile, pathlib, edrvfl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = edrvfl.EDRVFLClassifier(n_hidden=20, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.edrvfl"
    ...     model.save(path)
    ...     again = edrvfl.load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    return load_model(path, ESTIMATORS, max_bytes)


def register_onnx_converters() -> None:
    """Tell skl2onnx how to convert networks, kernel voters, portfolios and encoders.

    After it `skl2onnx.to_onnx` converts pipelines that hold them. It may be called more than once.

    Examples
    --------
    >>> from edrvfl import register_onnx_converters
    >>> register_onnx_converters()  # doctest: +SKIP
    """
    register(CLASSIFIERS, OTHERS)
