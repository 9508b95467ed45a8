"""What happened, apart from what it costs.

An event is a frozen tree of plain numbers: the mechanism that one privacy unit went through, as one observer saw
it. Sensitivities are those of the adjacency for which the tree was built, doubled where replace-one doubles them:
an event never carries an adjacency that could be read in two ways, except where sampling makes the two differ in
kind (`Sampled`, `SampledGroup`). Costs live in `consenso.privacy.accountants.kinds`, a file for each event; JSON in
`consenso.privacy.serial`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from consenso.conventions import Adjacency as Adjacency


class Event(ABC):
    """What one unit went through. A kind of event is a frozen dataclass of plain numbers and of events."""

    @property
    def inner(self) -> tuple[Event, ...]:
        """The events that it is made of."""
        return ()

    @property
    def only_under(self) -> Adjacency | None:
        """The adjacency without which the event has no meaning; None where its numbers say it all."""
        return None

    @abstractmethod
    def magnify(self, factor: float) -> Event:
        """The same event when a unit can do `factor` times as much."""


@dataclass(frozen=True)
class Nothing(Event):
    """The unit is in nothing that was released."""

    def magnify(self, factor: float) -> Event:
        return self


@dataclass(frozen=True)
class Unbounded(Event):
    """A value left without a bound: epsilon is infinite, for the stated reason."""

    reason: str

    def magnify(self, factor: float) -> Event:
        return self


@dataclass(frozen=True)
class Gaussian(Event):
    """N(0, std^2 I) on a value whose 2-norm moves by at most `sensitivity`.

    `excess` bounds the total variation between the sampler that was used and this law (discrete sampling).
    """

    std: float
    sensitivity: float
    excess: float = 0.0

    def magnify(self, factor: float) -> Event:
        return replace(self, sensitivity=self.sensitivity * factor)


@dataclass(frozen=True)
class Told(Event):
    """Names of labels or categories are told, which one unit alone may have (docs/privacy.md#what-may-be-told).

    probability: that one is told of those that either world has and the other has not.
    """

    probability: float

    def magnify(self, factor: float) -> Event:
        return replace(self, probability=min(self.probability * factor, 1.0))


@dataclass(frozen=True)
class Laplace(Event):
    """Independent Laplace(scale) on a value whose 1-norm moves by at most `sensitivity`."""

    scale: float
    sensitivity: float
    excess: float = 0.0

    def magnify(self, factor: float) -> Event:
        return replace(self, sensitivity=self.sensitivity * factor)


@dataclass(frozen=True)
class GammaNorm(Event):
    """Noise of density proportional to exp(-|x|_2/scale) on `dim` numbers whose 2-norm moves by at most `sensitivity`.

    It is pure with sensitivity/scale, and in many dimensions most outcomes lose far less.
    """

    scale: float
    sensitivity: float
    dim: int

    def magnify(self, factor: float) -> Event:
        return replace(self, sensitivity=self.sensitivity * factor)


@dataclass(frozen=True)
class Pure(Event):
    """Any epsilon-differentially private mechanism (noise inside a minimisation, randomized response)."""

    epsilon: float

    def magnify(self, factor: float) -> Event:
        return Pure(self.epsilon * factor)


@dataclass(frozen=True)
class ZCDP(Event):
    """Any rho-zCDP mechanism of which nothing more is known."""

    rho: float

    def magnify(self, factor: float) -> Event:
        return ZCDP(self.rho * factor**2)


@dataclass(frozen=True)
class Bounded(Event):
    """Gaussian releases of which only the pathwise total is bounded: sum of squared shift/std ratios <= 2 rho.

    Such a sequence is sqrt(2 rho)-GDP (docs/privacy.md#conventions), so it may be converted exactly like a Gaussian.
    """

    rho: float

    def magnify(self, factor: float) -> Event:
        return Bounded(self.rho * factor**2)


@dataclass(frozen=True)
class Sampled(Event):
    """Poisson sampling at `rate` with the sample hidden, Gaussian noise on the sum (Theorem P).

    `contribution` bounds one unit's contribution and `std` is the noise on the sum. Under replace-one both worlds
    contribute, in opposite directions at worst; under add-remove one world contributes nothing.
    """

    std: float
    contribution: float
    rate: float
    adjacency: Adjacency
    excess: float = 0.0

    @property
    def only_under(self) -> Adjacency:
        return self.adjacency

    def magnify(self, factor: float) -> Event:
        return replace(self, contribution=self.contribution * factor)


@dataclass(frozen=True)
class SampledGroup(Event):
    """A unit of `records` records, each in the sum with probability `rate` by a hidden coin of its own.

    `contribution` bounds that of one record, `std` is the noise on the sum. Under replace-one all records of the unit
    are exchanged for as many others.
    """

    std: float
    contribution: float
    rate: float
    records: int
    adjacency: Adjacency
    excess: float = 0.0

    @property
    def only_under(self) -> Adjacency:
        return self.adjacency

    def magnify(self, factor: float) -> Event:
        return replace(self, contribution=self.contribution * factor)


@dataclass(frozen=True)
class SampledFixedSize(Event):
    """`size` of `population` units without replacement and without memory, hidden; replace-one only."""

    std: float
    contribution: float
    size: int
    population: int
    excess: float = 0.0

    @property
    def only_under(self) -> Adjacency:
        return "replace-one"

    def magnify(self, factor: float) -> Event:
        return replace(self, contribution=self.contribution * factor)


@dataclass(frozen=True)
class Mixture(Event):
    """With public probability `weights[i]`, revealed and independent of the data, `events[i]` happened.

    Sampling-revealed participation is Mixture((1 - q, q), (Nothing(), event)); random order and random stopping of
    gradient ADMM are mixtures over positions.
    """

    weights: tuple[float, ...]
    events: tuple[Event, ...]

    @property
    def inner(self) -> tuple[Event, ...]:
        return self.events

    def magnify(self, factor: float) -> Event:
        return Mixture(self.weights, tuple(each.magnify(factor) for each in self.events))


@dataclass(frozen=True)
class TokenWalk(Event):
    """What a coalition of `observers` of `parties` walkers, and whoever sees the final model, learns of one other.

    The stateless walk (docs/privacy.md#random-walk): `steps` hops to uniform parties, one visit costs RDP
    alpha*visit_rho.
    """

    visit_rho: float
    parties: int
    steps: int
    observers: int
    final_model: bool

    def magnify(self, factor: float) -> Event:
        return replace(self, visit_rho=self.visit_rho * factor**2)


@dataclass(frozen=True)
class ObjectivePerturbation(Event):
    """Minimiser of a convex objective with a random linear term (docs/privacy.md#objective-perturbation), add-remove.

    `ratio` is Lipschitz constant over noise std, `smoothness_share` is smoothness over strong convexity, below 1.
    """

    ratio: float
    smoothness_share: float

    @property
    def only_under(self) -> Adjacency:
        return "add-remove"

    def magnify(self, factor: float) -> Event:
        return replace(self, ratio=self.ratio * factor)


@dataclass(frozen=True)
class BestOf(Event):
    """The best of K runs of a rho-zCDP mechanism with fresh noise; K stays hidden (docs/privacy.md#private-search).

    K is logarithmic: P(K = k) is proportional to (1 - gamma)^k / k, k = 1, 2, ...
    """

    rho: float
    gamma: float
    excess: float = 0.0

    def magnify(self, factor: float) -> Event:
        return replace(self, rho=self.rho * factor**2)


@dataclass(frozen=True)
class Repeated(Event):
    """`count` adaptive uses of the same event, with fresh noise each time."""

    event: Event
    count: int

    @property
    def inner(self) -> tuple[Event, ...]:
        return (self.event,)

    def magnify(self, factor: float) -> Event:
        return Repeated(self.event.magnify(factor), self.count)


@dataclass(frozen=True)
class Composed(Event):
    """All of these, adaptively."""

    events: tuple[Event, ...]

    @property
    def inner(self) -> tuple[Event, ...]:
        return self.events

    def magnify(self, factor: float) -> Event:
        return Composed(tuple(each.magnify(factor) for each in self.events))


def reveal_coin(event: Event, rate: float) -> Event:
    """One round of an event that happens with probability `rate`, when the observer knows whether it did."""
    if rate >= 1:
        return event
    return Mixture((1.0 - rate, rate), (Nothing(), event))


def sum_releases(event: Gaussian, count: int) -> Gaussian:
    """The sum of `count` independent releases of distinct units, of which one moves: gains sqrt(count), not count.

    Each of the samplers may miss its law.
    """
    return Gaussian(event.std * count**0.5, event.sensitivity, event.excess * count)


def compose(*events: Event) -> Event:
    """Flat composition: nested compositions are opened, nothings dropped, equal neighbours grouped into a repeat."""
    flat: list[tuple[Event, int]] = []
    for event in events:
        parts = _parts(event)
        for part, count in parts:
            if flat and flat[-1][0] == part:
                flat[-1] = (part, flat[-1][1] + count)
            else:
                flat.append((part, count))
    grouped = tuple(part if count == 1 else Repeated(part, count) for part, count in flat)
    if not grouped:
        return Nothing()
    return grouped[0] if len(grouped) == 1 else Composed(grouped)


def repeat(event: Event, count: int) -> Event:
    """`count` uses of an event."""
    if count == 0 or isinstance(event, Nothing):
        return Nothing()
    if isinstance(event, Repeated):
        return Repeated(event.event, event.count * count)
    return event if count == 1 else Repeated(event, count)


def _parts(event: Event) -> list[tuple[Event, int]]:
    if isinstance(event, Nothing):
        return []
    if isinstance(event, Composed):
        return [part for inner in event.events for part in _parts(inner)]
    if isinstance(event, Repeated):
        inner = _parts(event.event)
        if len(inner) == 1:
            return [(inner[0][0], inner[0][1] * event.count)]
    return [(event, 1)] if not isinstance(event, Repeated) else [(event.event, event.count)]
