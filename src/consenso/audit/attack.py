"""The audit of a plan: attack each of its guarantees, and say what the attack proves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from consenso.audit.bounds import AttackEvidence, area, evidence
from consenso.audit.copies import Stacking
from consenso.audit.distinguisher import learn
from consenso.audit.families import curve_of, rule_out
from consenso.audit.findings import ENOUGH, FAMILY, LAW, Bracket, Finding
from consenso.audit.neighbours import Neighbours, unkind
from consenso.audit.scores import Kind, describe_attack
from consenso.audit.simulate import Scores, Watch, simulate, stacking_of
from consenso.audit.targets import AuditTarget, Claim, target_of, victim
from consenso.conventions import LARGEST_DELTA
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy import accountants
from consenso.privacy.observers import Observer, parse
from consenso.privacy.relations import Relation, bounds_of, relation_of
from consenso.privacy.run_spec import PrivacyQuery
from consenso.problem import Unit

# Trials of either world with which the worst neighbours are chosen, as a share of those that count.
PILOT = 0.05
FEWEST_PILOT = 40
# The same where a pair is looked for among all of them: a distinguisher is to be learnt first.
FEWEST_LEARNT = 120
FEWEST_LOOKED_AT = 100
# Looks at the runs so far, as shares of the trials, and what each may spend of the error probability. An attack that
# has proved enough ends at its look; the shares add up to one, so all looks hold together (docs/attacks.md).
LOOKS = ((1 / 16, 0.25), (1 / 4, 0.25), (1.0, 0.5))
# Pairs from which a definition that takes its trials one at a time has the worst chosen, where no value says which: so
# few runs choose by chance, and the first pair differs by as much as any.
SLOW_PAIRS = 1
# Attacks that reach a claim of which the mean is told, where a real one stays below.
ATTAINED = 20


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard the attack tries.

    trials: runs of either world. slow_trials: as many, and one pair of neighbours only, where a definition takes its
    trials one at a time; by default as many as elsewhere. confidence: that what is said to be refuted is false.
    workers: processes that share runs which are taken one at a time. family: bound epsilon within the claim's own
    family of trade-off curves as well, which takes a second or two where that is not Gaussian. enough: end an attack
    that has proved this share of what it can; the looks at which that is asked share the error probability. By default
    all trials are run, and looked at once.
    """

    trials: int = 20_000
    slow_trials: int | None = None
    confidence: float = 0.95
    seed: int = 0
    workers: int = 1
    family: bool = True
    enough: float | None = None

    def __post_init__(self) -> None:
        if self.enough is not None and not 0 < self.enough <= 1:
            raise InputError(f"Effort(enough={self.enough}): a share of a claim lies in (0, 1]; 0.85 is usual.")
        if min(self.trials, self.slow_trials or self.trials) < 100:
            raise InputError(f"Effort(trials={self.trials}): fewer than 100 trials show nothing; 20000 is usual.")

    def looks(self, trials: int) -> list[tuple[int, float]]:
        """After how many trials the runs are looked at, and the confidence of each look."""
        if self.enough is None:
            return [(trials, self.confidence)]
        counts: dict[int, float] = {}
        for share, spent in LOOKS:  # looks that fall together spend together
            count = min(max(FEWEST_LOOKED_AT, int(share * trials)), trials)
            counts[count] = counts.get(count, 0.0) + spent
        return [(count, 1 - (1 - self.confidence) * spent) for count, spent in counts.items()]

    def again(self, claims: int) -> Effort:
        """The same with new noise, and so sure of what it refutes that it holds for this many claims together.

        Bonferroni: each claim gets its share of the error probability, however the attacks depend on each other.
        """
        return replace(self, seed=self.seed + 1, confidence=1 - (1 - self.confidence) / max(1, claims))


USUAL = Effort()


def audit(
    plan: Plan,
    effort: Effort = USUAL,
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
    known: Mapping[str, Bracket] | None = None,
    tell: Callable[[float], None] | None = None,
) -> list[Finding]:
    """Attack what a plan promises to each observer, on data of the attacker's choice, with simulated noise.

    party: whose data are attacked; by default the one that is promised most. pairs: neighbours to choose from, by
    party; by default those of `consenso.audit.neighbours`. claim: an event to attack in place of the plan's own. kind:
    another attack than the strongest that is known, by its name or as an object (`consenso.audit.scores`).
    deviations: tell whoever sees sums by how much each party's noise differs from the mean, as the proof of Theorem F
    does. known: true values by observer, which say which pair is the strongest and when all is proved that can be.
    tell: is told the share of the work that is done, now and then.
    """
    targets = list_targets(
        plan,
        observers,
        unit=unit,
        adjacency=adjacency,
        party=party,
        delta=delta,
        claim=claim,
        kind=kind,
        told=deviations,
    )
    claims = [target for target in targets if target.watch is not None]
    found: Iterator[Finding] = iter(())
    if claims:
        query = claims[0].query
        candidates = list(
            pairs(query.party) if pairs else unkind(plan.problem, query.unit, query.adjacency, query.party)
        )
        found = iter(_attacks(plan, claims, candidates, effort, known or {}, tell or (lambda share: None)))
    return [_conclude_nothing(plan, target) if target.watch is None else next(found) for target in targets]


