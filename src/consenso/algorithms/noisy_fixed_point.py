"""The noisy fixed-point iteration, on blocks (Cyffers, Bellet and Basu 2023, Algorithm 1).

    u_b <- u_b + relaxation_k (R_b(u) - u_b + error_{k,b} + noise)          for the blocks b that act in round k

    party i:   G_i = sum over its records of the part that R takes from each, on the active coordinates
    hub:       G   = noisy sum of G_i,   mean = G / (rate * records)
               u_b <- u_b + relaxation_k (R_b(u; mean) - u_b + error_{k,b})

    paper       code               what it is
    R           operator           non-expansive; sees the data through one mean over records of bounded parts
    u           hub.u              the model
    lambda_k    relaxation         in (0, 1], a number or a public sequence
    rho_{k,b}   activation         which blocks act: all, in a cycle, a random one, each with a probability
    e_k         errors             a public sequence of bounded size, for the theory
    eta         noise              drawn on the sum of the parts; in R it is step/(rate * records) times as large

With one block, R(u) = u - (2/smoothness) grad f(u) and relaxation = step * smoothness / 2 this is DP-SGD of that step
(the paper's Proposition 1, `DPSGD`), and with one coordinate a block it is DP-CD (Proposition 2, `DPCD`). Consensus
ADMM is the same iteration with the parties as blocks (`ConsensusADMM`).

Remarks. The noise is scaled to what one record (user) can do to the sum, so the sensitivity is that of the sum and not
of R, and it does not depend on the step. With a regularizer the noise passes through its prox, which does not expand.
The relaxation of the paper's utility theorem is not usable (`consenso.theory` has the bound that holds). Parties keep
no state, so sampling them by a fixed size amplifies as it does for sampling without memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from consenso.algorithms.record_sums import Forgetful, check_rate, sample_records, sum_bounds, value_at, without_memory
from consenso.algorithms.shape import PENALTIES, Example, Source
from consenso.arrays import Array, IntArray
from consenso.errors import InputError, PreconditionError
from consenso.operators import (
    Activation,
    AllBlocks,
    CyclicBlocks,
    MeanGradient,
    MeanOperator,
    RandomBlock,
    block_sizes,
    coordinates,
    is_separable,
    public_coins,
)
from consenso.privacy.composition import compose_all
from consenso.privacy.events import Composed, Gaussian, Repeated
from consenso.privacy.noise import Constant, PerRound, Polynomial
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser, declare_public
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.privacy.theorems.blocks import BlocksInTurn
from consenso.public_facts import PublicFacts
from consenso.schedules import Everyone, FixedSubset, PoissonSubset
from consenso.shards import Cohort


class ErrorSequence(Protocol):
    """A public sequence of errors."""

    @property
    def size(self) -> float:
        """Bound on the 2-norm of each."""
        ...

    def at(self, round_: int, dim: int) -> Array:
        """The error of a round, (dim,)."""
        ...


@dataclass(frozen=True)
class NoErrors:
    """The operator is evaluated exactly."""

    size: ClassVar[float] = 0.0

    def at(self, round_: int, dim: int) -> Array:
        return np.zeros(dim)


@dataclass(frozen=True, kw_only=True)
class RandomErrors:
    """Uniform directions of a fixed length, from public coins."""

    size: float
    seed: int = 0

    def at(self, round_: int, dim: int) -> Array:
        """A vector of length `size`."""
        direction = public_coins(self.seed, round_).standard_normal(dim)
        error: Array = self.size * direction / np.linalg.norm(direction)
        return error


@dataclass(frozen=True)
class Hub:
    """The point that the operator is applied to."""

    u: Array


@dataclass(frozen=True)
class Up:
    """A party's share of the sum, on the active coordinates."""

    parts: Released


