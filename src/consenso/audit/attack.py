"""The audit of a plan: attack each of its guarantees, and say what the attack proves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consenso.audit.bounds import area, evidence
from consenso.audit.copies import Stacking
from consenso.audit.distinguisher import learn
from consenso.audit.families import curve_of, rule_out
from consenso.audit.findings import FAMILY, Finding
from consenso.audit.neighbours import Neighbours, unkind
from consenso.audit.simulate import Kind, Scores, Watch, simulate, stacking_of
from consenso.audit.targets import SCORES, AuditTarget, Claim, target_of, victim
from consenso.conventions import LARGEST_DELTA
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy.observers import Observer, parse
from consenso.privacy.relations import Relation, bounds_of, relation_of
from consenso.privacy.run_spec import PrivacyQuery
from consenso.problem import Unit

# Trials of either world with which the worst neighbours are chosen, as a share of those that count.
PILOT = 0.05
FEWEST_PILOT = 40
# Pairs from which a definition that takes its trials one at a time has the worst chosen.
SLOW_PAIRS = 2


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard the attack tries.

    trials: runs of either world. slow_trials: as many, and two pairs of neighbours only, where a definition takes its
    trials one at a time; by default as many as elsewhere. confidence: that what is said to be refuted is false.
    workers: threads. family: bound epsilon within the claim's own family of trade-off curves as well, which takes a
    second or two where that is not Gaussian.
    """

    trials: int = 20_000
    slow_trials: int | None = None
    confidence: float = 0.95
    seed: int = 0
    workers: int = 1
    family: bool = True

    def __post_init__(self) -> None:
        if min(self.trials, self.slow_trials or self.trials) < 100:
            raise InputError(f"Effort(trials={self.trials}): fewer than 100 trials show nothing; 20000 is usual.")

    def again(self, claims: int) -> Effort:
        """The same with new noise, and so sure of what it refutes that it holds for this many claims together.

        Bonferroni: each claim gets its share of the error probability, however the attacks depend on each other.
        """
        return replace(self, seed=self.seed + 1, confidence=1 - (1 - self.confidence) / max(1, claims))


def audit(
    plan: Plan,
    effort: Effort = Effort(),  # noqa: B008 - frozen
    *,
    observers: Iterable[Observer] | None = None,
    unit: Unit | None = None,
    adjacency: Relation | None = None,
    party: int | None = None,
    delta: float = LARGEST_DELTA,
    pairs: Callable[[int], Sequence[Neighbours]] | None = None,
    claim: Claim | None = None,
    kind: Kind | None = None,
    deviations: bool = False,
) -> list[Finding]:
    """Attack what a plan promises to each observer, on data of the attacker's choice, with simulated noise.

    party: whose data are attacked; by default the one that is promised most. pairs: neighbours to choose from, by
    party; by default those of `consenso.audit.neighbours`. claim: an event to attack in place of the plan's own. kind:
    another attack than the strongest that is known. deviations: tell whoever sees sums by how much each party's noise
    differs from the mean, as the proof of Theorem F does.
    """
    unit, relation = unit or plan.problem.unit, adjacency or plan.problem.adjacency
    bounds = bounds_of(relation)
    watching = list(plan.observers() if observers is None else observers)
    attacked = victim(plan, watching, unit, relation, delta) if party is None else party
    targets = [
        target_of(
            plan,
            PrivacyQuery(observer=observer, unit=unit, adjacency=bounds, party=attacked),
            delta,
            claim,
            kind,
            deviations,
        )
        for observer in watching
    ]
    claims = [target for target in targets if target.watch is not None]
    found: Iterator[Finding] = iter(())
    if claims:
        candidates = list(pairs(attacked) if pairs else unkind(plan.problem, unit, bounds, attacked))
        found = iter(_attacks(plan, claims, candidates, effort))
    return [_nothing(plan, target) if target.watch is None else next(found) for target in targets]


