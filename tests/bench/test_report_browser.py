"""The report as a reader meets it: in Chromium, without a window."""

import json
import re
import shutil
from pathlib import Path

import pytest
from report_samples import (
    DATASETS,
    FAMILY,
    HOSTILE,
    a_result,
    a_sensitivity,
    a_timing,
    some_curves,
    some_results,
)

from edrvfl.bench.comparison import average_ranks, means
from edrvfl.bench.report.html import html_text
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.study import Study
from edrvfl.bench.report.summary import summarise

selenium = pytest.importorskip("selenium", reason="the browser tests need selenium")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver was found")

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1100,900"
)
PICTURES = 9


@pytest.fixture(scope="module")
def summary():
    results = [r for r in some_results() if (r.dataset, r.method) != ("adult", "PedRVFL")]
    results.append(a_result("PedRVFL", "adult", status="failed", message=HOSTILE))
    results += [a_result(HOSTILE, d, 85) for d in DATASETS[:20]]
    return summarise(Study(tuple(results), some_curves(), a_sensitivity(), a_timing()))


@pytest.fixture(scope="module")
def address(summary, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html_text(make_page(summary)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, address):
    for kind in ("browser", "performance"):
        browser.get_log(kind)  # forget what was before
    browser.get(address)
    from selenium.webdriver.support.ui import WebDriverWait

    # a busy machine parses a page of megabytes after `get` returned
    WebDriverWait(browser, 30).until(lambda _: len(find(browser, "figure svg")) == PICTURES)
    return browser


def find(page, selector):
    return page.find_elements("css selector", selector)


def texts(page, selector):
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(e => !e.hidden).map(e => e.textContent)",
        selector,
    )


def column(page, table, j):
    rows = "[...document.querySelectorAll(`#${arguments[0]} tbody tr`)]"
    return page.execute_script(
        f"return {rows}.map(r => r.cells[arguments[1]].dataset.value ?? null)", table, j
    )


def test_no_error_and_no_request(page):
    assert page.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert asked
    assert all(url.startswith(("file:", "data:")) for url in asked)


def test_the_shipped_report_of_the_real_study(browser):
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get((Path(__file__).parents[2] / "results" / "report.html").as_uri())
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file:", "data:")) for url in asked)
    pictures = find(browser, "figure svg")
    assert len(pictures) >= PICTURES
    assert all(picture.accessible_name for picture in pictures)


def test_hostile_names_are_text(page):
    heads = texts(page, "#table-accuracy-strict thead th")
    assert heads[-1].startswith("<script>alert(1)</script>|$x_1$")
    assert len(find(page, "script")) == 1
    assert not find(page, "main script, header script")


def test_a_click_sorts_and_says_so(page):
    head = find(page, "#table-accuracy-strict thead th")[1]
    assert head.get_attribute("aria-sort") is None
    page.execute_script("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", head)
    head.find_element("css selector", "button").click()
    values = [float(v) for v in column(page, "table-accuracy-strict", 1)]
    assert values == sorted(values, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    assert texts(page, "#said") == ["Sorted by edRVFL_O, descending."]
    names = texts(page, "#table-accuracy-strict tfoot th")
    assert names == ["mean", "average rank"]


def test_the_keyboard_sorts_and_what_is_missing_stays_last(page):
    j = 1 + FAMILY.index("PedRVFL")
    head = find(page, "#table-accuracy-strict thead th")[j]
    button = head.find_element("css selector", "button")
    for order, reverse in (("descending", True), ("ascending", False)):
        button.send_keys("\ue007")  # Enter
        assert head.get_attribute("aria-sort") == order
        values = column(page, "table-accuracy-strict", j)
        assert values[-1] is None
        numbers = [float(v) for v in values[:-1]]
        assert numbers == sorted(numbers, reverse=reverse)
    assert len(find(page, "#table-accuracy-strict th[aria-sort]")) == 1


def test_p_values_sort_as_numbers(page):
    button = find(page, "#table-published-p thead th button")[1]
    page.execute_script("arguments[0].click()", button)
    values = [float(v) for v in column(page, "table-published-p", 1)]
    assert values == sorted(values, reverse=True)


def test_choosing_methods_hides_them_and_means_and_ranks_follow(page, summary):
    def foot(row):
        return texts(page, f"#table-accuracy-strict tfoot tr:nth-child({row}) td")

    before = foot(1), foot(2), texts(page, "[data-common]")
    boxes = {box.get_attribute("value"): box for box in find(page, "#choose input")}
    assert list(boxes) == [*FAMILY, HOSTILE]
    hidden = (HOSTILE, "PedRVFL", "edRVFL_N")
    for name in hidden:
        page.execute_script("arguments[0].click()", boxes[name])
    shown = [m for m in FAMILY if m not in hidden]
    assert texts(page, "#table-accuracy-strict thead th") == ["dataset", *shown]
    scores = summary.strict.scores[shown]
    assert len(scores.dropna()) == 24 > len(summary.strict.common)
    assert foot(1) == [f"{means(scores)[m]:.2f}" for m in shown]
    assert foot(2) == [f"{average_ranks(scores)[m]:.2f}" for m in shown]
    expected = "Means and ranks are over the 24 datasets that all 3 methods shown have."
    assert texts(page, "[data-common='table-accuracy-strict']") == [expected]
    assert not any("PedRVFL against edRVFL_N" in t for t in texts(page, "#table-pairs-strict tbody tr"))
    assert texts(page, "#said") == ["3 of 6 methods shown."]
    for name in hidden:
        page.execute_script("arguments[0].click()", boxes[name])
    assert (foot(1), foot(2), texts(page, "[data-common]")) == before
    assert page.get_log("browser") == []


def test_ranks_in_the_page_are_those_of_the_summary(page, summary):
    boxes = find(page, "#choose input")
    page.execute_script("arguments[0].click()", boxes[-1])  # without the last: five methods
    scores = summary.strict.scores[list(FAMILY)]
    found = texts(page, "#table-accuracy-strict tfoot tr:nth-child(2) td")
    assert found == [f"{rank:.2f}" for rank in average_ranks(scores).values()]


def test_everything_has_an_accessible_name(page):
    pictures = find(page, "svg")
    assert len(pictures) == PICTURES
    for picture in pictures:
        assert picture.aria_role in ("image", "img")
        assert len(picture.accessible_name) > 20
    for selector in ("table", "button", "input", "nav", "section", ".scroll"):
        found = [e for e in find(page, selector) if e.is_displayed()]
        assert found
        assert all(element.accessible_name for element in found), selector


def test_every_figure_can_be_taken_along(page):
    links = [a.get_attribute("href") for a in find(page, "figure a[download]")]
    assert len(links) == 2 * PICTURES
    script = "return Promise.all(arguments[0].map(u => atob(u.split(',')[1]).slice(0, 9)))"
    starts = page.execute_script(script, links)
    assert all(s.startswith("<?xml") for s in starts[1::2])
    assert not any("<" in s for s in starts[::2])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(page, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def luminance(selector, name):
        script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        rgb = [int(v) / 255 for v in re.findall(r"\d+", page.execute_script(script, selector, name))[:3]]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    paper = luminance("body", "backgroundColor")
    assert (paper < 0.1) is (scheme == "dark")
    for selector in ("body", "a", ".note", ".agrees", ".missing"):
        light, dark = sorted((luminance(selector, "color"), paper), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, selector
    light, dark = sorted(
        (luminance(".differs", "color"), luminance(".differs", "backgroundColor")), reverse=True
    )
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_phone_scrolls_tables_not_the_page(page, address):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.get(address)
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
