"""The round, written once: what it does where rows or the schedule are out of the ordinary."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms.consensus import ConsensusADMM, Down
from consenso.engine.step import take_step
from consenso.errors import StepError
from consenso.schedules import Everyone
from consenso.shards import Shards
from consenso.testing.plans import execute, plan_example
from consenso.testing.worlds import draw


def plan_failing():
    """No solver certifies a distance below rounding, unless there is nothing to solve."""
    example = ConsensusADMM.example()
    algorithm = replace(example.algorithm, tolerance=1e-18)
    return plan_example(replace(example, algorithm=algorithm, schedules=(Everyone(),), rounds=1), trust="local")


def make_worlds(made, party: int):
    """Everybody without records, and the same with the rows of one party."""
    data = draw(made.problem, np.random.default_rng(0))
    empty = [(np.zeros_like(rows), targets) for rows, targets in data]
    one = [data[index] if index == party else table for index, table in enumerate(empty)]
    return (Shards.from_parties(made.problem, tables) for tables in (empty, one))


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("party", [0, 2])
def test_a_step_that_rows_keep_from_its_end_is_answered_like_one_without_records(party: int, one_by_one: bool) -> None:
    """In one process as in a deployment; and nobody beside it, in the same cohort, takes another step."""
    made = plan_failing()
    without, with_rows = make_worlds(made, party)
    expected, told = execute(made, without, one_by_one=one_by_one)
    model, progress = execute(made, with_rows, one_by_one=one_by_one)
    np.testing.assert_allclose(model, expected, rtol=1e-12, atol=1e-15)
    parties = np.concatenate([entry.cohort for entry in progress.entries])
    assert sorted(parties) == list(range(made.parties))  # each is charged once
    assert {float(np.max(entry.scale)) for entry in progress.entries} == {
        float(np.max(entry.scale)) for entry in told.entries
    }


def test_a_cohort_that_fails_records_nothing() -> None:
    made = plan_failing()
    _, shards = make_worlds(made, 1)
    entries = []
    state = made.algorithm.enroll(made.facts, shards.cohort())
    with pytest.raises(StepError):
        take_step(made, made.facts, shards.cohort(), state, Down(z=np.zeros(made.problem.dim)), record=entries.append)
    assert not entries
