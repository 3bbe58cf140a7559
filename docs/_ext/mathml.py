"""Write formulas as MathML, which browsers draw themselves: no script and no font is loaded."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def draw_inline(writer: object, node: nodes.math) -> None:
    """Put a formula into the line."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def draw_block(writer: object, node: nodes.math_block) -> None:
    """Put a formula on a line of its own, with its number as its paper has it if it has one."""
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx that formulas are drawn so."""
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
