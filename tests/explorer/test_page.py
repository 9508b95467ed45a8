"""The budget explorer: its answers are the library's, and the page shows them in a real browser."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests import forks

from consenso.planning.pairs import pair_costs
from consenso.study import Study
from consenso.study.plan_summary import summarize_plan

CHROMIUM = Path("/usr/bin/chromium")
STUDY = """
title = "Twenty clinics"
[data]
dataset = "digits"
positive = ["0", "2", "4", "6", "8"]
holdout = 357
[model]
loss = "logistic"
regularizer = { kind = "l2", strength = 0.01 }
intercept = true
[privacy]
epsilon = 2.0
delta = 1e-5
[setting]
kind = "federated"
trust = "local"
algorithm = "ConsensusADMM"
rounds = 40
parameters = { step = 1.0, clip = 0.5 }
[setting.split]
kind = "equal"
parties = 20
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "clinics.toml"
    path.write_text(STUDY)
    return path


PEERS = """
title = "Eight clinics"
[data]
dataset = "digits"
positive = ["0", "2", "4", "6", "8"]
[model]
loss = "logistic"
[privacy]
epsilon = 2.0
delta = 1e-5
[setting]
kind = "decentralized"
trust = "tree"
algorithm = "DPSGD"
rounds = 10
parameters = { step = 1.0, clip = 0.5 }
topology = { kind = "ring" }
[setting.split]
kind = "equal"
parties = 8
"""


@contextmanager
def exploring(study, *options):
    """The real program on a free port; its address."""
    out = study.with_suffix(".out")
    process = forks.start("explore", str(study), "--no-browser", *options, cwd=study.parent, env=os.environ, out=out)
    try:
        while "http://" not in (told := out.read_text() if out.exists() else ""):
            assert process.poll() is None, told
            time.sleep(0.05)
        yield re.search(r"http://\S+", told).group()
    finally:
        process.terminate()
        process.wait(timeout=3000)


@pytest.fixture(scope="module")
def explorer(study):
    with exploring(study, "--watch", str(study.parent / "run")) as address:
        yield address


@contextmanager
def browsing(address, width=1100):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        try:
            page = browser.new_page(viewport={"width": width, "height": 1000})
            page.set_default_timeout(300_000)
            page.goto(address)
            yield page
        finally:
            browser.close()


