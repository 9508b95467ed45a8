"""Consensus ADMM with the noise added once, to the sum over parties, and noiseless private states.

A party's state is a deterministic function of its data, its own coins and what was released. With the same releases the
two worlds' states stay within a bounded gap of each other: e <- (1 - 2 relaxation) e - 2 relaxation step (s - s'). The
three variants release different things of that state. `std` is always the noise on the SUM over parties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.privacy.oracles.gaps import removal_gap, residual_bound

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, repeat
from consenso.privacy.theorems.inexact import prox_gap
from consenso.privacy.theorems.preconditions import (
    require,
    require_count,
    require_lipschitz_constant,
    require_not_negative,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


def state_growth(relaxation: float) -> float:
    """Largest norm that t <- (1 - 2 relaxation) t - 2 relaxation g reaches from 0 while |g| <= 1."""
    return 1.0 if relaxation <= 0.5 else relaxation / (1 - relaxation)


@dataclass(frozen=True, kw_only=True)
class IncrementalSums:
    """Incremental: the sum of 2 relaxation (x_i - z), clipped to norm 2 relaxation clip where a clip is given.

    The released means are the states' mean plus a random walk of noise: sound, but not for many rounds. A removed party
    has no records and still answers.
    """

    citation: ClassVar[str] = "Variant A of this library, after Cyffers, Bellet and Basu 2023, Algorithm 3"
    section: ClassVar[str] = "clean-variants"

    relaxation: float
    std: float
    rounds: int
    step: float | None = None
    lipschitz: float | None = None
    clip: float | None = None
    tolerance: float = 0.0
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"

    def __post_init__(self) -> None:
        _check("IncrementalSums", self)
        _check_relaxation("IncrementalSums", self.relaxation)
        require(
            self.lipschitz is None or self.clip is None,
            "IncrementalSums(lipschitz=..., clip=...): clipped displacements enter the state, where the "
            "Lipschitz argument "
            "ends; give one of the two.",
        )

    @property
    def sensitivity(self) -> float:
        """How far one party can move the sum."""
        if self.clip is not None:
            return 4 * self.relaxation * self.clip
        gap = prox_gap if self.adjacency == "replace-one" else removal_gap
        own = gap(step=self.step or 0.0, lipschitz=self.lipschitz or 0.0, tolerance=self.tolerance)
        return 2 * self.relaxation * (state_growth(self.relaxation) * own + own)

    def event(self) -> Event:
        """One Gaussian mechanism per round."""
        return repeat(Gaussian(self.std, self.sensitivity), self.rounds)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Private noiseless states; convexity where the Lipschitz constant is used."""
        return _assumptions(self.lipschitz)


