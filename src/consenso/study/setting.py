"""The [setting] section: who holds the data, who is trusted, which algorithm, how often, who talks to whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from consenso.algorithms.shape import PeerAlgorithm
from consenso.errors import InputError
from consenso.privacy.run_spec import Trees
from consenso.problem import Weighting
from consenso.schedules import Cyclic, RandomOrder, RandomStopping, RandomWalk, Schedule
from consenso.study.from_table import build, spell
from consenso.study.graph import Graph, read_graph
from consenso.study.keys import MOST, Keys, is_number
from consenso.trust import Trust, mode_of, modes

Kind = Literal["central", "federated", "decentralized"]
SplitKind = Literal["equal", "one-per-record", "column", "dirichlet", "sizes"]

MOST_PARTIES, MOST_ROUNDS = 10_000_000, 100_000_000
SPLITS = ("equal", "one-per-record", "column", "dirichlet", "sizes")


@dataclass(frozen=True, kw_only=True)
class SplitSection:
    """How one table is dealt to parties, for a simulation.

    equal: sizes that differ by one at most, at random where a seed is given. one-per-record: every record is a party.
    column: by the user column of the schema or of the set. dirichlet: label skew, for sets of the catalogue. sizes:
    consecutive records. size: for a column, the most records that a party may have.
    """

    kind: SplitKind
    parties: int | None = None
    sizes: tuple[int, ...] = ()
    size: int | None = None
    seed: int | None = None
    concentration: float | None = None


@dataclass(frozen=True, kw_only=True)
class SettingSection:
    """Where the data are and how they are learnt from; "auto" is chosen by public rules."""

    kind: Kind
    trust: Trust
    algorithm: Any | None  # None is "auto"
    rounds: int | None  # None is "auto"
    schedule: Schedule | None
    parties: tuple[tuple[str, int], ...]
    split: SplitSection | None
    topology: Graph | None
    colluders: int
    weighting: Weighting
    equal: Literal["epsilon", "noise"]
    trees: Trees
    masks: Literal["added", "graph"]  # edges of the mask graph: with added ones, or the graph's own only


def read_setting(keys: Keys) -> SettingSection | None:
    """The section, or None where too much of it is wrong to go on."""
    before = len(keys.faults.sentences)
    kind = keys.text("kind", choices=("central", "federated", "decentralized"))
    if "kind" not in keys:
        keys.wrong("kind", "say who holds the data: central, federated or decentralized")
    algorithm, schedule, parties, split = _algorithm(keys), _schedule(keys), _parties(keys), _split(keys)
    many = len(parties) or (split.parties if split is not None else None) or MOST_PARTIES
    trust = keys.text("trust", _usual_trust(kind, algorithm, schedule, many), choices=modes())
    # In a masked sum a peer that looks is a member of its own coalition.
    alone = 1 if trust is not None and mode_of(trust).has_masks else 0
    section = SettingSection(
        kind=kind or "central",  # type: ignore[arg-type]
        trust=trust or "local",
        algorithm=algorithm,
        rounds=_rounds(keys),
        schedule=schedule,
        parties=parties,
        split=split,
        topology=read_graph(keys),
        colluders=keys.whole("colluders", alone, least=alone, what="how many parties may collude") or 0,
        weighting=keys.text("weighting", "record", choices=("record", "party")) or "record",  # type: ignore[arg-type]
        equal=keys.text("equal", "epsilon", choices=("epsilon", "noise")) or "epsilon",  # type: ignore[arg-type]
        trees=keys.text("trees", "one", choices=get_args(Trees)) or "one",  # type: ignore[arg-type]
        masks=keys.text("masks", "added", choices=("added", "graph")) or "added",  # type: ignore[arg-type]
    )
    keys.finish()
    if kind is not None:
        _check(keys, section)
    return section if len(keys.faults.sentences) == before else None


def _usual_trust(kind: str | None, algorithm: Any | None, schedule: Schedule | None, many: int) -> str:
    """Who is trusted where nothing is said: peers that can sum do so under masks, which takes three of them."""
    if kind != "decentralized":
        return "curator" if kind == "central" else "local"
    gossips = isinstance(algorithm, PeerAlgorithm) or isinstance(schedule, RandomWalk) or many < 3
    return "local" if gossips else "masked-sum"


def _check(keys: Keys, section: SettingSection) -> None:
    mode = mode_of(section.trust)
    _check_shape(keys, section)
    if section.kind == "central":
        for name in ("split", "parties", "topology", "schedule"):
            if name in keys:
                keys.wrong(name, 'a central setting has one table and one holder; remove it, or set kind = "federated"')
        if "central" not in mode.settings:
            keys.wrong("trust", 'whoever holds the one table is its curator; write trust = "curator"')
        return
    if ("parties" in keys) == ("split" in keys):
        keys.wrong(
            "split",
            "name the real parties with their public sizes in [setting.parties], or deal one table in "
            '[setting.split] such as kind = "equal", parties = 20; one of the two',
        )
    if section.kind == "decentralized":
        if "decentralized" not in mode.settings:
            keys.wrong("trust", 'peers have no server; write trust = "masked-sum", "tree" or "local"')
        if section.topology is None and not isinstance(section.schedule, RandomWalk) and "topology" not in keys:
            keys.wrong("topology", 'peers talk along a graph; write topology = "ring", or a table with edges')
    if section.kind != "decentralized" and mode.on_graph:
        keys.wrong("trust", 'sums without a server go along a graph of peers; set kind = "decentralized"')
    for name in ("trees", "masks"):
        if name in keys and not (mode.has_masks or (mode.on_graph and name == "trees")):
            keys.wrong(name, 'it is for sums along a graph; set trust = "masked-sum", or remove it')
    if section.kind == "federated" and section.topology is not None:
        keys.wrong("topology", 'a federation is a star around its server; remove it, or set kind = "decentralized"')
    if section.colluders and not mode.sums_in_steps:
        keys.wrong("colluders", 'only sums share their noise among parties; set trust = "secure-sum" or "masked-sum"')


def _check_shape(keys: Keys, section: SettingSection) -> None:
    """Whether the algorithm, the schedule and who is there fit each other."""
    walks = isinstance(section.schedule, RandomWalk)
    ordered = isinstance(section.schedule, Cyclic | RandomOrder | RandomStopping)
    if section.algorithm is None:
        if walks or ordered:
            keys.wrong("algorithm", _WALKERS)
        return
    name = type(section.algorithm).__name__
    if isinstance(section.algorithm, PeerAlgorithm):
        if section.kind != "decentralized":
            keys.wrong("algorithm", f'{name} runs on a graph of peers; set kind = "decentralized", or take another')
        elif mode_of(section.trust).on_graph:
            keys.wrong("algorithm", f'{name} tells neighbours single values, not sums; set trust = "local"')
    elif section.kind == "decentralized" and not walks and not mode_of(section.trust).on_graph:
        keys.wrong(
            "algorithm",
            f'{name} has a hub; peers have none, but can sum: set trust = "masked-sum" or "tree", or schedule = '
            '"random-walk" for a token',
        )


_WALKERS = (
    'where one party acts at a time, name the algorithm: "stateless walk" or "000-4" for a walk, "001-1" for an order'
)


def _algorithm(keys: Keys) -> Any | None:
    from consenso.algorithms import find

    name = keys.text("algorithm", "auto")
    parameters = keys.inner("parameters")
    if name is None or name == "auto":
        if parameters is not None and parameters.table:
            keys.wrong("parameters", 'parameters belong to a named algorithm; name it, or leave "auto" to choose them')
        return None
    try:
        definition = find(name)
    except InputError as error:
        keys.wrong("algorithm", str(error).rstrip("."))
        return None
    try:
        return build(definition, {} if parameters is None else parameters.table)
    except InputError as error:
        keys.wrong("parameters", str(error))
        return None


def _rounds(keys: Keys) -> int | None:
    value = keys.raw("rounds", "auto")
    if value == "auto":
        return None
    return keys.whole("rounds", least=1, most=MOST_ROUNDS, what='rounds, if it is not "auto",')


def _schedule(keys: Keys) -> Schedule | None:
    value = keys.raw("schedule")
    if value is None:
        return None
    if isinstance(value, Mapping) and "topology" in value:
        keys.wrong("schedule", "a walk goes along the graph of setting.topology; state the graph there")
        return None
    try:
        schedule: Schedule = spell(value, "schedules")
        return schedule
    except InputError as error:
        keys.wrong("schedule", str(error))
        return None


def _parties(keys: Keys) -> tuple[tuple[str, int], ...]:
    inner = keys.inner("parties")
    if inner is None:
        return ()
    found = [(name, inner.whole(name, least=1, what="the public number of records of a party")) for name in inner.table]
    if not found:
        keys.wrong("parties", "at least one party takes part; write name = number of records")
    for name in inner.table:
        if name.isdecimal() or not name.strip() or name != name.strip() or "," in name:
            inner.wrong(name, "a party's name is not a number, and has no comma and no blanks around it; rename it")
    return tuple((name, size) for name, size in found if size is not None)


def _split(keys: Keys) -> SplitSection | None:
    inner = keys.inner("split")
    if inner is None:
        return None
    kind = inner.text("kind", "equal", choices=SPLITS) or "equal"
    parties = inner.whole("parties", least=1, most=MOST_PARTIES, what="the number of parties")
    sizes = _sizes(inner)
    section = SplitSection(
        kind=kind,  # type: ignore[arg-type]
        parties=parties,
        sizes=sizes,
        size=inner.whole("size", least=1, what="the most records that a party may have"),
        seed=inner.whole("seed", least=0, what="the seed of the split"),
        concentration=inner.number(
            "concentration",
            rule="the concentration of a Dirichlet law is positive; 0.3 is skewed and 100 is even",
            low=0.0,
            high=float("inf"),
        ),
    )
    _check_split(inner, section)
    inner.finish()
    return section


_NEEDED = {
    "equal": ("parties",),
    "one-per-record": (),
    "column": (),
    "dirichlet": ("parties", "concentration"),
    "sizes": ("sizes",),
}
_ALLOWED = {
    "equal": ("seed",),
    "one-per-record": (),
    "column": ("parties", "size", "sizes"),
    "dirichlet": ("seed",),
    "sizes": (),
}


def _check_split(inner: Keys, section: SplitSection) -> None:
    for name in ("parties", "sizes", "size", "seed", "concentration"):
        if name in inner and name not in (*_NEEDED[section.kind], *_ALLOWED[section.kind]):
            inner.wrong(name, f"a split of kind {section.kind!r} has no {name}; remove it")
        elif name in _NEEDED[section.kind] and name not in inner:
            inner.wrong(name, f"a split of kind {section.kind!r} needs {name}; add {name} = ...")


def _sizes(inner: Keys) -> tuple[int, ...]:
    value = inner.raw("sizes")
    if value is None:
        return ()
    good = isinstance(value, list) and value and all(is_number(item) and isinstance(item, int) for item in value)
    if not good or min(value) < 1 or max(value) > MOST:
        inner.wrong("sizes", "a list of the public numbers of records is needed, each at least 1; write [300, 200]")
        return ()
    return tuple(value)
