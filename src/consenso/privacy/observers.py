"""Who looks, from whoever reads every message down to whoever is shown the final model.

A guarantee holds for one observer. An observer who sees at least what another sees learns at least as much, so a
guarantee against the first is also one against the second (`sees_at_least`). Observers that cannot be compared (the
server and a party that keeps its own noise) each need their own guarantee.

A kind of observer is one class. Another distribution adds its own through the entry points `consenso.observers`: by
what the class answers, guarantees against it are proved, stated on cards, charged to ledgers and attacked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Self

from consenso import registry
from consenso.errors import InputError
from consenso.trust import Trust, mode_of

if TYPE_CHECKING:
    from consenso.privacy.run_spec import RunSpec


class Observer(ABC):
    """What the rest of the package asks of an observer. A kind is a frozen dataclass with `key`, `name`, `sentence`.

    A key starts with the name of the class in small letters; what parties it has follows after a colon.
    """

    #: Whether it reads what parties send, message by message. Whoever does not sees the sums that are opened.
    reads_messages: ClassVar[bool] = False
    #: Its place on cards: who sees most comes first.
    place: ClassVar[int] = 50

    @property
    @abstractmethod
    def key(self) -> str:
        """Stable name, as ledgers and cards keep it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Who it is, in a few words."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """Who it is, and what it sees."""

    @property
    def insiders(self) -> frozenset[int]:
        """The parties whose own data and noise it knows."""
        return frozenset()

    @classmethod
    def read_key(cls, members: str) -> Self:
        """The observer of a key, of which `members` is what follows the colon; ValueError where there is none."""
        return cls()

    @classmethod
    def on_card(cls, run: RunSpec) -> tuple[Observer, ...]:
        """Who of this kind stands on the card of a run."""
        return ()

    def is_covered_by(self, other: Observer) -> bool:
        """Whether another observer is known to see all that this one sees, besides one that is equal to it."""
        return False


@dataclass(frozen=True, kw_only=True)
class Eavesdropper(Observer):
    """Every message of the run, in both directions, and the final model; nobody's own data or noise."""

    reads_messages = True
    place = 0
    key = "eavesdropper"
    name = "who sees every message"
    sentence = "whoever sees every message of the run"

    @classmethod
    def on_card(cls, run: RunSpec) -> tuple[Observer, ...]:
        return (cls(),)


@dataclass(frozen=True, kw_only=True)
class Server(Observer):
    """Everything the hub receives, and all that follows from it; not a party itself."""

    reads_messages = True
    place = 10
    key = "server"
    name = "the server"
    sentence = "whoever runs the server and sees everything that it receives"

    @classmethod
    def on_card(cls, run: RunSpec) -> tuple[Observer, ...]:
        return (cls(),) if run.parties > 1 and run.shape == "hub" and not run.mode.on_graph else ()

    def is_covered_by(self, other: Observer) -> bool:
        return isinstance(other, Eavesdropper)


@dataclass(frozen=True, kw_only=True)
class Peer(Observer):
    """One party: all that it receives, with its own data, states, noise and coins."""

    place: ClassVar[int] = 20
    party: int

    def __post_init__(self) -> None:
        if self.party < 0:
            raise InputError(f"Peer(party={self.party}): parties are counted from 0; name one of them.")

    @property
    def key(self) -> str:
        return f"peer:{self.party}"

    @property
    def name(self) -> str:
        return f"party {self.party}"

    @property
    def insiders(self) -> frozenset[int]:
        return frozenset((self.party,))

    @property
    def sentence(self) -> str:
        return f"party {self.party}, who sees what it is sent and knows its own data and noise"

    @classmethod
    def read_key(cls, members: str) -> Self:
        return cls(party=int(members))

    @classmethod
    def on_card(cls, run: RunSpec) -> tuple[Observer, ...]:
        if run.parties == 1:
            return ()
        return (cls(party=run.tree(0).root if run.mode.on_graph else 0),)

    def is_covered_by(self, other: Observer) -> bool:
        return _contains(other, self.insiders)


