"""One fit: a problem of public facts, the rows, and either the exact minimiser or a private solver."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.estimators.terms import Terms
from consenso.losses import Loss
from consenso.privacy.card import Card
from consenso.privacy.events import Adjacency, Unbounded
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.observers import Public
from consenso.privacy.theorems import Composition
from consenso.problem import Problem
from consenso.regularizers import L1, L2, ElasticNet, NoPenalty, Regularizer, Unpenalized
from consenso.runtime.plan import Plan
from consenso.shards import Shards
from consenso.shards.constant import NO_BOUND, whole_bound, with_constant

EXACT = "exact"
_BARE = Unbounded("the exact minimiser is released")


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a model learns: everything but the rows, and all of it public.

    constant: value of the column for the intercept, None for no intercept. penalizes_constant: as LinearSVC does.
    """

    loss: Loss
    penalty: Regularizer
    row_bound: float | None
    target_bound: float | None = None
    constant: float | None
    penalizes_constant: bool = False
    solver: str = "auto"

    def problem(self, terms: Terms, features: int) -> Problem:
        """The problem of a fit to rows with so many columns."""
        bound = NO_BOUND if self.row_bound is None else self.row_bound
        regularizer = self.penalty
        if self.constant is not None and not self.penalizes_constant and not isinstance(self.penalty, NoPenalty):
            regularizer = Unpenalized(inner=self.penalty, last=self.loss.outputs)
        targets = None
        if self.loss.targets == "real":
            targets = NO_BOUND if self.target_bound is None else self.target_bound
        return Problem(
            loss=self.loss,
            regularizer=regularizer,
            features=features + (self.constant is not None),
            sizes=np.array([terms.records]),
            row_bound=whole_bound(bound, self.constant),
            target_bound=targets,
            unit="record",
            adjacency=terms.adjacency,
        )


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What a fit leaves."""

    coefficients: Array  # (features, outputs)
    intercepts: Array  # (outputs,)
    solver: str
    reason: str
    steps: int
    guarantee: Guarantee
    claims: Claims


@dataclass(frozen=True, kw_only=True)
class Claims:
    """What a card is made of, which takes longer than a small fit and is made when it is looked at."""

    plan: Plan | None
    problem: Problem
    delta: float

    @cached_property
    def card(self) -> Card:
        """The privacy card."""
        return _bare_card(self.problem, self.delta) if self.plan is None else self.plan.card(self.delta)


def fit(task: Task, terms: Terms, X: Any, targets: Any) -> Fitted:
    """Fit a task to validated rows and encoded targets."""
    problem = task.problem(terms, X.shape[1])
    if terms.is_private:
        return _private(task, terms, problem, X, targets)
    return _exact(task, terms, problem, X, targets)


def _exact(task: Task, terms: Terms, problem: Problem, X: Any, targets: Any) -> Fitted:
    from consenso.solvers.exact import solve_exact

    found = solve_exact(problem, _shards(task, problem, X, targets))
    return _fitted(
        task,
        problem,
        found.model,
        solver=EXACT,
        reason="exact: there is no budget to keep to.",
        steps=found.steps,
        guarantee=bare_guarantee(terms.adjacency),
        claims=Claims(plan=None, problem=problem, delta=terms.delta),
    )


def _private(task: Task, terms: Terms, problem: Problem, X: Any, targets: Any) -> Fitted:
    from consenso.runtime.charge import Charge
    from consenso.runtime.run import run
    from consenso.solvers import prepare

    prepared = prepare(problem, terms.target, solver=task.solver, sampler=terms.sampler)
    charge = None
    if terms.ledger is not None:
        charge = Charge(ledger=terms.ledger, run_id=f"{terms.owner}-{uuid.uuid4()}")
    result = run(prepared.plan, _shards(task, problem, X, targets), charge=charge)
    return _fitted(
        task,
        problem,
        result.model,
        solver=prepared.name,
        reason=prepared.reason,
        steps=result.rounds,
        guarantee=prepared.plan.guarantee(Public(), terms.delta),
        claims=Claims(plan=prepared.plan, problem=problem, delta=terms.delta),
    )


def _shards(task: Task, problem: Problem, X: Any, targets: Any) -> Shards:
    if task.constant is not None:
        bound = NO_BOUND if task.row_bound is None else task.row_bound
        X = with_constant(X, bound, task.constant, "fit")
    return Shards.build(problem, X, targets, np.array([0, X.shape[0]]))


def _fitted(task: Task, problem: Problem, model: Array, **rest: Any) -> Fitted:
    table = model.reshape(problem.features, problem.outputs)
    if task.constant is None:
        return Fitted(coefficients=table, intercepts=np.zeros(problem.outputs), **rest)
    return Fitted(coefficients=table[:-1], intercepts=task.constant * table[-1], **rest)


def penalty(alpha: float, l1_ratio: float) -> Regularizer:
    """The regularizer alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)."""
    if alpha == 0:
        return NoPenalty()
    if l1_ratio == 0:
        return L2(strength=alpha)
    if l1_ratio == 1:
        return L1(strength=alpha)
    return ElasticNet(l1=alpha * l1_ratio, l2=alpha * (1 - l1_ratio))


def telling_level(slope_bound: float, row_bound: float, features: int, outputs: int, terms: Terms) -> float:
    """The L1 strength below which a coefficient cannot be told from noise, from public facts.

    A coordinate of the mean gradient at a model without that feature has the standard deviation
    slope_bound * row_bound / sqrt(features * records) at most over the draw of the records (rows at their bound, spread
    over the columns), and slope_bound * row_bound * noise_level from the privacy noise of a single release; the largest
    of m such coordinates is about sqrt(2 log(2 m)) of them.
    """
    sampling = 1.0 / math.sqrt(features * terms.records)
    spread = math.hypot(sampling, terms.noise_level())
    return slope_bound * row_bound * spread * math.sqrt(2 * math.log(2 * features * outputs))


def bare_guarantee(adjacency: Adjacency) -> Guarantee:
    """What a fit without privacy promises: nothing."""
    return Guarantee(event=_BARE, adjacency=adjacency, unit="record", observer=Public().key, theorem="none")


@dataclass(frozen=True, kw_only=True)
class _NoNoise:
    name: ClassVar[str] = "none (simulation, not private)"
    private: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class _Nothing:
    """The promise of a fit without privacy: none."""

    guarantee: Guarantee
    theorem: Composition
    party: int = 0
    refusals: tuple[str, ...] = ()


def _bare_card(problem: Problem, delta: float) -> Card:
    """A card that says that nothing is promised, to anybody."""
    adjacencies: tuple[Adjacency, ...] = ("add-remove", "replace-one")
    promises = []
    for unit in problem.stated_units:
        for adjacency in adjacencies:
            theorem = Composition(released=_BARE, why="Nothing is bounded.", adjacency=adjacency, unit=unit)
            stated = Guarantee(
                event=_BARE, adjacency=adjacency, unit=unit, observer=Public().key, theorem=type(theorem).__name__
            )
            promises.append(_Nothing(guarantee=stated, theorem=theorem))
    return Card.build(
        algorithm=EXACT,
        parameters={},
        data={"loss": problem.loss, "regularizer": problem.regularizer, "features": problem.features},
        trust="curator",
        sampler=_NoNoise(),
        delta=delta,
        promises=promises,
    )
