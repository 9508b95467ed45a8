"""Rounds in which only a sample takes part: what may be claimed depends on who knows the sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import (
    Adjacency,
    Event,
    Gaussian,
    Mixture,
    Nothing,
    SampledFixedSize,
    compose,
    repeat,
)
from consenso.privacy.theorems.preconditions import (
    per_round,
    require,
    require_count,
    require_positive,
    require_replace_one,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


@dataclass(frozen=True, kw_only=True)
class FixedSizeWithoutMemory:
    """`size` of `population` parties, without replacement, hidden, and no party remembers anything between rounds.

    `insiders` are parties among the population that look: they know their own draws, so each round costs what it costs
    to be hidden among the others, given how many of the insiders were drawn. Several releases of a round are one:
    `contribution` over `std` is the root of the sum of their squared ratios.
    """

    citation: ClassVar[str] = "Wang, Balle and Kasiviswanathan 2019 (sampling without replacement)"
    section: ClassVar[str] = "fixed-size-samples"

    size: int
    population: int
    contribution: float | tuple[float, ...]
    std: float | tuple[float, ...]
    rounds: int
    insiders: int = 0
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"
    memory: bool = False
    sample_hidden: bool = True

    def __post_init__(self) -> None:
        require_count("FixedSizeWithoutMemory", size=self.size, population=self.population, rounds=self.rounds)
        for contribution, std in self._rounds():
            require_positive("FixedSizeWithoutMemory", contribution=contribution, std=std)
        require(
            0 <= self.insiders < self.population,
            f"FixedSizeWithoutMemory(insiders={self.insiders}): at least one of the {self.population} parties must be "
            "outside the coalition; name fewer insiders.",
        )
        require(
            self.size <= self.population,
            f"FixedSizeWithoutMemory(size={self.size}, population={self.population}): a sample is no larger than its "
            "population; lower the size.",
        )
        require(
            not self.memory,
            "FixedSizeWithoutMemory(memory=True): a party's presence displaces another whose memory later discloses "
            "it; use Composition, or draw Poisson samples with PoissonSubset.",
        )
        require(
            self.sample_hidden,
            "FixedSizeWithoutMemory(sample_hidden=False): the observer must not know who took part; use Composition.",
        )
        require_replace_one(
            "FixedSizeWithoutMemory", self.adjacency, "draw Poisson samples with PoissonSubset for 'add-remove'"
        )

    def event(self) -> Event:
        """One fixed-size sample per round, of the parties that are no insiders."""
        rounds = self._rounds()
        return compose(*(repeat(self._round(*numbers), self.rounds // len(rounds)) for numbers in rounds))

    def assumptions(self) -> tuple[Assumption, ...]:
        """No state at all."""
        return (
            Assumption(
                "No party keeps a state that depends on the rounds in which it took part.", "fixed-size-samples"
            ),
            *GAUSSIAN_RUN,
        )

    def _rounds(self) -> list[tuple[float, float]]:
        columns = {"contribution": self.contribution, "std": self.std}
        rows = self.rounds if any(isinstance(value, tuple) for value in columns.values()) else 1
        values = [per_round("FixedSizeWithoutMemory", name, value, rows) for name, value in columns.items()]
        return list(zip(*values, strict=True))

    def _round(self, contribution: float, std: float) -> Event:
        from scipy.stats import hypergeom

        honest = self.population - self.insiders
        drawn = range(max(0, self.size - honest), min(self.size, self.insiders) + 1)  # of the insiders
        chances = hypergeom.pmf(drawn, self.population, self.insiders, self.size)
        events = tuple(self._among(honest, self.size - count, contribution, std) for count in drawn)
        return events[0] if len(events) == 1 else Mixture(tuple((chances / chances.sum()).tolist()), events)

    def _among(self, honest: int, size: int, contribution: float, std: float) -> Event:
        """`size` of `honest` parties, none of which the observer knows."""
        if size == 0:
            return Nothing()
        if size == honest:
            return _full(std, contribution, self.adjacency)
        return SampledFixedSize(std, contribution, size, honest)


def _full(std: float, contribution: float, adjacency: Adjacency) -> Gaussian:
    return Gaussian(std, contribution if adjacency == "add-remove" else 2 * contribution)
