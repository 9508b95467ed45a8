"""Sums on a graph, for every hub algorithm that can be run so: the star's model, and exact values for every pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from consenso.algorithms.shape import Example, HubAlgorithm
from consenso.errors import ConsensoError
from consenso.planning.plan import Plan
from consenso.privacy.run_spec import Trees
from consenso.schedules import Everyone, PoissonSubset
from consenso.testing.exact_values.cases import Cases, cases_of, plan_of
from consenso.testing.exact_values.compare import Comparison, NotAffineError, compare
from consenso.testing.plans import execute, plan_example, shards_of
from consenso.topology import Topology
from consenso.trust import mode_of, modes

# What is tried: trust, graph, colluders, noise, trees, who is attacked.
CASES: tuple[tuple[str, str, str, str, Trees, int], ...] = (
    ("tree", "path", "1", "falling", "one", 1),
    ("tree", "ring", "0", "rising", "each-round", 3),
    ("masked-sum", "path", "2", "constant", "one", 3),
)

_ON_GRAPH = tuple(name for name, mode in modes().items() if mode.on_graph)


def place_on_graph(example: Example) -> Example | None:
    """The example without its server; None for an algorithm that cannot be run so."""
    schedules = tuple(each for each in example.schedules if isinstance(each, Everyone | PoissonSubset)) or (Everyone(),)
    if not isinstance(example.algorithm, HubAlgorithm) or example.problem.parties < 3:
        return None
    graph = Topology.ring(example.problem.parties)
    placed = replace(example, trusts=_ON_GRAPH, topology=graph, schedules=schedules, variants=())
    try:
        plan_example(placed)
    except ConsensoError:
        return None
    return placed


def sums_need_no_server(example: Example) -> None:
    """Laws 1 and 10 on a graph: the models of the star with the same noise, and no reported value below the exact one.

    A masked sum gives the secure sum's model bit for bit. A plain tree adds whole steps of a grid where a star with
    local noise adds floating-point numbers, so that those agree up to the rounding of sums.
    """
    placed = place_on_graph(example)
    if placed is None:
        return
    shards = shards_of(example)
    for trust, around, limit in (("masked-sum", "secure-sum", 0.0), ("tree", "local", 1e-9)):
        colluders = 1 if mode_of(trust).has_masks else 0
        here, _ = execute(plan_example(placed, trust=trust, schedule=Everyone()), shards)
        star = plan_example(placed, trust=around, schedule=Everyone(), topology=None, colluders=colluders)
        there, _ = execute(star, shards)
        assert np.abs(here - there).max() <= limit, f"{trust}: another model than around a server"
    said = [finding.sentence() for found in plans_of(example) for finding in _find_below(*found)]
    assert not said, "guarantees on a graph are false:\n" + "\n".join(said[:10])


def plans_of(example: Example) -> Iterator[tuple[Plan, int, str]]:
    """Plans on graphs of four nodes whose exact values can be computed, with who is attacked, each in words."""
    cases = _cases(example)
    for trust, graph, colluders, noise, trees, attacked in CASES:
        row = cases.row(trust=trust, graph=graph, colluders=colluders, noise=noise)
        try:
            made = plan_of(cases, row)
        except ConsensoError:
            continue
        made = replace(made, trees=trees)
        yield made, attacked, ", ".join((trust, graph, colluders, noise, trees))


def _cases(example: Example) -> Cases:
    cases = cases_of(replace(example, topology=Topology.ring(example.problem.parties)))
    changed: dict[str, dict[str, Any]] = {
        "trust": {trust: trust for trust in _ON_GRAPH},
        "colluders": {str(count): count for count in range(3)},
        "parties": {"4": 4},
    }
    return replace(cases, choices=dict(cases.choices) | changed)


def _find_below(made: Plan, attacked: int, case: str) -> list[Comparison]:
    try:
        found = compare(made, attacked, case=case)
    except NotAffineError:
        return []
    return [finding for finding in found if finding.below]
