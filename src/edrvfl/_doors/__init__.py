"""The estimators: signatures, constraints, docstrings."""
