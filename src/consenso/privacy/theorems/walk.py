"""A token on a random walk over the parties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, TokenWalk
from consenso.privacy.theorems.inexact import prox_gap
from consenso.privacy.theorems.preconditions import (
    require,
    require_count,
    require_lipschitz_constant,
    require_not_negative,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption, with_excess


@dataclass(frozen=True, kw_only=True)
class WalkWithoutStates:
    """z <- prox_{step r}( z + (2 relaxation / parties)(prox_{step f}(z) - z) + (relaxation / parties) eta ).

    The next party is uniform, itself included; no party keeps a state. For a coalition of `observers` parties that see
    the token when it visits them, and the final model if `final_model`. eta ~ N(0, std^2 I); `excess` is the total
    variation between samplers and this law, over all steps together.
    """

    citation: ClassVar[str] = "Stateless walk of this library, in place of Cyffers, Bellet and Basu 2023, Theorem 4"
    section: ClassVar[str] = "random-walk"
    adjacency: ClassVar[Adjacency] = "replace-one"

    parties: int
    steps: int
    step: float
    lipschitz: float
    relaxation: float
    std: float
    observers: int
    final_model: bool
    tolerance: float = 0.0
    keeps_state: bool = False
    excess: float = 0.0
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("WalkWithoutStates", parties=self.parties, steps=self.steps)
        require(
            self.parties > 1,
            "WalkWithoutStates(parties=1): a walk hides a party among others; use Composition, which needs none.",
        )
        require_positive("WalkWithoutStates", step=self.step, std=self.std, relaxation=self.relaxation)
        require_lipschitz_constant("WalkWithoutStates", self.lipschitz)
        require_not_negative("WalkWithoutStates", tolerance=self.tolerance, excess=self.excess)
        require(
            0 <= self.observers < self.parties,
            f"WalkWithoutStates(observers={self.observers}): at least one of the {self.parties} parties must be "
            "outside the coalition; name fewer observers.",
        )
        require(
            2 * self.relaxation / self.parties <= 2,
            f"WalkWithoutStates(relaxation={self.relaxation}): a visit is non-expansive only up to a relaxation of "
            f"{self.parties}, the number of parties; lower it.",
        )
        require(
            not self.keeps_state,
            "WalkWithoutStates(keeps_state=True): parties that keep a state re-emit what they saw of others; use "
            "Composition, the local bound.",
        )

    @property
    def visit_rho(self) -> float:
        """What one visit costs whoever sees the token next.

        Each of the g steps over which a visit is spread can add twice the tolerance to the distance of the two worlds,
        at a cost of 8 (step lipschitz + g tolerance)^2 / (g std^2): g is at most `steps`.
        """
        gap = prox_gap(step=self.step, lipschitz=self.lipschitz, tolerance=self.steps * self.tolerance)
        return (2 * gap) ** 2 / (2 * self.std**2)

    def event(self) -> Event:
        """The walk as the coalition sees it."""
        walk = TokenWalk(self.visit_rho, self.parties, self.steps, self.observers, self.final_model)
        return with_excess(walk, self.excess)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Everybody's prox and an honest walk."""
        return (
            Assumption(
                "Every party's loss is convex; the protected one's is Lipschitz with the stated constant.",
                "random-walk",
            ),
            Assumption(
                "Every party solves its prox to within the stated tolerance, with a certificate.", "inexact-subproblems"
            ),
            Assumption("Every party's noise has at least the stated standard deviation.", "random-walk"),
            Assumption("The next party is drawn uniformly, itself included, independently of the data.", "random-walk"),
            Assumption("Messages between parties are encrypted: only the visited party sees the token.", "random-walk"),
            *GAUSSIAN_RUN,
        )
