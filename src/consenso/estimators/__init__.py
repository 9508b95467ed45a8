"""Scikit-learn estimators with differential privacy: validation, a problem of public facts, a run, nothing else."""

from __future__ import annotations

import consenso.estimators.first_import  # noqa: F401  # before anything else imports scikit-learn
from consenso.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
