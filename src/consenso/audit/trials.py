"""Many runs of one plan on one data set, side by side: the runs that the audit attacks.

Everything that touches privacy is the library's own: the algorithm, its declarations, the releaser, the noise and the
sums' noise. Trial t draws its noise as party t * parties + i and its hub as hub t, so that trial 0 is bit for bit the
run that the in-process engine makes with the same seed, and no trial depends on which others it is run beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.algorithms.shape import Finishes, HubAlgorithm
from consenso.arrays import Array, IntArray
from consenso.audit.copies import Copied, CopiedNeighbourhood, Hubs, ListedHubs, StackedHubs, Stacking, at
from consenso.audit.releasers import RecordingReleaser, ReleaseCall
from consenso.engine.coins import SCHEDULE_STREAM
from consenso.engine.round import add_messages, take_hub_round, take_peer_round
from consenso.engine.states import own, put, take
from consenso.engine.step import take_step
from consenso.engine.sums import RoundSum
from consenso.planning.plan import Plan
from consenso.privacy.release import HUB, Release
from consenso.privacy.releaser import Releaser, SumTerm
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.samplers import Key, Seeded
from consenso.public_facts import PublicFacts
from consenso.schedules import Everyone, RandomStopping
from consenso.shards import Cohort, Shards


@dataclass(frozen=True, eq=False)
class Scene:
    """One round of all trials: what was computed, what was sent, what was heard."""

    facts: PublicFacts  # of everyone, in this round
    down: Any  # what the hubs sent, stacked; None on a graph
    rows: IntArray  # who took part, as trial * parties + party
    copies: Copied  # the trials of these rows
    alive: IntArray  # trials that have not stopped
    largest: dict[str, float]
    calls: list[ReleaseCall]
    coins: dict[str, list[NDArray[np.bool_]]]  # hidden coins by release
    up: Any  # what the parties sent
    sums: dict[tuple[str, int], Array]  # opened sums by release and repetition, (trials, size)
    shares: dict[tuple[str, int], Array]  # each row's own noise under a secure sum, (rows, size)
    places: dict[int, IntArray] = field(default_factory=dict)  # by party, once somebody has asked

    def place_of(self, party: int, parties: int) -> IntArray:
        """Where a party's row is in the cohort of each trial, -1 where it took no part, (trials,)."""
        if party not in self.places:
            place = np.full(self.copies.trials, -1, dtype=np.int64)
            mine = np.flatnonzero(self.rows % parties == party)
            place[self.copies.trial_of_row[mine]] = mine
            self.places[party] = place
        return self.places[party]


