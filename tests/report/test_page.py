"""The page of a run: every figure comes from the run's files, nothing is loaded, bad folders are refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from consenso.errors import ConsensoError
from consenso.privacy.accountants import tradeoff
from consenso.report import read_run, report_html
from consenso.report.charts import Axis, Series, graph_chart, line_chart
from consenso.report.reading import events_of
from consenso.report.words import most_caught, plain_words
from consenso.study import Study
from consenso.study.training import train

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
    for heading in ("What was learnt", "Who learns what", "How well an attacker", "The noise", "The graph", "verify"):
        assert heading in page
    assert page.count("<circle") == 6  # one node of the graph each
    assert "http" not in page
    assert "src=" not in page


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
    assert "No public test file" in report_html(read_run(tmp_path))


def test_the_words_are_those_of_the_tradeoff_curve(folder):
    run = read_run(folder)
    entry = run.entries()[0]
    caught = most_caught(entry, 0.05)
    assert caught == pytest.approx(1 - float(tradeoff(events_of(entry), np.array([0.05]))[0]))
    assert f"{caught:.1%}" in plain_words(entry, run.card.delta)
    assert f"{np.exp(entry.epsilon):.3g} times" in plain_words(entry, run.card.delta)


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
    noise = run.plan.spec.policy.noise_for(curve.name)
    assert curve.scales[0] == pytest.approx(noise.scale(curve.bounds[0], 0))


@pytest.mark.parametrize("y", [[1.0, float("nan"), 3.0], [0.0, 0.0, 0.0], [1e-9, 1.0, 1e9], [5.0, 5.0, 5.0]])
@pytest.mark.parametrize("log", [False, True])
def test_charts_draw_whatever_they_are_given(y, log):
    drawn = line_chart(
        [Series(name="a", x=[1, 2, 3], y=y)], x=Axis(label="round"), y=Axis(label="size", log=log), title="t"
    )
    assert "nan" not in drawn
    assert drawn.startswith("<svg")


def test_the_command_writes_the_page_and_refuses_what_is_no_run(folder, tmp_path):
    program = [sys.executable, "-m", "consenso", "report"]
    done = subprocess.run([*program, str(folder), "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert Path(json.loads(done.stdout)["report"]).stat().st_size > 10_000
    missing = subprocess.run([*program, str(tmp_path / "nowhere")], capture_output=True, text=True, timeout=300)
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
    assert "party 3: epsilon its own data" in page
    (row,) = [line for line in page.split("<tr>") if "distance 4 or more" in line]
    assert "<td class=number>6</td>" in row
