"""How observers score a run: the log likelihood ratio of what they see, exactly or as nearly as can be computed.

| what is seen | score |
| --- | --- |
| every noisy value of the party | exact |
| sums, noise on the sum | exact |
| sums over branches of a tree | exact: whatever is outside of the party's component is known, its noise too |
| sums of hidden Poisson samples | exact given the others' bits, which Theorem P allows; with memory nearly |
| sums, noise kept by the parties | exact for linear losses: the implied noise is spread evenly over the parties |
| minimisers of perturbed objectives | exact for linear losses |
| the token of a walk, at times | exact for linear losses |

A score that is not exact makes an attack weaker, never a lower bound wrong. Given the same past view, both worlds'
exact values are known numbers, and the noise of a release is independent of the past: so the log likelihood ratio of an
adaptive sequence is the sum over releases of the difference of two log densities.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.audit.followers import Filter, Step, differs
from consenso.audit.releasers import ReleaseCall
from consenso.audit.trials import Scene, Trials
from consenso.privacy.composition import sight
from consenso.privacy.graph_views import find_hiding
from consenso.privacy.noise import Noise
from consenso.privacy.noise.none import CERTAIN
from consenso.privacy.releaser import SumTerm
from consenso.privacy.run_spec import PrivacyQuery
from consenso.schedules import Independent

# Trials over which a mean says nothing about any one of them.
MANY = 50


@dataclass(frozen=True, eq=False)
class Steps:
    """The attacked party's step in one world: with its hidden record inside the sample, and outside of it."""

    inside: Step
    outside: Step | None = None


@dataclass(frozen=True, eq=False)
class Moved:
    """One release in some runs: how far the two worlds' exact values are apart, in units of its noise."""

    name: str
    noise: Noise
    gap: Array  # (runs, size)