class Trials:
    """Runs first, ..., first + count - 1 of a plan with a seed."""

    def __init__(
        self, plan: Plan, shards: Shards, *, count: int, seed: int, stacking: Stacking, first: int = 0
    ) -> None:
        self.plan, self.shards, self.count, self.first, self.stacking = plan, shards, count, first, stacking
        self.parties = plan.parties
        # Of all rounds, so that what is computed from public facts is computed once.
        self.seeded = replace(plan, sampler=Seeded(seed), probe=None)
        self.party_of_row = np.tile(np.arange(self.parties, dtype=np.int64), count)
        self._everyone = shards.cohort(self.party_of_row)
        sizes = np.tile(np.diff(shards.offsets), count)
        self.offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.state = own(plan.algorithm.enroll(plan.facts.only(self.party_of_row), self._everyone))
        self.hubs = hubs_of(plan, count, stacking)
        self.round = np.zeros(count, dtype=np.int64)  # rounds done
        self._previous: list[IntArray | None] = [None] * count
        self._tossed: tuple[tuple[int, int, int], Array] = ((-1, -1, -1), np.empty((0, 0)))

    def cohort_at(self, rows: IntArray) -> Cohort:
        """The objectives of rows, each the party of a trial."""
        everyone = len(rows) == len(self.party_of_row)
        return self._everyone if everyone else self.shards.cohort(self.party_of_row[rows])

    def draws_as(self, rows: IntArray) -> IntArray:
        """Under which numbers rows draw their noise."""
        return rows + self.first * self.parties

    def repeat_per_row(self, record: Any, trials: IntArray) -> Any:
        """What a hub sent, for a row of each of these trials."""
        return record if self.stacking is Stacking.NOTHING else at(record, trials)

    def rounds(self) -> Iterator[Scene]:
        """Run to the end."""
        ends = isinstance(self.plan.algorithm, Finishes)
        lasts = np.array([self.plan.schedule.length(self.plan.rounds, self._coins(t)) for t in range(self.count)])
        for round_ in range(self.plan.rounds):
            alive = np.flatnonzero(lasts > round_)
            facts = self.plan.facts.at(round_)
            if not len(alive) or (ends and self._is_finished(facts)):
                return
            if self.hubs is None:
                yield self._peer_round(facts, alive)
            else:
                yield self._hub_round(facts, alive)
            self.round[alive] += 1

    def models(self) -> Array:
        """The released models, (trials, dim)."""
        facts = self.plan.facts
        if self.hubs is not None:
            return self.hubs.models(facts.at(int(self.round.max())))
        here = facts.at(int(self.round.max())).only(self.party_of_row)
        models: Array = self.plan.algorithm.models(here, self.state)
        mean: Array = models.reshape(self.count, self.parties, -1).mean(axis=1)
        return mean

    def _is_finished(self, facts: PublicFacts) -> bool:
        # Trials that end at different times are taken one at a time.
        assert isinstance(self.hubs, ListedHubs)
        return bool(self.plan.algorithm.finished(facts, self.hubs.value[0]))

    def _hub_round(self, facts: PublicFacts, alive: IntArray) -> Scene:
        assert self.hubs is not None
        step = _Step(self, facts, self._active(facts.round, alive))
        total = _TrialSum(self, facts, step.rows)
        down: list[Any] = []

        def add_up(sent: Any) -> Any:
            down.append(sent)
            return add_messages(step, sent, total)

        take_hub_round(_Alive(self.hubs, alive), facts, self.hubs, add_up)
        shares = {}
        if self.seeded.mode.sums_in_steps:
            shares = {key: part - step.find_exact(key, part) for key, part in total.parts.items()}
        return step.scene(down[0], alive, total.heard, shares)

    def _peer_round(self, facts: PublicFacts, alive: IntArray) -> Scene:
        step = _Step(self, facts, np.arange(self.count * self.parties, dtype=np.int64))
        take_peer_round(self.plan.algorithm, step)
        return step.scene(None, alive, {}, {})

    def _active(self, round_: int, alive: IntArray) -> IntArray:
        schedule = self.plan.schedule
        if isinstance(schedule, Everyone):
            return np.arange(self.count * self.parties, dtype=np.int64)
        chosen = []
        for trial in alive:
            active = schedule.active(round_, self._previous[trial], self.parties, self._coins(int(trial)))
            self._previous[trial] = active
            chosen.append(trial * self.parties + active)
        return np.concatenate(chosen).astype(np.int64)

    def _coins(self, trial: int) -> Any:
        def coins(round_: int, stream: int, count: int) -> Array:
            wanted = (round_, stream, count)
            if self._tossed[0] != wanted:
                # The coins of all trials at once: trial after trial asks for the same draw.
                hubs = HUB + self.first + np.arange(self.count, dtype=np.int64)
                key = Key(parties=hubs, round=round_, release=stream, repetition=0, stream=SCHEDULE_STREAM)
                self._tossed = (wanted, self.seeded.sampler.uniform(key, count))
            drawn: Array = self._tossed[1][trial]
            return drawn

        return coins


def hubs_of(plan: Plan, count: int, stacking: Stacking) -> Hubs | None:
    """The hubs before the first round; none on a graph."""
    if not isinstance(plan.algorithm, HubAlgorithm):
        return None
    facts = plan.facts
    if stacking is Stacking.HUBS and not isinstance(plan.schedule, RandomStopping):
        return StackedHubs(plan.algorithm, facts, count)
    return ListedHubs(plan.algorithm, facts, count, alone=stacking is Stacking.NOTHING)


@dataclass(frozen=True)
class _Alive:
    """The hubs' half of the algorithm, in the trials that still run."""

    hubs: Hubs
    alive: IntArray

    def down(self, facts: PublicFacts, hub: Hubs) -> Any:
        return hub.down(facts)

    def combine(self, facts: PublicFacts, hub: Hubs, total: Any) -> Hubs:
        hub.combine(facts, total, self.alive)
        return hub


