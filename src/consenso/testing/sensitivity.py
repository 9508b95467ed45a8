"""Law 4: no released value moves by more than was declared."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from consenso.algorithms.shape import Example
from consenso.arrays import Array, IntArray
from consenso.planning.plan import Plan
from consenso.privacy.release import Release
from consenso.problem import Adjacency, Unit
from consenso.shards import Shards
from consenso.testing.plans import ADJACENCIES, UNITS, execute, plan_example, plan_with_noise_scaled
from consenso.testing.worlds import Pair, pairs


def check_sensitivity(example: Example, *, draws: int = 3, first: int | None = None) -> None:
    """Law 4: between neighbours, with the same past, no released value moves by more than declared.

    first: instead of every unit and adjacency with every size of noise, each with one, in turn from this one on.
    """
    for schedule in example.schedules:  # trust says who sees a value, not what it is
        made = plan_example(example, schedule=schedule)
        for place, (unit, adjacency) in enumerate(itertools.product(UNITS, ADJACENCIES)):
            rng = np.random.default_rng(11)
            problem = replace(example.problem, unit=unit, adjacency=adjacency)
            for number in range(draws) if first is None else [(first + place) % draws]:
                # Answers of different sizes drive the iterates to different places.
                loud = plan_with_noise_scaled(made, 10.0 ** (number - draws / 2))
                compare_neighbours(loud, pairs(problem, unit, adjacency, rng), unit, adjacency)


Seen: TypeAlias = list[tuple[Release, int, Array, float]]


def compare_neighbours(made: Plan, neighbours: Iterable[Pair], unit: Unit, adjacency: Adjacency) -> None:
    """Run a plan on both data sets of each pair, with the same past, and compare what it releases."""
    start, released = None, []
    for pair in neighbours:
        if pair.one is not start:  # pairs that begin with one data set share what it releases
            start, released = pair.one, probe_releases(made, pair.one)
        for (release, round_, one, bound), (_, _, other, _) in zip(
            released, probe_releases(made, pair.other), strict=True
        ):
            declared = release.bounds.at(unit, adjacency)
            gap = (one - other).sum(axis=0, keepdims=True) if release.at == "sum" else one - other
            moved = np.abs(gap).sum(axis=1) if release.norm == 1 else np.linalg.norm(gap, axis=1)
            allowed = np.max(declared) if release.at == "sum" else np.broadcast_to(declared, moved.shape)
            # Relative: bounds may be a billionth.
            assert (moved <= allowed * bound * (1 + 1e-9)).all(), (
                f"{release.name!r} moved by {moved.max():.6g} in round {round_}, declared "
                f"{np.max(allowed) * bound:.6g} ({unit}, {adjacency}, {pair.what})"
            )


def probe_releases(made: Plan, shards: Shards) -> Seen:
    """Every value that a run releases, before its noise."""
    seen: Seen = []

    def probe(round_: int, release: Release, cohort: IntArray, value: Array, bound: float) -> None:
        seen.append((release, round_, value.copy(), bound))

    execute(replace(made, probe=probe), shards)
    return seen
