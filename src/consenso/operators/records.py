"""Operators that meet the data in one place: a mean over records of bounded parts.

    MeanGradient    part of a record = grad phi_i(u), shortened to the clip where there is one
    MeanProx        part of a record = (u - prox_{step phi_i}(u)) / step, the gradient of its Moreau envelope
    both            R(u) = prox_{step r}(u - step * mean of the parts)

For a loss of a margin the part of a record is a coefficient times its row, so that nothing of the size records x
features is ever made. What leaves a party is the sum over its records; everything after the mean is public.

Fixed points of MeanGradient are the minimisers of the problem, if nothing is clipped. Those of MeanProx minimise the
mean of the envelopes, which lie below the losses by at most step/2 times the squared Lipschitz constant; it needs no
smoothness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from consenso.arrays import Array
from consenso.clipping import shorten
from consenso.errors import PreconditionError, check_positive
from consenso.losses import require_lipschitz, require_smooth, require_step
from consenso.problem import Problem
from consenso.shards import Cohort


class MeanOperator(Protocol):
    """An operator whose data-dependent half is a mean over records."""

    @property
    def step(self) -> float:
        """The step of the public half."""
        ...

    def check(self, problem: Problem) -> None:
        """Refuse a problem on which the parts have no bound or the operator expands."""
        ...

    def contribution(self, problem: Problem) -> float:
        """Largest 2-norm of one record's part, at every u."""
        ...

    def coefficients(self, u: Array, f: Cohort) -> Array:
        """The c_i with which the part of record i is c_i times its row, (rows,) or (rows, outputs)."""
        ...

    def apply(self, problem: Problem, u: Array, mean: Array) -> Array:
        """R(u), given the mean of the parts at u."""
        ...

    def lipschitz(self, problem: Problem) -> float:
        """Lipschitz constant of R that the public facts show; at most 1 after `check`."""
        ...


@dataclass(frozen=True, kw_only=True)
class MeanGradient:
    """prox_{step r}(u - step * mean gradient), with the gradient of each record shortened to `clip`."""

    step: float
    clip: float | None = None

    def __post_init__(self) -> None:
        check_positive("MeanGradient", "step", self.step, "choose such a one")
        if self.clip is not None:
            check_positive("MeanGradient", "clip", self.clip, "Lipschitz losses need none")

    def check(self, problem: Problem) -> None:
        """A bound on the gradients, and a step that does not expand."""
        if self.clip is None:
            require_lipschitz(problem.loss, problem.row_bound, "MeanGradient without clip")
        smoothness = require_smooth(problem.loss, problem.row_bound, "MeanGradient")
        longest = 2 / smoothness if smoothness > 0 else np.inf
        if self.step > longest:
            raise PreconditionError(
                f"MeanGradient(step={self.step}): from public facts the operator is non-expansive up to a step of "
                f"2/smoothness = {longest:g}; shorten it, or use DPSGD, which makes no such claim."
            )

    def contribution(self, problem: Problem) -> float:
        """The Lipschitz constant of a record, or the clip."""
        return gradient_bound(problem, self.clip)

    def coefficients(self, u: Array, f: Cohort) -> Array:
        return shorten_slopes(f.slopes(f.linear_predictor(u)), f.squared_norms, self.clip)

    def apply(self, problem: Problem, u: Array, mean: Array) -> Array:
        """A step along the mean, then the regularizer's prox."""
        return problem.regularizer.prox(u - self.step * mean, self.step)

    def lipschitz(self, problem: Problem) -> float:
        """The mean of the records has no strong convexity that public facts show; the regularizer may have some."""
        forward = max(1.0, abs(1 - self.step * problem.loss.smoothness(problem.row_bound)))
        return forward / (1 + self.step * problem.regularizer.strong_convexity)


@dataclass(frozen=True, kw_only=True)
class MeanProx:
    """prox_{step r} of the mean of the records' proxes: non-expansive for every step and every loss."""

    step: float

    def __post_init__(self) -> None:
        check_positive("MeanProx", "step", self.step, "choose such a one")

    def check(self, problem: Problem) -> None:
        """A bound on the parts."""
        require_lipschitz(problem.loss, problem.row_bound, "MeanProx")
        require_step(self.step, problem.row_bound, f"MeanProx(step={self.step})")

    def contribution(self, problem: Problem) -> float:
        """The Lipschitz constant of a record."""
        return gradient_bound(problem, None)

    def coefficients(self, u: Array, f: Cohort) -> Array:
        """Slopes at the records' proxes."""
        return f.prox_slopes(f.linear_predictor(u), self.step * f.squared_norms)

    def apply(self, problem: Problem, u: Array, mean: Array) -> Array:
        """A step along the mean, then the regularizer's prox."""
        return problem.regularizer.prox(u - self.step * mean, self.step)

    def lipschitz(self, problem: Problem) -> float:
        """A mean of proxes is non-expansive."""
        return 1 / (1 + self.step * problem.regularizer.strong_convexity)


def gradient_bound(problem: Problem, clip: float | None) -> float:
    """Largest 2-norm of one record's gradient after shortening."""
    longest = problem.loss.lipschitz(problem.row_bound)
    return longest if clip is None else min(clip, longest)


def shorten_slopes(slopes: Array, squared_norms: Array, clip: float | None) -> Array:
    """Slopes times the factors that shorten slope * row to `clip`, without forming the products."""
    if clip is None:
        return slopes
    sizes = np.abs(slopes) if slopes.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
    factors = shorten(sizes * np.sqrt(squared_norms), clip)
    kept: Array = slopes * (factors if slopes.ndim == 1 else factors[:, None])
    return kept
