"""An algorithm is asked for its releases once for all rounds that it does not tell apart."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms import discover
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.recycled_admm import RecycledADMM
from consenso.engine.run import run
from consenso.estimators import PrivateLogisticRegression
from consenso.privacy.declarations import Declarations
from consenso.privacy.noise import GaussianNoise, Polynomial
from consenso.privacy.run_spec import largest_bounds, stretches
from consenso.public_facts import PublicFacts
from consenso.schedules import Everyone
from consenso.solvers import preconditioned
from consenso.testing.plans import plan_example, shards_of

ROUNDS = 11


@pytest.fixture
def asked(monkeypatch) -> Counter[bytes]:
    """How often algorithms were asked, by the cohort that they were asked about."""
    counts: Counter[bytes] = Counter()

    def count(cls: type) -> None:
        releases = cls.releases

        def counting(self, facts: PublicFacts):
            counts[facts.cohort.tobytes()] += 1
            return releases(self, facts)

        monkeypatch.setattr(cls, "releases", counting)

    for cls in discover().values():
        count(cls)
    return counts


def test_a_fit_of_eleven_rounds_asks_once_for_each_kind_of_round(asked, monkeypatch) -> None:
    """One second moment, then gradients: two kinds, and one question of the rule that chooses the solver."""
    steps = PreconditionedFixedPoint(steps=10, moment_releases=1)
    monkeypatch.setattr(preconditioned, "PreconditionedFixedPoint", lambda **_: steps)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, size=(2000, 3))
    # What is asked before a fit has it planned once more.
    model = PrivateLogisticRegression(
        row_bound=1.0, bounds="public", classes=[-1, 1], solver="preconditioned", random_state=0
    )
    model.fit(rows, np.where(rows[:, 0] > 0, 1, -1))
    assert model.n_iter_ == ROUNDS
    assert 2 <= asked.total() <= 3
    asked.clear()
    assert model.card_.entries
    assert asked.total() == 0


def test_a_plan_is_made_in_a_straight_line() -> None:
    """Of the rooms between an estimator and the engine: what is made there on the way to the coefficients."""
    rooms = ("estimators", "solvers", "planning", "problem", "public_facts", "engine.run", "privacy.calibrate")
    made = set()

    def look(frame, event, _) -> None:
        if event == "call" and frame.f_code.co_name == "__init__" and "self" in frame.f_locals:
            kind = type(frame.f_locals["self"])
            if kind.__module__.startswith(tuple(f"consenso.{room}" for room in rooms)):
                made.add(kind.__name__)

    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 3))
    model = PrivateLogisticRegression(row_bound=1.0, classes=[-1, 1], random_state=0)
    sys.setprofile(look)
    try:
        model.fit(rows, np.where(rows[:, 0] > 0, 1, -1))
    finally:
        sys.setprofile(None)
    # Questions to the plan, and the search for its noise, are no station.
    made -= {"_Search", "_Point"}
    planning = {"PrivacyParams", "Problem", "EpsilonDelta", "Request", "PublicFacts", "Plan", "Result"}
    # What an estimator has beside them: what was asked for, the fit with what was released before it, the map of rows.
    beside = {"FitOptions", "Labels", "RowMap", "RowChange", "Fit", "Earlier", "Mu"}
    assert made - planning <= beside | {"ColumnShares", "DeclaredShares", "ChangedRows"}
    assert planning <= made | {"EpsilonDelta"}


@pytest.mark.parametrize(
    "algorithm",
    [ConsensusADMM(step=0.5), DPSGD(step=0.5), DualConsensusADMM(step=0.5)],
    ids=lambda algorithm: type(algorithm).__name__,
)
@pytest.mark.parametrize("multiplier", [2.0, Polynomial(first=2.0, power=-0.5)], ids=["constant", "falling"])
def test_equal_rounds_are_asked_for_once_whatever_their_noise(algorithm, multiplier, asked) -> None:
    """Once for each cohort that planning and running have: everybody, one of each kind, and single parties."""
    example = replace(type(algorithm).example(), algorithm=algorithm, schedules=(Everyone(),), rounds=ROUNDS)
    name = algorithm.releases(PublicFacts.everyone(example.problem, rounds=ROUNDS))[0].name
    asked.clear()
    made = plan_example(example, noise={name: GaussianNoise(multiplier=multiplier)})
    run(made, shards_of(example))
    made.card(1e-5)
    assert asked
    assert set(asked.values()) == {1}


@pytest.mark.parametrize("cls", discover().values(), ids=lambda cls: cls.__name__)
def test_what_is_kept_is_what_the_algorithm_declares(cls) -> None:
    example = cls.example()
    made = plan_example(example, rounds=1 if example.rounds == 1 else max(example.rounds, ROUNDS))
    facts = made.facts
    kept = made.remember(made.algorithm.releases)
    cohorts = [facts.cohort, facts.cohort[:1], facts.cohort[-1:], facts.classes()]
    for cohort in cohorts:
        own = facts.only(cohort)
        told = [made.algorithm.releases(own.at(round_)) for round_ in range(facts.rounds)]
        spread = [declared.releases for declared in kept.over_rounds(own) for _ in range(declared.first, declared.stop)]
        for expected, over, at in zip(told, spread, map(kept, map(own.at, range(facts.rounds))), strict=True):
            # Bounds of unequal parties are arrays.
            assert repr(expected) == repr(over) == repr(at)


def test_a_round_that_is_told_apart_is_asked_for(asked) -> None:
    made = plan_example(RecycledADMM.example(), rounds=6)
    found = [(each.first, each.count, len(each.releases)) for each in stretches(made, 0, made.algorithm.releases)]
    assert found == [(round_, 1, 2 * (round_ % 2 == 0)) for round_ in range(6)]
    assert max(asked.values()) == 6


def test_other_facts_are_other_questions() -> None:
    made = plan_example(replace(ConsensusADMM.example(), algorithm=ConsensusADMM(step=0.5)))
    spec, problem = made, made.problem
    before = largest_bounds(spec, made.algorithm.releases, 0)
    wider = replace(spec, facts=replace(spec.facts, problem=replace(problem, row_bound=2 * problem.row_bound)))
    after = largest_bounds(wider, made.algorithm.releases, 0)
    assert after["residual"] > 1.5 * before["residual"]
    other = largest_bounds(spec, ConsensusADMM(step=1.0).releases, 0)
    assert other["residual"] > 1.5 * before["residual"]


def test_a_declaration_that_reads_the_noise_is_asked_every_time() -> None:
    made = plan_example(ConsensusADMM.example())
    seen = []

    def loud(facts: PublicFacts):
        seen.append(dict(facts.noise))
        return ()

    kept = Declarations(loud)
    kept(made.facts)
    kept(replace(made.facts, noise={"residual": 3.0}))
    assert seen == [made.facts.noise, {"residual": 3.0}]


def test_a_copy_asks_again() -> None:
    made = plan_example(ConsensusADMM.example())
    copy = pickle.loads(pickle.dumps(made))
    assert repr(copy.remember(copy.algorithm.releases)(copy.facts)) == repr(
        made.remember(made.algorithm.releases)(made.facts)
    )
