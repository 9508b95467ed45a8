"""What a theorem object is: public parameters, checked preconditions, one event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event, Gaussian, compose


@dataclass(frozen=True)
class Assumption:
    """Something that a theorem needs and that its parameters cannot show, with the section that explains it."""

    text: str
    anchor: str


class Theorem(Protocol):
    """A proved bound, for given public parameters.

    Constructing one checks every precondition that its parameters can show and raises PreconditionError otherwise;
    what they cannot show is listed by `assumptions`. `section` is an anchor of docs/privacy.md, where the proof is.
    """

    citation: ClassVar[str]
    section: ClassVar[str]

    @property
    def adjacency(self) -> Adjacency:
        """Which data sets are neighbours."""
        ...

    @property
    def unit(self) -> Unit: ...

    def event(self) -> Event:
        """What one unit went through, as the theorem's observer saw it."""
        ...

    def assumptions(self) -> tuple[Assumption, ...]:
        """What must hold besides the checked preconditions."""
        ...


FRESH_NOISE = Assumption(
    "Every noise draw is independent of the data and of all other draws, and is never shown.", "conventions"
)
PUBLIC_START = Assumption("The starting point does not depend on the data.", "conventions")
PUBLIC_SETTINGS = Assumption(
    "Steps, bounds, noise levels and the number of rounds are fixed from public facts before the run, and the maximum "
    "number of rounds is charged.",
    "conventions",
)
GAUSSIAN_RUN = (FRESH_NOISE, PUBLIC_START, PUBLIC_SETTINGS)


def with_excess(event: Event, excess: float) -> Event:
    """The event when all samplers of the run together miss their laws by `excess` in total variation.

    A Gaussian of a value that does not move costs nothing and carries the number.
    """
    return compose(event, Gaussian(1.0, 0.0, excess)) if excess else event
