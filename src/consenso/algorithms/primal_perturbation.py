"""Primal variable perturbation, PVP (Zhang and Zhu 2017): distributed ADMM whose models leave with noise added.

    node i:  x_i   = argmin f_i(w) + r(w) + <dual_i, w> + penalty sum_j |w - (w_i + w_j)/2|^2     j over i's neighbours
             w_i   = x_i + noise
    hears:   dual_i <- dual_i + penalty sum_j (w_i - w_j)

    paper        code               what it is
    f_p          x_i                exact minimiser, forgotten as soon as it has left
    V_p          state.w            the noisy model, own and neighbours'
    2 lambda_p   state.dual         the paper steps lambda by eta/2; here the 2 is in the dual
    eta          penalty            weight of disagreement
    zeta         1 / noise scale    of GammaNormNoise, the paper's density exp(-zeta |noise|_2)

What is implemented: *everything* that a node keeps is noisy, also the own model inside the penalty. A node that kept
x_i there would carry un-noised history from round to round, for which no bound per round is proved.

Privacy. Given what was sent before, dual and penalty term are public, and x_i is the prox of f_i / curvature_i at a
public point, curvature_i = m + 2 penalty d_i (m of an L2 regularizer, d_i neighbours). Let x and x' be the minimisers
for f and f'. Their optimality conditions give curvature (x - x') = -(s - s') with s in df(x), s' in df'(x'), and f is
convex, so for some s~ in df(x') the product <s - s~, x - x'> is not negative and

    curvature |x - x'|^2 = -<s - s', x - x'> <= <s' - s~, x - x'>,     |x - x'| <= sup |grad f - grad f'| / curvature.

One record changes the gradient by its Lipschitz constant (add-remove) or twice that (replace-one), the certified solver
adds its tolerance in either world. Rounds compose adaptively; with GammaNormNoise each is purely private, with
GaussianNoise they are Gaussian mechanisms. Neither smoothness nor strong convexity of the regularizer, both of which
the paper assumes, is needed. The paper bounds one round of one node; here all rounds are charged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.distributed_admm import ExactNode, check_local_problem, curvatures, give_example
from consenso.algorithms.shape import Example, Source, require_positive
from consenso.losses import require_lipschitz
from consenso.privacy.noise import GammaNormNoise
from consenso.privacy.release import Bounds, Release
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts


@dataclass(frozen=True, kw_only=True)
class PrimalPerturbation(ExactNode):
    """Distributed ADMM with noise on the models."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="002", algorithm="PVP of Figure 3", names=("PVP", "primal variable perturbation")),
    )

    penalty: float = 1.0
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, tolerance=self.tolerance)

    def check(self, spec: RunSpec) -> None:
        """The minimiser moves as far as the gradient can, so the gradient must be bounded."""
        check_local_problem(self, self.penalty, spec)
        require_lipschitz(spec.facts.problem.loss, spec.facts.problem.row_bound, "PrimalPerturbation")

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The minimiser. A node without records keeps its place in the graph, and its minimiser is then public."""
        curvature = curvatures(self.penalty, facts)
        with np.errstate(divide="ignore"):  # without neighbours and strong convexity nothing is bounded
            record, party = facts.record_prox_lipschitz / curvature, facts.lipschitz / curvature
        return (
            Release(
                name="model",
                size=facts.dim,
                bounds=Bounds.of_contributions(record=record, party=party, rounding=2 * self.tolerance),
                why="a prox moves by at most the change of the gradient over the curvature "
                "(docs/privacy.md#prox-sensitivity)",
            ),
        )

    @classmethod
    def example(cls) -> Example:
        """Six nodes of unequal sizes and degrees, logistic loss."""
        return give_example(cls(penalty=0.05), GammaNormNoise(multiplier=1.0)).vary({"penalty": 0.5, "tolerance": 1e-9})
