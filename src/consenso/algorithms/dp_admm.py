"""DP-ADMM with a server: linearised steps whose output is perturbed (Huang, Hu, Guo, Chan-Tin and Gong 2019).

    min sum_p f_p(x_p) + r(w)   subject to   x_p = w               f_p: party p's part of the mean over all records

    party p:  dual_p <- dual_p - rho (x_p - w)                     with the w that the hub made of the last round
              x_p    <- (rho w + dual_p + x_p / eta_k - grad f_p(x_p)) / (rho + 1/eta_k) + noise
              sends x_p - dual_p / rho
    hub:      w      <- prox_{r/(rho P)}(mean_p (x_p - dual_p / rho))

    paper        code         what it is
    w_i tilde    state.x      a party's noisy copy, the only thing of it that is released; gradients are taken at it
    gamma_i      state.dual   follows from noisy copies
    w            hub.u
    rho          penalty      Huang et al. have P times this, because their f_i is P times f_p
    eta_i^k      proximity    falls like 1/sqrt(k), and with it the noise
    c_1          clip         2-norm to which each record's gradient is shortened; without it, the Lipschitz constant
    sigma_i,k    noise        a multiple of the sensitivity, gap / (rho + 1/eta_k): its variance decreases with eta_k

The baseline "OutP" of Ryu and Kim is this method with the noise standard deviation squared and the constant of one
iteration at an epsilon beyond 1, where it does not hold; here the noise is scaled with the denominator that is really
used and all iterations are composed as Gaussians. The regularizer, which the paper puts into each party's linearised
loss, is in the hub's prox. Noise on a copy is noise on its gradient divided by rho + 1/eta_k: this method and
`InexactADMM(norm=2)` differ in the order of their updates, not in what they release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.dp_sgd import Down, Hub, check_averaging, is_late
from consenso.algorithms.inexact_admm import GrowingPenalty, Sequence, Up, gradient_gaps, penalty_at
from consenso.algorithms.record_sums import value_at
from consenso.algorithms.shape import PENALTIES, Example, Source, require_positive, small_problem
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import require_lipschitz
from consenso.privacy.noise import Constant, LaplaceNoise, Polynomial
from consenso.privacy.release import Release
from consenso.privacy.releaser import Releaser, postprocess
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2
from consenso.schedules import Everyone
from consenso.shards import Cohort


@dataclass(frozen=True)
class State:
    """A party's noisy copy and its dual."""

    x: Array
    dual: Array


@dataclass(frozen=True, kw_only=True)
class DPADMM:
    """DP-ADMM with a server; `averaging` is the share of the last iterates that is averaged."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="003", algorithm="baseline OutP", names=("OutP", "DP-ADMM (server)", "output perturbation ADMM")),
    )

    penalty: float | GrowingPenalty = 2.0
    proximity: Sequence = Polynomial(first=1.0, power=-0.5)  # noqa: RUF009 - frozen
    clip: float | None = None
    averaging: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, proximity=self.proximity, clip=self.clip)
        check_averaging(self, self.averaging)

    def check(self, spec: RunSpec) -> None:
        """Bounded gradients, everybody in every round, noise for the 2-norm."""
        problem = spec.facts.problem
        if self.clip is None:
            require_lipschitz(problem.loss, problem.row_bound, "DPADMM without clip")
        if not isinstance(spec.schedule, Everyone):
            raise InputError(f"DPADMM(schedule={spec.schedule!r}): the consensus is over all parties; use Everyone().")
        if isinstance(spec.noise_for("copy"), LaplaceNoise):
            raise InputError(
                "DPADMM: copies are bounded in the 2-norm; use GaussianNoise, or InexactADMM for Laplace noise."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The party's copy, which moves by the change of its gradient over the denominator of this round."""
        return (
            Release(
                name="copy",
                size=facts.dim,
                bounds=gradient_gaps(facts, 2, clip=self.clip).scale(1 / self._denominator(facts)),
                why="a copy moves by the change of one gradient over penalty + 1/proximity "
                "(docs/privacy.md#conventions)",
            ),
        )

    def start(self, facts: PublicFacts) -> Hub:
        """The regularizer's prox of zero."""
        return Hub.start(self._consensus(facts, np.zeros(facts.dim), 0))

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Copies at the first consensus, duals at zero."""
        x = np.tile(self._consensus(facts, np.zeros(facts.dim), 0), (len(facts.cohort), 1))
        return State(x=x, dual=np.zeros_like(x))

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        return Down(u=hub.u)

    def local(self, facts: PublicFacts, down: Down, state: State, f: Cohort, release: Releaser) -> tuple[State, Up]:
        """The dual of the last round, then a noisy linearised step."""
        dual = state.dual - penalty_at(self.penalty, max(0, facts.round - 1)) * (state.x - down.u)
        penalty, near = penalty_at(self.penalty, facts.round), 1 / value_at(self.proximity, facts.round)
        gradient = f.gradient(state.x) if self.clip is None else f.clipped_gradient(state.x, self.clip)
        step = penalty * down.u + dual + near * state.x - gradient / facts.parties
        x = release("copy", step / self._denominator(facts))
        return State(x=x, dual=dual), Up(point=postprocess(x - dual / penalty, x))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """The mean, then the regularizer."""
        w = self._consensus(facts, total.point / facts.parties, facts.round)
        return hub.follow(w, is_late(facts, self.averaging))

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.model

    def _denominator(self, facts: PublicFacts) -> float:
        # The number of the round is not read where it plays no part: equal rounds are then declared together.
        constant = isinstance(self.penalty, float | int) and isinstance(self.proximity, float | int | Constant)
        round_ = 0 if constant else facts.round
        return penalty_at(self.penalty, round_) + 1 / value_at(self.proximity, round_)

    def _consensus(self, facts: PublicFacts, mean: Array, round_: int) -> Array:
        return facts.problem.regularizer.prox(mean, 1 / (penalty_at(self.penalty, round_) * facts.parties))

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(penalty=0.5, clip=0.7),
            problem=small_problem(L2(strength=0.1)),
            trusts=("local", "curator"),
            exact=cls(penalty=0.02, proximity=40.0),
            exact_rounds=300,
            regularizers=PENALTIES,
        ).vary(
            {"clip": None, "averaging": 0.5},
            {"penalty": 1.0, "proximity": 0.5},
        )
