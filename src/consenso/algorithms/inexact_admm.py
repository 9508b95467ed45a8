"""DP-IADMM: consensus ADMM with linearised, perturbed subproblems (Ryu and Kim 2021, Algorithms 1 and 2).

    min sum_p f_p(z_p) + r(w)   subject to   w = z_p,   z_p in W       f_p: party p's part of the mean over all records

    hub:      w   = prox_{r/(rho_t P)}(mean_p (z_p - dual_p / rho_t))                                            (4a)
    party p:  G   = grad f_p(z_p) + noise
              z_p <- argmin over W of <G - dual_p, z> + rho_t/2 |w - z|^2 + |z - z_p|^2 / (2 eta_t)     Proximal     (8)
                     argmin over W, |z - z_p| <= delta_t, of <G - dual_p, z> + rho_t/2 |w - z|^2        TrustRegion  (9)
              dual_p <- dual_p + rho_t (w - z_p),       sends z_p - dual_p / rho_{t+1}

    paper     code         what it is
    rho^t     penalty      a number or `GrowingPenalty`, min(1e9, c1 1.2^floor(t/Tc) + c2/eps)
    eta^t     proximity    of `Proximal`, 1/sqrt(t)
    delta^t   radius       of `TrustRegion`, 1/t^2
    W         region       compact: a box or a ball
    xi        noise        on the gradient: Laplace in the 1-norm, or Gaussian in the 2-norm (the zCDP twin)
    I         records      f_p is 1/I times the sum over the party's records; the library's f_i is P times that

Both subproblems are isotropic quadratics, so their argmin is a projection of a point that is linear in G: perturbing
the objective by <xi, z> is adding xi to the gradient, and all the rest is post-processing. Each party keeps its own
dual and sends the one vector of which the hub needs the mean.

Read the paper with care. Its noise scale (11b), (20) is measured on the party's own records at the current iterate,
which tells records apart by itself: here the sensitivity is global, |row|_1 times the slope in the 1-norm, twice that
for replace-one, with rows shortened to `row_bound_1` where it is given. Its epsilon is that of one iteration; the total
composes all of them. The public code runs one iteration more than stated and its trust region never shrinks. The
squared penalty, which the paper linearises with the loss, is in r here, whose prox is exact, as for other regularizers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from consenso.algorithms.dp_sgd import Down, Hub, check_averaging, is_late
from consenso.algorithms.record_sums import value_at
from consenso.algorithms.shape import PENALTIES, Example, Source, require_positive, small_problem
from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.losses import require_lipschitz
from consenso.operators.projections import into_box_and_ball, into_two_balls
from consenso.privacy.noise import Constant, GammaNormNoise, GaussianNoise, LaplaceNoise, PerRound, Polynomial
from consenso.privacy.release import Bounds, Release, sum_rounding
from consenso.privacy.releaser import Released, Releaser, postprocess
from consenso.privacy.run_spec import RunSpec
from consenso.problem import Adjacency
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, Ball, Box
from consenso.schedules import Everyone
from consenso.shards import Cohort

Sequence: TypeAlias = float | Constant | Polynomial | PerRound
Region: TypeAlias = Box | Ball


@dataclass(frozen=True, kw_only=True)
class GrowingPenalty:
    """min(largest, first * growth^floor(t / every) + offset), t = 1, 2, ..., as the paper's experiments have it."""

    first: float
    offset: float = 0.0
    growth: float = 1.2
    every: int = 10_000
    largest: float = 1e9

    def __post_init__(self) -> None:
        require_positive(self, first=self.first, growth=self.growth, every=self.every, largest=self.largest)
        if not 0 <= self.offset < math.inf:
            raise InputError(f"GrowingPenalty(offset={self.offset}): an offset is finite and at least 0.")

    @classmethod
    def of_paper(cls, c1: float, c2: float, every: int, epsilon: float) -> GrowingPenalty:
        """The paper's c1 and c2, with the epsilon of one iteration."""
        return cls(first=c1, offset=c2 / epsilon, every=every)

    def at(self, round_: int) -> float:
        """The penalty of a round; rounds are counted from 0."""
        doublings = (round_ + 1) // self.every
        # Far out the power overflows before the minimum is taken.
        if doublings * math.log(self.growth) > math.log(self.largest) - math.log(self.first):
            return self.largest
        return min(self.largest, self.first * self.growth**doublings + self.offset)


@dataclass(frozen=True, kw_only=True)
class Proximal:
    """The subproblem (8): stay near the last z by a quadratic, of which `proximity` is the step."""

    proximity: Sequence = Polynomial(first=1.0, power=-0.5)  # noqa: RUF009 - frozen

    def solve(
        self, w: Array, z: Array, dual: Array, gradient: Array, penalty: float, round_: int, region: Region
    ) -> Array:
        """The argmin, (parties, dim)."""
        near = 1 / value_at(self.proximity, round_)
        return region.prox((penalty * w + dual + near * z - gradient) / (penalty + near), 1.0)


