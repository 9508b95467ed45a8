"""The in-process engine: both shapes, all parties of a round as one cohort, or one by one as a deployment does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from scipy import sparse

from consenso.algorithms.shape import Finishes, HubAlgorithm, PeerAlgorithm
from consenso.arrays import Array, IntArray
from consenso.engine.cohorts import Cohorts, compile_cohorts
from consenso.engine.release_records import ReleaseRecords
from consenso.engine.states import own, put, take
from consenso.engine.step import opened
from consenso.engine.sums import RoundSum
from consenso.engine.walk import compile_walk
from consenso.errors import PrivacyError
from consenso.privacy.releaser import PendingSums, ReleaseRecord
from consenso.privacy.run_spec import RunSpec, largest_bounds
from consenso.public_facts import PublicFacts
from consenso.schedules import Coins
from consenso.shards import Shards


@dataclass
class Progress:
    """Where a run stands: everything that a checkpoint must keep."""

    state: Any
    hub: Any = None
    round: int = 0
    previous: IntArray | None = None
    entries: ReleaseRecords = field(default_factory=ReleaseRecords)
    coins: dict[str, list[float]] = field(default_factory=dict)  # draws of the schedule that several rounds share
    shares: dict[str, dict[int, float]] = field(default_factory=dict)  # by release, by round

    def record(self, entry: ReleaseRecord, *, in_parts: bool) -> None:
        """Keep an entry of the run's ledger; parts of one cost may not exceed the whole."""
        if in_parts:
            # Every party of a round makes the same part.
            spent = self.shares.setdefault(entry.name, {})
            spent[entry.round] = max(entry.share, spent.get(entry.round, 0.0))
            if sum(spent.values()) > 1 + 1e-9:
                raise PrivacyError(
                    f"Release {entry.name!r}: its parts add up to {sum(spent.values()):.6g} of the declared cost."
                )
        self.entries.append(entry)


# A cohort's message is at most this many numbers: temporaries of a million parties would not fit in memory at once.
COHORT_NUMBERS = 1 << 23

Watch = Callable[[int, Any, Any], None]


def _ignore(round_: int, message: Any, hub: Any) -> None:
    """Watch nothing."""


