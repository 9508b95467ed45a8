"""What each observer sees, and the guarantee that always holds for it: the composition of what it sees.

The rules are those of docs/privacy.md. Whoever sees single messages pays for each of them. Whoever sees only sums gains
nothing by that, unless the noise was added to the sum. Sampling amplifies only where it is Poisson, the sample is
hidden and the contribution itself is bounded; otherwise it is accounted as if revealed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from consenso.errors import PreconditionError, write_count
from consenso.privacy.accountants import excess
from consenso.privacy.declarations import Declaration
from consenso.privacy.events import (
    Event,
    Gaussian,
    Nothing,
    Sampled,
    SampledGroup,
    Unbounded,
    compose,
    repeat,
    reveal_coin,
    sum_releases,
)
from consenso.privacy.events import Mixture as MixtureEvent
from consenso.privacy.graph_views import count_hiding, seen_stretches
from consenso.privacy.release import Release
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, Stretch, insiders, largest_bounds
from consenso.privacy.theorems import Composition
from consenso.privacy.theorems.graph_sum import SumsOnGraph
from consenso.schedules import Certain, Everyone, Independent, OncePerPass, Participation

Sight = Literal["exact", "each", "sum"]


def sight(spec: RunSpec, query: PrivacyQuery, release: Release) -> Sight:
    """How an observer sees a release: every party's noisy value, only the sum, or the exact contribution."""
    if spec.shape == "peer":
        return "each"
    on_the_wire = query.observer.reads_messages
    mode = spec.mode
    if release.at == "party":
        return "each" if on_the_wire and not mode.has_secure_sum else "sum"
    if mode.noise_at_hub and on_the_wire and spec.parties > 1:
        return "exact"
    return "each" if mode.noise_on_messages and on_the_wire else "sum"


def knows_sample(spec: RunSpec, query: PrivacyQuery) -> bool:
    """Whether an observer knows who took part (docs/privacy.md, "Who knows the sample").

    Under a secure sum and on a graph every party answers in every round, the unsampled with zero and their noise share.
    """
    if spec.shape == "peer":
        return True
    return query.observer.reads_messages and not spec.mode.sums_in_steps


def compose_all(spec: RunSpec, query: PrivacyQuery, declaration: Declaration) -> Composition | SumsOnGraph:
    """The composition of everything that an observer sees of one party: sound for every algorithm."""
    participation = spec.schedule.participation(query.party, spec.rounds, spec.parties)
    uses = Uses(spec, query, declaration)
    event = over_rounds(uses.stretches(), participation)
    return _state(spec, query, compose(event, uses.in_parts()), _why(query, participation))


def _state(spec: RunSpec, query: PrivacyQuery, released: Event, why: str) -> Composition | SumsOnGraph:
    """The theorem that an observer's events were composed by."""
    if not spec.mode.on_graph:
        return Composition(released=released, unit=query.unit, adjacency=query.adjacency, why=why)
    return SumsOnGraph(
        released=released,
        hiding=min(count_hiding(spec, query, round_) for round_ in range(spec.rounds)),
        nodes=spec.parties,
        masked=spec.mode.has_masks,
        unit=query.unit,
        adjacency=query.adjacency,
    )


Costs: TypeAlias = list[tuple[Stretch, Event]]  # what a party pays in a round in which it takes part


