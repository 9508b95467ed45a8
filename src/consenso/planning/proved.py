"""A guarantee with the theorem that gives it."""

from __future__ import annotations

from dataclasses import dataclass

from consenso.privacy.guarantee import Guarantee
from consenso.privacy.observers import Observer
from consenso.privacy.relations import Relation
from consenso.privacy.theorems import Theorem
from consenso.problem import Unit


@dataclass(frozen=True, kw_only=True)
class ProvedGuarantee:
    """The guarantee of one kind of party against one observer, and why nothing stronger is claimed."""

    guarantee: Guarantee
    theorem: Theorem
    party: int
    refusals: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        theorem: Theorem,
        *,
        observer: Observer,
        adjacency: Relation,
        unit: Unit,
        simulation: bool,
        party: int = 0,
        refusals: tuple[str, ...] = (),
    ) -> ProvedGuarantee:
        """What a theorem promises against an observer."""
        guarantee = Guarantee(
            event=theorem.event(),
            adjacency=adjacency,
            unit=unit,
            observer=observer.key,
            theorem=type(theorem).__name__,
            assumptions=tuple(assumption.text for assumption in theorem.assumptions()),
            simulation=simulation,
        )
        return cls(guarantee=guarantee, theorem=theorem, party=party, refusals=refusals)
