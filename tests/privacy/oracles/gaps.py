"""How far a prox moves from its point."""

from __future__ import annotations


def residual_bound(*, step: float, lipschitz: float, tolerance: float = 0.0) -> float:
    """Largest |v - x| for x = prox of an L-Lipschitz function at v, computed to within `tolerance`."""
    return step * lipschitz + tolerance


def removal_gap(*, step: float, lipschitz: float, tolerance: float = 0.0) -> float:
    """Largest |x - v| for x = prox of an L-Lipschitz function at v, where the other world has no function: x' = v.

    A party without records still answers, and its solver may err like any other.
    """
    return step * lipschitz + 2 * tolerance
