"""What a network must know of a worker whose neighbours tell each other something in numbered exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from consenso.arrays import Array
from consenso.federation.disk import Disk
from consenso.planning.plan import Plan


class Exchanger(Protocol):
    """A node of a graph: it hears its sources in one exchange after the other, and says something of its own."""

    plan: Plan
    index: int
    disk: Disk
    neighbours: tuple[int, ...]

    @property
    def round(self) -> int:
        """The last round that is over, or in which the node said something; -1 before the first."""
        ...

    @property
    def exchanges(self) -> int:
        """How many exchanges a run has."""
        ...

    @property
    def hears(self) -> int:
        """The exchange that the node waits for."""
        ...

    @property
    def says(self) -> int:
        """The last exchange in which it said something; -1 before the first."""
        ...

    @property
    def sources(self) -> tuple[int, ...]:
        """The neighbours that it must hear in this exchange."""
        ...

    @property
    def ready(self) -> bool:
        """Whether all is here that the exchange needs besides."""
        ...

    @property
    def done(self) -> bool:
        """Whether every exchange is over for this node."""
        ...

    @property
    def wanted(self) -> tuple[str, ...]:
        """Items that everybody must have in the end."""
        ...

    def largest(self) -> int: ...

    def begin(self) -> None: ...

    def get_message(self, number: int, other: int) -> bytes | None:
        """What was said to a neighbour in an exchange; None if that is still to come."""
        ...

    def check(self, number: int, other: int, blob: bytes) -> None:
        """Refuse what a neighbour cannot have said."""
        ...

    def advance(self, heard: Mapping[int, bytes]) -> None:
        """Take in what the sources said, and go on."""
        ...

    def check_item(self, name: str, blob: bytes) -> None: ...

    def owner(self, name: str) -> int: ...

    def item_bytes(self, name: str) -> bytes | None: ...

    def model(self) -> Array: ...

    def end(self) -> None: ...
