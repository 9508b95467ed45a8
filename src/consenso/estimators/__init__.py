"""Scikit-learn estimators with differential privacy: validation, a problem of public facts, a run, nothing else."""

from __future__ import annotations

import consenso.estimators.first_import  # noqa: F401  # isort: skip  # before anything else imports scikit-learn
from consenso.estimators.bounds import PrivateBounds, private_bounds
from consenso.estimators.least_squares import PrivateElasticNet, PrivateLasso, PrivateRidge
from consenso.estimators.linear import ShorteningWarning
from consenso.estimators.logistic import PrivateLogisticRegression
from consenso.estimators.pipelines import PipelineWarning
from consenso.estimators.private import SpendingWarning
from consenso.estimators.robust import PrivateHuberRegressor, PrivateLADRegressor
from consenso.estimators.scaler import PrivateScaler
from consenso.estimators.svc import PrivateLinearSVC
from consenso.estimators.threshold import ThresholdWarning

__all__ = [
    "PipelineWarning",
    "PrivateBounds",
    "PrivateElasticNet",
    "PrivateHuberRegressor",
    "PrivateLADRegressor",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "PrivateScaler",
    "ShorteningWarning",
    "SpendingWarning",
    "ThresholdWarning",
    "private_bounds",
]
