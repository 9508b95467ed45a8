"""The live page of a run, in a real browser: it shows what the run knows, and follows it."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from consenso.deployment.status import LiveStatus, StatusPort

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture
def live():
    status = LiveStatus(
        role="server",
        name="server",
        run="ab" * 32,
        rounds=40,
        delta=1e-5,
        simulation=False,
        budget={"eavesdropper": 1.5, "server": 1.5, "public": "inf"},
    )
    port = StatusPort(0)
    port.show(status)
    yield status, port.port
    port.close()


def ask(port, accept="*/*", host=None):
    headers = {"Accept": accept} | ({} if host is None else {"Host": host})
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        return error.code, None


def test_browsers_get_a_page_programs_get_json_and_strangers_nothing(live):
    _, port = live
    assert ask(port) == (200, "application/json")
    assert ask(port, "text/html,*/*") == (200, "text/html; charset=utf-8")
    assert ask(port, host="evil.example")[0] == 421


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
def test_the_page_follows_the_run(live):
    from playwright.sync_api import sync_playwright

    status, port = live
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        try:
            page = browser.new_page(viewport={"width": 390, "height": 800})
            page.goto(f"http://127.0.0.1:{port}/")
            status.note_presence("clinic-a", True)
            status.note_presence("clinic-b", False)
            status.note_round(3, missing=("clinic-b",))
            page.wait_for_function("() => document.getElementById('done').textContent === '3 of 40'")
            # Read at once: the page draws its tables anew all the time.
            cells = "id => [...document.querySelectorAll(id + ' tr')].map(r => [...r.cells].map(c => c.textContent))"
            assert page.evaluate(cells, "#parties") == [["clinic-a", "there", "0"], ["clinic-b", "away", "1"]]
            assert page.locator("#rounds").get_attribute("value") == "3"
            assert dict(page.evaluate(cells, "#budget")) == {
                "who sees every message, the server": "1.5",
                "readers of the model": "none",
            }
            status.set_state("ended")
            page.wait_for_function("() => document.getElementById('left').textContent === 'done'")
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        finally:
            browser.close()
