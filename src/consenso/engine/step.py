"""A party's step: the releaser is opened for it, and closed with a check that every declared release was made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from consenso.algorithms.shape import Algorithm
from consenso.arrays import IntArray
from consenso.errors import StepError
from consenso.privacy.release import Release
from consenso.privacy.releaser import PendingSums, Releaser, ReleaseRecord, open_releaser
from consenso.privacy.run_spec import RunSpec, largest_bounds
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.shards import Cohort, Shards

# What rows may do to a step. That it happened is private.
FAILURES = (StepError, ArithmeticError, np.linalg.LinAlgError)


class Recorder(Protocol):
    """Who keeps the ledger of a run."""

    def record(self, entry: ReleaseRecord, *, in_parts: bool) -> None:
        """Keep one use of the releaser; parts of one cost may not exceed the whole."""
        ...


class NoRecorder:
    """For a round that nobody charges, or that its parties have recorded themselves."""

    def record(self, entry: ReleaseRecord, *, in_parts: bool) -> None:
        """Keep nothing."""


@dataclass(frozen=True, eq=False)
class RoundContext:
    """What the steps of one round share."""

    algorithm: Algorithm
    spec: RunSpec
    facts: PublicFacts  # of everyone, at this round
    recorder: Recorder = field(default_factory=NoRecorder)
    pending: PendingSums = field(default_factory=PendingSums)

    @cached_property
    def largest(self) -> dict[str, float]:
        """The largest bound of each release over all parties."""
        return largest_bounds(self.spec, self.algorithm.releases, self.facts.round)

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """What a cohort releases in this round."""
        return self.spec.remember(self.algorithm.releases)(facts)

    def record(self, entries: Iterable[ReleaseRecord], releases: Iterable[Release]) -> None:
        """Hand uses of the releaser to whoever keeps the ledger."""
        in_parts = {release.name: release.parts for release in releases}
        for entry in entries:
            self.recorder.record(entry, in_parts=in_parts[entry.name])


Watch = Callable[[Releaser, tuple[Release, ...]], Releaser]


def take_step(
    context: RoundContext,
    facts: PublicFacts,
    rows: Cohort,
    state: Any,
    *heard: Any,
    draws_as: IntArray | None = None,
    watch: Watch | None = None,
) -> tuple[Any, Any]:
    """One step of a cohort through its releaser: the next states and what they send.

    A party whose rows keep the step from its end answers as one without records: then a StepError says that what it
    heard is to blame. A cohort of several raises one of FAILURES, nothing is recorded, and its parties can be asked in
    smaller cohorts. `draws_as`: under which numbers the parties draw noise. `watch` puts itself between the algorithm
    and its releaser.
    """
    algorithm: Any = context.algorithm
    releases = context.releases(facts)
    drawing = facts if draws_as is None else dataclasses.replace(facts, cohort=draws_as)

    def attempt(rows: Cohort) -> tuple[Any, Any]:
        entries: list[ReleaseRecord] = []
        policy, largest, pending = context.spec.policy, context.largest, context.pending
        releaser, close = open_releaser(
            policy, drawing, releases, largest=largest, pending=pending, record=entries.append
        )
        taken: tuple[Any, Any] = algorithm.local(
            facts, *heard, state, rows, releaser if watch is None else watch(releaser, releases)
        )
        close()
        context.record(entries, releases)
        return taken

    try:
        return attempt(rows)
    except FAILURES:
        if len(facts.cohort) > 1:
            raise
        # Nothing is logged.
        return attempt(make_zero_rows(context.spec.facts.problem, int(facts.cohort[0]), rows.rows))


def make_zero_rows(problem: Problem, party: int, rows: int) -> Cohort:
    """As many rows of zeros: to a loss of a margin they are no records, and states per row keep their length."""
    targets: dict[str, Any] = {"sign": np.ones(rows), "class": np.zeros(rows, dtype=np.int64), "real": np.zeros(rows)}
    empty = sparse.csr_array((rows, problem.features), dtype=np.float64)
    weights = np.zeros(rows) if problem.is_weighted else None
    values = targets[problem.loss.targets]
    return Shards.build(problem, empty, values, [0, rows], parties=[party], weights=weights).cohort([party])
