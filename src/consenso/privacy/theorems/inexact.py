"""Subproblems that are solved to a certified distance instead of exactly.

F(x) = f(x) + |x - v|^2 / (2 step) is strongly convex with constant 1/step, so a point with gradient norm g lies within
step * g of the minimiser. A solver that certifies `tolerance` may err by that much in either world: where a bound rests
on one party's prox alone, 2 step lipschitz becomes 2 step lipschitz + 2 tolerance.
"""

from __future__ import annotations

import math


def prox_gap(*, step: float, lipschitz: float, tolerance: float = 0.0) -> float:
    """Largest |x - x'| for proxes of two L-Lipschitz convex functions at the same point; tight for linear ones."""
    return 2 * (step * lipschitz + tolerance)


def inexact_energy(*, parties: int, gap: float, tolerance: float, rounds: int, relaxation: float = 0.5) -> float:
    """Bound on the pathwise total of squared shifts of Theorem F, with inexact proxes (docs/privacy.md).

    Everybody's prox is within `tolerance` of the exact one; `gap` is the own prox gap, tolerance included. The rounds
    must be so few that what comes back through the own state does not outweigh the others (feedback below 1).
    """
    own = max(1.0, relaxation / (1 - relaxation)) * gap
    echo = abs(1 - 2 * relaxation) / (2 * math.sqrt(relaxation * (1 - relaxation)))
    drift = 4 * relaxation * tolerance * math.sqrt(parties - 1)
    wander = (4 / 3) * drift * rounds * math.sqrt(rounds / (parties + 1))
    # The root X of the total satisfies square X^2 <= linear X + constant.
    square = parties + 1 - 2 * echo * math.sqrt(rounds)
    linear = 2 * own * math.sqrt(rounds) + echo * wander
    constant = rounds**2 * drift**2 + own * wander
    return ((linear + math.sqrt(linear**2 + 4 * square * constant)) / (2 * square)) ** 2
