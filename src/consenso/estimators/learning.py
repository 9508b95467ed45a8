"""From rows to coefficients in their own units: what nobody declared is found first, then comes the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from consenso.algorithms.evidence import Evidence
from consenso.arrays import Array, IntArray
from consenso.estimators.column_search import leave_share
from consenso.estimators.declared_rows import DeclaredShares, find_declared, share_declared
from consenso.estimators.declared_targets import TargetShares, find_declared_targets, share_declared_targets
from consenso.estimators.fitting import EXACT, MEASURING, bare_guarantee, solve, split_model, without_seed
from consenso.estimators.labels import LABELS_SHARE, Labels, find_labels, prepare_terms
from consenso.estimators.people import CAP_SHARE, KEPT, RowWeights, choose_cap, pays_for_cap, weigh_people
from consenso.estimators.prior import Prior
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.private_rows import (
    SHORTENED_SHARE,
    RowShares,
    count_shortened,
    find_rows,
    find_targets,
    plan_shortened,
    share_rows,
    share_targets,
)
from consenso.estimators.row_change import RowChange, change_batches
from consenso.estimators.row_histograms import Records
from consenso.estimators.row_map import RowMap
from consenso.estimators.stages import Stages
from consenso.estimators.threshold import THRESHOLD_SHARE, ThresholdSearch
from consenso.estimators.weights import ClassWeights
from consenso.losses import Loss
from consenso.planning.plan import Plan
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.observers import choose_observer
from consenso.problem import Problem
from consenso.regularizers import NoPenalty, Unpenalized
from consenso.shards.stored import RowBatch, RowBatches

if TYPE_CHECKING:
    from consenso.engine.run import Result
    from consenso.solvers.exact import Exact
    from consenso.solvers.request import Request


class Fit(Stages):
    """One fit of an estimator: what was read and asked for, what is found out on the way, and what it leaves.

    request_of: what is asked of a solver, given terms and a number of classes, which a regression ignores. targets:
    real ones; None for labels. labels: known ones, or the labels themselves, (rows,), where it is not known which there
    are; check_found: refuses classes that were found. person: the number of the person of each row, (rows,), and cap,
    which is chosen where it is None. sample_weight: (rows,), within the bound of the terms. centers: whether there is
    an intercept. looks_at_bounds: whether bounds that were given may be looked at: columns of very different
    sizes, rows and targets far within theirs, and the number of rows that they shorten. recall: that of a threshold,
    and the reach of its scores. prior: what an earlier fit released. A table in storage (X) has its targets and weights
    itself: weights and declared, its classes, say which.

    `learn` leaves a model in the units of the columns, the map of its rows, and the guarantee. shortened: noisy share
    of the rows that were longer than a bound that was given, 0 where it was not counted. notes: sentences for whoever
    called; they say public and released things only. evidence: what `consenso.estimators.uncertainty.estimate` takes.
    """

    coefficients: Array  # (features, outputs)
    intercepts: Array  # (outputs,)
    guarantee: Guarantee
    problem: Problem
    solver: str
    reason: str
    steps: int

    def __init__(
        self,
        *,
        request_of: Callable[[PrivacyParams, int], Request],
        terms: PrivacyParams,
        X: Any,
        centers: bool,
        targets: Any = None,
        labels: Labels | NDArray[Any] | None = None,
        check_found: Callable[[NDArray[Any]], None] = lambda _: None,
        person: IntArray | None = None,
        cap: int | None = None,
        sample_weight: Array | None = None,
        looks_at_bounds: bool = True,
        class_weights: ClassWeights | None = None,
        recall: tuple[float, float] | None = None,
        prior: Prior | None = None,
        rows: RowMap | None = None,
        middle: float = 0.0,
        weights: RowWeights | None = None,
        declared: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(terms)
        self.request_of, self.X, self.targets, self.labels = request_of, X, targets, labels
        self.check_found = check_found
        self.person, self.cap, self.sample_weight, self.weights = person, cap, sample_weight, weights
        self.centers, self.class_weights, self.prior = centers, class_weights, prior
        self.recall = recall if terms.is_private else None
        self.declared, self.middle, self.target_bound = declared, middle, terms.target_bound
        self.rows = RowMap(row_bound=terms.row_bound) if rows is None else rows
        given = terms.row_bound is not None and rows is None
        # A model that goes on from another one has its columns.
        self.looks_at_columns = looks_at_bounds and given and prior is None
        self.looks_at_targets = looks_at_bounds and rows is None and prior is None
        # Where the number of records is public, there is a share of shortened rows to speak of.
        self.counts_rows = looks_at_bounds and given and terms.adjacency == "replace-one"
        self.notes: list[str] = []
        self.shortened, self.threshold, self.finds_rows = 0.0, 0.0, False
        self.planned: Plan | None = None  # without its seed
        self.findings: Mapping[str, float] = {}  # what was released on the way
        self.evidence: tuple[Loss, int, float | None, Evidence | None] | None = None

    @property
    def classes(self) -> int:
        """How many classes there are; 2 until they are found."""
        if self.declared is not None:
            return len(self.declared)
        return len(self.labels.classes) if isinstance(self.labels, Labels) else 2

    def learn(self) -> None:
        """Find what is not known within a share of the budget, then fit."""
        terms, is_stored = self.terms, isinstance(self.X, RowBatches)
        seen = self.X if is_stored else RowBatch(self.X, self.targets)  # to see how many rows there are, of what kind
        request = self.request_of(_guess(terms), self.classes)
        real = request.problem.loss.targets == "real"
        seeks_labels = isinstance(self.labels, np.ndarray)
        looks = request.solver in MEASURING
        row_shares: RowShares | DeclaredShares | None = None
        if not terms.is_private:
            pass
        elif terms.row_bound is None:
            row_shares = share_rows(seen, terms)
        elif looks and self.looks_at_columns and _bears_new_units(request):
            row_shares = share_declared(seen, terms, centers=self.centers)
        target_share: float | TargetShares | None = None
        if terms.is_private and real:
            if terms.target_bound is None:
                target_share = share_targets(terms)
            elif looks and self.looks_at_targets:
                target_share = share_declared_targets(terms)
        seeks_cap = self.person is not None and self.cap is None and pays_for_cap(terms, self.X.shape[1])
        share = (
            (0.0 if row_shares is None else row_shares.whole)
            + (target_share.whole if isinstance(target_share, TargetShares) else target_share or 0.0)
            + (LABELS_SHARE if seeks_labels else 0.0)
            + (CAP_SHARE if seeks_cap else 0.0)
            + (0.0 if self.recall is None else THRESHOLD_SHARE)
            + (0.0 if self.class_weights is None else self.class_weights.share(terms))
        )
        if seeks_labels:
            self.terms = prepare_terms(terms)
        if share:
            self._check_plan(share)
        with self.reserve(share + (SHORTENED_SHARE if self.counts_rows else 0.0), "bounds, and a fit"):
            if not is_stored:
                self.gather()
                if isinstance(self.labels, np.ndarray):
                    self.labels, note = find_labels(self.labels, self, self._own)
                    self.notes.append(note)
                    self.check_found(self.labels.classes)
                if isinstance(self.labels, Labels):
                    self.targets = self.labels.targets
            self._find_bounds(row_shares, target_share)
            self._solve()

    def gather(self) -> None:
        """Keep the rows of every person that are counted, and their weights."""
        own_weights, person, self.sample_weight, self.person = self.sample_weight, self.person, None, None
        if person is None:
            if own_weights is not None:
                self.weights = RowWeights(values=own_weights, contributions=None, units=len(own_weights))
            return
        cap = self.cap
        if cap is None and self.terms.is_private:
            cap, note = choose_cap(person, self.X.shape[1], self)
            self.notes.append(note)
        self.cap = cap or 1
        people = weigh_people(person, self.cap)
        self.terms = replace(self.terms, rows_per_unit=KEPT * self.cap)
        kept, own = people.kept, people.contributions
        values = own if own_weights is None else own * own_weights[kept]
        self.weights = RowWeights(values=values, contributions=own, units=people.count)
        self.X = self.X[kept]
        self.targets = None if self.targets is None else self.targets[kept]
        if self.labels is not None:
            self.labels = self.labels.keep(kept) if isinstance(self.labels, Labels) else self.labels[kept]

    @property
    def _own(self) -> Array | None:
        """What each row counts for, where a person has several."""
        return None if self.weights is None else self.weights.contributions

    def _find_bounds(
        self, row_shares: RowShares | DeclaredShares | None, target_share: float | TargetShares | None
    ) -> None:
        """The map of the rows, the middle of the targets and their bound, where they are not known."""
        records = self.X if isinstance(self.X, RowBatches) else RowBatch(self.X, self.targets, self._own)
        planned, declared = self.terms.share, self.terms.row_bound
        if isinstance(row_shares, RowShares):
            self.rows, self.finds_rows = find_rows(records, row_shares, self, centers=self.centers), True
            self.notes.append(_say_rows(self.rows, row_shares.whole - (planned - self.terms.share)))
        elif row_shares is not None and declared is not None:
            found = find_declared(records, row_shares, self, declared, centers=self.centers)
            if found is not None:
                self.rows, self.finds_rows = found.rows, True
                self.notes.append(found.say(row_shares.whole - (planned - self.terms.share)))
                if self.counts_rows:  # how many rows a bound shortens that is no longer used
                    self.counts_rows = False
                    leave_share(SHORTENED_SHARE, self)
        if target_share:
            self._find_targets(records, target_share)

    def _find_targets(self, records: Records, share: float | TargetShares) -> None:
        planned, declared, why = self.terms.share, self.target_bound, ""
        if isinstance(share, TargetShares):
            assert declared is not None
            found = find_declared_targets(records, share, self, declared, centers=self.centers)
            if found is None:
                return
            share, why = share.whole, "Most targets lie in a small part of target_bound. "
        else:
            found = find_targets(records, share, self, centers=self.centers)
        self.middle, self.target_bound = found
        self.notes.append(
            f"{why}Targets are clipped to {self.middle:.4g} +- {self.target_bound:.4g}, found in the data for "
            f"{share - (planned - self.terms.share):.1%} of the squared budget."
        )

    def _solve(self) -> None:
        """The fit itself, once everything is known, and what is counted with it."""
        X, targets, labels, rows, prior = self.X, self.targets, self.labels, self.rows, self.prior
        records = X if isinstance(X, RowBatches) else RowBatch(X, targets, self._own)
        if self.middle and targets is not None:
            targets = targets - self.middle
        relative = self._find_class_weights(X, targets)
        long_rows = plan_shortened(self) if self.counts_rows else None
        search = None if self.recall is None else ThresholdSearch.plan(self, *self.recall)
        known = replace(self.terms, row_bound=rows.row_bound, target_bound=self.target_bound)
        start = None
        if prior is not None and labels is not None:
            start = prior.in_units_of_rows()
        elif prior is not None:
            targets = targets - prior.predict(X)
        if isinstance(X, RowBatches):
            bound = self.terms.weight_bound
            change = RowChange(rows=rows, middle=self.middle, class_weights=relative, weight_bound=bound)
            given, scale = change_batches(X, change), None
        else:
            given, scale = X, None if rows.columns is None else rows.scale
        many = self.classes
        request, found = solve(
            lambda each: self.request_of(each, many), known, given, targets, self.weights, start, self.begin, scale
        )
        self._keep(request, found)
        self.coefficients, self.intercepts = rows.restore(*split_model(request, found.model))
        if prior is not None and labels is None:
            self.coefficients, self.intercepts = (
                self.coefficients + prior.coefficients,
                self.intercepts + prior.intercepts,
            )
            self.evidence = None  # of what was added to the earlier model alone
        if long_rows is not None:  # after the fit, so that one that cannot be planned spends nothing
            assert rows.row_bound is not None
            self.shortened = count_shortened(long_rows, records, rows.row_bound, self)
        if search is not None and isinstance(labels, Labels):
            scores = rows.score(X, self.coefficients, self.intercepts)[:, 0]
            self.threshold = search.find(self, scores, labels.codes == 1, self._own)
            self.notes.append(_say_threshold(search, self.threshold))
        self.intercepts = self.intercepts + self.middle

    def _find_class_weights(self, X: Any, targets: Any) -> Array | None:
        """Weights of classes; where the rows are in memory, theirs are multiplied with them."""
        if self.class_weights is None:
            return None
        if isinstance(X, RowBatches):
            relative, note = self.class_weights.find(self, X, self.classes)
            self.notes.append(note)
            return relative
        assert isinstance(self.labels, Labels)
        counted = self._own
        if self.weights is not None and not self.terms.is_private:
            counted = self.weights.values
        relative, note = self.class_weights.find(self, RowBatch(X, targets, counted), self.classes)
        self.notes.append(note)
        if relative is not None:
            self.weights = _weigh(self.weights, relative[self.labels.codes], self.terms.weight_bound)
        return None

    def _keep(self, request: Request, found: Result | Exact) -> None:
        """What is said of a model besides its coefficients."""
        self.problem = problem = request.problem
        if self.terms.is_private:
            result = cast("Result", found)
            plan, self.steps, self.findings = result.plan, result.rounds, result.findings
            self.planned, self.solver, self.reason = without_seed(plan), plan.solver, plan.reason
            self.guarantee = plan.guarantee(choose_observer(plan.trust), self.terms.delta)
            # Rows of a weight of their own vary otherwise than those that count alike.
            seen = None if problem.is_weighted else result.evidence
            self.evidence = problem.loss, problem.records, request.constant, seen
            return
        self.solver, self.steps, self.guarantee = (
            EXACT,
            cast("Exact", found).steps,
            bare_guarantee(self.terms.adjacency),
        )
        self.reason = "exact: there is no budget to keep to; a penalty that is not given is scikit-learn's default."

    def _check_plan(self, share: float) -> None:
        """Refuse what cannot be planned before anything is released."""
        from consenso.solvers.choose import check_request

        terms = replace(_guess(self.terms), share=share)
        check_request(self.request_of(terms, self.classes), terms.sampler)


def _weigh(weights: RowWeights | None, factors: Array, bound: float) -> RowWeights:
    """Weights of rows times those of their classes."""
    values = np.minimum(factors * (1.0 if weights is None else weights.values), bound)
    if weights is None:
        return RowWeights(values=values, contributions=None, units=len(values))
    return replace(weights, values=values)


def _guess(terms: PrivacyParams) -> PrivacyParams:
    """Terms with bounds of 1 where they are still to be found: to see what is learnt, and whether it can be planned."""
    if not terms.is_private:
        return terms
    rows = 1.0 if terms.row_bound is None else terms.row_bound
    return replace(terms, row_bound=rows, target_bound=1.0 if terms.target_bound is None else terms.target_bound)


def _bears_new_units(request: Request) -> bool:
    """Whether columns may be rescaled: a penalty that was set counts in the units that they have."""
    regularizer = request.problem.regularizer
    inner = regularizer.inner if isinstance(regularizer, Unpenalized) else regularizer
    return request.penalty_follows or isinstance(inner, NoPenalty)


def _say_rows(rows: RowMap, share: float) -> str:
    columns = "columns are moved into ranges and rows shortened" if rows.columns is not None else "rows are shortened"
    return (
        f"No row_bound was given: {columns} to the 2-norm {rows.row_bound:.4g}, in fit and in predict, by bounds that "
        f"were found in the data for {share:.1%} of the squared budget."
    )


def _say_threshold(search: ThresholdSearch, threshold: float) -> str:
    if np.isneginf(threshold):
        return (
            f"No threshold holds a recall of {search.recall:g} clear of noise: there are too few records of the second "
            "class for this budget, and all are predicted."
        )
    return (
        f"Scores above {threshold:.3g} are predicted, for a recall of {search.recall:g}; the threshold was found in "
        f"the data for {THRESHOLD_SHARE:.0%} of the squared budget."
    )
