"""What all private linear models share: parameters that are checked first, rows, attributes of the fit, scores."""

from __future__ import annotations

import difflib
import math
from typing import Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import Fitted, usual_strength
from consenso.estimators.privacy_params import PrivacyParams, is_number
from consenso.estimators.private import PrivateEstimator
from consenso.estimators.reading import read_rows
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND
from consenso.shards.constant import constant_for


class PrivateLinearModel(PrivateEstimator):
    """Checks, the intercept's column, attributes and scores; not for direct use."""

    row_bound: float | None
    fit_intercept: bool
    solver: str
    alpha: float | None

    def _check_parameters(self) -> None:
        """Refuse what cannot be before data are looked at."""
        owner = type(self).__name__
        self._check_privacy()
        private = math.isfinite(self.epsilon)
        if private and self.row_bound is None:
            raise InputError(
                f"{owner}(row_bound=None): with a finite epsilon the 2-norm of every row needs a public bound, to "
                "which longer rows are shortened; choose it from public knowledge (sqrt(features) for columns in "
                "[-1, 1]), or spend budget with private_bounds(X, epsilon=...) or PrivateScaler."
            )
        check_row_bound(owner, self.row_bound)
        if self.alpha is not None and not _is_strength(self.alpha):
            raise InputError(
                f"{owner}(alpha={self.alpha!r}): a penalty is a finite number of at least 0; leave it out for the "
                "default."
            )
        l1_ratio = getattr(self, "l1_ratio", 0.0)
        if not _is_strength(l1_ratio) or l1_ratio > 1:
            raise InputError(f"{owner}(l1_ratio={l1_ratio!r}): the share of the 1-norm lies in [0, 1].")
        self._check_solver()

    def _check_solver(self) -> None:
        from consenso.solvers import names

        if self.solver == "auto" or self.solver in names():
            return
        near = difflib.get_close_matches(str(self.solver), ("auto", *names()), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"use 'auto' or one of {', '.join(map(repr, names()))}."
        raise InputError(f"{type(self).__name__}(solver={self.solver!r}): there is no such solver; {hint}")

    def _constant(self) -> float | None:
        """The value of the column for the intercept: any is exact, one that is no waste is private."""
        if not self.fit_intercept:
            return None
        return constant_for(self.row_bound) if math.isfinite(self.epsilon) and self.row_bound is not None else 1.0

    def _usual_strength(self, terms: PrivacyParams, features: int) -> float:
        """The L2 penalty by default: scikit-learn's without privacy, else in the units of the rows."""
        if not terms.is_private or self.row_bound is None:
            return 1.0 / terms.records
        return usual_strength(float(self.row_bound), features, terms.records)

    def _keep(self, fitted: Fitted) -> None:
        """The attributes of a fit that all models have."""
        self.guarantee_ = fitted.guarantee
        self.solver_ = fitted.solver
        self.solver_reason_ = fitted.reason
        self.n_iter_ = fitted.steps
        self._claims = fitted.claims

    def _scores(self, X: Any, coefficients: Array, intercepts: Any) -> Array:
        """Rows times coefficients (features,) or (features, outputs), plus intercepts."""
        X = read_rows(self, X, accept_sparse="csr", reset=False)
        return np.asarray(safe_sparse_dot(X, coefficients, dense_output=True) + intercepts, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_size(owner: str, name: str, value: Any, meaning: str) -> None:
    """A bound is a positive finite number, or None."""
    if value is None:
        return
    if not (is_number(value) and 0 < value < math.inf):
        raise InputError(f"{owner}({name}={value!r}): {name} is {meaning}, a positive finite number.")


def check_row_bound(owner: str, value: Any) -> None:
    """A bound on rows is a number within which rows can be shortened exactly, or None."""
    check_size(owner, "row_bound", value, "a bound on the 2-norm of rows")
    if value is not None and not LEAST_ROW_BOUND <= value <= MOST_ROW_BOUND:
        raise InputError(
            f"{owner}(row_bound={value!r}): a bound on the 2-norm of rows lies between {LEAST_ROW_BOUND:g} and "
            f"{MOST_ROW_BOUND:g}; change the units of the columns."
        )


def _is_strength(value: Any) -> bool:
    return is_number(value) and 0 <= value < math.inf
