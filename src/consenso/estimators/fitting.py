"""One fit: a problem of public facts, the rows, and either the exact minimiser or a private solver."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from consenso.algorithms.evidence import Evidence
from consenso.algorithms.noise_levels import scale_regularizer
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.people import RowWeights
from consenso.estimators.privacy_params import PrivacyParams
from consenso.losses import Loss
from consenso.planning.plan import Plan
from consenso.privacy.card import Card
from consenso.privacy.count import release_count
from consenso.privacy.events import Adjacency, Gaussian, Unbounded
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Ledger, Scope
from consenso.privacy.observers import Eavesdropper, Public, choose_observer
from consenso.privacy.relations import bounds_of, claims_of
from consenso.privacy.releaser import ReleaseRecord
from consenso.privacy.samplers import Seeded
from consenso.privacy.theorems import Composition
from consenso.problem import NO_BOUND, Problem
from consenso.regularizers import L1, L2, ElasticNet, NoPenalty, Regularizer, Unpenalized
from consenso.shards import Shards
from consenso.shards.cluster import hold_batches
from consenso.shards.constant import whole_bound, with_constant
from consenso.shards.stored import RowBatches

if TYPE_CHECKING:
    from consenso.engine.ledger_charge import LedgerCharge

EXACT = "exact"
_BARE = Unbounded("the exact minimiser is released")
# How often a record is added or removed to make one neighbour of the other.
_STEPS: dict[Adjacency, float] = {"add-remove": 1.0, "replace-one": 2.0}


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a model learns: everything but the rows, and all of it public.

    constant: value of the column for the intercept, None for no intercept. penalizes_constant: as LinearSVC does.
    threshold, penalty_follows: as in consenso.solvers.request.
    """

    loss: Loss
    penalty: Regularizer
    row_bound: float | None
    target_bound: float | None = None
    constant: float | None
    penalizes_constant: bool = False
    solver: str = "auto"
    threshold: float | None = None
    penalty_follows: bool = False

    def problem(self, terms: PrivacyParams, features: int) -> Problem:
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
            unit=terms.unit,
            adjacency=terms.adjacency,
            capped=not terms.counts,
            weight_bound=terms.weight_bound,
            rows_per_unit=terms.rows_per_unit,
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
    claims: LazyCard
    findings: Mapping[str, float] = field(default_factory=dict)  # what was released on the way
    evidence: FitEvidence | None = None

    @property
    def records(self) -> int:
        """From how many records or people it has learnt, a public or released number."""
        return self.claims.problem.records


@dataclass(frozen=True, kw_only=True)
class FitEvidence:
    """What standard errors of a fit are made of; released, or public."""

    loss: Loss
    records: int
    constant: float | None
    seen: Evidence | None


@dataclass(frozen=True, kw_only=True)
class LazyCard:
    """What a card is made of, which takes longer than a small fit and is made when it is looked at."""

    plan: Plan | None
    problem: Problem
    delta: float
    remarks: Mapping[str, str] = field(default_factory=dict)  # what else to say, such as where the rows were

    @cached_property
    def card(self) -> Card:
        """The privacy card."""
        if self.plan is not None:
            made = self.plan.card(self.delta)
            return replace(made, data={**made.data, **self.remarks}) if self.remarks else made
        told = {name: getattr(self.problem, name) for name in ("loss", "regularizer", "features", "adjacency")}
        return bare_card(EXACT, told, self.delta)


def fit(
    task_of: Callable[[PrivacyParams], Task],
    terms: PrivacyParams,
    X: Any,
    targets: Any,
    weights: RowWeights | None = None,
    start: tuple[Array, Array] | None = None,
    begin: Callable[[], None] = lambda: None,
) -> Fitted:
    """Fit a task to validated rows and encoded targets; what is learnt may depend on the public number of records.

    start: coefficients (features, outputs) and intercepts of a released model; a private fit starts from it. begin: is
    called when everything is planned and the first release is next.
    """
    if terms.counts:
        return _fit_after_count(task_of, terms, X, targets, weights, start, begin)
    task = task_of(terms)
    problem = task.problem(terms, X.shape[1])
    if terms.is_private:
        charge = None if terms.ledger is None else _charge(terms, terms.ledger)
        return _private(task, terms, problem, X, targets, weights, charge, start, begin)
    return _exact(task, terms, problem, X, targets, weights)