@dataclass(frozen=True, kw_only=True)
class StateSums:
    """Absolute: the sum of all states u_i, every party in every round.

    `clip` stands for the dual clipping t_i <- (1 - 2 relaxation) t_i - 2 relaxation Clip(., clip), which needs neither
    convexity nor a Lipschitz constant. Add-remove counts u_i minus the public part that every state contains.
    """

    citation: ClassVar[str] = "Variant B of this library, after Cyffers, Bellet and Basu 2023, Algorithm 2"
    section: ClassVar[str] = "clean-variants"

    relaxation: float
    std: float
    rounds: int
    step: float | None = None
    lipschitz: float | None = None
    clip: float | None = None
    tolerance: float = 0.0
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"

    def __post_init__(self) -> None:
        _check("StateSums", self)
        _check_relaxation("StateSums", self.relaxation)
        require(
            self.lipschitz is None or self.clip is None,
            "StateSums(lipschitz=..., clip=...): the state is driven by clipped duals or by unclipped ones; give one "
            "of the two.",
        )

    @property
    def sensitivity(self) -> float:
        """How far one party can move the sum."""
        own = self.clip if self.clip is not None else _residual(self)
        return state_growth(self.relaxation) * own * _worlds(self.adjacency)

    def event(self) -> Event:
        """One Gaussian mechanism per round."""
        return repeat(Gaussian(self.std, self.sensitivity), self.rounds)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Private noiseless states, all of them in every sum."""
        everyone = Assumption(
            "Every party contributes its state in every round, so sampling amplifies nothing.",
            "clean-variants",
        )
        public = Assumption(
            "What is released is the sum of u_i minus the public part Ubar <- (1 - 2 relaxation) Ubar + 2 relaxation "
            "z.",
            "clean-variants",
        )
        extra = (everyone, public) if self.adjacency == "add-remove" else (everyone,)
        return (*extra, *_assumptions(self.lipschitz))


@dataclass(frozen=True, kw_only=True)
class DualSums:
    """Dual: the sum of g_i = 2 z - u_i - x_i, which is step times a subgradient, clipped to `clip` where one is given.

    A clip of step times lipschitz never acts on an L-Lipschitz loss. The contribution itself is bounded, so this is the
    variant that Poisson sampling amplifies: see PoissonSampledSums with `contribution`.
    """

    citation: ClassVar[str] = "Variant C of this library, after Cyffers, Bellet and Basu 2023, Algorithm 3"
    section: ClassVar[str] = "clean-variants"

    std: float
    rounds: int
    step: float | None = None
    lipschitz: float | None = None
    clip: float | None = None
    tolerance: float = 0.0
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"

    def __post_init__(self) -> None:
        _check("DualSums", self)

    @property
    def contribution(self) -> float:
        """Largest norm of one party's contribution."""
        bounds = [self.clip] if self.clip is not None else []
        return min([*bounds, _residual(self)] if self.lipschitz is not None else bounds)

    @property
    def sensitivity(self) -> float:
        """How far one party can move the sum."""
        return self.contribution * _worlds(self.adjacency)

    def event(self) -> Event:
        """One Gaussian mechanism per round."""
        return repeat(Gaussian(self.std, self.sensitivity), self.rounds)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Private noiseless states; a clipped contribution needs nothing else."""
        return _assumptions(None if self.clip is not None else self.lipschitz)


def _worlds(adjacency: Adjacency) -> int:
    """Removing takes one contribution away, replacing moves it to its opposite at worst."""
    return 1 if adjacency == "add-remove" else 2


def _residual(variant: StateSums | DualSums) -> float:
    step, lipschitz = variant.step or 0.0, variant.lipschitz or 0.0
    return residual_bound(step=step, lipschitz=lipschitz, tolerance=variant.tolerance)


def _check(name: str, variant: IncrementalSums | StateSums | DualSums) -> None:
    require_count(name, rounds=variant.rounds)
    require_positive(name, std=variant.std)
    require_not_negative(name, tolerance=variant.tolerance)
    require(
        variant.lipschitz is not None or variant.clip is not None,
        f"{name}(lipschitz=None, clip=None): a contribution must be bounded; give a Lipschitz constant or a clip "
        "radius.",
    )
    if variant.clip is not None:
        require_positive(name, clip=variant.clip)
    if variant.lipschitz is not None:
        require_lipschitz_constant(name, variant.lipschitz)
        require(
            variant.step is not None,
            f"{name}(step=None): a Lipschitz constant bounds the contribution through the step of the prox; give the "
            "step that the prox really uses.",
        )
        require_positive(name, step=variant.step or 0.0)


def _check_relaxation(name: str, relaxation: float) -> None:
    require(
        0 < relaxation < 1,
        f"{name}(relaxation={relaxation}): the relaxation must lie strictly between 0 and 1, at 1 the states of two "
        "worlds drift apart without bound; lower it or use DualSums.",
    )


def _assumptions(lipschitz: float | None) -> tuple[Assumption, ...]:
    states = Assumption(
        "A party's state is a function of its own data and coins and of what was released; no noise is kept in it.",
        "clean-variants",
    )
    if lipschitz is None:
        return (states, *GAUSSIAN_RUN)
    return (
        states,
        Assumption("The party's loss is convex and Lipschitz with the stated constant.", "prox-sensitivity"),
        Assumption("The prox is solved to within the stated tolerance, with a certificate.", "inexact-subproblems"),
        *GAUSSIAN_RUN,
    )
