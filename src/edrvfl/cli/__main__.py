"""`python -m edrvfl.cli` is the command `edrvfl`."""

import sys

from . import main

if __name__ == "__main__":  # worker processes import this file again, under another name
    sys.exit(main())
