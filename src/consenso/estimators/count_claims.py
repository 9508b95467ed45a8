"""What is promised of counts that are released by themselves, and their card: of bounds, scalers and categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from consenso.estimators.stages import prove_release
from consenso.privacy.card import Card
from consenso.privacy.earlier import Earlier
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.observers import Eavesdropper, Observer, Public
from consenso.privacy.relations import Relation, bounds_of, check_claim, claims_of
from consenso.privacy.samplers import Safe, Sampler, Seeded
from consenso.problem import Adjacency, Unit


@dataclass(frozen=True, kw_only=True)
class CountClaims:
    """Counts with their noise, from public facts.

    algorithm: what a card says it is. why: the reason for the bounds. parameters, data: what the card states besides,
    from which it is computed again.
    """

    algorithm: str
    why: str
    planned: Earlier
    adjacency: Adjacency
    delta: float
    simulation: bool
    unit: Unit = "record"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sampler(self) -> Sampler:
        """The kind of noise, without its seed."""
        return Seeded(0) if self.simulation else Safe()

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on every count."""
        return self.planned.scale(self.adjacency)

    def prove(self, observer: Observer = Public(), adjacency: Relation | None = None) -> Guarantee:  # noqa: B008
        """What an observer can learn of a unit; under the adjacency of the run unless told."""
        relation = adjacency or self.adjacency
        check_claim(self.adjacency, self.unit, relation)
        return prove_release(
            self.planned.event(self.sampler, self.adjacency, self.unit, bounds_of(relation)),
            why=self.why,
            observer=observer,
            adjacency=relation,
            unit=self.unit,
            simulation=self.simulation,
        )

    @cached_property
    def card(self) -> Card:
        """The privacy card. Where the number of units is public, nothing is said of adding or removing one."""
        return Card.build(
            algorithm=self.algorithm,
            parameters={"noise": self.planned.noise, **self.parameters},
            data={**self.data, "unit": self.unit, "adjacency": self.adjacency},
            trust="curator",
            sampler=self.sampler,
            delta=self.delta,
            promises=[
                self.prove(observer, adjacency)
                for observer in (Eavesdropper(), Public())
                for adjacency in claims_of(self.adjacency, self.unit)
            ],
        )
