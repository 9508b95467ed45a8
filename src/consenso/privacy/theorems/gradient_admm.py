"""Gradient ADMM, one user per iteration, for whoever sees only the final iterate.

    lambda+ = lambda - beta (A x + B y - c)        y from the prox of g
    x+ = (I + kappa A'A)^-1 (x - eta grad f_t(x) + eta A'lambda+ - eta beta A'(B y - c)) + N(0, std^2 I)

with kappa = eta beta. Later iterations are non-expansive in the norm |x|^2 + (eta/beta)|w|^2 (w = lambda - beta A x),
and their noise hides what an earlier user added: amplification by iteration, two iterations at a time because the noise
reaches the dual one iteration late. Symbols: eta = step, beta = penalty, s = singular values of A, Delta =
gradient_gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import ZCDP, Adjacency, Bounded, Event, Mixture, Nothing
from consenso.privacy.theorems.preconditions import require, require_count, require_not_negative, require_positive
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption

# Sums of growing powers beyond this are cut: a cost may be overstated, never rounded to zero.
_LARGEST_SUM = 1e300


def contraction(*, curvature: float, smallest: float, largest: float, gradient_factor: float) -> float:
    """Squared contraction of one iteration; `curvature` is kappa = step * penalty, 1 means non-expansive."""
    gradient = (gradient_factor**2 + curvature * largest**2) / (1 + curvature * largest**2)
    return max(gradient, 1 / (1 + curvature * smallest**2))


def pair_constant(*, curvature: float, smallest: float, wide: bool) -> float:
    """Cost of a unit difference, in units of 1/(2 std^2), once two iterations have added their noise.

    `wide` says that A has more columns than rows, so that it has a kernel, which the second noise alone hides.
    """
    u = 1 + curvature * smallest**2
    trace, determinant = 2 - 1 / u + 1 / u**2, 1 - 1 / u
    hidden = (trace + math.sqrt(trace**2 - 4 * determinant)) / (2 * curvature * smallest**2)
    return max(1.0, hidden) if wide else hidden


def absorption(*, pairs: int, squared_contraction: float) -> float:
    """How many pairs of iterations share a difference: `pairs` if non-expansive, geometrically more if contracting."""
    if squared_contraction >= 1:
        return float(pairs)
    ratio = squared_contraction**-2
    if pairs * math.log(ratio) > math.log(_LARGEST_SUM):
        return _LARGEST_SUM
    return math.expm1(pairs * math.log(ratio)) / (ratio - 1)


@dataclass(frozen=True, kw_only=True)
class GradientIteration:
    """The public parameters of one iteration, and what its user's data cost when more iterations follow.

    `smallest_singular_value` and `largest_singular_value` are those of A (`rows` by `columns`), which must have full
    row rank. `strong_convexity` is common to all users' losses, 0 if they are only convex.
    """

    is_part: ClassVar[bool] = True  # of the theorems below

    step: float
    penalty: float
    std: float
    gradient_gap: float
    smoothness: float
    smallest_singular_value: float
    largest_singular_value: float
    rows: int
    columns: int
    strong_convexity: float = 0.0

    def __post_init__(self) -> None:
        require_positive("GradientIteration", step=self.step, penalty=self.penalty, std=self.std)
        require_positive("GradientIteration", gradient_gap=self.gradient_gap)
        require_not_negative("GradientIteration", strong_convexity=self.strong_convexity)
        require_count("GradientIteration", rows=self.rows, columns=self.columns)
        require(
            0 < self.smoothness < math.inf,
            f"GradientIteration(smoothness={self.smoothness}): every loss must be smooth with a finite constant; use "
            "SmoothedHinge or Huber, or account every iteration with Composition.",
        )
        require(
            self.strong_convexity <= self.smoothness,
            f"GradientIteration(strong_convexity={self.strong_convexity}): strong convexity cannot exceed the "
            f"smoothness {self.smoothness}; lower it.",
        )
        require(
            self.step <= 2 / (self.smoothness + self.strong_convexity) * (1 + 1e-12),
            f"GradientIteration(step={self.step}): the step must be at most 2 / (smoothness + strong_convexity) = "
            f"{2 / (self.smoothness + self.strong_convexity):.6g}, or iterations expand; lower it.",
        )
        require(
            self.rows <= self.columns and self.smallest_singular_value > 0,
            f"GradientIteration(rows={self.rows}, columns={self.columns}, "
            f"smallest_singular_value={self.smallest_singular_value}): A must have full row rank, so that the noise on "
            "x reaches every dual; rewrite the constraint, or account every iteration with Composition.",
        )
        require(
            self.smallest_singular_value <= self.largest_singular_value < math.inf,
            f"GradientIteration(largest_singular_value={self.largest_singular_value}): the largest singular value must "
            "be finite and at least the smallest; give both from the same matrix.",
        )

    @property
    def curvature(self) -> float:
        """The product of step and penalty (kappa)."""
        return self.step * self.penalty

    @property
    def squared_contraction(self) -> float:
        """Of one iteration, in the squared norm."""
        factor = max(abs(1 - self.step * self.strong_convexity), abs(1 - self.step * self.smoothness))
        return contraction(
            curvature=self.curvature,
            smallest=self.smallest_singular_value,
            largest=self.largest_singular_value,
            gradient_factor=min(1.0, factor),
        )

    @property
    def own_rho(self) -> float:
        """The cost for whoever sees the user's own iterate."""
        return (self.step * self.gradient_gap) ** 2 / (2 * self.std**2)

    def rho(self, later: int) -> float:
        """The cost for whoever sees only the iterate that is `later` iterations further on."""
        own = self.own_rho
        pairs = later // 2
        if pairs == 0:
            return own
        constant = pair_constant(
            curvature=self.curvature, smallest=self.smallest_singular_value, wide=self.columns > self.rows
        )
        rest = constant * own / absorption(pairs=pairs, squared_contraction=self.squared_contraction)
        return own * rest / (own + rest)

    def assumptions(self) -> tuple[Assumption, ...]:
        """What all users' losses must be."""
        return (
            Assumption(
                "All users' losses are convex, smooth and strongly convex with the stated constants, also after "
                "clipping (clipping the slope of a loss of a margin is a convex and smooth Huberisation).",
                "gradient-admm",
            ),
            Assumption(
                "Only the last iterate (x with its noise, dual) and what follows from it is shown.", "gradient-admm"
            ),
            *GAUSSIAN_RUN,
        )


