"""Private quantiles from noisy histograms, for those who have no public bounds.

A record has k numbers (columns, or its length and the size of its target), and adds one to one bin of each of k
histograms: adding or removing it moves the counts by sqrt(k) in the 2-norm, replacing it by sqrt(2k), because no more
than one count of each histogram falls and one rises. The counts leave through the releaser with Gaussian noise.

Where no range is public, a first histogram has bins between powers of two, 2^-30 to 2^30, of either sign: whatever the
numbers are, a few bins hold them, and bins whose noisy count is no larger than noise alone would be are taken for
empty. A second histogram has equal bins between the quantiles that the first one found; what follows from the counts is
post-processing. The two share the budget equally.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from consenso.arrays import Array
from consenso.estimators.fitting import bare_card
from consenso.estimators.privacy_params import PrivacyParams
from consenso.losses import Absolute
from consenso.planning.replan import compare
from consenso.privacy.calibrate import calibrate_noise
from consenso.privacy.card import Card
from consenso.privacy.events import Event, repeat
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import charges_of
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper, Observer, Public
from consenso.privacy.relations import Relation, bounds_of, check_claim, claims_of
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import PendingSums, ReleasePolicy, ReleaseRecord, open_releaser
from consenso.privacy.samplers import Safe, Sampler, Seeded
from consenso.privacy.theorems import Composition, Theorem
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import NoPenalty

FINE_BINS = 32
# How often noise alone fills a bin, in a release; and the standard deviations by which a range is clear of noise.
FALSE_ALARM, DOUBT = 1e-3, 1.0
# Standard deviations from which on a sign is there, in sizes that were found: wrongly once in 160 times.
CLEAR = 2.5
EXPONENTS = np.arange(-30, 31)
POWERS = np.ldexp(1.0, EXPONENTS)
SIGNED_EDGES = np.concatenate([-POWERS[::-1], POWERS])
# Rows that somebody has normalised are a little longer or shorter than 1 by rounding, and belong into one bin.
POSITIVE_EDGES = np.concatenate([[0.0], POWERS * (1 + 1e-6)])
_COUNTS = "counts"
HISTOGRAMS = "histograms"  # what a card says the algorithm is


@dataclass(frozen=True, kw_only=True)
class _Promise:
    guarantee: Guarantee
    theorem: Theorem
    party: int = 0
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Histograms:
    """What is known of released counts: None for quantiles that were taken without noise."""

    counter: Counter | None
    delta: float

    @cached_property
    def card(self) -> Card:
        """The privacy card."""
        if self.counter is not None:
            return self.counter.card()
        return bare_card(HISTOGRAMS, {"adjacency": "replace-one"}, self.delta)


@dataclass(frozen=True, kw_only=True)
class Counter:
    """Histograms of k numbers of each record, released `stages` times within a budget. Everything in it is public."""

    quantities: int
    stages: int
    terms: PrivacyParams
    sampler: Sampler
    noise: GaussianNoise
    _entries: list[ReleaseRecord] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def plan(cls, quantities: int, stages: int, terms: PrivacyParams) -> Counter:
        """The least noise that keeps to the terms."""
        assert terms.sampler is not None
        sampler = terms.sampler

        def at(multiplier: float) -> Counter:
            noise = GaussianNoise(multiplier=multiplier)
            return cls(quantities=quantities, stages=stages, terms=terms, sampler=sampler, noise=noise)

        return at(calibrate_noise(lambda multiplier: at(multiplier).event(terms.adjacency), terms.target))

    @property
    def bounds(self) -> Bounds:
        """What one record can do to the counts of a stage."""
        return Bounds(record_add_remove=math.sqrt(self.quantities), record_replace_one=math.sqrt(2 * self.quantities))

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on every count."""
        return float(self.noise.scale(self._own_bound(), 0))

    def event(self, relation: Relation) -> Event:
        """What one record goes through in all stages."""
        own, seen = self._own_bound(), float(self.bounds.at("record", bounds_of(relation)))
        largest = self.quantities * (len(SIGNED_EDGES) + 1)
        return repeat(self.noise.event(own, seen, 0, self.sampler, largest), self.stages)

    def guarantee(self, observer: Observer = Public(), adjacency: Relation | None = None) -> Guarantee:  # noqa: B008
        """For whoever sees what was released, which anybody may."""
        return self._promise(observer, adjacency or self.terms.adjacency).guarantee

    def _promise(self, observer: Observer, adjacency: Relation) -> _Promise:
        check_claim(self.terms.adjacency, "record", adjacency)
        theorem = Composition(
            released=self.event(adjacency),
            why="A record adds one to one bin of each histogram (docs/estimators.md#private-bounds).",
            adjacency=bounds_of(adjacency),
            unit="record",
        )
        guarantee = Guarantee(
            event=theorem.event(),
            adjacency=adjacency,
            unit="record",
            observer=observer.key,
            theorem=type(theorem).__name__,
            assumptions=tuple(assumption.text for assumption in theorem.assumptions()),
            simulation=not self.sampler.private,
        )
        return _Promise(guarantee=guarantee, theorem=theorem)

    def card(self) -> Card:
        """The privacy card. Where the number of records is public, nothing is said of adding or removing one."""
        own = self.terms.adjacency
        return Card.build(
            algorithm=HISTOGRAMS,
            parameters={"stages": self.stages, "noise": self.noise},
            data={"quantities": self.quantities, "unit": "record", "adjacency": own},
            trust="curator",
            sampler=self.sampler,
            delta=self.terms.delta,
            promises=[
                self._promise(observer, adjacency)
                for observer in (Eavesdropper(), Public())
                for adjacency in claims_of(own, "record")
            ],
        )

    def without_seed(self) -> Counter:
        """What is public about it, for a card that is made later."""
        sampler = Seeded(0) if isinstance(self.sampler, Seeded) else self.sampler
        terms = replace(self.terms, sampler=None, ledger=None)
        return replace(self, sampler=sampler, terms=terms, _entries=[])

    def count(self, stage: int, values: Array, edges: Array) -> Array:
        """Noisy counts (quantities, bins) of values (records, quantities) between edges (quantities, bins + 1)."""
        bins = edges.shape[1] - 1
        exact = count_exactly(values, edges)
        release = Release(
            name=_COUNTS,
            bounds=self.bounds,
            why="a record adds one to one bin of each histogram",
            size=self.quantities * bins,
        )
        facts = PublicFacts.everyone(_facts_of(self.quantities, self.terms), rounds=self.stages).at(stage)
        policy = ReleasePolicy(
            noise={_COUNTS: self.noise}, sampler=self.sampler, trust="curator", shares=1, equal_noise=False
        )
        releaser, close = open_releaser(
            policy,
            facts,
            (release,),
            largest={_COUNTS: self._own_bound()},
            pending=PendingSums(),
            record=self._entries.append,
        )
        noisy = releaser(_COUNTS, exact.reshape(1, -1))
        close()
        return noisy.reshape(self.quantities, bins)

    def _own_bound(self) -> float:
        return float(self.bounds.at("record", self.terms.adjacency))

    @contextmanager
    def charge(self) -> Iterator[None]:
        """Reserve all stages before the first, commit them after the last; nothing released is nothing charged."""
        ledger = self.terms.ledger
        if ledger is None:
            yield
            return
        claims = claims_of(self.terms.adjacency, "record")
        guarantees = [self.guarantee(Eavesdropper(), relation) for relation in claims]
        run_id = f"{self.terms.owner}-{uuid.uuid4()}"
        what = f"{self.terms.owner}: histograms of {self.quantities} numbers, {self.stages} stages"
        ledger.reserve(run_id, charges_of(guarantees), what=what)
        try:
            yield
        except BaseException as error:
            if not self._entries:
                reason = f"stopped by {type(error).__name__} before anything was released"
                ledger.release(run_id, nothing_was_released=True, reason=reason)
            raise
        ledger.commit(run_id)