def list_targets(
    plan: Plan,
    observers: Iterable[Observer] | None = None,
    *,
    unit: Unit | None = None,
    adjacency: Relation | None = None,
    party: int | None = None,
    delta: float = LARGEST_DELTA,
    claim: Claim | None = None,
    kind: Kind | None = None,
    told: bool = False,
) -> list[AuditTarget]:
    """What is attacked: one target for each observer, all for the data of one party."""
    unit, relation = unit or plan.problem.unit, adjacency or plan.problem.adjacency
    watching = list(plan.observers() if observers is None else observers)
    attacked = victim(plan, watching, unit, relation, delta) if party is None else party
    return [
        target_of(
            plan,
            PrivacyQuery(observer=observer, unit=unit, adjacency=bounds_of(relation), party=attacked),
            delta,
            claim,
            kind,
            told,
        )
        for observer in watching
    ]


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


def _attacks(
    plan: Plan,
    targets: Sequence[AuditTarget],
    candidates: list[Neighbours],
    effort: Effort,
    known: Mapping[str, Bracket],
    tell: Callable[[float], None],
) -> list[Finding]:
    watches = [target.watch for target in targets if target.watch is not None]
    stacking, trials = stacking_of(plan, candidates[0].zero), effort.trials
    brackets = [known.get(target.query.observer.key) for target in targets]
    if stacking is Stacking.NOTHING and effort.slow_trials is not None:
        trials = effort.slow_trials
        given = [bracket for bracket in brackets if bracket is not None]
        told = {bracket.pair for bracket in given}
        # A value without a pair is one of all of them: which is the strongest is then found out.
        if not any(bracket.exact is not None and not bracket.pair for bracket in given):
            candidates = [pair for pair in candidates if pair.what in told] or candidates[:SLOW_PAIRS]
    best = _strongest(plan, watches, candidates, trials, effort, stacking, brackets)
    found: dict[int, Finding] = {}
    choices = sorted(set(best))
    whole = trials * len(choices)
    for turn, choice in enumerate(choices):
        waiting = dict[int, Scores | None]((index, None) for index, pick in enumerate(best) if pick == choice)
        done = 0
        for count, confidence in effort.looks(trials):
            if not waiting:
                break
            played = simulate(
                plan,
                candidates[choice],
                [watches[index] for index in waiting],
                trials=count - done,
                first=done,
                seed=effort.seed,
                stacking=stacking,
                workers=effort.workers,
                tell=partial(_tell_part, tell, (turn + done / trials) / len(choices), (count - done) / whole),
            )
            done = count
            waiting = {index: _join(before, new) for (index, before), new in zip(waiting.items(), played, strict=True)}
            for index, scores in list(waiting.items()):
                assert scores is not None
                scores = _rank(watches[index], scores, brackets[index], candidates[choice].what)
                finding = _conclude(
                    plan,
                    targets[index],
                    scores,
                    candidates[choice].what,
                    count,
                    effort,
                    stacking,
                    confidence,
                    brackets[index],
                )
                # Every look holds, so the best of them does.
                found[index] = max(finding, found.get(index, finding), key=lambda each: (each.refuted, each.lower))
                if effort.enough is not None and found[index].proved_all(effort.enough):
                    del waiting[index]
    tell(1.0)
    (_, last) = effort.looks(trials)[-1]
    return [
        replace(found[index], ideal=_ideal(target, brackets[index], found[index], last))
        for index, target in enumerate(targets)
    ]


def _tell_part(tell: Callable[[float], None], before: float, part: float, share: float) -> None:
    tell(before + part * share)


def _join(before: Scores | None, new: Scores) -> Scores:
    if before is None:
        return new
    return np.concatenate([before[0], new[0]]), np.concatenate([before[1], new[1]])