class Uses:
    """The events of one party's releases, stretch by stretch; equal stretches are computed once."""

    def __init__(self, spec: RunSpec, query: PrivacyQuery, declaration: Declaration) -> None:
        self._spec, self._query, self._declaration = spec, query, declaration
        self._cache: dict[object, Event] = {}
        self._parts: dict[str, Event] = {}

    def stretches(self) -> Costs:
        """All that the party releases in a round in which it takes part, except what is paid in parts."""
        found = seen_stretches(self._spec, self._query, self._declaration)
        return [(stretch, self._of(stretch)) for stretch in found]

    def _of(self, stretch: Stretch) -> Event:
        on_tree = self._spec.mode.has_open_tree
        hiding = count_hiding(self._spec, self._query, stretch.first) if on_tree else 0
        key = (stretch.releases, stretch.multipliers, hiding)
        if key not in self._cache:
            whole = []
            for release in stretch.releases:
                event = _use(self._spec, self._query, self._declaration, release, stretch.first)
                if release.parts:
                    if self._parts.setdefault(release.name, event) != event:
                        raise PreconditionError(
                            f"Release {release.name!r} is made in parts of one cost, so its noise may not change over "
                            "the rounds; give it a constant multiplier."
                        )
                else:
                    whole.append(event)
            self._cache[key] = compose(*whole)
        return self._cache[key]

    def check(self) -> None:
        """Refuse a run whose cost could not be stated.

        Of many rounds with the same releases those with the least and the most noise are looked at, which is where a
        cost cannot be stated or is not the same, if anywhere.
        """
        alike: dict[tuple[Release, ...], list[Stretch]] = {}
        for stretch in seen_stretches(self._spec, self._query, self._declaration):
            alike.setdefault(stretch.releases, []).append(stretch)
        for found in alike.values():
            for noises in zip(*(stretch.multipliers for stretch in found), strict=True):
                for index in {noises.index(min(noises)), noises.index(max(noises))}:
                    excess(self._of(found[index]))  # refuses events that no accountant can read

    def in_parts(self) -> Event:
        """What is paid in parts over the whole run, once; call after the stretches."""
        return compose(*self._parts.values())


def over_rounds(costs: Costs, participation: Participation) -> Event:
    """The event of a run from what its rounds cost and the law of participation, when participation is known."""
    if isinstance(participation, Certain):
        return _in_rounds(costs, participation.own)
    if isinstance(participation, Independent):
        return compose(*(repeat(reveal_coin(event, participation.rate), stretch.count) for stretch, event in costs))
    if isinstance(participation, OncePerPass):
        return _in_passes(costs, participation)
    own = participation.own
    if own is None:
        own = range(sum(stretch.count for stretch, _ in costs))
    if len({event for _, event in costs}) > 1:
        return _in_rounds(costs, own)  # as if it took part whenever it can
    likely = [(chance, count) for count, chance in enumerate(participation.chances) if chance > 0]
    weights, counts = zip(*likely, strict=True)
    return MixtureEvent(tuple(weights), tuple(repeat(costs[0][1], count) for count in counts))


def _in_rounds(costs: Costs, own: Sequence[int]) -> Event:
    """Of the rounds `own`, in increasing order, all."""
    return compose(
        *(
            repeat(event, bisect_left(own, stretch.first + stretch.count) - bisect_left(own, stretch.first))
            for stretch, event in costs
        )
    )


def _in_passes(costs: Costs, law: OncePerPass) -> Event:
    """One round of each pass, whose place is drawn anew; whoever looks may know it."""
    passes, equal = [], len({event for _, event in costs}) == 1
    for first in range(0, law.rounds, law.parties):
        rounds = range(first, min(first + law.parties, law.rounds))
        if equal:
            passes.append(reveal_coin(costs[0][1], len(rounds) / law.parties))
            continue
        # Weights are whole numbers over the parties, so equal events are counted first.
        counts: Counter[Event] = Counter()
        for stretch, event in costs:
            counts[event] += len(range(max(first, stretch.first), min(rounds.stop, stretch.first + stretch.count)))
        counts[Nothing()] += law.parties - len(rounds)
        likely = [(event, count) for event, count in counts.items() if count]
        weights = tuple(count / law.parties for _, count in likely)
        events = tuple(event for event, _ in likely)
        passes.append(events[0] if len(events) == 1 else MixtureEvent(weights, events))
    return compose(*passes)


def _use(spec: RunSpec, query: PrivacyQuery, declaration: Declaration, release: Release, round_: int) -> Event:
    """All uses of one release by one party that takes part in a round."""
    if sight(spec, query, release) == "exact":
        return Unbounded("a trusted curator receives exact contributions; whoever reads its messages sees them")
    if release.perturbs_objective:
        # The noise is not added to what leaves: an algorithm that does this brings its own theorem.
        return Unbounded("noise inside a minimisation is accounted by a theorem of its own, and none applies")
    return repeat(_one_use(spec, query, declaration, release, round_), release.times)