def _exact(
    task: Task, terms: PrivacyParams, problem: Problem, X: Any, targets: Any, weights: RowWeights | None
) -> Fitted:
    from consenso.solvers.exact import solve_exact

    found = solve_exact(problem, _shards(task, problem, X, targets, weights))
    return _collect_fit(
        task,
        problem,
        found.model,
        solver=EXACT,
        reason="exact: there is no budget to keep to; a penalty that is not given is scikit-learn's default.",
        steps=found.steps,
        guarantee=bare_guarantee(terms.adjacency),
        claims=LazyCard(plan=None, problem=problem, delta=terms.delta),
    )


def _charge(terms: PrivacyParams, ledger: Ledger) -> LedgerCharge:
    from consenso.engine.ledger_charge import LedgerCharge

    return LedgerCharge(ledger=ledger, run_id=f"{terms.owner}-{uuid.uuid4()}")


def _fit_after_count(
    task_of: Callable[[PrivacyParams], Task],
    terms: PrivacyParams,
    X: Any,
    targets: Any,
    weights: RowWeights | None,
    start: tuple[Array, Array] | None,
    begin: Callable[[], None],
) -> Fitted:
    """Release a noisy count of the rows, then fit with it: within one mu that is fixed, and reserved, before both."""
    from consenso.engine.ledger_charge import reserve
    from consenso.solvers import prepare

    assert terms.sampler is not None
    mu = terms.mu
    first = task_of(terms)
    problem = first.problem(terms, X.shape[1])
    # Whatever cannot be planned is refused here, before anything is released.
    prepare(problem, terms.target, solver=first.solver, sampler=terms.sampler, earlier=terms.earlier)
    released: list[ReleaseRecord] = []
    spending: AbstractContextManager[None] = nullcontext()
    if terms.ledger is not None:
        # Replacing a record is removing one and adding another, whatever the fit will be.
        whole = {
            Scope(observer=Eavesdropper().key, unit=terms.unit, adjacency=adjacency): Gaussian(
                1 / mu, steps, terms.excess
            )
            for adjacency, steps in _STEPS.items()
        }
        what = f"{terms.owner}: a noisy count of the {terms.unit}s, and a fit"
        spending = reserve(_charge(terms, terms.ledger), whole, what, lambda: bool(released))
    with spending:
        begin()
        units = X.shape[0] if weights is None else weights.units
        known = terms.after_count(release_count(units, mu, terms.excess, terms.sampler, released.append))
        task = task_of(known)
        return _private(task, known, task.problem(known, X.shape[1]), X, targets, weights, None, start, begin)


def _private(
    task: Task,
    terms: PrivacyParams,
    problem: Problem,
    X: Any,
    targets: Any,
    weights: RowWeights | None,
    charge: LedgerCharge | None,
    start: tuple[Array, Array] | None,
    begin: Callable[[], None],
) -> Fitted:
    from consenso.engine.run import run
    from consenso.solvers import prepare

    plan = prepare(
        problem,
        terms.target,
        solver=task.solver,
        sampler=terms.sampler,
        count=terms.count,
        earlier=terms.earlier,
        constant=task.constant,
        threshold=task.threshold,
        penalty_follows=task.penalty_follows,
    )
    first = None
    if start is not None:
        plan, first = _start_at(plan, task, terms, start)
    shards = _shards(task, problem, X, targets, weights)
    begin()
    result = run(plan, shards, charge=charge, start=first)
    return _collect_fit(
        task,
        problem,
        result.model,
        solver=plan.solver,
        reason=plan.reason,
        steps=result.rounds,
        guarantee=plan.guarantee(choose_observer(plan.trust), terms.delta),
        claims=LazyCard(plan=_without_seed(plan), problem=problem, delta=terms.delta),
        findings=result.findings,
        evidence=FitEvidence(
            loss=task.loss,
            records=problem.records,
            constant=task.constant,
            # Rows of a weight of their own vary otherwise than those that count alike.
            seen=None if problem.is_weighted else result.evidence,
        ),
    )


