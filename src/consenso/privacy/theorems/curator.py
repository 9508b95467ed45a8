"""A trusted curator: objective perturbation, and a released second moment that preconditions noisy steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, ObjectivePerturbation, compose
from consenso.privacy.theorems.preconditions import (
    require,
    require_lipschitz_constant,
    require_not_negative,
    require_positive,
)
from consenso.privacy.theorems.theorem import FRESH_NOISE, PUBLIC_SETTINGS, Assumption


@dataclass(frozen=True, kw_only=True)
class PerturbedObjective:
    """Minimiser of sum phi(<a, w>, b) + (strong_convexity / 2)|w|^2 + <noise, w>, released once; noise ~ N(0, std^2 I).

    `lipschitz` and `smoothness` are those of one record's loss as a function of w. A minimiser that is only certified
    to |gradient| <= `gradient_tolerance` is released with Gaussian `output_std` on top. `excess` bounds the total
    variation by which discrete samplers of both noises miss these laws.
    """

    citation: ClassVar[str] = "Redberg, Koskela and Wang 2023 (Gaussian objective perturbation)"
    section: ClassVar[str] = "objective-perturbation"

    lipschitz: float
    smoothness: float
    strong_convexity: float
    std: float
    gradient_tolerance: float = 0.0
    output_std: float = 0.0
    excess: float = 0.0
    outputs: int = 1
    adjacency: Adjacency = "add-remove"
    unit: Unit = "record"

    def __post_init__(self) -> None:
        require_lipschitz_constant("PerturbedObjective", self.lipschitz)
        require_positive("PerturbedObjective", std=self.std)
        require_not_negative(
            "PerturbedObjective",
            gradient_tolerance=self.gradient_tolerance,
            output_std=self.output_std,
            excess=self.excess,
        )
        require(
            0 <= self.smoothness < self.strong_convexity < math.inf,
            f"PerturbedObjective(smoothness={self.smoothness}, strong_convexity={self.strong_convexity}): the "
            "quadratic term must outweigh the smoothness of one record; raise strong_convexity, or use SmoothedHinge "
            "for a loss with kinks.",
        )
        require(
            self.outputs == 1,
            f"PerturbedObjective(outputs={self.outputs}): one record's Hessian must have rank one, which softmax "
            "breaks; use PreconditionedFixedPoint.",
        )
        require(
            self.adjacency == "add-remove",
            f"PerturbedObjective(adjacency={self.adjacency!r}): the bound is proved for 'add-remove' only; use "
            "PreconditionedFixedPoint for 'replace-one'.",
        )
        require(
            self.gradient_tolerance == 0 or self.output_std > 0,
            f"PerturbedObjective(gradient_tolerance={self.gradient_tolerance}, output_std=0): an inexact minimiser "
            "needs noise on the output; set output_std.",
        )
        require(
            self.excess == 0 or self.gradient_tolerance > 0,
            f"PerturbedObjective(excess={self.excess}, gradient_tolerance=0): discrete noise is off continuous noise, "
            "and so is the minimiser; add the sampler's displacement to gradient_tolerance.",
        )

    def event(self) -> Event:
        """The perturbed objective, and the output noise for an inexact minimiser."""
        exact = ObjectivePerturbation(self.lipschitz / self.std, self.smoothness / self.strong_convexity)
        if self.gradient_tolerance == 0:
            return exact
        moved = 2 * self.gradient_tolerance / self.strong_convexity
        return compose(exact, Gaussian(self.output_std, moved, self.excess))

    def assumptions(self) -> tuple[Assumption, ...]:
        """A loss of a scalar margin, certified minimisation."""
        return (
            Assumption(
                "The loss is a convex function of one scalar margin <a, w> per record.", "objective-perturbation"
            ),
            Assumption(
                "The minimiser is exact, or its gradient norm is certified to the stated tolerance.",
                "objective-perturbation",
            ),
            FRESH_NOISE,
            PUBLIC_SETTINGS,
        )
