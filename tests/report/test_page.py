"""The page of a run: every figure comes from the run's files, nothing is loaded, bad folders are refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from tests import forks

from consenso.errors import ConsensoError
from consenso.privacy.accountants import tradeoff
from consenso.privacy.card.odds import event_of, most_caught
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.ledger.costs import charges_of
from consenso.privacy.observers import Public
from consenso.privacy.rounding import round_down
from consenso.report import read_run, report_html, write_report
from consenso.report.charts import Axis, Series, graph_chart, line_chart, number_text
from consenso.report.words import plain_words
from consenso.study import Study
from consenso.study.training import train

CHROMIUM = Path("/usr/bin/chromium")
STUDY = """
title = "Stars & <stripes>"
[data]
dataset = "digits"
positive = ["0", "2", "4", "6", "8"]
holdout = 357
[model]
loss = "logistic"
regularizer = { kind = "l2", strength = 0.01 }
intercept = true
[privacy]
epsilon = 3.0
delta = 1e-5
seed = 3
[setting]
kind = "decentralized"
algorithm = "IPADMM"
rounds = 12
topology = { kind = "star" }
[setting.split]
kind = "equal"
parties = 6
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "stars"
    train(Study.parse(STUDY), out)
    return out


def test_the_page_tells_the_run(folder):
    page = report_html(read_run(folder))
    assert "Stars &amp; &lt;stripes&gt;" in page
    assert "Simulation, not private" in page
    metrics = json.loads((folder / "metrics.json").read_text())
    assert f"{metrics['accuracy']:.1%}" in page
    for heading in (
        "What was learnt",
        "Against whom?",
        "How surely?",
        "What is left of the budget?",
        "Who learns what",
        "How well an attacker",
        "The noise",
        "The graph",
        "verify",
    ):
        assert heading in page
    assert page.count("<circle") == 12  # a node of the graph each, and each as a peer sees it
    assert "http" not in page
    assert "src=" not in page
    assert not re.search(r"\de\+\d", page.partition("<h2>Parameters")[0]), "no 7.334e+04"
    assert page.count("<svg") == page.count("<desc>") == page.count("role='img'")
    promises = re.findall(r"<div class='observer'>.*?</p>", page)
    assert len(promises) == len({text.partition("</h3>")[2] for text in promises}), "no paragraph twice"
    assert "pixel_" in page, "columns by their names"
    assert "feature 4" not in page


def test_another_result_gives_another_page(folder, tmp_path):
    for name in ("card.json", "metrics.json", "model.json", "trace.json", "study.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    before = report_html(read_run(tmp_path))
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    (tmp_path / "metrics.json").write_text(json.dumps({**metrics, "accuracy": 0.1234}))
    after = report_html(read_run(tmp_path))
    assert "12.3%" in after
    assert "12.3%" not in before
    (tmp_path / "metrics.json").unlink()
    assert "no public test records were named" in report_html(read_run(tmp_path))


def test_the_words_are_those_of_the_tradeoff_curve(folder):
    run = read_run(folder)
    entry = run.entries()[0]
    caught = most_caught(event_of(entry), 0.05)
    assert caught == pytest.approx(1 - float(tradeoff(event_of(entry), np.array([0.05]))[0]))
    assert f"{caught:.1%}" in plain_words(entry, run.card.delta)
    assert f"{np.exp(entry.epsilon):.4g} times" in plain_words(entry, run.card.delta)


def test_weights_have_intervals_where_the_model_knows_its_standard_errors(folder):
    run = read_run(folder)
    assert "class='interval'" not in report_html(run)
    weights = np.ravel(run.model["coefficients"])
    errors = 0.1 * np.arange(1.0, len(weights) + 2)  # the last is that of an intercept
    page = report_html(replace(run, model={**run.model, "standard_errors": errors.tolist()}))
    largest = int(np.argmax(np.abs(weights)))
    low, high = weights[largest] + np.array([-1, 1]) * norm.ppf(0.975) * errors[largest]
    assert f"{run.model['features'][largest]}: {weights[largest]:+.3g} ({low:+.3g} to {high:+.3g})" in page
    assert page.count("class='interval'") == 12
    for first, last in re.findall(r"class='interval' d='M([\d.]+) [\d.]+H([\d.]+)", page):
        assert 0 <= float(first) < float(last) <= 480


def test_nodes_that_differ_are_shaded_differently(folder):
    run = read_run(folder)
    looking = next(entry for entry in run.entries() if entry.observer == "eavesdropper")
    epsilons = run.node_epsilons(looking)
    assert epsilons.shape == (6,)
    assert np.nanmax(epsilons) == pytest.approx(looking.epsilon)
    shaded = graph_chart([(0, 1), (1, 2)], np.array([0.5, 1.0, 2.0]), title="t", unit="epsilon")
    fills = re.findall(r"r='\d+' fill='(#\w+)'", shaded)
    assert len(set(fills)) == 3


def test_noise_curves_are_those_of_the_door(folder):
    run = read_run(folder)
    (curve,) = run.noise_curves()
    assert curve.rounds == tuple(range(1, 13))
    assert all(scale > 0 for scale in curve.scales)
    noise = run.plan.noise_for(curve.name)
    assert curve.scales[0] == pytest.approx(noise.scale(curve.bounds[0], 0))


@pytest.mark.parametrize("y", [[1.0, float("nan"), 3.0], [0.0, 0.0, 0.0], [1e-9, 1.0, 1e9], [5.0, 5.0, 5.0]])
@pytest.mark.parametrize("log", [False, True])
def test_charts_draw_whatever_they_are_given(y, log):
    drawn = line_chart(
        [Series(name="a", x=[1, 2, 3], y=y)], x=Axis(label="round"), y=Axis(label="size", log=log), title="t"
    )
    assert "nan" not in drawn
    assert drawn.startswith("<svg")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (73341.0, "73,340"),
        (0.25, "0.25"),
        (1234567, "1,235,000"),
        (1e-5, "10⁻⁵"),
        (2.5e8, "2.5·10⁸"),
        (100, "100"),
        (0, "0"),
    ],
)
def test_numbers_are_read_by_people(value, text):
    assert number_text(value) == text


