"""Blocks of coordinates that act in turn: a row has one length for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, repeat
from consenso.privacy.theorems.preconditions import require, require_count, require_not_negative, require_positive
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption, with_excess


@dataclass(frozen=True, kw_only=True)
class BlocksInTurn:
    """`rounds` sums over records of coefficient * row, each on the coordinates of its blocks, with N(0, std^2 I).

    `sensitivity` is how far one unit can move such a sum on all coordinates, by what a record adds; `rounding` is what
    errors of a sum and the grid of a sampler add in each round. `acts` is the largest number of rounds in which one
    block acts. `excess` bounds the total variation by which the samplers of all rounds miss their law.
    """

    citation: ClassVar[str] = "Minkowski's inequality over the blocks (docs/privacy.md)"
    section: ClassVar[str] = "blocks-in-turn"

    sensitivity: float
    std: float
    rounds: int
    acts: int
    rounding: float = 0.0
    excess: float = 0.0
    outputs: int = 1
    adjacency: Adjacency
    unit: Unit

    def __post_init__(self) -> None:
        require_positive("BlocksInTurn", sensitivity=self.sensitivity, std=self.std)
        require_not_negative("BlocksInTurn", rounding=self.rounding, excess=self.excess)
        require_count("BlocksInTurn", rounds=self.rounds, acts=self.acts)
        require(
            self.acts <= self.rounds,
            f"BlocksInTurn(acts={self.acts}, rounds={self.rounds}): a block acts at most once a round; count the "
            "rounds in which it acts.",
        )
        require(
            self.outputs == 1,
            f"BlocksInTurn(outputs={self.outputs}): with several outputs a record can choose in each round which of "
            "them it moves; use Composition.",
        )
        require(
            self.unit in ("record", "party"),
            f"BlocksInTurn(unit={self.unit!r}): the bound is proved for records and parties; use Composition.",
        )

    def event(self) -> Event:
        """As many whole releases as the busiest block has rounds."""
        widened = self.sensitivity + self.rounding * math.sqrt(self.rounds / self.acts)
        return with_excess(repeat(Gaussian(self.std, widened), self.acts), self.excess)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Which blocks act is public."""
        return (
            Assumption(
                "Which blocks act in which round does not depend on the data, and everybody takes part in every round.",
                "blocks-in-turn",
            ),
            *GAUSSIAN_RUN,
        )
