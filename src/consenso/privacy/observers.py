"""Who looks, from whoever reads every message down to whoever is shown the final model.

A guarantee holds for one observer. An observer who sees at least what another sees learns at least as much, so a
guarantee against the first is also one against the second (`sees_at_least`). Observers that cannot be compared (the
server and a party that keeps its own noise) each need their own guarantee.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from consenso.errors import InputError
from consenso.trust import Trust, mode_of


class Observer(ABC):
    """What the rest of the package asks of an observer. A kind is a frozen dataclass with `key`, `name`, `sentence`."""

    #: Whether it reads what parties send, message by message.
    reads_messages: ClassVar[bool] = False

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


@dataclass(frozen=True, kw_only=True)
class Eavesdropper(Observer):
    """Every message of the run, in both directions, and the final model; nobody's own data or noise."""

    reads_messages = True
    key = "eavesdropper"
    name = "who sees every message"
    sentence = "whoever sees every message of the run"


@dataclass(frozen=True, kw_only=True)
class Server(Observer):
    """Everything the hub receives, and all that follows from it; not a party itself."""

    reads_messages = True
    key = "server"
    name = "the server"
    sentence = "whoever runs the server and sees everything that it receives"


@dataclass(frozen=True, kw_only=True)
class Peer(Observer):
    """One party: all that it receives, with its own data, states, noise and coins."""

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


@dataclass(frozen=True, kw_only=True)
class Coalition(Observer):
    """Two or more parties that pool all they receive and all they know of themselves."""

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


@dataclass(frozen=True, kw_only=True)
class Public(Observer):
    """The final model, and nothing else of the run."""

    key = "public"
    name = "readers of the model"
    sentence = "whoever sees only the final model"


_ALONE: dict[str, Observer] = {observer.key: observer for observer in (Eavesdropper(), Server(), Public())}


def parse(key: str) -> Observer:
    """The observer of a key."""
    kind, _, members = key.partition(":")
    if key in _ALONE:
        return _ALONE[key]
    try:
        parties = tuple(int(member) for member in members.split(","))
        observer: Observer = Peer(party=parties[0]) if kind == "peer" else Coalition(parties=parties)
    except ValueError as error:  # not numbers, or numbers that name no observer
        raise _unknown(key) from error
    # Comparing with the key again leaves one spelling per observer: no "peer:03", no "peer:1,2".
    if observer.key != key:
        raise _unknown(key)
    return observer


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


def members(observer: Observer) -> frozenset[int]:
    """The parties whose own data and noise the observer knows."""
    return observer.insiders


def sees_at_least(observer: Observer, other: Observer) -> bool:
    """Whether `observer` sees everything that `other` sees (a partial order)."""
    if isinstance(other, Public) or observer == other:
        return True
    if isinstance(other, Server):
        return isinstance(observer, Eavesdropper)
    # A party knows its own noise, which no eavesdropper does: only a coalition that contains it sees as much.
    return bool(members(other)) and members(other) <= members(observer)


def _join(parties: tuple[int, ...]) -> str:
    *first, last = map(str, parties)
    return f"{', '.join(first)} and {last}"


def _unknown(key: str) -> InputError:
    return InputError(
        f"parse({key!r}): an observer is 'eavesdropper', 'server', 'public', 'peer:3' or 'coalition:1,4'; name one of "
        "these."
    )
