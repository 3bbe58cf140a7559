import re
import xml.etree.ElementTree as ET

import pytest
from test_figures import TABLES

from edrvfl.bench import svg
from edrvfl.bench.figures import look


@pytest.mark.parametrize("name", TABLES)
def test_every_figure_becomes_a_file_and_an_element(name):
    draw, table = TABLES[name]
    figure = draw(table)
    ET.fromstring(svg.to_svg(figure))
    inline = svg.to_inline_svg(figure, "key", 'A "name" <b>', "About & so on")
    root = ET.fromstring(inline)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A "name" <b>. About & so on'
    assert [child.text for child in root[:2]] == ['A "name" <b>', "About & so on"]
    assert root.get("width") is root.get("height") is None
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert all(i.startswith("key-") for i in ids)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', inline)) <= set(ids)
    assert "<script" not in inline
    assert "<style" not in inline
    assert look.INK not in inline
    assert "currentColor" in inline


def test_a_figure_is_the_same_file_every_time():
    draw, table = TABLES["depth"]
    figure = draw(table)
    assert svg.to_svg(figure) == svg.to_svg(figure) == svg.to_svg(draw(table))


def test_letters_of_any_script_stay_letters():
    draw, table = TABLES["Chinese"]
    assert "数据" in svg.to_svg(draw(table))
