"""Scores of an attack over many trials of both worlds, a chunk of trials at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.audit.copies import Stacking
from consenso.audit.followers import Shadow
from consenso.audit.neighbours import Neighbours
from consenso.audit.processes import share_among
from consenso.audit.scores import RATIO, Kind, Score, find_attack
from consenso.audit.trials import Scene, Trials
from consenso.audit.watchers import LikelihoodRatio, Moved, Steps
from consenso.planning.plan import Plan
from consenso.privacy.run_spec import PrivacyQuery
from consenso.shards import Shards

# Numbers that a chunk of trials keeps of data or of states: small enough to stay in the cache of a processor.
CHUNK_NUMBERS = 1 << 19
# Trials that are compared before they are taken together.
AGREEMENT = 1e-8


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is scored: an observer's query, and how.

    hidden: whether the observer does not know who was sampled. deviations: whether it knows by how much each party's
    noise differs from the mean, as the adversary of Theorem F does.
    """

    query: PrivacyQuery
    kind: Kind
    hidden: bool = False
    deviations: bool = False


Scores = tuple[Array, Array]  # of the runs of world zero and of world one; models are (trials, dim)


def simulate(
    plan: Plan,
    pair: Neighbours,
    watches: Sequence[Watch],
    *,
    trials: int,
    seed: int,
    stacking: Stacking | None = None,
    workers: int = 1,
    first: int = 0,
    tell: Callable[[float], None] | None = None,
) -> list[Scores]:
    """The scores of each watch: runs first, ..., first + trials - 1 of either world, each with noise of its own.

    workers: processes that share runs which are taken one at a time. tell: is told the share of the runs that is done.
    """
    stacking = stacking or stacking_of(plan, pair.zero)
    length = chunk_length(plan, pair.zero, stacking, trials)
    if stacking is Stacking.NOTHING:
        # So many runs that their sums over rows are worth the compiler, in one process as in several.
        import consenso.kernels.exact_sums  # noqa: F401
    # Watchers that suppose different things about the sample need followers of their own.
    groups = [
        [index for index, watch in enumerate(watches) if watch.hidden == hidden]
        for hidden in sorted({watch.hidden for watch in watches})
    ]
    starts = range(first, first + trials, length)
    # The worlds in turn, so that the share that is done grows evenly.
    tasks = [_Runs(world, start, min(length, first + trials - start)) for start in starts for world in (0, 1)]
    seen = [[watches[index] for index in group] for group in groups]
    stage = _Players(plan, pair, seen, seed, stacking, _are_runs_told(plan))
    played = (
        map(stage.play, tasks)
        if workers == 1 or stacking is not Stacking.NOTHING
        else share_among(_play_runs, tasks, workers, prepare=_set_players, given=(stage,))
    )
    found: list[list[list[Array]]] = [[[], []] for _ in watches]
    for done, (task, scores) in enumerate(zip(tasks, played, strict=True)):
        for index, score in zip(itertools.chain(*groups), scores, strict=True):
            found[index][task.world].append(score)
        if tell is not None:
            tell((done + 1) / len(tasks))
    return [(np.concatenate(zero), np.concatenate(one)) for zero, one in found]


@dataclass(frozen=True)
class _Runs:
    """Some runs of one world."""

    world: int
    first: int
    count: int


@dataclass(frozen=True)
class _Players:
    """Everything that is needed to play runs of a pair before groups of watches."""

    plan: Plan
    pair: Neighbours
    groups: list[list[Watch]]
    seed: int
    stacking: Stacking
    told: bool  # whether a follower of the world that is run would compute what the run did

    def play(self, runs: _Runs) -> list[Array]:
        """The scores of every watch, group by group; each group watches the same runs."""
        shards = self.pair.one if runs.world else self.pair.zero
        scores = []
        for group in self.groups:
            seed = 2 * self.seed + runs.world
            run = Trials(self.plan, shards, count=runs.count, first=runs.first, seed=seed, stacking=self.stacking)
            scores += _Stage(run, self.pair, group, world=runs.world if self.told else None).play()
        return scores


# What a process was started with: runs are many, and what they have in common is sent once.
_players: list[_Players] = []


def _set_players(players: _Players) -> None:
    _players[:] = [players]


def _play_runs(runs: _Runs) -> list[Array]:
    return _players[0].play(runs)


def follow(plan: Plan, pair: Neighbours, watch: Watch, *, runs: int, seed: int = 0) -> list[list[Moved]]:
    """What the worlds' exact values differ by, for each release that the observer sees, along runs of world zero.

    One list for each chunk of runs that are taken together.
    """
    stacking = stacking_of(plan, pair.zero)
    length, world = chunk_length(plan, pair.zero, stacking, runs), 0 if _are_runs_told(plan) else None
    return [
        _Stage(
            Trials(plan, pair.zero, count=min(length, runs - first), first=first, seed=seed, stacking=stacking),
            pair,
            [watch],
            world=world,
        ).follow()
        for first in range(0, runs, length)
    ]


def _are_runs_told(plan: Plan) -> bool:
    """Whether what a party has computed follows from what was released: no hidden coins, no noise inside a solver."""
    everyone, declaration = plan.representatives(), plan.remember(plan.algorithm.releases)
    releases = itertools.chain(*(declaration(everyone.at(round_)) for round_ in range(plan.rounds)))
    return not any(release.rate < 1 or release.perturbs_objective for release in releases)


