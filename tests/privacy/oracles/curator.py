"""A trusted curator: objective perturbation, and a released second moment that preconditions noisy steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, compose, repeat
from consenso.privacy.theorems.preconditions import (
    require_count,
    require_positive,
)
from consenso.privacy.theorems.theorem import FRESH_NOISE, GAUSSIAN_RUN, PUBLIC_SETTINGS, Assumption


def second_moment_sensitivity(*, row_bound: float, adjacency: Adjacency) -> float:
    """2-norm by which one row moves svec(sum a a'), the upper triangle with off-diagonals times sqrt 2."""
    return row_bound**2 * (1.0 if adjacency == "add-remove" else math.sqrt(2))


def whitened_sum_sensitivity(*, slope_bound: float, clip: float, adjacency: Adjacency) -> float:
    """2-norm by which one record moves sum slope * clip(P a, clip); `slope_bound` is sqrt 2 for softmax."""
    return slope_bound * clip * (1 if adjacency == "add-remove" else 2)


@dataclass(frozen=True, kw_only=True)
class SecondMoment:
    """The sum of a a' over rows of norm at most `row_bound`, released once with N(0, std^2) on svec."""

    citation: ClassVar[str] = "Gaussian mechanism on the second moment (Dwork, Talwar, Thakurta and Zhang 2014)"
    section: ClassVar[str] = "preconditioned-fixed-point"

    row_bound: float
    std: float
    adjacency: Adjacency
    unit: Unit = "record"

    def __post_init__(self) -> None:
        require_positive("SecondMoment", row_bound=self.row_bound, std=self.std)

    def event(self) -> Event:
        """One Gaussian mechanism."""
        return Gaussian(self.std, second_moment_sensitivity(row_bound=self.row_bound, adjacency=self.adjacency))

    def assumptions(self) -> tuple[Assumption, ...]:
        """Clipped rows."""
        return (
            Assumption("Rows are clipped to the stated norm.", "preconditioned-fixed-point"),
            FRESH_NOISE,
            PUBLIC_SETTINGS,
        )


@dataclass(frozen=True, kw_only=True)
class PreconditionedSteps:
    """A released second moment, then `steps` noisy sums of slopes times whitened, clipped rows.

    Multipliers are noise over the sensitivity of `adjacency`: the clip of whitened rows may be computed from the
    released matrix, because the cost depends on the multiple alone.
    """

    citation: ClassVar[str] = (
        "Preconditioned noisy fixed-point iteration of this library (Gaussian mechanisms, composed)"
    )
    section: ClassVar[str] = "preconditioned-fixed-point"

    matrix_multiplier: float
    step_multiplier: float
    steps: int
    adjacency: Adjacency
    unit: Unit = "record"

    def __post_init__(self) -> None:
        require_positive(
            "PreconditionedSteps", matrix_multiplier=self.matrix_multiplier, step_multiplier=self.step_multiplier
        )
        require_count("PreconditionedSteps", steps=self.steps)

    def event(self) -> Event:
        """Gaussian mechanisms, composed."""
        return compose(Gaussian(self.matrix_multiplier, 1.0), repeat(Gaussian(self.step_multiplier, 1.0), self.steps))

    def assumptions(self) -> tuple[Assumption, ...]:
        """Everything chosen on the way is chosen from what was released."""
        return (
            Assumption("Rows are clipped to the stated norm, and whitened rows again.", "preconditioned-fixed-point"),
            Assumption(
                "Preconditioner, clip, momentum and averages depend on released values only.",
                "preconditioned-fixed-point",
            ),
            *GAUSSIAN_RUN,
        )
