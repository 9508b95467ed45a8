"""Rounds in which only a sample takes part: what may be claimed depends on who knows the sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from tests.privacy.oracles.rates import require_rate

from consenso.conventions import Unit
from consenso.privacy.events import (
    Adjacency,
    Event,
    Gaussian,
    Sampled,
    compose,
    repeat,
    reveal_coin,
)
from consenso.privacy.observers import Eavesdropper, Observer, Public, Server
from consenso.privacy.theorems.preconditions import (
    per_round,
    require,
    require_count,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption, Theorem


@dataclass(frozen=True, kw_only=True)
class SamplingRevealed:
    """Rounds that cost `released` when the unit takes part and nothing otherwise; the observer may know which.

    Sound for any memory and any sampling law under which the unit takes part with probability `rate`, independently
    over the rounds and of the data.
    """

    citation: ClassVar[str] = "Sampling-revealed bound of this library (conditioning on data-independent coins)"
    section: ClassVar[str] = "sampling-revealed"

    released: Event
    rate: float
    rounds: int
    adjacency: Adjacency
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_rate("SamplingRevealed", rate=self.rate)
        require_count("SamplingRevealed", rounds=self.rounds)

    @classmethod
    def of(cls, theorem: Theorem, *, rate: float, rounds: int) -> SamplingRevealed:
        """Rounds of a theorem that was stated for one participation."""
        return cls(released=theorem.event(), rate=rate, rounds=rounds, adjacency=theorem.adjacency, unit=theorem.unit)

    def event(self) -> Event:
        """A revealed coin per round."""
        return repeat(reveal_coin(self.released, self.rate), self.rounds)

    def assumptions(self) -> tuple[Assumption, ...]:
        """The coins carry no information on the data."""
        return (
            Assumption(
                "Who takes part is drawn independently of the data and afresh in every round.", "sampling-revealed"
            ),
            Assumption("A round in which the unit takes no part releases nothing of its data.", "sampling-revealed"),
            *GAUSSIAN_RUN,
        )


@dataclass(frozen=True, kw_only=True)
class PoissonSampledSums:
    """Poisson sampling amplifies, whatever the parties remember, for an observer who does not know the sample.

    Each party flips a fresh coin of probability `rate` in each round; who is in contributes a vector of norm at most
    `contribution`, any function of its data, own coins and past releases; the sum gets noise `std`. Several releases of
    a round share its coin and are one: `contribution` over `std` is the root of the sum of their squared ratios. The
    last five parameters state facts of the protocol; each of them, set the other way, breaks it and is refused.
    """

    citation: ClassVar[str] = "Theorem P of this library; one round: Mironov, Talwar and Zhang 2019"
    section: ClassVar[str] = "theorem-p"

    rate: float | tuple[float, ...]
    contribution: float | tuple[float, ...]
    std: float | tuple[float, ...]
    rounds: int
    adjacency: Adjacency
    unit: Unit = "party"
    scheme: Literal["poisson", "fixed-size", "with-replacement"] = "poisson"
    sample_hidden: bool = True
    normaliser: Literal["fixed", "sampled"] = "fixed"
    noise_in_state: bool = False
    stale_states_released: bool = False

    def __post_init__(self) -> None:
        require_count("PoissonSampledSums", rounds=self.rounds)
        for rate, contribution, std in self._rounds():
            require_rate("PoissonSampledSums", rate=rate)
            require_positive("PoissonSampledSums", contribution=contribution, std=std)
        require(
            self.scheme == "poisson",
            f"PoissonSampledSums(scheme={self.scheme!r}): parties must draw independent coins; for a fixed size use "
            "FixedSizeWithoutMemory if no state is kept, otherwise SamplingRevealed.",
        )
        require(
            self.sample_hidden,
            "PoissonSampledSums(sample_hidden=False): the observer must not know who took part; use SamplingRevealed.",
        )
        require(
            self.normaliser == "fixed",
            f"PoissonSampledSums(normaliser={self.normaliser!r}): the sum must be divided by a fixed number, for "
            "its division by "
            "the sample size shows the size; divide by rate times the number of parties.",
        )
        require(
            not self.noise_in_state,
            "PoissonSampledSums(noise_in_state=True): privacy noise that is kept in a state comes back in later "
            "rounds; add the "
            "noise to the sum only, or use SamplingRevealed.",
        )
        require(
            not self.stale_states_released,
            "PoissonSampledSums(stale_states_released=True): parties outside the sample must contribute nothing; "
            "use StateSums "
            "without amplification, or DualSums.",
        )

    def event(self) -> Event:
        """One sampled Gaussian per round, under the stated adjacency."""
        rounds = self._rounds()
        return compose(*(repeat(self._round(*numbers), self.rounds // len(rounds)) for numbers in rounds))

    def assumptions(self) -> tuple[Assumption, ...]:
        """Independence of the coins and a fixed number of rounds."""
        return (
            Assumption(
                "Every party flips its own fresh coin in every round, independently of the data and of the past.",
                "theorem-p",
            ),
            Assumption(
                "Contributions are bounded by clipping or by proof, for every state a party can be in.", "theorem-p"
            ),
            Assumption("The noise on the sum does not depend on how many were sampled.", "theorem-p"),
            *GAUSSIAN_RUN,
        )

    def _rounds(self) -> list[tuple[float, float, float]]:
        columns = {"rate": self.rate, "contribution": self.contribution, "std": self.std}
        # Rounds that are all alike are one row, however many they are.
        rows = self.rounds if any(isinstance(value, tuple) for value in columns.values()) else 1
        values = [per_round("PoissonSampledSums", name, value, rows) for name, value in columns.items()]
        return list(zip(*values, strict=True))

    def _round(self, rate: float, contribution: float, std: float) -> Event:
        if rate == 1:
            return _full(std, contribution, self.adjacency)
        return Sampled(std, contribution, rate, self.adjacency)


def fixed_size_with_memory(
    *,
    size: int,
    population: int,
    contribution: float,
    std: float,
    rounds: int,
    adjacency: Adjacency,
    unit: Unit = "party",
) -> SamplingRevealed:
    """Fixed-size samples of parties with states: nothing is proved beyond the revealed bound at size/population."""
    require_count("fixed_size_with_memory", size=size, population=population)
    require_positive("fixed_size_with_memory", contribution=contribution, std=std)
    require(
        size <= population,
        f"fixed_size_with_memory(size={size}, population={population}): a sample is no larger than its population; "
        "lower the size.",
    )
    return SamplingRevealed(
        released=_full(std, contribution, adjacency),
        rate=size / population,
        rounds=rounds,
        adjacency=adjacency,
        unit=unit,
    )


def view_of_sampled_sum(
    *,
    observer: Observer,
    clients_draw_under_secure_sum: bool,
    unsampled_add_noise: bool,
    rate: float,
    contribution: float,
    std: float,
    rounds: int,
    adjacency: Adjacency,
    unit: Unit = "party",
) -> PoissonSampledSums | SamplingRevealed:
    """Theorem P where the observer does not know the sample, the sampling-revealed bound otherwise.

    A server that asks the sampled parties knows them, and so does whoever reads its messages; the public does not. When
    parties draw their own coins under a secure sum and all of them answer, the unsampled with a masked zero and their
    share of the noise, the server does not know either. Parties and coalitions get the revealed bound.
    """
    require(
        unsampled_add_noise or not clients_draw_under_secure_sum,
        "view_of_sampled_sum(unsampled_add_noise=False): under a secure sum the unsampled must add their share of the "
        "noise, or its variance tells how many were sampled; let all parties add it.",
    )
    outside = isinstance(observer, Server | Eavesdropper) and clients_draw_under_secure_sum
    if isinstance(observer, Public) or outside:
        return PoissonSampledSums(
            rate=rate, contribution=contribution, std=std, rounds=rounds, adjacency=adjacency, unit=unit
        )
    return SamplingRevealed(
        released=_full(std, contribution, adjacency), rate=rate, rounds=rounds, adjacency=adjacency, unit=unit
    )


def _full(std: float, contribution: float, adjacency: Adjacency) -> Gaussian:
    return Gaussian(std, contribution if adjacency == "add-remove" else 2 * contribution)