class _TrialSum(RoundSum):
    """A sum for each trial, with the noise of its own hub."""

    def __init__(self, run: Trials, facts: PublicFacts, rows: IntArray) -> None:
        super().__init__(run.seeded, facts, on_grid=True)
        self._run, self._rows = run, rows
        self.heard: dict[tuple[str, int], Array] = {}
        self.parts: dict[tuple[str, int], Array] = {}

    def sum_rows(self, values: Any, cohort: IntArray) -> Any:
        return Copied(self._run.count, cohort // self._run.parties).sums(values)

    def draws_as(self, cohort: IntArray) -> IntArray:
        return self._run.draws_as(cohort)

    def open_part(self, part: SumTerm, total: Array) -> Array:
        key = part.release.name, part.repetition
        self.parts[key], self.heard[key] = part.value[: len(self._rows)], self._add_noise(part, total)
        return self.heard[key]

    def _add_noise(self, part: SumTerm, total: Array) -> Array:
        plan, facts, run = self.plan, self.facts, self._run
        if not plan.mode.noise_at_hub:
            return total
        sensitivity = plan.sensitivity(part.release, facts, self.largest[part.release.name])
        hubs = HUB + run.first + np.arange(run.count, dtype=np.int64)
        key = Key(parties=hubs, round=facts.round, release=part.index, repetition=part.repetition)
        scaled = sensitivity * part.bound / np.sqrt(part.share)
        return plan.noise_for(part.release.name).sample(total, scaled, facts.round, key, plan.sampler)


class _Step:
    """All rows of one round as one cohort, and what is noted of their step."""

    def __init__(self, run: Trials, facts: PublicFacts, rows: IntArray) -> None:
        self._run, self.rows, self._facts = run, rows, facts
        self._largest = largest_bounds(run.seeded, run.plan.algorithm.releases, facts.round)
        self._releaser: RecordingReleaser | None = None
        self._up: Any = None

    def active(self) -> list[IntArray]:
        return [self.rows] if len(self.rows) else []

    def silent(self) -> list[IntArray]:
        many = self._run.count * self._run.parties
        if len(self.rows) == many or not self._run.seeded.mode.sums_in_steps:
            return []
        return [np.setdiff1d(np.arange(many, dtype=np.int64), self.rows)]

    def send(self, cohort: IntArray, down: Any) -> list[Any]:
        run = self._run
        after, self._up = self._take(cohort, run.repeat_per_row(down, cohort // run.parties))
        run.state = put(run.state, after, cohort, run.offsets)
        return [self._up]

    def stand_in(self, down: Any) -> Any:
        """If nobody at all was sampled, party 0 of the first trial moves and is not counted."""
        first = np.zeros(1, dtype=np.int64)
        _, self._up = self._take(first, self._run.repeat_per_row(down, first))
        assert self._releaser is not None
        self._releaser.calls = [call.at(slice(0)) for call in self._releaser.calls]
        return self._up

    def cohorts(self) -> list[IntArray]:
        return [self.rows]

    def say(self, cohort: IntArray) -> list[Any]:
        self._run.state, self._up = self._take(cohort)
        return [self._up]

    def exchange(self, messages: list[Any]) -> Any:
        (said,) = messages
        return said

    def stand(self, cohort: IntArray) -> tuple[PublicFacts, Any]:
        return self._facts.only(self._run.party_of_row), self._run.state

    def listen(self, cohort: IntArray, said: Any) -> CopiedNeighbourhood:
        topology = self._run.plan.topology
        assert topology is not None
        return CopiedNeighbourhood(said, self._run.count, topology.adjacency, topology.metropolis)

    def keep(self, cohort: IntArray, states: Any) -> None:
        self._run.state = states

    def scene(
        self, down: Any, alive: IntArray, sums: dict[tuple[str, int], Array], shares: dict[tuple[str, int], Array]
    ) -> Scene:
        rows, releaser = self.rows, self._releaser
        assert releaser is not None
        copies = Copied(self._run.count, rows // self._run.parties)
        calls, coins = releaser.calls, releaser.coins_drawn
        return Scene(self._facts, down, rows, copies, alive, self._largest, calls, coins, self._up, sums, shares)

    def find_exact(self, key: tuple[str, int], like: Array) -> Array:
        """What a row put under its noise."""
        assert self._releaser is not None
        for call in self._releaser.calls:
            if (call.release.name, call.repetition) == key:
                return call.exact
        return np.zeros_like(like)

    def _take(self, rows: IntArray, *heard: Any) -> tuple[Any, Any]:
        run, here = self._run, self._facts.only(self._run.party_of_row[rows])

        def note(inner: Releaser, releases: tuple[Release, ...]) -> Releaser:
            self._releaser = RecordingReleaser(inner, run.seeded, here, releases, self._largest)
            return self._releaser

        before, drawn = take(run.state, rows, run.offsets), run.draws_as(rows)
        return take_step(run.seeded, here, run.cohort_at(rows), before, *heard, draws_as=drawn, watch=note)
