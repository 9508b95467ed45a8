"""What docs/flower.md shows is what happens; `test_real.py` starts the rest of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from consenso.deployment.flower import NODE_CONFIG

PAGE = (Path(__file__).parents[3] / "docs" / "flower.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for block in re.finditer(r"^```(toml|console)\n(.*?)^```", PAGE, re.M | re.S):
        language, body = block.groups()
        if language == "toml":
            before = PAGE[: block.start()].strip().splitlines()[-1]
            (tmp_path / re.findall(r"`([\w.-]+\.toml)`", before)[-1]).write_text(body)
            continue
        done = subprocess.run(
            body,
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        ran += 1
    assert ran == 1
    assert (tmp_path / "woods-app" / "consenso_app" / "client_app.py").exists()


def test_the_page_lists_what_a_node_states() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M)) == set(NODE_CONFIG)
