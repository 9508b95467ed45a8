"""What attacking a guarantee gave."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from consenso.arrays import Array
from consenso.audit.bounds import AttackEvidence
from consenso.privacy.events import Event
from consenso.privacy.relations import Relation
from consenso.privacy.rounding import round_up
from consenso.problem import Unit

# What is told of a first attack that was not the last one.
FIRST = ("lower", "method", "confidence", "trials")
# The method of a bound within the family of a claim.
FAMILY = "trade-off curve"
# The method of a bound within the family of what a pair of worlds shows, where that is known.
LAW = "law of the pair"
# In which sense the bound of a method holds; of any mechanism, if it is not named.
SENSES = {FAMILY: "if its shape holds", LAW: "as the law of the pair has its shape"}
# The share of a claim that an attack reaches without more being said.
ENOUGH = 0.85
# What the epsilon of a bracket is to the true one of its pair.
Kind = Literal["exactly", "at least", "at most"]


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """The true epsilon of the strongest pair that is known, for linear losses, or why it is not known.

    kind: whether the pair shows exactly so much to the observer, at least so much, or at most. exact: None where there
    is no such number, and then `why` says it. pair: empty where it is not known which one shows the observer most.
    score: the log likelihood ratio of final models of the pair, where their law is known. ideal: scores of so many runs
    of either world by the likelihood ratio of all that is seen. told: whether the attack is told more than the observer
    sees, namely every answer of the hub. law: what the pair shows, as an event, where that is known.
    """

    exact: float | None = None
    kind: Kind = "exactly"
    pair: str = ""
    why: str = ""
    score: Callable[[Array], Array] | None = field(default=None, repr=False, compare=False)
    ideal: Callable[[int], tuple[Array, Array]] | None = field(default=None, repr=False, compare=False)
    told: bool = False
    law: Event | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One guarantee, attacked. `refuted` is final where the attack was repeated, or where nothing was refuted."""

    algorithm: str
    observer: str
    unit: Unit
    adjacency: Relation
    party: int
    theorem: str
    delta: float
    claimed: float  # epsilon
    lower: float  # bound on epsilon
    method: str
    confidence: float
    trials: int  # of either world; 0 where nothing is claimed
    refuted: bool
    neighbours: str
    attack: str
    stacking: str
    event: Event = field(repr=False)
    evidence: AttackEvidence | None = field(repr=False, default=None)
    first: Finding | None = None  # the attack that called for this one, which decides
    bracket: Bracket | None = None  # what is known of the true value, if it was computed
    # What the likelihood ratio itself proves with as many runs; where its law is not known, if the claim is attained.
    ideal: float | None = None

    @property
    def gap(self) -> float:
        """How much of the claimed epsilon the attack did not reach."""
        return self.claimed - self.lower

    @property
    def share(self) -> float:
        """How much of the claimed epsilon the attack reached; 1 where nothing was claimed to be lost."""
        return self.lower / self.claimed if self.claimed > 0 else 1.0

    def proved_all(self, share: float) -> bool:
        """Whether the attack proved this share of the claim, or of what is known to be the most it can show."""
        most, known = self.claimed, self.bracket
        if known is not None and known.exact is not None and known.kind != "at least" and not known.told:
            most = min(most, known.exact)
        return self.refuted or self.lower >= share * most

    @property
    def sense(self) -> str:
        """Of what the bound holds: the curve of a claim, or of a pair of worlds, is beaten as one of its family."""
        return SENSES.get(self.method, "of any mechanism")

    @property
    def reason(self) -> str:
        """Why an attack stays below a claim, from what was computed; empty where nothing was."""
        if not self.trials or self.share >= ENOUGH:
            return "the attack reaches it" if self.trials else ""
        if self.bracket is None:
            return ""
        known = self.bracket
        if known.exact is None:
            few = (
                ""
                if self.ideal is None
                else f"; {self.trials:,} runs of an attack that attains the claim prove {self.ideal:.3g} in the mean"
            )
            return f"between {self.lower:.3g} and {self.claimed:.3g}: {known.why}{few}"
        value = f"{known.kind} {known.exact:.3g} for linear losses" + (f" ({known.pair})" if known.pair else "")
        if known.told:
            return (
                f"between {known.exact:.3g} and {self.claimed:.3g} ({self.theorem}): {value} in its own rounds; told "
                f"every answer of the hub, as {self.theorem} counts them, the attack proves {self.lower:.3g}"
            )
        value += f", of which the attack reaches {self.lower / known.exact:.0%}" if known.exact > 0 else ", no less"
        if self.ideal is not None and self.lower < ENOUGH * known.exact:
            value += f"; {self.trials:,} runs of an ideal attack prove {self.ideal:.3g}"
        if known.kind != "at most" and known.exact >= ENOUGH * self.claimed:
            return f"the claim is tight: {value}"
        low = self.lower if known.kind == "at most" else max(self.lower, known.exact)
        more = f"; {known.why}" if known.why else ""
        return f"between {low:.3g} and {self.claimed:.3g} ({self.theorem}): {value}{more}"

    def to_json(self) -> dict[str, Any]:
        """Numbers and names; an infinite claim is null."""
        names = (
            *("algorithm", "observer", "unit", "adjacency", "party", "theorem", "delta", "lower", "method"),
            *("confidence", "trials", "refuted", "neighbours", "attack", "stacking"),
        )
        finite = math.isfinite(self.claimed)
        return {name: getattr(self, name) for name in names} | {
            "claimed": self.claimed if finite else None,
            "gap": self.gap if finite else None,
            "share": self.share if finite else None,
            "sense": self.sense if finite else None,
            "exact": None if self.bracket is None else self.bracket.exact,
            "exact_is": None if self.bracket is None or self.bracket.exact is None else self.bracket.kind,
            "ideal": self.ideal,
            "reason": self.reason or None,
            "errors": None if self.evidence is None else self.evidence.errors.to_json(),
            "first": None if self.first is None else {name: getattr(self.first, name) for name in FIRST},
        }

    def sentence(self) -> str:
        """The finding in one line."""
        who = f"{self.algorithm}, {self.observer}, {self.unit}, {self.adjacency}"
        if not self.trials:
            return f"{who}: nothing is claimed."
        verdict = "REFUTED" if self.refuted else "not refuted"
        return (
            f"{who}: claimed epsilon {round_up(self.claimed)} at delta {self.delta:g} ({self.theorem}), "
            f"{self.say_proof()} ({self.neighbours}; {self.attack}; {self.method}): {verdict}."
        )

    def say_proof(self) -> str:
        """What the attack proved, and the one before it where there was one."""
        last = f"at least {self.lower:.4g} with confidence {self.confidence:.6g}"
        if self.first is None:
            return f"attacked to {last}"
        return (
            f"attacked to at least {self.first.lower:.4g} with confidence {self.first.confidence:.6g}, then again with "
            f"new noise to {last}"
        )
