"""Plain adaptive composition: the floor for whoever sees every release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from consenso.conventions import Unit
from consenso.privacy.events import Adjacency, Event
from consenso.privacy.theorems.preconditions import require
from consenso.privacy.theorems.theorem import GAUSSIAN_RUN, Assumption


@dataclass(frozen=True, kw_only=True)
class Composition:
    """All declared releases, composed adaptively, for an observer who may see each of them.

    `why` says in one sentence what bounds the releases; it is shown beside the guarantee.
    """

    citation: ClassVar[str] = "Adaptive composition (Dwork, Rothblum and Vadhan 2010; Mironov 2017)"
    section: ClassVar[str] = "plain-composition"

    released: Event
    why: str
    adjacency: Adjacency
    unit: Unit

    def __post_init__(self) -> None:
        require(
            bool(self.why.strip()),
            "Composition(why=''): the reason why the releases are bounded must be stated; give it in one sentence.",
        )

    def event(self) -> Event:
        """The declared releases themselves."""
        return self.released

    def assumptions(self) -> tuple[Assumption, ...]:
        """What must hold besides the declared bounds."""
        declared = Assumption(
            "Nothing that depends on the data leaves except through the declared releases.", "plain-composition"
        )
        people = (Assumption("All records of a person have one id, and one party holds them.", "people"),)
        return (
            declared,
            Assumption(self.why, "plain-composition"),
            *GAUSSIAN_RUN,
            *(people if self.unit == "person" else ()),
        )
