"""Private Huber regression and least absolute deviations.

*Absolute losses.* The slope of an absolute value jumps, which the solvers that need least noise cannot take. Under
privacy its corner is rounded over residuals of at most `smoothing`: Huber's loss again, divided by its threshold, which
is at most smoothing/2 below the absolute value.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from consenso.errors import InputError
from consenso.estimators.fitting import Task, penalty
from consenso.estimators.learning import gather
from consenso.estimators.linear import FitOptions, check_size
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.regression import PrivateRegressor, share_of
from consenso.estimators.scale import find_scale
from consenso.estimators.stages import Stages
from consenso.losses import Absolute, Huber, Loss
from consenso.privacy.ledger import Ledger
from consenso.problem import Adjacency

# The spread of residuals, and the rounded corner of absolute values, over the bound of targets.
SCALE_SHARE, SMOOTHING_SHARE = 0.25, 0.2


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
        bounds: str = "private",
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
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _fit(self, X: Any, y: Any, options: FitOptions) -> None:
        if math.isfinite(self.epsilon) or self.scale is not None:
            super()._fit(X, y, options)
            self.scale_ = self._public_scale(self.target_bound_)
            return
        request = self._read(X, y, options)
        columns = request.X.shape[1]
        stages = Stages(terms=request.terms)
        found = gather(request, stages, [])
        self.scale_ = find_scale(
            lambda scale: self._scale_task(stages.terms, scale, columns),
            self.threshold,
            stages.terms,
            found.X,
            found.targets,
            found.weights,
        )
        task_of = lambda known, _: self._scale_task(known, self.scale_, columns)  # noqa: E731 - as in every request
        self._keep(self._learn(replace(request, task_of=task_of)).fitted)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        check_size(owner, "threshold", self.threshold, "where squares end, in units of the scale")
        check_size(owner, "scale", self.scale, "the spread of residuals that are not outliers")
        if self.threshold is None:
            raise InputError(f"{owner}(threshold=None): give a positive number; 1.35 loses 5 % on Gaussian residuals.")

    def _public_scale(self, target_bound: float | None) -> float:
        return share_of(self.scale, SCALE_SHARE, target_bound)

    def _task(self, terms: PrivacyParams, features: int) -> Task:
        return self._scale_task(terms, self._public_scale(terms.target_bound), features)

    def _scale_task(self, terms: PrivacyParams, scale: float, features: int) -> Task:
        """The objective times the scale: Huber's loss in the units of the targets."""
        if self.alpha is not None:
            strength = float(self.alpha) * scale
        else:
            strength = self._usual_strength(terms, features) if terms.is_private else 1e-4 / terms.records * scale
        return Task(
            loss=Huber(threshold=float(self.threshold) * scale),
            penalty=penalty(strength, 0.0),
            row_bound=terms.row_bound,
            target_bound=terms.target_bound,
            constant=self._constant(terms),
            solver=self.solver,
        )


class PrivateLADRegressor(PrivateRegressor):
    """Least absolute deviations (median regression) with differential privacy.

    Minimises mean absolute residual + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not
    penalized. At epsilon=inf and l1_ratio=1 it equals QuantileRegressor(quantile=0.5, alpha=alpha / 2), whose objective
    is half of this one. alpha=None is 2 there, QuantileRegressor's default, 1 / records without an L1 share, and under
    privacy the level below which a coefficient cannot be told from noise.

    smoothing: under privacy, the corner of the absolute value is rounded over residuals of at most this public number;
    None for target_bound / 5. The other parameters are those of PrivateRidge.
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
        smoothing: float | None = None,
        bounds: str = "private",
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
        self.smoothing = smoothing
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "smoothing", self.smoothing, "the width of a rounded corner")

    def _l1_ratio(self) -> float:
        return float(self.l1_ratio)

    _averages_weights = True

    def _usual_alpha(self, records: int) -> float:
        return 2.0 if self.l1_ratio > 0 else 1.0 / records

    def _loss(self, terms: PrivacyParams) -> tuple[Loss, float]:
        if not terms.is_private:
            return Absolute(), 1.0
        width = share_of(self.smoothing, SMOOTHING_SHARE, terms.target_bound)
        return Huber(threshold=width), width
