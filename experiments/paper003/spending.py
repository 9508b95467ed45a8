"""The true totals of published runs, if their sensitivity were global, and how much the measured scale itself tells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.privacy.accountants import epsilon as epsilon_of
from consenso.privacy.events import Gaussian, Laplace, repeat
from experiments.paper003.claims import printed_run_epsilon, printed_scale
from experiments.paper003.published import DELTA
from experiments.paper003.worlds import world


def totals(*, epsilon: float, iterations: int) -> dict[str, Any]:
    """Composition of all iterations of the official loop, which makes one more than it says."""
    made = iterations + 1
    return {
        "laplace": epsilon_of(repeat(Laplace(scale=1 / epsilon, sensitivity=1.0), made), DELTA),
        "gaussian": epsilon_of(
            repeat(Gaussian(std=math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon, sensitivity=1.0), made), DELTA
        ),
        "printed": printed_run_epsilon(epsilon_per_iteration=epsilon, iterations=iterations),
    }


def scale_leak(*, data: str, images: int) -> dict[str, Any]:
    """How the measured noise scale changes when the record that sets it is left out, over the agents, at the start."""
    here = world(data, images)
    changes = []
    for first, last in zip(here.offsets[:-1], here.offsets[1:], strict=True):
        rows = here.X[first:last].astype(np.float64)
        residuals = np.full((len(rows), here.classes), 1 / here.classes)
        residuals[np.arange(len(rows)), here.y[first:last]] -= 1
        most = int(rows.sum(axis=1).argmax())
        rest = np.arange(len(rows)) != most
        whole, without = (
            printed_scale(rows[keep], residuals[keep], epsilon=1.0) * n
            for keep, n in (
                (slice(None), len(rows)),
                (rest, len(rows) - 1),
            )
        )
        changes.append(whole / without)
    dim = here.X.shape[1] * here.classes
    return {
        "images": len(here.y),
        "agents": here.agents,
        "largest change": float(max(changes)),
        "median change": float(np.median(changes)),
        # Nats by which the densities of the two noise laws differ at a typical draw: dim (r - 1 - log r), r the ratio.
        "nats": float(dim * (max(changes) - 1 - math.log(max(changes)))),
    }
