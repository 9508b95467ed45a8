"""Many runs of one plan on one data set, side by side: the runs that the audit attacks.

Everything that touches privacy is the library's own: the algorithm, its declarations, the releaser, the noise and the
sums' noise. Trial t draws its noise as party t * parties + i and its hub as hub t, so that trial 0 is bit for bit the
run that the in-process engine makes with the same seed, and no trial depends on which others it is run beside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.algorithms.shape import Finishes, HubAlgorithm
from consenso.arrays import Array, IntArray
from consenso.audit.copies import Copied, CopiedNeighbourhood, Hubs, ListedHubs, StackedHubs, Stacking, at
from consenso.audit.releasers import RecordingReleaser, ReleaseCall
from consenso.engine.coins import SCHEDULE_STREAM
from consenso.engine.fixed_point import GridColumn, decode, encode_rows, grids_of
from consenso.engine.states import own, put, take
from consenso.planning.plan import Plan
from consenso.privacy.release import HUB
from consenso.privacy.releaser import (
    PendingSums,
    ReleasePolicy,
    ReleaseRecord,
    SumTerm,
    SumToken,
    open_releaser,
    silent_share,
)
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

    def place_of(self, party: int, parties: int) -> IntArray:
        """Where a party's row is in the cohort of each trial, -1 where it took no part, (trials,)."""
        place = np.full(self.copies.trials, -1, dtype=np.int64)
        mine = np.flatnonzero(self.rows % parties == party)
        place[self.copies.trial_of_row[mine]] = mine
        return place


