"""The page as one HTML file that needs nothing else, as Markdown, and its results as CSV."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Callable

import jinja2

from ..figures.look import one_line
from . import page as pages
from .page import Page

PAPER_LINK = "https://arxiv.org/abs/2201.05809"
WORDS = {  # that every page begins with
    "title": "edRVFL study",
    "what": "edRVFL, the ensemble deep random vector functional link network: random hidden layers that are "
    "never trained, a read-out of each in closed form, and their vote.",
    "paper": "Q. Shi, P. N. Suganthan and R. Katuwal, Weighting and Pruning based Ensemble Deep Random "
    "Vector Functional Link Network for Tabular Data Classification",
    "link": PAPER_LINK,
}


def html_text(page: Page) -> str:
    """Render the page as HTML, and allow its own script, by its hash, and nothing from anywhere else."""
    text = _fill_template("report.html", page, None)
    # the scripts as the browser hashes them: everything between the tags, line breaks included
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    return text.replace("POLICY", policy, 1)


def markdown_text(page: Page) -> str:
    """Render the page as Markdown."""
    return _fill_template("report.md", page, escape_markdown)


def csv_text(page: Page) -> str:
    """Write one row for each method, dataset and choice."""
    return pages.csv_text(page.results)


def escape_markdown(value: object) -> str:
    r"""Write a text so that Markdown shows it as it is, on one line.

    >>> print(escape_markdown("a|b <i>"))
    a\|b &lt;i&gt;
    """
    # the letters that mean something inside a line: code, emphasis, links, table cells, strike-through, maths
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", html.escape(one_line(str(value)), quote=False))


def _fill_template(name: str, page: Page, escape: Callable[[object], str] | None) -> str:
    """Fill a template. Every value passes `escape`; None escapes for HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=escape is None,
        finalize=escape,  # called for every value that is printed, so none is forgotten
        undefined=jinja2.StrictUndefined,  # a misspelt name is an error, not an empty place
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["uri"] = _data_uri
    return environment.get_template(name).render(page=page, words=WORDS)


def _data_uri(text: str, kind: str) -> str:
    """Put a text into a link, so that it can be downloaded from the page itself."""
    return f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
