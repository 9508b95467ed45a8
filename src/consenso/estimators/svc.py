"""The private linear support vector machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from consenso.algorithms.preconditioning import noise_levels
from consenso.errors import InputError
from consenso.estimators.classification import PrivateClassifier
from consenso.estimators.fitting import default_penalty, make_request, penalty
from consenso.estimators.parameter_checks import check_size
from consenso.estimators.privacy_params import PrivacyParams
from consenso.losses import Hinge, SmoothedHinge

if TYPE_CHECKING:
    from consenso.solvers.request import Request

# The widest corner of the hinge under privacy, in units of margin.
WIDEST = 0.5


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearSVC(PrivateClassifier):
    """Linear support vector machine for two classes, with differential privacy.

    Minimises mean hinge loss + alpha/2 (|w|^2 + (b / intercept_scaling)^2): as in LinearSVC the intercept b is
    penalized, since it is the coefficient of a constant column of value intercept_scaling. At epsilon=inf it equals
    LinearSVC(loss="hinge", C=1 / (alpha * records), intercept_scaling=intercept_scaling).

    intercept_scaling: None for 1 at epsilon=inf, as in LinearSVC, and for row_bound / 2 under privacy, which costs
    little noise. smoothing: under privacy the corner of the hinge is rounded over margins in [1 - smoothing, 1], since
    the solvers that need least noise cannot take a jump of the slope; None for a width that follows the noise, from
    1/20 to 1/2. The other parameters are those of PrivateLogisticRegression.
    """

    made_from = (Hinge,)
    _reach = 2.0  # margins of 1 to either side are what the loss asks for

    intercept_scaling: float | None = None
    smoothing: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "intercept_scaling", self.intercept_scaling, "the value of a constant column")
        check_size(type(self).__name__, "smoothing", self.smoothing, "the width of a rounded corner")

    def _check_count(self, classes: int) -> int:
        if classes > 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is multiclass: PrivateLinearSVC has "
                f"two classes, and there are {classes}; use PrivateLogisticRegression."
            )
        return super()._check_count(classes)

    def _constant(self, terms: PrivacyParams) -> float | None:
        if self.fit_intercept and self.intercept_scaling is not None:
            return float(self.intercept_scaling)
        return super()._constant(terms)

    def _request(self, terms: PrivacyParams, features: int, classes: int) -> Request:
        loss = SmoothedHinge(smoothing=self._width(terms, features)) if terms.is_private else Hinge()
        usual = self.alpha is None and terms.is_private
        alpha = 1.0 / terms.records if self.alpha is None else float(self.alpha)
        return make_request(
            terms,
            loss,
            default_penalty(loss, 0.0, terms, features) if usual else penalty(alpha / terms.mean_weight, 0.0),
            features,
            constant=self._constant(terms),
            penalizes_constant=True,
            solver=self.solver,
            penalty_follows=usual,
        )

    def _width(self, terms: PrivacyParams, features: int) -> float:
        """The corner is rounded over as much as iterates wander, as that of absolute residuals is."""
        if self.smoothing is not None:
            return float(self.smoothing)
        score = terms.noise_level() * features / noise_levels.HINGE
        return min(max(noise_levels.KINKS_PER_NOISE * score, noise_levels.NARROWEST), WIDEST)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