class Trials:
    """Runs first, ..., first + count - 1 of a plan with a seed."""

    def __init__(
        self, plan: Plan, shards: Shards, *, count: int, seed: int, stacking: Stacking, first: int = 0
    ) -> None:
        spec = plan.spec
        self.plan, self.shards, self.count, self.first, self.stacking = plan, shards, count, first, stacking
        self.parties = spec.parties
        self.policy: ReleasePolicy = replace(spec.policy, sampler=Seeded(seed), probe=None)
        self.party_of_row = np.tile(np.arange(self.parties, dtype=np.int64), count)
        self._everyone = self.cohort_of(self.party_of_row)
        sizes = np.tile(np.diff(shards.offsets), count)
        self.offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.state = own(plan.algorithm.enroll(spec.facts.only(self.party_of_row), self._everyone))
        self.hubs = hubs_of(plan, count, stacking)
        self.round = np.zeros(count, dtype=np.int64)  # rounds done
        self._previous: list[IntArray | None] = [None] * count
        self._tossed: tuple[tuple[int, int, int], Array] = ((-1, -1, -1), np.empty((0, 0)))

    def cohort_of(self, parties: IntArray) -> Cohort:
        """The objectives of parties, of which some may occur many times."""
        return self.shards.cohort(parties)

    def repeat_per_row(self, record: Any, trials: IntArray) -> Any:
        """What a hub sent, for a row of each of these trials."""
        return record if self.stacking is Stacking.NOTHING else at(record, trials)

    def rounds(self) -> Iterator[Scene]:
        """Run to the end."""
        spec, algorithm = self.plan.spec, self.plan.algorithm
        lasts = np.array([spec.schedule.length(spec.rounds, self._coins(t)) for t in range(self.count)])
        for round_ in range(spec.rounds):
            alive = np.flatnonzero(lasts > round_)
            facts = spec.facts.at(round_)
            if not len(alive) or (isinstance(algorithm, Finishes) and self._is_finished(facts)):
                return
            if self.hubs is None:
                yield self._peer_round(facts, alive)
            else:
                yield self._hub_round(facts, alive)
            self.round[alive] += 1

    def models(self) -> Array:
        """The released models, (trials, dim)."""
        facts = self.plan.spec.facts
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
        algorithm = self.plan.algorithm
        rows = self._active(facts.round, alive)
        copies = Copied(self.count, rows // self.parties)
        largest = largest_bounds(self.plan.spec, algorithm.releases, facts.round)
        down, pending = self.hubs.down(facts), PendingSums()
        up, releaser = self._local(facts, down, rows, largest, pending)
        total, sums, shares = self._open(facts, up, copies, rows, largest, pending, releaser)
        self.hubs.combine(facts, total, alive)
        return Scene(facts, down, rows, copies, alive, largest, releaser.calls, releaser.coins_drawn, up, sums, shares)

    def _local(
        self, facts: PublicFacts, down: Any, rows: IntArray, largest: dict[str, float], pending: PendingSums
    ) -> Any:
        """The parties' step. If nobody at all was sampled, party 0 of the first trial moves and is not counted."""
        algorithm = self.plan.algorithm
        acting = rows if len(rows) else np.zeros(1, dtype=np.int64)
        here = facts.only(self.party_of_row[acting])
        releases = algorithm.releases(here)
        drawing = replace(here, cohort=acting + self.first * self.parties)
        inner, close = open_releaser(self.policy, drawing, releases, largest=largest, pending=pending, record=_forget)
        releaser = RecordingReleaser(inner, self.policy, here, releases, largest)
        before = take(self.state, acting, self.offsets)
        cohort = self._everyone if len(acting) == len(self.party_of_row) else self.cohort_of(self.party_of_row[acting])
        if isinstance(algorithm, HubAlgorithm):
            after, up = algorithm.local(
                here, self.repeat_per_row(down, acting // self.parties), before, cohort, releaser
            )
        else:
            after, up = algorithm.local(here, before, cohort, releaser)
        close()
        if len(rows):
            self.state = put(self.state, after, rows, self.offsets)
        else:
            releaser.calls = [_without_rows(call) for call in releaser.calls]
        return up, releaser

    def _open(
        self,
        facts: PublicFacts,
        up: Any,
        copies: Copied,
        rows: IntArray,
        largest: dict[str, float],
        pending: PendingSums,
        releaser: RecordingReleaser,
    ) -> tuple[Any, dict[tuple[str, int], Array], dict[tuple[str, int], Array]]:
        """The sums of what was sent, sealed ones opened as the library does it."""
        total, sums, shares = {}, {}, {}
        grids = grids_of(replace(self.plan.spec, policy=self.policy), self.plan.algorithm.releases, facts.round)
        for each in dataclasses.fields(up):
            value = getattr(up, each.name)
            if not isinstance(value, SumToken):
                column = None if grids is None else grids.column(each.name, value, None)
                total[each.name] = _sum_trials([(copies, value[: len(rows)])], column)
                continue
            sent = pending.take(value)
            key, here = (sent.release.name, sent.repetition), sent.value[: len(rows)]
            column = None if grids is None else grids.column(each.name, here, sent)
            if self.policy.trust == "curator":
                heard = self._with_noise(facts, sent, copies.sums(here), largest)
            else:
                shares[key] = here - _exact(releaser.calls, key, len(rows), sent.release.size)
                heard = _sum_trials([(copies, here), self._silence(facts, sent, rows, largest)], column)
            total[each.name] = sums[key] = heard
        return type(up)(**total), sums, shares

    def _with_noise(self, facts: PublicFacts, sent: SumTerm, total: Array, largest: dict[str, float]) -> Array:
        noise = self.policy.noise_for(sent.release.name)
        sensitivity = self.policy.sensitivity(sent.release, facts, largest[sent.release.name])
        hubs = HUB + self.first + np.arange(self.count, dtype=np.int64)
        key = Key(parties=hubs, round=facts.round, release=sent.index, repetition=sent.repetition)
        return noise.sample(
            total, sensitivity * sent.bound / np.sqrt(sent.share), facts.round, key, self.policy.sampler
        )

    def _silence(
        self, facts: PublicFacts, sent: SumTerm, rows: IntArray, largest: dict[str, float]
    ) -> tuple[Copied, Array]:
        """The noise shares of parties that were not sampled."""
        silent = np.setdiff1d(np.arange(self.count * self.parties, dtype=np.int64), rows)
        copies = Copied(self.count, silent // self.parties)
        if not len(silent):
            return copies, np.zeros((0, sent.release.size))
        drawing = replace(facts, cohort=silent + self.first * self.parties)
        return copies, silent_share(self.policy, drawing, sent, largest)

    def _peer_round(self, facts: PublicFacts, alive: IntArray) -> Scene:
        spec, algorithm = self.plan.spec, self.plan.algorithm
        assert spec.topology is not None
        rows = np.arange(self.count * self.parties, dtype=np.int64)
        largest = largest_bounds(spec, algorithm.releases, facts.round)
        said, releaser = self._local(facts, None, rows, largest, PendingSums())
        heard = CopiedNeighbourhood(said, self.count, spec.topology.adjacency, spec.topology.metropolis)
        self.state = algorithm.absorb(facts.only(self.party_of_row), self.state, heard)
        copies = Copied(self.count, rows // self.parties)
        return Scene(facts, None, rows, copies, alive, largest, releaser.calls, releaser.coins_drawn, said, {}, {})

    def _active(self, round_: int, alive: IntArray) -> IntArray:
        schedule = self.plan.spec.schedule
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
                self._tossed = (wanted, self.policy.sampler.uniform(key, count))
            drawn: Array = self._tossed[1][trial]
            return drawn

        return coins


def hubs_of(plan: Plan, count: int, stacking: Stacking) -> Hubs | None:
    """The hubs before the first round; none on a graph."""
    if not isinstance(plan.algorithm, HubAlgorithm):
        return None
    facts = plan.spec.facts
    if stacking is Stacking.HUBS and not isinstance(plan.spec.schedule, RandomStopping):
        return StackedHubs(plan.algorithm, facts, count)
    return ListedHubs(plan.algorithm, facts, count, alone=stacking is Stacking.NOTHING)


def _sum_trials(parts: list[tuple[Copied, Array]], column: GridColumn | None) -> Array:
    """The sums of each trial; in whole steps of the column's grid, as the library adds under a secure sum."""
    if column is None:
        first, *others = (copies.sums(values) for copies, values in parts)
        return sum(others, first)
    words = [copies.sums(encode_rows(values, column)) for copies, values in parts]
    return decode(np.sum(words, axis=0, dtype=np.uint64), column)


def _exact(calls: list[ReleaseCall], key: tuple[str, int], rows: int, size: int) -> Array:
    for call in calls:
        if (call.release.name, call.repetition) == key:
            return call.exact
    return np.zeros((rows, size))


def _without_rows(call: ReleaseCall) -> ReleaseCall:
    answer = None if call.answer is None else call.answer[:0]
    return replace(call, exact=call.exact[:0], scale=call.scale[:0], answer=answer)


def _forget(entry: ReleaseRecord) -> None:
    """The ledger of an attacked run is nobody's."""