@dataclass(frozen=True, kw_only=True)
class GradientVisits:
    """A user who takes the iterations `positions` (from 1) of `iterations`, in an order that is fixed and public."""

    citation: ClassVar[str] = "Chan, Xie and Zhao 2024, Theorem 5.1, sharpened"
    section: ClassVar[str] = "gradient-admm"

    iteration: GradientIteration
    iterations: int
    positions: tuple[int, ...]
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("GradientVisits", iterations=self.iterations)
        increasing = all(a < b for a, b in zip(self.positions, self.positions[1:], strict=False))
        require(
            bool(self.positions) and increasing and self.positions[0] >= 1 and self.positions[-1] <= self.iterations,
            f"GradientVisits(positions={self.positions}): positions must be increasing numbers from 1 to "
            f"{self.iterations}, the number of iterations; sort them.",
        )

    @property
    def rho(self) -> float:
        """Each visit is hidden by the iterations strictly between it and the next one, the last by those to the end."""
        ends = (*self.positions[1:], self.iterations + 1)
        return sum(self.iteration.rho(end - start - 1) for start, end in zip(self.positions, ends, strict=True))

    def event(self) -> Event:
        """Gaussian releases of which the total is bounded."""
        return Bounded(self.rho)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Those of the iteration."""
        return self.iteration.assumptions()


@dataclass(frozen=True, kw_only=True)
class GradientRandomOrder:
    """Every one of `users` takes one iteration, in a uniformly random order that is kept secret or shown."""

    citation: ClassVar[str] = "Chan, Xie and Zhao 2024, sharpened; mixture over positions"
    section: ClassVar[str] = "gradient-admm"

    iteration: GradientIteration
    users: int
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("GradientRandomOrder", users=self.users)

    def event(self) -> Event:
        """A mixture over positions; only Renyi conversion is proved for it, hence zCDP parts."""
        return _mixture([self.iteration.rho(later) for later in range(self.users)])

    def assumptions(self) -> tuple[Assumption, ...]:
        """Those of the iteration, and an order that ignores the data."""
        drawn = Assumption("The order is drawn uniformly and independently of the data.", "gradient-admm")
        return (drawn, *self.iteration.assumptions())


@dataclass(frozen=True, kw_only=True)
class GradientRandomStopping:
    """Fixed order, the run stops after R iterations, R uniform on 1..users; `position` None covers every user.

    A later position replaces some of the first user's costs by zero and keeps the others, so position 1 is the worst.
    """

    citation: ClassVar[str] = "Chan, Xie and Zhao 2024, sharpened; mixture over stopping times"
    section: ClassVar[str] = "gradient-admm"

    iteration: GradientIteration
    users: int
    position: int | None = None
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("GradientRandomStopping", users=self.users)
        require(
            self.position is None or 1 <= self.position <= self.users,
            f"GradientRandomStopping(position={self.position}): a position is a number from 1 to {self.users}, the "
            "number of users; use None for the worst.",
        )

    def event(self) -> Event:
        """A mixture over stopping times; only Renyi conversion is proved for it, hence zCDP parts."""
        position = self.position or 1
        return _mixture([0.0] * (position - 1) + [self.iteration.rho(m) for m in range(self.users - position + 1)])

    def assumptions(self) -> tuple[Assumption, ...]:
        """Those of the iteration, and a stopping time that ignores the data."""
        drawn = Assumption("The stopping time is drawn uniformly and independently of the data.", "gradient-admm")
        return (drawn, *self.iteration.assumptions())


def _mixture(costs: list[float]) -> Event:
    """Equal chances of the costs, equal costs merged."""
    counts: dict[float, int] = {}
    for cost in costs:
        counts[cost] = counts.get(cost, 0) + 1
    events: tuple[Event, ...] = tuple(ZCDP(cost) if cost > 0 else Nothing() for cost in counts)
    if len(events) == 1:
        return events[0]
    return Mixture(tuple(count / len(costs) for count in counts.values()), events)