def chunk_length(plan: Plan, shards: Shards, stacking: Stacking, trials: int) -> int:
    """How many trials are taken at once."""
    if stacking is Stacking.NOTHING:
        return 1
    problem = plan.problem
    numbers = max(int(shards.offsets[-1]) * problem.features, problem.parties * problem.dim)
    return int(np.clip(CHUNK_NUMBERS // numbers, 1, trials))


def stacking_of(plan: Plan, shards: Shards) -> Stacking:
    """The quickest way to take trials together that gives what single trials give; tried, not declared."""
    problem = plan.problem
    count = next(size for size in (2, 3, 5, 7, 11) if size not in (problem.dim, problem.features, problem.parties))
    expected = [_play(plan, shards, Stacking.NOTHING, first, 1) for first in (0, count - 1)]
    for stacking in (Stacking.HUBS, Stacking.PARTIES):
        try:
            models = _play(plan, shards, stacking, 0, count)
        except Exception:  # whatever shape a definition trips over, it then takes its trials one at a time
            continue
        alone = np.concatenate(expected)
        if models.shape[0] == count and np.allclose(models[[0, -1]], alone, rtol=AGREEMENT, atol=AGREEMENT):
            return stacking
    return Stacking.NOTHING


def _play(plan: Plan, shards: Shards, stacking: Stacking, first: int, count: int) -> Array:
    """Models of some trials and, in two numbers each, all that they would have released without noise."""
    run = Trials(plan, shards, count=count, first=first, seed=1, stacking=stacking)
    exact = np.zeros((count, 2))
    for scene in run.rounds():
        for call in scene.calls:
            sums = scene.copies.sums(call.exact)
            exact += np.stack([sums.sum(axis=1), np.square(sums).sum(axis=1)], axis=1)
    return np.concatenate([exact, run.models()], axis=1)


class _Stage:
    """One chunk of runs with everybody who watches them. world: that of the runs, where its steps need no follower."""

    def __init__(self, run: Trials, pair: Neighbours, watches: Sequence[Watch], *, world: int | None) -> None:
        self._run, self._pair, self._watches = run, pair, watches
        worlds = (pair.zero, pair.one)
        self._hidden = any(watch.hidden for watch in watches)
        self._ratios: dict[int, LikelihoodRatio] = {}
        self._scores: dict[int, Score] = {}
        for index, watch in enumerate(watches):
            if watch.kind == RATIO:
                self._ratios[index] = LikelihoodRatio(run, watch.query, hidden=watch.hidden)
            else:
                attack = find_attack(watch.kind)
                self._scores[index] = attack.watch(run, pair, watch.query, deviations=watch.deviations)
        own = None if self._hidden else world
        shadows = [Shadow(run, each, pair.party, is_run=place == own) for place, each in enumerate(worlds)]
        self._shadows = tuple(shadows) if self._ratios else ()

    def play(self) -> list[Array]:
        """Run to the end; the score of each watch."""
        for scene in self._run.rounds():
            if self._shadows:
                self._shadow(scene)
            for score in self._scores.values():
                score.see(scene)
        models = self._run.models()
        found = {index: ratio.score for index, ratio in self._ratios.items()}
        found |= {index: score.finish(models) for index, score in self._scores.items()}
        return [found[index] for index in range(len(self._watches))]

    def follow(self) -> list[Moved]:
        """Run to the end; what was noted of the one watch, none where it has no likelihood ratio."""
        for ratio in self._ratios.values():
            ratio.moved = []
        self.play()
        return [moved for ratio in self._ratios.values() for moved in ratio.moved or []]

    def _shadow(self, scene: Scene) -> None:
        place = scene.place_of(self._pair.party, self._run.parties)
        trials = np.arange(self._run.count) if self._hidden else np.flatnonzero(place >= 0)
        if not len(trials):
            return
        coins_matter = self._pair.unit == "record" and any(call.release.rate < 1 for call in scene.calls)
        steps = []
        for shadow in self._shadows:
            inside = shadow.step(scene, trials, self._coins(scene, trials, place, shadow.records, True))
            outside = None
            if coins_matter:
                outside = shadow.step(scene, trials, self._coins(scene, trials, place, shadow.records, False))
            steps.append(Steps(inside, outside))
        pair = (steps[0], steps[1])
        for ratio in self._ratios.values():
            ratio.see(scene, pair)
        bits = next(iter(self._ratios.values())).took_part
        for world, (shadow, step) in enumerate(zip(self._shadows, pair, strict=True)):
            likely = bits[world][trials] > 0.5
            if step.outside is not None:
                shadow.keep(step.outside)
            shadow.keep(step.inside, likely if self._hidden or step.outside is not None else None)
            shadow.hear(scene)

    def _coins(
        self, scene: Scene, trials: IntArray, place: IntArray, records: int, inside: bool
    ) -> Callable[[str, int, IntArray], NDArray[np.bool_]]:
        """Hidden coins that the attacker supposes: those of the run, and for the attacked record the one asked for."""

        def coins(name: str, toss: int, counts: IntArray) -> NDArray[np.bool_]:
            sizes = np.diff(self._run.offsets)[scene.rows]
            starts = np.cumsum(sizes) - sizes
            common = min(self._pair.records) - (self._pair.unit == "record" and len(set(self._pair.records)) == 1)
            drawn = scene.coins.get(name, [])
            supposed = np.full((len(trials), records), inside, dtype=np.bool_)
            if toss < len(drawn):
                there = np.flatnonzero(place[trials] >= 0)
                first = starts[place[trials][there]]
                supposed[there, :common] = drawn[toss][first[:, None] + np.arange(common)]
            return supposed.reshape(-1)

        return coins
