"""Sums along a spanning tree, plain or masked: what a node learns of another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event
from consenso.privacy.theorems.preconditions import require
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption

_ANCHOR = "sums-on-a-graph"
_BOTH = (
    Assumption(
        "Every later contribution of a node is a function of totals, of its own data and of its own coins; a node "
        "without records stays in the tree and adds its noise.",
        _ANCHOR,
    ),
    Assumption("A round is repeated with the same values on the same tree or not at all.", _ANCHOR),
)
_MASKED = (
    Assumption("Masks look uniform: X25519, HKDF-SHA256 and ChaCha20 are as good as they are believed to be.", _ANCHOR),
    Assumption("Whether a peer is away does not depend on data, and every key is its owner's.", _ANCHOR),
)


@dataclass(frozen=True, kw_only=True)
class SumsOnGraph:
    """All sums of a run, composed, each under the noise of the nodes that hide a node from the observer.

    hiding: how many these are where they are fewest, the node itself included.
    """

    citation: ClassVar[str] = "Sums on a graph, composed adaptively (each node hidden among its component)"
    section: ClassVar[str] = _ANCHOR

    released: Event
    hiding: int
    nodes: int
    masked: bool
    adjacency: Adjacency
    unit: Unit

    def __post_init__(self) -> None:
        require(
            1 <= self.hiding <= self.nodes,
            f"SumsOnGraph(hiding={self.hiding}, nodes={self.nodes}): a node is hidden among itself and the others, "
            "from 1 to all of them; count those whose noise is added.",
        )

    def event(self) -> Event:
        """The sums, as the observer sees them."""
        return self.released

    def assumptions(self) -> tuple[Assumption, ...]:
        """What must hold besides the declared bounds."""
        said = f"A node is hidden among at least {self.hiding} of {self.nodes} nodes, itself included."
        return (Assumption(said, _ANCHOR), *_BOTH, *(_MASKED if self.masked else ()), *GAUSSIAN_RUN)
