"""Exact values beside attacks: a weak attack and a loose claim are told apart."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms.dp_admm import DPADMM
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint
from consenso.algorithms.primal_perturbation import PrimalPerturbation
from consenso.audit import Effort, audit
from consenso.audit.attack import LOOKS, list_targets
from consenso.audit.bounds import evidence
from consenso.audit.differences import follow_differences
from consenso.audit.findings import ENOUGH, Bracket
from consenso.audit.neighbours import unkind
from consenso.audit.table import Attacked, list_unexplained, markdown
from consenso.planning.plan import Plan
from consenso.privacy.accountants import gaussian
from consenso.schedules import PoissonSubset
from consenso.testing.attacks import list_attacked_plans
from consenso.testing.brackets import bracket, shrink
from consenso.testing.plans import plan_example

FEW = Effort(trials=400, slow_trials=100, enough=ENOUGH)


def first_plan(algorithm) -> Plan:
    return next(iter(list_attacked_plans(algorithm.example())))


@pytest.fixture(scope="module")
def attacked() -> list[Attacked]:
    """Claims that are reached, and claims that are loose for linear losses."""
    rows = []
    for algorithm in (DPADMM, DualConsensusADMM):
        made = first_plan(algorithm)
        known = bracket(made, list_targets(made))
        rows.append(Attacked(plan=made, findings=audit(made, FEW, known=known)))
    return rows


def test_no_claim_is_attacked_to_less_than_enough_without_its_reason(attacked) -> None:
    assert list_unexplained(attacked) == []
    bare = [replace(row, findings=[replace(each, bracket=None) for each in row.findings]) for row in attacked]
    unexplained = list_unexplained(bare)
    assert unexplained
    assert all(finding.share < ENOUGH for finding in unexplained)
    text = markdown(attacked)
    assert f"Attacked to less than {ENOUGH:.0%}:" in text
    for row in attacked:
        for finding in row.findings:
            assert finding.trials == 0 or finding.share >= ENOUGH or finding.reason in text


def test_an_exact_value_lies_between_what_is_proved_and_what_is_claimed(attacked) -> None:
    """A bound of an attack is above the truth once in twenty; here the seed is one of the others."""
    exact = [each for row in attacked for each in row.findings if each.bracket is not None and each.bracket.exact]
    assert len(exact) >= 6
    for finding in exact:
        assert finding.bracket.exact <= finding.claimed * (1 + 1e-6)
        assert finding.lower <= finding.bracket.exact * (1 + 1e-6)
    by_observer = {each.observer: each for each in attacked[0].findings}
    assert "tight" in replace(by_observer["server"], lower=1.0).reason
    assert by_observer["public"].reason.startswith("between 4.96 and 15.5 (Composition): exactly 4.96")


def test_two_computations_agree() -> None:
    """What the releases differ by, composed, is law 10's exact value for whoever sees each release."""
    made = first_plan(NoisyFixedPoint)
    target = next(each for each in list_targets(made) if each.query.observer.key == "peer:0")
    exact = bracket(made, [target])["peer:0"]
    query = target.query
    pairs = unkind(made.problem, query.unit, query.adjacency, query.party)
    followed = {pair.what: follow_differences(made, pair, target.watch, target.delta) for pair in pairs}
    assert followed[exact.pair].is_exact
    assert max(each.epsilon for each in followed.values()) == pytest.approx(exact.exact, rel=1e-6)
    # Three blocks in turn, eight rounds: a record lies in one block at most, which has three of the rounds.
    assert exact.exact == pytest.approx(gaussian.epsilon(math.sqrt(3), target.delta), rel=1e-6)


def test_noise_that_is_not_gaussian_is_followed_too() -> None:
    """A perturbed minimiser whose noise has a gamma distributed length: the claim is the exact value."""
    made = first_plan(PrimalPerturbation)
    target = list_targets(made, made.observers()[:1])[0]
    pair = next(unkind(made.problem, target.query.unit, target.query.adjacency, target.query.party))
    found = follow_differences(made, pair, target.watch, target.delta)
    assert found.is_exact
    assert found.epsilon == pytest.approx(target.claimed, rel=1e-4)


@pytest.mark.slow
def test_a_sampled_plan_is_made_small_enough_to_be_enumerated() -> None:
    made = plan_example(DPADMM.example())
    short = replace(NoisyFixedPoint.example(), rounds=4)  # in which the attacked party's coins fall in sixteen ways
    sampled = replace(next(iter(list_attacked_plans(short))), schedule=PoissonSubset(0.5))
    small = shrink(sampled)
    assert small.parties == 3
    assert small.rounds == 2
    found = bracket(sampled, list_targets(sampled))
    assert "with 3 parties and 2 rounds at least" in found["peer:0"].why
    assert found["public"].kind == "at least"  # a model depends on the attacked party's coins alone
    assert shrink(made).rounds == made.rounds  # nothing is tossed there


def test_looks_share_the_error_and_end_an_attack_that_has_proved_enough() -> None:
    effort = Effort(trials=3200, enough=ENOUGH)
    looks = effort.looks(3200)
    assert [count for count, _ in looks] == [200, 800, 3200]
    assert sum(1 - confidence for _, confidence in looks) == pytest.approx(0.05)
    assert sum(spent for _, spent in LOOKS) == 1.0
    assert Effort(trials=3200).looks(3200) == [(3200, 0.95)]
    made = first_plan(DPADMM)
    told: list[float] = []
    pair = lambda party: list(unkind(made.problem, "record", "replace-one", party))[:1]
    found = audit(made, effort, observers=made.observers()[:1], pairs=pair, tell=told.append)
    assert found[0].trials < 3200
    assert found[0].share >= ENOUGH
    assert found[0].confidence == 0.95
    assert told[-1] == 1.0
    whole = audit(made, replace(effort, enough=None, trials=200), observers=made.observers()[:1], pairs=pair)
    assert whole[0].trials == 200


@pytest.mark.slow
def test_the_best_of_all_looks_holds_as_often_as_it_says() -> None:
    """Of 40 true claims some look is above each with a chance of 0.05; above 10 or more by chance once in 1e4."""
    wrong, rng = 0, np.random.default_rng(0)
    looks = Effort(trials=800, enough=ENOUGH).looks(800)
    for _ in range(40):
        zero, one = rng.normal(size=800), 1.0 + rng.normal(size=800)
        shown = [evidence(zero[:n], one[:n], delta=1e-5, confidence=sure).mu for n, sure in looks]
        wrong += max(shown) > 1.0
    assert wrong < 10


def test_a_bracket_of_whoever_sees_more_is_no_reason_to_call_a_claim_tight() -> None:
    (finding, *_) = audit(first_plan(DPADMM), Effort(trials=100), observers=first_plan(DPADMM).observers()[:1])
    most = replace(finding, lower=1.0, bracket=Bracket(exact=finding.claimed, kind="at most", pair="x", why="w"))
    assert "tight" not in most.reason
    assert most.reason.startswith("between 1 and")
