"""Constructions in which bounds that look right fail: scripted paths, a flipping model, parties that do not move.

They are counterexamples of the privacy reference made into runs of this library, for audits of claims about
`ConsensusADMM`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM, Hub, Up
from consenso.arrays import Array, IntArray
from consenso.audit.neighbours import Neighbours, neighbours
from consenso.losses import Huber
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import NoPenalty
from consenso.schedules import ROUND, Certain, Coins, Participation


@dataclass(frozen=True)
class Path:
    """One party a round, in an order that is written down."""

    parties: tuple[int, ...]

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        """The party of the round."""
        return np.array([self.parties[round_]], dtype=np.int64)

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        """As often as it is written."""
        return Certain(tuple(round_ for round_, acts in enumerate(self.parties[:rounds]) if acts == party))

    def length(self, rounds: int, coins: Coins) -> int:
        """All of it."""
        return rounds


@dataclass(frozen=True)
class OneVisit:
    """The token starts at `party` and then hops to uniform parties among the others."""

    party: int

    def active(self, round_: int, previous: IntArray | None, parties: int, coins: Coins) -> IntArray:
        """The party of the round."""
        if round_ == 0:
            return np.array([self.party], dtype=np.int64)
        others = np.delete(np.arange(parties, dtype=np.int64), self.party)
        hop = min(int(coins(round_, ROUND, 1)[0] * len(others)), len(others) - 1)
        return others[hop : hop + 1]

    def participation(self, party: int, rounds: int, parties: int) -> Participation:
        """Once for the first party; for the others all that is possible, which is safe."""
        return Certain(range(1) if party == self.party else range(1, rounds))

    def length(self, rounds: int, coins: Coins) -> int:
        """All of it."""
        return rounds


@dataclass(frozen=True, kw_only=True)
class FlippingADMM(ConsensusADMM):
    """Consensus ADMM whose model goes back and forth by a public script, as Theorem F allows it.

    A model that flips makes each round undo what the last one did and add as much again.
    """

    far: float = 30.0

    def start(self, facts: PublicFacts) -> Hub:
        """The script's first point."""
        return replace(super().start(facts), z=self._z(facts, 0))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """The mean moves as it does, the model as the script says."""
        scripted = np.broadcast_to(self._z(facts, facts.round + 1), hub.z.shape)
        return replace(super().combine(facts, hub, total), z=scripted)

    def _z(self, facts: PublicFacts, round_: int) -> Array:
        z = np.zeros(facts.dim)
        z[1] = self.far if round_ % 2 else -self.far
        return z


def stiff_problem(parties: int, *, stiffness: int) -> Problem:
    """One record for party 0; the others hold `stiffness` records on either axis, all of which want zero.

    With a step of 1 over party 0's Lipschitz constant their proxes go back to zero but for 1 / (1 + stiffness).
    """
    sizes = np.full(parties, 2 * stiffness)
    sizes[0] = 1
    return Problem(
        loss=Huber(threshold=1.0),
        regularizer=NoPenalty(),
        features=2,
        sizes=sizes,
        row_bound=1.0,
        target_bound=1.0,
        unit="party",
        weighting="record",
    )


def flipping(problem: Problem, *, angle: float) -> Neighbours:
    """Party 0's loss is of <c, x> or of <c', x>, c and c' almost parallel: far up or down the slopes are opposite."""
    others = []
    for size in problem.sizes:
        rows = np.zeros((int(size), 2))
        rows[::2, 0], rows[1::2, 1] = 1.0, 1.0
        others.append((rows, np.zeros(int(size))))
    up, down = (np.array([np.cos(angle), side * np.sin(angle)]) for side in (1.0, -1.0))
    return neighbours(
        problem, "party", "replace-one", 0, others=others, one=(up, 0.0), zero=(down, 0.0), what="a flipping model"
    )
