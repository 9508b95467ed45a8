"""Who acts when.

A schedule draws from public or hidden coins, never from data, and its coins never share a stream with the noise. It
also states the law of one party's participation, which is all that accounting needs to know of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.topology import Topology

# Coins of one round only; of an order that lasts for a pass; of the stopping time. Draws of the last two are kept.
ROUND, ORDER, STOP = 0, 1, 2
LASTING_STREAMS = (ORDER, STOP)


class Coins(Protocol):
    """Uniform numbers in (0, 1); those of a lasting stream are the same whenever they are asked for again."""

    def __call__(self, round_: int, stream: int, count: int) -> Array: ...


# --- the law of one party's participation ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Certain:
    """The party takes part in exactly the rounds `own`, in increasing order, which everyone knows."""

    own: Sequence[int]

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.own)


@dataclass(frozen=True)
class Independent:
    """The party takes part in each of `rounds` rounds with probability `rate`, independently over rounds.

    `poisson` tells whether parties are drawn independently of each other; a fixed-size sample is not.
    """

    rate: float
    rounds: int
    poisson: bool


@dataclass(frozen=True)
class Visits:
    """The party takes part k times with probability `chances[k]`; the rounds depend on each other.

    `own` are the only rounds in which it can take part, where there are fewer than all.
    """

    chances: tuple[float, ...]
    own: Sequence[int] | None = None


@dataclass(frozen=True)
class OncePerPass:
    """The party takes part once in each pass of `parties` rounds, at a place that is drawn uniformly for each pass.

    Of a last pass that is cut short it may miss its place.
    """

    rounds: int
    parties: int

    @property
    def most(self) -> int:
        """The largest number of times that it takes part."""
        return -(-self.rounds // self.parties)


Participation: TypeAlias = Certain | Independent | Visits | OncePerPass


@runtime_checkable
class Schedule(Protocol):
    """Who takes part in a round, given who took part in the one before."""

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        """Sorted indices of the parties of this round."""
        ...

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        """The law of one party's participation over a run."""
        ...

    def length(self, rounds: int, coins: Coins) -> int:
        """How many of the charged rounds are run."""
        ...


def is_fair(schedule: Schedule) -> bool:
    """Whether all parties take part by the same law, so that one of them can stand for those that are otherwise alike.

    A schedule says so itself, by an attribute `is_fair` of its own class; of one that does not, nothing is assumed.
    """
    return "is_fair" in vars(type(schedule)) and bool(schedule.is_fair)  # type: ignore[attr-defined]


class _WholeRun:
    def length(self, rounds: int, coins: Coins) -> int:
        return rounds


@dataclass(frozen=True)
class Everyone(_WholeRun):
    """Every party in every round."""

    is_fair = True

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        return np.arange(parties, dtype=np.int64)

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        return Certain(range(rounds))


@dataclass(frozen=True)
class PoissonSubset(_WholeRun):
    """Each party with probability `rate`, independently. The only sampling that is ever accounted as amplifying."""

    alias = "poisson"
    is_fair = True

    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(
                f"PoissonSubset(rate={self.rate}): a rate lies in (0, 1]; use Everyone() to take every party."
            )

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        return np.flatnonzero(coins(round_, ROUND, parties) < self._threshold).astype(np.int64)

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        return Certain(range(rounds)) if self.rate == 1 else Independent(self.rate, rounds, poisson=True)

    @property
    def _threshold(self) -> float:
        """The rate, rounded down to the 53 bits of a coin: a theorem on sampling covers smaller rates only."""
        return math.floor(self.rate * 2.0**53) * 2.0**-53


