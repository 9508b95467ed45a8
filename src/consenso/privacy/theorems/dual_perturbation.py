"""Objective perturbation in every round: a node of a graph minimises with a random linear term and releases where.

**One round.** Given what was released before, a node minimises

    J(w) = f(w) + (S/2)|w|^2 - <pull, w> + <b, w>,      f(w) = sum over its records of scale * phi(<a, w>, y),

with S and pull public and b drawn from a density proportional to exp(-|b|_2 / noise). phi is convex, and its slope is
bounded and Lipschitz, so that one record's part of f has gradients of at most L and curvature of at most c.

*The law of the minimiser.* w minimises J if and only if b = B(w) := pull - S w - grad f(w). The map -B is strongly
monotone and Lipschitz, hence a bijection with Lipschitz inverse, differentiable almost everywhere, and w has the
density n(B(w)) det(S I + Hess f(w)), n being that of b. No second derivative need be continuous: the slope of a Huber
loss or of a smoothed hinge fails to have a derivative on hyperplanes only, and a change of variables ignores null
sets.

*The noise.* For neighbouring f and f', |B(w) - B'(w)| = |grad f(w) - grad f'(w)| <= G at every w, with G = L for
add-remove and G = 2 L for replace-one, so n(B(w)) / n(B'(w)) <= exp(G / noise).

*The Jacobian.* Let H be the Hessian without the record in question and M = (S I + H)^-1 <= I/S. With the record it is
H + k a a', where k|a|^2 <= c (one margin per record: rank one), so det(S I + H + k a a') / det(S I + H) = 1 + k a'M a
lies in [1, 1 + c/S]. Under add-remove the ratio of Jacobians is this number or its inverse; under replace-one it is a
quotient of two such numbers. Both ways

    epsilon = G / noise + log(1 + c/S).

Chaudhuri, Monteleoni and Sarwate have 2 log(1 + c/S); the denominator of the quotient is at least 1 and costs nothing.

*A unit of m records* (a user): L is that of all of them, and the Hessian of the unit has rank at most r = min(m, dim)
and trace at most m c. By the inequality of the means det(I + Hess/S) <= (1 + m c/(r S))^r, so r log(1 + m c/(r S))
takes the place of log(1 + c/S).

**An inexact minimiser** lies within `tolerance` of the exact one, in a direction that may depend on the data. It is
released with noise of the same kind on top, of scale `output_scale`. Given the exact minimiser, whose release is paid
for above, this is an additive mechanism whose centre moves by at most 2 tolerance: epsilon grows by 2 tolerance /
output_scale.

**Gaussian b**: the curve of Redberg, Koskela and Wang for one record's rank-one Hessian, add-remove, c < S.

Rounds compose adaptively, and rounds that release nothing new are free. Nodes hold disjoint data: a record is charged
for its own node's rounds only, what the others say being post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, ObjectivePerturbation, Pure, compose
from consenso.privacy.theorems.preconditions import (
    per_round,
    require,
    require_count,
    require_lipschitz_constant,
    require_not_negative,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


def jacobian_cost(*, smoothness: float, strong_convexity: float, records: int = 1, dim: int = 1) -> float:
    """Largest log-ratio of the Jacobians of two neighbouring nodes, a unit having `records` records."""
    rank = min(records, dim)
    return rank * math.log1p(records * smoothness / (rank * strong_convexity))


@dataclass(frozen=True, kw_only=True)
class DualPerturbedRounds:
    """`rounds` minimisers of a node's objective with a random linear term, each seen; the proof opens this module.

    `lipschitz` is the largest gradient of the unit's part in the node's objective, `smoothness` the largest curvature
    of one *record's* part, `strong_convexity` that of the public quadratic. `scale` is that of the noise in the linear
    term (density proportional to exp(-|b|_2/scale), or the standard deviation of a Gaussian), one number or one per
    round; `output_scale` that of the noise on the minimiser, which a certified distance `tolerance` makes necessary.
    `excess` is the total variation per round between the samplers and their laws.
    """

    citation: ClassVar[str] = (
        "Zhang and Zhu 2017 (dual variable perturbation), after Chaudhuri, Monteleoni and Sarwate 2011, over all rounds"
    )
    section: ClassVar[str] = "objective-perturbation"

    lipschitz: float
    smoothness: float
    strong_convexity: float
    scale: float | tuple[float, ...]
    rounds: int
    tolerance: float = 0.0
    output_scale: float | tuple[float, ...] = 0.0
    law: Literal["gamma-norm", "gaussian"] = "gamma-norm"
    excess: float = 0.0
    records: int = 1
    dim: int = 1
    outputs: int = 1
    adjacency: Adjacency = "replace-one"
    unit: Unit = "record"

    def __post_init__(self) -> None:
        name = "DualPerturbedRounds"
        require_lipschitz_constant(name, self.lipschitz)
        require_positive(name, strong_convexity=self.strong_convexity)
        require_count(name, rounds=self.rounds, records=self.records, dim=self.dim)
        require_not_negative(name, tolerance=self.tolerance, excess=self.excess)
        require(
            0 <= self.smoothness < math.inf,
            f"{name}(smoothness={self.smoothness}): the slope of the loss must be Lipschitz; use SmoothedHinge or "
            "Huber in place of a loss with kinks.",
        )
        for scale in per_round(name, "scale", self.scale, self.rounds):
            require_positive(name, scale=scale)
        for scale in per_round(name, "output_scale", self.output_scale, self.rounds):
            require_not_negative(name, output_scale=scale)
            require(
                self.tolerance == 0 or scale > 0,
                f"{name}(tolerance={self.tolerance}, output_scale=0): a minimiser that is not exact needs noise on the "
                "output; set output_scale.",
            )
        require(
            self.outputs == 1,
            f"{name}(outputs={self.outputs}): one record's Hessian must have rank one, which softmax breaks; use "
            "PrimalPerturbation.",
        )
        require(
            self.unit == "party" or self.records == 1,
            f"{name}(unit='record', records={self.records}): a record is one record; use unit='party' for several.",
        )
        self._require_law(name)

    def _require_law(self, name: str) -> None:
        if self.law == "gamma-norm":
            require(
                self.excess == 0,
                f"{name}(law='gamma-norm', excess={self.excess}): a pure guarantee has no room for an excess; use "
                "law='gaussian'.",
            )
            return
        require(
            self.adjacency == "add-remove" and self.unit == "record",
            f"{name}(law='gaussian', adjacency={self.adjacency!r}, unit={self.unit!r}): Gaussian noise in an objective "
            "is proved for records under 'add-remove' only; use GammaNormNoise.",
        )
        require(
            self.smoothness < self.strong_convexity,
            f"{name}(law='gaussian', smoothness={self.smoothness}, strong_convexity={self.strong_convexity}): the "
            "quadratic must outweigh the curvature of one record; raise the penalty.",
        )

    def event(self) -> Event:
        """One pure mechanism per round, or one objective perturbation and one Gaussian on its output."""
        scales = per_round("DualPerturbedRounds", "scale", self.scale, self.rounds)
        outputs = per_round("DualPerturbedRounds", "output_scale", self.output_scale, self.rounds)
        if self.law == "gaussian":
            share = self.smoothness / self.strong_convexity
            exact = (ObjectivePerturbation(self.lipschitz / scale, share) for scale in scales)
            # Nothing is left to hide where the minimiser is exact, except that samplers are not.
            moved = 2 * self.tolerance
            return compose(*exact, *(Gaussian(scale, moved, self.excess) for scale in outputs if moved or self.excess))
        return compose(*(Pure(self._cost(scale, output)) for scale, output in zip(scales, outputs, strict=True)))

    def _cost(self, scale: float, output_scale: float) -> float:
        """Epsilon of one round under gamma-norm noise."""
        gap = self.lipschitz * (1 if self.adjacency == "add-remove" else 2)
        jacobian = jacobian_cost(
            smoothness=self.smoothness, strong_convexity=self.strong_convexity, records=self.records, dim=self.dim
        )
        return gap / scale + jacobian + (2 * self.tolerance / output_scale if self.tolerance else 0.0)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Rank-one Hessians, certified minimisers, noisy history."""
        return (
            Assumption(
                "The loss is a convex function of one scalar margin <a, w> per record, with a Lipschitz slope.",
                "objective-perturbation",
            ),
            Assumption(
                "Each minimiser is certified to the stated distance, and leaves with its own noise.",
                "objective-perturbation",
            ),
            Assumption(
                "Linear terms, penalties and duals are computed from released models alone; nodes hold disjoint data.",
                "objective-perturbation",
            ),
            *GAUSSIAN_RUN,
        )
