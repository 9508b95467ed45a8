"""Picking from the results of paper 001."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from consenso.arrays import Array
from experiments.results import Results

KINDS = ("convex", "strongly convex")
ORDERS = ("fixed order", "random order", "random stopping")
SEEN = "every iterate seen"


def curves(results: Results, kind: str) -> tuple[Array, dict[str, Array], float]:
    """Numbers of later iterations, the three costs, and the cost when every iterate is seen."""
    (asked, values), *_ = results.rows(f"divergence {kind}")
    costs = {name: np.array(values[name]) for name in ("printed", "ours", "exact")}
    return np.array(asked["later"]), costs, float(values["own"])


def ratios_of(results: Results, convexity: float, name: str) -> Array:
    """Growth of all pairs in one iteration, ascending, by norm."""
    found = [np.array(values[name]) for _, values in results.rows("pairs", convexity=convexity)]
    return np.sort(np.concatenate(found))


def fixed(results: Results) -> dict[tuple[str, float], Mapping[str, Any]]:
    """Runs in a fixed order, by accounting and epsilon."""
    return {
        (asked["accounting"], asked["epsilon"]): values
        for asked, values in results.rows("guaranteed", schedule="fixed order")
    }
