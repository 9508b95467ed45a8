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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.distributed_admm import AveragedState, AveragingNode, curvatures, pulls, require_small_steps
from consenso.algorithms.dp_sgd import check_averaging
from consenso.algorithms.networked import Message, degrees_of, within
from consenso.algorithms.shape import RING_WITH_CHORD, Example, Source, require_positive, small_problem
from consenso.errors import InputError, PreconditionError
from consenso.losses import Squared
from consenso.privacy.noise import GaussianNoise, Geometric
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Releaser
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, NoPenalty
from consenso.shards import Cohort
from consenso.subproblems import certify


@dataclass(frozen=True, kw_only=True)
class PADMM(AveragingNode):
    """Exact decentralized ADMM, noise on what is said. `radius`: of the ball in which the points of the proxes stay."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="004", algorithm="baseline for ridge regression", names=("P-ADMM", "private decentralized ADMM")),
    )

    penalty: float = 1.0
    radius: float | None = None
    averaging: float = 0.0
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, tolerance=self.tolerance, radius=self.radius)
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
        require_small_steps("PADMM", self.penalty, spec.facts)

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
            gain = 1 / curvatures(self.penalty, facts)
        if isinstance(problem.loss, Squared) and self.radius is not None:
            assert problem.target_bound is not None
            longest = self.radius + np.sqrt(gain * facts.scales * facts.most) * problem.target_bound / 2
            residual = problem.row_bound * longest + problem.target_bound
            return Bounds(
                record_replace_one=2 * gain * facts.scales * problem.row_bound * residual + slack,
                party_replace_one=2 * longest + slack,
            )
        return Bounds.of_contributions(
            record=gain * facts.record_prox_lipschitz, party=gain * facts.lipschitz, rounding=slack
        )

    def local(
        self, facts: PublicFacts, state: AveragedState, f: Cohort, release: Releaser
    ) -> tuple[AveragedState, Message]:
        """An exact step on the augmented Lagrangian, then noise."""
        bottom = curvatures(self.penalty, facts)
        point = within(pulls(self.penalty, facts, state) / bottom[:, None], self.radius)
        f.check_points(point, 1 / bottom, self.tolerance, "PADMM")
        x = certify(f.prox(point, 1 / bottom, self.tolerance), self.tolerance, "PADMM")
        w = release("primal", x)
        return self.follow(facts, state, w), Message(w=w)

    @classmethod
    def example(cls) -> Example:
        """Six nodes of unequal sizes and degrees, logistic loss."""
        return Example(
            algorithm=cls(penalty=0.2),
            problem=small_problem(L2(strength=0.05), sizes=np.array([4, 5, 6, 5, 4, 6]), weighting="party"),
            noise=GaussianNoise(multiplier=Geometric(first=2.0, ratio=0.9)),
            topology=RING_WITH_CHORD,
            exact=cls(penalty=0.05, tolerance=1e-12),
            exact_rounds=250,
            regularizers=(NoPenalty(), L2(strength=0.1)),
        ).vary(
            {"penalty": 0.5, "averaging": 0.5, "tolerance": 1e-9},
            {"radius": 1.0},
        )
