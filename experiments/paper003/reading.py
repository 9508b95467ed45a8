"""Picking published runs, which lie several in a cell, and corrected ones from the results."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from consenso.arrays import Array
from experiments.outcome import Curve, Style
from experiments.paper003.published import METHODS, Run
from experiments.results import Results


def all_runs(results: Results, data: str, group: str = "published") -> list[tuple[Run, Any, int]]:
    """Published runs on a set, what they gave, and after how many iterations."""
    return [
        (run, found, asked["iterations"])
        for asked, values in results.rows(group, data=data)
        for run, found in zip(asked["runs"], values["runs"], strict=True)
    ]


def runs(results: Results, data: str, method: str, epsilon: float) -> list[Any]:
    """Published runs of a method at an epsilon of one iteration, over the seeds."""
    return [found for run, found, _ in all_runs(results, data) if (run.method, run.epsilon) == (method, epsilon)]


def last(results: Results, data: str, method: str, epsilon: float) -> Array:
    """Test errors after the last iteration, over the seeds."""
    return np.array([run["last"] for run in runs(results, data, method, epsilon)])


def mean(results: Results, data: str, method: str, epsilon: float) -> float:
    """Their mean."""
    return float(last(results, data, method, epsilon).mean())


def methods(results: Results, data: str) -> list[str]:
    """Published methods that were run on a set."""
    found = dict.fromkeys(run.method for run, _, _ in all_runs(results, data))
    return [method for method in METHODS if method in found]


def iterations(results: Results, data: str, method: str) -> int:
    """Of the published runs of a method on a set."""
    return next(made for run, _, made in all_runs(results, data) if run.method == method)


def total(results: Results, data: str, method: str, epsilon: float) -> float:
    """What all iterations cost together if the sensitivity were global; infinite without noise."""
    if epsilon == math.inf:
        return math.inf
    law = "gaussian" if method.startswith("OutP") else "laplace"
    return float(results.values(law, "totals", epsilon=epsilon, iterations=iterations(results, data, method))[0])


def exact(results: Results, data: str, images: int) -> float:
    """Test error of the fit without privacy on so many images; FEMNIST is always whole."""
    return float(results.values("error", "exact", data=data, images=images if data == "MNIST" else 0)[0])


def corrected_errors(results: Results, data: str, method: str, epsilon: float) -> Array:
    """Test errors at a total epsilon, over the seeds."""
    return results.values("error", "corrected", data=data, method=method, epsilon=epsilon)


def band(found: Any, axis: int | None = None) -> Array:
    """20th and 80th percentile, as in the paper."""
    return np.asarray(np.quantile(found, [0.2, 0.8], axis=axis))


def curve(label: str, x: Any, found: list[Any], *, hue: int | None = None, style: Style = "line") -> Curve:
    """Mean and band at each x of what the seeds found there."""
    low, high = np.array([band(each) for each in found]).T
    y = np.array([np.mean(each) for each in found])
    return Curve(label=label, x=x, y=y, low=low, high=high, hue=hue, style=style)
