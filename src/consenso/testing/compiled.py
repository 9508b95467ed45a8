"""The law of compiled rounds: they give the plain round's iterates, with the same noise and the same ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np

from consenso import registry
from consenso.algorithms.shape import CompilesRounds, Example
from consenso.engine.compiled import compile_rounds
from consenso.engine.in_process import InProcessRun
from consenso.errors import InputError, PreconditionError
from consenso.planning.plan import Plan
from consenso.privacy.noise import GaussianNoise
from consenso.problem import Problem
from consenso.schedules import RandomWalk
from consenso.testing.plans import plan_example, shards_of

PARTIES = 7
NOISE = GaussianNoise(multiplier=0.1)


def compiled_rounds_agree(example: Example) -> None:
    """Law 12: with every discovered loss and regularizer that the algorithm accepts; nothing where it compiles none."""
    if not isinstance(example.algorithm, CompilesRounds):
        return
    walks = tuple(each for each in example.schedules if isinstance(each, RandomWalk))
    for problem in _problems(example.problem):
        single = replace(example, problem=problem, noise=NOISE, rounds=2 * PARTIES)
        # Only walks take the regularizer's prox in their compiled rounds.
        for schedule in walks if problem.loss == example.problem.loss else {example.schedules[0], *walks}:
            try:
                made = plan_example(single, schedule=schedule, trust="local")
            except (InputError, PreconditionError):
                continue  # the algorithm does not accept the loss or the regularizer
            _check(made, single)


def _problems(problem: Problem) -> Iterator[Problem]:
    """Parties of one record each, with each loss and with each regularizer."""
    single = replace(problem, sizes=np.ones(PARTIES, dtype=np.int64))
    for loss in make_examples("losses"):
        bound = 3.0 if loss.targets == "real" else None
        yield replace(single, loss=loss, target_bound=bound)
    for regularizer in make_examples("regularizers"):
        yield replace(single, regularizer=regularizer)


def make_examples(family: str) -> Iterator[Any]:
    """One of each kind of a family: its `example()`, or the one without parameters; none where it has neither."""
    for kind in registry.kinds(family).values():
        if hasattr(kind, "example"):
            yield kind.example()
        elif all(each.default is not MISSING or each.default_factory is not MISSING for each in fields(kind)):
            yield kind()


def _check(made: Plan, single: Example) -> None:
    shards, who = shards_of(single), f"{made.facts.problem.loss!r}, {made.facts.problem.regularizer!r}"
    compiled = compile_rounds(made, shards)
    if compiled.walk is None and compiled.cohort is None:
        return
    fast, plain = InProcessRun(made, shards), InProcessRun(made, shards, plain=True)
    for each in (fast, plain):
        for _ in each.rounds():
            pass
    for name in ("hub", "state"):
        for key, value in vars(getattr(plain, name)).items():
            got = getattr(getattr(fast, name), key)
            np.testing.assert_allclose(got, value, rtol=1e-9, atol=1e-10, err_msg=f"{name}.{key}: {who}")
    assert len(fast.entries) == len(plain.entries), f"{who}: compiled rounds leave other entries in the ledger"
    for mine, other in zip(fast.entries, plain.entries, strict=True):
        assert (mine.round, mine.name) == (other.round, other.name), who
        np.testing.assert_array_equal(np.asarray(mine.scale), np.asarray(other.scale), err_msg=who)
