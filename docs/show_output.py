"""Show below the blocks of pages what they print: `python docs/show_output.py README.md docs/start.md ...`.

The blocks of a page run one after another in an empty folder. What a block prints stands in a block of `text`
right below it; a block that prints nothing has none. The tests compare.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)


def run_blocks(text: str, name: str, names: dict[str, object]) -> Iterator[tuple[str, str, str]]:
    """Run the blocks of a page; yield the code of each, what it prints, and what the page shows of it."""
    for block in BLOCK.finditer(text):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(block["code"], name, "exec"), names)
        lines = [line.rstrip() for line in said.getvalue().splitlines()]
        yield block["code"], "".join(f"{line}\n" for line in lines), block["shown"] or ""


def put_output(text: str, name: str) -> str:
    """Return the page with what its blocks print now."""
    outputs = [said for _, said, _ in run_blocks(text, name, {})]

    def written(block: re.Match[str]) -> str:
        said = outputs.pop(0)
        below = f"\n```text\n{said}```\n" if said else ""
        return f"```python\n{block['code']}```\n{below}"

    return BLOCK.sub(written, text)


def main(pages: list[Path]) -> None:
    """Write all pages."""
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            page.write_text(put_output(page.read_text(), page.name))


if __name__ == "__main__":
    main([Path(page).resolve() for page in sys.argv[1:]])
