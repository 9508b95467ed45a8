"""A token on a random walk whose network guarantee is provable (docs/privacy.md, "Random walk").

    visited party l:   r  = prox_{step f_l}(z) - z + noise
    token:             z <- prox_{t r}(z + t/step * r),      t = 2 relaxation step / n

    symbol   code         what it is
    z        hub.z        the token, the only state there is
    gamma    step         parameter of the party's prox
    lambda   relaxation   at most n: a visit is then non-expansive

Algorithm 4 of Cyffers, Bellet and Basu 2023 keeps a state at each party, which re-emits what earlier visitors left in
it; its Theorem 4 is false as printed. Without states the only memory is z, the visit is non-expansive and
amplification by iteration applies. The price is a bias: the walk minimises the average Moreau envelope of the f_l,
which is below f by at most step/2 times the squared Lipschitz constant. The regularizer's prox takes the step that
the loss really makes, t, and not `step`: with the latter the walk would weigh the regularizer n/(2 relaxation) times
too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.record_sums import Forgetful
from consenso.algorithms.shape import CompiledRounds, Example, SingleRecords, Source, require_positive, small_problem
from consenso.arrays import Array, IntArray
from consenso.errors import InputError, PreconditionError
from consenso.losses import require_lipschitz, require_step
from consenso.privacy.observers import Coalition, Peer, Public
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, gaussian_draws, insiders
from consenso.privacy.theorems import Theorem
from consenso.privacy.theorems.walk import WalkWithoutStates
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2
from consenso.regularizers.formulas import compile_prox
from consenso.schedules import RandomWalk
from consenso.shards import Cohort
from consenso.subproblems import certify


@dataclass(frozen=True)
class Token:
    """The model, which is all that travels."""

    z: Array


@dataclass(frozen=True)
class Up:
    """What a visit adds to the token, before the step is taken."""

    residual: Released


@dataclass(frozen=True, kw_only=True)
class StatelessWalk:
    """Noisy proximal steps of the parties that a uniform walk visits."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="000", algorithm="Algorithm 4, sound", names=("stateless walk", "random-walk ADMM")),
    )

    step: float = 1.0
    relaxation: float = 0.5
    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        require_positive(self, step=self.step, relaxation=self.relaxation, tolerance=self.tolerance)

    def check(self, spec: RunSpec) -> None:
        """A walk, Lipschitz losses, a non-expansive visit."""
        problem = spec.facts.problem
        require_lipschitz(problem.loss, problem.row_bound, "StatelessWalk")
        require_step(self.step * float(problem.scales.max()), problem.row_bound, f"StatelessWalk(step={self.step})")
        if spec.rounds and not isinstance(spec.schedule, RandomWalk):
            raise InputError(
                f"StatelessWalk(schedule={spec.schedule!r}): one party a round on a random walk; use RandomWalk()."
            )
        if self.relaxation > spec.parties:
            raise InputError(
                f"StatelessWalk(relaxation={self.relaxation}): at most the number of parties, {spec.parties}."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The residual of one prox."""
        return (
            Release(
                name="residual",
                size=facts.dim,
                bounds=Bounds.of_contributions(
                    record=self.step * facts.record_prox_lipschitz,
                    party=self.step * facts.lipschitz,
                    rounding=2 * self.tolerance,
                ),
                why="prox_{step f}(z) - z is step times a Lipschitz gradient (docs/privacy.md#prox-sensitivity)",
            ),
        )

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """The network guarantee, for parties on a uniform walk and for whoever sees the final model."""
        if query.adjacency != "replace-one" or not isinstance(query.observer, Peer | Coalition | Public):
            return

        def walk() -> Theorem:
            if not spec.facts.proxes_end:
                raise PreconditionError(
                    f"StatelessWalk: the network guarantee needs everybody's proxes to be exact, and for the kinks of "
                    f"{spec.facts.problem.loss!r} no solver is proved to certify them; use a smooth loss."
                )
            if spec.schedule != RandomWalk():
                raise PreconditionError(
                    "StatelessWalk: the network guarantee is proved for a uniform next party; use RandomWalk() without "
                    "a topology."
                )
            drawn = gaussian_draws(spec, self.releases, "residual")
            return WalkWithoutStates(
                parties=spec.parties,
                steps=spec.rounds,
                step=self.step,
                lipschitz=float(spec.facts.problem.lipschitz[query.party]),
                relaxation=self.relaxation,
                std=2 * drawn.std,
                observers=insiders(spec, query),
                final_model=True,
                tolerance=self.tolerance + drawn.rounding,
                excess=spec.rounds * drawn.excess,
                unit=query.unit,
            )

        yield walk

    def start(self, facts: PublicFacts) -> Token:
        return Token(z=np.zeros(facts.dim))

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Token) -> Token:
        return hub

    def local(
        self, facts: PublicFacts, down: Token, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        """One noisy prox residual."""
        start = np.broadcast_to(down.z, (len(facts.cohort), facts.dim))
        f.check_points(start, self.step, self.tolerance, "StatelessWalk")
        x = certify(f.prox(start, self.step, self.tolerance), self.tolerance, "StatelessWalk")
        return state, Up(residual=release("residual", x - down.z))

    def combine(self, facts: PublicFacts, hub: Token, total: Up) -> Token:
        """A small step towards the visited party's prox, then the regularizer's."""
        share = 2 * self.relaxation / facts.parties
        return Token(z=facts.problem.regularizer.prox(hub.z + share * total.residual, share * self.step))

    def compile_rounds(self, facts: PublicFacts, records: SingleRecords) -> CompiledRounds:
        """Walks, with every regularizer that brings a formula."""
        from consenso.algorithms.kernels.records import take_records
        from consenso.algorithms.kernels.stateless_walk import visits
        from consenso.kernels.compiled import hold

        share = 2 * self.relaxation / facts.parties
        taken = take_records(records, facts.problem, self.step, float(self.tolerance))
        prox = compile_prox(facts.problem.regularizer, share * self.step)
        if taken is None or prox is None:
            return CompiledRounds()
        visit = hold(visits, *taken, prox, float(self.tolerance), share)

        def walk(hub: Token, state: Forgetful, path: IntArray, scales: Array, noise: Array) -> tuple[Token, int]:
            z = hub.z.copy()
            done: int = visit(path, scales, noise, z)
            return Token(z=z), done

        return CompiledRounds(walk=walk)

    def model(self, facts: PublicFacts, hub: Token) -> Array:
        return hub.z

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss. Its bias is of the order of the step, so the step is small."""
        return Example(
            algorithm=cls(step=0.5),
            problem=small_problem(L2(strength=0.5), unit="party"),
            schedules=(RandomWalk(),),
            trusts=("local",),
            exact=cls(step=0.05),
            exact_rounds=1500,
            exact_tolerance=2e-3,
        ).vary(
            {"step": 0.2, "tolerance": 1e-11},
            {"relaxation": 0.8},
        )
