"""The command `edrvfl`. Importing this package needs nothing but edrvfl itself."""

from .main import main

__all__ = ["main"]