@dataclass(frozen=True)
class FixedSubset(_WholeRun):
    """`size` parties, uniform without replacement."""

    alias = "fixed"
    is_fair = True

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"FixedSubset(size={self.size}): at least one party takes part in a round.")

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        self._fits(parties)
        chosen = np.argpartition(coins(round_, ROUND, parties), self.size - 1)[: self.size]
        return np.sort(chosen).astype(np.int64)

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        self._fits(parties)
        if self.size == parties:
            return Certain(range(rounds))
        return Independent(self.size / parties, rounds, poisson=False)

    def _fits(self, parties: int) -> None:
        if self.size > parties:
            raise InputError(f"FixedSubset(size={self.size}): there are only {parties} parties; use Everyone().")


@dataclass(frozen=True)
class Cyclic(_WholeRun):
    """One party a round, in the order of their indices, again and again."""

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        return np.array([round_ % parties], dtype=np.int64)

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        return Certain(range(party, rounds, parties))


@dataclass(frozen=True)
class RandomOrder(_WholeRun):
    """One party a round, in a secret order that is drawn anew for each pass over the parties."""

    is_fair = True

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        # A pass is keyed by its first round, so every round of it sees the same permutation.
        order = np.argsort(coins(round_ - round_ % parties, ORDER, parties), kind="stable")
        return order[round_ % parties : round_ % parties + 1].astype(np.int64)

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        return Certain(range(rounds)) if parties == 1 else OncePerPass(rounds, parties)


@dataclass(frozen=True)
class RandomStopping:
    """One party a round, in order, stopped after a secret uniform number of rounds in 1..rounds."""

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        return np.array([round_ % parties], dtype=np.int64)

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        own = np.arange(party, rounds, parties)  # rounds at which the party acts, if the run gets there
        # Stopped after R rounds: the party acted once for each own round t < R.
        counts = np.searchsorted(own, np.arange(1, rounds + 1), side="left")
        return Visits(tuple((np.bincount(counts, minlength=1) / rounds).tolist()), range(party, rounds, parties))

    def length(self, rounds: int, coins: Coins) -> int:
        return 1 + int(np.floor(coins(0, STOP, 1)[0] * rounds))


@dataclass(frozen=True)
class RandomWalk(_WholeRun):
    """A token that hops: to a uniform party (itself included) without a topology, else to a uniform neighbour."""

    topology: Topology | None = None

    @property
    def is_fair(self) -> bool:
        """On a graph, how often a walk comes by depends on the place."""
        return self.topology is None

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        self._fits(parties)
        if self.topology is None or previous is None:
            choices = np.arange(parties, dtype=np.int64)
        else:
            choices = self.topology.neighbors(int(previous[0]))
        hop = min(int(coins(round_, ROUND, 1)[0] * len(choices)), len(choices) - 1)
        return choices[hop : hop + 1]

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        self._fits(parties)
        if self.topology is None:
            return Certain(range(rounds)) if parties == 1 else Independent(1.0 / parties, rounds, poisson=False)
        return Visits(_visits(self.topology, party, rounds))

    def _fits(self, parties: int) -> None:
        if self.topology is not None and self.topology.parties != parties:
            raise InputError(
                f"RandomWalk(topology of {self.topology.parties} parties): the problem has {parties} parties; "
                "both must agree."
            )
        if self.topology is not None and parties == 1:
            raise InputError("RandomWalk(topology=...): a walk on a graph needs at least two parties.")


@lru_cache(maxsize=4096)
def _visits(walk: Topology, party: int, rounds: int) -> tuple[float, ...]:
    """Exact law of the number of visits: a walk started uniformly, pushed forward round by round."""
    hop = (walk.adjacency.T / np.maximum(walk.degrees, 1)).tocsr()  # column-stochastic
    law = np.zeros((walk.parties, rounds + 1))  # law[i, k]: the token is at i and the party was visited k times
    law[:, 0] = 1.0 / walk.parties
    law[party, 1], law[party, 0] = law[party, 0], 0.0
    for _ in range(rounds - 1):
        law = hop @ law
        law[party] = np.concatenate([[0.0], law[party, :-1]])
    chances = law.sum(axis=0)
    return tuple((chances / chances.sum()).tolist())
