"""The choice of a solver, and the plan that its rules make."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

from consenso import registry
from consenso.errors import InputError, PreconditionError
from consenso.planning.plan import Plan, plan
from consenso.privacy.calibrate import Target
from consenso.privacy.count import Count
from consenso.privacy.earlier import Earlier
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Observer
from consenso.privacy.samplers import Sampler
from consenso.problem import Problem
from consenso.schedules import Schedule
from consenso.solvers.request import Request, Rules
from consenso.trust import Trust


def names() -> tuple[str, ...]:
    """The solvers that can be asked for by name, around a hub."""
    return tuple(rules.NAME for rules in discover() if not _gossips(rules))


def discover() -> list[Rules]:
    """The solvers of this package and of entry points `consenso.solvers`, in the order of their places."""
    return sorted(registry.kinds("solvers").values(), key=lambda rules: (rules.PLACE, rules.NAME))


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A solver, what its rules make, and why, in one sentence of public facts."""

    solver: str
    algorithm: Any
    rounds: int
    reason: str


def choose(request: Request) -> Choice:
    """What to plan with: the solver of the least expected excess risk, or the one that is named."""
    rules, reason = _find_rules(request)
    algorithm, rounds = rules.recipe(request)
    return Choice(solver=rules.NAME, algorithm=algorithm, rounds=rounds, reason=reason)


def prepare(
    problem: Problem,
    target: Target,
    *,
    solver: str = "auto",
    sampler: Sampler | None = None,
    observer: Observer | None = None,
    trust: Trust | None = None,
    schedule: Schedule | None = None,
    count: Count | None = None,
    earlier: tuple[Earlier, ...] = (),
    constant: float | None = None,
    threshold: float | None = None,
    penalty_follows: bool = False,
) -> Plan:
    """Plan the fit of a problem within a target for an observer, by rules from public facts only.

    The plan says which solver it is (`solver`), and why (`reason`).

    observer: whoever is not trusted, unless another one is named (`choose_observer`).
    solver: "auto", or one of `names()`, which is refused where its assumptions do not hold. count: a noisy number of
    records that was released before and is paid for with the fit; earlier: other releases that were. constant,
    threshold, penalty_follows: see Request.
    """
    request = Request(
        problem=problem,
        target=target,
        solver=solver,
        trust=trust,
        schedule=schedule,
        constant=constant,
        threshold=threshold,
        penalty_follows=penalty_follows,
    )
    return plan_request(request, observer=observer, sampler=sampler, count=count, earlier=earlier)


def plan_request(request: Request, **rest: Any) -> Plan:
    """The plan of a request; observer, sampler, count and earlier releases as `prepare` takes them."""
    rules, reason = _find_rules(request)
    algorithm, rounds = rules.recipe(request)
    planned = plan(
        request.problem,
        algorithm,
        rounds=rounds,
        target=request.target,
        schedule=request.schedule,
        trust=request.trust,
        **rest,
    )
    return replace(planned, solver=rules.NAME, reason=reason)


def check_request(request: Request, sampler: Sampler | None) -> None:
    """Refuse a request that cannot be planned."""
    rules, _ = _find_rules(request)
    algorithm, rounds = rules.recipe(request)
    if not getattr(rules, "MEETS_ANY_MU", False):
        plan_request(request, sampler=sampler)
        return
    # No need to look for the noise, which takes most of the time.
    noise = GaussianNoise(multiplier=1.0)
    plan(request.problem, algorithm, rounds=rounds, noise=noise, schedule=request.schedule, trust=request.trust)


def _find_rules(request: Request) -> tuple[Rules, str]:
    return _automatic(request) if request.solver == "auto" else _choose_named(request.solver, request)


def compare(request: Request) -> tuple[list[tuple[float, Rules]], dict[str, str]]:
    """The solvers that apply with their expected excess risks, best first, and why others do not."""
    able: list[tuple[float, Rules]] = []
    refusals: dict[str, str] = {}
    for rules in discover():
        if _gossips(rules) and request.topology is None:
            continue  # not worth a word where there is no graph
        refusal = _refusal(rules, request)
        if refusal is None:
            able.append((rules.excess(request), rules))
        else:
            refusals[rules.NAME] = refusal
    return sorted(able, key=lambda each: each[0]), refusals


def _automatic(request: Request) -> tuple[Rules, str]:
    """The solver of the least expected excess risk."""
    able, refusals = compare(request)
    told = [f"{name} does not apply ({refusal})" for name, refusal in refusals.items()]
    if not able:
        raise PreconditionError(f"prepare(solver='auto'): no solver applies: {'; '.join(told)}.")
    (least, chosen), others = able[0], able[1:]
    told = [f"{rules.NAME} is expected to lose {excess:.2g}" for excess, rules in others] + told
    because = f" ({'; '.join(told)})" if told else ""
    return chosen, f"{chosen.NAME}: the least expected excess risk, {least:.2g}{because}."


def _refusal(rules: Rules, request: Request) -> str | None:
    if request.gossips and not _gossips(rules):
        return "it makes each step of a sum over all parties, and peers that gossip have none"
    if request.problem.is_weighted and not getattr(rules, "TAKES_WEIGHTS", False):
        return "its bounds are proved for rows without weights"
    return rules.refusal(request)


def _gossips(rules: Rules) -> bool:
    """Whether a solver is for peers that hear their neighbours only."""
    return bool(getattr(rules, "GOSSIPS", False))


def _choose_named(solver: str, request: Request) -> tuple[Rules, str]:
    for rules in discover():
        if solver == rules.NAME:
            refusal = _refusal(rules, request)
            if refusal is not None:
                raise PreconditionError(
                    f"prepare(solver={solver!r}): this solver does not apply, because {refusal}; use solver='auto'."
                )
            return rules, f"{solver}: asked for by name."
    near = difflib.get_close_matches(str(solver), names(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"use 'auto' or one of {', '.join(map(repr, names()))}."
    raise InputError(f"prepare(solver={solver!r}): there is no such solver; {hint}")