def test_the_ledger_is_told_and_drawn(folder, tmp_path):
    for name in ("card.json", "metrics.json", "model.json", "trace.json", "study.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    study = tmp_path / "study.toml"
    study.write_text(study.read_text().replace("[privacy]", '[privacy]\nledger = "budget.ledger"'))
    run = replace(read_run(tmp_path), card=replace(read_run(tmp_path).card, simulation=False))
    assert "not on the machine" in report_html(run)
    assert "Budget spent" not in report_html(run)
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=8.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "budget.ledger", dataset="stars", budgets=[budget])
    for place in range(2):
        ledger.reserve(f"run {place}", charges_of([run.plan.guarantee(Public(), 1e-5)]), what="a fit")
    page = report_html(run)
    (balance,) = ledger.balances()
    assert f"Left after 2 runs: {round_down(balance.left)} of epsilon 8" in page
    assert "Budget spent over the runs" in page


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's chromium")
@pytest.mark.slow
def test_the_page_fits_a_phone_in_light_and_dark(folder):
    from playwright.sync_api import sync_playwright

    address = write_report(folder).as_uri()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        try:
            papers = []
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
                page.goto(address)
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
                papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
                small = "[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height)"
                assert min(page.evaluate(small)) >= 10, "text in pictures can be read"
            assert papers[0] != papers[1]
        finally:
            browser.close()


def test_the_command_writes_the_page_and_refuses_what_is_no_run(folder, tmp_path):
    done = forks.run("report", folder, "--json")
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["report"]).stat().st_size > 10_000
    missing = forks.run("report", tmp_path / "nowhere")
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr
    (tmp_path / "card.json").write_text((folder / "card.json").read_text().replace("0.01", "0.02", 1))
    with pytest.raises(ConsensoError):
        read_run(tmp_path)


def test_the_page_tells_who_learns_how_much_of_whom(tmp_path: Path) -> None:
    study = STUDY.replace('algorithm = "IPADMM"', 'algorithm = "DPSGD"\ntrust = "tree"').replace('"star"', '"path"')
    train(Study.parse(study), tmp_path / "tree")
    page = report_html(read_run(tmp_path / "tree"))
    assert "Who learns how much of whom" in page
    assert page.count("<summary>as peer") == 6
    assert "party 3: its own data" in page
    (row,) = [line for line in page.split("<tr>") if "distance 4 or more" in line]
    assert "<td class='number'>6</td>" in row
    # Where all pairs are alike one view is enough.
    train(Study.parse(study.replace('"tree"', '"masked-sum"')), tmp_path / "masked")
    assert report_html(read_run(tmp_path / "masked")).count("<summary>as peer") == 1
