"""How much of a noisy model is kept: what its steps have learnt, what noise has added to it, direction by direction.

In one direction, in which the loss bends by a part `rate` of the length of a step, the point after t steps is 1 - q^t,
q = 1 - rate, of the way from its start to where steps lead, and has heard the noise of step s with the weight q^(t-s).
What is released is the mean of the last points: noise of as many steps as it remembers, and a part of the way. Damping
has shortened it, too, as a prior that may be wrong says. Scores of squared size S, of which noise explains N, and which
have come K of the way to the optimum are best multiplied by

    (1 - N / S) / K,        at most 1:

James and Stein's rule where the model has come all the way, and nothing at all where it is short already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.algorithms.noise_levels import shrinkage_factor
from consenso.arrays import Array

# Rates below this are those of directions that nobody speaks of.
SLOWEST = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Steps that share a budget equally, and are averaged over the last of them."""

    rates: Array  # of each direction, from 0 to 1
    steps: int  # that share the budget
    taken: int  # of them
    late: int  # of these, how many are averaged

    def noise(self) -> Array:
        """Variance of the average in each direction, for moves whose noise would be 1 with the whole budget."""
        rates = np.clip(self.rates, SLOWEST, 1.0)[:, None]
        step, first = np.arange(self.taken), self.taken - self.late
        # Of a step s, the weights q^(t-s) of the points t from max(s, first) on.
        since, until = np.maximum(first - step, 0), self.taken - step
        weights = ((1 - rates) ** since - (1 - rates) ** until) / rates / self.late
        variance: Array = self.steps * np.sum(weights**2, axis=1)
        return variance

    def way(self) -> Array:
        """How much of the way the average has come in each direction."""
        rates = np.clip(self.rates, SLOWEST, 1.0)[:, None]
        steps = np.arange(self.taken - self.late, self.taken) + 1
        come: Array = np.mean(1 - (1 - rates) ** steps, axis=1)
        return come

    def kept(self, size: float, move: Array, shares: Array, damped: Array) -> float:
        """The factor for a model whose scores have this squared size.

        move: squared noise of a move in each direction. shares: how much each direction counts in scores. damped: how
        much damping leaves of what there is to learn.
        """
        noise, total = float(shares * move @ self.noise()), float(shares.sum())
        come = float(shares @ (damped * self.way())) / total if total > 0 else 1.0
        return min(1.0, shrinkage_factor(size, noise) / max(come, SLOWEST))
