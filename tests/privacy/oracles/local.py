"""Consensus ADMM as its server sees it: every party's noisy update, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.privacy.oracles.gaps import removal_gap

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


@dataclass(frozen=True, kw_only=True)
class LocalView:
    """One party's updates u <- u + 2 relaxation (x - z) + relaxation eta, each of them seen; eta ~ N(0, std^2 I).

    The state u is public to this observer (start and updates are seen), so each participation is a Gaussian mechanism:
    shift 4 relaxation step lipschitz against noise relaxation std. Note that `std` is that of eta; noise added to the
    residual x - z itself enters doubled, see `on_residual`. Give `lipschitz` with `step`, or `clip` for residuals
    clipped to that norm, or both. A removed party has no records and still answers, with noise around z - u, clipped.
    """

    citation: ClassVar[str] = "Cyffers, Bellet and Basu 2023, Theorem 3, local part"
    section: ClassVar[str] = "local-view"

    participations: int
    std: float
    step: float | None = None
    lipschitz: float | None = None
    clip: float | None = None
    tolerance: float = 0.0
    adjacency: Adjacency = "replace-one"
    unit: Unit = "party"

    def __post_init__(self) -> None:
        require_count("LocalView", participations=self.participations)
        require_positive("LocalView", std=self.std)
        require_not_negative("LocalView", tolerance=self.tolerance)
        require(
            self.lipschitz is not None or self.clip is not None,
            "LocalView(lipschitz=None, clip=None): the residual must be bounded; give a Lipschitz constant or a clip "
            "radius.",
        )
        if self.clip is not None:
            require_positive("LocalView", clip=self.clip)
        if self.lipschitz is not None:
            require_lipschitz_constant("LocalView", self.lipschitz)
            require(
                self.step is not None,
                "LocalView(step=None): a Lipschitz constant bounds the residual through the step of the prox; give the "
                "step that the prox really uses.",
            )
            require_positive("LocalView", step=self.step or 0.0)

    @classmethod
    def on_residual(
        cls,
        *,
        participations: int,
        residual_std: float,
        step: float | None = None,
        lipschitz: float | None = None,
        clip: float | None = None,
        tolerance: float = 0.0,
        adjacency: Adjacency = "replace-one",
        unit: Unit = "party",
    ) -> LocalView:
        """The same for noise of `residual_std` added to the residual x - z before it is doubled and relaxed."""
        return cls(
            participations=participations,
            std=2 * residual_std,
            step=step,
            lipschitz=lipschitz,
            clip=clip,
            tolerance=tolerance,
            adjacency=adjacency,
            unit=unit,
        )

    @property
    def sensitivity(self) -> float:
        """How far an update can move, in units of the relaxation (the unit of `std`)."""
        bounds = []
        if self.clip is not None:
            bounds.append(2 * self.clip)
        if self.lipschitz is not None and self.step is not None:
            # Clipping is non-expansive and the state is public, so both bounds hold when both are given.
            gap = prox_gap if self.adjacency == "replace-one" else removal_gap
            bounds.append(gap(step=self.step, lipschitz=self.lipschitz, tolerance=self.tolerance))
        return 2 * min(bounds)

    def event(self) -> Event:
        """One Gaussian mechanism per participation."""
        return repeat(Gaussian(self.std, self.sensitivity), self.participations)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Convexity and a certified prox where the Lipschitz constant is used; nothing for a clipped residual."""
        if self.lipschitz is None:
            return GAUSSIAN_RUN
        return (
            Assumption("The party's loss is convex and Lipschitz with the stated constant.", "prox-sensitivity"),
            Assumption("The prox is solved to within the stated tolerance, with a certificate.", "inexact-subproblems"),
            *GAUSSIAN_RUN,
        )
