"""What all private linear models share: parameters that are checked first, rows, attributes of the fit, scores."""

from __future__ import annotations

import difflib
import math
import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import validate_data

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import Fitted
from consenso.estimators.terms import check_terms, is_number
from consenso.privacy.card import Card
from consenso.privacy.ledger import Ledger
from consenso.problem import Adjacency
from consenso.shards.constant import constant_for

# Parameters that a search does not look for.
_NOT_SEARCHED = frozenset({"random_state"})


class SpendingWarning(UserWarning):
    """A search is fitting: every fit spends its own budget."""


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """Checks, the intercept's column, attributes and scores; not for direct use."""

    epsilon: float
    delta: float | None
    row_bound: float | None
    fit_intercept: bool
    solver: str
    alpha: float | None
    adjacency: Adjacency
    records: int | None
    ledger: Ledger | str | Path | None
    random_state: Any

    def __sklearn_clone__(self) -> Self:
        """A clone that knows it is one: searches fit clones whose parameters they have set."""
        copy: Self = super().__sklearn_clone__()
        copy._is_clone = True
        return copy

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn."""
        super().set_params(**params)
        if getattr(self, "_is_clone", False) and not params.keys() <= _NOT_SEARCHED:
            self._is_searched = True
        return self

    @property
    def card_(self) -> Card:
        """The privacy card of the fit, for every observer; made when it is first looked at."""
        if not hasattr(self, "_claims"):
            raise AttributeError(f"{type(self).__name__}.card_: there is no card before fit.")
        card: Card = self._claims.card
        return card

    def _check_parameters(self) -> None:
        """Refuse what cannot be before data are looked at."""
        owner = type(self).__name__
        check_terms(self, owner)
        private = math.isfinite(self.epsilon)
        if private and self.row_bound is None:
            raise InputError(
                f"{owner}(row_bound=None): with a finite epsilon the 2-norm of every row needs a public bound, to "
                "which longer rows are shortened; choose it from public knowledge (sqrt(features) for columns in "
                "[-1, 1]), or spend budget with private_bounds(X, epsilon=...) or PrivateScaler."
            )
        check_size(owner, "row_bound", self.row_bound, "a bound on the 2-norm of rows")
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

    def _warn_of_search(self) -> None:
        if getattr(self, "_is_searched", False) and math.isfinite(self.epsilon):
            warnings.warn(
                f"{type(self).__name__}.fit: a clone with other parameters is fitted, as a search does; every fit "
                f"spends its own epsilon={self.epsilon:g} on the rows it sees, and its cross-validated scores are "
                "private; tune on public data, or pass ledger= to have every fit charged.",
                SpendingWarning,
                stacklevel=3,
            )

    def _validated(self, X: Any, y: Any, **checks: Any) -> tuple[Any, Any]:
        """Rows as a float array or csr, targets as given."""
        return validate_data(  # type: ignore[no-any-return]
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", **checks
        )

    def _constant(self) -> float | None:
        """The value of the column for the intercept: any is exact, one that is no waste is private."""
        if not self.fit_intercept:
            return None
        return constant_for(self.row_bound) if math.isfinite(self.epsilon) and self.row_bound is not None else 1.0

    def _keep(self, fitted: Fitted) -> None:
        """The attributes of a fit that all models have."""
        self.guarantee_ = fitted.guarantee
        self.solver_ = fitted.solver
        self.solver_reason_ = fitted.reason
        self.n_iter_ = fitted.steps
        self._claims = fitted.claims

    def _scores(self, X: Any, coefficients: Array, intercepts: Any) -> Array:
        """Rows times coefficients (features,) or (features, outputs), plus intercepts."""
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(safe_sparse_dot(X, coefficients, dense_output=True) + intercepts, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Noise of the operating system differs from fit to fit.
        tags.non_deterministic = math.isfinite(self.epsilon) and self.random_state is None
        return tags


def check_size(owner: str, name: str, value: Any, meaning: str) -> None:
    """A bound is a positive finite number, or None."""
    if value is None:
        return
    if not (is_number(value) and 0 < value < math.inf):
        raise InputError(f"{owner}({name}={value!r}): {name} is {meaning}, a positive finite number.")


def _is_strength(value: Any) -> bool:
    return is_number(value) and 0 <= value < math.inf
