"""Noise that is drawn in shares, one per party, and seen only in a secure sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import ZCDP, Adjacency, Event, Gaussian, repeat
from consenso.privacy.theorems.preconditions import require, require_count, require_not_negative, require_positive
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


def share_std(*, std: float, parties: int, absent: int) -> float:
    """Noise of one share, so that the honest others of a party alone reach `std` when at most `absent` are missing.

    `parties` are those that are sure to enrol; `absent` counts colluders and drop-outs together.
    """
    require_positive("share_std", std=std)
    require(
        0 <= absent <= parties - 2,
        f"share_std(parties={parties}, absent={absent}): at least one honest party besides the protected one must "
        f"remain; plan for at most {parties - 2} absent.",
    )
    return std / math.sqrt(parties - absent - 1)


def encoded_sensitivity(*, contribution: float, dim: int, grid: float, adjacency: Adjacency) -> float:
    """Sensitivity of a sum of contributions that are rounded to a grid before they are summed."""
    return (contribution + math.sqrt(dim) * grid / 2) * (1 if adjacency == "add-remove" else 2)


def discreteness(*, share: float, count: int) -> float:
    """Largest log ratio between a sum of `count` discrete Gaussians and one of the same total variance.

    `share` is the standard deviation of one of them, in grid steps, at least 1/2 (Kairouz, Liu and Steinke 2021).
    """
    return 10 * sum(math.exp(-2 * (math.pi * share) ** 2 * k / (k + 1)) for k in range(1, count))


@dataclass(frozen=True, kw_only=True)
class NoiseShares:
    """Sums with noise in shares, against `colluders` who know theirs, in rounds from which `dropped` more are missing.

    `std` is planned for `absent` missing shares; what is accounted is what the honest others of the protected party
    really added. With a `grid` contributions are rounded to it and shares are discrete Gaussians on it; `excess` bounds
    the total variation to the Gaussian law per round instead, for grids so fine that it is negligible.
    """

    citation: ClassVar[str] = "Noise shares of this library; discrete shares: Kairouz, Liu and Steinke 2021, Theorem 1"
    section: ClassVar[str] = "noise-shares"

    parties: int
    absent: int
    std: float
    contribution: float
    rounds: int
    adjacency: Adjacency
    colluders: int = 0
    dropped: int = 0
    dim: int = 1
    grid: float = 0.0
    excess: float | None = None
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("NoiseShares", parties=self.parties, rounds=self.rounds, dim=self.dim)
        require_positive("NoiseShares", contribution=self.contribution)
        require_not_negative("NoiseShares", colluders=self.colluders, dropped=self.dropped, grid=self.grid)
        require_not_negative("NoiseShares", excess=self.excess or 0.0)
        share_std(std=self.std, parties=self.parties, absent=self.absent)
        require(
            self.remaining >= 1,
            f"NoiseShares(colluders={self.colluders}, dropped={self.dropped}): no honest share is left besides the "
            "protected party's own; discard the round before anything is unmasked.",
        )
        require(
            self.grid == 0 or self.excess is not None or self.share / self.grid >= 0.5,
            f"NoiseShares(grid={self.grid}): a discrete share must have a standard deviation of at least half a grid "
            "step; use a finer grid.",
        )

    @property
    def share(self) -> float:
        """Noise of one share."""
        return share_std(std=self.std, parties=self.parties, absent=self.absent)

    @property
    def remaining(self) -> int:
        """Honest shares in the sum besides the protected party's own."""
        return self.parties - self.colluders - self.dropped - 1

    @property
    def remaining_std(self) -> float:
        """Noise on the sum that this coalition does not know."""
        return self.share * math.sqrt(self.remaining)

    @property
    def sensitivity(self) -> float:
        """How far one party moves the encoded sum."""
        return encoded_sensitivity(
            contribution=self.contribution, dim=self.dim, grid=self.grid, adjacency=self.adjacency
        )

    def event(self) -> Event:
        """A Gaussian per round, or the zCDP of a sum of discrete Gaussians."""
        if self.grid == 0 or self.excess is not None:
            return repeat(Gaussian(self.remaining_std, self.sensitivity, self.excess or 0.0), self.rounds)
        inflation = discreteness(share=self.share / self.grid, count=self.remaining) * math.sqrt(self.dim)
        return repeat(ZCDP((self.sensitivity / self.remaining_std + inflation) ** 2 / 2), self.rounds)

    def assumptions(self) -> tuple[Assumption, ...]:
        """A sum that hides its terms, and a plan for drop-outs."""
        return (
            Assumption("Only the sum is opened; single masked contributions reveal nothing.", "noise-shares"),
            Assumption(
                "A round in which more parties are missing than stated is discarded before anything is unmasked.",
                "noise-shares",
            ),
            Assumption("Every enrolled party adds its share in every round, sampled or not.", "noise-shares"),
            *GAUSSIAN_RUN,
        )
