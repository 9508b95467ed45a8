"""Compiled rounds of a run, where its algorithm offers them and they may take the place of the releaser.

They draw the same noise from the same counters, clip as the releaser does and leave the same entries in the ledger, so
that the model is that of the plain rounds up to rounding. Where there are none, and for every party whose prox they
cannot certify, the plain round runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consenso.algorithms.shape import CohortStep, CompiledRounds, CompilesRounds, NoiseDraw, SingleRecords
from consenso.arrays import IntArray
from consenso.planning.plan import Plan
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.releaser import CompiledRelease, prepare_compiled
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.samplers import Seeded
from consenso.public_facts import PublicFacts
from consenso.shards import Shards
from consenso.speedups import is_own

if TYPE_CHECKING:
    from consenso.engine.in_process import InProcessRun


def compile_rounds(plan: Plan, shards: Shards) -> CompiledRounds:
    """The compiled rounds of a run.

    There are some under local trust and without a probe, with seeded Gaussian noise and dense rows, one for each party,
    if the algorithm and the loss bring theirs.
    """
    algorithm = plan.algorithm
    if not isinstance(algorithm, CompilesRounds):
        return CompiledRounds()
    rows = shards.cohort()._rows  # an engine may look at the rows of the parties that it runs
    if (
        not is_own(algorithm, "compile_rounds", "releases", "down", "local", "combine")
        or not plan.mode.noise_on_messages
        or plan.probe is not None
        or not isinstance(plan.sampler, Seeded)
        or not all(isinstance(noise, GaussianNoise | NoNoise) for noise in plan.noise.values())
        or rows.is_sparse
        or len(shards.parties) != plan.parties
        or not rows.layout.one_each
    ):
        return CompiledRounds()
    everyone = shards.cohort()
    targets, norms = np.ascontiguousarray(everyone._targets, dtype=np.float64), np.sqrt(everyone.squared_norms)
    records = SingleRecords(rows.matrix, targets, plan.problem.scales, norms)
    return algorithm.compile_rounds(plan.facts, records)


class CompiledCohorts:
    """Compiled rounds of many parties, with their releases."""

    def __init__(self, plan: Plan, step: CohortStep) -> None:
        assert isinstance(plan.sampler, Seeded)
        self._plan, self._step = plan, step
        self._seed = np.uint64(plan.sampler.seed)
        problem, releases = plan.problem, plan.remember(plan.algorithm.releases)(plan.facts)
        # Equal parties share one number (see `Bounds`): then what is declared for all holds for every cohort.
        alike = all(isinstance(release.bounds.at(problem.unit, problem.adjacency), float) for release in releases)
        self._releases = releases if alike else None

    def run(self, run: InProcessRun, facts: PublicFacts, down: Any) -> tuple[Any, IntArray]:
        """One step of a cohort: what it sends, summed over pieces of it, and who is left to the plain step.

        The states are changed in place: the engine owns them.
        """
        cohort, release = facts.cohort, self._prepare(facts)
        round_, *upper = release.key.counter
        key = self._seed, round_, (np.uint64(upper[0]), np.uint64(upper[1]))
        scales = np.atleast_1d(np.asarray(release.entry.scale, dtype=np.float64))
        up, done = self._step(down, run.state, cohort, NoiseDraw(release.clip, scales, key, release.sum))
        if done.all():
            run.record(release.entry)
        elif done.any():
            run.record(self._prepare(facts.only(cohort[done])).entry)
        return up, cohort[~done]

    def _prepare(self, facts: PublicFacts) -> CompiledRelease:
        declaration = self._plan.algorithm.releases
        releases = declaration(facts) if self._releases is None else self._releases
        return prepare_compiled(
            self._plan, facts, releases, largest=largest_bounds(self._plan, declaration, facts.round)
        )
