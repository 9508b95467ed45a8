"""A check that oracles share."""

from __future__ import annotations

from consenso.privacy.theorems.preconditions import require


def require_rate(theorem: str, **values: float) -> None:
    """Every value is a probability in (0, 1]."""
    for name, value in values.items():
        require(
            0 < value <= 1,
            f"{theorem}({name}={value}): {name} must lie in (0, 1]; use 1 when every unit takes part.",
        )
