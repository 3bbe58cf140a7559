"""What the benchmarks share: a small size that takes seconds, and a good end where something is missing.

`--small` on the command line of a benchmark asks for tiny tables and few repeats: its figures say nothing,
but it runs. The tests run all benchmarks so.
"""

import importlib.util
import sys
from typing import NoReturn

SMALL = "--small" in sys.argv
if SMALL:
    sys.argv.remove("--small")  # the benchmark reads the rest


def stop(reason: str) -> NoReturn:
    """End well, with one line that says why nothing is measured."""
    print(f"Nothing is measured: {reason}")
    sys.exit(0)


def need(*packages: str) -> None:
    """Stop if a package is not installed."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            stop(f"the package {package} is not installed.")


def need_gpu() -> None:
    """Stop if there is no CUDA device."""
    need("torch")
    import torch

    if not torch.cuda.is_available():
        stop("there is no CUDA device.")
