"""The page as Markdown, and its results as CSV."""

from __future__ import annotations

import html
import re

from ..figures import one_line
from . import page as pages
from .page import Page
from .templating import fill_template


def markdown_text(page: Page) -> str:
    """Render the page as Markdown."""
    return fill_template("report.md", page, escape_markdown)


def csv_text(page: Page) -> str:
    """Write one row for each method, dataset and choice."""
    return pages.csv_text(page.results)


def escape_markdown(value: object) -> str:
    r"""Write a text so that Markdown shows it as it is, on one line.

    Examples
    --------
    >>> print(escape_markdown("a|b <i>"))
    a\|b &lt;i&gt;
    """
    # the letters that mean something inside a line: code, emphasis, links, table cells, strike-through, maths
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", html.escape(one_line(str(value)), quote=False))
