"""Every algorithm has a test file of its own that compares its iterates with a transcription of its paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from consenso.algorithms import discover


@pytest.mark.parametrize("name", discover())
def test_an_algorithm_has_its_transcription(name: str) -> None:
    module = discover()[name].__module__.rpartition(".")[2]
    file = Path(__file__).with_name(f"test_{module}.py")
    assert file.exists(), f"{name}: write tests/algorithms/{file.name}"
    assert "\ndef test_iterates_follow_the_paper" in file.read_text(), f"{file.name}: compare the iterates of {name}"