def _start_at(plan: Plan, task: Task, terms: PrivacyParams, start: tuple[Array, Array]) -> tuple[Plan, Array]:
    """A plan that learns how far the rows lead away from a model, and that model as a vector (dim,).

    Targets are not counted: what the counts are for is the constant model, which is another place to start from.
    """
    from consenso.algorithms.preconditioned import PreconditionedFixedPoint
    from consenso.planning.plan import plan as make

    algorithm = plan.algorithm
    if not isinstance(algorithm, PreconditionedFixedPoint):
        raise InputError(
            f"{terms.owner}.fit(start=...): the solver {plan.solver!r} starts from zero; use solver='preconditioned'."
        )
    table, intercepts = start
    if task.constant is not None:
        table = np.vstack([table, intercepts / task.constant])
    again = make(
        plan.problem,
        replace(algorithm, counts=False),
        rounds=plan.spec.rounds - algorithm.counts,
        target=terms.target,
        sampler=terms.sampler,
        count=terms.count,
        earlier=terms.earlier,
    )
    return replace(again, solver=plan.solver, reason=plan.reason), table.reshape(-1)


def _without_seed(plan: Plan) -> Plan:
    """The plan with any seed instead of the one that the noise came from: what it promises is the same."""
    return replace(plan, sampler=Seeded(0)) if isinstance(plan.sampler, Seeded) else plan


def _shards(task: Task, problem: Problem, X: Any, targets: Any, weights: RowWeights | None) -> Shards:
    if isinstance(X, RowBatches):
        units = None if weights is None else weights.units
        return hold_batches(problem, X, bound=task.row_bound, constant=task.constant, units=units)
    if task.constant is not None:
        bound = NO_BOUND if task.row_bound is None else task.row_bound
        X = with_constant(X, bound, task.constant, "fit")
    values = None if weights is None else weights.values
    return Shards.build(problem, X, targets, np.array([0, X.shape[0]]), weights=values)


def _collect_fit(task: Task, problem: Problem, model: Array, **rest: Any) -> Fitted:
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


def default_penalty(loss: Loss, l1_ratio: float, terms: PrivacyParams, features: int) -> Regularizer:
    """The penalty of a private fit for which none is asked, in the units of the rows."""
    from consenso.solvers.penalties import usual_penalty

    assert terms.row_bound is not None, "declared, or found before the fit"
    usual = usual_penalty(
        loss,
        row_bound=float(terms.row_bound),
        features=features,
        records=terms.records,
        target_bound=terms.target_bound,
        l1_ratio=l1_ratio,
    )
    return scale_regularizer(usual, 1 / terms.mean_weight, 1 / terms.mean_weight)


def bare_guarantee(adjacency: Adjacency) -> Guarantee:
    """What a fit without privacy promises: nothing."""
    return Guarantee(event=_BARE, adjacency=adjacency, unit="record", observer=Public().key, theorem="none")


@dataclass(frozen=True, kw_only=True)
class _NoNoise:
    name: ClassVar[str] = "none (simulation, not private)"
    private: ClassVar[bool] = False


def bare_card(algorithm: str, data: Mapping[str, Any], delta: float) -> Card:
    """A card that says that nothing is promised, to anybody."""
    promises = []
    for relation in claims_of(data["adjacency"], "record"):
        theorem = Composition(released=_BARE, why="Nothing is bounded.", adjacency=bounds_of(relation), unit="record")
        promises.append(Guarantee.of(theorem, Public(), relation))
    return Card.build(
        algorithm=algorithm,
        parameters={},
        data=data,
        trust="curator",
        sampler=_NoNoise(),
        delta=delta,
        promises=promises,
    )
