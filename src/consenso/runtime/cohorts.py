"""Rounds of many parties of one record each, each round in one compiled pass over them.

`compiled_cohorts` gives the step of `ConsensusADMM` together with its door: the same prox and certificate, the same
clip, the same noise from the same counters, the same entry in the ledger, so that the model is the general engine's up
to rounding. Where it returns None, and for every party whose prox the compiled step cannot certify, the general engine
runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM, Down, Up
from consenso.arrays import IntArray
from consenso.facts import Facts
from consenso.privacy.door import Passage, passage
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.samplers import Seeded
from consenso.privacy.setting import Setting
from consenso.runtime.one_record import Records, records_of
from consenso.shards import Shards

if TYPE_CHECKING:
    from consenso.runtime.local import Progress

# Parties that one thread takes at a time: a part of a millisecond for rows of a hundred features.
PIECE = 1 << 11


def compiled_cohorts(algorithm: object, setting: Setting, shards: Shards) -> Cohorts | None:
    """The compiled rounds of a run, or None where there are none for it.

    There are for `ConsensusADMM` under local trust and without a probe, with seeded Gaussian noise, dense rows, one for
    each party, and scalar losses; for every schedule and every regularizer.
    """
    doorway = setting.doorway
    # A subclass may have another step, so the type is exact.
    if (
        type(algorithm) is not ConsensusADMM
        or doorway.trust != "local"
        or doorway.probe is not None
        or not isinstance(doorway.sampler, Seeded)
        or not isinstance(doorway.noise_for("residual"), GaussianNoise | NoNoise)
    ):
        return None
    records = records_of(setting, shards, algorithm.step)
    return None if records is None else Cohorts(algorithm, setting, records, doorway.sampler.seed)


class Cohorts:
    """The steps of one run."""

    def __init__(self, algorithm: ConsensusADMM, setting: Setting, records: Records, seed: int) -> None:
        self._algorithm, self._setting, self._seed = algorithm, setting, np.uint64(seed)
        self._constants = *records, float(algorithm.tolerance)
        problem, releases = setting.facts.problem, algorithm.releases(setting.facts)
        # Equal parties share one number (see `Bounds`): then what is declared for all holds for every cohort.
        alike = all(isinstance(release.bounds.at(problem.unit, problem.adjacency), float) for release in releases)
        self._releases = releases if alike else None

    def run(self, progress: Progress, facts: Facts, down: Down, largest: dict[str, float]) -> tuple[Up, IntArray]:
        """One step of a cohort: what it sends, summed over pieces of it, and who is left to the general engine.

        The states are changed in place: the engine owns them.
        """
        from consenso.kernels.compiled import run_pieces
        from consenso.runtime.cohort_kernels import consensus_cohort

        cohort, door = facts.cohort, self._passage(facts, largest)
        round_, *upper = door.key.counter
        draw = self._seed, round_, (np.uint64(upper[0]), np.uint64(upper[1]))
        scales = np.atleast_1d(np.asarray(door.entry.scale, dtype=np.float64))
        done, totals = np.empty(len(cohort), dtype=np.bool_), np.zeros((-(-len(cohort) // PIECE), facts.dim))
        step = door.clip, float(self._algorithm.relaxation), down.z, cohort, scales, draw
        run_pieces(consensus_cohort, len(cohort), PIECE, *self._constants, *step, progress.state.u, done, totals, PIECE)
        if done.all():
            progress.record(door.entry, in_parts=False)
        elif done.any():
            progress.record(self._passage(facts.only(cohort[done]), largest).entry, in_parts=False)
        return Up(increment=totals), cohort[~done]

    def _passage(self, facts: Facts, largest: dict[str, float]) -> Passage:
        releases = self._algorithm.releases(facts) if self._releases is None else self._releases
        return passage(self._setting.doorway, facts, releases, largest=largest)
