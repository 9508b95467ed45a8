"""Models as plain scikit-learn objects with their coefficients set: nothing of this library is needed to use them.

A scikit-learn object does not scale rows. Predicted classes are those of the model in any case, since scaling a row
keeps the order of its scores; probabilities and regressions agree for rows within the model's row bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.losses import Absolute, EpsilonInsensitive, Hinge, Huber, Logistic, SmoothedHinge, Softmax
from consenso.models.model import Model


def to_sklearn(model: Model) -> Any:
    """LogisticRegression, LinearSVC, LinearRegression, HuberRegressor or LinearSVR, by the loss."""
    made = _empty(model)
    coefficients = np.ascontiguousarray(model.coefficients.T)
    intercept = np.zeros(model.outputs) if model.intercept is None else np.array(model.intercept)
    if model.classes is None:
        made.coef_, made.intercept_ = coefficients[0], float(intercept[0])
    else:
        made.coef_, made.intercept_ = coefficients, intercept
        made.classes_ = np.asarray(model.classes)
    made.n_features_in_ = len(model.features)
    made.n_iter_ = np.array([0])
    return made


def _empty(model: Model) -> Any:
    from sklearn import linear_model, svm

    constant = model.intercept is not None
    loss = model.loss
    if isinstance(loss, Logistic | Softmax):
        return linear_model.LogisticRegression(fit_intercept=constant)
    if isinstance(loss, Hinge | SmoothedHinge):
        return svm.LinearSVC(fit_intercept=constant)
    if isinstance(loss, Huber):
        return linear_model.HuberRegressor(fit_intercept=constant)
    if isinstance(loss, Absolute | EpsilonInsensitive):
        return svm.LinearSVR(fit_intercept=constant, epsilon=getattr(loss, "width", 0.0))
    return linear_model.LinearRegression(fit_intercept=constant)
