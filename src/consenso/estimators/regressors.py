"""Private regressors with scikit-learn's interface.

*Squared losses.* One record can move the gradient of a squared loss without bound, so under privacy residuals are
clipped: the loss is Huber's, with the public threshold `residual_bound`, and it is the squared loss up to there.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import Task, fit, penalty, telling_level
from consenso.estimators.linear import PrivateLinearModel, check_size
from consenso.estimators.scale import fit_with_scale
from consenso.estimators.terms import Terms, terms_of
from consenso.losses import Absolute, Huber, Loss, Squared
from consenso.privacy.ledger import Ledger
from consenso.problem import Adjacency

# The clip of residuals, and the spread of residuals, over the bound of targets.
RESIDUAL_SHARE, SCALE_SHARE = 0.5, 0.25


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """Targets, coefficients and predictions; not for direct use."""

    target_bound: float | None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit within the budget. X: (records, features), dense or sparse; y: real targets."""
        self._check_parameters()
        self._warn_of_search()
        X, y = self._validated(X, y, y_numeric=True)
        terms = terms_of(self, X.shape[0])
        self._keep(fit(self._task(terms, X.shape[1]), terms, X, np.asarray(y, dtype=np.float64)))
        return self

    def predict(self, X: Any) -> Array:
        """Predictions, (records,)."""
        check_is_fitted(self)
        return self._scores(X, self.coef_, self.intercept_)

    def _keep(self, fitted: Any) -> None:
        super()._keep(fitted)
        self.coef_ = np.array(fitted.coefficients[:, 0])
        self.intercept_ = float(fitted.intercepts[0])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        if math.isfinite(self.epsilon) and self.target_bound is None:
            raise InputError(
                f"{owner}(target_bound=None): with a finite epsilon targets need a public bound, to which they are "
                "clipped; choose it from public knowledge, or spend budget with private_bounds(X, y, epsilon=...)."
            )
        check_size(owner, "target_bound", self.target_bound, "a bound on the size of targets")

    def _task(self, terms: Terms, features: int) -> Task:
        loss = self._loss(terms)
        return Task(
            loss=loss,
            penalty=penalty(self._strength(loss, terms, features), self._l1_ratio()),
            row_bound=self.row_bound if terms.is_private else None,
            target_bound=self.target_bound if terms.is_private else None,
            constant=self._constant(),
            solver=self.solver,
        )

    def _loss(self, terms: Terms) -> Loss:
        """The squared loss, with clipped residuals under privacy."""
        if not terms.is_private:
            return Squared()
        return Huber(threshold=self._residual_bound())

    def _residual_bound(self) -> float:
        given = getattr(self, "residual_bound", None)
        if given is not None:
            return float(given)
        assert self.target_bound is not None
        return RESIDUAL_SHARE * float(self.target_bound)

    def _l1_ratio(self) -> float:
        return 0.0

    def _strength(self, loss: Loss, terms: Terms, features: int) -> float:
        """The penalty asked for; else scikit-learn's default, or under privacy with an L1 share the telling level."""
        if self.alpha is not None:
            return float(self.alpha)
        if self._l1_ratio() == 0:
            return 1.0 / terms.records
        if not terms.is_private or self.row_bound is None:
            return self._usual_alpha()
        return telling_level(loss.slope_bound, self.row_bound, features, 1, terms)

    def _usual_alpha(self) -> float:
        """What scikit-learn takes, in this library's normalisation."""
        return 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = math.isfinite(self.epsilon)
        return tags


class PrivateRidge(PrivateRegressor):
    """Ridge regression with differential privacy.

    Minimises mean squared loss r^2/2 + alpha/2 |w|^2; the intercept is not penalized. At epsilon=inf it equals
    Ridge(alpha=alpha * records). alpha=None is 1 / records, which is Ridge(alpha=1).

    target_bound: public bound on the size of targets; larger ones are clipped to it. residual_bound: under privacy,
    residuals beyond this public number pull with this strength only (Huber's loss); None for target_bound / 2. The
    other parameters and the attributes are those of PrivateLogisticRegression.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        target_bound: float | None = None,
        alpha: float | None = None,
        residual_bound: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        adjacency: Adjacency = "replace-one",
        records: int | None = None,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.alpha = alpha
        self.residual_bound = residual_bound
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "residual_bound", self.residual_bound, "the clip of residuals")


class PrivateElasticNet(PrivateRegressor):
    """Linear regression with an L1 and an L2 penalty and differential privacy.

    Minimises mean squared loss r^2/2 + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not
    penalized. At epsilon=inf it equals ElasticNet(alpha=alpha, l1_ratio=l1_ratio). alpha=None is 1 there, as in
    ElasticNet, and under privacy the level below which a coefficient cannot be told from noise. The other parameters
    are those of PrivateRidge.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        target_bound: float | None = None,
        alpha: float | None = None,
        l1_ratio: float = 0.5,
        residual_bound: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        adjacency: Adjacency = "replace-one",
        records: int | None = None,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.residual_bound = residual_bound
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "residual_bound", self.residual_bound, "the clip of residuals")

    def _l1_ratio(self) -> float:
        return float(self.l1_ratio)


