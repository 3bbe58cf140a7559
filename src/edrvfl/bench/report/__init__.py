"""The report: read a study, summarise it, lay out a page, write it as HTML, Markdown or CSV.

`study` reads, `summary` computes plain data, `sections` lay them out as a `page`, `formats` write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..files import check_folder, check_writable, write_into_folder, write_whole
from .formats import csv_text, html_text, markdown_text
from .page import Page
from .sections import make_page
from .study import read_study
from .summary import summarise

__all__ = ["FORMATS", "write_report"]

FORMATS: Mapping[str, Callable[[Page], str]] = {"html": html_text, "md": markdown_text, "csv": csv_text}
SUFFIXES: Mapping[str, str] = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".csv": "csv"}


def write_report(
    store: str | Path, out: str | Path, format: str | None = None, *, figures_folder: str | Path | None = None
) -> list[Path]:
    """Write the report of a store, and return the files that were written.

    The file `out` is replaced as a whole: a failure leaves the file that was there before. Its ending tells
    the format, unless that is named. `figures_folder` gets every figure as SVG, with its data as CSV.
    """
    render = FORMATS[_format_of(Path(out), format)]
    check_writable(out)  # before the work: drawing the figures takes seconds
    if figures_folder is not None:
        check_folder(figures_folder)
    page = make_page(summarise(read_study(store)))
    written = [write_whole(out, render(page))]
    if figures_folder is not None:
        for key, drawing in page.drawings.items():
            for suffix, text in (("svg", drawing.svg), ("csv", drawing.csv)):
                written.append(write_into_folder(figures_folder, f"{key}.{suffix}", text))
    return written


def _format_of(out: Path, format: str | None) -> str:
    chosen = SUFFIXES.get(out.suffix.lower()) if format is None else format
    if chosen is None or chosen not in FORMATS:
        wrong = (
            f"{out.name!r} does not tell the format" if format is None else f"there is no format {format!r}"
        )
        raise ValueError(f"{wrong}; choose one of {', '.join(FORMATS)}.")
    return chosen
