"""Networked ADMM with one noisy linearised step per node and iteration (zCDP-NFL)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, compose
from consenso.privacy.theorems.preconditions import (
    per_round,
    require,
    require_count,
    require_not_negative,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


def projected_gradient_bound(*, row_bound: float, radius: float, target_bound: float) -> float:
    """Largest gradient of (<x, w> - y)^2 while |x| <= row_bound, |y| <= target_bound and |w| <= radius (projected)."""
    return 2 * row_bound * (row_bound * radius + target_bound)


def stds_of_growing_budget(sensitivities: Sequence[float], *, first_rho: float, decay: float) -> tuple[float, ...]:
    """Noise whose n-th step costs rho = first_rho * decay^-(n-1), n = 1, 2, ..., for the given sensitivities."""
    require_positive("stds_of_growing_budget", first_rho=first_rho, decay=decay)
    budgets = [first_rho * decay**-n for n in range(len(sensitivities))]
    return tuple(float(gap / (2 * rho) ** 0.5) for gap, rho in zip(sensitivities, budgets, strict=True))


@dataclass(frozen=True, kw_only=True)
class NetworkedSteps:
    """One Gaussian mechanism per iteration, with the sensitivity of the denominator and the noise really used.

    The step is w = [... - grad f(w~)] / (2 penalty degree + proximity), f the mean over the node's `records`.
    `proximity` and `std` are one number, or one per iteration.
    """

    citation: ClassVar[str] = "Gauthier et al., zCDP-NFL, summed exactly"
    section: ClassVar[str] = "networked-admm"

    gradient_bound: float
    bounded_by: Literal["lipschitz", "clipping", "projection", "nothing"]
    records: int
    penalty: float
    degree: int
    proximity: float | tuple[float, ...]
    std: float | tuple[float, ...]
    iterations: int
    noisy_history: bool = True
    adjacency: Adjacency = "replace-one"
    unit: Unit = "record"

    def __post_init__(self) -> None:
        require_positive("NetworkedSteps", gradient_bound=self.gradient_bound)
        require_not_negative("NetworkedSteps", penalty=self.penalty, degree=self.degree)
        require_count("NetworkedSteps", records=self.records, iterations=self.iterations)
        for std in per_round("NetworkedSteps", "std", self.std, self.iterations):
            require_positive("NetworkedSteps", std=std)
        for proximity in per_round("NetworkedSteps", "proximity", self.proximity, self.iterations):
            require_not_negative("NetworkedSteps", proximity=proximity)
            require_positive("NetworkedSteps", denominator=2 * self.penalty * self.degree + proximity)
        require(
            self.bounded_by in ("lipschitz", "clipping", "projection"),
            f"NetworkedSteps(bounded_by={self.bounded_by!r}): every record's gradient must be bounded, which a squared "
            "loss alone is not; clip each record's gradient, project the iterates, or use Huber(threshold=...).",
        )
        require(
            self.noisy_history,
            "NetworkedSteps(noisy_history=False): gradient, prox centre, regulariser and duals must all be taken at "
            "noisy iterates; use the noisy iterate throughout.",
        )

    @property
    def sensitivities(self) -> tuple[float, ...]:
        """How far one record moves each step."""
        worlds = 1 if self.adjacency == "add-remove" else 2
        gap = worlds * self.gradient_bound / self.records
        proximities = per_round("NetworkedSteps", "proximity", self.proximity, self.iterations)
        return tuple(gap / (2 * self.penalty * self.degree + proximity) for proximity in proximities)

    def event(self) -> Event:
        """The sum of the exact terms of all iterations."""
        stds = per_round("NetworkedSteps", "std", self.std, self.iterations)
        return compose(*(Gaussian(std, gap) for std, gap in zip(stds, self.sensitivities, strict=True)))

    def assumptions(self) -> tuple[Assumption, ...]:
        """Bounded gradients, noisy history."""
        return (
            Assumption(
                "Every single record's gradient is bounded by the stated number at every iterate.", "networked-admm"
            ),
            Assumption(
                "All that depends on the data enters through noisy iterates, from the first on.", "networked-admm"
            ),
            *GAUSSIAN_RUN,
        )
