"""What private regressors share: public bounds on targets, coefficients, predictions."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import MEASURING, default_penalty, make_request, penalty
from consenso.estimators.frames import bound_of, feature_names_of, take_columns
from consenso.estimators.learning import Fit
from consenso.estimators.linear import FitOptions, PrivateLinearModel
from consenso.estimators.parameter_checks import PUBLIC, check_size
from consenso.estimators.people import check_cap
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.reading import read_records, without_warnings
from consenso.estimators.stored import opens
from consenso.losses import Loss
from consenso.regularizers import Regularizer

if TYPE_CHECKING:
    from consenso.solvers.request import Request


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Targets, coefficients and predictions; not for direct use."""

    target_bound: float | None = None

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        users: Any = None,
        rows_per_person: int | None = None,
        weight_bound: float = 1.0,
    ) -> Self:
        """Fit to more records within another epsilon, and average; every call is charged.

        Bounds that the first call has found are kept, and cost nothing again.
        """
        options = FitOptions(
            sample_weight=sample_weight,
            users=users,
            rows_per_person=rows_per_person,
            weight_bound=weight_bound,
            goes_on=hasattr(self, "row_map_"),
        )
        self._check_parameters()
        check_cap(type(self).__name__, rows_per_person, users)
        with without_warnings(math.isfinite(self.epsilon)):
            return self._go_on(lambda: self._fit(X, y, options), of_people=users is not None)

    def _fit(self, X: Any, y: Any, options: FitOptions) -> None:
        self._learn(self._read(X, y, options))

    def _set_model(self, coefficients: Array, intercepts: Array) -> None:
        self.coef_, self.intercept_ = np.array(coefficients[:, 0]), float(intercepts[0])

    def _read(self, X: Any, y: Any, options: FitOptions) -> Fit:
        if opens(X):
            batches, people = self._open(X, y, None, options)
            many = batches.shape[1]
            return self._ask_stored(lambda known, _: self._request(known, many), batches, people, options)
        X, y, users = take_columns(type(self).__name__, X, y, options.users)
        options = replace(options, users=users)
        bound, self._made_names = bound_of(X), feature_names_of(X)
        X, y = read_records(self, X, y, real=True, reset=not options.goes_on)
        return self._ask(lambda known, _: self._request(known, X.shape[1]), X, options, bound=bound, targets=y)

    def predict(self, X: Any) -> Array:
        """Predictions, (records,)."""
        check_is_fitted(self)
        return self._scores(X, self.coef_, self.intercept_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner = type(self).__name__
        if math.isfinite(self.epsilon) and self.bounds == PUBLIC and self.target_bound is None:
            raise InputError(
                f"{owner}(target_bound=None, bounds='public'): with a finite epsilon targets need a public bound, to "
                "which they are clipped; choose it from public knowledge, or leave bounds out to have it found within "
                "the budget."
            )
        check_size(owner, "target_bound", self.target_bound, "a bound on the size of targets")

    def _request(self, terms: PrivacyParams, features: int) -> Request:
        """What is asked of a solver, with this many columns."""
        loss, factor = self._loss(terms)
        return make_request(
            terms,
            loss,
            self._penalty(loss, factor, terms, features),
            features,
            constant=self._constant(terms),
            solver=self.solver,
            penalty_follows=self.alpha is None,
        )

    @abstractmethod
    def _loss(self, terms: PrivacyParams) -> tuple[Loss, float]:
        """The loss that is minimised, and the factor that it has over the loss that the penalty is stated for."""

    def _counts_residuals(self) -> bool:
        """Whether the solver may find out where residuals are clipped."""
        return self.solver in MEASURING

    def _l1_ratio(self) -> float:
        return 0.0

    def _penalty(self, loss: Loss, factor: float, terms: PrivacyParams, features: int) -> Regularizer:
        """The penalty asked for, else scikit-learn's default; under privacy one in the units of the rows."""
        if self.alpha is None and terms.is_private:
            return default_penalty(loss, self._l1_ratio(), terms, features)
        alpha = self._usual_alpha(terms.records) if self.alpha is None else float(self.alpha)
        return penalty(factor * alpha, self._l1_ratio())

    def _usual_alpha(self, records: int) -> float:
        """What scikit-learn takes by default, in this library's normalisation."""
        return 1.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = math.isfinite(self.epsilon)
        return tags


def share_of(given: float | None, share: float, target_bound: float | None) -> float:
    """A number in the units of the targets: as given, or under privacy a share of their bound."""
    if given is not None:
        return float(given)
    assert target_bound is not None, "declared, or found before the fit"
    return share * target_bound