@dataclass(frozen=True, kw_only=True)
class NoisyFixedPoint:
    """Noisy iterations of an operator that sees the data through a mean over records.

    blocks: how many equal blocks, or their sizes. rate: Poisson sampling of records, hidden.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(
            paper="000",
            algorithm="Algorithm 1",
            names=("000-1", "noisy fixed point", "private fixed-point iteration"),
        ),
    )

    operator: MeanOperator
    blocks: int | tuple[int, ...] = 1
    activation: Activation = AllBlocks()  # noqa: RUF009 - frozen
    relaxation: float | Constant | Polynomial | PerRound = 1.0
    errors: ErrorSequence = NoErrors()
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_rate(self, self.rate)

    def check(self, spec: RunSpec) -> None:
        """A bounded, non-expansive operator; blocks that fit; a relaxation that averages."""
        problem = spec.facts.problem
        self.operator.check(problem)
        sizes = block_sizes("NoisyFixedPoint", self.blocks, problem.dim)
        if not is_separable(problem.regularizer, sizes):
            raise InputError(
                f"NoisyFixedPoint(blocks={self.blocks}): the prox of {problem.regularizer!r} does not fall apart into "
                "these blocks; use blocks=1."
            )
        for round_ in range(spec.rounds):
            value = value_at(self.relaxation, round_)
            if not 0 < value <= 1:
                raise InputError(
                    f"NoisyFixedPoint(relaxation={self.relaxation}): it is {value} in round {round_} and must lie in "
                    "(0, 1]; use 1 for the operator itself."
                )

    def active(self, facts: PublicFacts) -> IntArray:
        """Coordinates of the blocks that act in this round."""
        sizes = block_sizes("NoisyFixedPoint", self.blocks, facts.dim)
        # The number of the round is not read where it plays no part: equal rounds are then declared together.
        round_ = 0 if isinstance(self.activation, AllBlocks) else facts.round
        return coordinates(sizes, self.activation.active(round_, len(sizes)))

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The sum of the records' parts on the active coordinates; nothing in a round in which no block acts."""
        size = len(self.active(facts))
        if size == 0:
            return ()
        return (
            Release(
                name="parts",
                size=size,
                at="sum",
                rate=self.rate,
                bounds=sum_bounds(facts, self.operator.contribution(facts.problem)),
                why="a record's part is at most the clip or the Lipschitz constant long (docs/privacy.md#conventions)",
            ),
        )

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """Sampling without replacement amplifies, since no party remembers anything; blocks in turn share a row."""
        yield from without_memory(spec, query, self.releases)
        if self.blocks != 1 and self.rate == 1 and isinstance(spec.schedule, Everyone):
            yield lambda: self._in_turn(spec, query)

    def _in_turn(self, spec: RunSpec, query: PrivacyQuery) -> Theorem:
        """The costliest round's event, as often as the busiest block acts."""
        problem, facts = spec.facts.problem, spec.facts.only(np.array([query.party], dtype=np.int64))
        composed = compose_all(spec, query, self.releases).event()
        parts = composed.events if isinstance(composed, Composed) else (composed,)
        uses = [(part.event, part.count) if isinstance(part, Repeated) else (part, 1) for part in parts]
        events = [event for event, _ in uses if isinstance(event, Gaussian)]
        if len(events) < len(uses):
            raise PreconditionError("BlocksInTurn: noise is not Gaussian; use Gaussian noise, or composition.")
        # Less noise and more rounding than there are in the other rounds cost more, not less.
        rounds, std = sum(times for _, times in uses), min(event.std for event in events)
        moves, excess = max(event.sensitivity for event in events), max(event.excess for event in events)
        count = len(block_sizes("NoisyFixedPoint", self.blocks, problem.dim))
        acts = np.bincount(
            np.concatenate([self.activation.active(round_, count) for round_ in range(spec.rounds)]), minlength=count
        )
        one = self.operator.contribution(problem) * problem.weight_bound * float(facts.scales[0])
        whole = one * (1 if query.unit == "record" else float(facts.most[0]))
        moved = whole * (2 if query.adjacency == "replace-one" else 1)
        return BlocksInTurn(
            sensitivity=moved,
            rounding=moves - moved,
            std=std,
            rounds=rounds,
            acts=int(acts.max()),
            excess=rounds * excess,
            outputs=problem.outputs,
            adjacency=query.adjacency,
            unit=query.unit,
        )

    def start(self, facts: PublicFacts) -> Hub:
        return Hub(u=np.zeros(facts.dim))

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Hub) -> Hub:
        return hub

    def local(
        self, facts: PublicFacts, down: Hub, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        """Sums of the parts of each party's records."""
        active = self.active(facts)
        if len(active) == 0:
            return state, Up(parts=declare_public(np.zeros((len(facts.cohort), 0))))
        coefficients = sample_records(self.operator.coefficients(down.u, f), f, release, "parts", self.rate)
        sums = f.rmatvec(coefficients)[:, active] * facts.scales[:, None]
        return state, Up(parts=release("parts", sums))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """The public half of the operator, relaxed, on the active blocks."""
        active = self.active(facts)
        # Axes in front of the last one are runs that are taken together, as the audit does.
        mean, moved = np.zeros_like(hub.u), hub.u.copy()
        mean[..., active] = total.parts / (self.rate * facts.expected_parties)
        target = self.operator.apply(facts.problem, hub.u, mean) + self.errors.at(facts.round, facts.dim)
        moved[..., active] += value_at(self.relaxation, facts.round) * (target - hub.u)[..., active]
        return Hub(u=moved)

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.u

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss, three blocks in a cycle."""
        return Example(
            algorithm=cls(
                operator=MeanGradient(step=2.0, clip=0.6), blocks=3, activation=CyclicBlocks(), relaxation=0.8
            ),
            schedules=(Everyone(), PoissonSubset(0.5), FixedSubset(2)),
            trusts=("curator", "secure-sum", "local"),
            exact=cls(operator=MeanGradient(step=4.0), blocks=3, activation=CyclicBlocks()),
            exact_rounds=600,
            regularizers=PENALTIES,
        ).vary(
            {"operator": MeanGradient(step=0.5), "blocks": 1, "relaxation": 1.0},
            {"activation": RandomBlock(), "errors": RandomErrors(size=0.1)},
            {"rate": 0.5},
        )
