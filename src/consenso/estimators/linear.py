"""What all private linear models share: parameters that are checked first, rows, attributes of the fit, scores."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scipy import sparse

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import Fitted, Task, usual_strength
from consenso.estimators.learning import learn
from consenso.estimators.people import KEPT, RowWeights, read_people
from consenso.estimators.privacy_params import PrivacyParams, is_number, terms_of
from consenso.estimators.private import PrivateEstimator
from consenso.estimators.reading import read_rows
from consenso.estimators.stored import open_rows
from consenso.estimators.uncertain import Uncertain
from consenso.estimators.weights import ClassWeights
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND
from consenso.shards.cluster import ASSUMPTION, ClusterBatches
from consenso.shards.constant import constant_for
from consenso.shards.stored import RowBatches

PUBLIC, PRIVATE = "public", "private"
# Of the rows: more are not shortened by a bound that was chosen near the usual length.
MANY = 0.5


class ShorteningWarning(UserWarning):
    """A bound on rows that shortens many of them."""


class PrivateLinearModel(Uncertain, PrivateEstimator):
    """Checks, the intercept's column, attributes and scores; not for direct use."""

    row_bound: float | None
    bounds: str
    fit_intercept: bool
    solver: str
    alpha: float | None

    def _check_parameters(self) -> None:
        """Refuse what cannot be before data are looked at."""
        owner = type(self).__name__
        self._check_privacy()
        private = math.isfinite(self.epsilon)
        if self.bounds not in (PUBLIC, PRIVATE):
            raise InputError(
                f"{owner}(bounds={self.bounds!r}): bounds that are not given are found within the budget ('private'), "
                "or have to be given ('public')."
            )
        if private and self.bounds == PUBLIC and self.row_bound is None:
            raise InputError(
                f"{owner}(row_bound=None, bounds='public'): with a finite epsilon the 2-norm of every row needs a "
                "public bound, to which longer rows are shortened; choose it from public knowledge (sqrt(features) for "
                "columns in [-1, 1]), or leave bounds out to have it found within the budget."
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

    def _constant(self, terms: PrivacyParams) -> float | None:
        """The value of the column for the intercept: any is exact, one that is no waste is private."""
        if not self.fit_intercept:
            return None
        return 1.0 if terms.row_bound is None else constant_for(terms.row_bound)

    def _usual_strength(self, terms: PrivacyParams, features: int) -> float:
        """The L2 penalty by default: scikit-learn's without privacy, else in the units of the rows."""
        if terms.row_bound is None:
            return 1.0 / terms.records
        return usual_strength(float(terms.row_bound), features, terms.records)

    def _group(
        self, X: Any, y: Any, users: Any, rows_per_person: int, bound: float | None = None
    ) -> tuple[Any, Any, PrivacyParams, RowWeights | None]:
        """The rows that are kept of every person, the terms of the fit, and the weights of the rows.

        bound: that of rows that a schema made, for a model without one of its own.
        """
        owner = type(self).__name__

        def terms_for(units: int) -> PrivacyParams:
            terms = terms_of(self, owner, units)
            return replace(terms, row_bound=bound) if terms.is_private and self.row_bound is None else terms

        if users is None:
            return X, y, terms_for(X.shape[0]), None
        people = read_people(owner, users, X.shape[0], rows_per_person)
        terms = replace(terms_for(people.count), unit="person", rows_per_unit=KEPT * int(rows_per_person))
        weights = RowWeights(values=people.contributions, contributions=people.contributions, units=people.count)
        return X[people.kept], y[people.kept], terms, weights

    def _open(self, X: Any, y: Any, classes: Any, users: Any) -> tuple[Any, PrivacyParams]:
        """A table in storage, and the terms of the fit."""
        if users is not None:
            raise InputError(
                f"{type(self).__name__}.fit(users=...): people are not looked for in a table that is read in batches."
            )
        batches = open_rows(self, X, y, classes)
        return batches, terms_of(self, type(self).__name__, batches.shape[0])

    def _learn(
        self,
        task_of: Callable[[PrivacyParams], Task],
        terms: PrivacyParams,
        X: Any,
        targets: Any,
        weights: RowWeights | None = None,
        class_weights: ClassWeights | None = None,
    ) -> Fitted:
        """Find the bounds that are not known, then fit; what all models keep of it."""
        learnt = learn(
            task_of,
            terms,
            X,
            targets,
            weights,
            centers=self.fit_intercept,
            counts_long_rows=self.bounds == PRIVATE and not isinstance(X, RowBatches),
            class_weights=class_weights,
        )
        self.row_map_, self.notes_ = learnt.rows, learnt.notes
        self._shortened = learnt.shortened
        self.row_bound_, self.target_bound_ = learnt.rows.row_bound, learnt.target_bound
        fitted = learnt.fitted
        if isinstance(X, ClusterBatches):
            told = replace(fitted.guarantee, assumptions=(*fitted.guarantee.assumptions, ASSUMPTION))
            fitted = replace(fitted, guarantee=told)
        self.guarantee_ = fitted.guarantee
        self.solver_ = fitted.solver
        self.solver_reason_ = fitted.reason
        self.n_iter_ = fitted.steps
        self._claims = fitted.claims
        self._keep_evidence(fitted.evidence, learnt.middle)
        return fitted

    def _warn_of_shortening(self) -> None:
        """Warn where, by a noisy count that the fit paid for, a bound shortened many rows."""
        if self._shortened > MANY:
            warnings.warn(
                f"{type(self).__name__}(row_bound={self.row_bound:g}): by a noisy count about {self._shortened:.0%} of "
                "the rows are longer and were shortened, here and in predict; scale the columns, choose a larger "
                "bound, or leave row_bound out to have bounds found within the budget.",
                ShorteningWarning,
                stacklevel=3,
            )

    def _scores(self, X: Any, coefficients: Array, intercepts: Any) -> Array:
        """Rows as the fit saw them times coefficients (features,) or (features, outputs), plus intercepts."""
        X = read_rows(self, X, accept_sparse="csr", reset=False)
        if self.row_map_.columns is not None and sparse.issparse(X):
            X = X.toarray()  # columns that are moved are full
        return self.row_map_.score(X, coefficients, intercepts)

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