@dataclass(frozen=True, kw_only=True)
class TrustRegion:
    """The subproblem (9): stay within `radius` of the last z, in the infinity norm or in the 2-norm."""

    radius: Sequence = Polynomial(first=1.0, power=-2.0)  # noqa: RUF009 - frozen
    norm: float = math.inf

    def __post_init__(self) -> None:
        if self.norm not in (2, math.inf):
            raise InputError(f"TrustRegion(norm={self.norm}): a trust region is a ball of norm 2 or math.inf.")

    def solve(
        self, w: Array, z: Array, dual: Array, gradient: Array, penalty: float, round_: int, region: Region
    ) -> Array:
        """The argmin, (parties, dim)."""
        point, radius = w + (dual - gradient) / penalty, value_at(self.radius, round_)
        if isinstance(region, Ball):
            if self.norm == 2:
                return into_two_balls(point, region.radius, z, radius)
            return into_box_and_ball(point, z - radius, z + radius, np.zeros_like(z), region.radius)
        if self.norm == 2:
            return into_box_and_ball(point, np.full_like(z, region.low), np.full_like(z, region.high), z, radius)
        return np.clip(point, np.maximum(z - radius, region.low), np.minimum(z + radius, region.high))


@dataclass(frozen=True)
class State:
    """A party's copy and its dual; both follow from its noisy gradients."""

    z: Array
    dual: Array


@dataclass(frozen=True)
class Up:
    """A party's copy less its dual / penalty, of which the hub takes the mean."""

    point: Released


