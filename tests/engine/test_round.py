"""The round, written once: what it does where rows or the schedule are out of the ordinary."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.engine.failing import make_tables, plan_failing

from consenso.algorithms.consensus import ConsensusADMM, Down
from consenso.engine.step import take_step
from consenso.errors import StepError
from consenso.shards import Shards
from consenso.testing.plans import execute, plan_example
from consenso.testing.worlds import draw


def make_worlds(made, party: int):
    """Everybody without records, and the same with the rows of one party."""
    tied, empty = make_tables(made)
    one = [tied[index] if index == party else table for index, table in enumerate(empty)]
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


def test_numpy_warns_of_nothing_that_rows_do_to_a_step() -> None:
    """A warning that one record sets off would tell of it."""

    class Overflowing(ConsensusADMM):
        def local(self, facts, down, state, f, release):
            assert np.isinf(f.squared_norms.max() * np.float64(1e308) * 10)
            return super().local(facts, down, state, f, release)

    example = ConsensusADMM.example()
    made = replace(plan_example(example), algorithm=Overflowing(step=example.algorithm.step))
    shards = Shards.from_parties(made.problem, draw(made.problem, np.random.default_rng(0)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        execute(made, shards)