class PrivateLasso(PrivateRegressor):
    """The lasso with differential privacy: a sparse linear regression.

    Minimises mean squared loss r^2/2 + alpha |w|_1; the intercept is not penalized. At epsilon=inf it equals
    Lasso(alpha=alpha). alpha=None is 1 there, as in Lasso, and under privacy the level below which a coefficient cannot
    be told from noise. The other parameters are those of PrivateRidge.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        target_bound: float | None = None,
        alpha: float | None = None,
        residual_bound: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        adjacency: Adjacency = "replace-one",
        records: int | None = None,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.alpha = alpha
        self.residual_bound = residual_bound
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "residual_bound", self.residual_bound, "the clip of residuals")

    def _l1_ratio(self) -> float:
        return 1.0


class PrivateHuberRegressor(PrivateRegressor):
    """Robust regression with differential privacy: squares for small residuals, absolute values for large ones.

    Minimises mean of scale * h(r / scale) + alpha/2 |w|^2, where h(z) is z^2/2 up to the threshold and its tangents
    beyond; the intercept is not penalized. scale=None at epsilon=inf estimates the scale too, adding scale/2 to the
    objective: then it equals HuberRegressor(epsilon=threshold, alpha=alpha * records), whose objective is 2 * records
    times this one, and the scale is scale_. Under privacy the scale is public input; None is target_bound / 4.

    threshold: where squares end, in units of the scale. scale: the spread of residuals that are not outliers. alpha:
    None for 1e-4 / records, as in HuberRegressor. The other parameters are those of PrivateRidge.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        target_bound: float | None = None,
        alpha: float | None = None,
        threshold: float = 1.35,
        scale: float | None = None,
        fit_intercept: bool = True,
        solver: str = "auto",
        adjacency: Adjacency = "replace-one",
        records: int | None = None,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.alpha = alpha
        self.threshold = threshold
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit within the budget. X: (records, features), dense or sparse; y: real targets."""
        if math.isfinite(self.epsilon) or self.scale is not None:
            super().fit(X, y)
            self.scale_ = self._public_scale()
            return self
        self._check_parameters()
        X, y = self._validated(X, y, y_numeric=True)
        terms = terms_of(self, X.shape[0])
        y = np.asarray(y, dtype=np.float64)
        fitted, self.scale_ = fit_with_scale(lambda scale: self._scaled_task(terms, scale), self.threshold, terms, X, y)
        self._keep(fitted)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        check_size(owner, "threshold", self.threshold, "where squares end, in units of the scale")
        check_size(owner, "scale", self.scale, "the spread of residuals that are not outliers")
        if self.threshold is None:
            raise InputError(f"{owner}(threshold=None): give a positive number; 1.35 loses 5 % on Gaussian residuals.")

    def _public_scale(self) -> float:
        if self.scale is not None:
            return float(self.scale)
        assert self.target_bound is not None
        return SCALE_SHARE * float(self.target_bound)

    def _task(self, terms: Terms, features: int) -> Task:
        return self._scaled_task(terms, self._public_scale())

    def _scaled_task(self, terms: Terms, scale: float) -> Task:
        """The objective times the scale: Huber's loss in the units of the targets."""
        alpha = 1e-4 / terms.records if self.alpha is None else float(self.alpha)
        return Task(
            loss=Huber(threshold=float(self.threshold) * scale),
            penalty=penalty(alpha * scale, 0.0),
            row_bound=self.row_bound if terms.is_private else None,
            target_bound=self.target_bound if terms.is_private else None,
            constant=self._constant(),
            solver=self.solver,
        )


class PrivateLADRegressor(PrivateRegressor):
    """Least absolute deviations (median regression) with differential privacy.

    Minimises mean absolute residual + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not
    penalized. At epsilon=inf and l1_ratio=1 it equals QuantileRegressor(quantile=0.5, alpha=alpha / 2), whose objective
    is half of this one. alpha=None is 2 there, QuantileRegressor's default, 1 / records without an L1 share, and under
    privacy the level below which a coefficient cannot be told from noise. The other parameters are those of
    PrivateRidge.
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        target_bound: float | None = None,
        alpha: float | None = None,
        l1_ratio: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        adjacency: Adjacency = "replace-one",
        records: int | None = None,
        ledger: Ledger | str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _l1_ratio(self) -> float:
        return float(self.l1_ratio)

    def _usual_alpha(self) -> float:
        return 2.0

    def _loss(self, terms: Terms) -> Loss:
        return Absolute()
