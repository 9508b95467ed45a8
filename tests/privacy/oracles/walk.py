"""A walk whose visits are all seen."""

from __future__ import annotations

from tests.privacy.oracles.local import LocalView
from tests.privacy.oracles.sampling import SamplingRevealed

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency
from consenso.privacy.theorems.preconditions import require_count


def uniform_walk(
    *,
    parties: int,
    steps: int,
    std: float,
    step: float | None = None,
    lipschitz: float | None = None,
    clip: float | None = None,
    tolerance: float = 0.0,
    adjacency: Adjacency = "replace-one",
    unit: Unit = "party",
) -> SamplingRevealed:
    """The local bound of a uniform walk, with or without states: a step visits a party with probability 1/parties."""
    visit = LocalView(
        participations=1,
        std=std,
        step=step,
        lipschitz=lipschitz,
        clip=clip,
        tolerance=tolerance,
        adjacency=adjacency,
        unit=unit,
    )
    require_count("uniform_walk", parties=parties)
    return SamplingRevealed.of(visit, rate=1 / parties, rounds=steps)