def confirm(plan: Plan, findings: Sequence[Finding], effort: Effort) -> list[Finding]:
    """Attack again what was refuted, with new noise; the second attack decides, and tells what the first one saw.

    findings: what `audit` found for the plan. effort: `Effort.again` of the one that it was found with, for all claims
    that are attacked together. Then the probability that any claim among them which is true is called refuted is at
    most one minus the confidence of the first effort: the second attacks alone make sure of that.
    """
    doubted = [finding for finding in findings if finding.refuted]
    if not doubted:
        return list(findings)
    observers = [parse(finding.observer) for finding in doubted]
    first = doubted[0]
    attacked = audit(
        plan,
        effort,
        observers=observers,
        unit=first.unit,
        adjacency=first.adjacency,
        party=first.party,
        delta=first.delta,
    )
    second = {finding.observer: finding for finding in attacked}
    return [replace(second[each.observer], first=each) if each.refuted else each for each in findings]


def _attacks(plan: Plan, targets: Sequence[AuditTarget], candidates: list[Neighbours], effort: Effort) -> list[Finding]:
    watches = [target.watch for target in targets if target.watch is not None]
    stacking, trials = stacking_of(plan, candidates[0].zero), effort.trials
    if stacking is Stacking.NOTHING and effort.slow_trials is not None:
        trials, candidates = effort.slow_trials, candidates[:SLOW_PAIRS]
    best = _strongest(plan, watches, candidates, trials, effort, stacking)
    scores: dict[int, Scores] = {}
    for choice in sorted(set(best)):
        chosen = [index for index, pick in enumerate(best) if pick == choice]
        played = simulate(
            plan,
            candidates[choice],
            [watches[index] for index in chosen],
            trials=trials,
            seed=effort.seed,
            stacking=stacking,
            workers=effort.workers,
        )
        scores.update(zip(chosen, played, strict=True))
    return [
        _finding(plan, target, scores[index], candidates[best[index]].what, trials, effort, stacking)
        for index, target in enumerate(targets)
    ]


def _strongest(
    plan: Plan,
    watches: list[Watch],
    candidates: list[Neighbours],
    trials: int,
    effort: Effort,
    stacking: Stacking,
) -> list[int]:
    """The candidates that show most to each watch, from runs that are not counted afterwards."""
    if len(candidates) == 1:
        return [0] * len(watches)
    pilot = max(FEWEST_PILOT, int(PILOT * trials))
    shown = np.zeros((len(candidates), len(watches)))
    for row, pair in enumerate(candidates):
        # Seeds of their own: a pair that was lucky here is not lucky again.
        seed = effort.seed + (row + 1) * 1_000_003
        played = simulate(plan, pair, watches, trials=pilot, seed=seed, stacking=stacking, workers=effort.workers)
        for column, scores in enumerate(played):
            zero, one = learn(*scores) if watches[column].kind == "model" else scores
            shown[row, column] = area(zero, one, 0.9).estimate
    return [int(pick) for pick in shown.argmax(axis=0)]


def _finding(
    plan: Plan, target: AuditTarget, scores: Scores, what: str, trials: int, effort: Effort, stacking: Stacking
) -> Finding:
    assert target.watch is not None
    zero, one = learn(*scores) if target.watch.kind == "model" else scores
    shown = evidence(zero, one, delta=target.delta, confidence=effort.confidence)
    lower, method = shown.epsilon(target.delta)
    refuted = lower > target.claimed or shown.refutes(curve_of(target.event))
    if effort.family or refuted:
        ruled = rule_out(target.event, shown, target.delta)
        if ruled > lower:
            lower, method = ruled, FAMILY
    return _of(
        plan,
        target,
        lower=lower,
        method=method,
        confidence=effort.confidence,
        trials=trials,
        refuted=refuted,
        neighbours=what,
        attack=SCORES[target.watch.kind],
        stacking=stacking.value,
        evidence=shown,
    )


def _nothing(plan: Plan, target: AuditTarget) -> Finding:
    return _of(
        plan,
        target,
        lower=0.0,
        method="nothing is claimed",
        confidence=1.0,
        trials=0,
        refuted=False,
        neighbours="",
        attack="",
        stacking="",
    )


def _of(plan: Plan, target: AuditTarget, **found: Any) -> Finding:
    return Finding(
        algorithm=type(plan.algorithm).__name__,
        observer=target.query.observer.key,
        unit=target.query.unit,
        adjacency=relation_of(target.query.adjacency, plan.problem.adjacency),
        party=target.query.party,
        theorem=target.theorem,
        delta=target.delta,
        claimed=target.claimed,
        event=target.event,
        **found,
    )