@dataclass(frozen=True, kw_only=True)
class InProcessEngine:
    """Runs a spec on shards that are all in this process.

    A walk may run many rounds in one compiled call; it then stops at least at the multiples of `stride`.
    """

    one_by_one: bool = False
    stride: int | None = None

    def start(self, algorithm: HubAlgorithm | PeerAlgorithm, spec: RunSpec, shards: Shards) -> Progress:
        """A run before its first round."""
        hub = algorithm.start(spec.facts) if isinstance(algorithm, HubAlgorithm) else None
        return Progress(state=own(algorithm.enroll(spec.facts, shards.cohort())), hub=hub)

    def rounds(
        self,
        algorithm: HubAlgorithm | PeerAlgorithm,
        spec: RunSpec,
        shards: Shards,
        progress: Progress,
        coins: Coins,
        watch: Watch = _ignore,
    ) -> Iterator[int]:
        """Run the rounds that are left, updating `progress`; yields after each, or after the last of a fused block."""
        last = spec.schedule.length(spec.rounds, coins)
        watched = self.one_by_one or watch is not _ignore
        walk = None if watched else compile_walk(algorithm, spec, shards, coins)
        compiled = None if self.one_by_one else compile_cohorts(algorithm, spec, shards)
        # Asked once: looking a protocol up in every round would cost as much as a small step.
        finished = algorithm.finished if isinstance(algorithm, Finishes) else None
        is_hub = isinstance(algorithm, HubAlgorithm)
        while progress.round < last:
            if finished is not None and finished(spec.facts.at(progress.round), progress.hub):
                return
            if walk is not None and walk.run(progress, self._stop(progress.round, last)):
                yield progress.round
                continue
            if is_hub:
                self._hub_round(cast(HubAlgorithm, algorithm), spec, shards, progress, coins, watch, compiled)
            else:
                self._peer_round(cast(PeerAlgorithm, algorithm), spec, shards, progress, watch)
            progress.round += 1
            yield progress.round

    def _stop(self, round_: int, last: int) -> int:
        """The round before which a walk has to stop."""
        return last if self.stride is None else min(last, (round_ // self.stride + 1) * self.stride)

    def _hub_round(
        self,
        algorithm: HubAlgorithm,
        spec: RunSpec,
        shards: Shards,
        progress: Progress,
        coins: Coins,
        watch: Watch,
        compiled: Cohorts | None,
    ) -> None:
        round_ = progress.round
        active = spec.schedule.active(round_, progress.previous, spec.parties, coins)
        progress.previous = active
        facts = spec.facts.at(round_)
        down = algorithm.down(facts, progress.hub)
        largest = largest_bounds(spec, algorithm.releases, round_)
        gathered = RoundSum(spec, facts, largest, progress, declaration=algorithm.releases)
        for cohort in self._cohorts(active, facts):
            here = facts.only(cohort)
            if compiled is not None:
                up, left = compiled.run(progress, here, down, gathered.largest)
                gathered.add(up)
                if not len(left):
                    continue
                cohort, here = left, facts.only(left)
            before = take(progress.state, cohort, shards.offsets)
            with opened(algorithm, spec, here, gathered.largest, gathered.pending, progress) as releaser:
                after, up = algorithm.local(here, down, before, shards.cohort(cohort), releaser)
            progress.state = put(progress.state, after, cohort, shards.offsets)
            gathered.add(up)
        if not len(active):
            # Nobody was sampled. The hub hears noise all the same, or the silence would be a message: party 0 takes
            # the step, none of which is kept, and what it sends counts zero times.
            here = facts.only(np.zeros(1, dtype=np.int64))
            before = take(progress.state, here.cohort, shards.offsets)
            with opened(algorithm, spec, here, gathered.largest, gathered.pending, Progress(state=None)) as releaser:
                _, up = algorithm.local(here, down, before, shards.cohort(here.cohort), releaser)
            gathered.add(up, weight=0.0)
        if spec.policy.trust == "secure-sum":
            silent = np.setdiff1d(np.arange(spec.parties, dtype=np.int64), active)
            for cohort in self._cohorts(silent, facts):
                gathered.add_silence(facts.only(cohort))
        total = gathered.total(algorithm)
        watch(round_, total, progress.hub)
        progress.hub = algorithm.combine(facts, progress.hub, total)

    def _peer_round(
        self,
        algorithm: PeerAlgorithm,
        spec: RunSpec,
        shards: Shards,
        progress: Progress,
        watch: Watch,
    ) -> None:
        assert spec.topology is not None
        facts = spec.facts.at(progress.round)
        largest = largest_bounds(spec, algorithm.releases, progress.round)
        everyone = np.arange(spec.parties, dtype=np.int64)
        pending, said = PendingSums(), []
        for cohort in self._cohorts(everyone, facts):
            here = facts.only(cohort)
            before = take(progress.state, cohort, shards.offsets)
            with opened(algorithm, spec, here, largest, pending, progress) as releaser:
                after, message = algorithm.local(here, before, shards.cohort(cohort), releaser)
            progress.state = put(progress.state, after, cohort, shards.offsets)
            said.append(message)
        everything = _stack(said)
        watch(progress.round, everything, None)
        for cohort in self._cohorts(everyone, facts):
            heard = Neighbourhood(everything, cohort, spec.topology.adjacency, spec.topology.metropolis)
            after = algorithm.absorb(facts.only(cohort), take(progress.state, cohort, shards.offsets), heard)
            progress.state = put(progress.state, after, cohort, shards.offsets)

    def _cohorts(self, active: IntArray, facts: PublicFacts) -> list[IntArray]:
        """All at once, in pieces that fit in memory, or one by one."""
        length = 1 if self.one_by_one else max(1, COHORT_NUMBERS // facts.dim)
        return [active[start : start + length] for start in range(0, len(active), length)]


@dataclass(frozen=True)
class Neighbourhood:
    """What the neighbours of a cohort's nodes said."""

    said: Any
    cohort: IntArray
    adjacency: sparse.csr_array
    metropolis: sparse.csr_array

    def sum(self, name: str) -> Array:
        """Sum over neighbours."""
        return self._product(self.adjacency, name)

    def mix(self, name: str) -> Array:
        """Metropolis average over the node and its neighbours."""
        return self._product(self.metropolis, name)

    def _product(self, matrix: sparse.csr_array, name: str) -> Array:
        values = getattr(self.said, name)
        rows = matrix if len(self.cohort) == matrix.shape[0] else matrix[self.cohort]
        return np.asarray(rows @ values)


def _stack(messages: list[Any]) -> Any:
    if len(messages) == 1:
        return messages[0]
    names = [each.name for each in dataclasses.fields(messages[0])]
    return type(messages[0])(**{name: np.concatenate([getattr(m, name) for m in messages]) for name in names})