class LikelihoodRatio:
    """Adds up log p_one - log p_zero of what one observer sees, for every trial."""

    def __init__(self, run: Trials, query: PrivacyQuery, *, hidden: bool) -> None:
        self._run, self._query, self._hidden = run, query, hidden
        self._plan = run.plan
        participation = self._plan.schedule.participation(query.party, self._plan.rounds, self._plan.parties)
        self._rate = participation.rate if isinstance(participation, Independent) else 1.0
        self._poisson = isinstance(participation, Independent) and participation.poisson
        self._insiders = query.observer.insiders  # whose noise the observer knows, or sees apart from the party's
        self.score = np.zeros(run.count)
        self.moved: list[Moved] | None = None  # a list, if what the worlds differ by is to be noted
        self.took_part: list[Array] = [np.ones(run.count), np.ones(run.count)]  # posterior of the hidden bit, by world

    def see(self, scene: Scene, steps: tuple[Steps, Steps]) -> None:
        """One round, with the steps of the attacked party in world zero and in world one."""
        if self._plan.mode.on_graph:
            hiding = find_hiding(self._plan, self._query, scene.facts.round)
            self._insiders = frozenset(range(self._plan.parties)) - hiding
        trials = steps[0].inside.trials
        place = scene.place_of(self._query.party, self._run.parties)[trials]
        active = place >= 0
        for world, step in enumerate(steps):
            if step.inside.up is None or not active.any():
                continue
            wrong = np.zeros(len(trials), dtype=np.bool_)
            wrong[active] = differs(_part(step.inside, active), scene.up, place[active])
            self.score[trials] += (-CERTAIN if world == 1 else CERTAIN) * wrong
        for index, call in enumerate(scene.calls):
            seen = sight(self._plan, self._query, call.release)
            if seen == "each":
                self._each(index, scene, steps, trials, place)
            elif seen == "sum" and call.release.at == "sum":
                self._sum(index, scene, steps, trials, place)

    def _each(self, index: int, scene: Scene, steps: tuple[Steps, Steps], trials: IntArray, place: IntArray) -> None:
        call, active = scene.calls[index], place >= 0
        noise = self._run.seeded.noise_for(call.release.name)
        heard = _read_call(scene.calls, index)[place[active]]

        def density(option: Step) -> Array:
            own = option.calls[index]
            gap, extra = heard - own.exact[active], np.zeros(len(heard))
            if own.curvature is not None:
                stiff = own.curvature[active]
                gap, extra = gap * stiff[:, None], gap.shape[1] * np.log(stiff)
            return noise.log_density(gap, own.scale[active]) + extra

        logs = []
        for world, step in enumerate(steps):
            inside = mixed = density(step.inside)
            if step.outside is not None:
                mixed = log_mixture(call.release.rate, inside, density(step.outside))
                self.took_part[world][trials[active]] = _posterior(call.release.rate, inside, mixed)
            logs.append(mixed)
        self.score[trials[active]] += logs[1] - logs[0]
        if self.moved is not None:
            zero, one = (step.inside.calls[index] for step in steps)
            stiff = 1.0 if one.curvature is None else one.curvature[active, None]
            gap = (one.exact - zero.exact)[active] * stiff / one.scale[active, None]
            self.moved.append(Moved(call.release.name, noise, gap))

    def _sum(self, index: int, scene: Scene, steps: tuple[Steps, Steps], trials: IntArray, place: IntArray) -> None:
        call, active = scene.calls[index], place >= 0
        heard, others = self._read_sum(index, scene)[trials], scene.copies.sums(call.exact)[trials]
        others[active] -= call.exact[place[active]]
        there = gone = others
        if self._hidden and not self._poisson:
            there, gone = self._expect_others(others, active)
        shown = self._find_told(scene, steps[1].inside, place) if self._hidden else np.ones(len(trials), dtype=np.bool_)
        sure = not self._hidden and bool(active.all())  # that the party is in every sum
        logs = []
        for world, step in enumerate(steps):
            variance = self._variance(scene, step.inside.calls[index])[trials]
            inside = self._density(call, heard - there - step.inside.calls[index].exact, variance)
            absent = inside if sure else self._density(call, heard - gone, variance)
            if step.outside is not None:
                beside = self._density(call, heard - there - step.outside.calls[index].exact, variance)
                together = log_mixture(call.release.rate, inside, beside)
                self.took_part[world][trials] = _posterior(call.release.rate, inside, together)
                inside = together
            mixed = log_mixture(self._rate, inside, absent) if self._hidden else inside
            if self._hidden:
                self.took_part[world][trials] = _posterior(self._rate, inside, mixed)
            logs.append(inside if sure else np.where(shown, np.where(active, inside, absent), mixed))
        self.score[trials] += logs[1] - logs[0]
        if self.moved is not None:
            zero, one = (step.inside.calls[index] for step in steps)
            std = np.sqrt(self._variance(scene, one)[trials])
            noise = self._run.seeded.noise_for(call.release.name)
            self.moved.append(Moved(call.release.name, noise, (one.exact - zero.exact) / std[:, None]))

    def _expect_others(self, others: Array, active: NDArray[np.bool_]) -> tuple[Array, Array]:
        """What the others are expected to add beside the attacked party, and without it.

        In a sample of fixed size the others' sample tells the attacked party's, so a trial's own may not be used: these
        are means over many trials, which whoever knows the plan can simulate.
        """
        means = []
        for which in (active, ~active):
            many = which.sum() >= MANY
            means.append(np.broadcast_to(others[which].mean(axis=0) if many else 0.0 * others[0], others.shape))
        return means[0], means[1]

    def _read_sum(self, index: int, scene: Scene) -> Array:
        """The sum as it was heard, less what insiders know of its noise, (trials, size)."""
        call = scene.calls[index]
        key = (call.release.name, call.repetition)
        heard = scene.sums[key] if call.answer is None else scene.copies.sums(call.answer)
        if not self._insiders or not len(scene.rows):
            return heard
        mine = np.isin(self._run.party_of_row[scene.rows], list(self._insiders))[:, None]
        drawn = scene.shares.get(key) if call.answer is None else call.answer - call.exact
        return heard if drawn is None else heard - scene.copies.sums(np.where(mine, drawn, 0.0))

    def _variance(self, scene: Scene, own: ReleaseCall) -> Array:
        """Variance of the noise on a coordinate of the sum that nobody of the observers knows, (trials,)."""
        plan, one = self._run.seeded, np.zeros(self._run.count)
        one[:] = own.scale[0] ** 2 if len(own.scale) else 0.0
        if plan.mode.noise_at_hub and own.answer is None:
            return one
        mine = np.isin(self._run.party_of_row[scene.rows], list(self._insiders))
        known = scene.copies.sums(mine[:, None].astype(np.float64))[:, 0]
        if own.answer is None:
            return one * (self._run.parties - known) / plan.shares
        return one * (scene.copies.sums(np.ones((len(scene.rows), 1)))[:, 0] - known)

    def _density(self, call: ReleaseCall, gap: Array, variance: Array) -> Array:
        noise = self._run.seeded.noise_for(call.release.name)
        if call.answer is None and self._run.seeded.mode.noise_at_hub:
            return noise.log_density(gap, np.sqrt(variance))
        return _log_gaussian(gap, variance * noise.variance(gap.shape[1]))

    def _find_told(self, scene: Scene, step: Step, place: IntArray) -> NDArray[np.bool_]:
        """In which trials something that was sent bare tells whether the party took part."""
        shown = np.zeros(len(place), dtype=np.bool_)
        for each in dataclasses.fields(step.up):
            value = getattr(scene.up, each.name)
            if isinstance(value, SumTerm) or not len(scene.rows):
                continue
            own = np.asarray(getattr(step.up, each.name)).reshape(len(place), -1)
            total = scene.copies.sums(value[: len(scene.rows)].reshape(len(scene.rows), -1))[step.trials]
            total[place >= 0] -= value[place[place >= 0]].reshape(-1, total.shape[1])
            shown |= ((own != 0) & (np.abs(total) <= 1e-12)).any(axis=1)
        return shown


