"""Law 4: no released value moves by more than was declared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from consenso.algorithms.shape import Example
from consenso.arrays import Array, IntArray
from consenso.planning.plan import Plan
from consenso.privacy.release import Release
from consenso.problem import Adjacency, Unit
from consenso.testing.plans import ADJACENCIES, UNITS, execute, plan_example, plan_with_noise_scaled
from consenso.testing.worlds import Pair, pairs


def check_sensitivity(example: Example, *, draws: int = 3) -> None:
    """Law 4: between neighbours, with the same past, no released value moves by more than declared."""
    for schedule in example.schedules:  # trust says who sees a value, not what it is
        made = plan_example(example, schedule=schedule)
        for unit in UNITS:
            for adjacency in ADJACENCIES:
                rng = np.random.default_rng(11)
                problem = replace(example.problem, unit=unit, adjacency=adjacency)
                for number in range(draws):
                    # Answers of different sizes drive the iterates to different places.
                    loud = plan_with_noise_scaled(made, 10.0 ** (number - draws / 2))
                    for pair in pairs(problem, unit, adjacency, rng):
                        _compare(loud, pair, unit, adjacency)


def _compare(made: Plan, pair: Pair, unit: Unit, adjacency: Adjacency) -> None:
    values: list[list[tuple[Release, int, Array, float]]] = []
    for shards in (pair.one, pair.other):
        seen: list[tuple[Release, int, Array, float]] = []

        def probe(
            round_: int, release: Release, cohort: IntArray, value: Array, bound: float, seen: Any = seen
        ) -> None:
            seen.append((release, round_, value.copy(), bound))

        execute(replace(made, probe=probe), shards)
        values.append(seen)
    for (release, round_, one, bound), (_, _, other, _) in zip(*values, strict=True):
        declared = release.bounds.at(unit, adjacency)
        gap = (one - other).sum(axis=0, keepdims=True) if release.at == "sum" else one - other
        moved = np.abs(gap).sum(axis=1) if release.norm == 1 else np.linalg.norm(gap, axis=1)
        allowed = np.max(declared) if release.at == "sum" else np.broadcast_to(declared, moved.shape)
        excess = moved - allowed * bound
        assert (excess <= 1e-9 + 1e-9 * np.abs(moved)).all(), (
            f"{release.name!r} moved by {moved.max():.6g} in round {round_}, declared {np.max(allowed) * bound:.6g} "
            f"({unit}, {adjacency}, {pair.what})"
        )
