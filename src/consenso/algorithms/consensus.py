"""Consensus ADMM with the noise kept in each party's state (Cyffers, Bellet and Basu 2023, Algorithms 2, 3, 4 and 6).

    party i:   x_i   = prox_{step f_i}(2 z - u_i)
               D_i   = 2 relaxation (x_i - z + noise),      u_i <- u_i + D_i
    hub:       mean <- mean + (1/n) sum over the parties of the round of D_i
               z     = prox_{step r}(mean)

    paper    code         what it is
    u_i      state.u      party i's auxiliary variable; its noise stays in it
    zhat     hub.mean     the mean of all u_i
    z        hub.z        the model
    gamma    step         parameter really used inside both proxes
    lambda   relaxation   averaging of the operator
    eta      2 * noise    the paper writes lambda*eta where this file adds 2*relaxation*noise

Everyone in every round is the centralized Algorithm 2 (when a curator runs it) and Algorithm 3 with m = n; a sampled
schedule is Algorithm 3; a walk is Algorithm 4. With the squared loss, an L1 penalty and a curator it is Algorithm 6,
which is centralized.

Read the paper with care: its recursion zhat <- z + mean(D) is right only without a regularizer (with one it converges
to a minimiser of the regularizer alone); Algorithm 6 mixes two conventions for the step; the central bounds of
Theorems 2 and 3 are false as printed (Theorem 2 holds for the prox of (step/n) f_i). The mean starts at the mean of the
u_i: any other start is a bias that never leaves. At relaxation 1, which the paper allows, the iteration may go round
without strong convexity, and means are no better protected than messages: every participation is accounted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from consenso.algorithms.shape import (
    PENALTIES,
    CompiledRounds,
    Example,
    NoiseDraw,
    SingleRecords,
    Source,
    require_positive,
    small_problem,
)
from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.losses import require_lipschitz, require_step
from consenso.privacy.composition import sight
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, gaussian_draws, insiders
from consenso.privacy.theorems import Theorem
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates
from consenso.public_facts import PublicFacts
from consenso.regularizers.formulas import compile_prox
from consenso.schedules import Everyone, FixedSubset, PoissonSubset, RandomWalk
from consenso.shards import Cohort
from consenso.subproblems import certify

# Parties that one thread takes at a time: a part of a millisecond for rows of a hundred features.
PIECE = 1 << 11
MACHINE = 1e-14  # a prox certified to this is as exact as the numbers are


@dataclass(frozen=True)
class Hub:
    """What the hub keeps: the mean is kept apart from z, which is not it when there is a regularizer."""

    mean: Array
    z: Array


@dataclass(frozen=True)
class Down:
    """What every party of a round hears."""

    z: Array


@dataclass(frozen=True)
class State:
    """What a party keeps."""

    u: Array


@dataclass(frozen=True)
class Up:
    """What a party sends."""

    increment: Released


@dataclass(frozen=True, kw_only=True)
class ConsensusADMM:
    """Noisy consensus ADMM; `clip` bounds the residual x - z where the losses are not Lipschitz."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="000", algorithm="Algorithm 2", names=("000-2", "centralized private ADMM")),
        Source(paper="000", algorithm="Algorithm 3", names=("000-3", "federated private ADMM")),
        Source(paper="000", algorithm="Algorithm 4", names=("000-4", "fully decentralized private ADMM")),
        Source(paper="000", algorithm="Algorithm 6", names=("000-6", "private ADMM for the lasso")),
    )

    step: float = 1.0
    relaxation: float = 0.5
    clip: float | None = None
    tolerance: float = 1e-10

    def __post_init__(self) -> None:
        require_positive(self, step=self.step, tolerance=self.tolerance, clip=self.clip)
        if not 0 < self.relaxation <= 1:
            raise InputError(f"ConsensusADMM(relaxation={self.relaxation}): the relaxation lies in (0, 1]; try 0.5.")

    def check(self, spec: RunSpec) -> None:
        """Without a clip the residual is bounded by the Lipschitz constant only."""
        problem = spec.facts.problem
        require_step(self.step * float(problem.scales.max()), problem.row_bound, f"ConsensusADMM(step={self.step})")
        if self.clip is None:
            require_lipschitz(problem.loss, problem.row_bound, "ConsensusADMM without clip")

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The residual x - z. The state is public to whoever sees every message: a record counts for its part.

        A party without records still answers: its prox is the identity, and z - u may be as long as the clip.
        """
        slack = 2 * self.tolerance
        one, all_of_them = self.step * facts.record_prox_lipschitz, self.step * facts.lipschitz
        clipped = np.inf if self.clip is None else self.clip
        return (
            Release(
                name="residual",
                size=facts.dim,
                clip=self.clip,
                bounds=Bounds(
                    record_add_remove=np.minimum(one + slack, 2 * clipped),
                    record_replace_one=np.minimum(2 * one + slack, 2 * clipped),
                    party_add_remove=np.minimum(all_of_them + slack, 2 * clipped),
                    party_replace_one=np.minimum(2 * all_of_them + slack, 2 * clipped),
                ),
                why="a prox moves by the step times the change of gradient at most (docs/privacy.md#prox-sensitivity)",
            ),
        )

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """Theorem F for whoever sees the means only."""
        if query.adjacency != "replace-one" or self.clip is not None or not isinstance(spec.schedule, Everyone):
            return
        (release,) = spec.remember(self.releases)(spec.facts)
        if sight(spec, query, release) != "sum" or not spec.facts.proxes_end:
            return

        def theorem_f() -> Theorem:
            drawn = gaussian_draws(spec, self.releases, "residual")
            return MeanOfNoisyStates(
                parties=spec.parties,
                colluders=insiders(spec, query),
                step=self.step,
                lipschitz=float(spec.facts.problem.lipschitz[query.party]),
                relaxation=self.relaxation,
                std=2 * drawn.std,  # noise on the residual enters doubled
                rounds=spec.rounds,
                tolerance=(self.tolerance if self.tolerance > MACHINE else 0.0) + drawn.rounding,
                excess=spec.rounds * spec.parties * drawn.excess,
                unit=query.unit,
            )

        yield theorem_f

    def start(self, facts: PublicFacts) -> Hub:
        """Everything at zero, the mean where the states are."""
        zero = np.zeros(facts.dim)
        return Hub(mean=zero, z=facts.problem.regularizer.prox(zero, self.step))

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        return State(u=np.zeros((len(facts.cohort), facts.dim)))

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        return Down(z=hub.z)

    def local(self, facts: PublicFacts, down: Down, state: State, f: Cohort, release: Releaser) -> tuple[State, Up]:
        """One reflected, noisy prox."""
        v = 2 * down.z - state.u
        f.check_points(v, self.step, self.tolerance, "ConsensusADMM")
        x = certify(f.prox(v, self.step, self.tolerance), self.tolerance, "ConsensusADMM")
        x -= down.z  # the residual; a million parties have no room for one more array
        increment = release("residual", x)
        increment *= 2 * self.relaxation
        return State(u=state.u + increment), Up(increment=increment)

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """Move the mean by the sum over n, never over how many took part."""
        mean = hub.mean + total.increment / facts.parties
        return Hub(mean=mean, z=facts.problem.regularizer.prox(mean, self.step))

    def compile_rounds(self, facts: PublicFacts, records: SingleRecords) -> CompiledRounds:
        """Walks with every regularizer that brings a formula, and rounds of many parties with all of them."""
        from consenso.algorithms.kernels import consensus as kernels
        from consenso.algorithms.kernels.records import take_records
        from consenso.kernels.compiled import hold, run_pieces

        taken = take_records(records, facts.problem, self.step, float(self.tolerance))
        if taken is None:
            return CompiledRounds()
        constants = *taken, float(self.tolerance)
        clip, relaxation = np.inf if self.clip is None else float(self.clip), float(self.relaxation)

        def step(down: Down, state: State, cohort: IntArray, noise: NoiseDraw) -> tuple[Up, NDArray[np.bool_]]:
            done, totals = np.empty(len(cohort), dtype=np.bool_), np.zeros((-(-len(cohort) // PIECE), facts.dim))
            given = noise.clip, relaxation, down.z, cohort, noise.scales, noise.key, state.u, done, totals, PIECE
            run_pieces(kernels.cohort, len(cohort), PIECE, *constants, *given)
            return Up(increment=noise.sum(totals)), done

        prox = compile_prox(facts.problem.regularizer, self.step)
        if prox is None:
            return CompiledRounds(cohort=step)
        visit = hold(kernels.walk, *taken, prox, float(self.tolerance), clip, relaxation)

        def walk(hub: Hub, state: State, path: IntArray, scales: Array, noise: Array) -> tuple[Hub, int]:
            mean, z = hub.mean.copy(), hub.z.copy()
            done: int = visit(path, scales, noise, (mean, z), state.u)
            return Hub(mean=mean, z=z), done

        return CompiledRounds(walk=walk, cohort=step)

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.z

    def diagnose(self, facts: PublicFacts, hub: Hub, state: State, f: Cohort) -> dict[str, float]:
        """How far the parties' own models are from the consensus, and the fixed-point residual of the mean."""
        x = f.prox(2 * hub.z - state.u, self.step, self.tolerance).x
        apart = float(np.sqrt(np.mean(np.sum((x - hub.z) ** 2, axis=1))))
        return {"consensus violation": apart, "residual": float(np.linalg.norm((x - hub.z).mean(axis=0)))}

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss."""
        return Example(
            algorithm=cls(step=0.5),
            problem=small_problem(unit="party"),
            schedules=(Everyone(), PoissonSubset(0.5), FixedSubset(2), RandomWalk()),
            trusts=("local", "secure-sum", "curator"),
            exact=cls(step=8.0),
            exact_rounds=150,
            regularizers=PENALTIES,
        ).vary(
            {"clip": 0.1, "step": 3.0, "tolerance": 1e-9},
            {"relaxation": 0.3},
            {"relaxation": 0.8, "step": 1.0, "tolerance": 1e-12},
        )
