"""Numbers in a few digits that claim no more than is true: costs are rounded up, what is proved or left down."""

from __future__ import annotations

import decimal
import math


def round_up(value: float, digits: int = 4) -> str:
    """A cost in a few digits, never below its value."""
    return _round(value, digits, decimal.ROUND_CEILING)


def round_down(value: float, digits: int = 4) -> str:
    """What was proved or is left, in a few digits, never above its value."""
    return _round(value, digits, decimal.ROUND_FLOOR)


def _round(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    exact = decimal.Decimal(repr(float(value)))  # the shortest text, so that 1e-05 stays 1e-05
    step = decimal.Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(step, rounding=rounding)):.{digits}g}"
