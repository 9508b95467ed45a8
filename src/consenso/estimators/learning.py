"""From rows to coefficients in their own units: bounds that nobody declared are found first, then comes the fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from consenso.estimators.fitting import Fitted, Task, fit
from consenso.estimators.people import RowWeights
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.private_rows import (
    SHORTENED_SHARE,
    TARGETS_SHARE,
    count_shortened,
    find_rows,
    find_targets,
    share_of_rows,
)
from consenso.estimators.row_map import RowMap
from consenso.estimators.stages import open_stages
from consenso.estimators.weights import ClassWeights


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """A fit in the units of the columns, the map of its rows, and what it found out before it started.

    shortened: noisy share of the rows that were longer than a bound that was given, 0 where it was not counted.
    notes: sentences for whoever called; they say public and released things only.
    """

    fitted: Fitted
    rows: RowMap
    target_bound: float | None
    notes: tuple[str, ...]
    shortened: float
    middle: float  # what was subtracted from targets


def learn(
    task_of: Callable[[PrivacyParams], Task],
    terms: PrivacyParams,
    X: Any,
    targets: Any,
    weights: RowWeights | None = None,
    *,
    centers: bool,
    counts_long_rows: bool = True,
    class_weights: ClassWeights | None = None,
) -> Learnt:
    """Find what is not known within a share of the budget, then fit. centers: whether there is an intercept.

    counts_long_rows: whether the number of rows that a given bound shortens may be paid for.
    """
    loss = task_of(_guess(terms)).loss
    seeks_rows = terms.is_private and terms.row_bound is None
    seeks_targets = terms.is_private and loss.targets == "real" and terms.target_bound is None
    share = (share_of_rows(X) if seeks_rows else 0.0) + (TARGETS_SHARE if seeks_targets else 0.0)
    if class_weights is not None:
        share += class_weights.share(terms)
    if share:
        _check_plan(task_of, replace(_guess(terms), share=share), X.shape[1])
    counts_rows = counts_long_rows and _counts_rows(terms)
    share += SHORTENED_SHARE if counts_rows else 0.0
    own = None if weights is None else weights.contributions
    rows, middle, target_bound, notes = RowMap(row_bound=terms.row_bound), 0.0, terms.target_bound, []
    with open_stages(terms, share, "bounds, and a fit") as stages:
        if seeks_rows:
            rows = find_rows(X, stages, own, centers=centers)
            notes.append(_say_rows(rows, share_of_rows(X)))
        if seeks_targets:
            middle, target_bound = find_targets(targets, stages, own, centers=centers)
            notes.append(
                f"Targets are clipped to {middle:.4g} +- {target_bound:.4g}, found in the data for "
                f"{TARGETS_SHARE:.1%} of the squared budget."
            )
        if class_weights is not None:
            weights, note = class_weights.apply(stages, weights)
            notes.append(note)
        shortened = count_shortened(X, rows, stages, own) if counts_rows else 0.0
        known = replace(stages.terms, row_bound=rows.row_bound, target_bound=target_bound)
        fitted = fit(task_of, known, rows.scale(X), targets - middle if seeks_targets else targets, weights)
    coefficients, intercepts = rows.restore(fitted.coefficients, fitted.intercepts)
    fitted = replace(fitted, coefficients=coefficients, intercepts=intercepts + middle)
    return Learnt(
        fitted=fitted, rows=rows, target_bound=target_bound, notes=tuple(notes), shortened=shortened, middle=middle
    )


def _counts_rows(terms: PrivacyParams) -> bool:
    """Whether a bound on rows was given, and the number of records is public, so that there is a share to speak of."""
    return terms.row_bound is not None and terms.adjacency == "replace-one"


def _guess(terms: PrivacyParams) -> PrivacyParams:
    """Terms with bounds of 1 where they are still to be found: to see what is learnt, and whether it can be planned."""
    if not terms.is_private:
        return terms
    rows = 1.0 if terms.row_bound is None else terms.row_bound
    return replace(terms, row_bound=rows, target_bound=1.0 if terms.target_bound is None else terms.target_bound)


def _check_plan(task_of: Callable[[PrivacyParams], Task], terms: PrivacyParams, features: int) -> None:
    """Refuse what cannot be planned before anything is released."""
    from consenso.solvers import prepare

    task = task_of(terms)
    prepare(task.problem(terms, features), terms.target, solver=task.solver, sampler=terms.sampler)


def _say_rows(rows: RowMap, share: float) -> str:
    columns = "columns are moved into ranges and rows shortened" if rows.columns is not None else "rows are shortened"
    return (
        f"No row_bound was given: {columns} to the 2-norm {rows.row_bound:.4g}, in fit and in predict, by bounds that "
        f"were found in the data for {share:.1%} of the squared budget."
    )