@dataclass(frozen=True, kw_only=True)
class Coalition(Observer):
    """Two or more parties that pool all they receive and all they know of themselves."""

    place: ClassVar[int] = 30
    parties: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.parties) < 2:
            raise InputError(
                f"Coalition(parties={self.parties}): a coalition has at least two parties; use Peer(party=...) for one."
            )
        if min(self.parties) < 0 or any(a >= b for a, b in zip(self.parties, self.parties[1:], strict=False)):
            raise InputError(
                f"Coalition(parties={self.parties}): parties are counted from 0, each named once, in increasing order; "
                "sort them."
            )

    @property
    def key(self) -> str:
        return "coalition:" + ",".join(map(str, self.parties))

    @property
    def name(self) -> str:
        return f"parties {_join(self.parties)} together"

    @property
    def insiders(self) -> frozenset[int]:
        return frozenset(self.parties)

    @property
    def sentence(self) -> str:
        return f"parties {_join(self.parties)} together, who pool what they are sent and their own data and noise"

    @classmethod
    def read_key(cls, members: str) -> Self:
        return cls(parties=tuple(int(member) for member in members.split(",")))

    def is_covered_by(self, other: Observer) -> bool:
        return _contains(other, self.insiders)


@dataclass(frozen=True, kw_only=True)
class Public(Observer):
    """The final model, and nothing else of the run."""

    place = 100
    key = "public"
    name = "readers of the model"
    sentence = "whoever sees only the final model"

    @classmethod
    def on_card(cls, run: RunSpec) -> tuple[Observer, ...]:
        return (cls(),)

    def is_covered_by(self, other: Observer) -> bool:
        return True


@lru_cache(maxsize=1000)
def parse(key: str) -> Observer:
    """The observer of a key."""
    name, _, members = key.partition(":")
    kind = registry.short_names("observers").get(name)
    try:
        observer: Observer | None = None if kind is None else kind.read_key(members)
    except ValueError:  # not numbers, or numbers that name no observer
        observer = None
    # Comparing with the key again leaves one spelling per observer: no "peer:03", no "public:1".
    if observer is None or observer.key != key:
        raise InputError(
            f"parse({key!r}): an observer is one of {', '.join(list_names())}, where party 3 is 'peer:3' and a "
            "coalition 'coalition:1,4'; name one of these."
        )
    return observer


def list_names() -> tuple[str, ...]:
    """What keys of observers start with, in the order of cards."""
    known = registry.short_names("observers")
    return tuple(sorted(known, key=lambda name: known[name].place))


def list_observers(run: RunSpec) -> tuple[Observer, ...]:
    """Who stands on the card of a run, those first who see most."""
    found = [observer for kind in registry.kinds("observers").values() for observer in kind.on_card(run)]
    return tuple(sorted(found, key=lambda observer: observer.place))


def choose_trust(parties: int) -> Trust:
    """Who is trusted where nothing is said: one party is the curator of its own table, several trust nobody."""
    return "curator" if parties == 1 else "local"


def choose_observer(trust: Trust) -> Observer:
    """Whom a target is for where nothing is said: whoever is not trusted and sees the most.

    Under local trust and on a graph that is whoever reads every message, under a secure sum the server. A trusted
    curator leaves those to whom it shows the model.
    """
    mode = mode_of(trust)
    if mode.noise_at_hub:
        return Public()
    return Server() if mode.has_secure_sum else Eavesdropper()


def sees_at_least(observer: Observer, other: Observer) -> bool:
    """Whether `observer` sees everything that `other` sees (a partial order)."""
    return observer == other or other.is_covered_by(observer)


def _contains(observer: Observer, parties: frozenset[int]) -> bool:
    """Whether parties are among those of a coalition, which alone knows their noise: no eavesdropper does."""
    return isinstance(observer, Peer | Coalition) and parties <= observer.insiders


def _join(parties: tuple[int, ...]) -> str:
    *first, last = map(str, parties)
    return f"{', '.join(first)} and {last}"
