"""Photograph the report: its first screen as report-1280.png, report-390.png and report-dark.png, and the
panel of a dataset as report-dataset.png.

`python docs/make_screenshots.py [REPORT [FOLDER]]` takes `results/report.html` and writes into `docs` unless
others are named. It needs selenium, which the extra `test` brings, and Chromium with its driver.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[1]
SCREENS = {  # name: width, height, colour scheme, place
    "report-1280": (1280, 800, "light", ""),
    "report-390": (390, 844, "light", ""),
    "report-dark": (1280, 800, "dark", ""),
    "report-dataset": (1280, 800, "light", "#caption-dataset-wine-quality-white"),
}
FLAGS = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run"


def open_browser(profile: str, capabilities: dict[str, object] | None = None) -> webdriver.Chrome:
    """Start Chromium without a window."""
    options = webdriver.ChromeOptions()
    for name, value in (capabilities or {}).items():
        options.set_capability(name, value)
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def photograph(
    browser: webdriver.Chrome, report: Path, width: int, height: int, scheme: str, place: str
) -> bytes:
    """Return the screen at a place of the page, or the first one, as PNG."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}  # the page jumps to a place
    media = {"features": [{"name": name, "value": value} for name, value in wishes.items()]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get("about:blank")  # or a place on the same page would not be found anew
    browser.get(report.resolve().as_uri() + place)
    # the page's script is its end, and makes buttons of the heads
    ready = (
        "return document.readyState === 'complete' && !!document.querySelector('#table-standing th button')"
    )
    WebDriverWait(browser, 30).until(lambda b: b.execute_script(ready))
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"])


def main(report: Path = ROOT / "results" / "report.html", folder: Path = ROOT / "docs") -> None:
    """Write all screens."""
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            for name, screen in SCREENS.items():
                path = folder / f"{name}.png"
                path.write_bytes(photograph(browser, report, *screen))
                print(path)
        finally:
            browser.quit()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
