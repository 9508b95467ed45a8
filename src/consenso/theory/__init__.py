"""How close private iterations come, and what privacy costs: planning aids, from public numbers only.

`Utility` and `Tradeoff` are for operators that contract (fixed-point iterations, consensus ADMM under strong
convexity), `LinearisedADMM` for first-order ADMM on convex losses, with a server, on a graph, and under a constraint.
"""

from consenso.theory.budgets import budget, zcdp_of
from consenso.theory.contraction import (
    Tradeoff,
    Utility,
    price_of_own_noise,
    price_of_seen_means,
    price_of_states,
    price_of_sum,
    relax,
)
from consenso.theory.linearised import LinearisedADMM

__all__ = [
    "LinearisedADMM",
    "Tradeoff",
    "Utility",
    "budget",
    "price_of_own_noise",
    "price_of_seen_means",
    "price_of_states",
    "price_of_sum",
    "relax",
    "zcdp_of",
]
