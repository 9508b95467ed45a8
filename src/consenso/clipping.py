"""Clipping: the one rule by which everything that is clipped is shortened."""

from __future__ import annotations

from typing import Any

import numpy as np


def shorten(length: Any, bound: float) -> Any:
    """The factor that takes a vector of this length to the bound if it is longer, 1 otherwise; one or an array.

    The bound is finite. Numba compiles this function as it stands, so that compiled rounds clip as the releaser does.
    """
    return bound / np.maximum(length, bound)
