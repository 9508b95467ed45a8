"""Noisy gradient steps in coordinates whitened by a released second moment (docs/privacy.md, "Preconditioned").

    round 0:    S    = noisy sum over records of a a'                       (upper triangle, off-diagonals times sqrt 2)
                Q    = max(S, 0)/n + floor,   P = Q^(-1/2),   C = clip * sqrt(effective dimension)
    round k:    G    = noisy sum of phi'(<a, x>, b) * shortened(P a, C)
                x   <- argmin_x' r(x') + |x' - (x - step P G / n)|^2_Q / (2 step)
    released:   the average of the second half of the iterates

This is the noisy fixed-point iteration of Cyffers, Bellet and Basu 2023 (Algorithm 1) with R(u) = u - step Q^-1
gradient: in whitened coordinates the noise is spent where the data have information, and one step size fits every
problem. Everything after a release is post-processing: P, the clip, how many steps the budget is worth. Whitened rows
are never formed: a row keeps the factor by which its whitened self is shortened.

Every release is a sum over records, so the model does not depend on how records are spread over parties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.shape import Example, Source, per_row, require_positive
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.facts import Facts
from consenso.losses import Logistic, require_lipschitz, require_smooth
from consenso.metric import Metric
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Bounds, Door, Release
from consenso.privacy.setting import Setting, View
from consenso.privacy.theorems import Theorem
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty
from consenso.schedules import Everyone
from consenso.shards import Cohort


@dataclass(frozen=True)
class Hub:
    """The metric, once it is known, and the iterates."""

    vectors: Array  # eigenvectors of Q; empty before round 0 is over
    values: Array  # eigenvalues of Q
    clip: float
    steps: int  # how many gradient steps the budget is worth
    taken: int
    x: Array
    total: Array  # sum of the iterates of the second half


@dataclass(frozen=True)
class Down:
    """What every party of a round hears."""

    x: Array
    vectors: Array
    values: Array
    clip: float
    steps: int


@dataclass(frozen=True)
class State:
    """The factor by which each whitened row is shortened to the clip; computed when the metric is first heard."""

    factor: Array = per_row()


@dataclass(frozen=True)
class Up:
    """A party's share of the sum of the round: a second moment or a gradient."""

    total: Array


