"""One line of a card: what one observer learns of one unit, and everything it follows from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from consenso.privacy.guarantee import Guarantee
from consenso.privacy.relations import relation_of
from consenso.privacy.serial import from_json, to_json
from consenso.privacy.theorems import Theorem
from consenso.problem import Adjacency


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Parties that no public fact tells apart: one of them, how many they are, the bound for each of them."""

    party: int
    parties: int
    theorem: dict[str, Any]
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Epsilon over the parties, where it is not the same for all: least, lower median, most, and who has the most."""

    least: float
    median: float
    most: float
    worst: int
    kinds: tuple[Kind, ...]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one observer learns of one unit, under one relation; for the worst party where parties differ.

    `rho` and `mu` are None where no zCDP or GDP bound exists. `excess` is the total variation between a discrete
    sampler and the law that the event states, which epsilon includes.
    """

    observer: str
    unit: str
    adjacency: str
    theorem: dict[str, Any]
    event: dict[str, Any]
    epsilon: float
    method: str
    rho: float | None
    mu: float | None
    excess: float
    citation: str
    section: str
    assumptions: tuple[dict[str, str], ...]
    refusals: tuple[str, ...]
    spread: Spread | None
    sentence: str

    @classmethod
    def derive(
        cls,
        observer: str,
        kinds: Iterable[tuple[int, int, Theorem]],
        delta: float,
        refusals: tuple[str, ...],
        *,
        run: Adjacency,
        simulation: bool,
    ) -> Entry:
        """The entry that follows from the theorems for each kind of party (one of them, how many, theorem).

        run: the adjacency that the run was planned for; a replace-one run turns add-remove bounds into the claim for a
        blanked record.
        """
        from consenso.privacy.accountants import best, excess, find_told

        found = [(party, many, theorem, best(theorem.event(), delta)) for party, many, theorem in kinds]
        party, _, theorem, cost = max(found, key=lambda kind: (kind[3].epsilon, -kind[0]))
        stated = Guarantee(
            event=theorem.event(),
            adjacency=relation_of(theorem.adjacency, run),
            unit=theorem.unit,
            observer=observer,
            theorem=theorem,
            simulation=simulation,
        )
        spread = None
        if len(found) > 1:
            listed = tuple(
                Kind(party=own, parties=many, theorem=to_json(proof), epsilon=price.epsilon)
                for own, many, proof, price in found
            )
            least, median, most = _quantiles(listed)
            spread = Spread(least=least, median=median, most=most, worst=party, kinds=listed)
        return cls(
            observer=observer,
            unit=theorem.unit,
            adjacency=stated.adjacency,
            theorem=to_json(theorem),
            event=to_json(stated.event),
            epsilon=cost.epsilon,
            method=cost.method,
            rho=stated.zcdp(),
            mu=stated.gdp(),
            excess=excess(stated.event) + find_told(stated.event),
            citation=theorem.citation,
            section=theorem.section,
            assumptions=tuple({"text": each.text, "anchor": each.anchor} for each in theorem.assumptions()),
            refusals=refusals,
            spread=spread,
            sentence=stated.sentence(delta),
        )

    def kinds(self) -> list[tuple[int, int, Theorem]]:
        """The parameters that everything else in the entry follows from."""
        if self.spread is None:
            return [(0, 1, from_json(self.theorem))]
        return [(kind.party, kind.parties, from_json(kind.theorem)) for kind in self.spread.kinds]


def read_entry(stored: Mapping[str, Any]) -> Entry:
    """An entry from its JSON values."""
    spread = stored["spread"]
    if spread is not None:
        kinds = tuple(Kind(**{**kind, "epsilon": float(kind["epsilon"])}) for kind in spread["kinds"])
        figures = {name: float(spread[name]) for name in ("least", "median", "most")}
        spread = Spread(**{**spread, **figures, "kinds": kinds})
    costs = {name: None if stored[name] is None else float(stored[name]) for name in ("epsilon", "rho", "mu", "excess")}
    texts = {"assumptions": tuple(stored["assumptions"]), "refusals": tuple(stored["refusals"])}
    return Entry(**{**stored, **texts, **costs, "spread": spread})


def _quantiles(kinds: tuple[Kind, ...]) -> tuple[float, float, float]:
    ordered = sorted(kinds, key=lambda kind: kind.epsilon)
    middle, passed = (sum(kind.parties for kind in ordered) - 1) // 2, 0
    for kind in ordered:
        passed += kind.parties
        if passed > middle:
            break
    return ordered[0].epsilon, kind.epsilon, ordered[-1].epsilon
