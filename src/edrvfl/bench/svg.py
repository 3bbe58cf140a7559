"""Turn a figure into SVG text: for a file of its own, or for a page."""

from __future__ import annotations

import html
import io
import re

from matplotlib.figure import Figure

from .figures.look import INK, style


def to_svg(figure: Figure, background: str = "white") -> str:
    """Write the figure as the text of an SVG file."""
    text = io.BytesIO()
    with style():
        figure.savefig(text, format="svg", facecolor=background, metadata={"Date": None, "Creator": None})
    # A second layout would move everything by a fraction of a point; file and page should look the same.
    figure.set_layout_engine("none")
    return text.getvalue().decode()


def to_inline_svg(figure: Figure, key: str, name: str, description: str) -> str:
    """Write the figure as an `<svg>` element for a page.

    The element has an accessible name, takes the page's text colour, scales with the page's width, and
    starts its ids with `key`, so that they stay unique when a page shows several figures.
    """
    svg = to_svg(figure, "none")
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")  # an element has no XML declaration
    # matplotlib's metadata says nothing here: date and creator are left out
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # matplotlib's <style> begins with `*`: inside a page it would apply to the whole page
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    for mark in ('id="', 'href="#', "url(#"):
        svg = svg.replace(mark, f"{mark}{key}-")
    opening, _, body = svg.partition(">")
    # a fixed width and height would keep the figure from shrinking on a phone
    opening = re.sub(r' (width|height)="[^"]*"', "", opening)
    looks = "stroke-linejoin:round;stroke-linecap:butt"
    label = f'role="img" aria-label="{html.escape(f"{name}. {description}")}" style="{looks}"'
    names = (
        f"<{tag}>{html.escape(t, quote=False)}</{tag}>" for tag, t in (("title", name), ("desc", description))
    )
    return f"{opening} {label}>{''.join(names)}{body}".strip()
