"""Every block of the page on estimators runs, in one go, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "estimators.md").read_text()


@pytest.mark.slow
def test_every_block_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/estimators.md, block {number}", "exec"), names)
    out = capsys.readouterr().out
    accuracies = [float(value) for value in re.findall(r"accuracy ([\d.]+)", out)]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.8
    whole = [float(value) for value in re.findall(r"epsilon in all: ([\d.]+)", out)]
    assert len(whole) == 2
    assert max(whole) <= 1.0
    spent = re.search(r"spent ([\d.]+), left ([\d.]+)", out)
    assert spent is not None
    assert float(spent[1]) == pytest.approx(0.8, abs=0.01)
    assert "Ledger.reserve" in out, "the second fit is refused"
    assert "SIMULATION" not in out.split("spent")[0], "the first fit is a real one"


def test_the_table_names_every_estimator() -> None:
    import consenso

    for name in dir(consenso):
        if name.startswith("Private"):
            assert f"`{name}" in PAGE, name
