"""Scikit-learn estimators with differential privacy: validation, a problem of public facts, a run, nothing else."""

from __future__ import annotations

import consenso.estimators.first_import  # noqa: F401  # before anything else imports scikit-learn
from consenso.lazy import find_homes, load_from

_HOMES = find_homes(__name__)
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    """Load an estimator when it is first asked for."""
    return load_from(_HOMES, __name__, name)


def __dir__() -> list[str]:
    """The public names, also those that are not loaded yet."""
    return list(__all__)
