"""Models as plain scikit-learn objects with their coefficients set: nothing of this library is needed to use them.

A scikit-learn object does not scale rows that are longer than the model's row bound: predictions agree for rows within
it, which are all that a schema makes unless it states a bound of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.models.model import Model


def to_sklearn(model: Model) -> Any:
    """LogisticRegression, LinearSVC, LinearRegression, HuberRegressor or LinearSVR, by the loss."""
    made = model.loss.to_sklearn(fit_intercept=model.intercept is not None)
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
