"""Law 9: no attack beats what is reported, for any observer.

Every discovered algorithm is attacked in every schedule and under every trust of its example, with linear losses, on
which bounds that use a Lipschitz constant are nearly attained. A claim counts as beaten when its trade-off curve is
refuted with confidence 1 - 1e-6: over all algorithms, settings and observers a false alarm has probability below 1e-3.
`consenso audit --all` (`make audit`) is the long version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import Any

from consenso.algorithms.shape import Example
from consenso.audit import Effort, Finding, audit, linear
from consenso.audit.attack import list_targets
from consenso.audit.copies import Stacking
from consenso.audit.neighbours import unkind
from consenso.audit.simulate import stacking_of
from consenso.errors import ConsensoError
from consenso.planning.plan import Plan
from consenso.regularizers import NoPenalty
from consenso.testing.plans import plan_example

TRIALS = 800
# Of algorithms whose trials cannot be taken together. So few prove little of many rounds and much of three.
SLOW_TRIALS, SLOW_ROUNDS = 100, 3
CONFIDENCE = 1 - 1e-6


def attacks_stay_below(
    example: Example, *, trials: int = TRIALS, slow_trials: int = SLOW_TRIALS, once: bool = False
) -> None:
    """Law 9: with the attacker's choice of data, no observer learns more than the plan says.

    Of an algorithm whose trials cannot be taken together the first setting only, and few rounds of it where it allows
    that. once: every schedule and every trust in as few plans as there can be.
    """
    for made in list_attacked_plans(example, once=once):
        slow = _takes_trials_one_by_one(made)
        attacked = _shorten(example, made) if slow else made
        for finding in findings(attacked, trials=trials, slow_trials=slow_trials):
            assert not finding.refuted, finding.sentence()
        if slow:
            return


def _takes_trials_one_by_one(made: Plan) -> bool:
    problem = made.problem
    pair = next(iter(unkind(problem, problem.unit, problem.adjacency, 0)))
    return stacking_of(made, pair.zero) is Stacking.NOTHING


def _shorten(example: Example, made: Plan) -> Plan:
    """The first setting with few rounds; as it was, where a run has its own number of them or its claim stays."""
    with suppress(ConsensoError):
        short = next(list_attacked_plans(replace(example, rounds=min(example.rounds, SLOW_ROUNDS))))
        claims = zip(list_targets(short), list_targets(made), strict=True)
        if all(few.claimed < many.claimed for few, many in claims if isfinite(many.claimed)):
            return short
    return made


def list_attacked_plans(example: Example, *, once: bool = False) -> Iterator[Plan]:
    """The example with linear losses in its first schedule under every trust, and in every schedule under the first.

    once: in the first under the first, in the second under the second, and so on, until each was there.

    Without a penalty, too, which could only hide what was released, and with which a run is not affine in its noise. An
    algorithm that does not take such a problem is attacked with its own.
    """
    harsh = replace(example, problem=linear(example.problem))
    bare = replace(example, problem=replace(harsh.problem, regularizer=NoPenalty()))
    schedules, trusts = example.schedules, example.trusts
    settings = dict.fromkeys(
        [(schedules[k % len(schedules)], trusts[k % len(trusts)]) for k in range(max(len(schedules), len(trusts)))]
        if once
        else [(schedules[0], trust) for trust in trusts] + [(schedule, trusts[0]) for schedule in schedules]
    )
    for schedule, trust in settings:
        yield _first_plan((bare, harsh, example), schedule=schedule, trust=trust)


def _first_plan(examples: Sequence[Example], **changes: Any) -> Plan:
    """The plan of the first example that is not refused; where all are, the error of the last one."""
    for each in examples[:-1]:
        with suppress(ConsensoError):
            return plan_example(each, **changes)
    return plan_example(examples[-1], **changes)


def findings(made: Plan, *, trials: int, slow_trials: int, confidence: float = CONFIDENCE) -> list[Finding]:
    """What attacking each observer's guarantee gave."""
    return audit(made, Effort(trials=trials, slow_trials=slow_trials, confidence=confidence, family=False))
