"""The command `edrvfl bench report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import options, show


def write_page(
    store: options.Store = options.STORE,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path("report.html"),
    format: Annotated[
        Literal["html", "md", "csv"] | None, typer.Option(show_default="by the ending of --out")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write every figure there too, as SVG and CSV.")
    ] = None,
) -> int:
    """Write what the store holds as a page to read."""
    from edrvfl.bench.report import write_report  # matplotlib is slow to import

    show.put(*map(str, write_report(store, out, format, figures_folder=figures)))
    return 0
