"""Trust: who adds the noise of a sum, and which way sums travel. One class for each mode.

| mode | noise is added by | sums travel |
| --- | --- | --- |
| local | each party, to what it sends | to a hub, or to neighbours |
| secure-sum | each party, a share of it | to a hub that can read sums only |
| curator | the hub | to the hub |
| tree | each party, all of it | along a tree of peers |
| masked-sum | each party, a share of it | along a tree of peers, under masks |

Releasers, guarantees, engines, cards and studies ask a mode what it does and never compare its name. A mode that
combines what is here (an enclave that adds the noise of a hub, say) is one class, here or in a module that another
distribution names in the entry point `consenso.trusts`. A new way to add noise or to sum also needs its guarantee
(`privacy.composition`) and its protocol (`federation`, `secure_sum`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal, TypeAlias

from consenso import registry
from consenso.errors import InputError

# The name of a mode, as plans, studies and cards write it.
Trust: TypeAlias = str


class TrustMode:
    """What a mode does, and the words for it. Subclasses are frozen dataclasses without fields."""

    alias: ClassVar[str]
    noise_by: ClassVar[Literal["party", "share", "hub"]]
    on_graph: ClassVar[bool] = False
    #: In which settings of a study it can be chosen.
    settings: ClassVar[tuple[str, ...]]
    #: What the public registry of deployments calls it.
    model_name: ClassVar[Literal["Central", "Federated", "Local"]]
    #: Who is trusted with what: a clause for pages, a sentence for cards.
    clause: ClassVar[str]
    sentence: ClassVar[str]
    #: Why the guarantees of pairs of peers are as they are; empty where there are no such pairs.
    pairs: ClassVar[str] = ""

    # What follows from these, stated once.
    #: The hub is trusted with exact sums and adds the noise.
    noise_at_hub: ClassVar[bool]
    #: Every message carries all the noise that it needs.
    noise_on_messages: ClassVar[bool]
    #: A hub reads nothing but sums.
    has_secure_sum: ClassVar[bool]
    #: Sums of branches are read on their way along the tree.
    has_open_tree: ClassVar[bool]
    #: Sums along the tree are hidden by masks.
    has_masks: ClassVar[bool]
    #: Everybody adds noise, silent parties too, and sums are of whole numbers of steps of a grid.
    sums_in_steps: ClassVar[bool]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own, share = cls.noise_by == "party", cls.noise_by == "share"
        cls.noise_at_hub = cls.noise_by == "hub"
        cls.noise_on_messages, cls.has_open_tree = own and not cls.on_graph, own and cls.on_graph
        cls.has_secure_sum, cls.has_masks = share and not cls.on_graph, share and cls.on_graph
        cls.sums_in_steps = share or cls.on_graph


@dataclass(frozen=True)
class LocalTrust(TrustMode):
    """Every party adds noise to what it sends."""

    alias = "local"
    noise_by = "party"
    settings = ("federated", "decentralized")
    model_name = "Local"
    clause = "every party adds noise to what it sends"
    sentence = "Nobody is trusted: every party adds noise to what it sends."
    pairs = "No credit is proved for distance in gossip: a pair pays for every message of its node."


@dataclass(frozen=True)
class SecureSumTrust(TrustMode):
    """Parties add shares of the noise; a hub reads sums only."""

    alias = "secure-sum"
    noise_by = "share"
    settings = ("federated",)
    model_name = "Federated"
    clause = "only sums of what the parties send can be read, and each party adds a share of the noise"
    sentence = "Only sums of what the parties send can be read; each party adds a share of the noise."


@dataclass(frozen=True)
class CuratorTrust(TrustMode):
    """Whoever sees the sums adds the noise."""

    alias = "curator"
    noise_by = "hub"
    settings = ("central", "federated")
    model_name = "Central"
    clause = "whoever adds up the parties' values is trusted and adds the noise"
    sentence = "Whoever adds up the parties' values is trusted with the records and adds the noise."


@dataclass(frozen=True)
class TreeTrust(TrustMode):
    """Without a server: each party adds its noise along a tree."""

    alias = "tree"
    noise_by = "party"
    on_graph = True
    settings = ("decentralized",)
    model_name = "Local"
    clause = "no server: sums go along a tree of peers, each of whom adds its own noise"
    sentence = "There is no server: sums go along a tree of peers, each of whom adds its own noise."
    pairs = "A node is hidden among its branch of the tree: the guarantee for a pair is tight."


@dataclass(frozen=True)
class MaskedSumTrust(TrustMode):
    """Without a server: parties add shares of the noise, under masks along a tree."""

    alias = "masked-sum"
    noise_by = "share"
    on_graph = True
    settings = ("decentralized",)
    model_name = "Federated"
    clause = "no server: masked sums go along a tree of peers, each of whom adds a share of the noise"
    sentence = "There is no server: masked sums go along a tree of peers, each of whom adds a share of the noise."
    pairs = "Masks hide everything but the total, so all pairs are alike."


# Those of the package, in the order in which pages list them.
_OWN: dict[Trust, TrustMode] = {
    mode.alias: mode for mode in (LocalTrust(), SecureSumTrust(), CuratorTrust(), MaskedSumTrust(), TreeTrust())
}


@cache
def modes() -> dict[Trust, TrustMode]:
    """Every mode by its name; those of other distributions come last."""
    return _OWN | {name: kind() for name, kind in registry.short_names("trusts").items() if name not in _OWN}


def mode_of(trust: Trust) -> TrustMode:
    """The mode of a name; InputError where there is none."""
    # Other distributions are looked at only for a name that is not ours: reading their entry points takes a while.
    found = _OWN.get(trust) or modes().get(trust)
    if found is None:
        raise InputError(f"trust={trust!r}: there is no such mode; {registry.nearest(trust, modes())}.")
    return found


def without_graph(trust: Trust) -> Trust:
    """The mode of a hub in which a sum carries the same noise."""
    own = mode_of(trust)
    alike = (name for name, each in modes().items() if each.noise_by == own.noise_by and not each.on_graph)
    return next(alike) if own.on_graph else trust
