"""Every kind stands where the laws of its family run. Algorithms, theorems and solvers are discovered."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.losses.test_bad_input import LOSSES as REFUSALS
from tests.losses.test_constants import LOSSES as CONSTANTS
from tests.losses.test_derivatives import LOSSES as DERIVATIVES
from tests.privacy.test_noise import NOISES
from tests.regularizers.test_laws import ALL as REGULARIZERS
from tests.test_schedules import SCHEDULES

from consenso import registry
from consenso.privacy.noise import NoNoise

TESTS = Path(__file__).parent


def own_kinds(family: str) -> set[type]:
    return {kind for kind in registry.kinds(family).values() if kind.__module__.startswith("consenso.")}


@pytest.mark.parametrize(
    ("family", "examples"),
    [
        ("losses", CONSTANTS),
        ("losses", DERIVATIVES),
        ("losses", REFUSALS),
        ("regularizers", REGULARIZERS),
        ("schedules", SCHEDULES),
        ("noises", [*NOISES, NoNoise()]),
    ],
    ids=["constants of losses", "derivatives of losses", "refusals of losses", "regularizers", "schedules", "noises"],
)
def test_every_kind_is_among_the_examples(family: str, examples: Sequence[object]) -> None:
    assert own_kinds(family) - set(map(type, examples)) == set()


@pytest.mark.parametrize(
    ("family", "laws"),
    [
        ("events", ["privacy/test_accountants_*.py", "estimators/test_search.py"]),
        ("observers", ["privacy/test_observers.py"]),
    ],
)
def test_every_kind_is_made_by_the_laws(family: str, laws: list[str]) -> None:
    files = [path for pattern in laws for path in TESTS.glob(pattern)]
    made = {
        node.id
        for path in files
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name)
    }
    assert {kind.__name__ for kind in own_kinds(family)} - made == set()
