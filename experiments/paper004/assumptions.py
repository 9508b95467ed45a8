"""Assumptions 3 and 4 on the step of zCDP-NFL, which Theorems III and IV use together."""

from __future__ import annotations

from typing import Any

import numpy as np

TERMS = 10_000


def steps(*, power: float) -> dict[str, Any]:
    """Steps n^power: do they go to zero (Assumption 3), and can their inverses be summed (Assumption 4)?"""
    n = np.arange(1, TERMS + 1, dtype=float)
    step = n**power
    halves = [float((1 / step[: TERMS // 2]).sum()), float((1 / step).sum())]
    return {
        "falls": bool(step[-1] < step[0] / 10),
        # A convergent sum of n^-p has its second half below the first by far; a divergent one has not.
        "summable": bool(halves[1] - halves[0] < 1e-3 * halves[0]),
        "sum": halves[1],
    }
