"""One fit: a problem of public facts, the rows, and either the exact minimiser or a private solver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from consenso.algorithms.preconditioning.noise_levels import scale_regularizer
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.estimators.people import RowWeights
from consenso.estimators.privacy_params import PrivacyParams
from consenso.estimators.stages import make_charge, reserve_budget
from consenso.losses import Loss
from consenso.planning.plan import Plan
from consenso.privacy.card import Card
from consenso.privacy.count import release_count
from consenso.privacy.events import Adjacency, Unbounded
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.observers import Public
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
    from consenso.engine.run import Result
    from consenso.solvers.exact import Exact
    from consenso.solvers.request import Request

EXACT = "exact"
# Solvers that find out what they need as they go, and leave a part of the budget to what is released before.
MEASURING = ("auto", "preconditioned", "wide")
_BARE = Unbounded("the exact minimiser is released")


def make_request(
    terms: PrivacyParams,
    loss: Loss,
    regularizer: Regularizer,
    features: int,
    *,
    constant: float | None,
    penalizes_constant: bool = False,
    **rules: Any,
) -> Request:
    """What a model asks of a solver, for rows with so many columns: everything but the rows, and all of it public.

    constant: value of the column for the intercept, None for no intercept. penalizes_constant: as LinearSVC does.
    rules: solver, threshold and penalty_follows of the request.
    """
    from consenso.solvers.request import Request

    if constant is not None and not penalizes_constant and not isinstance(regularizer, NoPenalty):
        regularizer = Unpenalized(inner=regularizer, last=loss.outputs)
    targets = None
    if loss.targets == "real":
        targets = NO_BOUND if terms.target_bound is None else terms.target_bound
    problem = Problem(
        loss=loss,
        regularizer=regularizer,
        features=features + (constant is not None),
        sizes=np.array([terms.records]),
        row_bound=whole_bound(NO_BOUND if terms.row_bound is None else terms.row_bound, constant),
        target_bound=targets,
        unit=terms.unit,
        adjacency=terms.adjacency,
        capped=not terms.counts,
        weight_bound=terms.weight_bound,
        rows_per_unit=terms.rows_per_unit,
    )
    return Request(problem=problem, target=terms.target if terms.is_private else None, constant=constant, **rules)


def solve(
    request_of: Callable[[PrivacyParams], Request],
    terms: PrivacyParams,
    X: Any,
    targets: Any,
    weights: RowWeights | None = None,
    start: tuple[Array, Array] | None = None,
    begin: Callable[[], None] = lambda: None,
    change: Callable[[Any], Any] | None = None,
) -> tuple[Request, Result | Exact]:
    """Fit to validated rows and encoded targets; what is asked may depend on the public number of records.

    change: what is done to dense rows first, each by itself. start: coefficients (features, outputs) and intercepts of
    a released model; a private fit starts from it. begin: is called when everything is planned and the first release is
    next.
    """
    request = request_of(terms)
    if not terms.is_private:
        from consenso.solvers.exact import solve_exact

        return request, solve_exact(request.problem, _make_shards(request, terms, X, targets, weights, change))
    from consenso.engine.run import run
    from consenso.solvers.choose import plan_request

    charge, released = make_charge(terms), list[ReleaseRecord]()
    spending: AbstractContextManager[None] = nullcontext()
    if terms.counts:
        # A noisy count of the rows, then the fit, within one mu that is fixed, and reserved, before both. Whatever
        # cannot be planned is refused here, before anything is released.
        plan_request(request, sampler=terms.sampler, earlier=terms.earlier)
        what = f"a noisy count of the {terms.unit}s, and a fit"
        spending = reserve_budget(charge, terms, terms.mu, what, lambda: bool(released))
        charge = None  # the run is part of it
    with spending:
        if terms.counts:
            assert terms.sampler is not None
            begin()
            units = X.shape[0] if weights is None else weights.units
            count = release_count(units, terms.mu, terms.excess, terms.sampler, released.append)
            terms = replace(terms, records=count.low, count=count)
            request = request_of(terms)
        plan = plan_request(request, sampler=terms.sampler, count=terms.count, earlier=terms.earlier)
        first = None
        if start is not None:
            plan, first = _start_at(plan, request, terms, start)
        # Sums over rows lose nothing that noise would not hide.
        single = getattr(plan.algorithm, "adds_up_only", False)
        shards = _make_shards(request, terms, X, targets, weights, change, single=single)
        begin()
        return request, run(plan, shards, charge=charge, start=first)


def split_model(request: Request, model: Array) -> tuple[Array, Array]:
    """Coefficients (features, outputs) and intercepts (outputs,) of a solution (dim,)."""
    problem = request.problem
    table = model.reshape(problem.features, problem.outputs)
    if request.constant is None:
        return table, np.zeros(problem.outputs)
    return table[:-1], request.constant * table[-1]


def _start_at(plan: Plan, request: Request, terms: PrivacyParams, start: tuple[Array, Array]) -> tuple[Plan, Array]:
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
    if request.constant is not None:
        table = np.vstack([table, intercepts / request.constant])
    again = make(
        plan.problem,
        replace(algorithm, counts=False),
        rounds=plan.rounds - algorithm.counts,
        target=terms.target,
        sampler=terms.sampler,
        count=terms.count,
        earlier=terms.earlier,
    )
    return replace(again, solver=plan.solver, reason=plan.reason), table.reshape(-1)


def without_seed(plan: Plan) -> Plan:
    """The plan with any seed instead of the one that the noise came from: what it promises is the same."""
    return replace(plan, sampler=Seeded(0)) if isinstance(plan.sampler, Seeded) else plan


def _make_shards(
    request: Request,
    terms: PrivacyParams,
    X: Any,
    targets: Any,
    weights: RowWeights | None,
    change: Callable[[Any], Any] | None = None,
    *,
    single: bool = False,
) -> Shards:
    problem, constant = request.problem, request.constant
    if isinstance(X, RowBatches):
        units = None if weights is None else weights.units
        return hold_batches(problem, X, bound=terms.row_bound, constant=constant, single=single, units=units)
    if constant is not None:
        bound = NO_BOUND if terms.row_bound is None else terms.row_bound
        X = with_constant(X, bound, constant, "fit", single=single, change=change)
    elif change is not None:
        X = change(X)
    values = None if weights is None else weights.values
    return Shards.build(problem, X, targets, np.array([0, X.shape[0]]), weights=values)


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
