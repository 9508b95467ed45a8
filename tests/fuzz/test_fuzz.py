"""A little of `make fuzz`: what was found before, and some new examples of everything that is read from others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.fuzz.__main__ import corpus, read, vary
from tests.fuzz.targets import targets

NAMES = (
    *("codec", "own records", "envelopes", "studies", "schemas", "tables", "sparse tables", "cards", "ledgers"),
    "models",
)


@pytest.mark.parametrize("name", NAMES)
def test_only_errors_of_the_library_come_out(name: str, tmp_path: Path) -> None:
    (target,) = (each for each in targets(tmp_path) if each.name == name)
    rng = random.Random(name)
    for kept in corpus(target):
        error = read(target, kept.read_bytes(), tmp_path)
        assert error is None, f"{kept}: {error!r}"
    for seed in target.seeds:
        assert read(target, seed, tmp_path) is None
        target.read(tmp_path / target.file)  # an example is good
    for _ in range(25):
        error = read(target, vary(target, rng), tmp_path)
        assert error is None, repr(error)


def test_the_list_is_whole_and_something_else_is_seen(tmp_path: Path) -> None:
    made = targets(tmp_path)
    assert tuple(each.name for each in made) == NAMES

    def fail(path: Path) -> None:
        raise IndexError(path.name)

    from dataclasses import replace

    assert isinstance(read(replace(made[0], read=fail), b"", tmp_path), IndexError)
