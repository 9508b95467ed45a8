"""Law 3: nothing but the releases depends on the data."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from consenso.algorithms.shape import Example
from consenso.planning.plan import Plan
from consenso.privacy.releaser import SumTerm
from consenso.shards import Shards
from consenso.testing.plans import (
    ADJACENCIES,
    UNITS,
    execute,
    plan_with_noise_scaled,
    settings_of,
    shards_of,
    silent,
)
from consenso.testing.worlds import Pair, pairs


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=logging.DEBUG)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


def transcript(made: Plan, shards: Shards) -> list[bytes]:
    """Everything that leaves when every release is answered with noise alone: messages, hub, model, ledger, log."""
    seen: list[bytes] = []

    def watch(round_: int, message: Any, hub: Any) -> None:
        for record in (message, hub):
            if record is not None:
                seen.extend(np.asarray(getattr(record, each.name)).tobytes() for each in dataclasses.fields(record))

    blind = replace(made, probe=silent)
    listener, logger = _Listener(), logging.getLogger("consenso")
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)
    try:
        model, progress = execute(blind, shards, watch=watch)
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
    seen.append(model.tobytes())
    seen += [repr((e.round, e.name, np.asarray(e.scale).tolist(), e.bound, e.share)).encode() for e in progress.entries]
    return seen + [line.encode() for line in listener.heard]


def non_interference(example: Example, *, draws: int = 1, one_in: int = 1, first: int = 0) -> None:
    """Law 3: with every release answered by noise alone, nothing that leaves tells neighbouring data sets apart.

    one_in: of so many units and adjacencies one is looked at, beginning with number `first`.
    """
    for number, made in enumerate(settings_of(example), start=first):
        # A branch on a private value shows only where it goes both ways: answers of different sizes lead there.
        sizes = [plan_with_noise_scaled(made, factor) for factor in (1.0, 0.1, 0.01)]
        for place, neighbours in enumerate(_all_pairs(example, draws)):
            if place % one_in == first:
                _compare(sizes[(place + number) % len(sizes)], neighbours)


def _compare(made: Plan, neighbours: Iterable[Pair]) -> None:
    start, one = None, []
    for pair in neighbours:
        if pair.one is not start:  # pairs that begin with one data set share its transcript
            start, one = pair.one, transcript(made, pair.one)
        other = transcript(made, pair.other)
        assert one == other, f"something besides the releases depends on the data ({pair.what})"


def messages_are_releases(example: Example) -> None:
    """Law 3, for sums: where all noise is on sums, nothing but terms of sums is sent.

    A plain field would pass non-interference and still tell something, for instance how many were sampled.
    """
    for made in settings_of(example):
        algorithm = made.algorithm
        declared = [r for round_ in range(made.rounds) for r in algorithm.releases(made.facts.at(round_))]
        if made.shape == "peer" or made.mode.noise_on_messages or any(r.at == "party" for r in declared):
            continue
        execute(replace(made, algorithm=_spy_on(algorithm)), shards_of(example))


def _spy_on(algorithm: Any) -> Any:
    """The same algorithm, whose messages are looked at."""
    kind = type(algorithm)

    def local(self: Any, *arguments: Any) -> Any:
        state, up = kind.local(self, *arguments)
        for each in dataclasses.fields(up):
            assert isinstance(getattr(up, each.name), SumTerm), f"field {each.name!r} of a message is not a release"
        return state, up

    spy: Any = object.__new__(type(kind.__name__, (kind,), {"local": local}))
    spy.__dict__.update(algorithm.__dict__)
    return spy


def _all_pairs(example: Example, draws: int) -> Iterator[Iterator[Pair]]:
    for unit in UNITS:
        for adjacency in ADJACENCIES:
            problem = replace(example.problem, unit=unit, adjacency=adjacency)
            for seed in range(draws):
                yield pairs(problem, unit, adjacency, np.random.default_rng(seed))
