"""The true totals of published runs, if their sensitivity were global, and how much the measured scale itself tells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.privacy.accountants import epsilon as epsilon_of
from consenso.privacy.events import Gaussian, Laplace, repeat
from experiments.paper003.claims import printed_iteration_epsilon, printed_scale
from experiments.paper003.published import CLASSICAL, DELTA, Run, penalty_at
from experiments.paper003.worlds import world


def totals(*, epsilon: float, iterations: int) -> dict[str, Any]:
    """Composition of all iterations of the official loop, which makes one more than it says."""
    made = iterations + 1
    return {
        "laplace": epsilon_of(repeat(Laplace(scale=1 / epsilon, sensitivity=1.0), made), DELTA),
        "gaussian": epsilon_of(
            repeat(Gaussian(std=math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon, sensitivity=1.0), made), DELTA
        ),
        "an iteration": printed_iteration_epsilon(epsilon),
    }


def toy() -> dict[str, float]:
    """Ten records of one feature, 0.1 each, two classes, z = 0; in the other world one of them is 1. Epsilon is 1."""
    rows = np.full((10, 1), 0.1)
    changed = rows.copy()
    changed[0] = 1.0
    residuals = np.tile([0.5, -0.5], (10, 1))
    one, other = (printed_scale(data, residuals, epsilon=1.0) for data in (rows, changed))
    at_most = 2 * 1.0 / len(rows)  # 2 B_1 / I for features within [0, 1]
    # Noise beyond 0.1: the scale itself tells the worlds apart, whatever it is added to.
    return {
        "scale": one,
        "scale, other world": other,
        "claimed": printed_iteration_epsilon(1.0),
        "nats": 0.1 / one - 0.1 / other,
        "global over measured": at_most / one,
        # The same scale in both worlds: what is left is how far the mean gradient moves.
        "nats, global scale": float(np.abs((changed - rows).T @ residuals / len(rows)).sum()) / at_most,
    }


def output_noise(*, epsilon: float) -> dict[str, float]:
    """The noise of OutP's public code in its first iteration on MNIST, over what its own theorem asks for."""
    here, run = world("MNIST", 60_000), Run("OutP, its code", epsilon)
    records = int(here.offsets[1] - here.offsets[0])
    bottom = penalty_at("MNIST", 1, epsilon) + run.near(1, records)
    used = run.scale(here, 0.0, records, bottom)
    asked = 2 * here.longest / (records * bottom) * CLASSICAL / epsilon
    return {"used": used, "asked": asked}


def radius(*, iteration: int) -> dict[str, float]:
    """The trust radius as the text has it, and as the public code evaluates a/(t)*(t) with a = 1."""
    return {"text": 1 / iteration**2, "code": 1.0 / (iteration) * (iteration)}


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
    largest, median = float(max(changes)), float(np.median(changes))
    return {
        "images": len(here.y),
        "agents": here.agents,
        "largest change": largest,
        "median change": median,
        "nats": _apart(dim, largest),
        "median nats": _apart(dim, median),
    }


def _apart(dim: int, ratio: float) -> float:
    """Nats by which the densities of two laws of Laplace noise differ at a typical draw, from the ratio of scales."""
    return dim * (ratio - 1 - math.log(ratio))
