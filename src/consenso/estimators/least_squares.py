"""Private ridge regression, lasso and elastic net."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consenso.estimators.linear import check_size
from consenso.estimators.regression import PrivateRegressor
from consenso.losses import Huber, Loss, Squared
from consenso.privacy.ledger import Ledger
from consenso.problem import Adjacency


class PrivateRidge(PrivateRegressor):
    """Ridge regression with differential privacy.

    Minimises mean squared loss r^2/2 + alpha/2 |w|^2; the intercept is not penalized. At epsilon=inf it equals
    Ridge(alpha=alpha * records). alpha=None is 1 / records there, which is Ridge(alpha=1), and under privacy
    row_bound^2 / (features * records): the same for columns of unit variance, whatever their units.

    target_bound: public bound on the size of targets; larger ones are clipped to it. residual_bound: under privacy,
    residuals beyond this public number pull with this strength only (Huber's loss); None lets noisy counts of targets
    and residuals decide. The other parameters and the attributes are those of PrivateLogisticRegression.
    """

    made_from = (Squared, Huber)

    @classmethod
    def read_loss(cls, loss: Loss) -> dict[str, Any]:
        """The threshold of Huber's loss is the bound on residuals."""
        return {"residual_bound": loss.threshold if isinstance(loss, Huber) else None}

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        target_bound: float | None = None,
        alpha: float | None = None,
        residual_bound: float | None = None,
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
        self.residual_bound = residual_bound
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.records = records
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_size(type(self).__name__, "residual_bound", self.residual_bound, "the clip of residuals")

    def _usual_alpha(self, records: int) -> float:
        return 1.0 / records


class PrivateElasticNet(PrivateRegressor):
    """Linear regression with an L1 and an L2 penalty and differential privacy.

    Minimises mean squared loss r^2/2 + alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2); the intercept is not
    penalized. At epsilon=inf it equals ElasticNet(alpha=alpha, l1_ratio=l1_ratio). alpha=None is 1 there, as in
    ElasticNet, and under privacy the level below which a coefficient cannot be told from noise. The other parameters
    are those of PrivateRidge.
    """

    _averages_weights = True

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
        self.residual_bound = residual_bound
        self.bounds = bounds
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

    _averages_weights = True

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        row_bound: float | None = None,
        target_bound: float | None = None,
        alpha: float | None = None,
        residual_bound: float | None = None,
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
        self.residual_bound = residual_bound
        self.bounds = bounds
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
