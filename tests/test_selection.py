"""What `make test` takes of a sweep, and what it leaves to `make test-all`."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from tests.selection import cover

ROOT = Path(__file__).parents[1]


def product(*lengths: int) -> list[dict[str, int]]:
    return [
        {f"parameter {place}": value for place, value in enumerate(values)}
        for values in itertools.product(*map(range, lengths))
    ]


@pytest.mark.parametrize("lengths", [(1,), (7,), (4, 3), (3, 4), (2, 2, 9), (5, 5, 5)])
def test_every_value_is_covered_by_as_few_as_the_longest_parameter_needs(lengths: tuple[int, ...]) -> None:
    points = product(*lengths)
    chosen = cover(points)
    assert len(chosen) == max(lengths)
    assert {value for place in chosen for value in points[place].items()} == {v for p in points for v in p.items()}


def test_values_that_are_chosen_again_are_taken_in_turn() -> None:
    points = product(2, 6)
    chosen = [points[place] for place in cover(points)]
    assert sorted(point["parameter 0"] for point in chosen) == [0, 0, 0, 1, 1, 1]


def test_points_that_are_missing_from_a_product_are_no_hindrance() -> None:
    points = [point for point in product(3, 3) if point["parameter 0"] != point["parameter 1"]]
    chosen = cover(points)
    assert {value for place in chosen for value in points[place].items()} == {v for p in points for v in p.items()}
    assert cover([]) == set()


SWEPT = """
import pytest

@pytest.mark.sweep
@pytest.mark.parametrize("one", "abc")
@pytest.mark.parametrize("other", [1, 2])
def test_swept(one, other): ...

@pytest.mark.parametrize("one", "abc")
@pytest.mark.parametrize("other", [1, 2])
def test_whole(one, other): ...

@pytest.mark.slow
def test_slow(): ...
"""


def collected(folder: Path, *arguments: str) -> list[str]:
    """The tests that a run would take, with the options and hooks of this project."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-c", str(ROOT / "pyproject.toml"), *arguments]
    plugins = ["--rootdir", str(ROOT), "-p", "tests.conftest", str(folder)]
    done = subprocess.run([*command, *plugins], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_the_rest_of_a_sweep_and_what_is_slow_run_with_everything_only(tmp_path: Path) -> None:
    (tmp_path / "test_swept.py").write_text(SWEPT)
    everything, few = collected(tmp_path), collected(tmp_path, "-m", "not slow")
    assert len(everything) == 13
    assert set(few) < set(everything)
    assert sum("test_whole" in name for name in few) == 6
    swept = {name.partition("[")[2] for name in few if "test_swept" in name}
    assert swept == {"1-a]", "2-b]", "1-c]"}
    assert "test_slow" not in few


def test_the_commands_differ_by_that_marker() -> None:
    recipes = (ROOT / "Makefile").read_text()
    assert '-m "not slow"' in recipes
    assert "CONSENSO_LONG" not in recipes
