"""Histograms that are released by themselves, for `private_bounds` and `PrivateScaler`: noise, claims, card, ledger.

A record has k numbers (columns, or its length and the size of its target), and adds one to one bin of each of k
histograms: adding or removing it moves the counts by sqrt(k) in the 2-norm, replacing it by sqrt(2k), because no more
than one count of each histogram falls and one rises. The counts leave through the releaser with Gaussian noise.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.estimators.fitting import bare_card
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.quantiles import SIGNED_EDGES, count_exactly, search
from consenso.estimators.stages import prove_release
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
from consenso.privacy.releaser import ReleaseRecord, release_alone
from consenso.privacy.samplers import Safe, Sampler, Seeded

_COUNTS = "counts"
HISTOGRAMS = "histograms"  # what a card says the algorithm is


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
        return self._promise(observer, adjacency or self.terms.adjacency)

    def _promise(self, observer: Observer, adjacency: Relation) -> Guarantee:
        check_claim(self.terms.adjacency, "record", adjacency)
        return prove_release(
            self.event(adjacency),
            why="A record adds one to one bin of each histogram (docs/estimators.md#private-bounds).",
            observer=observer,
            adjacency=adjacency,
            unit="record",
            simulation=not self.sampler.private,
        )

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
        noisy = release_alone(
            release, exact.reshape(1, -1), self.noise, self._own_bound(), stage, self.sampler, self._entries.append
        )
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
