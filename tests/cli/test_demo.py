from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = [sys.executable, "-c", "from consenso.cli import main; main()"]


def test_the_demo_trains_three_settings_and_its_cards_verify(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "demo", "--out", str(tmp_path), "--epsilon", "2"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    names = "central|federated|decentralized|majority class|without privacy"
    bars = re.findall(rf">({names})</text><rect.*?>([\d.]+)%<", page)
    shown = {name: float(value) / 100 for name, value in bars}
    assert set(shown) == {"central", "federated", "decentralized", "majority class", "without privacy"}
    for name in ("central", "federated", "decentralized"):
        assert shown["majority class"] + 0.2 < shown[name] <= shown["without privacy"] + 0.03
        card = str(tmp_path / f"{name}.json")
        checked = subprocess.run([*PROGRAM, "verify", card], capture_output=True, text=True, timeout=120)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "http" not in page.replace("http-equiv", "")  # nothing is loaded from elsewhere


def test_a_bad_epsilon_is_one_clear_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "demo", "--out", str(tmp_path), "--epsilon", "-1"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert "epsilon" in done.stderr
    assert "Traceback" not in done.stderr
