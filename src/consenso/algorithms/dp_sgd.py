"""DP-SGD, proximal (Song, Chaudhuri and Sarwate 2013; Bassily, Smith and Thakurta 2014; Abadi et al. 2016).

    S   = each record with probability rate, independently, hidden
    G   = sum over S of shortened(grad phi_i(u), clip) + noise
    u  <- prox_{step_k r}(u - step_k G / (rate * records))

    symbol   code         what it is
    C        clip         2-norm to which the gradient of each record is shortened; without it, the Lipschitz constant
    eta_k    step         a number or a public sequence
    q        rate         of the Poisson sample; the sum is divided by rate * records, never by the size of the sample
    sigma    multiplier   of the noise, times clip (add-remove) or twice the clip (replace-one)

It is Algorithm 1 of Cyffers, Bellet and Basu 2023 with one block, R(u) = u - (2/smoothness) grad f(u) and relaxation
step * smoothness / 2 (their Proposition 1): `NoisyFixedPoint` gives the same iterates. The guarantee needs neither
convexity nor a short step, so none is asked for here.

Remarks. Shuffled or fixed-size batches, as most code draws them, do not have the guarantee of Poisson samples.
Shortening the *sum* of a batch instead of each record's gradient bounds nothing that a record does below that length.
Gradients of losses of a margin are slope times row: they are shortened by their slopes, and no records x features array
is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.record_sums import Forgetful, check_rate, sample_records, sum_bounds, value_at, without_memory
from consenso.algorithms.shape import PENALTIES, Example, Source, require_positive
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import require_lipschitz
from consenso.operators import gradient_bound, shorten_slopes
from consenso.privacy.noise import Constant, PerRound, Polynomial
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.public_facts import PublicFacts
from consenso.regularizers import Ball, GroupL1
from consenso.schedules import Everyone, FixedSubset, PoissonSubset
from consenso.shards import Cohort


@dataclass(frozen=True)
class Hub:
    """The iterate, and the sum of the late ones."""

    u: Array
    total: Array
    late: int  # how many there are in the sum

    @classmethod
    def start(cls, u: Array) -> Hub:
        return cls(u=u, total=np.zeros_like(u), late=0)

    def follow(self, u: Array, late: bool) -> Hub:
        """The hub with the iterate of one more round."""
        return Hub(u=u, total=self.total + late * u, late=self.late + late)

    @property
    def model(self) -> Array:
        """The last iterate, or the average of the late ones."""
        return self.total / self.late if self.late else self.u


@dataclass(frozen=True)
class Down:
    """What every party hears."""

    u: Array


@dataclass(frozen=True)
class Up:
    """A party's share of the gradient sum."""

    gradient: Released


@dataclass(frozen=True, kw_only=True)
class DPSGD:
    """Noisy, Poisson-sampled, proximal gradient steps. `averaging`: the share of the last iterates that is averaged."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(
            paper="000",
            algorithm="Proposition 1",
            names=("DP-SGD", "dp_sgd", "DP-GD", "proximal DP-SGD", "noisy SGD"),
        ),
    )

    step: float | Constant | Polynomial | PerRound = 1.0
    clip: float | None = None
    rate: float = 1.0
    averaging: float = 0.0

    def __post_init__(self) -> None:
        check_rate(self, self.rate)
        require_positive(self, clip=self.clip, step=self.step)
        check_averaging(self, self.averaging)

    @property
    def takes_weights(self) -> bool:
        """Whether rows may have weights: coins of rows are not those of units."""
        return self.rate == 1

    def check(self, spec: RunSpec) -> None:
        """Without a clip the gradients are bounded by the Lipschitz constant only."""
        problem = spec.facts.problem
        if self.clip is None:
            require_lipschitz(problem.loss, problem.row_bound, "DPSGD without clip")

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The sum of shortened gradients."""
        return (
            Release(
                name="gradient",
                size=facts.dim,
                at="sum",
                rate=self.rate,
                bounds=sum_bounds(facts, gradient_bound(facts.problem, self.clip)),
                why="the gradient of each record is shortened, or bounded by its loss (docs/privacy.md#conventions)",
            ),
        )

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """Sampling without replacement amplifies, since no party remembers anything."""
        return without_memory(spec, query, self.releases)

    def start(self, facts: PublicFacts) -> Hub:
        return Hub.start(np.zeros(facts.dim))

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        return Down(u=hub.u)

    def local(
        self, facts: PublicFacts, down: Down, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        """Sums of shortened gradients of sampled records."""
        coefficients = shorten_slopes(f.slopes(f.linear_predictor(down.u)), f.squared_norms, self.clip)
        sums = (
            f.rmatvec(f.weigh(sample_records(coefficients, f, release, "gradient", self.rate))) * facts.scales[:, None]
        )
        return state, Up(gradient=release("gradient", sums))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """A proximal step; the sum is divided by a public number."""
        step = value_at(self.step, facts.round)
        mean = total.gradient / (self.rate * facts.expected_parties)
        u = facts.problem.regularizer.prox(hub.u - step * mean, step)
        return hub.follow(u, is_late(facts, self.averaging))

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.model

    @classmethod
    def example(cls) -> Example:
        """Six parties of five records, logistic loss, half of the records a round."""
        return Example(
            algorithm=cls(step=1.0, clip=0.6, rate=0.5, averaging=0.5),
            schedules=(Everyone(), PoissonSubset(0.5), FixedSubset(2)),
            trusts=("curator", "secure-sum", "local"),
            exact=cls(step=4.0),
            exact_rounds=300,
            regularizers=(*PENALTIES, Ball(radius=0.7), GroupL1(strength=0.02, groups=3)),
        ).vary(
            {"rate": 1.0, "clip": None, "averaging": 0.0},
            {"rate": 1.0, "step": 0.3},
        )


def check_averaging(owner: object, averaging: float) -> None:
    """A share of the rounds."""
    if not 0 <= averaging <= 1:
        raise InputError(
            f"{type(owner).__name__}(averaging={averaging}): a share of the rounds lies in [0, 1]; 0 keeps the last."
        )


def is_late(facts: PublicFacts, averaging: float) -> bool:
    """Whether the iterate of this round is among the averaged ones; the last one always is."""
    return facts.round >= facts.rounds - max(1, round(averaging * facts.rounds))
