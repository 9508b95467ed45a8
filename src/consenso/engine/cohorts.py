"""Rounds of many parties of one record each, each round in one compiled pass over them.

`compile_cohorts` gives the step of `ConsensusADMM` together with its releaser: the same prox and certificate, the same
clip, the same noise from the same counters, the same entry in the ledger, so that the model is the general engine's up
to rounding. Where it returns None, and for every party whose prox the compiled step cannot certify, the general engine
runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM, Down, Up
from consenso.arrays import IntArray
from consenso.engine.single_record_parties import Records, records_of
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.releaser import CompiledRelease, prepare_compiled
from consenso.privacy.run_spec import RunSpec
from consenso.privacy.samplers import Seeded
from consenso.public_facts import PublicFacts
from consenso.shards import Shards

if TYPE_CHECKING:
    from consenso.engine.in_process import Progress

# Parties that one thread takes at a time: a part of a millisecond for rows of a hundred features.
PIECE = 1 << 11


def compile_cohorts(algorithm: object, spec: RunSpec, shards: Shards) -> Cohorts | None:
    """The compiled rounds of a run, or None where there are none for it.

    There are for `ConsensusADMM` under local trust and without a probe, with seeded Gaussian noise, dense rows, one for
    each party, and scalar losses; for every schedule and every regularizer.
    """
    policy = spec.policy
    # A subclass may have another step, so the type is exact.
    if (
        type(algorithm) is not ConsensusADMM
        or policy.trust != "local"
        or policy.probe is not None
        or not isinstance(policy.sampler, Seeded)
        or not isinstance(policy.noise_for("residual"), GaussianNoise | NoNoise)
    ):
        return None
    records = records_of(spec, shards, algorithm.step)
    return None if records is None else Cohorts(algorithm, spec, records, policy.sampler.seed)


class Cohorts:
    """The steps of one run."""

    def __init__(self, algorithm: ConsensusADMM, spec: RunSpec, records: Records, seed: int) -> None:
        self._algorithm, self._setting, self._seed = algorithm, spec, np.uint64(seed)
        self._constants = *records, float(algorithm.tolerance)
        problem, releases = spec.facts.problem, spec.declared(algorithm.releases)(spec.facts)
        # Equal parties share one number (see `Bounds`): then what is declared for all holds for every cohort.
        alike = all(isinstance(release.bounds.at(problem.unit, problem.adjacency), float) for release in releases)
        self._releases = releases if alike else None

    def run(self, progress: Progress, facts: PublicFacts, down: Down, largest: dict[str, float]) -> tuple[Up, IntArray]:
        """One step of a cohort: what it sends, summed over pieces of it, and who is left to the general engine.

        The states are changed in place: the engine owns them.
        """
        from consenso.engine.cohort_kernels import consensus_cohort
        from consenso.kernels.compiled import run_pieces

        cohort, releaser = facts.cohort, self._passage(facts, largest)
        round_, *upper = releaser.key.counter
        draw = self._seed, round_, (np.uint64(upper[0]), np.uint64(upper[1]))
        scales = np.atleast_1d(np.asarray(releaser.entry.scale, dtype=np.float64))
        done, totals = np.empty(len(cohort), dtype=np.bool_), np.zeros((-(-len(cohort) // PIECE), facts.dim))
        step = releaser.clip, float(self._algorithm.relaxation), down.z, cohort, scales, draw
        run_pieces(consensus_cohort, len(cohort), PIECE, *self._constants, *step, progress.state.u, done, totals, PIECE)
        if done.all():
            progress.record(releaser.entry, in_parts=False)
        elif done.any():
            progress.record(self._passage(facts.only(cohort[done]), largest).entry, in_parts=False)
        return Up(increment=releaser.sum(totals)), cohort[~done]

    def _passage(self, facts: PublicFacts, largest: dict[str, float]) -> CompiledRelease:
        releases = self._algorithm.releases(facts) if self._releases is None else self._releases
        return prepare_compiled(self._setting.policy, facts, releases, largest=largest)
