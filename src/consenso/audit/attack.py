"""The audit of a plan: attack each of its guarantees, and say what the attack proves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from consenso.audit.bounds import Evidence, area, evidence
from consenso.audit.copies import Stacking
from consenso.audit.distinguisher import learn
from consenso.audit.families import curve_of, ruled_out
from consenso.audit.neighbours import Neighbours, unkind
from consenso.audit.simulate import Kind, Scores, Watch, simulate, stacking_of
from consenso.errors import InputError
from consenso.privacy import accountants
from consenso.privacy.events import Composed, Event, Mixture, Repeated, Walk
from consenso.privacy.observers import Coalition, Observer, Peer, Public, members
from consenso.privacy.setting import View
from consenso.privacy.views import knows_sample, sight
from consenso.problem import Adjacency, Unit
from consenso.runtime.plan import Plan
from consenso.schedules import Independent

# Trials of either world with which the worst neighbours are chosen, as a share of those that count.
PILOT = 0.05
FEWEST_PILOT = 60

ASSUMES: dict[Kind, str] = {
    "ratio": "likelihood ratio of everything that is seen",
    "filter": "likelihood ratio of the sums, the implied noise spread evenly over the parties",
    "walk": "token where it is seen, the path known",
    "token": "token at the observer's own visits, the path known",
    "model": "learned from final models",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What attacking one guarantee gave."""

    algorithm: str
    observer: str
    unit: Unit
    adjacency: Adjacency
    party: int
    theorem: str
    delta: float
    claimed: float  # epsilon
    lower: float  # bound on epsilon
    method: str
    confidence: float
    trials: int  # of either world
    refuted: bool
    neighbours: str
    attack: str
    stacking: str
    evidence: Evidence | None = field(repr=False, default=None)
    event: Event | None = field(repr=False, default=None)

    @property
    def gap(self) -> float:
        """How much of the claimed epsilon the attack did not reach."""
        return self.claimed - self.lower

    def to_json(self) -> dict[str, Any]:
        """Numbers and names; an infinite claim is null."""
        names = (
            *("algorithm", "observer", "unit", "adjacency", "party", "theorem", "delta", "lower", "method"),
            *("confidence", "trials", "refuted", "neighbours", "attack", "stacking"),
        )
        record = {name: getattr(self, name) for name in names}
        finite = math.isfinite(self.claimed)
        return record | {"claimed": self.claimed if finite else None, "gap": self.gap if finite else None}

    def sentence(self) -> str:
        """The finding in one line."""
        verdict = "REFUTED" if self.refuted else "not refuted"
        return (
            f"{self.algorithm}, {self.observer}, {self.unit}, {self.adjacency}: claimed epsilon {self.claimed:.4g} at "
            f"delta {self.delta:g} ({self.theorem}), attacked to at least {self.lower:.4g} with confidence "
            f"{self.confidence:g} ({self.neighbours}; {self.attack}; {self.method}): {verdict}."
        )


Claim = Callable[[View], Event]


def audit(
    plan: Plan,
    *,
    observers: Iterable[Observer] | None = None,
    unit: Unit | None = None,
    adjacency: Adjacency | None = None,
    party: int | None = None,
    trials: int = 20_000,
    delta: float = 1e-5,
    confidence: float = 0.95,
    seed: int = 0,
    pairs: Callable[[int], Sequence[Neighbours]] | None = None,
    claim: Claim | None = None,
    kind: Kind | None = None,
    deviations: bool = False,
    family: bool = True,
    workers: int = 1,
) -> list[Finding]:
    """Attack what a plan promises to each observer, on data of the attacker's choice.

    party: whose data are attacked; by default the one that the plan promises most. pairs: neighbours to choose from, by
    party; by default those of `consenso.audit.neighbours`. claim: an event to attack instead of the plan's own.
    kind: the attack, where another than the strongest known is wanted. deviations: give the attacker of sums each party's deviation from the mean noise, as Theorem F's proof does. family:
    also bound epsilon within the claim's own family of curves, which takes a second where that is not Gaussian. The
    runs use simulated noise, whatever source the plan has.
    """
    if trials < 100:
        raise InputError(f"audit(trials={trials}): fewer than 100 trials show nothing; 20000 is usual.")
    unit, adjacency = unit or plan.problem.unit, adjacency or plan.problem.adjacency
    watching = list(plan.observers() if observers is None else observers)
    victim = _victim(plan, watching, unit, adjacency, delta) if party is None else party
    targets = [_target(plan, observer, unit, adjacency, victim, delta, claim) for observer in watching]
    targets = [_told(target, kind, deviations) for target in targets]
    found = {index: _nothing(target, plan) for index, target in enumerate(targets) if target.watch is None}
    waiting = [index for index in range(len(targets)) if index not in found]
    if waiting:
        candidates = list(pairs(victim) if pairs else unkind(plan.problem, unit, adjacency, victim))
        attacked = [targets[index] for index in waiting]
        attacks = _attacks(plan, attacked, candidates, trials, confidence, seed, workers, family)
        found.update(zip(waiting, attacks, strict=True))
    return [found[index] for index in range(len(targets))]


@dataclass(frozen=True, kw_only=True)
class _Target:
    view: View
    event: Event
    theorem: str
    claimed: float
    delta: float
    watch: Watch | None  # None where nothing is claimed


def _victim(plan: Plan, observers: list[Observer], unit: Unit, adjacency: Adjacency, delta: float) -> int:
    """The party that is promised most: the strongest promise is the one that is most likely to be too strong."""
    # Parties that no observer is: those of the observer with the most insiders, which are outsiders to all.
    closest = max(observers, key=lambda observer: len(members(observer)))
    promises = plan.promises(closest, delta, unit=unit, adjacency=adjacency)
    if not promises:
        raise InputError(f"audit(observers={closest.key!r}): nobody is left whose data this observer does not have.")
    return min(promises, key=lambda each: each.guarantee.epsilon(delta)).party


def _target(
    plan: Plan,
    observer: Observer,
    unit: Unit,
    adjacency: Adjacency,
    party: int,
    delta: float,
    claim: Claim | None,
) -> _Target:
    promise = plan.promise(observer, party, delta, unit=unit, adjacency=adjacency)
    view = View(observer=observer, unit=unit, adjacency=adjacency, party=party)
    event = promise.guarantee.event if claim is None else claim(view)
    claimed = accountants.epsilon(event, delta)
    watch = None if math.isinf(claimed) else watch_of(plan, view, event)
    theorem = promise.guarantee.theorem if claim is None else "as claimed"
    return _Target(view=view, event=event, theorem=str(theorem), claimed=claimed, delta=delta, watch=watch)


def _told(target: _Target, kind: Kind | None, deviations: bool) -> _Target:
    """The same target, attacked in the way that the caller asks for."""
    if target.watch is None:
        return target
    return replace(target, watch=replace(target.watch, kind=kind or target.watch.kind, deviations=deviations))


def watch_of(plan: Plan, view: View, event: Event) -> Watch | None:
    """How an observer's view is scored; None for whoever sees exact contributions."""
    setting, algorithm = plan.setting, plan.algorithm
    if isinstance(view.observer, Public):
        return Watch(view=view, kind="model")
    if setting.shape == "peer":
        return Watch(view=view, kind="ratio")
    if isinstance(view.observer, Peer | Coalition) and any(isinstance(part, Walk) for part in _parts(event)):
        return Watch(view=view, kind="walk")
    releases = [
        release
        for round_ in range(setting.rounds)
        for release in algorithm.releases(setting.representatives().at(round_))
    ]
    sights = {(release.at, sight(setting, view, release)) for release in releases}
    if any(seen == "exact" for _, seen in sights):
        return None
    if ("party", "sum") in sights:
        inside = any(release.perturbs_objective for release in releases)
        return Watch(view=view, kind="model" if inside else "filter")
    participation = setting.schedule.participation(view.party, setting.rounds, setting.parties)
    hidden = (
        isinstance(participation, Independent)
        and not knows_sample(setting, view)
        and setting.doorway.trust != "local"
        and not any(isinstance(part, Mixture) for part in _parts(event))
    )
    return Watch(view=view, kind="ratio", hidden=hidden)


