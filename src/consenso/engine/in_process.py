"""A run in this process: both shapes, all parties of a round as one cohort, or one by one as a deployment does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from consenso.algorithms.shape import CompiledRounds, Finishes, HubAlgorithm, PeerAlgorithm
from consenso.arrays import Array, IntArray
from consenso.engine.coins import make_coins
from consenso.engine.compiled import CompiledCohorts, compile_rounds
from consenso.engine.release_records import ReleaseRecords, Spent, add_part
from consenso.engine.round import Neighbourhood, add_messages, stack_messages, take_hub_round, take_peer_round
from consenso.engine.states import own, put, take
from consenso.engine.step import FAILURES, forget, take_step
from consenso.engine.sums import RoundSum
from consenso.engine.walk import CompiledWalk
from consenso.planning.plan import Plan
from consenso.privacy.releaser import Record, ReleaseRecord
from consenso.public_facts import PublicFacts
from consenso.schedules import RandomWalk
from consenso.shards import Shards

# A cohort's message is at most this many numbers: temporaries of a million parties would not fit in memory at once.
COHORT_NUMBERS = 1 << 23

Watch = Callable[[int, Any, Any], None]


class InProcessRun:
    """The parties of a plan, all in this process, and where their run stands: everything that a checkpoint must keep.

    A walk may run many rounds in one compiled call; it then stops at least at the multiples of `stride`. `plain` leaves
    compiled rounds aside, `one_by_one` cohorts too. `make_sum` makes what adds up a round's messages; with another one,
    whoever tests can look at single contributions. `watch` is called with each round, what was added up or said in it,
    and the hub before it.
    """

    def __init__(
        self,
        plan: Plan,
        shards: Shards,
        *,
        one_by_one: bool = False,
        plain: bool = False,
        stride: int | None = None,
        make_sum: Callable[[Plan, PublicFacts, Record], RoundSum] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.plan, self.facts, self._shards = plan, plan.facts, shards
        self._one_by_one, self._plain, self._stride = one_by_one, plain, stride
        self._make_sum, self._watch = make_sum or partial(RoundSum, on_grid=True), watch
        self._compiled: CompiledCohorts | None = None
        algorithm = plan.algorithm
        self.hub: Any = algorithm.start(plan.facts) if plan.shape == "hub" else None
        self.state: Any = own(algorithm.enroll(plan.facts, shards.cohort()))
        self.round = 0
        self.previous: IntArray | None = None  # who took part in the last round
        self.entries = ReleaseRecords()
        self.coins: dict[str, list[float]] = {}  # draws of the schedule that several rounds share
        self.shares: Spent = {}

    @property
    def model(self) -> Array:
        """The model as it stands: the hub's, or the mean over nodes."""
        facts = self.plan.facts.at(self.round)
        if self.plan.shape == "hub":
            model: Array = self.plan.algorithm.model(facts, self.hub)
            return model
        models: Array = self.plan.algorithm.models(facts, self.state)
        mean: Array = models.mean(axis=0)
        return mean

    def rounds(self) -> Iterator[int]:
        """Run the rounds that are left; yields after each, or after the last of a fused block."""
        plan, algorithm = self.plan, self.plan.algorithm
        coins = make_coins(plan.sampler, self.coins)
        last = plan.schedule.length(plan.rounds, coins)
        compiled = CompiledRounds() if self._one_by_one or self._plain else compile_rounds(plan, self._shards)
        self._compiled = None if compiled.cohort is None else CompiledCohorts(plan, compiled.cohort)
        walk = None
        if compiled.walk is not None and self._watch is None and isinstance(plan.schedule, RandomWalk):
            walk = CompiledWalk(plan, compiled.walk)
        # Asked once: looking a protocol up in every round would cost as much as a small step.
        finished = algorithm.finished if isinstance(algorithm, Finishes) else None
        while self.round < last:
            self.facts = plan.facts.at(self.round)
            if finished is not None and finished(self.facts, self.hub):
                return
            if walk is not None and walk.run(self, self._stop(last)):
                yield self.round
                continue
            if plan.shape == "hub":
                self.previous = plan.schedule.active(self.round, self.previous, plan.parties, coins)
                self.hub = take_hub_round(cast(HubAlgorithm, algorithm), self.facts, self.hub, self._add_up)
            else:
                take_peer_round(cast(PeerAlgorithm, algorithm), self)
            self.round += 1
            yield self.round

    def record(self, entry: ReleaseRecord) -> None:
        """Keep an entry of the run's ledger; parts of one cost may not exceed the whole."""
        add_part(self.shares, entry)
        self.entries.append(entry)

    # --- the parties of a round, as `consenso.engine.round` asks for them ---------------------------------------

    def active(self) -> list[IntArray]:
        """Those whom the schedule chose."""
        assert self.previous is not None
        return self._split(self.previous)

    def silent(self) -> list[IntArray]:
        """Those whom it did not choose, where everybody adds a share of the noise."""
        if not self.plan.mode.sums_in_steps:
            return []
        assert self.previous is not None
        return self._split(np.setdiff1d(self.facts.cohort, self.previous))

    def send(self, cohort: IntArray, down: Any) -> list[Any]:
        """Compiled where there is a compiled step; parties that it cannot certify take the plain one."""
        if self._compiled is None:
            return self._take_steps(cohort, down)
        up, left = self._compiled.run(self, self.facts.only(cohort), down)
        return [up, *self._take_steps(left, down)] if len(left) else [up]

    def stand_in(self, down: Any) -> Any:
        """Party 0 takes the step, none of which is kept."""
        return self._step(np.zeros(1, dtype=np.int64), down, record=forget)[1]

    def cohorts(self) -> list[IntArray]:
        return self._split(self.facts.cohort)

    def say(self, cohort: IntArray) -> list[Any]:
        return self._take_steps(cohort)

    def exchange(self, messages: list[Any]) -> Any:
        """Everybody's message, on top of each other."""
        said = stack_messages(messages)
        if self._watch is not None:
            self._watch(self.round, said, None)
        return said

    def stand(self, cohort: IntArray) -> tuple[PublicFacts, Any]:
        return self.facts.only(cohort), take(self.state, cohort, self._shards.offsets)

    def listen(self, cohort: IntArray, said: Any) -> Neighbourhood:
        assert self.plan.topology is not None
        return Neighbourhood(said, cohort, self.plan.topology)

    def keep(self, cohort: IntArray, states: Any) -> None:
        self.state = put(self.state, states, cohort, self._shards.offsets)

    # --- inside -------------------------------------------------------------------------------------------------

    def _add_up(self, down: Any) -> Any:
        """The sum of what the parties answer to a hub."""
        total = add_messages(self, down, self._make_sum(self.plan, self.facts, self.record))
        if self._watch is not None:
            self._watch(self.round, total, self.hub)
        return total

    def _take_steps(self, cohort: IntArray, *heard: Any) -> list[Any]:
        """The messages of a cohort. If somebody's rows keep it from its end, the halves of it take their own steps."""
        try:
            after, message = self._step(cohort, *heard, record=self.record)
        except FAILURES:
            if len(cohort) == 1:
                raise
            half = len(cohort) // 2
            return [*self._take_steps(cohort[:half], *heard), *self._take_steps(cohort[half:], *heard)]
        self.keep(cohort, after)
        return [message]

    def _step(self, cohort: IntArray, *heard: Any, record: Record) -> tuple[Any, Any]:
        here, before = self.stand(cohort)
        return take_step(self.plan, here, self._shards.cohort(cohort), before, *heard, record=record)

    def _stop(self, last: int) -> int:
        """The round before which a walk has to stop."""
        return last if self._stride is None else min(last, (self.round // self._stride + 1) * self._stride)

    def _split(self, active: IntArray) -> list[IntArray]:
        """All at once, in pieces that fit in memory, or one by one."""
        length = 1 if self._one_by_one else max(1, COHORT_NUMBERS // self.facts.dim)
        return [active[start : start + length] for start in range(0, len(active), length)]
