"""Private ridge regression, lasso and elastic net."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from consenso.estimators.parameter_checks import check_size
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.regression import PrivateRegressor
from consenso.losses import Huber, Loss, Squared


@dataclass(kw_only=True, eq=False, repr=False)
class LeastSquares(PrivateRegressor):
    """Squared losses. One record can move their gradient without bound, so that under privacy residuals are clipped.

    Noisy counts of targets and residuals say where, or a public `residual_bound` does (Huber's loss); not for direct
    use.
    """

    residual_bound: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "residual_bound", self.residual_bound, "the clip of residuals")

    def _loss(self, terms: PrivacyParams) -> tuple[Loss, float]:
        if not terms.is_private or self.residual_bound is None:
            return Squared(), 1.0
        return Huber(threshold=float(self.residual_bound)), 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRidge(LeastSquares):
    """Ridge regression with differential privacy.

    Minimises mean squared loss r^2/2 + alpha/2 |w|^2; the intercept is not penalized. At epsilon=inf it equals
    Ridge(alpha=alpha * records). alpha=None is 1 / records there, which is Ridge(alpha=1), and under privacy a tenth of
    row_bound^2 / (features * records), which is 1 / records for columns of unit variance, whatever their units: the
    noise of privacy is damped by itself.

    target_bound: public bound on the size of targets; larger ones are clipped to it. residual_bound: under privacy,
    residuals beyond this public number pull with this strength only (Huber's loss); None lets noisy counts of targets
    and residuals decide. The other parameters and the attributes are those of PrivateLogisticRegression.
    """

    made_from = (Squared, Huber)

    @classmethod
    def read_loss(cls, loss: Loss) -> dict[str, Any]:
        """The threshold of Huber's loss is the bound on residuals."""
        return {"residual_bound": loss.threshold if isinstance(loss, Huber) else None}

    def _usual_alpha(self, records: int) -> float:
        return 1.0 / records


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateElasticNet(LeastSquares):
    """Linear regression with an L1 and an L2 penalty and differential privacy.

    Minimises mean squared loss r^2/2 + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not
    penalized. At epsilon=inf it equals ElasticNet(alpha=alpha, l1_ratio=l1_ratio). alpha=None is 1 there, as in
    ElasticNet, and under privacy the level below which a coefficient cannot be told from noise; those that are kept
    feel a third of it. The other parameters are those of PrivateRidge.
    """

    _averages_weights = True

    l1_ratio: float = 0.5

    def _l1_ratio(self) -> float:
        return float(self.l1_ratio)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLasso(LeastSquares):
    """The lasso with differential privacy: a sparse linear regression.

    Minimises mean squared loss r^2/2 + alpha |w|_1; the intercept is not penalized. At epsilon=inf it equals
    Lasso(alpha=alpha). alpha=None is 1 there, as in Lasso, and under privacy the level below which a coefficient cannot
    be told from noise; those that are kept feel a third of it. The other parameters are those of PrivateRidge.
    """

    _averages_weights = True

    def _l1_ratio(self) -> float:
        return 1.0
