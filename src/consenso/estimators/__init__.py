"""Scikit-learn estimators with differential privacy: validation, a problem of public facts, a run, nothing else."""

from __future__ import annotations

from consenso.estimators.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from consenso.estimators.linear import SpendingWarning
from consenso.estimators.regressors import (
    PrivateElasticNet,
    PrivateHuberRegressor,
    PrivateLADRegressor,
    PrivateLasso,
    PrivateRidge,
)

__all__ = [
    "PrivateElasticNet",
    "PrivateHuberRegressor",
    "PrivateLADRegressor",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "SpendingWarning",
]
