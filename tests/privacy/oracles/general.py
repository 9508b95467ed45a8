"""Splittings with a general matrix in front of x, by a trusted curator who shows the whole state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, repeat
from consenso.privacy.theorems.preconditions import (
    require,
    require_count,
    require_lipschitz_constant,
    require_positive,
)
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


@dataclass(frozen=True, kw_only=True)
class GeneralSplitting:
    """u <- u + 2 relaxation (A x - z) + relaxation eta with x = argmin (1/parties) sum f_i(x) + |A x - v|^2 / (2 step).

    Releasing every u. One unit moves A x by at most 2 lipschitz step / (parties smallest_singular_value): A must be
    injective, and no other norm of it enters. eta ~ N(0, std^2 I).
    """

    citation: ClassVar[str] = "Cyffers, Bellet and Basu 2023, Theorem 7, corrected"
    section: ClassVar[str] = "general-splitting"
    adjacency: ClassVar[Adjacency] = "replace-one"

    parties: int
    step: float
    lipschitz: float
    smallest_singular_value: float
    std: float
    rounds: int
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("GeneralSplitting", parties=self.parties, rounds=self.rounds)
        require_positive("GeneralSplitting", step=self.step, std=self.std)
        require_lipschitz_constant("GeneralSplitting", self.lipschitz)
        require(
            self.smallest_singular_value > 0,
            f"GeneralSplitting(smallest_singular_value={self.smallest_singular_value}): the matrix must have full "
            "column rank, otherwise one unit moves A x without bound; use another splitting.",
        )

    @classmethod
    def of_matrix(
        cls,
        matrix: Array,
        *,
        parties: int,
        step: float,
        lipschitz: float,
        std: float,
        rounds: int,
        unit: Unit = "party",
    ) -> GeneralSplitting:
        """The same for a public matrix A (rows, columns)."""
        values = np.linalg.svd(matrix, compute_uv=False)
        rows, columns = matrix.shape
        # Singular values below rounding error are zeros of a rank-deficient matrix.
        floor = float(values[0]) * max(rows, columns) * np.finfo(np.float64).eps
        smallest = float(values[-1]) if rows >= columns and values[-1] > floor else 0.0
        return cls(
            parties=parties,
            step=step,
            lipschitz=lipschitz,
            smallest_singular_value=smallest,
            std=std,
            rounds=rounds,
            unit=unit,
        )

    @property
    def sensitivity(self) -> float:
        """How far u can move, in units of the relaxation (the unit of `std`)."""
        return 4 * self.lipschitz * self.step / (self.parties * self.smallest_singular_value)

    def event(self) -> Event:
        """One Gaussian mechanism per noisy update."""
        return repeat(Gaussian(self.std, self.sensitivity), self.rounds)

    def assumptions(self) -> tuple[Assumption, ...]:
        """An exact x-step of the averaged loss."""
        return (
            Assumption("Every f_i is convex and Lipschitz with the stated constant.", "general-splitting"),
            Assumption("The x-step is solved exactly, and the matrix is public.", "general-splitting"),
            *GAUSSIAN_RUN,
        )
