"""Run the first block of a document outside of the repository, with the package that is installed.

`python docs/run_first_block.py README.md`. The block must not find the sources that lie beside the document.
"""

import os
import re
import sys
import tempfile
from pathlib import Path


def main(document: Path) -> None:
    """Run the block in an empty folder; fail if the package came from the sources."""
    block = re.search(r"```python\n(.*?)```", document.read_text(), re.DOTALL)[1]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(block, document.name, "exec"), {})
    import edrvfl

    if Path(edrvfl.__file__).is_relative_to(document.parent / "src"):
        sys.exit(f"The package was found among the sources, in {edrvfl.__file__}.")
    print(edrvfl.__version__, edrvfl.__file__)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