def private_range(
    values: Array, tails: tuple[float, float], terms: PrivacyParams, *, ranges: Array | None, positive: bool
) -> tuple[Array, Array, Counter]:
    """Noisy quantiles (low, high) of each column of values (records, quantities), each (quantities,).

    ranges: public (quantities, 2), within which values are clipped; None searches powers of two. positive: values are
    at least 0, and so is every low.
    """
    quantities = values.shape[1]
    counter = Counter.plan(quantities, 2 if ranges is None else 1, terms)
    with counter.charge():
        found = search(
            lambda stage, edges: counter.count(stage, values, edges),
            counter.scale,
            quantities,
            tails,
            ranges=ranges,
            positive=positive,
        )
    return found.low, found.high, counter


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Noisy quantiles of several quantities, their medians, and the widths of the bins, each (quantities,)."""

    low: Array
    high: Array
    middle: Array
    bin: Array


def search(
    count: Callable[[int, Array], Array],
    scale: float,
    quantities: int,
    tails: tuple[float, float],
    *,
    ranges: Array | None,
    positive: bool,
    total: float | None = None,
    doubt: float = DOUBT,
) -> Quantiles:
    """Quantiles from noisy histograms; `count` gives the counts of a stage between edges (quantities, bins + 1).

    total: of the counts of each quantity, where it is public. doubt: by how many standard deviations of the noise a
    range has to be clear of it.
    """
    stage = 0
    if ranges is None:
        edges = np.tile(POSITIVE_EDGES if positive else SIGNED_EDGES, (quantities, 1))
        seen = count(stage, edges)
        coarse = _zero_out_noise(seen, scale) if positive else _zero_out_signed_noise(seen, scale)
        # What cannot be told from noise is taken for small: a range that noise chose may be anything up to 2^30.
        ranges = np.stack(
            [_support(row, edges[k], tails) if row.any() else np.array([-1.0, 1.0]) for k, row in enumerate(coarse)]
        )
        if positive:
            ranges[:, 0] = 0.0
        stage += 1
    steps = np.linspace(0.0, 1.0, FINE_BINS + 1)
    edges = ranges[:, :1] + (ranges[:, 1:] - ranges[:, :1]) * steps
    counts = count(stage, edges)
    found = np.stack([_quantiles(counts[k], edges[k], tails, doubt * scale, total) for k in range(quantities)])
    middles = np.array([_middle(counts[k], edges[k]) for k in range(quantities)])
    middles = np.clip(middles, found[:, 0], found[:, 1])
    return Quantiles(low=found[:, 0], high=found[:, 1], middle=middles, bin=edges[:, 1] - edges[:, 0])


def differences(card: Card) -> list[str]:
    """Entries of a card of histograms that its own parameters do not give; empty when all follow."""
    told: dict[str, Any] = {**card.parameters, **card.data}
    sampler: Sampler = Seeded(0) if card.simulation else Safe()
    terms = PrivacyParams(
        owner=HISTOGRAMS,
        epsilon=math.inf,
        delta=card.delta,
        adjacency=told["adjacency"],
        records=1,
        sampler=None,
        ledger=None,
    )
    noise = GaussianNoise(multiplier=told["noise"]["multiplier"])
    again = Counter(quantities=told["quantities"], stages=told["stages"], terms=terms, sampler=sampler, noise=noise)
    return compare(card, again.card())


def exact_range(values: Array, tails: tuple[float, float]) -> tuple[Array, Array]:
    """The quantiles themselves: not private."""
    low, high = np.quantile(values, tails, axis=0)
    return low, high


def count_exactly(values: Array, edges: Array, weights: Array | None = None) -> Array:
    """How many of values (records, quantities) lie between edges (quantities, bins + 1): not private.

    weights: what each record counts, (records,).
    """
    return np.stack([_counts(values[:, which], edges[which], weights) for which in range(len(edges))])


def _middle(counts: Array, edges: Array) -> float:
    """The median; where it lies in an outermost bin, the outer edge, which is where zeros of indicators lie."""
    below = np.cumsum(np.maximum(counts, 0.0))
    place = int(np.searchsorted(below, below[-1] / 2)) if below[-1] > 0 else len(counts) // 2
    if place == 0:
        return float(edges[0])
    return float(edges[-1] if place == len(counts) - 1 else edges[place] / 2 + edges[place + 1] / 2)


def _counts(values: Array, edges: Array, weights: Array | None = None) -> Array:
    """How many values lie between edges; what lies beyond is put into the outermost bins."""
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(place, weights, minlength=len(edges) - 1).astype(np.float64)


def _zero_out_noise(counts: Array, scale: float) -> Array:
    """Counts that noise alone does not reach in any bin."""
    return np.where(counts > scale * noise_quantile(counts.size), counts, 0.0)


def _zero_out_signed_noise(counts: Array, scale: float) -> Array:
    """The same for bins of either sign: sizes are looked for in both, then signs in all sizes that were found.

    A column around 0 has as many records on either side: a range that has seen one of them only is no scale for it.
    """
    level, half = scale * noise_quantile(counts.size), counts.shape[1] // 2
    sides = np.stack([counts[:, :half][:, ::-1], counts[:, half + 1 :]])  # (2, quantities, sizes)
    found = (sides.sum(axis=0) > math.sqrt(2) * level) | (sides > level).any(axis=0)
    totals, noise = np.where(found, sides, 0.0).sum(axis=2), scale * np.sqrt(found.sum(axis=1))
    there = (totals > CLEAR * noise) | (sides > level).any(axis=2)
    kept = np.where(found & there[:, :, None], np.maximum(sides, 0.0), 0.0)
    middle = np.where(counts[:, half] > level, counts[:, half], 0.0)
    return np.hstack([kept[0][:, ::-1], middle[:, None], kept[1]])


def noise_quantile(many: int) -> float:
    """What the largest of so many noises passes once in a thousand releases, in standard deviations.

    A bin that noise alone fills may lie anywhere, and a column whose range reaches there is as good as lost.
    """
    return -float(special.ndtri(FALSE_ALARM / many))


def _support(counts: Array, edges: Array, tails: tuple[float, float]) -> Array:
    """Edges of the bins in which the two quantiles lie: the lower edge of the first, the upper edge of the second."""
    share = np.cumsum(counts) / counts.sum()
    low = int(np.searchsorted(share, tails[0], side="right"))
    high = int(np.searchsorted(share, tails[1], side="left"))
    return np.array([edges[min(low, len(counts) - 1)], edges[min(high, len(counts) - 1) + 1]])


def _quantiles(counts: Array, edges: Array, tails: tuple[float, float], doubt: float, total: float | None) -> Array:
    """The shortest range of bins that has all but the tails, clear of the noise of the bins in it.

    So noise of bins that are empty plays no part. Where it leaves a doubt the range is the longer one, longer by a
    factor of two at most, which costs as much noise in what follows, while one that is too short moves records.
    """
    whole = max(float(counts.sum()), 0.0) if total is None else total
    if tails[0] == 0:
        return _upper_quantile(counts, edges, tails[1], doubt, whole)
    below = np.concatenate([[0.0], np.cumsum(counts)])
    for many in range(1, len(counts)):
        inside = below[many:] - below[:-many]
        start = int(np.argmax(inside))
        if inside[start] >= (tails[1] - tails[0]) * whole + doubt * math.sqrt(many):
            return edges[[start, start + many]]
    return edges[[0, -1]]


def _upper_quantile(counts: Array, edges: Array, level: float, doubt: float, whole: float) -> Array:
    """A range from the first edge: what lies beyond is counted from the top, over fewer bins than what lies below."""
    beyond, most = 0.0, len(counts)
    for many in range(1, len(counts)):
        beyond += float(counts[-many])
        if beyond + doubt * math.sqrt(many) <= (1 - level) * whole:
            most = len(counts) - many
    return edges[[0, most]]


def _facts_of(quantities: int, terms: PrivacyParams) -> Problem:
    """What the releaser asks for: who protects what. Nothing is learnt."""
    return Problem(
        loss=Absolute(),
        regularizer=NoPenalty(),
        features=quantities,
        sizes=np.array([terms.records]),
        row_bound=1.0,
        target_bound=1.0,
        adjacency=terms.adjacency,
    )
