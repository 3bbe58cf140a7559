"""The version of the package, apart from the public names, so that every module can name it."""

__version__ = "0.1.0"
