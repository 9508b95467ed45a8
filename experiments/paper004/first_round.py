"""What the first round of a published run really costs a record that the noise was not made for.

Everything starts at zero, so the first gradient of a record (x, y) of the squared loss is -y x: replacing (x, 1) by
(x, -100), with x of length 1, moves the sum by 101 / M whatever the bound was said to be. The release is Gaussian and
nothing was released before it, so its epsilon is exact, and the run as a whole costs at least as much.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.privacy.accountants import epsilon as epsilon_of
from consenso.privacy.events import Gaussian
from experiments.paper004.published import assumed_bound, multipliers
from experiments.paper004.worlds import DELTA, OBSERVATIONS, world

BEFORE, AFTER = 1.0, -100.0  # targets of a record whose row has length 1


def cost(*, task: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Nominal and true zCDP of the first round, and the epsilon that the run costs at least."""
    here = world(task, seed, bounded=False)
    bound = assumed_bound(here, task)
    spread = float(multipliers(epsilon, "zCDP-NFL")[0])
    slopes = here.problem.loss.slope(np.zeros(2), np.array([BEFORE, AFTER]))
    moved = float(abs(slopes[0] - slopes[1])) / OBSERVATIONS
    std = spread * 2 * bound / OBSERVATIONS
    return {
        "bound": bound,
        "nominal rho": 1 / (2 * spread**2),
        "true rho": (moved / std) ** 2 / 2,
        "at least": epsilon_of(Gaussian(std=std, sensitivity=moved), DELTA) if math.isfinite(std) else math.inf,
    }
