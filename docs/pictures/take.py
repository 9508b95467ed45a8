"""Take the pictures of every page at two widths, in light and dark: `python docs/pictures/take.py`.

It trains the demo, attacks a run, makes a forecast and a comparison, opens the explorer and the live page of a
federation, and looks at all of them with a real browser. `python docs/pictures/take.py live card` takes those pages
only, and makes only what they need.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PAGES = (
    *("demo", "report-central", "report-decentralized", "report-ward", "report-attacked"),
    *("card", "forecast", "compare", "live", "explorer", "explorer-peers"),
)
CHROMIUM = "/usr/bin/chromium"
WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
TALLEST = {1280: 1500, 390: 2200}  # pixels of a picture
LONG = ("explorer-peers",)  # pages whose point is further down
BEGIN = {"report-attacked": "h2:has-text('Attacked')"}  # where the picture of a long page begins
PRINTED = ("report-attacked",)  # of these, what a printer gets
PAPER = 718  # pixels between the margins of A4
TRIALS = ("--trials", "4000", "--slow-trials", "400")  # of the attacks
EPSILON = 2.0
RUNS = 8  # of each study that is compared
COLOURS = 96  # of a picture, which keeps it small
ATTACKED = """
title = "Five clinics, attacked"
[data]
dataset = "breast_cancer"
holdout = 113
[model]
loss = "logistic"
regularizer = {kind = "l2", strength = 0.01}
intercept = true
[privacy]
epsilon = 2.0
delta = 1e-5
[setting]
kind = "federated"
trust = "secure-sum"
algorithm = "DPSGD"
rounds = 12
split = {kind = "equal", parties = 5, seed = 0}
"""


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
            page.goto(address, timeout=120_000)
            if ready is not None:
                page.wait_for_selector(ready, state="attached", timeout=600_000)
                page.wait_for_function("() => !document.querySelector('[aria-busy=true]')", timeout=600_000)
            page.wait_for_timeout(300)
            top = page.locator(BEGIN[name]).bounding_box()["y"] if name in BEGIN else 0
            whole = page.evaluate("document.documentElement.scrollHeight")
            tall = min(TALLEST[width] * (1 + (name in LONG)), whole - top)
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, f"{name} is {over} pixels too wide at {width}"
            shot = page.screenshot(full_page=True, clip={"x": 0, "y": top, "width": width, "height": tall})
            image = Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS)
            image.save(FOLDER / f"{name}-{width}-{scheme}.png", optimize=True)
            page.close()
    if name in PRINTED:
        page = browser.new_page(viewport={"width": PAPER, "height": 800})
        page.emulate_media(media="print")
        page.goto(address)
        shot = page.screenshot(full_page=True)
        image = Image.open(io.BytesIO(shot)).convert("RGB").quantize(COLOURS)
        image.save(FOLDER / f"{name}-print.png", optimize=True)
        page.close()


def list_pages(folder: Path, stack: ExitStack, wanted: set[str]) -> Iterator[tuple[str, str, str | None]]:
    """Every page that is wanted: its name, its address, and what to wait for."""
    from rich.console import Console

    from consenso.demo import train, write
    from consenso.demo.studies import write_studies
    from consenso.study import Study

    studies = write_studies(folder, EPSILON)
    reports = [name for name in ("central", "decentralized", "ward") if f"report-{name}" in wanted]
    if reports or "demo" in wanted:
        yield "demo", write(train(EPSILON, folder, Console(stderr=True))).as_uri(), None
    for name in reports:
        yield f"report-{name}", (folder / name / "report.html").as_uri(), None
    if "report-attacked" in wanted:
        yield "report-attacked", _attacked(folder).as_uri(), None
    if "card" in wanted:
        yield "card", _notebook(folder).as_uri(), None
    if "forecast" in wanted:
        yield "forecast", _forecast(folder).as_uri(), None
    if "compare" in wanted:
        yield "compare", _compare(folder).as_uri(), None
    if "live" in wanted:
        yield "live", stack.enter_context(_live()), "#parties tr"
    if "explorer" in wanted:
        yield "explorer", stack.enter_context(_explorer(studies["federated"])), "#picture svg"
    if "explorer-peers" in wanted:
        trees = folder / "trees.toml"  # where pairs of peers differ
        trees.write_text(Study.load(studies["decentralized"]).change({"setting.trust": "tree"}).to_toml())
        yield "explorer-peers", stack.enter_context(_explorer(trees)), "#graph svg"


def _attacked(folder: Path) -> Path:
    """The report of a run of five clinics whose guarantees were attacked."""
    study, run = folder / "attacked.toml", folder / "attacked"
    study.write_text(ATTACKED, encoding="utf-8")
    for asked in (["train", study, "--out", run], ["audit", study, *TRIALS, "--out", run / "audit"], ["report", run]):
        subprocess.run([sys.executable, "-m", "consenso", *map(str, asked)], check=True)
    return run / "report.html"


def _notebook(folder: Path) -> Path:
    """What a notebook shows of an estimator, its card and its guarantee."""
    from consenso import PrivateLogisticRegression, datasets
    from consenso.pages import page

    model = PrivateLogisticRegression(epsilon=1).fit(*datasets.load_breast_cancer().frame())
    shown = "<hr>".join(each._repr_html_() for each in (model.card_, model.guarantee_))
    made = folder / "card.html"
    made.write_text(page("A card in a notebook", shown), encoding="utf-8")
    return made


def _forecast(folder: Path) -> Path:
    from consenso.report.expected import forecast_html
    from consenso.study import Study
    from consenso.study.forecast import forecast

    made = folder / "forecast.html"
    made.write_text(forecast_html(forecast(Study.load(folder / "central.toml"))), encoding="utf-8")
    return made


def _compare(folder: Path) -> Path:
    """The three settings compared over six budgets: the picture of the README."""
    from consenso.cli.compare import draw, train_repeatedly
    from consenso.study import Study

    studies = [
        (f"{name}-{epsilon:g}", Study.load(folder / f"{name}.toml").with_epsilon(epsilon))
        for name in ("central", "federated", "decentralized")
        for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    ]
    rows = [row for name, study in studies for row in train_repeatedly(name, study, folder / "compare", RUNS)]
    drawn = draw(rows, [study for _, study in studies])
    assert drawn is not None
    page, picture, *_ = drawn.write(folder / "compare", "compare")
    (FOLDER / "settings.svg").write_text(picture.read_text(encoding="utf-8"), encoding="utf-8")
    return page


@contextmanager
def _live() -> Iterator[str]:
    """A status as a federation of five clinics has it."""
    from consenso.deployment.status import LiveStatus, StatusPort

    status = LiveStatus(
        role="server",
        name="server",
        run="5f0c" * 16,
        rounds=81,
        delta=1e-5,
        simulation=False,
        budget={"eavesdropper": 2.0, "server": 2.0, "peer:0": 2.062, "public": 2.0},
    )
    for place, name in enumerate(("clinic-a", "clinic-b", "clinic-c", "clinic-d", "clinic-e")):
        status.note_presence(name, place != 3)
    status.note_round(1)
    status.note_round(34, missing=("clinic-d",))
    port = StatusPort(0)
    port.show(status)
    try:
        yield f"http://127.0.0.1:{port.port}/"
    finally:
        port.close()


@contextmanager
def _explorer(study: Path) -> Iterator[str]:
    """The explorer of a study."""
    command = [sys.executable, "-m", "consenso", "explore", str(study), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split(" at ")[1].split()[0]
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Take all pictures, or those of the pages that are named."""
    wanted = set(sys.argv[1:]) or set(PAGES)
    unknown = wanted - set(PAGES)
    if unknown:
        sys.exit(f"{', '.join(sorted(unknown))}: the pages are {', '.join(PAGES)}.")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        browser = stack.enter_context(open_browser())
        for name, address, ready in list_pages(folder, stack, wanted):
            if name in wanted:
                take(browser, name, address, ready)


if __name__ == "__main__":
    main()
