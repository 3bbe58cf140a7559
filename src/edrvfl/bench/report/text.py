"""The page as Markdown, as LaTeX, and its results as CSV."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from ..figures import one_line
from . import page as pages
from .page import Page
from .templating import fill_template

# What LaTeX would not print as it is. A bracket after the end of a row would be its optional argument.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",
        "]": "{]}",
        '"': r"\textquotedbl{}",
        "±": r"$\pm$",
        "·": r"$\cdot$",
        "*": r"$\ast$",
        "…": r"\dots{}",
        **{letter: "\\" + letter for letter in "&%$#_{}"},
    }
)


def markdown_text(page: Page) -> str:
    """Render the page as Markdown."""
    return fill_template("report.md", page, escape_markdown)


def latex_text(page: Page) -> str:
    """Render the page as LaTeX."""

    def letters(columns: Sequence[str]) -> str:
        return "l" + "r" * (len(columns) - 1)  # the first column to the left, numbers to the right

    return fill_template("report.tex", page, escape_latex, letters=letters)


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


def escape_latex(value: object) -> str:
    r"""Write a text so that LaTeX shows it as it is, on one line.

    Examples
    --------
    >>> print(escape_latex("50 % of edRVFL_O"))
    50 \% of edRVFL\_O
    """
    return one_line(str(value)).translate(_LATEX)
