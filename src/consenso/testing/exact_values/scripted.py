"""A source of noise and of coins that returns what a script says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from consenso.arrays import Array
from consenso.privacy.release import COIN_STREAM
from consenso.privacy.samplers import Key
from consenso.privacy.samplers.contract import Kind
from consenso.schedules import (
    ORDER,
    ROUND,
    STOP,
    Cyclic,
    Everyone,
    FixedSubset,
    PoissonSubset,
    RandomOrder,
    RandomStopping,
    RandomWalk,
    Schedule,
)

# Uniform numbers by (round, stream), as a schedule asks for them.
Script = dict[tuple[int, int], list[float]]
# One hidden coin of the attacked party: (round, release, repetition, record).
Coin = tuple[int, int, int, int]


# Orders of more parties are too many: each party has each place once.
MOST_PERMUTED = 4


class OtherNoiseError(Exception):
    """The plan draws noise that is not Gaussian."""


class Scripted:
    """A sampler that adds `noise[i]` standard deviations to the i-th number that is perturbed, whose coins are known.

    Records whose coin is in `tails` stay out, all others are in. The coins of the attacked party's `records` are noted
    in `tossed`.
    """

    name, private = "scripted (for a law, not private)", False

    def __init__(self, script: Script, attacked: int) -> None:
        self.script, self.attacked = script, attacked
        self.records = range(0)
        self.noise = np.zeros(1 << 12)
        self.owners: list[int] = []  # the party whose noise each number is
        self.tails: frozenset[Coin] = frozenset()
        self.tossed: dict[Coin, None] = {}
        self._places: dict[tuple[int, ...], int] = {}

    def gaussian(self, values: Array, std: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values plus the noise of the script."""
        noisy = np.array(values, dtype=float)
        width = noisy.shape[1]
        for row, (party, scale) in enumerate(zip(key.parties, np.broadcast_to(std, len(noisy)), strict=True)):
            name = (int(party), key.round, key.release, key.repetition)
            if name not in self._places:
                self._places[name] = len(self.owners)
                self.owners += [int(party)] * width
            place = self._places[name]
            noisy[row] += scale * self.noise[place : place + width]
        return noisy

    def laplace(self, *_: Any, **__: Any) -> Array:
        """Refused: the value would not be exact."""
        raise OtherNoiseError

    gamma_norm = laplace

    def uniform(self, key: Key, count: int) -> Array:
        """The coins of the schedule, or of the records of each party."""
        if key.stream != COIN_STREAM:
            return np.array([self.script[key.round, key.release]])
        coins = np.zeros((len(key.parties), count))
        for row in np.flatnonzero(key.parties == self.attacked):
            for record in self.records:
                coin = (key.round, key.release, key.repetition, record)
                self.tossed[coin] = None
                if coin in self.tails and record < count:  # else the record is not there
                    coins[row, record] = 1.0
        return coins

    def grid(self, scale: float, sensitivity: float, dim: int) -> float:
        return 0.0

    def widening(self, scale: float, sensitivity: float, dim: int, norm: Literal[1, 2]) -> float:
        return 0.0

    def displacement(self, scale: float, sensitivity: float, dim: int) -> float:
        return 0.0

    def excess(self, scale: float, sensitivity: float, dim: int, kind: Kind) -> float:
        """The noise has its law."""
        return 0.0


def scripts(schedule: Schedule, parties: int, rounds: int) -> Iterator[tuple[float, Script]]:
    """All that the coins of a schedule can be, each with its probability."""
    if isinstance(schedule, RandomWalk) and schedule.topology is not None:
        yield from _walks(schedule, parties, rounds)
        return
    keys = [(round_, ROUND) for round_ in range(rounds)]
    draws: list[tuple[float, list[float]]] = []
    if isinstance(schedule, RandomWalk):
        draws = [(1 / parties, [(i + 0.5) / parties]) for i in range(parties)]
    elif isinstance(schedule, PoissonSubset):
        chances = {True: schedule.rate, False: 1 - schedule.rate}
        for bits in itertools.product((True, False), repeat=parties):
            draws.append((float(np.prod([chances[bit] for bit in bits])), [0.0 if bit else 1.0 for bit in bits]))
    elif isinstance(schedule, FixedSubset):
        subsets = list(itertools.combinations(range(parties), schedule.size))
        draws = [(1 / len(subsets), [0.1 if i in subset else 0.9 for i in range(parties)]) for subset in subsets]
    elif isinstance(schedule, RandomOrder):
        keys = [(round_, ORDER) for round_ in range(0, rounds, parties)]
        orders = [tuple(order) for order in _orders(parties)]
        draws = [(1 / len(orders), [rank / parties for rank in order]) for order in orders]
    elif isinstance(schedule, RandomStopping):
        keys, draws = [(0, STOP)], [(1 / rounds, [(i + 0.5) / rounds]) for i in range(rounds)]
    else:
        assert isinstance(schedule, Everyone | Cyclic), f"the coins of {type(schedule).__name__} are not enumerated"
        keys = []
    for chosen in itertools.product(draws, repeat=len(keys)):
        chance = float(np.prod([chance for chance, _ in chosen]))
        yield chance, dict(zip(keys, (coins for _, coins in chosen), strict=True))


def only_places_matter(schedule: Schedule, parties: int) -> bool:
    """Whether `scripts` has rotations only: exact for observers who are no party, if all parties but one are alike."""
    return isinstance(schedule, RandomOrder) and parties > MOST_PERMUTED


def _orders(parties: int) -> Iterator[tuple[int, ...]]:
    if parties <= MOST_PERMUTED:
        yield from itertools.permutations(range(parties))
    else:
        yield from (tuple((i + shift) % parties for i in range(parties)) for shift in range(parties))


def _walks(schedule: RandomWalk, parties: int, rounds: int) -> Iterator[tuple[float, Script]]:
    """All walks on a graph."""
    assert schedule.topology is not None
    paths = [(1 / parties, [(i + 0.5) / parties], i) for i in range(parties)]
    for _ in range(rounds - 1):
        paths = [
            (chance / len(near), [*coins, (j + 0.5) / len(near)], int(near[j]))
            for chance, coins, at in paths
            for near in [schedule.topology.neighbors(at)]
            for j in range(len(near))
        ]
    for chance, coins, _ in paths:
        yield chance, {(round_, ROUND): [coin] for round_, coin in enumerate(coins)}
