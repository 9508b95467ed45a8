"""What the attacker computes beside a run: the steps that parties would have taken in world zero and in world one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.audit.copies import CopiedNeighbourhood
from consenso.audit.releasers import Echo, Guess, ReleaseCall
from consenso.audit.trials import Scene, Trials, hubs_of
from consenso.engine.states import own, put, take
from consenso.errors import PrivacyError
from consenso.privacy.releaser import SumTerm
from consenso.shards import Shards

# Messages that differ by more than this, relative to their size, differ.
SAME = 1e-7

Coins = Callable[[str, int, IntArray], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Step:
    """A step that a follower computed and may keep."""

    trials: IntArray  # of which trials
    calls: list[ReleaseCall]
    up: Any  # the message; None for the one that was sent
    after: Any


class Shadow:
    """The attacked party in one world, in every trial, told what was heard of it.

    Everything else that the run has heard is the same in both worlds: that is what makes the likelihood ratio of
    adaptive releases a sum. is_run: the steps of this world are those of the run itself, and are not taken again.
    """

    def __init__(self, run: Trials, shards: Shards, party: int, *, is_run: bool = False) -> None:
        self._run, self._shards, self._party, self._is_run = run, shards, party, is_run
        size = int(shards.offsets[party + 1] - shards.offsets[party])
        self.records = size
        if is_run:
            return
        self._offsets = np.arange(run.count + 1, dtype=np.int64) * size
        facts = run.plan.facts.only(self._rows(run.count))
        self._all = shards.cohort(self._rows(run.count))
        self._state = own(run.plan.algorithm.enroll(facts, self._all))

    def step(self, scene: Scene, trials: IntArray, coins: Coins) -> Step:
        """The party's step in some trials, as if it took part in them."""
        places = scene.place_of(self._party, self._run.parties)[trials]
        if self._is_run:
            return Step(trials, [call.at(places) for call in scene.calls], None, None)
        algorithm = self._run.plan.algorithm
        rows = self._rows(len(trials))
        here = scene.facts.only(rows)
        releases = self._run.seeded.remember(algorithm.releases)(here)
        releaser = Echo(scene.calls, places, coins, self._run.seeded, here, releases, scene.largest)
        before = take(self._state, trials, self._offsets)
        cohort = self._all if len(trials) == self._run.count else self._shards.cohort(rows)
        if self._run.plan.shape == "hub":
            after, up = algorithm.local(here, self._run.repeat_per_row(scene.down, trials), before, cohort, releaser)
        else:
            after, up = algorithm.local(here, before, cohort, releaser)
        return Step(trials, releaser.calls, up, after)

    def keep(self, step: Step, which: NDArray[np.bool_] | None = None) -> None:
        """Take the step, in all of its trials or in those for which `which` is true."""
        if self._is_run:
            return
        if which is not None and not which.all():
            kept = np.flatnonzero(which)
            if not len(kept):
                return
            places = np.arange(len(step.trials) + 1, dtype=np.int64) * self.records
            step = replace(step, trials=step.trials[kept], after=take(step.after, kept, places))
        self._state = put(self._state, step.after, step.trials, self._offsets)

    def hear(self, scene: Scene) -> None:
        """On a graph: what the neighbours said."""
        topology = self._run.plan.topology
        if scene.down is None and topology is not None and not self._is_run:
            heard = CopiedNeighbourhood(
                scene.up, self._run.count, topology.adjacency, topology.metropolis, node=self._party
            )
            facts = scene.facts.only(self._rows(self._run.count))
            self._state = self._run.plan.algorithm.absorb(facts, self._state, heard)

    def _rows(self, count: int) -> IntArray:
        return np.full(count, self._party, dtype=np.int64)


def differs(mine: Any, theirs: Any, places: IntArray) -> NDArray[np.bool_]:
    """In which trials a message of a follower is not the one that was sent; terms of sums say nothing."""
    wrong = np.zeros(len(places), dtype=np.bool_)
    for each in dataclasses.fields(mine):
        own_value, sent = getattr(mine, each.name), getattr(theirs, each.name)
        if isinstance(own_value, SumTerm) or isinstance(sent, SumTerm):
            continue
        sent = sent[places].reshape(len(places), -1)
        own_value = own_value.reshape(len(places), -1)
        if sent.shape[1]:
            size = np.maximum(np.abs(sent).max(axis=1), 1.0)
            wrong |= np.abs(own_value - sent).max(axis=1) > SAME * size
    return wrong


