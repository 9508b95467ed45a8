"""The guide "From one table to five hospitals", executed: its files, its commands, five hospitals and a server."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tests import forks

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|toml|console)\n(.*?)^```", re.M | re.S)
BACKGROUND = ("serve", "join")


@pytest.mark.slow
def test_the_guide_is_true(federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = federation()  # for a free port, and for ending what was started
    made.folder = tmp_path
    text = (ROOT / "docs" / "federation.md").read_text(encoding="utf-8").replace(":7447", f":{made.port}")
    running: list[subprocess.Popen[str]] = []
    for block in BLOCK.finditer(text):
        language, body = block.groups()
        if language == "toml":
            before = text[: block.start()].strip().splitlines()[-1]
            (tmp_path / re.findall(r"`([\w.-]+\.toml)`", before)[-1]).write_text(body)
            continue
        commands = [] if language == "python" else [shlex.split(line)[1:] for line in body.strip().splitlines()]
        if any(command[0] not in BACKGROUND for command in commands):
            made.wait(*running, seconds=300)
            running.clear()
        if language == "python":
            exec(compile(body, "federation.md", "exec"), {})
        for command in commands:
            if command[0] in BACKGROUND:
                running.append(made.start(*command))
            else:
                consenso(*command)
    told = json.loads((tmp_path / "runs" / "stroke" / "run.json").read_text())
    assert told["missing"] == {}
    metrics = json.loads((tmp_path / "runs" / "stroke" / "metrics.json").read_text())
    assert metrics["accuracy"] > 0.6
    models = {(tmp_path / place / "model.json").read_text() for place in ("runs/stroke", "north.run", "centre.run")}
    assert len(models) == 1
    shown = json.loads(consenso("ledger", "show", "north.ledger", "--json"))
    assert [run["state"] for run in shown["runs"]] == ["committed"]
    assert 0 < shown["budgets"][0]["spent"] <= 2.0 + 1e-9
    assert not (tmp_path / "runs" / "stroke" / "checkpoint").exists()


def consenso(*arguments: str) -> str:
    done = forks.run(*arguments, env={"COLUMNS": "200"})
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout
