"""Which party is attacked, what is claimed for it, and how the observer's view is scored."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from consenso.audit.simulate import Kind, Watch
from consenso.errors import InputError
from consenso.privacy import accountants
from consenso.privacy.events import Composed, Event, Mixture, Repeated, Walk
from consenso.privacy.observers import Coalition, Observer, Peer, Public, members
from consenso.privacy.relations import Relation, relation_of
from consenso.privacy.setting import View
from consenso.privacy.views import knows_sample, sight
from consenso.problem import Unit
from consenso.runtime.plan import Plan
from consenso.schedules import Independent

Claim = Callable[[View], Event]

SCORES: dict[Kind, str] = {
    "ratio": "likelihood ratio of everything that is seen",
    "filter": "likelihood ratio of sums, their noise spread evenly over the parties",
    "walk": "token where it is seen, the path known",
    "token": "token at the observer's own visits, the path known",
    "model": "learned from final models",
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """A claim, and how it is attacked."""

    view: View
    event: Event
    theorem: str
    claimed: float
    delta: float
    watch: Watch | None  # None where nothing is claimed


def victim(plan: Plan, observers: list[Observer], unit: Unit, adjacency: Relation, delta: float) -> int:
    """The party that is promised most: the strongest promise is the one that is most likely to be too strong."""
    # Parties that no observer is: those of the observer with the most insiders, which are outsiders to all.
    closest = max(observers, key=lambda observer: len(members(observer)))
    promises = plan.promises(closest, delta, unit=unit, adjacency=adjacency)
    if not promises:
        raise InputError(f"audit(observers={closest.key!r}): nobody is left whose data this observer does not have.")
    return min(promises, key=lambda each: each.guarantee.epsilon(delta)).party


def target_of(plan: Plan, view: View, delta: float, claim: Claim | None, kind: Kind | None, told: bool) -> Target:
    """What a plan, or somebody else, claims of a view."""
    relation = relation_of(view.adjacency, plan.problem.adjacency)
    guarantee = plan.promise(view.observer, view.party, delta, unit=view.unit, adjacency=relation).guarantee
    event = guarantee.event if claim is None else claim(view)
    claimed = accountants.epsilon(event, delta)
    return Target(
        view=view,
        event=event,
        theorem=str(guarantee.theorem) if claim is None else "as claimed",
        claimed=claimed,
        delta=delta,
        watch=None if math.isinf(claimed) else watch_of(plan, view, event, kind, told),
    )


def watch_of(plan: Plan, view: View, event: Event, kind: Kind | None = None, told: bool = False) -> Watch | None:
    """How an observer's view is scored; None for whoever sees exact contributions."""
    setting, algorithm = plan.setting, plan.algorithm
    if kind is not None:
        return Watch(view=view, kind=kind, deviations=told)
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
        return Watch(view=view, kind="model" if inside else "filter", deviations=told)
    return Watch(view=view, kind="ratio", hidden=_hidden(plan, view, event))


def _hidden(plan: Plan, view: View, event: Event) -> bool:
    """Whether the claim rests on the observer's not knowing who was sampled."""
    setting = plan.setting
    participation = setting.schedule.participation(view.party, setting.rounds, setting.parties)
    return (
        isinstance(participation, Independent)
        and not knows_sample(setting, view)
        and setting.doorway.trust != "local"
        and not any(isinstance(part, Mixture) for part in _parts(event))
    )


def _parts(event: Event) -> list[Event]:
    """An event and all that it is made of."""
    found = [event]
    if isinstance(event, Composed | Mixture):
        found += [part for inner in event.events for part in _parts(inner)]
    elif isinstance(event, Repeated):
        found += _parts(event.event)
    return found
