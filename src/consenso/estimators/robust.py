"""Private Huber regression and least absolute deviations.

*Absolute losses.* The slope of an absolute value jumps, which the solvers that need least noise cannot take. Under
privacy its corner is rounded over as much as iterates wander, or over residuals of at most `smoothing`: Huber's loss
again, divided by its threshold, which is at most smoothing/2 below the absolute value.

*Huber's scale.* Under privacy it follows the noisy counts of targets and residuals that clip squares, unless it is
given: the fit is one of squares whose residuals are clipped at `threshold` spreads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from consenso.algorithms.preconditioning.steps import RESIDUAL_CLIP
from consenso.errors import InputError
from consenso.estimators.fitting import default_penalty, make_request, penalty
from consenso.estimators.learning import Fit
from consenso.estimators.linear import FitOptions
from consenso.estimators.parameter_checks import check_size
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.regression import PrivateRegressor, share_of
from consenso.estimators.scale import find_scale
from consenso.losses import Absolute, Huber, Loss, Squared

if TYPE_CHECKING:
    from consenso.solvers.request import Request

# Over the bound of targets, for solvers that count nothing: the spread of residuals, and the rounded corner of absolute
# values. A penalty that is given is stated for that spread, too.
SCALE_SHARE, SMOOTHING_SHARE = 0.25, 0.2


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateHuberRegressor(PrivateRegressor):
    """Robust regression with differential privacy: squares for small residuals, absolute values for large ones.

    Minimises mean of scale * h(r / scale) + alpha/2 |w|^2, where h(z) is z^2/2 up to the threshold and its tangents
    beyond; the intercept is not penalized. scale=None at epsilon=inf estimates the scale too, adding scale/2 to the
    objective: then it equals HuberRegressor(epsilon=threshold, alpha=alpha * records), whose objective is 2 * records
    times this one, and the scale is scale_. Under privacy scale=None is what noisy counts of the residuals say.

    threshold: where squares end, in units of the scale. scale: the spread of residuals that are not outliers. alpha:
    None for 1e-4 / records at epsilon=inf, as in HuberRegressor. The other parameters are those of PrivateRidge.
    """

    threshold: float = 1.35
    scale: float | None = None

    def _fit(self, X: Any, y: Any, options: FitOptions) -> None:
        if math.isfinite(self.epsilon) or self.scale is not None:
            super()._fit(X, y, options)
            return
        fit = self._read(X, y, options)
        columns = fit.X.shape[1]
        fit.gather()
        self.scale_ = find_scale(
            lambda scale: self._scale_request(fit.terms, scale, columns),
            self.threshold,
            fit.terms,
            fit.X,
            fit.targets,
            fit.weights,
        )
        fit.request_of = lambda known, _: self._scale_request(known, self.scale_, columns)
        super()._learn(fit)

    def _learn(self, fit: Fit) -> None:
        super()._learn(fit)
        clip = fit.findings.get(RESIDUAL_CLIP)
        self.scale_ = self._public_scale(self.target_bound_) if clip is None else clip / self.threshold

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        check_size(owner, "threshold", self.threshold, "where squares end, in units of the scale")
        check_size(owner, "scale", self.scale, "the spread of residuals that are not outliers")
        if self.threshold is None:
            raise InputError(f"{owner}(threshold=None): give a positive number; 1.35 loses 5 % on Gaussian residuals.")

    def _public_scale(self, target_bound: float | None) -> float:
        return share_of(self.scale, SCALE_SHARE, target_bound)

    def _request(self, terms: PrivacyParams, features: int) -> Request:
        request = self._scale_request(terms, self._public_scale(terms.target_bound), features)
        if not terms.is_private or self.scale is not None or not self._counts_residuals():
            return request
        squares = replace(request.problem, loss=Squared())
        return replace(request, problem=squares, threshold=float(self.threshold))

    def _scale_request(self, terms: PrivacyParams, scale: float, features: int) -> Request:
        """The objective times the scale: Huber's loss in the units of the targets."""
        loss = Huber(threshold=float(self.threshold) * scale)
        usual = self.alpha is None and terms.is_private
        alpha = 1e-4 / terms.records if self.alpha is None else float(self.alpha)
        return make_request(
            terms,
            loss,
            default_penalty(loss, 0.0, terms, features) if usual else penalty(alpha * scale, 0.0),
            features,
            constant=self._constant(terms),
            solver=self.solver,
            penalty_follows=usual,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLADRegressor(PrivateRegressor):
    """Least absolute deviations (median regression) with differential privacy.

    Minimises mean absolute residual + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not
    penalized. At epsilon=inf and l1_ratio=1 it equals QuantileRegressor(quantile=0.5, alpha=alpha / 2), whose objective
    is half of this one. alpha=None is 2 there, QuantileRegressor's default, or 1 / records without an L1 share, and
    under privacy as in PrivateElasticNet.

    smoothing: under privacy, the corner of the absolute value is rounded over residuals of at most this public number;
    None lets noisy counts of targets and residuals decide. The other parameters are those of PrivateRidge.
    """

    made_from = (Absolute,)

    l1_ratio: float = 1.0
    smoothing: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "smoothing", self.smoothing, "the width of a rounded corner")

    def _l1_ratio(self) -> float:
        return float(self.l1_ratio)

    _averages_weights = True

    def _usual_alpha(self, records: int) -> float:
        return 2.0 if self.l1_ratio > 0 else 1.0 / records

    def _loss(self, terms: PrivacyParams) -> tuple[Loss, float]:
        if not terms.is_private or (self.smoothing is None and self._counts_residuals()):
            return Absolute(), 1.0
        width = share_of(self.smoothing, SMOOTHING_SHARE, terms.target_bound)
        return Huber(threshold=width), width
