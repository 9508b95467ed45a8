"""P-ADMM: decentralized ADMM with exact local minimisers and Gaussian noise of falling variance (Ding et al. 2019).

    node i:    x_i = argmin_w f_i(w) + r(w) + <dual_i, w> + penalty sum_j |w - (w_i + w_j)/2|^2
               w_i = x_i + noise,   and says w_i; then
               dual_i <- dual_i + penalty sum_j (w_i - w_j)

    symbol           code         what it is
    theta~_i         state.w      the noisy minimiser, all that a neighbour ever sees
    dual of i        state.dual
    -                penalty
    D                -            2 penalty degree + strength of an L2 regularizer: the minimiser is prox_{f_i/D}(v_i),
                                  v_i = [ penalty sum_j (w_i + w_j) - dual_i ] / D

Reference: J. Ding, X. Qin, W. Xu, Y. Gong, C. Zhang and M. Pan, "Differentially private ADMM for distributed medical
machine learning", 2019, arXiv:1901.02094. Followed here is what its abstract states: ADMM between neighbours, Gaussian
noise whose variance decays linearly, that is by a constant factor a round (`GaussianNoise(multiplier=Geometric(first,
ratio))`), and an account in (dynamic) zCDP, which is the composition of the rounds. The rest is chosen here and not
taken from there: noise on the primal variable, local problems solved exactly, the augmented Lagrangian of
`NetworkedADMM`, and the sensitivities.

Sensitivity. With |grad f_i - grad f_i'| <= c at the minimiser of one of two worlds, the strong convexity D gives |x_i -
x_i'| <= c/D: monotonicity of the gradients, taken at one point only. A record of a Lipschitz loss has c = 2 L scale.
The squared loss has no L, but its minimiser is bounded where v_i is: x = (I + g A'A)^-1 (v + g A'b), g = scale/D, has
|x| <= |v| + sqrt(g m) Y/2. So with `radius` the public point v_i is projected on |v| <= radius, and every residual is
at most X |x| + Y. This counts the rows, so it holds under replace-one only.

Remarks. Local problems are solved to a certified `tolerance`, which is charged. The regularizer is part of the local
problem: none or a square, since the exact prox of a loss plus anything else is not at hand; `NetworkedADMM` takes all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.dp_sgd import check_averaging
from consenso.algorithms.networked import Message, degrees_of, running_average, within
from consenso.algorithms.shape import Example, Heard, Source, require_positive
from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError
from consenso.losses import Logistic, Squared
from consenso.privacy.noise import GaussianNoise, Geometric
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, NoPenalty
from consenso.shards import Cohort
from consenso.subproblems import certify
from consenso.topology import Topology


@dataclass(frozen=True)
class State:
    """What a node keeps: functions of noisy iterates, all of it."""

    w: Array  # what it last said
    heard: Array  # sum of what its neighbours last said
    dual: Array
    model: Array  # the last iterate, or the average of the late ones


@dataclass(frozen=True, kw_only=True)
class PADMM:
    """Exact decentralized ADMM, noise on what is said. `radius`: of the ball in which the points of the proxes stay."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="004", algorithm="baseline for ridge regression", names=("P-ADMM", "private decentralized ADMM")),
    )

    penalty: float = 1.0
    radius: float | None = None
    averaging: float = 0.0
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, tolerance=self.tolerance)
        if self.radius is not None:
            require_positive(self, radius=self.radius)
        check_averaging(self, self.averaging)

    def check(self, spec: RunSpec) -> None:
        """Refuse what has no exact prox or no bound, and nodes without neighbours."""
        problem = spec.facts.problem
        if not isinstance(problem.regularizer, NoPenalty | L2):
            raise PreconditionError(
                f"PADMM: local problems are solved exactly, which {problem.regularizer!r} does not allow; use L2 or "
                "NoPenalty, or NetworkedADMM for other regularizers."
            )
        if problem.loss.slope_bound == np.inf and not (isinstance(problem.loss, Squared) and self.radius is not None):
            raise PreconditionError(
                f"PADMM(radius={self.radius}): one record can move the minimiser without bound, since the slope of "
                f"{problem.loss!r} is unbounded; use Huber(threshold=...), or with the squared loss pass radius= to "
                "project the points of the proxes."
            )
        if degrees_of(spec.facts).min() < 1:
            raise InputError("PADMM(topology=...): every node has a neighbour, and one has none; add an edge.")

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        return (
            Release(
                name="primal",
                size=facts.dim,
                bounds=self._bounds(facts),
                why="a minimiser moves by the gradient's change over the convexity (docs/privacy.md#prox-sensitivity)",
            ),
        )

    def _bounds(self, facts: PublicFacts) -> Bounds:
        problem, slack = facts.problem, 2 * self.tolerance
        with np.errstate(divide="ignore"):  # a node without neighbours has no bound, and `check` says so
            gain = 1 / self.denominator(facts)
        if isinstance(problem.loss, Squared) and self.radius is not None:
            assert problem.target_bound is not None
            longest = self.radius + np.sqrt(gain * facts.scales * facts.most) * problem.target_bound / 2
            residual = problem.row_bound * longest + problem.target_bound
            return Bounds(
                record_replace_one=2 * gain * facts.scales * problem.row_bound * residual + slack,
                party_replace_one=2 * longest + slack,
            )
        one, all_of_them = gain * facts.record_prox_lipschitz, gain * facts.lipschitz
        return Bounds(
            record_add_remove=one + slack,
            record_replace_one=2 * one + slack,
            party_add_remove=all_of_them + slack,
            party_replace_one=2 * all_of_them + slack,
        )

    def denominator(self, facts: PublicFacts) -> Array:
        """Strong convexity of each node's local problem without its loss."""
        return 2 * self.penalty * degrees_of(facts) + facts.problem.regularizer.strong_convexity

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """None: composing the rounds is exact, since all history is noisy."""
        return ()

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Everything at zero, and as if the neighbours had said so."""
        zero = np.zeros((len(facts.cohort), facts.dim))
        return State(w=zero, heard=zero, dual=zero, model=zero)

    def local(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> tuple[State, Message]:
        """An exact step on the augmented Lagrangian, then noise."""
        bottom = self.denominator(facts)
        pull = self.penalty * (degrees_of(facts)[:, None] * state.w + state.heard) - state.dual
        point = within(pull / bottom[:, None], self.radius)
        f.check_points(point, 1 / bottom, self.tolerance, "PADMM")
        x = certify(f.prox(point, 1 / bottom, self.tolerance), self.tolerance, "PADMM")
        w = release("primal", x)
        return replace(state, w=w), Message(w=w)

    def absorb(self, facts: PublicFacts, state: State, heard: Heard) -> State:
        """The dual moves by the disagreement with the neighbours."""
        said = heard.sum("w")
        dual = state.dual + self.penalty * (degrees_of(facts)[:, None] * state.w - said)
        model = running_average(facts, self.averaging, state.model, state.w)
        return State(w=state.w, heard=said, dual=dual, model=model)

    def models(self, facts: PublicFacts, state: State) -> Array:
        """Each node's iterate, or the average of its late ones."""
        return state.model

    @classmethod
    def example(cls) -> Example:
        """Six nodes of unequal sizes and degrees, logistic loss."""
        return Example(
            algorithm=cls(penalty=0.2),
            problem=Problem(
                loss=Logistic(),
                regularizer=L2(strength=0.05),
                features=3,
                sizes=np.array([4, 5, 6, 5, 4, 6]),
                row_bound=1.0,
                weighting="party",
            ),
            noise=GaussianNoise(multiplier=Geometric(first=2.0, ratio=0.9)),
            topology=Topology.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 3)]),
            exact=cls(penalty=0.05, tolerance=1e-12),
            exact_rounds=250,
            regularizers=(NoPenalty(), L2(strength=0.1)),
        ).vary(
            {"penalty": 0.5, "averaging": 0.5, "tolerance": 1e-9},
            {"radius": 1.0},
        )