class FilteredRatio:
    """The score of whoever sees only sums of values whose noise the parties keep in their states."""

    def __init__(self, run: Trials, zero: Filter, one: Filter) -> None:
        self._run, self._worlds = run, (zero, one)
        self.score = np.zeros(run.count)

    def see(self, scene: Scene) -> None:
        implied = [world.step(scene) for world in self._worlds]
        for index, call in enumerate(scene.calls):
            if not len(scene.rows):
                break
            wide = self._run.seeded.noise_for(call.release.name).variance(call.release.size)
            there = np.unique(scene.copies.trial_of_row)
            zero, one = (_log_gaussian(world[index][0][there], world[index][1][there] * wide) for world in implied)
            self.score[there] += one - zero

    def finish(self, models: Array) -> Array:
        return self.score


def _log_gaussian(gap: Array, variance: Array) -> Array:
    """Log density of N(0, variance I) at gap (trials, size); a variance for each trial, which may be 0."""
    safe = np.maximum(variance, np.finfo(float).tiny)
    density: Array = -np.einsum("ij,ij->i", gap, gap) / (2 * safe) - gap.shape[1] / 2 * np.log(safe)
    return density


def log_mixture(rate: float, inside: Array, outside: Array) -> Array:
    """Log density of what happened with probability `rate` as `inside` says, and otherwise as `outside` says."""
    if rate >= 1.0:
        return inside
    mixed: Array = np.logaddexp(np.log(rate) + inside, np.log1p(-rate) + outside)
    return mixed


def _posterior(rate: float, inside: Array, mixed: Array) -> Array:
    """The chance that a hidden bit was one, given what was heard."""
    chance: Array = np.exp(np.minimum(np.log(rate) + inside - mixed, 0.0))
    return chance


def _part(step: Step, which: NDArray[np.bool_]) -> object:
    """The message of some of a step's trials."""
    changes = {
        each.name: value if isinstance(value := getattr(step.up, each.name), SumTerm) else np.asarray(value)[which]
        for each in dataclasses.fields(step.up)
    }
    return dataclasses.replace(step.up, **changes)


def _read_call(calls: list[ReleaseCall], index: int) -> Array:
    """What was heard of a call: of a perturbed minimiser, what left with the noise that covers the solver's error."""
    call = calls[index]
    if call.release.perturbs_objective and index + 1 < len(calls):
        after = calls[index + 1]
        if after.answer is not None and after.release.size == call.release.size:
            return after.answer
    assert call.answer is not None
    return call.answer
