"""Which party is attacked, what is claimed for it, and how the observer's query is scored."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from consenso.audit.scores import Kind
from consenso.audit.simulate import Watch
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy import accountants
from consenso.privacy.composition import knows_sample, sight
from consenso.privacy.events import Event, Mixture, TokenWalk
from consenso.privacy.observers import Coalition, Observer, Peer, Public
from consenso.privacy.relations import Relation, relation_of
from consenso.privacy.run_spec import PrivacyQuery
from consenso.problem import Unit
from consenso.schedules import Independent

Claim = Callable[[PrivacyQuery], Event]


@dataclass(frozen=True, kw_only=True)
class AuditTarget:
    """A claim, and how it is attacked."""

    query: PrivacyQuery
    event: Event
    theorem: str
    claimed: float
    delta: float
    watch: Watch | None  # None where nothing is claimed


def victim(plan: Plan, observers: list[Observer], unit: Unit, adjacency: Relation, delta: float) -> int:
    """The party that is promised most: the strongest promise is the one that is most likely to be too strong."""
    # Parties that no observer is: those of the observer with the most insiders, which are outsiders to all.
    closest = max(observers, key=lambda observer: len(observer.insiders))
    promises = plan.prove_each(closest, delta, unit=unit, adjacency=adjacency)
    if not promises:
        raise InputError(f"audit(observers={closest.key!r}): nobody is left whose data this observer does not have.")
    return min(promises, key=lambda each: each.epsilon(delta)).party


def target_of(
    plan: Plan, query: PrivacyQuery, delta: float, claim: Claim | None, kind: Kind | None, told: bool
) -> AuditTarget:
    """What a plan, or somebody else, claims of a query."""
    relation = relation_of(query.adjacency, plan.problem.adjacency)
    guarantee = plan.prove(query.observer, query.party, delta, unit=query.unit, adjacency=relation)
    event = guarantee.event if claim is None else claim(query)
    claimed = accountants.epsilon(event, delta)
    return AuditTarget(
        query=query,
        event=event,
        theorem=str(guarantee.theorem) if claim is None else "as claimed",
        claimed=claimed,
        delta=delta,
        watch=None if math.isinf(claimed) else watch_of(plan, query, event, kind, told),
    )


def watch_of(
    plan: Plan, query: PrivacyQuery, event: Event, kind: Kind | None = None, told: bool = False
) -> Watch | None:
    """How an observer's query is scored; None for whoever sees exact contributions."""
    algorithm = plan.algorithm
    if kind is not None:
        return Watch(query=query, kind=kind, deviations=told)
    if isinstance(query.observer, Public):
        return Watch(query=query, kind="model")
    if plan.shape == "peer":
        return Watch(query=query, kind="ratio")
    if isinstance(query.observer, Peer | Coalition) and any(isinstance(part, TokenWalk) for part in _parts(event)):
        return Watch(query=query, kind="walk")
    releases = [
        release for round_ in range(plan.rounds) for release in algorithm.releases(plan.representatives().at(round_))
    ]
    sights = {(release.at, sight(plan, query, release)) for release in releases}
    if any(seen == "exact" for _, seen in sights):
        return None
    if ("party", "sum") in sights:
        inside = any(release.perturbs_objective for release in releases)
        return Watch(query=query, kind="model" if inside else "filter", deviations=told)
    return Watch(query=query, kind="ratio", hidden=_rests_on_hidden_sample(plan, query, event))


def _rests_on_hidden_sample(plan: Plan, query: PrivacyQuery, event: Event) -> bool:
    """Whether the claim rests on the observer's not knowing who was sampled."""
    participation = plan.schedule.participation(query.party, plan.rounds, plan.parties)
    return (
        isinstance(participation, Independent)
        and not knows_sample(plan, query)
        and not plan.mode.noise_on_messages
        and not any(isinstance(part, Mixture) for part in _parts(event))
    )


def _parts(event: Event) -> list[Event]:
    """An event and all that it is made of."""
    return [event] + [part for inner in event.inner for part in _parts(inner)]
