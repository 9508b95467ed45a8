"""Gradient ADMM: one party and one gradient an iteration (Chan, Xie and Zhao 2024, Algorithm 1, noisy).

    min mean f_i(x) + g(y)   subject to   A x + B y = c,   B = -diag(b), or any B of full column rank

    y     = argmin_y g(y) - <dual, B y> + penalty/2 |A x + B y - c|^2
    dual <- dual - penalty (A x + B y - c)
    x    <- (I + step penalty A'A)^-1 (x - step grad f_t(x) + step A'(dual - penalty (B y - c))) + noise     by party t

    paper    code          what it is
    A, B, c  constraint    public; by default y is a copy of x (A = I, B = -I, c = 0)
    g        g             of y; by default the problem's regularizer, for which y must be a copy of x
    beta     penalty
    eta      step          at most 2 / (smoothness + strong convexity) of every f_i; by default 1 / smoothness
    lambda   hub.dual      public, like y: both follow from what x was
    N        noise         N(0, std^2 I) on x, the only release

At a fixed point A x + B y = c, grad f(x) = A' dual and B' dual is a subgradient of g at y, which are the optimality
conditions. The generalised lasso has A = D, B = -I, c = 0 and g = strength |.|_1 (`GradientADMM.generalised_lasso`).

One iteration does not expand differences of (x, dual) in the norm |x|^2 + (step/penalty) |dual - penalty A x|^2, and
contracts when every f_i is strongly convex; `square="f"` makes it so by giving f the squared part of the regularizer.
Later iterations therefore hide what a party's own iteration tells, for whoever sees only the end: the positions in a
fixed order, a random order and random stopping each have their theorem. Whoever sees every iterate pays for each.

Remarks. With a constant step the parties' different gradients leave a bias of the order of the step, as every
incremental method has. The model is y where y is a copy of x, so that it has the regularizer's structure, and x
otherwise. B enters the proof only through <change of dual, B change of y> >= 0, so that any B will do; Remark 2.4
eliminates dependent rows, as `Constraint.independent` does. The printed bound is sound; the one used here is 4 to 10
times smaller (docs/privacy.md#gradient-admm).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from consenso.algorithms.inexact_admm import gradient_gaps
from consenso.algorithms.record_sums import Forgetful
from consenso.algorithms.shape import PENALTIES, Example, Source, require_positive, small_problem
from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.losses import require_lipschitz, require_smooth
from consenso.operators.constraint import Constraint
from consenso.privacy.observers import Public
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, gaussian_draws, insiders
from consenso.privacy.theorems import Theorem
from consenso.privacy.theorems.gradient_admm import (
    GradientIteration,
    GradientRandomOrder,
    GradientRandomStopping,
    GradientVisits,
)
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, L2, ElasticNet, NoPenalty, Regularizer, Sum
from consenso.schedules import Cyclic, RandomOrder, RandomStopping
from consenso.shards import Cohort


@dataclass(frozen=True)
class Hub:
    """All that travels: x with its noise, and the dual that follows from earlier ones."""

    x: Array
    dual: Array


@dataclass(frozen=True)
class Up:
    """The next iterate, from the one party of the round."""

    x: Released


@dataclass(frozen=True, kw_only=True)
class GradientADMM:
    """Noisy linearised ADMM in which one party a round takes a gradient step.

    square: "f" takes the squared part of the problem's regularizer into the parties' objectives, which makes them
    strongly convex; with a `g` of its own the problem's regularizer is a square of x or nothing, and is always in f.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(
            paper="001", algorithm="Algorithm 1", names=("001-1", "gradient ADMM", "ADMM with iteration amplification")
        ),
    )

    penalty: float = 1.0
    step: float | None = None
    constraint: Constraint = Constraint()  # noqa: RUF009 - frozen
    g: Regularizer | None = None
    square: Literal["f", "g"] = "g"

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, step=self.step)
        if self.square not in ("f", "g"):
            raise InputError(f"GradientADMM(square={self.square!r}): the squared part goes to 'f' or to 'g'.")
        if self.constraint.is_copy != (self.g is None):
            raise InputError(
                "GradientADMM(constraint=..., g=...): y has a function of its own exactly when it is not a copy of x; "
                "give both, or neither."
            )

    @classmethod
    def generalised_lasso(cls, structure: Any, *, strength: float, **settings: Any) -> GradientADMM:
        """Minimise mean f_i(x) + strength |D x|_1 for a `structure` D of full row rank; the model is x."""
        return cls(constraint=Constraint(left=structure), g=L1(strength=strength), **settings)

    # --- what must hold ------------------------------------------------------------------------------------------

    def check(self, spec: RunSpec) -> None:
        """One party a round, smooth Lipschitz losses, a step that does not expand, a matrix of full row rank."""
        problem = spec.facts.problem
        if not isinstance(spec.schedule, Cyclic | RandomOrder | RandomStopping):
            raise InputError(
                f"GradientADMM(schedule={spec.schedule!r}): one party takes each iteration; use Cyclic(), "
                "RandomOrder() or RandomStopping()."
            )
        require_lipschitz(problem.loss, problem.row_bound, "GradientADMM")
        require_smooth(problem.loss, problem.row_bound, "GradientADMM")
        self._check_regularizer(problem)
        largest = 2 / (self._smoothness(problem) + self._squared_strength(problem))
        if self.step_for(problem) > largest * (1 + 1e-12):
            raise PreconditionError(
                f"GradientADMM(step={self.step}): iterations expand unless the step is at most 2 / (smoothness + "
                f"strong convexity) = {largest:.6g}; lower it, or leave it out."
            )
        left = self.constraint.left
        if left is not None and left.columns != problem.dim:
            raise InputError(
                f"GradientADMM(constraint=... with {left.columns} columns): one for each of the {problem.dim} "
                "coefficients of the model is needed."
            )
        if left is not None and self.constraint.range[0] == 0:
            raise PreconditionError(
                f"GradientADMM(constraint=... of {left.rows} rows and {left.columns} columns): A must have full row "
                "rank, so that the noise on x reaches every dual; drop dependent rows "
                "(Constraint.independent drops those that say nothing new)."
            )

    def _check_regularizer(self, problem: Problem) -> None:
        if self.g is not None and not isinstance(problem.regularizer, NoPenalty | L2):
            raise InputError(
                f"GradientADMM(g=...): g takes the place of the problem's regularizer {problem.regularizer!r}; let the "
                "problem have NoPenalty(), or L2(...) on x."
            )
        if not self.constraint.fits(self._g(problem)):
            raise InputError(
                f"GradientADMM(constraint=..., g={self.g!r}): y has no closed form; give all coordinates the same "
                "scaling, or a B with orthogonal columns of one length, or a quadratic g."
            )
        if self.square == "f" and self.g is None and self._squared_strength(problem) == 0:
            raise InputError(
                f"GradientADMM(square='f'): {problem.regularizer!r} has no squared part that could go to f; use L2 or "
                "ElasticNet, or square='g'."
            )

    def step_for(self, problem: Problem) -> float:
        """The step that is taken: as given, or 1 / smoothness of the steepest party."""
        return 1 / self._smoothness(problem) if self.step is None else self.step

    def _smoothness(self, problem: Problem) -> float:
        """Of every party's objective, its squared part included."""
        return float(np.max(problem.smoothness)) + self._squared_strength(problem)

    def _squared_strength(self, problem: Problem) -> float:
        """Strength of the squared part that f has."""
        return split_squared_term(problem.regularizer)[0] if self.g is not None or self.square == "f" else 0.0

    def _g(self, problem: Problem) -> Regularizer:
        """The function of y."""
        if self.g is not None:
            return self.g
        return split_squared_term(problem.regularizer)[1] if self.square == "f" else problem.regularizer

    # --- privacy -------------------------------------------------------------------------------------------------

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The iterate. The inverse shrinks the change of a gradient by 1 + step penalty w^2 where A is injective."""
        step = self.step_for(facts.problem)
        return (
            Release(
                name="x",
                size=facts.dim,
                bounds=_gaps(facts).scale(step / (1 + step * self.penalty * self.constraint.injectivity**2)),
                why="x moves by (I + step penalty A'A)^-1 step times the change of one gradient "
                "(docs/privacy.md#gradient-admm)",
            ),
        )

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """Amplification by the iterations that follow, for whoever sees only the final model."""
        if not isinstance(query.observer, Public):
            return
        schedule = spec.schedule
        if isinstance(schedule, Cyclic):
            yield lambda: self._fixed_order(spec, query)
        elif isinstance(schedule, RandomOrder):
            yield lambda: self._random_order(spec, query)
        else:
            yield lambda: self._random_stopping(spec, query)

    def _iteration(self, spec: RunSpec, query: PrivacyQuery) -> GradientIteration:
        problem = spec.facts.problem
        drawn = gaussian_draws(spec, self.releases, "x")
        if insiders(spec, query):
            raise PreconditionError(
                f"GradientADMM(colluders={spec.colluders}): amplification by iteration is against whoever sees the "
                "final model only, and colluders see the iterates that pass them; every iteration is accounted instead."
            )
        if drawn.rounding > 0:
            raise PreconditionError(
                "GradientADMM: amplification by iteration needs maps that do not expand, and rounding to the grid of a "
                "discrete sampler does; every iteration is accounted instead."
            )
        smallest, largest = self.constraint.range
        curvature = self.step_for(problem) * self.penalty * self.constraint.injectivity**2
        own = spec.facts.only(np.array([query.party], dtype=np.int64))
        return GradientIteration(
            step=self.step_for(problem),
            penalty=self.penalty,
            std=drawn.std,
            # v = (I + k A'A)^-1 step gap has |(v, 0)|^2 = v'(I + k A'A) v <= (step gap)^2 / (1 + k w^2), w the smallest
            # singular value of A, and |v| is shorter still: the theorem holds with the gap shortened by the root.
            gradient_gap=float(np.max(_gaps(own).at(query.unit, query.adjacency))) / math.sqrt(1 + curvature),
            smoothness=self._smoothness(problem),
            strong_convexity=self._squared_strength(problem),
            smallest_singular_value=smallest,
            largest_singular_value=largest,
            rows=self.constraint.rows(problem.dim),
            columns=problem.dim,
        )

    def _fixed_order(self, spec: RunSpec, query: PrivacyQuery) -> Theorem:
        return GradientVisits(
            iteration=self._iteration(spec, query),
            iterations=spec.rounds,
            positions=tuple(range(query.party + 1, spec.rounds + 1, spec.parties)),
            adjacency=query.adjacency,
            unit=query.unit,
        )

    def _random_order(self, spec: RunSpec, query: PrivacyQuery) -> Theorem:
        if spec.rounds != spec.parties:
            raise PreconditionError(
                f"GradientADMM(rounds={spec.rounds}): the bound for a random order is proved for one pass over the "
                f"{spec.parties} parties; plan as many rounds."
            )
        return GradientRandomOrder(
            iteration=self._iteration(spec, query),
            users=spec.parties,
            adjacency=query.adjacency,
            unit=query.unit,
        )

    def _random_stopping(self, spec: RunSpec, query: PrivacyQuery) -> Theorem:
        if spec.rounds > spec.parties or query.party >= spec.rounds:
            raise PreconditionError(
                f"GradientADMM(rounds={spec.rounds}): the bound for random stopping is proved for parties that have "
                f"one turn, and there are {spec.parties}; plan at most as many rounds."
            )
        return GradientRandomStopping(
            iteration=self._iteration(spec, query),
            users=spec.rounds,
            position=query.party + 1,
            adjacency=query.adjacency,
            unit=query.unit,
        )

    # --- the iteration -------------------------------------------------------------------------------------------

    def start(self, facts: PublicFacts) -> Hub:
        return Hub(x=np.zeros(facts.dim), dual=np.zeros(self.constraint.rows(facts.dim)))

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Hub) -> Hub:
        """The iterate and its dual."""
        return hub

    def local(
        self, facts: PublicFacts, down: Hub, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        """A gradient step in x."""
        x, _ = self.advance(facts.problem, down, f.gradient(down.x))
        return state, Up(x=release("x", x))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """What the party of the round made, and the dual that everybody can compute."""
        return Hub(x=total.x, dual=self._splits(facts.problem, hub)[1])

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        """The y of the last iterate where it is a copy of x, else x."""
        return self._splits(facts.problem, hub)[0] if self.constraint.is_copy else hub.x

    def advance(self, problem: Problem, at: Hub, gradient: Array) -> tuple[Array, Array]:
        """One iteration without noise: the next x, (..., dim) like the gradients at x, and the next dual."""
        step = self.step_for(problem)
        y, dual = self._splits(problem, at)
        pull = self.constraint.adjoint(dual + self.penalty * self.constraint.offset(y))
        moved = at.x - step * (gradient + self._squared_strength(problem) * at.x) + step * pull
        return self.constraint.solve(moved, step * self.penalty), dual

    def norm(self, problem: Problem, at: Hub) -> float:
        """The norm of a difference of two hubs in which an iteration does not expand."""
        hidden = at.dual - self.penalty * self.constraint.apply(at.x)
        return float(np.sqrt(at.x @ at.x + self.step_for(problem) / self.penalty * (hidden @ hidden)))

    def _splits(self, problem: Problem, at: Hub) -> tuple[Array, Array]:
        """The y of an iterate, and the dual after it."""
        return self.constraint.split(self._g(problem), at.x, at.dual, self.penalty)

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss, one after the other."""
        return Example(
            algorithm=cls(penalty=0.5),
            problem=small_problem(unit="party"),
            schedules=(Cyclic(), RandomOrder(), RandomStopping()),
            trusts=("local", "curator"),
            exact=cls(penalty=0.1, step=0.2),
            exact_rounds=800,
            exact_tolerance=1e-4,
            regularizers=PENALTIES,
        ).vary(
            {"rounds": 6},  # one turn each: random orders and random stopping have theorems of their own
            {"penalty": 0.1, "step": 0.3},
            {"square": "f", "regularizer": L2(strength=0.1)},
            {"constraint": Constraint(left=np.eye(3)[:2]), "g": L2(strength=0.1), "regularizer": NoPenalty()},
        )


def _gaps(facts: PublicFacts) -> Bounds:
    """How far one gradient of each party's objective moves, in the 2-norm."""
    return gradient_gaps(facts, 2).scale(facts.parties)


def split_squared_term(regularizer: Regularizer) -> tuple[float, Regularizer]:
    """The strength of the squared term (strength/2) |x|^2 that a regularizer contains, and the rest of it."""
    match regularizer:
        case L2(strength=strength):
            return strength, NoPenalty()
        case ElasticNet(l1=l1, l2=l2):
            return l2, L1(strength=l1)
        case Sum(parts=parts):
            split = [split_squared_term(part) for part in parts]
            return sum(strength for strength, _ in split), Sum(parts=tuple(rest for _, rest in split))
    return 0.0, regularizer
