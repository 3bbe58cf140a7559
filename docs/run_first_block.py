"""Run the first block of a document outside of the repository, with the package that is installed.

`python docs/run_first_block.py README.md [PACKAGE ...]`. The block must not find the sources that lie beside
the document. It must do without the packages that are named, as if they were not installed.
"""

import os
import re
import sys
import tempfile
from pathlib import Path


class Missing:
    """Refuse to import some packages, which may be installed."""

    def __init__(self, packages: list[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, *_: object) -> None:
        """Fail for a package that is to be missing; leave all others to Python."""
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named '{name}'")


def main(document: Path, missing: list[str]) -> None:
    """Run the block in an empty folder; fail if the package came from the sources."""
    block = re.search(r"```python\n(.*?)```", document.read_text(), re.DOTALL)[1]
    sys.meta_path.insert(0, Missing(missing))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(block, document.name, "exec"), {})
    import edrvfl

    if Path(edrvfl.__file__).is_relative_to(document.parent / "src"):
        sys.exit(f"The package was found among the sources, in {edrvfl.__file__}.")
    print(edrvfl.__version__, edrvfl.__file__)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
