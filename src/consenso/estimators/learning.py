"""From rows to coefficients in their own units: what nobody declared is found first, then comes the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consenso.arrays import Array, IntArray
from consenso.estimators.fitting import Fitted, Task, fit
from consenso.estimators.labels import LABELS_SHARE, Labels, find_labels, prepare_terms
from consenso.estimators.people import CAP_SHARE, KEPT, RowWeights, choose_cap, pays_for_cap, weigh_people
from consenso.estimators.prior import Prior
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.private_rows import (
    SHORTENED_SHARE,
    count_shortened,
    find_rows,
    find_targets,
    plan_shortened,
    share_rows,
    share_targets,
)
from consenso.estimators.row_change import RowChange, change_batches
from consenso.estimators.row_map import RowMap
from consenso.estimators.stages import Stages, open_stages
from consenso.estimators.threshold import THRESHOLD_SHARE, ThresholdSearch
from consenso.estimators.weights import ClassWeights
from consenso.privacy.earlier import Earlier
from consenso.shards.stored import RowBatch, RowBatches


@dataclass(frozen=True, kw_only=True, eq=False)
class FitRequest:
    """What an estimator asks for, read and checked.

    task_of: the task of terms and a number of classes, which a regression ignores. targets: real ones; None for labels.
    labels: known ones, or the labels themselves, (rows,), where it is not known which there are. person: the number of
    the person of each row, (rows,), and cap, which is chosen where it is None. sample_weight: (rows,), within the bound
    of the terms. centers: whether there is an intercept. counts_long_rows: whether the number of rows that a given
    bound shortens may be paid for. recall: that of a threshold, and the reach of its scores. prior: what an earlier fit
    released. A table in storage (X) has its targets and weights itself: weights and declared, its classes, say which.
    """

    task_of: Callable[[PrivacyParams, int], Task]
    terms: PrivacyParams
    X: Any
    targets: Any = None
    labels: Labels | NDArray[Any] | None = None
    person: IntArray | None = None
    cap: int | None = None
    sample_weight: Array | None = None
    centers: bool
    counts_long_rows: bool = True
    class_weights: ClassWeights | None = None
    recall: tuple[float, float] | None = None
    prior: Prior | None = None
    rows: RowMap | None = None
    middle: float = 0.0
    weights: RowWeights | None = None
    declared: NDArray[Any] | None = None

    @property
    def seeks_labels(self) -> bool:
        """Whether it is not known which labels there are."""
        return self.labels is not None and not isinstance(self.labels, Labels)

    @property
    def seeks_rows(self) -> bool:
        """Whether rows have no bound yet."""
        return self.terms.is_private and self.terms.row_bound is None

    @property
    def seeks_targets(self) -> bool:
        """Whether targets have no bound yet."""
        is_real = self.task_of(_guess(self.terms), self.classes).loss.targets == "real"
        return self.terms.is_private and is_real and self.terms.target_bound is None

    @property
    def seeks_cap(self) -> bool:
        """Whether a cap on the rows of a person is chosen, and is worth its cost."""
        return self.person is not None and self.cap is None and pays_for_cap(self.terms, self.X.shape[1])

    @property
    def counts_rows(self) -> bool:
        """Whether a bound on rows was given, and the number of records is public: there is a share to speak of."""
        given = self.terms.row_bound is not None and self.rows is None
        return self.counts_long_rows and given and self.terms.adjacency == "replace-one"

    @property
    def classes(self) -> int:
        """How many classes there are; 2 until they are found."""
        if self.declared is not None:
            return len(self.declared)
        return len(self.labels.classes) if isinstance(self.labels, Labels) else 2

    @property
    def records(self) -> RowBatch | RowBatches:
        """Rows before anything is known of them: to see how many there are, and of what kind."""
        return self.X if isinstance(self.X, RowBatches) else RowBatch(self.X, self.targets)

    def share(self) -> float:
        """Of the squared budget, what is found before the fit, and a threshold after it."""
        parts = (
            (self.seeks_rows, share_rows(self.records, self.terms).whole if self.seeks_rows else 0.0),
            (self.seeks_targets, share_targets(self.terms) if self.seeks_targets else 0.0),
            (self.seeks_labels, LABELS_SHARE),
            (self.seeks_cap, CAP_SHARE),
            (self.recall is not None and self.terms.is_private, THRESHOLD_SHARE),
            (
                self.class_weights is not None,
                0.0 if self.class_weights is None else self.class_weights.share(self.terms),
            ),
        )
        return sum(part for is_asked, part in parts if is_asked)


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """A fit in the units of the columns, the map of its rows, and what it found out besides.

    shortened: noisy share of the rows that were longer than a bound that was given, 0 where it was not counted.
    notes: sentences for whoever called; they say public and released things only. classes: None for a regression.
    """

    fitted: Fitted
    rows: RowMap
    target_bound: float | None
    notes: tuple[str, ...]
    shortened: float
    middle: float  # what was subtracted from targets
    classes: NDArray[Any] | None
    threshold: float
    cap: int | None
    others: Any = None  # as in Labels


def gather(request: FitRequest, stages: Stages, notes: list[str]) -> FitRequest:
    """The request with the rows of every person that are kept, and their weights."""
    X, targets, labels, own_weights = request.X, request.targets, request.labels, request.sample_weight
    if request.person is None:
        weights = None
        if own_weights is not None:
            weights = RowWeights(values=own_weights, contributions=None, units=len(own_weights))
        return replace(request, weights=weights)
    cap = request.cap
    if cap is None and stages.terms.is_private:
        cap, note = choose_cap(request.person, X.shape[1], stages)
        notes.append(note)
    people = weigh_people(request.person, cap or 1)
    stages.terms = replace(stages.terms, rows_per_unit=KEPT * (cap or 1))
    kept, own = people.kept, people.contributions
    values = own if own_weights is None else own * own_weights[kept]
    return replace(
        request,
        X=X[kept],
        targets=None if targets is None else targets[kept],
        labels=labels if labels is None else labels.keep(kept) if isinstance(labels, Labels) else labels[kept],
        weights=RowWeights(values=values, contributions=own, units=people.count),
        cap=cap or 1,
    )


def learn(request: FitRequest) -> Learnt:
    """Find what is not known within a share of the budget, then fit."""
    terms = prepare_terms(request.terms) if request.seeks_labels else request.terms
    share = request.share()
    if share:
        _check_plan(request, replace(_guess(terms), share=share))
    share += SHORTENED_SHARE if request.counts_rows else 0.0
    with open_stages(terms, share, "bounds, and a fit") as stages:
        return _learn(request, stages)


def _learn(request: FitRequest, stages: Stages) -> Learnt:
    if isinstance(request.X, RowBatches):
        return _learn_stored(request, request.X, stages)
    prior, notes = request.prior, list[str]()
    gathered = gather(request, stages, notes)
    X, weights, labels, targets = gathered.X, gathered.weights, gathered.labels, gathered.targets
    own = None if weights is None else weights.contributions
    if request.seeks_labels:
        assert isinstance(labels, np.ndarray)
        labels, note = find_labels(labels, stages, own)
        notes.append(note)
    if isinstance(labels, Labels):
        targets = labels.targets
    records = RowBatch(X, targets, own)
    rows, middle, target_bound = _find_bounds(request, records, stages, notes)
    if middle:
        targets = targets - middle
    if isinstance(labels, Labels) and request.class_weights is not None:
        counted = own if stages.terms.is_private or weights is None else weights.values
        relative, note = request.class_weights.find(stages, RowBatch(X, targets, counted), len(labels.classes))
        notes.append(note)
        if relative is not None:
            weights = _weigh(weights, relative[labels.codes], stages.terms.weight_bound)
    long_rows = plan_shortened(stages) if request.counts_rows else None
    search = None
    if request.recall is not None and stages.terms.is_private:
        search = ThresholdSearch.plan(stages, *request.recall)
    known = replace(stages.terms, row_bound=rows.row_bound, target_bound=target_bound)
    many = len(labels.classes) if isinstance(labels, Labels) else request.classes
    start = None
    if prior is not None and labels is not None:
        start = prior.in_units_of_rows()
    elif prior is not None:
        targets = targets - prior.predict(X)
    fitted = fit(lambda each: request.task_of(each, many), known, rows.scale(X), targets, weights, start, stages.begin)
    coefficients, intercepts = rows.restore(fitted.coefficients, fitted.intercepts)
    if prior is not None and labels is None:
        coefficients, intercepts = coefficients + prior.coefficients, intercepts + prior.intercepts
        fitted = replace(fitted, evidence=None)  # of what was added to the earlier model alone
    fitted = replace(fitted, coefficients=coefficients, intercepts=intercepts + middle)
    shortened = _count_shortened(long_rows, records, rows, stages)
    threshold = 0.0
    if search is not None and isinstance(labels, Labels):
        scores = rows.score(X, coefficients, intercepts)[:, 0]
        threshold = search.find(stages, scores, labels.codes == 1, own)
        notes.append(_say_threshold(search, threshold))
    return Learnt(
        fitted=fitted,
        rows=rows,
        target_bound=target_bound,
        notes=tuple(notes),
        shortened=shortened,
        middle=middle,
        classes=labels.classes if isinstance(labels, Labels) else None,
        threshold=threshold,
        cap=gathered.cap,
        others=labels.others if isinstance(labels, Labels) else None,
    )


def _learn_stored(request: FitRequest, batches: RowBatches, stages: Stages) -> Learnt:
    """The same of a table in storage: what is found and fitted are sums over its batches."""
    notes = list[str]()
    rows, middle, target_bound = _find_bounds(request, batches, stages, notes)
    relative = None
    if request.class_weights is not None:
        relative, note = request.class_weights.find(stages, batches, request.classes)
        notes.append(note)
    long_rows = plan_shortened(stages) if request.counts_rows else None
    known = replace(stages.terms, row_bound=rows.row_bound, target_bound=target_bound)
    changed = change_batches(
        batches, RowChange(rows=rows, middle=middle, class_weights=relative, weight_bound=stages.terms.weight_bound)
    )
    fitted = fit(
        lambda each: request.task_of(each, request.classes), known, changed, None, request.weights, None, stages.begin
    )
    coefficients, intercepts = rows.restore(fitted.coefficients, fitted.intercepts)
    return Learnt(
        fitted=replace(fitted, coefficients=coefficients, intercepts=intercepts + middle),
        rows=rows,
        target_bound=target_bound,
        notes=tuple(notes),
        shortened=_count_shortened(long_rows, batches, rows, stages),
        middle=middle,
        classes=request.declared,
        threshold=0.0,
        cap=request.cap,
    )


def _count_shortened(planned: Earlier | None, records: RowBatch | RowBatches, rows: RowMap, stages: Stages) -> float:
    """How many rows a given bound has shortened: after the fit, so that one that cannot be planned spends nothing."""
    if planned is None:
        return 0.0
    assert rows.row_bound is not None
    return count_shortened(planned, records, rows.row_bound, stages)


def _find_bounds(
    request: FitRequest, records: RowBatch | RowBatches, stages: Stages, notes: list[str]
) -> tuple[RowMap, float, float | None]:
    """The map of the rows, the middle of the targets and their bound: as given, or found."""
    rows = RowMap(row_bound=stages.terms.row_bound) if request.rows is None else request.rows
    middle, target_bound = request.middle, stages.terms.target_bound
    if request.seeks_rows:
        shares, planned = share_rows(request.records, request.terms), stages.terms.share
        rows = find_rows(records, shares, stages, centers=request.centers)
        notes.append(_say_rows(rows, shares.whole - (planned - stages.terms.share)))
    if request.seeks_targets:
        part = share_targets(request.terms)
        middle, target_bound = find_targets(records, part, stages, centers=request.centers)
        notes.append(
            f"Targets are clipped to {middle:.4g} +- {target_bound:.4g}, found in the data for {part:.1%} of the "
            "squared budget."
        )
    return rows, middle, target_bound


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


def _check_plan(request: FitRequest, terms: PrivacyParams) -> None:
    """Refuse what cannot be planned before anything is released."""
    from consenso.solvers import prepare

    task = request.task_of(terms, request.classes)
    prepare(task.problem(terms, request.X.shape[1]), terms.target, solver=task.solver, sampler=terms.sampler)


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