def ask(address, path, content=None, token=None, host=None):
    """The status and the JSON of a request."""
    headers = {"Content-Type": "application/json"}
    if token is not None:
        headers["X-Consenso-Token"] = token
    if host is not None:
        headers["Host"] = host
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(address + path, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def token_of(address):
    return re.search(r'"token": "([^"]+)"', ask(address, "")[1]).group(1)


def epsilons(study, changes):
    """Epsilon by observer as the library plans it, for the study's own unit and adjacency."""
    made = summarize_plan(Study.load(study).change(changes)).to_json()
    scope = (made["data"]["unit"], made["data"]["adjacency"])
    return {g["observer"]: g["epsilon"] for g in made["guarantees"] if (g["unit"], g["adjacency"]) == scope}


def test_its_figures_are_those_of_the_library_and_it_writes_the_study(study, explorer):
    token = token_of(explorer)
    moved = {"epsilon": 0.7, "delta": 1e-6, "rounds": 25, "parties": 10, "rate": 0.5}
    status, text = ask(explorer, "plan", moved, token)
    assert status == 200
    found = json.loads(text)
    expected = epsilons(
        study,
        {
            "privacy.epsilon": 0.7,
            "privacy.delta": 1e-6,
            "setting.rounds": 25,
            "setting.split.parties": 10,
            "setting.schedule": {"kind": "poisson", "rate": 0.5},
        },
    )
    scope = (found["data"]["unit"], found["data"]["adjacency"])
    shown = {g["observer"]: g["epsilon"] for g in found["guarantees"] if (g["unit"], g["adjacency"]) == scope}
    assert shown == expected
    assert found["rounds"] == 25
    status, text = ask(explorer, "study", moved, token)
    written = Study.load(json.loads(text)["written"])
    assert written.setting.rounds == 25
    assert len(written.parties) == 10
    assert study.read_text() == STUDY  # the study itself is left alone


def test_a_noise_multiplier_takes_the_place_of_epsilon(study, explorer):
    status, text = ask(explorer, "plan", {"noise": 30.0}, token_of(explorer))
    assert status == 200, text
    scope = json.loads(text)["data"]
    shown = {
        g["observer"]: g["epsilon"]
        for g in json.loads(text)["guarantees"]
        if (g["unit"], g["adjacency"]) == (scope["unit"], scope["adjacency"])
    }
    assert shown == epsilons(study, {"privacy.epsilon": None, "privacy.multiplier": 30.0})


def test_bad_requests_get_one_sentence_and_strangers_nothing(explorer):
    token = token_of(explorer)
    for moved in ({"epsilon": -1.0}, {"epsilon": "many"}, {"colour": 1}, {"trust": "nobody"}, {"rounds": 1e300}):
        status, text = ask(explorer, "plan", moved, token)
        assert status == 400, moved
        assert "Traceback" not in text
        assert json.loads(text)["error"]
    assert ask(explorer, "plan", {"epsilon": 1.0})[0] == 400  # without the token of the page
    assert ask(explorer, "study", {"epsilon": 1.0}, "guessed")[0] == 400
    assert ask(explorer, "", host="evil.example")[0] == 421  # a name that points at this machine


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
@pytest.mark.slow
def test_moving_a_slider_in_a_browser_changes_the_numbers_to_what_the_library_computes(study, explorer):
    with browsing(explorer) as page:
        numbers = (
            "() => Object.fromEntries([...document.querySelectorAll('[data-epsilon]')].map(e => "
            "[e.dataset.observer, e.dataset.epsilon === 'inf' ? 'inf' : Number(e.dataset.epsilon)]))"
        )
        page.wait_for_selector("[data-epsilon]")
        assert page.evaluate(numbers) == epsilons(study, {})
        slider = page.locator("#slider-epsilon")
        slider.evaluate("e => { e.value = 0.2; e.dispatchEvent(new Event('input')); }")
        wanted = float(page.locator("#value-epsilon").inner_text())
        assert wanted != 2.0
        expected = epsilons(study, {"privacy.epsilon": wanted})
        page.wait_for_function(
            "e => { const found = document.querySelector('[data-observer=server]'); "
            "return found && Math.abs(Number(found.dataset.epsilon) - e) < 1e-9; }",
            arg=expected["server"],
        )
        assert page.evaluate(numbers) == expected
        boxes = (
            "[...document.querySelectorAll('.figure')].map(e => e.getBoundingClientRect())"
            ".map(b => [b.x, b.y, b.right, b.bottom])"
        )
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 1000})
            found = page.evaluate(boxes)
            assert len(found) >= 4
            for place, (left, top, right, bottom) in enumerate(found):
                for other in found[place + 1 :]:
                    assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        # The main picture: expected accuracy against epsilon, and where the slider stands on it.
        page.wait_for_selector("#picture svg polyline", state="attached", timeout=240_000)
        at = "() => Number(document.getElementById('here').getAttribute('x1'))"
        expected_at = "() => Number(document.getElementById('balance').dataset.expected)"
        place, reached = page.evaluate(at), page.evaluate(expected_at)
        slider.evaluate("e => { e.value = 0.95; e.dispatchEvent(new Event('input')); }")
        page.wait_for_function(f"x => ({at})() > x + 20", arg=place)
        assert page.evaluate(expected_at) > reached, "more is expected of a larger budget"
        assert "of 100 attackers are right" in page.locator("#balance").inner_text()
        # The live view of a run that another process writes.
        status = {"state": "training", "done": 3, "planned": 40, "parties": 20, "movement": [3.0, 2.0, 1.0]}
        (study.parent / "run").mkdir()
        (study.parent / "run" / "status.json").write_text(json.dumps(status))
        page.wait_for_function("() => document.getElementById('livetext').textContent.includes('round 3 of 40')")
        assert page.locator("#livechart polyline").count() == 1


def pairs_as_planned(changes, node):
    plan = Study.parse(PEERS).change(changes).plan()
    return pair_costs(plan, 1e-5).epsilons[node]


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
@pytest.mark.slow
def test_the_graph_is_coloured_by_what_a_chosen_peer_learns(tmp_path):
    study = tmp_path / "peers.toml"
    study.write_text(PEERS)
    shades = (
        "() => [...document.querySelectorAll('#graph g')].map(g => [g.querySelector('title').textContent, "
        "g.querySelector('circle').getAttribute('fill')])"
    )

    def told(costs, node):
        known = [f"party {at}: epsilon {value:.3g}" for at, value in enumerate(costs)]
        return [f"party {at}: its own data" if at == node else text for at, text in enumerate(known)]

    with exploring(study) as address, browsing(address) as page:
        page.wait_for_selector("#graph g")
        found = page.evaluate(shades)
        costs = pairs_as_planned({}, 0)
        assert [text for text, _ in found] == told(costs, 0)
        least, most = np.nanargmin(costs), np.nanargmax(costs)
        assert costs[least] < costs[most], "a plain tree hides those who are deep in a branch"
        assert found[least][1] != found[most][1]
        page.select_option("#node", "3")
        page.wait_for_function(
            "() => document.querySelectorAll('#graph title')[4].textContent.includes('its own data')"
        )
        assert [text for text, _ in page.evaluate(shades)] == told(pairs_as_planned({}, 3), 3)
        page.select_option("#trust", "masked-sum")
        page.wait_for_function("() => document.getElementById('pairswhy').textContent.includes('all pairs are alike')")
        masked = page.evaluate(shades)
        assert [text for text, _ in masked] == told(pairs_as_planned({"setting.trust": "masked-sum"}, 3), 3)
        assert len({shade for place, (_, shade) in enumerate(masked) if place != 3}) == 1
        page.set_viewport_size({"width": 390, "height": 1000})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        token = token_of(address)
        for node in (-1, "x", True):
            assert ask(address, "pairs", {"node": node}, token)[0] == 400


def test_without_a_graph_nobody_looks_at_pairs(explorer):
    status, text = ask(explorer, "pairs", {"node": 2}, token_of(explorer))
    assert (status, json.loads(text)) == (200, {"nodes": []})
