"""The in-process engine: both shapes, all parties of a round as one cohort, or one by one as a deployment does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from consenso.algorithms.shape import CompiledRounds, Finishes, HubAlgorithm, PeerAlgorithm
from consenso.arrays import IntArray
from consenso.engine.compiled import CompiledCohorts, compile_rounds
from consenso.engine.release_records import ReleaseRecords
from consenso.engine.round import Neighbourhood, add_messages, stack_messages, take_hub_round, take_peer_round
from consenso.engine.states import own, put, take
from consenso.engine.step import FAILURES, NoRecorder, RoundContext, take_step
from consenso.engine.sums import RoundSum, add_on_grid
from consenso.engine.walk import CompiledWalk, can_walk
from consenso.errors import PrivacyError
from consenso.privacy.releaser import ReleaseRecord
from consenso.privacy.run_spec import RunSpec
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

    A walk may run many rounds in one compiled call; it then stops at least at the multiples of `stride`. `plain` leaves
    compiled rounds aside, `one_by_one` cohorts too. `make_sum` makes what adds up a round's messages; with another one,
    whoever tests can look at single contributions.
    """

    one_by_one: bool = False
    plain: bool = False
    stride: int | None = None
    make_sum: Callable[[RoundContext], RoundSum] = add_on_grid

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
        compiled = CompiledRounds() if self.one_by_one or self.plain else compile_rounds(algorithm, spec, shards)
        cohorts = None if compiled.cohort is None else CompiledCohorts(algorithm, spec, compiled.cohort)
        walk = None
        if compiled.walk is not None and watch is _ignore and can_walk(spec, coins):
            walk = CompiledWalk(algorithm, spec, coins, compiled.walk)
        # Asked once: looking a protocol up in every round would cost as much as a small step.
        finished = algorithm.finished if isinstance(algorithm, Finishes) else None
        is_hub = spec.shape == "hub"
        while progress.round < last:
            if finished is not None and finished(spec.facts.at(progress.round), progress.hub):
                return
            if walk is not None and walk.run(progress, self._stop(progress.round, last)):
                yield progress.round
                continue
            facts = spec.facts.at(progress.round)
            context = RoundContext(algorithm, spec, facts, progress)
            parties = _Parties(context, self._cohorts, self.make_sum, shards, progress, watch, cohorts)
            if is_hub:
                progress.previous = spec.schedule.active(progress.round, progress.previous, spec.parties, coins)
                progress.hub = take_hub_round(cast(HubAlgorithm, algorithm), facts, progress.hub, parties.add_up)
            else:
                take_peer_round(parties)
            progress.round += 1
            yield progress.round

    def _stop(self, round_: int, last: int) -> int:
        """The round before which a walk has to stop."""
        return last if self.stride is None else min(last, (round_ // self.stride + 1) * self.stride)

    def _cohorts(self, active: IntArray, facts: PublicFacts) -> list[IntArray]:
        """All at once, in pieces that fit in memory, or one by one."""
        length = 1 if self.one_by_one else max(1, COHORT_NUMBERS // facts.dim)
        return [active[start : start + length] for start in range(0, len(active), length)]


class _Parties:
    """The parties of one round, in this process: those of a hub, or the nodes of a graph."""

    def __init__(
        self,
        context: RoundContext,
        split: Callable[[IntArray, PublicFacts], list[IntArray]],
        make_sum: Callable[[RoundContext], RoundSum],
        shards: Shards,
        progress: Progress,
        watch: Watch,
        compiled: CompiledCohorts | None = None,
    ) -> None:
        self._context, self._split, self._shards, self._progress = context, split, shards, progress
        self._watch, self._compiled, self._everyone = watch, compiled, context.facts.cohort
        self._make_sum = make_sum

    def add_up(self, down: Any) -> Any:
        """The sum of what they answer to a hub."""
        total = add_messages(self, down, self._make_sum(self._context))
        self._watch(self._context.facts.round, total, self._progress.hub)
        return total

    def active(self) -> list[IntArray]:
        """Those whom the schedule chose."""
        assert self._progress.previous is not None
        return self._split(self._progress.previous, self._context.facts)

    def silent(self) -> list[IntArray]:
        """Those whom it did not choose, where everybody adds a share of the noise."""
        if not self._context.spec.policy.mode.sums_in_steps:
            return []
        assert self._progress.previous is not None
        return self._split(np.setdiff1d(self._everyone, self._progress.previous), self._context.facts)

    def send(self, cohort: IntArray, down: Any) -> list[Any]:
        """Compiled where there is a compiled step; parties that it cannot certify take the plain one."""
        if self._compiled is None:
            return self._take_steps(cohort, down)
        context = self._context
        up, left = self._compiled.run(self._progress, context.facts.only(cohort), down, context.largest)
        return [up, *self._take_steps(left, down)] if len(left) else [up]

    def stand_in(self, down: Any) -> Any:
        """Party 0 takes the step, none of which is kept."""
        aside = replace(self._context, recorder=NoRecorder())
        return self._step(aside, np.zeros(1, dtype=np.int64), down)[1]

    def cohorts(self) -> list[IntArray]:
        return self._split(self._everyone, self._context.facts)

    def say(self, cohort: IntArray) -> list[Any]:
        return self._take_steps(cohort)

    def exchange(self, messages: list[Any]) -> Any:
        """Everybody's message, on top of each other."""
        said = stack_messages(messages)
        self._watch(self._context.facts.round, said, None)
        return said

    def hear(self, cohort: IntArray, said: Any) -> None:
        """What a node does with what its neighbours said."""
        context, progress, offsets = self._context, self._progress, self._shards.offsets
        assert context.spec.topology is not None
        algorithm = cast(PeerAlgorithm, context.algorithm)
        heard = Neighbourhood(said, cohort, context.spec.topology)
        after = algorithm.absorb(context.facts.only(cohort), take(progress.state, cohort, offsets), heard)
        progress.state = put(progress.state, after, cohort, offsets)

    def _take_steps(self, cohort: IntArray, *heard: Any) -> list[Any]:
        """The messages of a cohort. If somebody's rows keep it from its end, the halves of it take their own steps."""
        try:
            after, message = self._step(self._context, cohort, *heard)
        except FAILURES:
            if len(cohort) == 1:
                raise
            half = len(cohort) // 2
            return [*self._take_steps(cohort[:half], *heard), *self._take_steps(cohort[half:], *heard)]
        self._progress.state = put(self._progress.state, after, cohort, self._shards.offsets)
        return [message]

    def _step(self, context: RoundContext, cohort: IntArray, *heard: Any) -> tuple[Any, Any]:
        before = take(self._progress.state, cohort, self._shards.offsets)
        return take_step(context, context.facts.only(cohort), self._shards.cohort(cohort), before, *heard)
