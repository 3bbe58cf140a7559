"""Where a fit computes: NumPy on the processor, or torch tensors on a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import sklearn


@contextmanager
def arrays_on(device: str, *arrays: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """Move arrays to a device: they stay NumPy for "cpu" and become torch tensors otherwise."""
    if device == "cpu":
        yield arrays
        return
    import torch

    with sklearn.config_context(array_api_dispatch=True):  # asks for SCIPY_ARRAY_API=1 in the environment
        yield tuple(torch.asarray(array, device=device) for array in arrays)


def to_host(array: Any) -> np.ndarray:
    """Return an array of any library as NumPy."""
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def check_device(device: str) -> None:
    """Raise an error if a device is not there: better once before the run than in every record."""
    if device == "cpu":
        return
    try:
        import torch
    except ImportError as error:
        raise ValueError(f"device {device!r} needs torch: pip install 'edrvfl[torch]' ({error}).") from error
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device {device!r}: torch sees no CUDA device here; take device 'cpu'.")


@cache
def device_name(device: str) -> str:
    """Name the device and, if it is a GPU, its model."""
    if not device.startswith("cuda"):
        return device
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if torch.cuda.is_available() else device
