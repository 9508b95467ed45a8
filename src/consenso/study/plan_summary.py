"""What is known of a run before it starts: noise, rounds, every observer's guarantee, cost, and the error that theory
bounds. Everything comes from the file and from public facts.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from consenso import theory
from consenso.planning.plan import Plan
from consenso.privacy.calibrate import PureEpsilon, Target
from consenso.privacy.card import Card
from consenso.privacy.card.depths import observer_name
from consenso.problem import Problem
from consenso.study.cost import CostEstimate, estimate_cost
from consenso.study.folder import finite

if TYPE_CHECKING:
    from consenso.study.study import Study


@dataclass(frozen=True, kw_only=True)
class RiskBound:
    """A proved bound for noisy gradient steps with the same budget, whatever the algorithm of the plan.

    squared_distance: of the expected squared distance to the exact model. excess_risk: of the expected objective above
    its minimum, where the regularizer is smooth. at_zero: the most that the zero model can be above the minimum: a
    bound beyond it says nothing. rounds: of the steps that the bound is for.
    """

    squared_distance: float
    excess_risk: float | None
    at_zero: float
    rounds: int

    @property
    def informative(self) -> bool:
        """Whether the bound is below what the zero model has."""
        return self.excess_risk is not None and self.excess_risk < self.at_zero


@dataclass(frozen=True, kw_only=True)
class PlanSummary:
    """The plan of a study in figures."""

    study: str
    algorithm: str
    reason: str
    rounds: int
    parties: int
    records: int
    features: int
    unprotected_people: str | None  # the column that says whose a record is, where single records are protected
    trust: str
    sampler: str
    simulation: bool
    observer: str
    delta: float
    noise: dict[str, float]  # standard deviation, or scale, of each release as the hub hears it
    card: Card
    cost: CostEstimate
    prediction: RiskBound | None

    @property
    def epsilon(self) -> float:
        """Epsilon for the observer, unit and adjacency that the study is for."""
        return epsilon_for(self.card, self.observer)

    def to_json(self) -> dict[str, Any]:
        """The same as plain JSON values; the card's entries by observer, unit and adjacency."""
        guarantees = [
            {
                "observer": entry.observer,
                "who": observer_name(entry.observer),
                "unit": entry.unit,
                "adjacency": entry.adjacency,
                "epsilon": finite(entry.epsilon),
                "rho": entry.rho and finite(entry.rho),
                "mu": entry.mu and finite(entry.mu),
                "theorem": entry.theorem["kind"].rpartition(".")[2]
                if isinstance(entry.theorem, dict)
                else str(entry.theorem),
                "sentence": entry.sentence,
            }
            for entry in self.card.entries
        ]
        plain = {
            each.name: getattr(self, each.name)
            for each in dataclasses.fields(self)
            if each.name not in ("card", "cost", "prediction", "noise")
        }
        return {
            **plain,
            "epsilon": finite(self.epsilon),
            "noise": {name: finite(scale) for name, scale in self.noise.items()},
            "parameters": self.card.parameters,
            "data": self.card.data,
            "guarantees": guarantees,
            "expected": {
                "seconds": self.cost.seconds,
                "memory_bytes": self.cost.memory,
                "reading": dataclasses.asdict(self.cost.reading),
            },
            "prediction": None
            if self.prediction is None
            else {**dataclasses.asdict(self.prediction), "informative": self.prediction.informative},
        }


def _unprotected_people(study: Study) -> str | None:
    schema = study.data.schema
    column = None if schema is None else schema.user_column
    return None if column is None or study.privacy.unit != "record" else column.name


def summarize_plan(study: Study, *, on_cluster: bool = False) -> PlanSummary:
    """Plan a study and say everything that is known about the run. No data are read.

    on_cluster: whether the workers of a Dask cluster hold the rows.
    """
    planned = study.planned
    made = planned.plan
    return PlanSummary(
        study=study.digest,
        algorithm=type(made.algorithm).__name__,
        reason=planned.reason,
        rounds=made.rounds,
        parties=made.problem.parties,
        records=made.problem.records,
        features=made.problem.features,
        unprotected_people=_unprotected_people(study),
        trust=made.trust,
        sampler=made.sampler.name,
        simulation=not made.sampler.private,
        observer=study.observer.key,
        delta=study.privacy.delta,
        noise=dict(made.facts.noise),
        card=made.card(study.privacy.delta),
        cost=estimate_cost(made, study.where(on_cluster=on_cluster)),
        prediction=predict_error(made, study.privacy.target),
    )


def epsilon_for(card: Card, observer: str) -> float:
    """The epsilon of a card for one observer, in the unit and adjacency of its problem; infinite where none is stated.

    The promise to any party stands for that to each: where the card has no entry for the very observer, that of the
    observer's kind counts.
    """
    scope = [e for e in card.entries if (e.unit, e.adjacency) == (card.data["unit"], card.data["adjacency"])]
    exact = [e for e in scope if e.observer == observer]
    alike = [e for e in scope if e.observer.partition(":")[0] == observer.partition(":")[0]]
    found = [math.inf if e.epsilon is None else float(e.epsilon) for e in exact or alike]
    return max(found, default=math.inf)


def predict_error(made: Plan, target: Target | None) -> RiskBound | None:
    """What theory bounds: strongly convex problems with smooth, Lipschitz losses."""
    problem = made.problem
    convexity = problem.regularizer.strong_convexity
    smoothness = float(np.mean(problem.smoothness))
    slope = problem.loss.lipschitz(problem.row_bound)
    if target is None or isinstance(target, PureEpsilon) or convexity <= 0 or not math.isfinite(smoothness + slope):
        return None
    step = 1.0 / smoothness
    at_zero = _value_at_zero(problem)
    # The objective at zero bounds the penalty of the optimum, and so does the slope of the loss.
    distance = min(2 * at_zero / convexity, (slope / convexity) ** 2)
    tradeoff = theory.Tradeoff(
        price=_price(made, step, slope),
        contraction=1 / (1 + step * convexity),
        dim=problem.dim,
        distance=distance,
    )
    rho = theory.zcdp_of(target)
    rounds = tradeoff.best_rounds(rho)
    squared = tradeoff.error(rho, rounds)
    smooth = type(problem.regularizer).__name__ == "L2"
    return RiskBound(
        squared_distance=squared,
        excess_risk=0.5 * (smoothness + convexity) * squared if smooth else None,
        at_zero=at_zero,
        rounds=rounds,
    )


def _price(made: Plan, step: float, slope: float) -> float:
    """The price of noise on the sum of gradients, once, or by every party."""
    problem = made.problem
    many = int(problem.sizes.max()) if problem.unit == "party" else 1
    sensitivity = many * slope * (2 if problem.adjacency == "replace-one" else 1)
    once = theory.price_of_sum(step=step, sensitivity=sensitivity, units=problem.records)
    return once * (problem.parties if made.mode.noise_on_messages else 1)


def _value_at_zero(problem: Problem) -> float:
    """The largest mean loss that the zero model can have."""
    loss = problem.loss
    if loss.targets == "class":
        return float(loss.value(np.zeros((1, loss.outputs)), np.zeros(1, dtype=np.int64))[0])
    ends = np.array([1.0, -1.0]) if loss.targets == "sign" else np.array([1.0, -1.0]) * float(problem.target_bound or 0)
    return float(np.max(loss.value(np.zeros(2), ends)))
