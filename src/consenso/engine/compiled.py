"""Compiled rounds of a run, where its algorithm offers them and they may take the place of the releaser.

They draw the same noise from the same counters, clip as the releaser does and leave the same entries in the ledger, so
that the model is that of the plain rounds up to rounding. Where there are none, and for every party whose prox they
cannot certify, the plain round runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from consenso.algorithms.shape import Algorithm, CohortStep, CompiledRounds, CompilesRounds, NoiseDraw, SingleRecords
from consenso.arrays import IntArray
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.releaser import CompiledRelease, prepare_compiled
from consenso.privacy.run_spec import RunSpec
from consenso.privacy.samplers import Seeded
from consenso.public_facts import PublicFacts
from consenso.shards import Shards
from consenso.speedups import is_own

if TYPE_CHECKING:
    from consenso.engine.in_process import Progress


def compile_rounds(algorithm: Algorithm, spec: RunSpec, shards: Shards) -> CompiledRounds:
    """The compiled rounds of a run.

    There are some under local trust and without a probe, with seeded Gaussian noise and dense rows, one for each party,
    if the algorithm and the loss bring theirs.
    """
    policy = spec.policy
    if not isinstance(algorithm, CompilesRounds):
        return CompiledRounds()
    rows = shards.cohort()._rows  # an engine may look at the rows of the parties that it runs
    if (
        not is_own(algorithm, "compile_rounds", "releases", "down", "local", "combine")
        or not policy.mode.noise_on_messages
        or policy.probe is not None
        or not isinstance(policy.sampler, Seeded)
        or not all(isinstance(noise, GaussianNoise | NoNoise) for noise in policy.noise.values())
        or rows.is_sparse
        or len(shards.parties) != spec.parties
        or not rows.layout.one_each
    ):
        return CompiledRounds()
    everyone = shards.cohort()
    targets, norms = np.ascontiguousarray(everyone._targets, dtype=np.float64), np.sqrt(everyone.squared_norms)
    records = SingleRecords(rows.matrix, targets, spec.facts.problem.scales, norms)
    return algorithm.compile_rounds(spec.facts, records)


class CompiledCohorts:
    """Compiled rounds of many parties, with their releases."""

    def __init__(self, algorithm: Algorithm, spec: RunSpec, step: CohortStep) -> None:
        assert isinstance(spec.policy.sampler, Seeded)
        self._algorithm, self._policy, self._step = algorithm, spec.policy, step
        self._seed = np.uint64(spec.policy.sampler.seed)
        problem, releases = spec.facts.problem, spec.remember(algorithm.releases)(spec.facts)
        # Equal parties share one number (see `Bounds`): then what is declared for all holds for every cohort.
        alike = all(isinstance(release.bounds.at(problem.unit, problem.adjacency), float) for release in releases)
        self._releases = releases if alike else None

    def run(self, progress: Progress, facts: PublicFacts, down: Any, largest: dict[str, float]) -> tuple[Any, IntArray]:
        """One step of a cohort: what it sends, summed over pieces of it, and who is left to the plain step.

        The states are changed in place: the engine owns them.
        """
        cohort, release = facts.cohort, self._prepare(facts, largest)
        round_, *upper = release.key.counter
        key = self._seed, round_, (np.uint64(upper[0]), np.uint64(upper[1]))
        scales = np.atleast_1d(np.asarray(release.entry.scale, dtype=np.float64))
        up, done = self._step(down, progress.state, cohort, NoiseDraw(release.clip, scales, key, release.sum))
        if done.all():
            progress.record(release.entry, in_parts=False)
        elif done.any():
            progress.record(self._prepare(facts.only(cohort[done]), largest).entry, in_parts=False)
        return up, cohort[~done]

    def _prepare(self, facts: PublicFacts, largest: dict[str, float]) -> CompiledRelease:
        releases = self._algorithm.releases(facts) if self._releases is None else self._releases
        return prepare_compiled(self._policy, facts, releases, largest=largest)
