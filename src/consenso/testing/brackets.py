"""What is true beside what an attack proves: exact values for linear losses, so that a weak attack and a loose claim
can be told apart.

For each observer the first of these that can be had, the largest over all pairs of neighbours:

* the run is affine in its noise: law 10's exact value of what the observer sees (`consenso.testing.exact_values`);
* each release is seen: the composition of what the two worlds' releases differ by (`consenso.audit.differences`), exact
  where that never varies and otherwise the most that the pair can show;
* the coins of the schedule fall in too many ways, and only the attacked party's matter to the final model: that one's
  exact value over these (`consenso.testing.exact_values.alike`);
* they fall in too many ways, and all matter: the exact value and the claim of the same plan made small;
* otherwise what whoever sees each release can learn of the pair, which is more.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from consenso.audit.differences import follow_differences
from consenso.audit.findings import Bracket, Kind
from consenso.audit.mixtures import MixtureRatio, draw_mixtures, draw_releases
from consenso.audit.neighbours import Neighbours, unkind
from consenso.audit.targets import AuditTarget
from consenso.errors import ConsensoError
from consenso.planning.plan import Plan, plan
from consenso.privacy.events import Gaussian
from consenso.privacy.observers import Eavesdropper, Observer, Public
from consenso.privacy.relations import relation_of
from consenso.schedules import Cyclic, Everyone, FixedSubset, Schedule
from consenso.testing.exact_values.alike import others_are_alike, own_scripts
from consenso.testing.exact_values.compare import PAIRS, NotAffineError, exact_curves
from consenso.testing.exact_values.scripted import OtherNoiseError, Script, scripts

# In how many ways the coins of a schedule may fall; and how many parties the plan has that is made small.
MOST_SCRIPTS, FEW_PARTIES = 64, 3
# Numbers of noise up to which a run is repeated once for each of them.
MOST_NUMBERS = 2000
# Draws, in standard deviations, with which a run is compared to mean + M n.
SIZES = (1.0, -2.0, 8.0)


def bracket(made: Plan, targets: Sequence[AuditTarget]) -> dict[str, Bracket]:
    """What is known of the true value of each claim of a plan, by observer; nothing where nothing is claimed."""
    claims = [target for target in targets if target.watch is not None]
    if not claims:
        return {}
    exact, why = _exact_values(made, claims)
    followed = _follow(made, claims) if why else {}
    most = max(followed.values(), key=lambda each: each.exact or 0.0, default=None)
    found = {}
    for target in claims:
        key = target.query.observer.key
        known = exact.get(key) or followed.get(key)
        if known is None and most is not None:
            # Which pair shows this observer most is not known, but none shows more.
            told = f"{why}; so much whoever sees each release learns of any of the pairs"
            known = replace(most, kind="at most", why=told, pair="", ideal=None, law=None)
        known = known or Bracket(why=why or "no value can be computed")
        found[key] = replace(known, told=_is_told(made, target))
    return found


def _is_told(made: Plan, target: AuditTarget) -> bool:
    """Whether an attack hears every answer of the hub for a party that hears those of its own rounds."""
    return (
        made.shape == "hub"
        and bool(target.query.observer.insiders)
        and not isinstance(made.schedule, Everyone)
        and target.watch is not None
        and target.watch.kind in ("ratio", "filter")
    )


def _exact_values(made: Plan, targets: list[AuditTarget]) -> tuple[dict[str, Bracket], str]:
    """Exact values by observer, or why there are none."""
    numbers = made.parties * made.rounds * made.problem.dim
    if numbers > MOST_NUMBERS:
        return {}, f"no exact value was computed, since a run draws {numbers:,} numbers of noise"
    if _falls(made) > MOST_SCRIPTS:
        small, why = _small_values(made, targets)
        return small | _values_of_models(made, targets), why
    try:
        return _strongest(made, targets), ""
    except NotAffineError:
        return {}, "no exact value can be computed, since noise decides how later steps are taken"
    except OtherNoiseError:
        return {}, "no exact value can be computed, since its noise is not Gaussian"


def _strongest(
    made: Plan,
    targets: list[AuditTarget],
    pairs: Sequence[Neighbours] | None = None,
    ways: Sequence[tuple[float, Script]] | None = None,
) -> dict[str, Bracket]:
    """The largest exact epsilon of each observer over all pairs."""
    first = targets[0]
    query = first.query
    pairs = list(unkind(made.problem, query.unit, query.adjacency, query.party) if pairs is None else pairs)
    seers = {each.query.observer.key: _see(made, each.query.observer) for each in targets}
    scopes = [(observer, query.unit, query.adjacency) for observer in dict.fromkeys(seers.values())]
    curves = exact_curves(made, query.party, pairs, scopes, sizes=SIZES, ways=ways)
    best: dict[str, Bracket] = {}
    for (scope, index), curve in curves.items():
        value, observer = curve.epsilon(first.delta), scope[0]
        if value > (best[observer.key].exact or 0.0 if observer.key in best else -1.0):
            best[observer.key] = Bracket(
                exact=value,
                kind="exactly" if curve.is_exact else "at least",
                pair=pairs[index].what,
                # The public sees a model and knows no coins, so that there is one mixture.
                score=MixtureRatio(curve.groups[0]) if isinstance(observer, Public) else None,
                ideal=partial(draw_mixtures, curve.groups),
                law=None if curve.mu is None else Gaussian(1.0, curve.mu),
            )
    return {key: best[observer.key] for key, observer in seers.items() if observer.key in best}


def _values_of_models(made: Plan, targets: list[AuditTarget]) -> dict[str, Bracket]:
    """What a final model shows, where it depends on the attacked party's coins alone."""
    public = [each for each in targets if isinstance(each.query.observer, Public)]
    if not public:
        return {}
    query = public[0].query
    try:
        ways = [] if _samples_records(made) else own_scripts(made, query.party)
        pairs = [
            pair
            for pair in unkind(made.problem, query.unit, query.adjacency, query.party)
            if ways and pair.what in PAIRS and others_are_alike(made, query.party, pair)
        ]
        return _strongest(made, public, pairs, ways) if pairs else {}
    except (NotAffineError, OtherNoiseError):
        return {}


