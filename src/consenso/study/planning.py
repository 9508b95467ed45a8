"""The problem and the plan of a study: pure functions of the file and of public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from consenso.arrays import IntArray
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import PureEpsilon, Target, calibrate_noise
from consenso.privacy.noise import Noise, NoNoise
from consenso.privacy.observers import Observer, choose_observer
from consenso.privacy.observers import parse as parse_observer
from consenso.privacy.samplers import Safe, Sampler, Seeded
from consenso.problem import Problem
from consenso.regularizers import Unpenalized
from consenso.schedules import RandomWalk
from consenso.shards.constant import constant_for
from consenso.solvers.penalties import usual_penalty
from consenso.study.data import DataSection
from consenso.study.model import ModelSection
from consenso.study.privacy import PrivacySection, noise_laws
from consenso.study.setting import SettingSection

if TYPE_CHECKING:
    from consenso.schedules import Schedule


def _most_rows(privacy: PrivacySection) -> int:
    """How many rows of a unit are kept."""
    if privacy.unit != "person":
        return 1
    from consenso.estimators.people import KEPT  # with scikit-learn, which is slow to import

    return KEPT


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan with how its algorithm was chosen."""

    plan: Plan
    reason: str


def problem_of(
    data: DataSection, model: ModelSection, privacy: PrivacySection, setting: SettingSection, sizes: IntArray
) -> Problem:
    """The problem that the sections describe."""
    regularizer, bound = model.regularizer, data.bound
    if regularizer is None:
        regularizer = usual_penalty(
            model.loss,
            row_bound=bound,
            features=data.features,
            records=float(sizes.sum()),
            target_bound=data.bound_of_targets,
        )
    if model.intercept:
        bound = math.hypot(bound, constant_for(bound))
    if model.intercept and not model.penalize_intercept:
        regularizer = Unpenalized(inner=regularizer, last=model.loss.outputs)
    return Problem(
        loss=model.loss,
        regularizer=regularizer,
        features=data.features + int(model.intercept),
        sizes=sizes,
        row_bound=bound,
        target_bound=data.bound_of_targets,
        unit=privacy.unit,
        adjacency=privacy.adjacency,
        weighting=setting.weighting,
        rows_per_unit=_most_rows(privacy),
    )


def observer_of(privacy: PrivacySection, setting: SettingSection, names: tuple[str, ...]) -> Observer:
    """Whom the target is for: as stated, or whoever is not trusted and sees the most."""
    if privacy.observer != "auto":
        kind, _, party = privacy.observer.partition(":")
        return parse_observer(f"peer:{names.index(party)}" if kind == "peer" and party in names else privacy.observer)
    return choose_observer(setting.trust)


def sampler_of(privacy: PrivacySection) -> Sampler:
    """Safe noise, or that of a simulation."""
    return Safe() if privacy.seed is None else Seeded(privacy.seed)


def plan_of(
    problem: Problem,
    privacy: PrivacySection,
    setting: SettingSection,
    names: tuple[str, ...],
    constant: float | None = None,
    *,
    penalty_follows: bool = False,
) -> Planned:
    """The plan: the algorithm as named or chosen, with the least noise that meets the target.

    constant: value of the last column where it is that of an intercept. penalty_follows: see Request.
    """
    from consenso.study.auto import PlanningInputs, choose

    topology = None if setting.topology is None else setting.topology.build(names)
    schedule: Schedule | None = setting.schedule
    if isinstance(schedule, RandomWalk):
        schedule, topology = RandomWalk(topology=topology), None
    observer, sampler = observer_of(privacy, setting, names), sampler_of(privacy)
    choice = choose(
        PlanningInputs(
            problem=problem,
            target=privacy.target,
            trust=setting.trust,
            schedule=schedule,
            topology=topology,
            exact=privacy.exact,
            constant=constant,
            penalty_follows=penalty_follows,
        ),
        algorithm=setting.algorithm,
        rounds=setting.rounds,
    )
    options: dict[str, Any] = {
        "rounds": choice.rounds,
        "schedule": schedule,
        "trust": setting.trust,
        "topology": topology,
        "sampler": sampler,
        "colluders": setting.colluders,
        "equal": setting.equal,
        "trees": setting.trees,
        "masks": topology if setting.masks == "graph" else None,
    }
    made = _plan(problem, choice.algorithm, privacy, observer, options)
    return Planned(plan=made, reason=choice.reason)


def _plan(
    problem: Problem, algorithm: Any, privacy: PrivacySection, observer: Observer, options: dict[str, Any]
) -> Plan:
    if privacy.target is None:
        noise: Any = privacy.noises if privacy.noises is not None else NoNoise()
        return plan(problem, algorithm, noise=noise, **options)
    if privacy.kind == "gaussian" and not isinstance(privacy.target, PureEpsilon):
        return plan(problem, algorithm, target=privacy.target, observer=observer, **options)
    return _other_noise(problem, algorithm, privacy, privacy.target, observer, options)


def _other_noise(
    problem: Problem,
    algorithm: Any,
    privacy: PrivacySection,
    target: Target,
    observer: Observer,
    options: dict[str, Any],
) -> Plan:
    """The least noise of another law than the Gaussian one."""

    def at(multiplier: float) -> Plan:
        noise: Noise = noise_laws()[privacy.kind](multiplier=multiplier)
        return plan(problem, algorithm, noise=noise, **options)

    found = calibrate_noise(lambda multiplier: at(multiplier).guarantee(observer, privacy.delta).event, target)
    return at(found)