def _one_use(spec: RunSpec, query: PrivacyQuery, declaration: Declaration, release: Release, round_: int) -> Event:
    event = _add_noise_of_sum(spec, query, declaration, release, round_)
    if release.rate < 1 and isinstance(event, Gaussian):
        return _sample_records(event, release, query, int(spec.facts.problem.sizes[query.party]))
    return event


def _add_noise_of_sum(
    spec: RunSpec, query: PrivacyQuery, declaration: Declaration, release: Release, round_: int
) -> Event:
    """One use, all records of the party in it; the noise of the others counts where only the sum is seen."""
    largest = largest_bounds(spec, declaration, round_)[release.name]
    drawn = float(np.max(spec.sensitivity(release, spec.facts, largest)))
    seen = float(np.max(release.bounds.at(query.unit, query.adjacency)))
    noise = spec.noise_for(release.name)
    if noise.norm < release.norm:
        return Unbounded(
            f"{type(noise).__name__} protects what is bounded in the 1-norm, and {release.name!r} is in the 2-norm"
        )
    event = noise.event(drawn, seen, round_, spec.sampler, release.size)
    if isinstance(event, Unbounded):
        return event
    if release.parts and not isinstance(event, Gaussian):
        raise PreconditionError(
            f"Release {release.name!r} is made in parts, which adds up for Gaussian noise only; use GaussianNoise."
        )
    if spec.mode.has_open_tree and isinstance(event, Gaussian):
        return sum_releases(event, count_hiding(spec, query, round_))
    if release.at == "sum" and spec.mode.sums_in_steps and isinstance(event, Gaussian):
        # Noise shares: what remains is what the honest others added (docs/privacy.md, "Noise shares").
        masked = spec.mode.has_masks
        others = (count_hiding(spec, query, round_) if masked else spec.parties - insiders(spec, query)) - 1
        if others < 1:
            return Unbounded("no honest party is left whose noise share could hide this one")
        event = Gaussian(event.std * (others / spec.shares) ** 0.5, event.sensitivity, event.excess)
    in_the_sum = sight(spec, query, release) == "sum"
    # That this party is in every round does not say so of the others: in one round of a cyclic order it is alone.
    everyone = isinstance(spec.schedule, Everyone) and spec.mode.noise_on_messages
    if in_the_sum and release.at == "sum" and everyone and isinstance(event, Gaussian):
        return sum_releases(event, max(1, spec.parties - insiders(spec, query)))
    return event


def amplify(spec: RunSpec, query: PrivacyQuery, declaration: Declaration) -> Composition | SumsOnGraph:
    """Theorem P for a whole run: Poisson sampling of parties, hidden, noise on the sum, contributions bounded."""
    participation = spec.schedule.participation(query.party, spec.rounds, spec.parties)
    if not (isinstance(participation, Independent) and participation.poisson):
        raise PreconditionError("Theorem P: parties are not Poisson-sampled; the participation is accounted as it is.")
    if knows_sample(spec, query):
        raise PreconditionError(
            "Theorem P: this observer knows who took part; let the parties draw their own coins under a secure sum."
        )
    if query.unit == "record" and (query.adjacency != "replace-one" or spec.facts.problem.sizes[query.party] > 1):
        raise PreconditionError(
            "Theorem P: the other records of a sampled party show that it takes part, which no bound on one record "
            "hides; ask for unit 'party', or sample records."
        )
    rounds = []
    for stretch in seen_stretches(spec, query, declaration):
        # A party that is in a round is in for all of its releases: they share one coin.
        entered = [_count_entered(spec, query, declaration, release, stretch.first) for release in stretch.releases]
        if entered:
            rounds.append(repeat(_hide_sample(entered, query, participation.rate), stretch.count))
    why = "Theorem P: Poisson sampling with client memory, the sample hidden"
    return _state(spec, query, compose(*rounds), why)


