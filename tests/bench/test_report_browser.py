"""The report as a reader meets it: in Chromium, without a window. One page serves all tests."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import DATASETS, HOSTILE, a_result, full_study

from edrvfl.bench.report.formats import html_text
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.summary import summarise

selenium = pytest.importorskip("selenium", reason="the browser tests need selenium")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver was found")

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,800"
)
STRICT = "#table-accuracy-strict"
OURS = ("edRVFL portfolio", "WPedRVFL", "PedRVFL", "WedRVFL", "edRVFL_N", "edRVFL_O")


@pytest.fixture(scope="module")
def summary():
    study = full_study()
    results = [r for r in study.results if (r.dataset, r.method) != ("adult", "PedRVFL")]
    results.append(a_result("PedRVFL", "adult", status="failed", message=HOSTILE))
    results += [a_result(HOSTILE, d, 85) for d in DATASETS[:20]]
    return summarise(replace(study, results=tuple(results)))


@pytest.fixture(scope="module")
def report(summary):
    return make_page(summary)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.get("about:blank")  # which ends what Chromium's start page still loads
    yield driver
    driver.quit()


def show(browser, width, height, scheme="light"):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


@pytest.fixture(scope="module")
def opened(browser, report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html_text(report), encoding="utf-8")
    show(browser, 1280, 800)
    complaints_and_requests(browser)  # forget what was before
    browser.get(path.as_uri())
    from selenium.webdriver.support.ui import WebDriverWait

    # a busy machine parses a page of megabytes after `get` returned
    wanted = len(report.drawings)
    WebDriverWait(browser, 30).until(lambda _: len(find(browser, "figure svg")) == wanted)
    browser.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
    return browser


@pytest.fixture
def page(opened):
    """The page as it is before anyone did anything, except for the order of rows."""
    show(opened, 1280, 800)
    opened.execute_script(
        "document.querySelector('[data-show=all]').click(); window.scrollTo(0, 0);"
        "document.querySelectorAll('.scroll').forEach(s => s.scrollTo(0, 0))"
    )
    return opened


def find(page, selector):
    return page.find_elements("css selector", selector)


def texts(page, selector):
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(e => !e.hidden).map(e => e.textContent)",
        selector,
    )


def boxes(page, selector):
    """Where elements are in the window: left, top, right, bottom."""
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.top, r.right, r.bottom])",
        selector,
    )


def column(page, table, j):
    """The values that a column is sorted by, without those that are missing, which must stand last."""
    rows = "[...document.querySelectorAll(`${arguments[0]} tbody tr`)]"
    found = page.execute_script(f"return {rows}.map(r => r.cells[arguments[1]].dataset.value)", table, j)
    known = [float(value) for value in found if value is not None]
    assert found[len(known) :] == [None] * (len(found) - len(known))
    return known


def press(page, selector):
    page.execute_script("document.querySelector(arguments[0]).click()", selector)


def after_frames(page, script, *values):
    """Run a script, and wait until the page was drawn: shadows follow when a table has scrolled."""
    wait = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))"
    page.execute_async_script(f"const done = arguments[arguments.length - 1]; {script}; {wait}", *values)


def complaints_and_requests(browser):
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return browser.get_log("browser"), asked


def test_no_error_and_no_request(opened):
    complaints, asked = complaints_and_requests(opened)
    assert complaints == []
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_the_first_screen_has_the_answer_the_table_and_the_figure(page):
    (answer,), (table,), (figure,) = (
        boxes(page, s) for s in (".answer", "#table-standing", "#figure-time_and_accuracy svg")
    )
    assert answer[3] < table[1] < 330
    assert table[2] <= figure[0], "side by side"
    assert figure[3] <= 800
    (frame,) = boxes(page, ".standing .frame")
    assert table[2] <= frame[2], "no column is cut"
    assert sum(row[3] <= 800 for row in boxes(page, "#table-standing tbody tr")) >= 15
    assert page.execute_script("return document.documentElement.scrollWidth") <= 1280


def test_head_row_and_first_column_stay_and_shadows_say_that_there_is_more(page):
    frame = f"document.querySelector('{STRICT}').closest('.frame')"

    def sides():
        return page.execute_script(
            f"return ['left', 'right', 'down'].filter(s => {frame}.hasAttribute('data-' + s))"
        )

    after_frames(page, f"{frame}.scrollIntoView()")
    assert sides() == ["right", "down"]
    after_frames(page, f"{frame}.firstElementChild.scrollTo(300, 250)")
    assert sides() == ["left", "right", "down"]
    (around,) = boxes(page, f".frame:has({STRICT})")
    heads, names = boxes(page, f"{STRICT} thead th"), boxes(page, f"{STRICT} tbody th")
    assert all(head[1] == pytest.approx(around[1], abs=1) for head in heads)
    assert all(box[0] == pytest.approx(around[0], abs=1) for box in (heads[0], *names))
    assert names[0][1] < heads[0][3] - 200, "the rows themselves have scrolled"
    assert heads[1][0] < around[0], "and so have the columns"
    left, top, _, bottom = heads[0]
    at = page.execute_script(
        "return document.elementFromPoint(...arguments).textContent", left + 20, (top + bottom) / 2
    )
    assert at.startswith("dataset"), "nothing covers the corner"
    (foot,) = boxes(page, f"{STRICT} tfoot")
    assert foot[3] <= around[3] + 1, "means and ranks are in sight"
    after_frames(page, f"{frame}.firstElementChild.scrollTo(9999, 9999)")
    assert sides() == ["left"]


def test_lines_of_rows_meet(page):
    """Half pixels would let the first column, which is painted apart, cover the lines."""
    script = (
        "return [...document.querySelectorAll('tbody tr')].filter(r => r.offsetParent).map(r => "
        "[r.getBoundingClientRect().height, r.cells[0].getBoundingClientRect().bottom "
        "- r.cells[1].getBoundingClientRect().bottom])"
    )
    rows = page.execute_script(script)
    assert len(rows) > 100
    assert all(height % 1 == 0 and apart == 0 for height, apart in rows)


def test_no_letters_are_too_small(page):
    script = """
    const small = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (!node.data.trim() || !parent.getClientRects().length) continue; // blanks, and what is folded
      if (parent.closest("script, title, desc, .unseen, .skip")) continue;
      const scale = parent.closest("svg") ? Math.hypot(parent.getScreenCTM().a, parent.getScreenCTM().b) : 1;
      const size = scale * parseFloat(getComputedStyle(parent).fontSize);
      if (size < 10) small.push([parent.closest("[id]").id, node.data.trim(), size]);
    }
    return small;
    """
    assert page.execute_script(script) == []


def test_a_click_sorts_and_says_so(page):
    head = find(page, f"{STRICT} thead th")[1]
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", head)
    head.find_element("css selector", "button").click()
    assert column(page, STRICT, 1) == sorted(column(page, STRICT, 1), reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    assert texts(page, "#said") == ["Sorted by edRVFL portfolio, descending."]
    assert texts(page, f"{STRICT} tfoot th") == ["mean", "average rank"]


def test_the_keyboard_sorts_and_what_is_missing_stays_last(page):
    j = 1 + OURS.index("PedRVFL")
    head = find(page, f"{STRICT} thead th")[j]
    button = head.find_element("css selector", "button")
    for order, reverse in (("descending", True), ("ascending", False)):
        button.send_keys("\ue007")  # Enter
        assert head.get_attribute("aria-sort") == order
        values = column(page, STRICT, j)
        assert len(values) == len(DATASETS) - 1
        assert values == sorted(values, reverse=reverse)
    assert len(find(page, f"{STRICT} th[aria-sort]")) == 1


def test_of_small_figures_the_least_come_first(page):
    """P-values sort as numbers, from the largest; log-losses from the best."""
    for table, j, down in (
        ("#table-published-p", 1, True),
        ("#table-standing", 3, False),
        ("#table-standing", 2, False),
    ):
        press(page, f"{table} thead th:nth-child({j + 1}) button")
        assert column(page, table, j) == sorted(column(page, table, j), reverse=down)


def test_choosing_methods_hides_them(page, summary):
    shown = [m for m in summary.standing.scores if m in ("WPedRVFL", "BLS", "HistGradientBoosting, default")]
    boxes = "[...document.querySelectorAll('#choose input')]"
    page.execute_script(
        f"{boxes}.filter(b => !arguments[0].includes(b.value)).forEach(b => b.click())", shown
    )
    assert texts(page, f"{STRICT} thead th") == ["dataset", *shown]
    ranks = [f"{summary.standing.ranks[m]:.2f}" for m in shown]
    assert texts(page, f"{STRICT} tfoot tr:nth-child(2) td") == ranks, "those of all methods"
    assert not any("PedRVFL against edRVFL_N" in t for t in texts(page, "#table-pairs-strict tbody tr"))
    assert texts(page, "#said") == [f"3 of {summary.standing.scores.shape[1]} methods shown."]


def test_buttons_show_the_subject_all_or_none(page, summary):
    every = texts(page, f"{STRICT} thead th")
    assert texts(page, ".buttons button") == ["edRVFL only", "all", "none"]
    gap = f"{STRICT} tfoot .missing"
    assert texts(page, gap)[:2] == ["missing"] * 2, "PedRVFL failed once"
    press(page, "[data-show=subject]")
    assert texts(page, f"{STRICT} thead th") == ["dataset", *OURS]
    assert texts(page, "#table-accuracy-paper thead th") == ["dataset", *OURS[1:]]
    press(page, "[data-show=none]")
    assert texts(page, f"{STRICT} thead th") == ["dataset"]
    assert len(texts(page, "#table-standing tbody tr")) == len(summary.standing.entries), "the summary stays"
    press(page, "[data-show=all]")
    assert texts(page, f"{STRICT} thead th") == every
    assert texts(page, gap)[:2] == ["missing"] * 2
    assert page.get_log("browser") == []


def test_what_is_missing_is_a_sentence_with_a_list_that_unfolds(page):
    assert any("Cells without a figure: 5 of 360 (PedRVFL 1, " in t for t in texts(page, "#missing > p"))
    assert not find(page, "#table-missing")[0].is_displayed()
    press(page, "#missing summary")
    assert find(page, "#table-missing")[0].is_displayed()
    press(page, "#missing summary")


def test_the_name_of_a_dataset_unfolds_its_panel(page):
    opened = "return [...document.querySelectorAll('#datasets details[open] tbody tr')].length"
    assert page.execute_script(opened) == 0
    link = f"{STRICT} tbody th a"
    name = page.execute_script(f"const a = document.querySelector('{link}'); a.click(); return a.textContent")
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 10).until(lambda _: page.execute_script(opened))
    (summary,) = texts(page, "#datasets details[open] summary")
    assert summary.startswith(name)
    width = "return document.querySelector('#datasets details[open] .dots').clientWidth"
    assert page.execute_script(width) > 80
    page.execute_script("document.querySelector('#datasets details[open]').open = false; location.hash = ''")


def test_everything_has_an_accessible_name(page, report):
    assert len(find(page, "figure svg")) == len(report.drawings)
    assert all(svg.get_attribute("aria-label") for svg in find(page, "#table-dataset-adult svg"))
    for selector in (
        "figure svg",
        "#table-standing",
        STRICT,
        "nav",
        "section",
        ".standing .scroll",
        "#choose input",
    ):
        assert all(element.accessible_name for element in find(page, selector)), selector
    assert all(texts(page, "button"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(page, scheme):
    show(page, 1280, 800, scheme)

    def luminance(selector, name):
        script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        rgb = [int(v) / 255 for v in re.findall(r"\d+", page.execute_script(script, selector, name))[:3]]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(selector, on):
        light, dark = sorted((luminance(selector, "color"), luminance(on, "backgroundColor")), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    assert (luminance("body", "backgroundColor") < 0.1) is (scheme == "dark")
    for selector in ("body", "a", ".what", ".note", ".agrees", ".missing", "svg"):
        assert contrast(selector, "body") >= 4.5, selector
    for selector in (".differs", "tr.ours th", "tr.ours td", "thead th", ".buttons button"):
        assert contrast(selector, selector) >= 4.5, selector
    assert contrast(".missing", "tr.ours td") >= 4.5


def test_a_phone_shows_the_answer_first_and_scrolls_tables_not_the_page(page):
    show(page, 390, 844)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    (answer,), (table,), (figure,), (contents,) = (
        boxes(page, s) for s in (".answer", "#table-standing", "#figure-time_and_accuracy", "nav")
    )
    assert answer[3] < 844, "on the first screen"
    assert answer[3] <= table[1]
    assert table[3] <= figure[1]
    assert figure[3] <= contents[1]
    assert boxes(page, "#figure-time_and_accuracy svg")[0][2] <= 390, "the whole figure, with the best"
    after_frames(page, "document.querySelector('.standing .scroll').scrollTo(200, 0)")
    names, figures = (
        boxes(page, "#table-standing tbody th"),
        boxes(page, "#table-standing tbody td:last-child"),
    )
    (around,) = boxes(page, ".standing .scroll")
    assert all(box[0] == pytest.approx(around[0], abs=1) for box in names)
    assert names[0][2] - names[0][0] < 200, "the names leave room for figures"
    assert figures[0][0] < 390, "the last column can be reached"


def test_the_shipped_report_of_the_real_study(browser):
    """The last test, because it leaves the page of the others."""
    complaints_and_requests(browser)  # forget what was before
    browser.get((Path(__file__).parents[2] / "results" / "report.html").as_uri())
    complaints, asked = complaints_and_requests(browser)
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    pictures = find(browser, "figure svg")
    assert len(pictures) >= 7
    assert all(picture.accessible_name for picture in pictures)
