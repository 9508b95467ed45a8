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
from consenso.engine.in_process import InProcessEngine, Progress
from consenso.engine.run import coins_of, get_model
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
) -> tuple[Array, Progress]:
    """Run a plan to its end; the model and all that the run leaves behind."""
    engine = InProcessEngine(one_by_one=one_by_one)
    progress = engine.start(made.algorithm, made.spec, shards)
    for _ in engine.rounds(
        made.algorithm, made.spec, shards, progress, coins_of(made, progress), watch or (lambda *seen: None)
    ):
        pass
    return get_model(made, progress), progress


def plan_with_noise_scaled(made: Plan, factor: float) -> Plan:
    """The same plan with every noise multiplier scaled."""
    noise = {name: _scale(each, factor) for name, each in made.spec.policy.noise.items()}
    return replace(made, noise=noise)


def _scale(noise: Noise, factor: float) -> Noise:
    return type(noise)(multiplier=noise.scale(1.0, 0) * factor) if isinstance(noise, ScaledNoise) else noise


def shards_of(example: Example) -> Shards:
    """Random data of the example's problem."""
    return Shards.from_parties(example.problem, draw(example.problem, np.random.default_rng(0)))


def silent(round_: int, release: Release, cohort: IntArray, value: Array, bound: float) -> None:
    """A probe that only silences."""