def _sample_records(event: Gaussian, release: Release, query: PrivacyQuery, records: int) -> Event:
    """A Gaussian release that each record enters by a hidden coin of its own (docs/privacy.md).

    Nobody but the party knows the coins, so that the sample is hidden from every observer. Records are drawn anew for
    each use of a release: each use has coins of its own.
    """
    if query.unit == "record":
        try:
            return _hide_sample([Entered(release, event, 1)], query, release.rate)
        except PreconditionError:
            return reveal_coin(event, release.rate)
    one = float(np.max(release.bounds.at("record", "add-remove")))
    if not np.isfinite(one):
        return event
    # By the triangle inequality k records of a party move a release by k times what one record moves it.
    whole = float(np.max(release.bounds.at("party", query.adjacency)))
    widening = max(0.0, event.sensitivity - whole)
    return SampledGroup(event.std, one + widening, release.rate, records, query.adjacency, event.excess)


@dataclass(frozen=True)
class Entered:
    """A Gaussian release that a unit enters `times` times if its coin comes up."""

    release: Release
    event: Gaussian
    times: int


def _count_entered(
    spec: RunSpec, query: PrivacyQuery, declaration: Declaration, release: Release, round_: int
) -> Entered:
    """All uses of a release in a round, as far as Theorem P is about them."""
    if release.at != "sum" or sight(spec, query, release) != "sum":
        raise PreconditionError(
            f"Theorem P: the noise of {release.name!r} is kept by the parties, so a sampled party can be "
            "recognised later; use an algorithm whose noise is on the sum."
        )
    if spec.mode.noise_on_messages:
        raise PreconditionError(
            f"Theorem P: the noise on the sum of {release.name!r} depends on how many took part; use a "
            "curator or a secure sum, whose noise does not."
        )
    event = _add_noise_of_sum(spec, query, declaration, release, round_)
    if not isinstance(event, Gaussian):
        raise PreconditionError(f"Theorem P: the noise of {release.name!r} is not Gaussian; use GaussianNoise.")
    return Entered(release, event, release.times)


def _hide_sample(entered: Sequence[Entered], query: PrivacyQuery, rate: float) -> Event:
    """Gaussian releases that a unit enters together with probability `rate`, the sample hidden: one sampled Gaussian.

    Needs the contributions themselves bounded.
    """
    contributions = [_contribution(each, query) for each in entered]
    missed = sum(each.times * each.event.excess for each in entered)
    if len(entered) == 1 and entered[0].times == 1:
        return Sampled(entered[0].event.std, contributions[0], rate, query.adjacency, missed)
    squares = (
        each.times * (contribution / each.event.std) ** 2
        for each, contribution in zip(entered, contributions, strict=True)
    )
    return Sampled(1.0, math.sqrt(math.fsum(squares)), rate, query.adjacency, missed)


def _contribution(entered: Entered, query: PrivacyQuery) -> float:
    """The longest contribution of a unit to a release."""
    release, event = entered.release, entered.event
    contribution = float(np.max(release.bounds.at(query.unit, "add-remove")))
    if not np.isfinite(contribution) or event.sensitivity <= 0:
        raise PreconditionError(
            f"Theorem P: no bound on a whole contribution to {release.name!r} is known; clip it, or release a bounded "
            "quantity."
        )
    # A discrete sampler rounds the sum in both worlds; the event's sensitivity carries that, and so must this.
    widening = event.sensitivity - float(np.max(release.bounds.at(query.unit, query.adjacency)))
    return contribution + max(0.0, widening)


def _why(query: PrivacyQuery, participation: Participation) -> str:
    seen = "every message of the party" if query.observer.reads_messages else "what the hub shows"
    if isinstance(participation, Certain):
        return f"adaptive composition of {seen}, {write_count(participation.count, 'participation')}"
    if isinstance(participation, OncePerPass) and participation.rounds % participation.parties == 0:
        return f"adaptive composition of {seen}, {write_count(participation.most, 'participation')}"
    return f"adaptive composition of {seen}, the participation accounted as if it were known"
