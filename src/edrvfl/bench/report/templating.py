"""Fill a template of the report with a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2

from .page import Page


def fill_template(
    name: str, page: Page, escape: Callable[[object], str] | None, **filters: Callable[..., Any]
) -> str:
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
    environment.filters.update(filters)
    return environment.get_template(name).render(page=page)
