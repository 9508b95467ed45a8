"""What all private linear models share: parameters that are checked first, rows, attributes of the fit, scores."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from scipy import sparse

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.continued import STARTED, Continued
from consenso.estimators.fitting import EXACT, bare_card
from consenso.estimators.learning import Fit
from consenso.estimators.parameter_checks import PRIVATE, check_linear
from consenso.estimators.people import KEPT, People, check_cap, read_ids
from consenso.estimators.privacy_params import PrivacyParams, terms_of
from consenso.estimators.private import PrivateEstimator
from consenso.estimators.reading import read_rows, without_warnings
from consenso.estimators.stored import open_rows, require_in_memory
from consenso.estimators.uncertain import Uncertain
from consenso.estimators.weights import read_weights
from consenso.losses import Loss
from consenso.planning.plan import Plan
from consenso.privacy.card import Card
from consenso.privacy.guarantee import Guarantee
from consenso.problem import Problem
from consenso.shards.cluster import ASSUMPTION, ClusterBatches
from consenso.shards.constant import constant_for
from consenso.shards.stored import RowBatches

if TYPE_CHECKING:
    from consenso.solvers.request import Request

# Of the rows: more are not shortened by a bound that was chosen near the usual length.
MANY = 0.5


class ShorteningWarning(UserWarning):
    """A bound on rows that shortens many of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FitOptions:
    """What `fit` takes beside rows and targets."""

    sample_weight: Any = None
    users: Any = None
    rows_per_person: int | None = None
    weight_bound: float = 1.0
    start: Any = None
    goes_on: bool = False  # with what an earlier call has found


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLinearModel(Uncertain, Continued, PrivateEstimator):
    """Checks, the intercept's column, attributes and scores; not for direct use."""

    row_bound: float | None = None
    alpha: float | None = None
    bounds: str = "private"
    fit_intercept: bool = True
    solver: str = "auto"
    guarantee_: Guarantee = field(init=False)
    notes_: tuple[str, ...] = field(init=False)
    _problem: Problem = field(init=False)
    _plan: Plan | None = field(init=False)  # without its seed; None for an exact fit
    _delta: float = field(init=False)
    _remarks: Mapping[str, str] = field(init=False)  # what else a card says, such as where the rows were
    #: Whether an exact fit has the weighted mean of losses, as scikit-learn's, or their weighted sum over all rows.
    _averages_weights: ClassVar[bool] = False
    #: Losses of model files that become this estimator.
    made_from: ClassVar[tuple[type[Loss], ...]] = ()

    @classmethod
    def read_loss(cls, loss: Loss) -> dict[str, Any]:
        """The parameters that say what a loss of `made_from` has beside its kind."""
        return {}

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        users: Any = None,
        rows_per_person: int | None = None,
        weight_bound: float = 1.0,
        start: Any = None,
    ) -> Self:
        """Fit within the budget. X: (records, features), dense or sparse; y: labels or real targets.

        sample_weight: weights of rows between 0 and the public weight_bound, by which noise grows. users: the id of the
        person of each row, where a person has several: the guarantee is then for all rows of a person, each of whom
        counts like a person with rows_per_person rows at most, a public number; None has it chosen within the budget.
        start: a fitted estimator of the same kind whose model was released; a private classifier starts from it,
        with its bounds, and a private regressor learns what it leaves.

        X may be a frame of pandas or polars with y, and users, the names of columns of it. X may also be a table that
        stays in storage (a path or a pattern of Parquet, Arrow or CSV files, a Polars LazyFrame, a DuckDB
        relation, a Dask data frame) with y the name of its target, or a NumPy memory map. There rows_per_person is 1
        where it is left out.
        """
        options = FitOptions(
            sample_weight=sample_weight,
            users=users,
            rows_per_person=rows_per_person,
            weight_bound=weight_bound,
            start=start,
        )
        self._check_parameters()
        check_cap(type(self).__name__, rows_per_person, users)
        self._warn_of_spending()
        with without_warnings(math.isfinite(self.epsilon)):
            self._fit(X, y, options)
        self._warn_of_shortening()
        self._warn_of_threshold()
        return self

    @abstractmethod
    def _fit(self, X: Any, y: Any, options: FitOptions) -> None:
        """Fit, and set the attributes of the model."""

    def _warn_of_threshold(self) -> None:
        """Warn of a threshold that noise may have misplaced; only classifiers have one."""

    def _check_parameters(self) -> None:
        """Refuse what cannot be before data are looked at."""
        self._check_privacy()
        check_linear(self)

    def _constant(self, terms: PrivacyParams) -> float | None:
        """The value of the column for the intercept: any is exact, one that is no waste is private."""
        if not self.fit_intercept:
            return None
        return 1.0 if terms.row_bound is None else constant_for(terms.row_bound)

    def _ask(
        self,
        request_of: Callable[[PrivacyParams, int], Request],
        X: Any,
        options: FitOptions,
        *,
        bound: float | None = None,
        **rest: Any,
    ) -> Fit:
        """The fit that is asked for, of rows in memory. bound: that of rows that a schema made, where there is none."""
        owner, rows = type(self).__name__, X.shape[0]
        person = None if options.users is None else read_ids(f"{owner}.fit", options.users, rows)
        prior = self._prior(options.start, X.shape[1])
        known = self._collect_prior() if options.goes_on and prior is None else prior
        if known is not None and known.rows.columns is not None and sparse.issparse(X):
            X = X.toarray()  # columns that are moved are full
        terms = terms_of(self, owner, rows if person is None else int(person.max()) + 1)
        if terms.is_private and self.row_bound is None:
            terms = replace(terms, row_bound=bound if known is None else known.rows.row_bound)
        # A fit that goes on keeps to what an earlier call found within the declared bound.
        if terms.is_private and known is not None and (prior is None or terms.target_bound is None):
            terms = replace(terms, target_bound=known.target_bound)
        if person is not None:
            terms = replace(terms, unit="person", rows_per_unit=KEPT * int(options.rows_per_person or 1))
        weights = None
        if options.sample_weight is not None:
            terms, weights = read_weights(owner, options.sample_weight, options.weight_bound, terms, rows)
            if self._averages_weights and not terms.is_private:
                weights, terms = _to_mean_one(weights, terms)
        fit = Fit(
            request_of=request_of,
            terms=terms,
            X=X,
            person=person,
            cap=options.rows_per_person,
            sample_weight=weights,
            centers=self.fit_intercept,
            looks_at_bounds=self.bounds == PRIVATE,
            prior=prior if terms.is_private else None,
            rows=known.rows if known is not None and terms.is_private else None,
            middle=known.middle if known is not None and prior is None else 0.0,
            **rest,
        )
        if terms.is_private and self.row_bound is None and known is None and bound is not None:
            fit.notes.append(f"The row bound {bound:.4g} was taken over from the schema of the rows.")
        return fit

    def _ask_stored(
        self,
        request_of: Callable[[PrivacyParams, int], Request],
        batches: RowBatches,
        people: People | None,
        options: FitOptions,
        **rest: Any,
    ) -> Fit:
        """The fit that is asked for, of rows in storage."""
        cap = options.rows_per_person or 1
        terms = terms_of(self, type(self).__name__, batches.shape[0] if people is None else people.count)
        if people is not None:
            terms = replace(terms, unit="person", rows_per_unit=KEPT * int(cap))
        known = self._collect_prior() if options.goes_on else None
        if known is not None:
            terms = replace(terms, row_bound=known.rows.row_bound, target_bound=known.target_bound)
        return Fit(
            request_of=request_of,
            terms=terms,
            X=batches,
            weights=None if people is None else people.weights(),
            cap=None if people is None else cap,
            centers=self.fit_intercept,
            looks_at_bounds=self.bounds == PRIVATE,
            rows=None if known is None else known.rows,
            middle=0.0 if known is None else known.middle,
            **rest,
        )

    def _open(self, X: Any, y: Any, classes: Any, options: FitOptions) -> tuple[RowBatches, People | None]:
        """A table in storage, and whose rows they are."""
        for name in ("sample_weight", "start"):
            if getattr(options, name) is not None:
                raise InputError(
                    f"{type(self).__name__}.fit({name}=...): a table that is read in batches has none; read it first."
                )
        cap = options.rows_per_person or 1
        return open_rows(self, X, y, classes, options.users, cap, reset=not options.goes_on)

    def _learn(self, fit: Fit) -> None:
        """Find what is not known, then fit; what all models keep of it."""
        ledger = fit.terms.ledger
        fit.learn()
        self.row_map_, self.row_bound_, self.target_bound_ = fit.rows, fit.rows.row_bound, fit.target_bound
        self.rows_per_person_, self._shortened, self._middle = fit.cap, fit.shortened, fit.middle
        self._bounds_were_found = fit.finds_rows
        self.guarantee_, self._remarks = fit.guarantee, {}
        if isinstance(fit.X, ClusterBatches):
            self.guarantee_ = self.guarantee_.assume(ASSUMPTION)
            self._remarks = {"engine": ASSUMPTION}
        self._started = fit.prior is not None
        if self._started:
            self._remarks = {**self._remarks, "calls": STARTED}
            fit.notes.append(STARTED)
        self.solver_, self.solver_reason_, self.n_iter_ = fit.solver, fit.reason, fit.steps
        self._problem, self._plan, self._delta = fit.problem, fit.planned, fit.terms.delta
        self._records_learnt = fit.problem.records
        self.__dict__.pop("_card", None)
        self._keep_evidence(fit.evidence)
        self.notes_ = (*fit.notes, *self._say_spent(ledger))
        self._set_model(fit.coefficients, fit.intercepts)

    def _make_card(self) -> Card:
        """That of the fit, or of the search that chose it; it takes longer than a small fit, and is kept."""
        if self._chosen_by is not None:
            card: Card = self._chosen_by.card
            return card
        if "_card" not in self.__dict__:
            self.__dict__["_card"] = self._make_own_card()
        made: Card = self.__dict__["_card"]
        return made

    def _make_own_card(self) -> Card:
        if self._plan is not None:
            made = self._plan.card(self._delta)
            return replace(made, data={**made.data, **self._remarks}) if self._remarks else made
        told = {name: getattr(self._problem, name) for name in ("loss", "regularizer", "features", "adjacency")}
        return bare_card(EXACT, told, self._delta)

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
        require_in_memory(self, X)
        X = read_rows(self, X, accept_sparse="csr", reset=False)
        if self.row_map_.columns is not None and sparse.issparse(X):
            X = X.toarray()  # columns that are moved are full
        return self.row_map_.score(X, coefficients, intercepts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _to_mean_one(weights: Array, terms: PrivacyParams) -> tuple[Array, PrivacyParams]:
    scaled = weights / weights.mean()
    return scaled, replace(terms, weight_bound=max(float(scaled.max()), math.nextafter(1.0, 2.0)))
