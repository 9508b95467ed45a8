"""Which benchmarks `python -m benchmarks` knows."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.__main__ import MODULES, main

import benchmarks


def test_every_benchmark_is_run_and_another_name_is_answered_with_theirs(capsys) -> None:
    folder = Path(benchmarks.__file__).parent
    runs = {path.stem for path in folder.glob("*.py") if re.search(r"^def run\(\)", path.read_text(), re.MULTILINE)}
    assert runs == set(MODULES)
    assert main(["--help"]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in MODULES)
