"""Which engine runs which plan, and why the others do not: asked before anything starts, and told in the docs.

An engine is a module with `ENGINE`, in this package or named by another distribution in an entry point of the group
`consenso.engines`. Such a module adds its commands too, with a function `register(app)` as the modules of
`consenso.cli` have. It takes the rounds of `federation.hub.HubRun` through a `Conversation` of its own, at the other
end of which `federation.party.Party` answers.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from consenso.deployment.sum_protocols import Parts, parts_of
from consenso.errors import ConsensoError
from consenso.federation.hub import check_star
from consenso.federation.node import Node, check_graph
from consenso.federation.signatures import Signatures
from consenso.federation.walker import Walker, check_walk
from consenso.planning.plan import Plan
from consenso.registry import load_entries
from consenso.schedules import RandomWalk
from consenso.secure_sum.tree_peer import TreePeer, check_tree


def server_parts(plan: Plan, signatures: Signatures | None = None) -> Parts:
    """How a server and its clients sum; refuses what they cannot run, be it over Zenoh or over Flower."""
    check_star(plan)
    return parts_of(plan, signatures)


def peer_kind(plan: Plan) -> type[Node] | type[Walker] | type[TreePeer]:
    """What a peer is in this run: a neighbour, a stop of a walk, or a node of sums; refuses what peers cannot run."""
    if plan.mode.on_graph:
        check_tree(plan)
        return TreePeer
    if isinstance(plan.schedule, RandomWalk):
        check_walk(plan)
        return Walker
    check_graph(plan)
    return Node


@dataclass(frozen=True)
class RemoteEngine:
    """A way to run a plan as separate programs."""

    commands: str  # those that start it
    check: Callable[[Plan], object]  # refuses what it cannot run, with a sentence that says why


def list_engines() -> list[RemoteEngine]:
    """Every engine, our own first. In one process (`consenso train`) everything runs."""
    import consenso.deployment as here

    inner = [importlib.import_module(f"{here.__name__}.{each.name}") for each in pkgutil.iter_modules(here.__path__)]
    own = [module.ENGINE for module in inner if hasattr(module, "ENGINE")]
    return sorted(own, key=lambda engine: engine.commands, reverse=True) + [
        module.ENGINE for _, module in load_entries("engines")
    ]


def refusal(engine: RemoteEngine, plan: Plan) -> str | None:
    """Why an engine does not run a plan; None where it does."""
    try:
        engine.check(plan)
    except ConsensoError as refused:
        return str(refused)
    return None


def table(plans: Iterable[Plan]) -> str:
    """A table in Markdown of what each engine runs, with the reasons where it does not as numbered notes.

    Plans of one algorithm and schedule that differ in their trust only share a line where engines treat them alike.
    """
    engines = list_engines()
    notes: dict[str, int] = {}
    lines: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for plan in plans:
        cells = []
        for engine in engines:
            reason = refusal(engine, plan)
            if reason is not None:
                reason = reason.partition(": ")[2]
                notes.setdefault(reason, len(notes) + 1)
            cells.append("yes" if reason is None else f"no ({notes[reason]})")
        name, schedule = type(plan.algorithm).__name__, type(plan.schedule).__name__
        lines.setdefault((name, schedule, tuple(cells)), []).append(plan.trust)
    rows = [
        f"| {name} | {schedule} | {', '.join(trusts)} | {' | '.join(cells)} |"
        for (name, schedule, cells), trusts in lines.items()
    ]
    head = ["algorithm", "schedule", "trust", *(engine.commands for engine in engines)]
    reasons = [f"{number}. {reason}" for reason, number in notes.items()]
    return "\n".join([_row(head), _row(["---"] * len(head)), *rows, "", *reasons])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
