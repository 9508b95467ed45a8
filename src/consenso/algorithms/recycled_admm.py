"""Recycled ADMM, R-ADMM (Zhang, Khalili and Liu 2018, 2019): every second round costs no privacy.

Rounds are counted from 0; the even ones are noisy, the odd ones (the paper's 2, 4, ...) silent.

    noisy round:   w_i'  = argmin f_i(w) + r(w) + <dual_i + noise, w> + penalty sum_j |w - (w_i + w_j)/2|^2
                   dual_i <- dual_i + penalty sum_j (w_i' - w_j')
    silent round:  w_i'' = argmin <grad + dual_i, w> + proximity/2 |w - w_i'|^2 + penalty sum_j |w - (w_i' + w_j')/2|^2
                   the dual stays

`grad` stands for the gradient of f_i + r at w_i', with the noise of the round before. It is not evaluated again: the
optimality condition of the noisy round says what it is,

    grad = penalty sum_j (w_i + w_j) - 2 penalty d_i w_i' - dual_i        (d_i neighbours, the dual before its step)

so that the silent round is, after the duals have cancelled,

    w_i'' = w_i' + penalty / (2 penalty d_i + proximity) * sum_j (2 w_j' - w_i - w_j).

Every term of it was sent to the neighbours: a silent round is post-processing of released models, declares no release
and costs nothing. That is why noisy rounds perturb the *objective*: with noise on the output the optimality condition
would hold at an un-noised point.

    paper          code               what it is
    f_i(2k-1)      w_i'               model of a noisy round
    f_i(2k)        w_i''              model of a silent round
    2 lambda_i     state.dual         the 2 is in the dual
    eta, gamma     penalty, proximity
    -              state.anchor       d_i w_i + sum_j w_j at the start of the noisy round

Privacy is that of `DualPerturbation` over the noisy rounds: `consenso.privacy.theorems.dual_perturbation`. The paper's
condition for convergence asks for enough proximity; it is not checked, being no privacy matter. Its penalties that grow
over the rounds are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.distributed_admm import State, at_zero, check_local_problem, give_example, listen
from consenso.algorithms.dual_perturbation import (
    check_cover,
    check_perturbation,
    declare_perturbed_releases,
    prove_perturbed_rounds,
    release_perturbed_minimiser,
)
from consenso.algorithms.networked import Message, degrees_of
from consenso.algorithms.shape import Example, Heard, Source, require_positive
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.privacy.noise import GammaNormNoise
from consenso.privacy.release import Release
from consenso.privacy.releaser import Releaser, declare_public
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.public_facts import PublicFacts
from consenso.shards import Cohort


@dataclass(frozen=True)
class RecycledState(State):
    """A node's state; the anchor is what the last noisy round started from."""

    anchor: Array


@dataclass(frozen=True, kw_only=True)
class RecycledADMM:
    """Distributed ADMM that perturbs its objective in even rounds and recycles the result in odd ones."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="002", algorithm="R-ADMM of Figure 3", names=("R-ADMM", "recycled ADMM")),
    )

    penalty: float = 1.0
    proximity: float = 1.0
    tolerance: float = 1e-10
    cover: float = 1e-6

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty)
        check_cover(self, self.tolerance, self.cover)
        if not 0 <= self.proximity < np.inf:
            raise InputError(f"RecycledADMM(proximity={self.proximity}): a proximity is a finite number of at least 0.")

    def check(self, spec: RunSpec) -> None:
        """Bounded, smooth losses of one margin, and noise whose law the theorem knows."""
        check_local_problem(self, self.penalty, spec)
        check_perturbation(self, spec, noisy_rounds(spec.rounds))

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """Those of a perturbed minimisation in noisy rounds, none in silent ones."""
        return declare_perturbed_releases(facts, self.cover) if is_noisy(facts.round) else ()

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        yield lambda: prove_perturbed_rounds(self, spec, query, noisy_rounds(spec.rounds))

    def enroll(self, facts: PublicFacts, f: Cohort) -> RecycledState:
        start = at_zero(facts)
        return RecycledState(w=start.w, heard=start.heard, dual=start.dual, anchor=start.w)

    def local(
        self, facts: PublicFacts, state: RecycledState, f: Cohort, release: Releaser
    ) -> tuple[RecycledState, Message]:
        """A perturbed minimisation, or what follows from the last one."""
        degrees = degrees_of(facts)[:, None]
        if is_noisy(facts.round):
            minimiser = release_perturbed_minimiser(self, facts, state, f, release)
            return replace(state, w=minimiser, anchor=degrees * state.w + state.heard), Message(w=minimiser)
        step = self.penalty / (2 * self.penalty * degrees + self.proximity)
        w = state.w + step * (2 * state.heard - state.anchor)
        return replace(state, w=w), Message(w=declare_public(w))  # from what was said before

    def absorb(self, facts: PublicFacts, state: RecycledState, heard: Heard) -> RecycledState:
        """The dual step, in noisy rounds only."""
        if is_noisy(facts.round):
            return listen(self.penalty, facts, state, heard)
        return replace(state, heard=heard.sum("w"))

    def models(self, facts: PublicFacts, state: RecycledState) -> Array:
        return state.w

    @classmethod
    def example(cls) -> Example:
        """Six nodes of unequal sizes and degrees, logistic loss."""
        return give_example(cls(penalty=0.05, proximity=0.3), GammaNormNoise(multiplier=1.0), exact_rounds=200).vary(
            {"penalty": 1.0, "proximity": 1.0, "tolerance": 1e-9, "cover": 1e-5}
        )


def is_noisy(round_: int) -> bool:
    """Whether a round releases something new."""
    return round_ % 2 == 0


def noisy_rounds(rounds: int) -> list[int]:
    """Those of a run that release something new."""
    return [round_ for round_ in range(rounds) if is_noisy(round_)]
