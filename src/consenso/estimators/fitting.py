"""One private fit: a problem of public facts, the rows, a plan and its run. And what a fit without privacy promises."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from consenso.estimators.privacy_params import PrivacyParams
from consenso.losses import Loss
from consenso.planning.plan import Plan
from consenso.privacy.card import Card
from consenso.privacy.count import release_count
from consenso.privacy.events import Adjacency, Gaussian, Unbounded
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger import Ledger, Scope
from consenso.privacy.observers import Eavesdropper, Public
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
    from consenso.engine.run import Result

EXACT = "exact"
_BARE = Unbounded("the exact minimiser is released")
# How often a record is added or removed to make one neighbour of the other.
_STEPS: dict[Adjacency, float] = {"add-remove": 1.0, "replace-one": 2.0}


def make_problem(
    terms: PrivacyParams,
    features: int,
    *,
    loss: Loss,
    penalty: Regularizer,
    row_bound: float | None,
    target_bound: float | None = None,
    constant: float | None,
    penalizes_constant: bool = False,
) -> Problem:
    """The problem of a fit to rows with so many columns.

    constant: value of the column for the intercept, None for no intercept. penalizes_constant: as LinearSVC does.
    """
    regularizer = penalty
    if constant is not None and not penalizes_constant and not isinstance(penalty, NoPenalty):
        regularizer = Unpenalized(inner=penalty, last=loss.outputs)
    targets = None
    if loss.targets == "real":
        targets = NO_BOUND if target_bound is None else target_bound
    return Problem(
        loss=loss,
        regularizer=regularizer,
        features=features + (constant is not None),
        sizes=np.array([terms.records]),
        row_bound=whole_bound(NO_BOUND if row_bound is None else row_bound, constant),
        target_bound=targets,
        unit="record",
        adjacency=terms.adjacency,
        capped=not terms.counts,
    )


def make_shards(problem: Problem, X: Any, targets: Any, *, row_bound: float | None, constant: float | None) -> Shards:
    """Validated rows, with the column for the intercept, and encoded targets, as the one party of a problem.

    Rows in storage, whose batches have their targets, stay there.
    """
    if isinstance(X, RowBatches):
        return hold_batches(problem, X, bound=row_bound, constant=constant)
    if constant is not None:
        X = with_constant(X, NO_BOUND if row_bound is None else row_bound, constant, "fit")
    return Shards.build(problem, X, targets, np.array([0, X.shape[0]]))


def fit(
    problem_of: Callable[[PrivacyParams], Problem],
    terms: PrivacyParams,
    shards_of: Callable[[Problem], Shards],
    *,
    records: int,
    solver: str,
) -> Result:
    """Fit within the budget of the terms; the problem may depend on the public number of records."""
    if terms.counts:
        return _fit_after_count(problem_of, terms, shards_of, records=records, solver=solver)
    charge = None if terms.ledger is None else _charge(terms, terms.ledger)
    return _fit(problem_of(terms), terms, shards_of, solver, charge)


def _charge(terms: PrivacyParams, ledger: Ledger) -> LedgerCharge:
    from consenso.engine.ledger_charge import LedgerCharge

    return LedgerCharge(ledger=ledger, run_id=f"{terms.owner}-{uuid.uuid4()}")


def _fit_after_count(
    problem_of: Callable[[PrivacyParams], Problem],
    terms: PrivacyParams,
    shards_of: Callable[[Problem], Shards],
    *,
    records: int,
    solver: str,
) -> Result:
    """Release a noisy count of the rows, then fit with it: within one mu that is fixed, and reserved, before both."""
    from consenso.engine.ledger_charge import reserve
    from consenso.solvers import prepare

    assert terms.sampler is not None
    mu, problem = terms.mu, problem_of(terms)
    # Whatever cannot be planned is refused here, before anything is released.
    prepare(problem, terms.target, solver=solver, sampler=terms.sampler)
    released: list[ReleaseRecord] = []
    spending: AbstractContextManager[None] = nullcontext()
    if terms.ledger is not None:
        # Replacing a record is removing one and adding another, whatever the fit will be.
        whole = {
            Scope(observer=Eavesdropper().key, unit="record", adjacency=adjacency): Gaussian(
                1 / mu, steps, terms.excess
            )
            for adjacency, steps in _STEPS.items()
        }
        what = f"{terms.owner}: a noisy count of the records, and a fit"
        spending = reserve(_charge(terms, terms.ledger), whole, what, lambda: bool(released))
    with spending:
        known = terms.after_count(release_count(records, mu, terms.excess, problem, terms.sampler, released.append))
        return _fit(problem_of(known), known, shards_of, solver, None)


def _fit(
    problem: Problem,
    terms: PrivacyParams,
    shards_of: Callable[[Problem], Shards],
    solver: str,
    charge: LedgerCharge | None,
) -> Result:
    from consenso.engine.run import run
    from consenso.solvers import prepare

    plan = prepare(problem, terms.target, solver=solver, sampler=terms.sampler, count=terms.count)
    return run(plan, shards_of(problem), charge=charge)


def without_seed(plan: Plan) -> Plan:
    """The plan with any seed instead of the one that the noise came from: what it promises is the same."""
    return replace(plan, sampler=Seeded(0)) if isinstance(plan.sampler, Seeded) else plan


def penalty(alpha: float, l1_ratio: float) -> Regularizer:
    """The regularizer alpha * (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)."""
    if alpha == 0:
        return NoPenalty()
    if l1_ratio == 0:
        return L2(strength=alpha)
    if l1_ratio == 1:
        return L1(strength=alpha)
    return ElasticNet(l1=alpha * l1_ratio, l2=alpha * (1 - l1_ratio))


def telling_level(slope_bound: float, row_bound: float, features: int, outputs: int, terms: PrivacyParams) -> float:
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


def bare_card(algorithm: str, data: Mapping[str, Any], delta: float) -> Card:
    """A card that says that nothing is promised, to anybody."""
    promises = []
    for relation in claims_of(data["adjacency"], "record"):
        theorem = Composition(released=_BARE, why="Nothing is bounded.", adjacency=bounds_of(relation), unit="record")
        stated = Guarantee(
            event=_BARE, adjacency=relation, unit="record", observer=Public().key, theorem=type(theorem).__name__
        )
        promises.append(_Nothing(guarantee=stated, theorem=theorem))
    return Card.build(
        algorithm=algorithm,
        parameters={},
        data=data,
        trust="curator",
        sampler=_NoNoise(),
        delta=delta,
        promises=promises,
    )