@dataclass(frozen=True, kw_only=True)
class PreconditionedFixedPoint:
    """Preconditioned noisy gradient descent on smooth losses of a margin. Every default is a rule from public facts.

    share: part of the squared budget that buys the second moment. steps: None lets the released spectrum and the noise
    decide. rounds of the plan: one more than the largest number of steps.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="000", algorithm="Algorithm 1, preconditioned", names=("preconditioned fixed point",)),
    )

    share: float = 0.1
    steps: int | None = None
    fewest_steps: int = 5
    clip: float = 0.8
    averaging: bool = True

    def __post_init__(self) -> None:
        require_positive(self, clip=self.clip)
        if not 0 < self.share < 1:
            raise InputError(f"PreconditionedFixedPoint(share={self.share}): a share of the budget lies in (0, 1).")
        if (self.steps is not None and self.steps < 1) or self.fewest_steps < 1:
            raise InputError("PreconditionedFixedPoint(steps=..., fewest_steps=...): at least one step is taken.")

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """Multipliers of the two releases relative to that of a single release with the whole budget."""
        return {"second moment": self.share**-0.5, "gradient": (1 - self.share) ** -0.5}

    def check(self, setting: Setting) -> None:
        """Bounded slopes, a step size from the smoothness, everybody in every round."""
        problem = setting.facts.problem
        require_lipschitz(problem.loss, problem.row_bound, "PreconditionedFixedPoint")
        require_smooth(problem.loss, problem.row_bound, "PreconditionedFixedPoint")
        if not isinstance(setting.schedule, Everyone):
            raise InputError(
                "PreconditionedFixedPoint(schedule=...): every party takes part in every round; use Everyone()."
            )
        if setting.rounds < 1 + (self.steps or self.fewest_steps):
            raise InputError(
                f"PreconditionedFixedPoint(rounds={setting.rounds}): one round for the second moment and one for each "
                f"step are needed, {1 + (self.steps or self.fewest_steps)} at least."
            )

    def releases(self, facts: Facts) -> tuple[Release, ...]:
        """The second moment in round 0, then a gradient a round, which share one cost."""
        p = facts.problem.features
        if facts.round == 0:
            one = facts.problem.row_bound**2
            return (
                Release(
                    name="second moment",
                    size=p * (p + 1) // 2,
                    at="sum",
                    bounds=Bounds(
                        record_add_remove=one,
                        record_replace_one=np.sqrt(2) * one,
                        user_add_remove=one * facts.sizes.astype(float),
                        # Two positive semidefinite matrices of Frobenius norm m R^2 are at most sqrt(2) m R^2 apart.
                        user_replace_one=np.sqrt(2) * one * facts.sizes.astype(float),
                    ),
                    why="a row contributes a a' of Frobenius norm |a|^2 (docs/privacy.md#preconditioned-fixed-point)",
                ),
            )
        slope = facts.problem.loss.slope_bound
        return (
            Release(
                name="gradient",
                size=facts.dim,
                at="sum",
                adaptive=True,
                parts=True,
                bounds=Bounds.of_contributions(record=slope, user=slope * facts.sizes.astype(float)),
                why="a slope times a whitened row shortened to the clip (docs/privacy.md#preconditioned-fixed-point)",
            ),
        )

    def theorems(self, setting: Setting, view: View) -> Iterable[Callable[[], Theorem]]:
        """None beyond composing Gaussian sums."""
        return ()

    def start(self, facts: Facts) -> Hub:
        """The zero model, no metric yet."""
        empty, zero = np.empty((0, 0)), np.zeros(facts.dim)
        return Hub(vectors=empty, values=np.empty(0), clip=1.0, steps=0, taken=0, x=zero, total=zero)

    def enroll(self, facts: Facts, f: Cohort) -> State:
        """Nothing is shortened yet."""
        return State(factor=np.ones(f.rows))

    def down(self, facts: Facts, hub: Hub) -> Down:
        """The model and the metric."""
        return Down(x=hub.x, vectors=hub.vectors, values=hub.values, clip=hub.clip, steps=hub.steps)

    def local(self, facts: Facts, down: Down, state: State, f: Cohort, door: Door) -> tuple[State, Up]:
        """A second moment, or a gradient over whitened and shortened rows."""
        if facts.round == 0:
            return state, Up(total=door("second moment", _packed(f.second_moment())))
        metric = Metric(down.vectors, down.values)
        factor = state.factor
        if facts.round == 1:
            whitener = metric.vectors / np.sqrt(metric.values)
            lengths = np.sqrt(f.transformed_squared_norms(whitener))
            factor = np.minimum(1.0, down.clip / np.maximum(lengths, np.finfo(float).tiny))
        slopes = f.slopes(f.scores(down.x))
        pulled = f.pull(slopes * (factor if slopes.ndim == 1 else factor[:, None]))
        whitened = np.stack([metric.apply(each, -0.5) for each in pulled]) if len(pulled) else pulled
        return State(factor=factor), Up(total=door("gradient", whitened, bound=down.clip, share=1.0 / down.steps))

    def combine(self, facts: Facts, hub: Hub, total: Up) -> Hub:
        """Read the metric off the second moment; then preconditioned proximal steps."""
        if facts.round == 0:
            return self._with_metric(facts, hub, total.total)
        metric = Metric(hub.vectors, hub.values)
        step = 1.0 / facts.problem.loss.smoothness(1.0)
        moved = hub.x - step * metric.apply(total.total, -0.5) / facts.problem.records
        x = metric.prox(facts.problem.regularizer, moved, step)
        late = hub.taken >= hub.steps // 2
        return Hub(
            vectors=hub.vectors,
            values=hub.values,
            clip=hub.clip,
            steps=hub.steps,
            taken=hub.taken + 1,
            x=x,
            total=hub.total + x if late else hub.total,
        )

    def _with_metric(self, facts: Facts, hub: Hub, packed: Array) -> Hub:
        """Public rules: the floor hides the noise of the matrix, the clip follows the effective dimension."""
        problem = facts.problem
        p, n = problem.features, problem.records
        spectrum, vectors = np.linalg.eigh(_unpacked(packed, p) / n)
        # A symmetric Gaussian matrix whose packed entries have std s has a spectral norm of about s sqrt(2 p).
        floor = 0.5 * facts.noise["second moment"] * np.sqrt(2 * p) / n
        values = np.maximum(spectrum, 0.0) + max(floor, 1e-9 * problem.row_bound**2)
        effective = float(np.sum(np.maximum(spectrum, 0.0) / values))
        longest = problem.row_bound / float(np.sqrt(values.min()))
        clip = min(self.clip * np.sqrt(max(effective, 1.0)), longest)
        return Hub(
            vectors=vectors,
            values=values,
            clip=float(clip),
            steps=self._worthwhile(facts, clip),
            taken=0,
            x=hub.x,
            total=hub.total,
        )

    def _worthwhile(self, facts: Facts, clip: float) -> int:
        """More steps average no more noise away once each moves the model by less than its noise does."""
        if self.steps is not None:
            return self.steps
        problem = facts.problem
        budget = problem.loss.slope_bound / max(facts.noise["gradient"], 1e-12)  # mu of all gradients together
        step = 1.0 / problem.loss.smoothness(1.0)
        ideal = 4 * budget * problem.records / (clip * np.sqrt(problem.dim) * step)
        return int(np.clip(ideal, self.fewest_steps, facts.rounds - 1))

    def finished(self, facts: Facts, hub: Hub) -> bool:
        """All steps were taken."""
        return hub.steps > 0 and hub.taken >= hub.steps

    def model(self, facts: Facts, hub: Hub) -> Array:
        """The average of the second half, or the last iterate."""
        late = hub.taken - hub.steps // 2
        return hub.total / late if self.averaging and late > 0 else hub.x

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(steps=7),
            problem=Problem(
                loss=Logistic(), regularizer=L2(strength=0.1), features=3, sizes=np.full(6, 5), row_bound=1.0
            ),
            noise={"second moment": GaussianNoise(multiplier=2.0), "gradient": GaussianNoise(multiplier=1.0)},
            trusts=("curator", "secure-sum", "local"),
            exact=cls(steps=149, clip=1e6, averaging=False),
            exact_rounds=150,
            regularizers=(
                NoPenalty(),
                L1(strength=0.02),
                L2(strength=0.1),
                ElasticNet(l1=0.01, l2=0.05),
                Box(low=-0.5, high=0.3),
            ),
        )


def _packed(matrices: Array) -> Array:
    """Upper triangles (parties, p(p+1)/2), off-diagonals times sqrt 2: Euclidean norms are Frobenius norms."""
    p = matrices.shape[-1]
    rows, columns = np.triu_indices(p)
    weights = np.where(rows == columns, 1.0, np.sqrt(2.0))
    packed: Array = matrices[:, rows, columns] * weights
    return packed


def _unpacked(packed: Array, p: int) -> Array:
    """The symmetric matrix of a packed one."""
    rows, columns = np.triu_indices(p)
    matrix = np.zeros((p, p))
    matrix[rows, columns] = packed / np.where(rows == columns, 1.0, np.sqrt(2.0))
    return matrix + np.triu(matrix, 1).T
