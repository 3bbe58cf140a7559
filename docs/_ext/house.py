"""The order of the examples, and small repairs of what Sphinx reads."""

import re
from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.ext import autosummary
from sphinx.ext.autosummary import extract_summary

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDER = (
    "plot_frame",
    "plot_portfolio",
    "plot_calibration",
    "plot_imbalanced",
    "plot_regression",
    "plot_tuning",
    "plot_layers",
    "plot_importance",
    "plot_early_stop",
    "plot_stream",
    "plot_forget",
    "plot_deployment",
    "plot_gpu",
    "plot_blocks",
)


class ExampleOrder:
    """Sort examples as a reader would meet them; an example without a place comes last."""

    def __init__(self, _folder: str) -> None:
        pass

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of an example."""
        name = filename.removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def unlink(_app: Sphinx, _what: str, _name: str, thing: object, _options: object, lines: list[str]) -> None:
    """Keep the words of scikit-learn's references: methods that are inherited point to pages of its site."""
    if (getattr(thing, "__module__", None) or "").startswith("sklearn."):
        lines[:] = [re.sub(r":(?:ref|doc|term):`([^`<]*?)(?:\s*<[^>]+>)?`", r"\1", line) for line in lines]


def whole_summary(lines: Sequence[str], settings: object) -> str:
    """Return the first sentence of a docstring; the dots of "1, 2, ..." do not end it."""
    return extract_summary([line.replace("...", "\N{HORIZONTAL ELLIPSIS}") for line in lines], settings)


def name_thumbnails(_app: Sphinx, page: nodes.document) -> None:
    """Give the small pictures of the gallery a text: the title of their example."""
    for image in page.findall(nodes.image):
        name = re.search(r"sphx_glr_(\w+)_thumb\.png$", image["uri"])
        if name and not image.get("alt"):
            image["alt"] = (EXAMPLES / f"{name[1]}.py").read_text().splitlines()[1]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect them. Pages may be read and written side by side."""
    app.connect("autodoc-process-docstring", unlink)
    autosummary.extract_summary = whole_summary
    app.connect("doctree-read", name_thumbnails)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
