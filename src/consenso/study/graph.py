"""The graph of a study: a generator with its numbers, or a list of edges between parties."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from consenso.errors import ConsensoError, InputError
from consenso.study.keys import Keys, is_number
from consenso.topology import Topology

KINDS = {
    "ring": Topology.ring,
    "path": Topology.path,
    "star": Topology.star,
    "complete": Topology.complete,
    "grid": Topology.grid,
    "torus": Topology.torus,
    "random-regular": Topology.random_regular,
    "erdos-renyi": Topology.erdos_renyi,
    "small-world": Topology.small_world,
}
DEFAULTS = {"seed": 0}
MOST_COMPLETE = 3000


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A graph that is drawn once the parties are known."""

    kind: str | None
    numbers: tuple[tuple[str, float], ...] = ()
    edges: tuple[tuple[str, str], ...] = ()

    def build(self, names: tuple[str, ...]) -> Topology:
        """The graph on the named parties; InputError without the name of the key."""
        if self.kind is None:
            return Topology.from_edges(len(names), [(_place(a, names), _place(b, names)) for a, b in self.edges])
        maker: Any = KINDS[self.kind]
        given: dict[str, Any] = dict(self.numbers)
        if self.kind in ("grid", "torus") and given["rows"] * given["columns"] != len(names):
            raise InputError(
                f"a {self.kind} of {given['rows']} by {given['columns']} has another number of nodes than the "
                f"{len(names)} parties; make both agree"
            )
        if self.kind == "complete" and len(names) > MOST_COMPLETE:
            raise InputError(f"a complete graph has at most {MOST_COMPLETE} parties; choose random-regular")
        if "parties" in inspect.signature(maker).parameters:
            given["parties"] = len(names)
        try:
            made: Topology = maker(**given)
        except (ArithmeticError, TypeError, MemoryError):
            raise InputError("no graph can be drawn with these numbers; choose smaller ones") from None
        if made.parties != len(names):
            raise InputError(f"the graph has {made.parties} nodes and the study {len(names)} parties; make both agree")
        return made


def read_graph(keys: Keys) -> Graph | None:
    """The graph of the key `topology`: a name, or a table with a kind or with edges."""
    value = keys.raw("topology")
    if value is None:
        return None
    inner = Keys({"kind": value}, keys.key("topology"), keys.faults) if isinstance(value, str) else None
    inner = inner or keys.inner("topology")
    if inner is None:
        return None
    if "edges" in inner:
        edges = _edges(inner)
        inner.finish()
        return edges
    kind = inner.text("kind", choices=KINDS)
    if kind is None:
        if "kind" not in inner:
            inner.wrong("kind", f"name a graph, one of {', '.join(KINDS)}, or list its edges")
        return None
    numbers = {}
    maker: Any = KINDS[kind]
    for name in inspect.signature(maker).parameters:
        if name == "parties":
            continue
        number = inner.raw(name, DEFAULTS.get(name))
        whole = isinstance(number, int) and not isinstance(number, bool)
        if not (whole or (name in ("mean_degree", "rewiring") and is_number(number))):
            inner.wrong(name, f"a graph of kind {kind!r} needs the number {name}; add {name} = ...")
            continue
        numbers[name] = number
    inner.finish()
    return Graph(kind=kind, numbers=tuple(sorted(numbers.items())))


def check_graph(keys: Keys, graph: Graph, names: tuple[str, ...]) -> Topology | None:
    """The topology, or None with a fault."""
    try:
        return graph.build(names)
    except ConsensoError as error:
        keys.wrong("topology", str(error).rstrip("."))
        return None


def _edges(inner: Keys) -> Graph | None:
    value = inner.raw("edges")
    pairs = isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    if not pairs or not all(isinstance(end, str | int) and not isinstance(end, bool) for pair in value for end in pair):
        inner.wrong(
            "edges", "a list of pairs of parties is needed, by name or by number from 0; write [[0, 1], [1, 2]]"
        )
        return None
    return Graph(kind=None, edges=tuple(sorted((str(first), str(second)) for first, second in value)))


def _place(party: str, names: tuple[str, ...]) -> int:
    if party in names:
        return names.index(party)
    if party.isdecimal() and int(party) < len(names):
        return int(party)
    raise InputError(f"{party!r} is no party of this study; name one of them, or number it from 0")
