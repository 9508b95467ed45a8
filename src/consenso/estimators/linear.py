"""What all private linear models share: parameters that are checked first, rows, attributes of the fit, scores."""

from __future__ import annotations

import difflib
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.extmath import safe_sparse_dot

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.fitting import EXACT, bare_card, bare_guarantee, fit, make_shards, without_seed
from consenso.estimators.privacy_params import PrivacyParams, is_number
from consenso.estimators.private import PrivateEstimator
from consenso.estimators.reading import read_rows
from consenso.planning.plan import Plan
from consenso.privacy.card import Card
from consenso.privacy.observers import choose_observer
from consenso.problem import LEAST_ROW_BOUND, MOST_ROW_BOUND, Problem
from consenso.shards import Shards
from consenso.shards.cluster import ASSUMPTION, ClusterBatches
from consenso.shards.constant import constant_for

if TYPE_CHECKING:
    from consenso.solvers.exact import Exact


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

    def _learn(
        self, problem_of: Callable[[PrivacyParams], Problem], terms: PrivacyParams, X: Any, targets: Any
    ) -> None:
        """Fit a problem to validated rows and encoded targets, within the budget if there is one."""
        shards_of = partial(self._shards, X=X, targets=targets)
        if not terms.is_private:
            from consenso.solvers.exact import solve_exact

            problem = problem_of(terms)
            self._keep_exact(problem, solve_exact(problem, shards_of(problem)), terms)
            return
        result = fit(problem_of, terms, shards_of, records=X.shape[0], solver=self.solver)
        plan = result.plan
        self.guarantee_ = plan.guarantee(choose_observer(plan.trust), terms.delta)
        if isinstance(X, ClusterBatches):
            self.guarantee_ = replace(self.guarantee_, assumptions=(*self.guarantee_.assumptions, ASSUMPTION))
        self.solver_, self.solver_reason_, self.n_iter_ = plan.solver, plan.reason, result.rounds
        self._keep(without_seed(plan), plan.problem, result.model, terms)

    def _shards(self, problem: Problem, X: Any, targets: Any) -> Shards:
        bound = self.row_bound if math.isfinite(self.epsilon) else None
        return make_shards(problem, X, targets, row_bound=bound, constant=self._constant())

    def _keep_exact(self, problem: Problem, found: Exact, terms: PrivacyParams) -> None:
        """The attributes of a fit without privacy."""
        self.guarantee_ = bare_guarantee(terms.adjacency)
        self.solver_, self.solver_reason_, self.n_iter_ = EXACT, "exact: there is no budget to keep to.", found.steps
        self._keep(None, problem, found.model, terms)

    def _keep(self, plan: Plan | None, problem: Problem, model: Array, terms: PrivacyParams) -> None:
        self._plan, self._problem, self._delta = plan, problem, terms.delta
        self.__dict__.pop("_card", None)
        self._set_model(*self._split(problem, model))

    def _split(self, problem: Problem, model: Array) -> tuple[Array, Array]:
        """Coefficients (features, outputs) and intercepts (outputs,)."""
        table, constant = model.reshape(problem.features, problem.outputs), self._constant()
        if constant is None:
            return table, np.zeros(problem.outputs)
        return table[:-1], constant * table[-1]

    @abstractmethod
    def _set_model(self, coefficients: Array, intercepts: Array) -> None:
        """Keep coefficients (features, outputs) and intercepts (outputs,) in scikit-learn's shapes."""

    @property
    def card_(self) -> Card:
        """The privacy card of the fit, for every observer; it takes longer than a small fit, and is made when it is
        first looked at.
        """
        if "_card" not in vars(self):
            if "_delta" not in vars(self):
                raise AttributeError(f"{type(self).__name__}.card_: there is no card before fit.")
            told = {name: getattr(self._problem, name) for name in ("loss", "regularizer", "features", "adjacency")}
            plan, delta = self._plan, self._delta
            self._card: Card = bare_card(EXACT, told, delta) if plan is None else plan.card(delta)
        return self._card

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