def _rank(watch: Watch, scores: Scores, known: Bracket | None, pair: str) -> Scores:
    """Scores as numbers: models by their likelihood ratio where the law of this pair's is known, else as learned."""
    if scores[0].ndim == 1:
        return scores
    if watch.kind == "model" and known is not None and known.score is not None and known.pair == pair:
        return known.score(scores[0]), known.score(scores[1])
    return learn(*scores)


def _strongest(
    plan: Plan,
    watches: list[Watch],
    candidates: list[Neighbours],
    trials: int,
    effort: Effort,
    stacking: Stacking,
    brackets: Sequence[Bracket | None],
) -> list[int]:
    """The candidates that show most to each watch: as is known, or from runs that are not counted afterwards."""
    names = [pair.what for pair in candidates]
    picks = [
        names.index(bracket.pair) if bracket is not None and bracket.pair in names else None for bracket in brackets
    ]
    if len(candidates) == 1:
        return [0] * len(watches)
    unsure = [index for index, pick in enumerate(picks) if pick is None]
    learnt = any((bracket := brackets[index]) is not None and bracket.exact is not None for index in unsure)
    pilot = max(FEWEST_LEARNT if learnt else FEWEST_PILOT, int(PILOT * trials))
    shown = np.zeros((len(candidates), len(watches)))
    for row, pair in enumerate(candidates if unsure else []):
        # Seeds of their own: a pair that was lucky here is not lucky again.
        seed = effort.seed + (row + 1) * 1_000_003
        watched = [watches[index] for index in unsure]
        played = simulate(plan, pair, watched, trials=pilot, seed=seed, stacking=stacking, workers=effort.workers)
        for column, scores in zip(unsure, played, strict=True):
            zero, one = _rank(watches[column], scores, None, pair.what)
            shown[row, column] = area(zero, one, 0.9).estimate
    return [int(shown[:, index].argmax()) if pick is None else pick for index, pick in enumerate(picks)]


def _conclude(
    plan: Plan,
    target: AuditTarget,
    scores: Scores,
    what: str,
    trials: int,
    effort: Effort,
    stacking: Stacking,
    confidence: float,
    known: Bracket | None,
) -> Finding:
    assert target.watch is not None
    zero, one = scores
    shown = evidence(zero, one, delta=target.delta, confidence=confidence)
    lower, method = shown.epsilon(target.delta)
    refuted = lower > target.claimed or shown.refutes(curve_of(target.event))
    if effort.family or refuted:
        lower, method = max((lower, method), *_rule_out(target, known, shown, what))
    return _of(
        plan,
        target,
        lower=lower,
        method=method,
        confidence=effort.confidence,
        trials=trials,
        refuted=refuted,
        neighbours=what,
        attack=describe_attack(target.watch.kind),
        stacking=stacking.value,
        evidence=shown,
        bracket=known and replace(known, score=None, ideal=None),  # what is left can go to another process
    )


def _rule_out(
    target: AuditTarget, known: Bracket | None, shown: AttackEvidence, pair: str
) -> Iterator[tuple[float, str]]:
    """What the evidence rules out in the family of the claim, and in that of what the attacked pair shows."""
    yield rule_out(target.event, shown, target.delta), FAMILY
    if known is not None and known.law is not None and known.pair == pair and not known.told:
        # Not above the claim unless that is refuted itself: what decides is the claim's own curve.
        yield min(rule_out(known.law, shown, target.delta), target.claimed), LAW


def _ideal(target: AuditTarget, known: Bracket | None, finding: Finding, confidence: float) -> float | None:
    """What as many runs of an attack by the likelihood ratio itself prove, where an attack proved less.

    Where the law of what is seen is not known, what they prove of the claim if it is attained, in the mean.
    """
    if known is None or finding.share >= ENOUGH:
        return None
    if known.ideal is None:
        mu = accountants.gdp(target.event)
        return None if mu is None else _attain(target, mu, finding.trials, confidence)
    shown = evidence(*known.ideal(finding.trials), delta=target.delta, confidence=confidence)
    ruled = [value for value, _ in _rule_out(target, known, shown, known.pair)]
    return max(shown.epsilon(target.delta)[0], *ruled)


def _attain(target: AuditTarget, mu: float, trials: int, confidence: float) -> float:
    """What runs of an attack prove in the mean whose scores are as far apart as a claim of mu-GDP allows."""
    rng, found = np.random.default_rng(0), []
    for _ in range(ATTAINED):
        shown = evidence(
            rng.normal(size=trials), rng.normal(mu, size=trials), delta=target.delta, confidence=confidence
        )
        found.append(max(shown.epsilon(target.delta)[0], rule_out(target.event, shown, target.delta)))
    return float(np.mean(found))


def _conclude_nothing(plan: Plan, target: AuditTarget) -> Finding:
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
