"""Every estimator that the package offers, with the public facts that it needs, and data to fit it to."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import consenso
from consenso import estimators

NAMES = tuple(name for name in estimators.__all__ if hasattr(getattr(estimators, name), "fit"))
FUNCTIONS = tuple(name for name in estimators.__all__ if inspect.isfunction(getattr(estimators, name)))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
MARGIN = X @ [1.0, -1.0, 0.5]
KNOWN = {"epsilon": 1.0, "delta": 1e-5, "row_bound": 2.0, "target_bound": 2.0, "classes": [0, 1]}


def make(name: str, **rest: Any) -> Any:
    """An estimator with a finite epsilon and all bounds that it asks for."""
    kind = getattr(consenso, name)
    known = {key: value for key, value in KNOWN.items() if key in inspect.signature(kind).parameters}
    return kind(**{**known, **rest})


def targets_of(name: str) -> Any:
    """Labels for classifiers, numbers for others."""
    return (MARGIN > 0).astype(int) if is_classifier(make(name)) else MARGIN