def _parts(event: Event) -> list[Event]:
    """An event and all that it is made of."""
    found = [event]
    if isinstance(event, Composed | Mixture):
        found += [part for inner in event.events for part in _parts(inner)]
    elif isinstance(event, Repeated):
        found += _parts(event.event)
    return found


def _attacks(
    plan: Plan,
    targets: list[_Target],
    candidates: list[Neighbours],
    trials: int,
    confidence: float,
    seed: int,
    workers: int,
    family: bool,
) -> list[Finding]:
    watches = [target.watch for target in targets if target.watch is not None]
    stacking = stacking_of(plan, candidates[0].zero)
    best = _strongest(plan, watches, candidates, trials, seed, stacking, workers)
    scores: dict[int, Scores] = {}
    for choice in sorted(set(best)):
        chosen = [index for index, pick in enumerate(best) if pick == choice]
        played = simulate(
            plan,
            candidates[choice],
            [watches[index] for index in chosen],
            trials=trials,
            seed=seed + 1,
            stacking=stacking,
            workers=workers,
        )
        scores.update(zip(chosen, played, strict=True))
    return [
        _finding(plan, target, scores[index], candidates[best[index]].what, trials, confidence, stacking, family)
        for index, target in enumerate(targets)
    ]


def _strongest(
    plan: Plan,
    watches: list[Watch],
    candidates: list[Neighbours],
    trials: int,
    seed: int,
    stacking: Stacking,
    workers: int,
) -> list[int]:
    """The candidates that show most to each watch, from runs that are not counted afterwards."""
    if len(candidates) == 1:
        return [0] * len(watches)
    pilot = max(FEWEST_PILOT, int(PILOT * trials))
    shown = np.zeros((len(candidates), len(watches)))
    for row, pair in enumerate(candidates):
        played = simulate(plan, pair, watches, trials=pilot, seed=seed + 2 + row, stacking=stacking, workers=workers)
        for column, scores in enumerate(played):
            zero, one = learn(*scores) if watches[column].kind == "model" else scores
            shown[row, column] = area(zero, one, 0.9).estimate
    return [int(pick) for pick in shown.argmax(axis=0)]


def _finding(
    plan: Plan,
    target: _Target,
    scores: Scores,
    what: str,
    trials: int,
    confidence: float,
    stacking: Stacking,
    family: bool,
) -> Finding:
    assert target.watch is not None
    zero, one = learn(*scores) if target.watch.kind == "model" else scores
    shown = evidence(zero, one, delta=target.delta, confidence=confidence)
    lower, method = shown.epsilon(target.delta)
    refuted = lower > target.claimed or shown.refutes(curve_of(target.event))
    if family or refuted:
        ruled = ruled_out(target.event, shown, target.delta)
        if ruled > lower:
            lower, method = ruled, "trade-off curve"
    return _of(
        plan,
        target,
        lower=lower,
        method=method,
        confidence=confidence,
        trials=trials,
        refuted=refuted,
        neighbours=what,
        attack=ASSUMES[target.watch.kind],
        stacking=stacking.value,
        evidence=shown,
    )


def _nothing(target: _Target, plan: Plan) -> Finding:
    return _of(
        plan,
        target,
        lower=0.0,
        method="nothing is claimed",
        confidence=1.0,
        trials=0,
        refuted=False,
        neighbours="",
        attack="",
        stacking="",
    )


def _of(plan: Plan, target: _Target, **found: Any) -> Finding:
    return Finding(
        algorithm=type(plan.algorithm).__name__,
        observer=target.view.observer.key,
        unit=target.view.unit,
        adjacency=target.view.adjacency,
        party=target.view.party,
        theorem=target.theorem,
        delta=target.delta,
        claimed=target.claimed,
        event=target.event,
        **found,
    )
