"""Take the pictures of every page at two widths, in light and dark: `python docs/pictures/take.py`.

It trains the demo, makes a forecast and a comparison, opens the explorer and the live page of a federation, and looks
at all of them with a real browser.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
TALLEST = {1280: 1500, 390: 2200}  # pixels of a picture
COLOURS = 48  # of a picture, which keeps it small


@contextmanager
def open_browser() -> Iterator[Any]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def take(browser: Any, name: str, address: str, ready: str | None = None) -> None:
    """The pictures of one page; `ready` is what must be there before they are taken."""
    from PIL import Image

    for width in WIDTHS:
        for scheme in SCHEMES:
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            page.goto(address)
            if ready is not None:
                page.wait_for_selector(ready, timeout=120_000)
            page.wait_for_timeout(300)
            tall = min(TALLEST[width], page.evaluate("document.documentElement.scrollHeight"))
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, f"{name} is {over} pixels too wide at {width}"
            shot = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": tall})
            image = Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS)
            image.save(FOLDER / f"{name}-{width}-{scheme}.png", optimize=True)
            page.close()


def list_pages(folder: Path, stack: ExitStack) -> Iterator[tuple[str, str, str | None]]:
    """Every page: its name, its address, and what to wait for."""
    from rich.console import Console

    from consenso.demo import train, write

    made = write(train(2.0, folder, Console(stderr=True)))
    yield "demo", made.as_uri(), None
    for name in ("central", "decentralized", "ward"):
        yield f"report-{name}", (folder / name / "report.html").as_uri(), None


def main() -> None:
    """Take all pictures, or those whose names are given."""
    wanted = set(sys.argv[1:])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        browser = stack.enter_context(open_browser())
        for name, address, ready in list_pages(folder, stack):
            if not wanted or name in wanted:
                take(browser, name, address, ready)


if __name__ == "__main__":
    main()
