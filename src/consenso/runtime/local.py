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
from consenso.errors import PrivacyError
from consenso.facts import Facts
from consenso.privacy.door import Entry, Vault
from consenso.privacy.setting import Setting, largest_bounds
from consenso.runtime.cohorts import Cohorts, compiled_cohorts
from consenso.runtime.entries import Entries
from consenso.runtime.records import own, put, take
from consenso.runtime.step import opened
from consenso.runtime.sums import Sum
from consenso.runtime.walk import fused
from consenso.schedules import Coins
from consenso.shards import Shards


@dataclass
class Progress:
    """Where a run stands: everything that a checkpoint must keep."""

    state: Any
    hub: Any = None
    round: int = 0
    previous: IntArray | None = None
    entries: Entries = field(default_factory=Entries)
    coins: dict[str, list[float]] = field(default_factory=dict)  # draws of the schedule that several rounds share
    shares: dict[str, dict[int, float]] = field(default_factory=dict)  # by release, by round

    def record(self, entry: Entry, *, in_parts: bool) -> None:
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
class LocalEngine:
    """Runs a setting on shards that are all in this process.

    A walk may run many rounds in one compiled call; it then stops at least at the multiples of `stride`.
    """

    one_by_one: bool = False
    stride: int | None = None

    def start(self, algorithm: HubAlgorithm | PeerAlgorithm, setting: Setting, shards: Shards) -> Progress:
        """A run before its first round."""
        hub = algorithm.start(setting.facts) if isinstance(algorithm, HubAlgorithm) else None
        return Progress(state=own(algorithm.enroll(setting.facts, shards.cohort())), hub=hub)

    def rounds(
        self,
        algorithm: HubAlgorithm | PeerAlgorithm,
        setting: Setting,
        shards: Shards,
        progress: Progress,
        coins: Coins,
        watch: Watch = _ignore,
    ) -> Iterator[int]:
        """Run the rounds that are left, updating `progress`; yields after each, or after the last of a fused block."""
        last = setting.schedule.length(setting.rounds, coins)
        watched = self.one_by_one or watch is not _ignore
        walk = None if watched else fused(algorithm, setting, shards, coins)
        compiled = None if self.one_by_one else compiled_cohorts(algorithm, setting, shards)
        # Asked once: looking a protocol up in every round would cost as much as a small step.
        finished = algorithm.finished if isinstance(algorithm, Finishes) else None
        is_hub = isinstance(algorithm, HubAlgorithm)
        while progress.round < last:
            if finished is not None and finished(setting.facts.at(progress.round), progress.hub):
                return
            if walk is not None and walk.run(progress, self._stop(progress.round, last)):
                yield progress.round
                continue
            if is_hub:
                self._hub_round(cast(HubAlgorithm, algorithm), setting, shards, progress, coins, watch, compiled)
            else:
                self._peer_round(cast(PeerAlgorithm, algorithm), setting, shards, progress, watch)
            progress.round += 1
            yield progress.round

    def _stop(self, round_: int, last: int) -> int:
        """The round before which a walk has to stop."""
        return last if self.stride is None else min(last, (round_ // self.stride + 1) * self.stride)

    def _hub_round(
        self,
        algorithm: HubAlgorithm,
        setting: Setting,
        shards: Shards,
        progress: Progress,
        coins: Coins,
        watch: Watch,
        compiled: Cohorts | None,
    ) -> None:
        round_ = progress.round
        active = setting.schedule.active(round_, progress.previous, setting.parties, coins)
        progress.previous = active
        facts = setting.facts.at(round_)
        down = algorithm.down(facts, progress.hub)
        largest = largest_bounds(setting, algorithm.releases, round_)
        gathered = Sum(setting, facts, largest, progress, declaration=algorithm.releases)
        for cohort in self._cohorts(active, facts):
            here = facts.only(cohort)
            if compiled is not None:
                up, left = compiled.run(progress, here, down, gathered.largest)
                gathered.add(up)
                if not len(left):
                    continue
                cohort, here = left, facts.only(left)
            before = take(progress.state, cohort, shards.offsets)
            with opened(algorithm, setting, here, gathered.largest, gathered.vault, progress) as door:
                after, up = algorithm.local(here, down, before, shards.cohort(cohort), door)
            progress.state = put(progress.state, after, cohort, shards.offsets)
            gathered.add(up)
        if not len(active):
            # Nobody was sampled. The hub hears noise all the same, or the silence would be a message: party 0 takes
            # the step, none of which is kept, and what it sends counts zero times.
            here = facts.only(np.zeros(1, dtype=np.int64))
            before = take(progress.state, here.cohort, shards.offsets)
            with opened(algorithm, setting, here, gathered.largest, gathered.vault, Progress(state=None)) as door:
                _, up = algorithm.local(here, down, before, shards.cohort(here.cohort), door)
            gathered.add(up, weight=0.0)
        if setting.doorway.trust == "secure-sum":
            silent = np.setdiff1d(np.arange(setting.parties, dtype=np.int64), active)
            for cohort in self._cohorts(silent, facts):
                gathered.add_silence(facts.only(cohort))
        total = gathered.total(algorithm)
        watch(round_, total, progress.hub)
        progress.hub = algorithm.combine(facts, progress.hub, total)

    def _peer_round(
        self,
        algorithm: PeerAlgorithm,
        setting: Setting,
        shards: Shards,
        progress: Progress,
        watch: Watch,
    ) -> None:
        assert setting.topology is not None
        facts = setting.facts.at(progress.round)
        largest = largest_bounds(setting, algorithm.releases, progress.round)
        everyone = np.arange(setting.parties, dtype=np.int64)
        vault, said = Vault(), []
        for cohort in self._cohorts(everyone, facts):
            here = facts.only(cohort)
            before = take(progress.state, cohort, shards.offsets)
            with opened(algorithm, setting, here, largest, vault, progress) as door:
                after, message = algorithm.local(here, before, shards.cohort(cohort), door)
            progress.state = put(progress.state, after, cohort, shards.offsets)
            said.append(message)
        everything = _stack(said)
        watch(progress.round, everything, None)
        for cohort in self._cohorts(everyone, facts):
            heard = Neighbourhood(everything, cohort, setting.topology.adjacency, setting.topology.metropolis)
            after = algorithm.absorb(facts.only(cohort), take(progress.state, cohort, shards.offsets), heard)
            progress.state = put(progress.state, after, cohort, shards.offsets)

    def _cohorts(self, active: IntArray, facts: Facts) -> list[IntArray]:
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
