"""Photograph the built site, and list what its pages ask of other hosts, which must be nothing.

`python docs/make_site_screenshots.py [FOLDER]` opens docs/_build/html from the disk in Chromium without a
window and photographs some of its pages into FOLDER, by default docs/_build/screenshots, at 1280 and 390
pixels, light and dark. It needs selenium, which the extra `test` brings, and Chromium with its driver.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from pathlib import Path

from make_screenshots import open_browser
from selenium import webdriver

BUILT = Path(__file__).parent / "_build" / "html"
PAGES = {
    "home": "index.html",
    "guide": "guide/frames.html",
    "gallery": "gallery/index.html",
    "example": "gallery/plot_early_stop.html",
    "api": "generated/edrvfl.EDRVFLPortfolioClassifier.html",
    "method": "method.html",
    "compare": "compare.html",
}
SIZES = {1280: 900, 390: 844}


def photograph(browser: webdriver.Chrome, page: Path, width: int, scheme: str) -> tuple[bytes, int]:
    """Return the first two screens as PNG, and by how many pixels the page is wider than its window."""
    size = {"width": width, "height": 2 * SIZES[width], "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(page.resolve().as_uri())
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    too_wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"]), too_wide


def asked_elsewhere(browser: webdriver.Chrome) -> set[str]:
    """Return the addresses that were asked since the last call and are not on this disk."""
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    return {url for url in asked if not url.startswith(("file:", "data:", "blob:", "chrome", "about:"))}


def main(folder: Path = BUILT.parent / "screenshots") -> None:
    """Write all pictures; fail if a page asks another host or is wider than its window."""
    folder.mkdir(parents=True, exist_ok=True)
    complaints = []
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile, {"goog:loggingPrefs": {"performance": "ALL"}})
        try:
            for name, page in PAGES.items():
                for width in SIZES:
                    for scheme in ("light", "dark"):
                        picture, too_wide = photograph(browser, BUILT / page, width, scheme)
                        (folder / f"{name}-{width}-{scheme}.png").write_bytes(picture)
                        if too_wide > 0:
                            complaints.append(f"{page} at {width} pixels is {too_wide} too wide")
                complaints += [f"{page} asks {url}" for url in sorted(asked_elsewhere(browser))]
        finally:
            browser.quit()
    print(folder)
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
