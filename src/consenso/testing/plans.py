"""Plans of an example, and how the laws run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from consenso.algorithms.shape import Example
from consenso.arrays import Array, IntArray
from consenso.conventions import ADJACENCIES as ADJACENCIES
from consenso.conventions import UNITS as UNITS
from consenso.engine.in_process import InProcessRun
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import Noise, ScaledNoise
from consenso.privacy.release import Release
from consenso.privacy.samplers import Seeded
from consenso.shards import Shards
from consenso.testing.worlds import draw


def plan_example(example: Example, **changes: Any) -> Plan:
    """The example's plan in its first schedule and under its first trust, unless said otherwise."""
    settings: dict[str, Any] = {
        "rounds": example.rounds,
        "noise": example.noise,
        "schedule": example.schedules[0],
        "trust": example.trusts[0],
        "topology": example.topology,
        "sampler": Seeded(7),
    }
    settings |= changes
    if settings["trust"] == "masked-sum":
        settings.setdefault("colluders", 1)  # a peer that looks counts
    return plan(example.problem, example.algorithm, **settings)


def settings_of(example: Example) -> Iterator[Plan]:
    """The example's plan in every schedule and under every trust."""
    for schedule in example.schedules:
        for trust in example.trusts:
            yield plan_example(example, schedule=schedule, trust=trust)


def execute(
    made: Plan, shards: Shards, *, one_by_one: bool = False, watch: Callable[[int, Any, Any], None] | None = None
) -> tuple[Array, InProcessRun]:
    """Run a plan to its end, without the compiled walks; the model and all that the run leaves behind."""
    run = InProcessRun(made, shards, one_by_one=one_by_one, watch=watch or (lambda *seen: None))
    for _ in run.rounds():
        pass
    return run.model, run


def plan_with_noise_scaled(made: Plan, factor: float) -> Plan:
    """The same plan with every noise multiplier scaled."""
    noise = {name: _scale(each, factor) for name, each in made.noise.items()}
    return replace(made, noise=noise)


def _scale(noise: Noise, factor: float) -> Noise:
    return type(noise)(multiplier=noise.scale(1.0, 0) * factor) if isinstance(noise, ScaledNoise) else noise


def shards_of(example: Example) -> Shards:
    """Random data of the example's problem."""
    return Shards.from_parties(example.problem, draw(example.problem, np.random.default_rng(0)))


def silent(round_: int, release: Release, cohort: IntArray, value: Array, bound: float) -> None:
    """A probe that only silences."""