class Filter:
    """All parties in one world when only sums were heard, each with the noise that the sum implies for it."""

    def __init__(self, run: Trials, shards: Shards, insiders: frozenset[int], *, deviations: bool) -> None:
        self._run, self._shards = run, shards
        self._insiders, self._deviations = insiders, deviations
        sizes = np.tile(np.diff(shards.offsets), run.count)
        self._offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self._all = shards.cohort(run.party_of_row)
        facts = run.plan.facts.only(run.party_of_row)
        self._state = own(run.plan.algorithm.enroll(facts, self._all))

    def step(self, scene: Scene) -> list[tuple[Array, Array]]:
        """The noise on each sum that this world implies, with its variance: (trials, size) and (trials,)."""
        if not len(scene.rows):
            return []
        algorithm, rows = self._run.plan.algorithm, scene.rows
        parties = self._run.party_of_row[rows]
        here = scene.facts.only(parties)
        known = np.isin(parties, list(self._insiders))
        releaser = Guess(
            scene.calls,
            scene.copies,
            known,
            self._deviations,
            self._run.seeded,
            here,
            self._run.seeded.remember(algorithm.releases)(here),
            scene.largest,
        )
        before = take(self._state, rows, self._offsets)
        cohort = self._all if len(rows) == len(self._run.party_of_row) else self._shards.cohort(parties)
        after, _ = algorithm.local(
            here, self._run.repeat_per_row(scene.down, scene.copies.trial_of_row), before, cohort, releaser
        )
        self._state = put(self._state, after, rows, self._offsets)
        return releaser.implied


class _Quiet:
    """A releaser that adds nothing."""

    def __call__(self, name: str, value: Array, *, bound: float = 1.0, share: float = 1.0) -> Array:
        return np.array(value)

    def perturb(self, name: str, solve: Callable[[Array], Array]) -> Array:
        raise PrivacyError(
            f"release.perturb({name!r}): a walk is followed from release to release, not inside a solver."
        )

    def coins(self, name: str, counts: IntArray) -> NDArray[np.bool_]:
        return np.ones(int(counts.sum()), dtype=np.bool_)


class TokenPrediction:
    """Where the token of a walk would be in one world, from what an observer last saw of it and without noise since.

    For walks whose parties keep nothing. The path is known, as in the proof of their guarantee. Between two looks the
    noise of the steps adds up, so a squared distance counts over the number of steps.
    """

    def __init__(self, run: Trials, shards: Shards, looks: frozenset[int]) -> None:
        self._run, self._shards, self._looks = run, shards, looks
        self._hubs = hubs_of(run.plan, run.count, run.stacking)
        self._since = np.zeros(run.count)
        self.distance = np.zeros(run.count)

    def before(self, scene: Scene) -> None:
        """The token arrives: an observer who holds it compares and remembers where it was."""
        assert self._hubs is not None
        seen = self._find_seen(scene)
        sent = self._hubs.down(scene.facts)
        self._compare(_flat(scene.down, self._run.count), _flat(sent, self._run.count), seen)

    def step(self, scene: Scene) -> None:
        """The token leaves; whoever sent it off knows where it is."""
        assert self._hubs is not None
        algorithm, rows = self._run.plan.algorithm, scene.rows
        parties = self._run.party_of_row[rows]
        here = scene.facts.only(parties)
        down = self._run.repeat_per_row(self._hubs.down(scene.facts), scene.copies.trial_of_row)
        cohort = self._shards.cohort(parties)
        _, up = algorithm.local(here, down, algorithm.enroll(here, cohort), cohort, _Quiet())
        total = type(up)(**{each.name: scene.copies.sums(getattr(up, each.name)) for each in dataclasses.fields(up)})
        self._hubs.combine(scene.facts, total, scene.alive)
        self._since += 1
        seen = self._find_seen(scene)
        self._hubs.take_over(self._run.hubs, seen)
        self._since[seen] = 0

    def finish(self, models: Array) -> None:
        """The final model is shown."""
        assert self._hubs is not None
        facts = self._run.plan.facts.at(int(self._run.round.max()))
        self._compare(models, self._hubs.models(facts), np.arange(self._run.count))

    def _find_seen(self, scene: Scene) -> IntArray:
        mine = np.isin(self._run.party_of_row[scene.rows], list(self._looks))
        return scene.copies.trial_of_row[mine]

    def _compare(self, seen: Array, predicted: Array, trials: IntArray) -> None:
        moved = trials[self._since[trials] > 0]
        gap = seen[moved] - predicted[moved]
        self.distance[moved] += np.einsum("ij,ij->i", gap, gap) / self._since[moved]


def _flat(record: Any, trials: int) -> Array:
    """A stacked record as one row of numbers for each trial."""
    parts = [np.asarray(getattr(record, each.name), dtype=np.float64) for each in dataclasses.fields(record)]
    return np.concatenate([part.reshape(trials, -1) for part in parts if part.ndim > 0], axis=1)
