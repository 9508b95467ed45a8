"""DP-CD, noisy coordinate descent, proximal (Mangold, Bellet, Salmon and Tommasi 2022).

    round k:   j    = the feature of this round
               G_j  = sum over records of S-shortened slope_i * a_ij + noise of scale S c_j
               u_j <- prox_{step_j r}(u_j - step_j G_j / records),          step_j = step / (curvature * c_j^2)

    paper   code            what it is
    M_j     curvature c_j^2 smoothness along feature j, from the public bound c_j on |a_ij|
    L_j     S c_j           how far one record moves the sum along feature j
    c_j     column_bounds   entries beyond it are cut off; the row bound where none is given
    S       slope_clip      length to which slopes are shortened, for losses without a Lipschitz constant

It is Algorithm 1 of Cyffers, Bellet and Basu 2023 with one feature a block and R_j(u) = u_j - step_j grad_j f(u) (their
Proposition 2): with equal column bounds `NoisyFixedPoint` gives the same iterates. It is worth its rounds where columns
have very different sizes: small ones get small noise and long steps.

Remarks. With several outputs a feature has one coordinate for each, and they move together. What is released is the sum
divided by c_j, which one record moves by at most S, or S sqrt(m) when m features act at once. R is non-expansive as a
whole, in the norm weighted with the smoothnesses, where the steps times the smoothnesses add up to at most 2; a step on
one coordinate alone need not be, and nothing here rests on it. The averages over inner loops of the original are left
out; `averaging` averages the last iterates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.dp_sgd import Down, Hub, Up, check_averaging, is_late
from consenso.algorithms.record_sums import Forgetful, check_rate, sample_records, sum_bounds, without_memory
from consenso.algorithms.shape import PENALTIES, Example, Source, require_positive
from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.losses import require_lipschitz, require_smooth
from consenso.operators import Activation, AllBlocks, CyclicBlocks, RandomBlock, is_separable, shorten_slopes
from consenso.privacy.release import Release
from consenso.privacy.releaser import Releaser, declare_public
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.schedules import Everyone, FixedSubset, PoissonSubset
from consenso.shards import Cohort


@dataclass(frozen=True, kw_only=True)
class DPCD:
    """Noisy proximal steps on one feature (or a few) at a time. `averaging`: the share of the last rounds averaged."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(
            paper="000", algorithm="Proposition 2", names=("DP-CD", "dp_cd", "DP-SCD", "private coordinate descent")
        ),
    )

    step: float = 1.0
    column_bounds: tuple[float, ...] | None = None
    slope_clip: float | None = None
    activation: Activation = CyclicBlocks()  # noqa: RUF009 - frozen
    rate: float = 1.0
    averaging: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, step=self.step, slope_clip=self.slope_clip)
        check_rate(self, self.rate)
        check_averaging(self, self.averaging)
        for bound in self.column_bounds or ():
            require_positive(self, column_bounds=bound)

    def check(self, spec: RunSpec) -> None:
        """Bounded slopes, smoothness along features, a regularizer that falls apart into features."""
        problem = spec.facts.problem
        if self.slope_clip is None:
            require_lipschitz(problem.loss, problem.row_bound, "DPCD without slope_clip")
        require_smooth(problem.loss, problem.row_bound, "DPCD")
        if not is_separable(problem.regularizer, (problem.outputs,) * problem.features):
            raise InputError(
                f"DPCD: the prox of {problem.regularizer!r} does not fall apart into features; use DPSGD for it."
            )

    def active(self, facts: PublicFacts) -> IntArray:
        """Features that act in this round."""
        # The number of the round is not read where it plays no part: equal rounds are then declared together.
        round_ = 0 if isinstance(self.activation, AllBlocks) else facts.round
        return self.activation.active(round_, facts.problem.features)

    def bounds_of(self, problem: Problem) -> Array:
        """The public bound on the entries of each column, (features,)."""
        given = self.column_bounds or (problem.row_bound,) * problem.features
        if len(given) != problem.features:
            raise InputError(
                f"DPCD(column_bounds=... of length {len(given)}): one bound for each of the {problem.features} "
                "features is needed."
            )
        bounds: Array = np.minimum(np.array(given), problem.row_bound)
        return bounds

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The sum of slopes times entries, each column divided by its bound; nothing in a round without features."""
        problem, active = facts.problem, self.active(facts)
        if len(active) == 0:
            return ()
        # A row has at most the row bound in all, and at most 1 in each divided column.
        length = min(np.sqrt(len(active)), problem.row_bound / float(self.bounds_of(problem)[active].min()))
        return (
            Release(
                name="gradient",
                size=len(active) * problem.outputs,
                at="sum",
                rate=self.rate,
                bounds=sum_bounds(facts, self._slope_bound(problem) * length),
                why="a shortened slope times an entry over its column's bound (docs/privacy.md#conventions)",
            ),
        )

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """Sampling without replacement amplifies, since no party remembers anything."""
        return without_memory(spec, query, self.releases)

    def start(self, facts: PublicFacts) -> Hub:
        return Hub.start(np.zeros(facts.dim))

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        return Down(u=hub.u)

    def local(
        self, facts: PublicFacts, down: Down, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        """Sums along the active features."""
        active = self.active(facts)
        if len(active) == 0:
            return state, Up(gradient=declare_public(np.zeros((len(facts.cohort), 0))))
        slopes = f.slopes(f.linear_predictor(down.u))
        slopes = sample_records(
            shorten_slopes(slopes, np.ones(len(slopes)), self.slope_clip), f, release, "gradient", self.rate
        )
        bounds = self.bounds_of(facts.problem)
        sums = [_sums(f, slopes, np.clip(_column(f, facts, j) / bounds[j], -1.0, 1.0)) for j in active]
        return state, Up(gradient=release("gradient", np.concatenate(sums, axis=1) * facts.scales[:, None]))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """A proximal step on each active feature."""
        problem, u = facts.problem, hub.u.copy()
        bounds, outputs = self.bounds_of(problem), problem.outputs
        # Axes in front of the last one are runs that are taken together, as the audit does.
        sums = total.gradient.reshape(*u.shape[:-1], -1, outputs)
        means = sums / (self.rate * facts.expected_parties)
        for k, j in enumerate(self.active(facts)):
            step = self.step / problem.loss.smoothness(float(bounds[j]))
            own, moved = slice(j * outputs, (j + 1) * outputs), hub.u.copy()
            moved[..., own] -= step * bounds[j] * means[..., k, :]
            u[..., own] = problem.regularizer.prox(moved, step)[..., own]
        return hub.follow(u, is_late(facts, self.averaging))

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.model

    def _slope_bound(self, problem: Problem) -> float:
        longest = problem.loss.slope_bound
        return longest if self.slope_clip is None else min(self.slope_clip, longest)

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss, columns of different sizes."""
        return Example(
            algorithm=cls(column_bounds=(1.0, 0.5, 0.25), slope_clip=0.8, rate=0.5),
            schedules=(Everyone(), PoissonSubset(0.5), FixedSubset(2)),
            trusts=("curator", "secure-sum", "local"),
            exact=cls(),
            exact_rounds=600,
            regularizers=PENALTIES,
        ).vary(
            {"rate": 1.0, "slope_clip": None, "averaging": 0.5},
            {"rate": 1.0, "column_bounds": None, "step": 0.5, "activation": RandomBlock()},
        )


def _column(f: Cohort, facts: PublicFacts, feature: int) -> Array:
    """One column of the rows, as the scores of a unit vector."""
    unit = np.zeros((facts.problem.features, facts.problem.outputs))
    unit[feature] = 1.0
    scores = f.linear_predictor(unit.ravel())
    return scores if scores.ndim == 1 else scores[:, 0]


def _sums(f: Cohort, slopes: Array, column: Array) -> Array:
    """Sum over each party's rows of slope times entry, (parties, outputs)."""
    products = slopes.reshape(len(column), -1) * column[:, None]
    return np.stack([f.sums(products[:, k]) for k in range(products.shape[1])], axis=1)
