"""The closed form of Gauthier et al. for the total zCDP of a run. For comparison only.

It equals the sum of the steps' costs when the noise follows their (12) and every record's gradient is bounded.
"""

from __future__ import annotations


def printed_total_rho(*, first_rho: float, decay: float, iterations: int) -> float:
    """The sum phi (1 - tau^T) / (tau^(T-1) - tau^T), for steps of cost phi tau^-(n-1), n = 1..T."""
    return first_rho * (1 - decay**iterations) / (decay ** (iterations - 1) - decay**iterations)
