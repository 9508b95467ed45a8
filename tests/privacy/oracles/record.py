"""One record of a party that holds several: the loss of the party is the mean of `records` losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from tests.privacy.oracles.rates import require_rate
from tests.privacy.oracles.sums import state_growth

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, compose, repeat, reveal_coin
from consenso.privacy.theorems.inexact import prox_gap
from consenso.privacy.theorems.preconditions import (
    require,
    require_count,
    require_lipschitz_constant,
    require_not_negative,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption

Variant: TypeAlias = Literal["local", "A", "B", "C"]


@dataclass(frozen=True, kw_only=True)
class RecordInParty:
    """Consensus ADMM, unclipped, seen as LocalView ("local") or as the noisy sums of variant A, B or C.

    With a public state ("local") one record moves a prox by 2 step lipschitz / records. With a private state that is
    wrong: the two worlds' states drift apart and later contributions differ by more. The gap stays bounded when the
    losses are smooth; otherwise it is bounded by the number of own steps so far (variant C) or by the party's bound.
    The smallest of the valid bounds is taken in every round. `rate` is the probability that the party takes part in a
    round, known to the observer; `std` is that of LocalView or of the sum.
    """

    citation: ClassVar[str] = "Record-level bounds of this library"
    section: ClassVar[str] = "one-record-of-a-party"
    adjacency: ClassVar[Adjacency] = "replace-one"
    unit: ClassVar[Unit] = "record"

    variant: Variant
    records: int
    step: float
    lipschitz: float
    relaxation: float
    std: float
    rounds: int
    smoothness: float = math.inf
    tolerance: float = 0.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        require_count("RecordInParty", records=self.records, rounds=self.rounds)
        require_positive("RecordInParty", step=self.step, std=self.std)
        require_lipschitz_constant("RecordInParty", self.lipschitz)
        require_not_negative("RecordInParty", tolerance=self.tolerance)
        require_rate("RecordInParty", rate=self.rate)
        require(
            self.variant in ("local", "A", "B", "C"),
            f"RecordInParty(variant={self.variant!r}): the view must be 'local', 'A', 'B' or 'C'; name what is "
            "released.",
        )
        require(
            self.smoothness >= 0,
            f"RecordInParty(smoothness={self.smoothness}): smoothness must be at least 0; use infinity for a loss with "
            "kinks.",
        )
        require(
            0 < self.relaxation < 1,
            f"RecordInParty(relaxation={self.relaxation}): the relaxation must lie strictly between 0 and 1; lower it.",
        )
        require(
            self.variant != "B" or self.rate == 1,
            f"RecordInParty(variant='B', rate={self.rate}): in variant B parties contribute in every round, sampled or "
            "not; use rate 1, or variant C.",
        )

    def sensitivity(self, own_steps: int) -> float:
        """How far one record moves the next release, after this many steps of the party's own state."""
        own = self._gap(1)
        mine = self._gap(self.records)
        if self.variant == "local":
            return 2 * mine
        smooth = 1 + self.step * self.smoothness  # the own map contracts with 1 - 1/smooth
        drift = 2 * self.relaxation * own_steps * mine
        growth = state_growth(self.relaxation)
        averaged = self.relaxation <= 0.5
        if self.variant == "A":
            user = 2 * self.relaxation * (growth + 1) * own
            return min(user, 2 * self.relaxation * mine * (1 + smooth)) if averaged else user
        if self.variant == "B":
            return min(growth * own, mine * smooth) if averaged else growth * own
        return min(own, mine * smooth, mine + drift) if averaged else own

    def event(self) -> Event:
        """One Gaussian mechanism per round in which the party takes part."""
        first, last = self.sensitivity(0), self.sensitivity(self.rounds - 1)
        if first == last:
            return repeat(self._round(first), self.rounds)
        return compose(*(self._round(self.sensitivity(k)) for k in range(self.rounds)))

    def assumptions(self) -> tuple[Assumption, ...]:
        """How the party's loss is made of its records, and what is private."""
        state = (
            "Every update of the party is seen, so that its state is public."
            if self.variant == "local"
            else "No noise is kept in the party's state, and no contribution is clipped."
        )
        return (
            Assumption(
                "The party's loss is the mean of its records' losses, each convex, Lipschitz and smooth with the "
                "stated constants.",
                "one-record-of-a-party",
            ),
            Assumption(state, "one-record-of-a-party"),
            Assumption("The prox is solved to within the stated tolerance, with a certificate.", "inexact-subproblems"),
            *GAUSSIAN_RUN,
        )

    def _gap(self, records: int) -> float:
        return prox_gap(step=self.step, lipschitz=self.lipschitz / records, tolerance=self.tolerance)

    def _round(self, sensitivity: float) -> Event:
        return reveal_coin(Gaussian(self.std, sensitivity), self.rate)
