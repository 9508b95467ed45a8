"""A party's step: the releaser is opened for it, and closed with a check that every declared release was made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from consenso.arrays import IntArray
from consenso.errors import StepError
from consenso.planning.plan import Plan
from consenso.privacy.release import Release
from consenso.privacy.releaser import Record, Releaser, ReleaseRecord, open_releaser
from consenso.privacy.run_spec import largest_bounds
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.shards import Cohort, Shards

# What rows may do to a step. That it happened is private.
FAILURES = (StepError, ArithmeticError, np.linalg.LinAlgError)


def forget(entry: ReleaseRecord) -> None:
    """For a step that nobody charges, or that its parties have recorded themselves."""


Watch = Callable[[Releaser, tuple[Release, ...]], Releaser]


def take_step(
    plan: Plan,
    facts: PublicFacts,
    rows: Cohort,
    state: Any,
    *heard: Any,
    record: Record = forget,
    draws_as: IntArray | None = None,
    watch: Watch | None = None,
) -> tuple[Any, Any]:
    """One step of a cohort through its releaser: the next states and what they send.

    A party whose rows keep the step from its end answers as one without records: then a StepError says that what it
    heard is to blame. A cohort of several raises one of FAILURES, nothing is recorded, and its parties can be asked in
    smaller cohorts. `draws_as`: under which numbers the parties draw noise. `watch` puts itself between the algorithm
    and its releaser.
    """
    declaration = plan.algorithm.releases
    releases, largest = plan.remember(declaration)(facts), largest_bounds(plan, declaration, facts.round)
    drawing = facts if draws_as is None else dataclasses.replace(facts, cohort=draws_as)

    def attempt(rows: Cohort) -> tuple[Any, Any]:
        entries: list[ReleaseRecord] = []
        releaser, close = open_releaser(plan, drawing, releases, largest=largest, record=entries.append)
        seen = releaser if watch is None else watch(releaser, releases)
        with np.errstate(all="ignore"):  # what NumPy warns of would tell of rows
            taken: tuple[Any, Any] = plan.algorithm.local(facts, *heard, state, rows, seen)
        close()
        for entry in entries:
            record(entry)
        return taken

    try:
        return attempt(rows)
    except FAILURES:
        if len(facts.cohort) > 1:
            raise
        # Nothing is logged.
        return attempt(make_zero_rows(plan.problem, int(facts.cohort[0]), rows.rows))


def make_zero_rows(problem: Problem, party: int, rows: int) -> Cohort:
    """As many rows of zeros: to a loss of a margin they are no records, and states per row keep their length."""
    targets: dict[str, Any] = {"sign": np.ones(rows), "class": np.zeros(rows, dtype=np.int64), "real": np.zeros(rows)}
    empty = sparse.csr_array((rows, problem.features), dtype=np.float64)
    weights = np.zeros(rows) if problem.is_weighted else None
    values = targets[problem.loss.targets]
    return Shards.build(problem, empty, values, [0, rows], parties=[party], weights=weights).cohort([party])