@dataclass(frozen=True, kw_only=True)
class InexactADMM:
    """DP-IADMM-Prox, DP-IADMM-Trust and their Gaussian twins.

    norm: of the bound on gradients, 1 for Laplace and 2 for Gaussian noise. row_bound_1: rows with a longer 1-norm are
    shortened to it; without it the 1-norm of a row is at most sqrt(features) times the problem's row_bound.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="003", algorithm="Algorithm 1", names=("DP-IADMM-Prox", "ObjP", "DP-IADMM", "inexact ADMM")),
        Source(paper="003", algorithm="Algorithm 2", names=("DP-IADMM-Trust", "ObjT")),
    )

    subproblem: Proximal | TrustRegion = Proximal()
    penalty: float | GrowingPenalty = 2.0
    region: Region = Box(low=-100.0, high=100.0)  # noqa: RUF009 - frozen
    norm: Literal[1, 2] = 1
    row_bound_1: float | None = None
    averaging: float = 0.0  # share of the last iterates that is averaged
    linearised: bool = False  # each party its share of the regularizer's gradient at z, in place of the hub's prox

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, row_bound_1=self.row_bound_1)
        if isinstance(self.region, Box) and not np.isfinite([self.region.low, self.region.high]).all():
            raise InputError(
                f"InexactADMM(region={self.region!r}): the region is bounded on all sides; give both ends."
            )
        if self.norm not in (1, 2):
            raise InputError(f"InexactADMM(norm={self.norm!r}): gradients are bounded in norm 1 or 2.")
        if self.row_bound_1 is not None and self.norm == 2:
            raise InputError(
                "InexactADMM(row_bound_1=..., norm=2): the 2-norm needs no bound on 1-norms; leave it out."
            )
        check_averaging(self, self.averaging)

    def check(self, spec: RunSpec) -> None:
        """A Lipschitz loss, everybody in every round, noise that fits the norm."""
        problem = spec.facts.problem
        require_lipschitz(problem.loss, problem.row_bound, "InexactADMM")
        if self.linearised and problem.regularizer.is_constraint:
            raise PreconditionError(
                f"InexactADMM(linearised=True): {problem.regularizer!r} is a constraint and has no subgradients; leave "
                "it to the hub's prox."
            )
        if not isinstance(spec.schedule, Everyone):
            raise InputError(
                f"InexactADMM(schedule={spec.schedule!r}): the consensus is over all parties; use Everyone()."
            )
        noise = spec.noise_for("gradient")
        if self.norm == 2 and isinstance(noise, LaplaceNoise):
            raise InputError(
                "InexactADMM(norm=2): Laplace noise protects the 1-norm only; use norm=1, or GaussianNoise."
            )
        if self.norm == 1 and isinstance(noise, GaussianNoise | GammaNormNoise):
            raise InputError(
                f"InexactADMM(norm=1): {type(noise).__name__} is scaled with the 2-norm, which is shorter; use norm=2, "
                "or LaplaceNoise."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The gradient of the party's part of the mean over all records."""
        problem = facts.problem
        longest = None
        if self.norm == 1:
            always = math.sqrt(problem.features) * problem.row_bound
            longest = always if self.row_bound_1 is None else min(always, self.row_bound_1)
        return (
            Release(
                name="gradient",
                size=facts.dim,
                norm=self.norm,
                bounds=gradient_gaps(facts, self.norm, longest),
                why="one record's gradient is slope times row, each bounded beforehand "
                "(docs/privacy.md#laplace-iterations)",
            ),
        )

    def start(self, facts: PublicFacts) -> Hub:
        """The consensus of copies at the point of the region that is closest to zero."""
        return Hub.start(self._consensus(facts, self._first(facts), 0))

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Copies where the consensus starts from, duals at zero."""
        z = np.tile(self._first(facts), (len(facts.cohort), 1))
        return State(z=z, dual=np.zeros_like(z))

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        return Down(u=hub.u)

    def local(self, facts: PublicFacts, down: Down, state: State, f: Cohort, release: Releaser) -> tuple[State, Up]:
        """One noisy gradient; the rest follows from it."""
        released = release("gradient", self._gradient(state.z, f) / facts.parties)
        gradient: Array = released
        if self.linearised:
            gradient = released + facts.problem.regularizer.subgradient(state.z) / facts.parties
        penalty = penalty_at(self.penalty, facts.round)
        z = self.subproblem.solve(down.u, state.z, state.dual, gradient, penalty, facts.round, self.region)
        dual = state.dual + penalty * (down.u - z)
        point = z - dual / penalty_at(self.penalty, facts.round + 1)
        return State(z=z, dual=dual), Up(point=postprocess(point, released))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """The mean, then the regularizer."""
        w = self._consensus(facts, total.point / facts.parties, facts.round + 1)
        return hub.follow(w, is_late(facts, self.averaging))

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.model

    def _gradient(self, z: Array, f: Cohort) -> Array:
        if self.row_bound_1 is None:
            return f.gradient(z)
        # A little below the bound, so that rounding cannot lift a shortened row above it.
        bound = self.row_bound_1 * (1 - 1e-12)
        factors = np.minimum(1.0, bound / np.maximum(f.norms_1, np.finfo(float).tiny))
        scores = f.linear_predictor(z)
        by_row = factors if scores.ndim == 1 else factors[:, None]
        return f.rmatvec(f.slopes(scores * by_row) * by_row) * f.scales[:, None]

    def _consensus(self, facts: PublicFacts, mean: Array, round_: int) -> Array:
        if self.linearised:
            return mean
        step = 1 / (penalty_at(self.penalty, round_) * facts.parties)
        return facts.problem.regularizer.prox(mean, step)

    def _first(self, facts: PublicFacts) -> Array:
        return self.region.prox(np.zeros(facts.dim), 1.0)

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(penalty=0.5, row_bound_1=1.2),
            problem=small_problem(L2(strength=0.1)),
            noise=LaplaceNoise(multiplier=1.0),
            trusts=("local", "curator"),
            exact=cls(penalty=0.02, subproblem=Proximal(proximity=40.0)),
            exact_rounds=300,
            regularizers=PENALTIES,
        ).vary(
            {"norm": 2, "row_bound_1": None, "region": Box(low=-1e9, high=1e9), "noise": GaussianNoise(multiplier=1.0)},
            {"penalty": 1.0, "linearised": True, "averaging": 0.5, "subproblem": Proximal(proximity=0.5)},
        )


def penalty_at(penalty: float | GrowingPenalty, round_: int) -> float:
    """The penalty of a round."""
    return penalty.at(round_) if isinstance(penalty, GrowingPenalty) else float(penalty)


def gradient_gaps(
    facts: PublicFacts, norm: Literal[1, 2], longest: float | None = None, clip: float | None = None
) -> Bounds:
    """How far the gradient of each party's part of the mean over all records moves, rounding of the sum included.

    `longest` bounds the 1-norm of rows, `clip` the 2-norm of a record's gradient where that is enforced.
    """
    loss, bound, weights = facts.problem.loss, facts.problem.row_bound, facts.scales / facts.parties

    def one(adjacency: Adjacency) -> Array:
        worlds = 1 if adjacency == "add-remove" else 2
        gap = loss.gradient_gap(bound, norm, adjacency, row_bound_1=longest) if clip is None else worlds * clip
        weighted: Array = weights * gap
        return weighted

    gone, other, caps = one("add-remove"), one("replace-one"), facts.problem.row_caps
    # Of the party whose sum is rounded most, so that a bound does not depend on who else is in the cohort.
    lengths = facts.problem.scales / facts.parties * caps * float(np.max(gone / weights))
    rounding = sum_rounding(int(caps.max()), float(lengths.max()))
    return Bounds(
        record_add_remove=gone + rounding,
        record_replace_one=other + rounding,
        party_add_remove=gone * facts.most + rounding,
        party_replace_one=other * facts.most + rounding,
    )
