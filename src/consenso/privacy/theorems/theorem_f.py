"""Theorem F: consensus ADMM with noise in every party's state, seen through its averages only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Bounded, Event
from consenso.privacy.theorems.inexact import inexact_energy, prox_gap
from consenso.privacy.theorems.preconditions import (
    require,
    require_count,
    require_lipschitz_constant,
    require_not_negative,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption, with_excess


@dataclass(frozen=True, kw_only=True)
class MeanOfNoisyStates:
    """Full participation, u_i <- u_i + 2 relaxation (x_i - z) + relaxation eta_i, observer sees every mean of the u_i.

    eta_i ~ N(0, std^2 I): noise on x - z enters doubled. `rounds` counts the noisy updates that the last shown
    mean contains. `colluders` are parties that pool what they know; the server counts as outside when it is not a
    party. The local bound always holds too: the smaller is reported. `excess` is the total
    variation between samplers and their law, over all parties and rounds together.
    """

    citation: ClassVar[str] = "Theorem F of this library, in place of Cyffers, Bellet and Basu 2023, Theorems 2 and 3"
    section: ClassVar[str] = "theorem-f"
    adjacency: ClassVar[Adjacency] = "replace-one"

    parties: int
    step: float
    lipschitz: float
    relaxation: float
    std: float
    rounds: int
    colluders: int = 0
    tolerance: float = 0.0
    excess: float = 0.0
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("MeanOfNoisyStates", parties=self.parties, rounds=self.rounds)
        require_positive("MeanOfNoisyStates", step=self.step, std=self.std)
        require_lipschitz_constant("MeanOfNoisyStates", self.lipschitz)
        require_not_negative("MeanOfNoisyStates", tolerance=self.tolerance, excess=self.excess)
        require(
            0 <= self.colluders < self.parties,
            f"MeanOfNoisyStates(colluders={self.colluders}): at least one of the {self.parties} parties must be "
            "honest; name fewer colluders.",
        )
        require(
            0 < self.relaxation < 1,
            f"MeanOfNoisyStates(relaxation={self.relaxation}): the relaxation must lie strictly between 0 and 1; "
            "use Composition, which has no such limit.",
        )
        require(
            self.feedback < 1,
            f"MeanOfNoisyStates(relaxation={self.relaxation}, rounds={self.rounds}): the feedback "
            f"{self.feedback:.3g} must be "
            "below 1; move the relaxation towards 0.5, take fewer rounds or use Composition.",
        )

    @property
    def honest(self) -> int:
        """Parties whose noise the observer does not know; they replace the number of parties everywhere."""
        return self.parties - self.colluders

    @property
    def feedback(self) -> float:
        """How much of a shift comes back through the own state (theta); 0 at relaxation 1/2."""
        share = self.relaxation * (1 - self.relaxation)
        return abs(1 - 2 * self.relaxation) * math.sqrt(self.rounds) / ((self.honest + 1) * math.sqrt(share))

    @property
    def energy_rho(self) -> float:
        """The bound of the energy argument."""
        total = inexact_energy(
            parties=self.honest,
            gap=prox_gap(step=self.step, lipschitz=self.lipschitz, tolerance=self.tolerance),
            tolerance=self.tolerance,
            rounds=self.rounds,
            relaxation=self.relaxation,
        )
        return self.honest * total / (2 * self.relaxation**2 * self.std**2)

    @property
    def local_rho(self) -> float:
        """The bound for whoever sees each update, which holds for all who see less."""
        gap = prox_gap(step=self.step, lipschitz=self.lipschitz, tolerance=self.tolerance)
        return self.rounds * (2 * gap) ** 2 / (2 * self.std**2)

    @property
    def rho(self) -> float:
        """The smaller of the two."""
        return min(self.energy_rho, self.local_rho)

    def event(self) -> Event:
        """Adaptive Gaussian releases of which the pathwise total is bounded."""
        return with_excess(Bounded(self.rho), self.excess)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Everybody's loss and prox matter, not only the protected party's."""
        return (
            Assumption(
                "Every party's loss is convex; the protected one's is Lipschitz with the stated constant.", "theorem-f"
            ),
            Assumption(
                "Every party solves its prox to within the stated tolerance, with a certificate, and clips nothing.",
                "inexact-subproblems",
            ),
            Assumption("Every party takes part in every round and keeps its noise in its state.", "theorem-f"),
            Assumption("Every party's noise has at least the stated standard deviation.", "theorem-f"),
            Assumption("The observer sees averages over all parties, never a single update.", "theorem-f"),
            Assumption("The observer knows the noise of no party besides the stated colluders.", "theorem-f"),
            *GAUSSIAN_RUN,
        )
