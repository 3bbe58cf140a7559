"""The page "Answers in a browser", in Chromium: the model answers there as it does in Python."""

import functools
import importlib
import json
import re
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="the browser tests need selenium")
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

DOCS = Path(__file__).parents[1] / "docs"
BROUGHT = DOCS / "_build" / "extra" / "browser"
BROWSER, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver was found")
needs_runtime = pytest.mark.skipif(
    not (BROUGHT / "ort-wasm-simd-threaded.wasm").exists(),
    reason="`make docs` has not brought onnxruntime-web",
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path):
    """Serve the page's own HTML and script, as the site does, from a folder that a test may fill."""
    (body,) = re.findall(r"```\{raw\} html\n(.*?)```", (DOCS / "browser.md").read_text(), re.DOTALL)
    (tmp_path / "index.html").write_text(f"<!DOCTYPE html><meta charset='utf-8'>{body}")
    (tmp_path / "_static").mkdir()
    shutil.copy(DOCS / "_static" / "browser.js", tmp_path / "_static")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    flags = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run"
    for flag in (*flags.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def ask(browser, script):
    return browser.execute_script(f"return {script}")


@needs_chromium
@needs_runtime
def test_the_model_answers_there_as_in_python(browser, site):
    folder, address = site
    (folder / "browser").symlink_to(BROUGHT)
    browser.get_log("performance")  # forget what was before
    browser.get(address)
    said = "document.getElementById('guest-said')"
    WebDriverWait(browser, 60).until(
        lambda b: ask(b, f"{said}.dataset.yes ?? {said}.dataset.failed") is not None
    )
    first = float(ask(browser, f"{said}.dataset.yes"))
    assert float(ask(browser, "document.getElementById('guest-checked').dataset.farthest")) < 1e-5
    assert f"{100 * first:.1f} %" in ask(browser, f"{said}.textContent")
    young = "const f = document.getElementById('guest'); f.age.value = 20; f.rating.value = 1"
    browser.execute_script(f"{young}; f.dispatchEvent(new Event('input'))")
    WebDriverWait(browser, 30).until(lambda b: float(ask(b, f"{said}.dataset.yes")) < first - 0.3)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert any(url.endswith(".wasm") for url in asked)
    assert [url for url in asked if not url.startswith((address, "data:", "blob:", "chrome", "about:"))] == []


@needs_chromium
@pytest.mark.parametrize(
    ("there", "words"), [(False, "without the model"), (True, "without onnxruntime-web")]
)
def test_a_page_that_lacks_something_says_so(browser, site, there, words):
    folder, address = site
    if there:
        (folder / "browser").mkdir()
        (folder / "browser" / "guests.json").write_text("{}")
    browser.get(address)
    said = "document.getElementById('guest-said')"
    WebDriverWait(browser, 30).until(lambda b: ask(b, f"{said}.dataset.failed") is not None)
    assert f"built {words}" in ask(browser, f"{said}.textContent")


def test_without_npm_the_runtime_is_missed_and_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    maker = importlib.import_module("make_browser")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert maker.fetch_runtime(tmp_path) == "npm is not installed"
    fake = tmp_path / "npm"  # another package under the same name
    fake.write_text("#!/bin/sh\n: > onnxruntime-web-1.30.0.tgz\n")
    fake.chmod(0o755)
    with pytest.raises(SystemExit, match=r"expected q0y\+JrrtukXSzs.* Do not use it"):
        maker.fetch_runtime(tmp_path)
    for name in maker.RUNTIME:
        (tmp_path / name).touch()
    assert maker.fetch_runtime(tmp_path) is None  # what is there is not fetched again