def _see(made: Plan, observer: Observer) -> Observer:
    """Whose view is attacked: on a graph a peer is taken to hear every message, as its guarantee allows."""
    return Eavesdropper() if made.shape == "peer" and observer.insiders else observer


def _small_values(made: Plan, targets: list[AuditTarget]) -> tuple[dict[str, Bracket], str]:
    """Exact values of the same plan made small, beside its claims."""
    why = "its coins fall in too many ways"
    try:
        small = shrink(made)
        last = small.parties - 1
        found = _strongest(small, [replace(each, query=replace(each.query, party=last)) for each in targets])
    except (NotAffineError, OtherNoiseError, ConsensoError):
        return {}, why
    size = f"with {small.parties} parties and {small.rounds} rounds"
    brackets = {}
    for each in targets:
        query = each.query
        if query.observer.key not in found:
            continue
        known = found[query.observer.key]
        relation = relation_of(query.adjacency, made.problem.adjacency)
        promise = small.prove(query.observer, last, each.delta, unit=query.unit, adjacency=relation)
        claim = promise.epsilon(each.delta)
        told = f"{why}; {size} {known.kind} {known.exact:.3g} of {claim:.3g} claimed for linear losses"
        brackets[query.observer.key] = Bracket(pair=known.pair, why=told)
    return brackets, why


def shrink(made: Plan) -> Plan:
    """The same plan with few parties, and so few rounds that the coins of its schedule can be enumerated."""
    parties, rounds = min(FEW_PARTIES, made.parties), made.rounds
    schedule = made.schedule
    if isinstance(schedule, FixedSubset):
        schedule = FixedSubset(min(schedule.size, parties - 1))
    while rounds > 1 and _count_falls(schedule, parties, rounds) > MOST_SCRIPTS:
        rounds -= 1
    return plan(
        replace(made.problem, sizes=made.problem.sizes[:parties]),
        made.algorithm,
        rounds=rounds,
        noise=dict(made.noise),
        schedule=schedule,
        trust=made.trust,
        sampler=made.sampler,
        colluders=min(made.colluders, max(0, parties - 2)),
    )


def _samples_records(made: Plan) -> bool:
    return any(release.rate < 1 for release in made.algorithm.releases(made.facts))


def _falls(made: Plan) -> int:
    return _count_falls(made.schedule, made.parties, made.rounds)


def _count_falls(schedule: Schedule, parties: int, rounds: int) -> int:
    every = scripts(schedule, parties, rounds)
    return sum(1 for _ in itertools.islice(every, MOST_SCRIPTS + 1))


def _follow(made: Plan, targets: list[AuditTarget]) -> dict[str, Bracket]:
    """What each pair's releases differ by, for observers who see each release of a run in which all take part."""
    if made.problem.records * made.problem.features > MOST_NUMBERS:
        return {}  # it takes as long as an attack
    if _samples_records(made) or not isinstance(made.schedule, Everyone | Cyclic):
        return {}
    query = targets[0].query
    pairs = list(unkind(made.problem, query.unit, query.adjacency, query.party))
    brackets = {}
    for target in targets:
        if target.watch is None or target.watch.kind != "ratio":
            continue
        values = [(follow_differences(made, pair, target.watch, target.delta), pair.what) for pair in pairs]
        best, what = max(values, key=lambda each: each[0].epsilon)
        kind: Kind = "exactly" if best.is_exact else "at most"
        known = Bracket(exact=best.epsilon, kind=kind, pair=what)
        if best.is_exact:
            known = replace(known, ideal=partial(draw_releases, best.gaps), law=best.event)
        brackets[target.query.observer.key] = known
    return brackets
