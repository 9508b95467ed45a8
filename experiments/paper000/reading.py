"""Picking from the results of paper 000, and what everything is called."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.arrays import Array
from experiments.definition import Reported
from experiments.paper000 import reported
from experiments.results import Results

METHODS = {"admm": "private ADMM", "sgd": "proximal DP-SGD"}
LAWS = {"code": "standardised Gaussian rows (public code)", "sphere": "rows on the unit sphere (text)"}
PRINTED = {
    "centralized": "Theorem 2, centralized, final model",
    "federated": "Theorem 3, federated, sums only",
    "local": "Theorem 3, federated, every update seen",
    "decentralized": "Theorem 4, walk, two users",
    "general": "Theorem 7, general constraint",
}
TOLD = (("admm", reported.ADMM), ("sgd", reported.SGD))

Scores = dict[tuple[str, str], dict[float, Array]]  # by law and method: objectives of the seeds, by nominal epsilon
Right = dict[tuple[str, str, float], Any]  # corrected runs, by law, way and epsilon


def published(results: Results) -> Scores:
    """Scores of the public code's runs."""
    return {
        (law, method): {
            epsilon: results.values("best", f"published {method}", law=law, epsilon=epsilon)
            for epsilon in results.distinct("epsilon", f"published {method}", law=law)
        }
        for law in LAWS
        for method in METHODS
    }


def corrected(results: Results) -> Right:
    """Corrected runs."""
    return {(asked["law"], asked["way"], asked["epsilon"]): values for asked, values in results.rows("corrected")}


def server(results: Results, method: str, epsilon: float) -> float:
    """The true epsilon of a published run for whoever sees every update."""
    return float(results.values("at most", "spending", method=method, epsilon=epsilon)[0])


def beside(found: dict[float, Array], data: Reported) -> list[tuple[float, float, Array]]:
    """Our runs beside the reported means, where both are."""
    return [
        (epsilon, told, values)
        for epsilon, values in found.items()
        for at, told in zip(data.at, data.values, strict=True)
        if math.isclose(at, epsilon, rel_tol=1e-9)
    ]


def moments(values: Array) -> tuple[float, float]:
    """Mean and standard deviation."""
    return float(values.mean()), float(values.std(ddof=1))


def curve(right: Right, law: str, way: str) -> dict[float, Array]:
    """Objectives of a corrected way by epsilon."""
    return {
        epsilon: np.array(found["objective"])
        for (its, name, epsilon), found in right.items()
        if (its, name) == (law, way)
    }
