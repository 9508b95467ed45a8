"""What leaves is typed: mypy refuses a message with a value that no releaser has seen."""

from __future__ import annotations

import ast
import dataclasses
import typing
from pathlib import Path

import pytest
from mypy import api

from consenso.algorithms import discover
from consenso.privacy.releaser import Released, postprocess

ROOT = Path(__file__).parents[2]

STEP = """
from consenso.algorithms.dp_sgd import DPSGD, Down, Up
from consenso.algorithms.record_sums import Forgetful
from consenso.privacy.releaser import Releaser
from consenso.public_facts import PublicFacts
from consenso.shards import Cohort


class Planted(DPSGD):
    def local(
        self, facts: PublicFacts, down: Down, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        sums = f.rmatvec(f.slopes(f.linear_predictor(down.u)))
        return state, Up(gradient={sent})
"""


def test_mypy_refuses_a_planted_leak_and_passes_the_same_step_with_its_release(tmp_path, monkeypatch) -> None:
    """One run of mypy, with the options and the cache of the project."""
    for name, sent in (("leak", "sums"), ("honest", 'release("gradient", sums)')):
        (tmp_path / f"{name}.py").write_text(STEP.format(sent=sent))
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MYPYPATH", str(ROOT / "src"))
    files = [str(tmp_path / "leak.py"), str(tmp_path / "honest.py")]
    found, trouble, status = api.run(["--config-file", "pyproject.toml", "--no-error-summary", *files])
    assert not trouble
    assert status == 1
    (error,) = found.splitlines()
    assert "leak.py:14" in error
    assert 'expected "Released"' in error


@pytest.mark.parametrize("cls", discover().values(), ids=lambda cls: cls.__name__)
def test_every_field_of_every_message_is_typed(cls) -> None:
    _, sent = typing.get_args(typing.get_type_hints(cls.local)["return"])
    hints = typing.get_type_hints(sent)
    assert {hints[each.name] for each in dataclasses.fields(sent)} == {Released}


def test_only_the_releaser_makes_what_leaves() -> None:
    """Nobody else calls `Released` or casts to it."""
    made = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)] if "Released" in text else []
        if any("Released" in (ast.unparse(call.func), *map(ast.unparse, call.args[:1])) for call in calls):
            made.add(path.relative_to(ROOT / "src").as_posix())
    assert made == {"consenso/privacy/releaser.py"}


def test_what_is_worked_on_names_its_source() -> None:
    with pytest.raises(AssertionError, match="declare_public"):
        postprocess(typing.cast(typing.Any, None))
