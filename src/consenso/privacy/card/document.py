"""The card itself: made from promises, kept as JSON."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, get_args

from consenso.errors import InputError, PrivacyError, TamperError
from consenso.privacy.card.depths import Overview
from consenso.privacy.card.entry import Entry, read_entry
from consenso.privacy.card.html import card_html
from consenso.privacy.card.plain import fields_of, plain
from consenso.privacy.card.renamed import rename_card
from consenso.privacy.card.shape import check_card
from consenso.privacy.card.text import card_text, summary_text
from consenso.privacy.guarantee import Guarantee
from consenso.privacy.ledger.chain import canonical
from consenso.privacy.relations import bounds_of, check_claim
from consenso.privacy.serial import to_json
from consenso.privacy.theorems import Theorem
from consenso.problem import Adjacency
from consenso.trust import modes
from consenso.version import __version__, find_version

FORMAT = 2
FIRST_FORMAT = 1
FORMATS = (FIRST_FORMAT, FORMAT)  # that are read: format 1 has no claims of a blanked record
FILE = "card.json"
SIMULATION = "simulation, not private"  # what the name of a sampler says whose noise can be drawn again


class SamplerDescription(Protocol):
    """What a card needs of a sampler."""

    @property
    def name(self) -> str:
        """What the card says of it."""

    @property
    def private(self) -> bool:
        """Whether its noise protects anybody."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """The privacy card of one run. `Card.build` makes it, `save` and `load` keep it, `text` shows it.

    Parameters and data are public facts as plain JSON values; data name the adjacency of the run.
    """

    algorithm: str
    parameters: dict[str, Any]
    data: dict[str, Any]
    trust: str
    sampler: str
    simulation: bool
    delta: float
    entries: tuple[Entry, ...]
    versions: dict[str, str]

    @classmethod
    def build(
        cls,
        *,
        algorithm: str,
        parameters: Mapping[str, Any],
        data: Mapping[str, Any],
        trust: str,
        sampler: SamplerDescription,
        delta: float,
        promises: Iterable[Guarantee],
        kinds: Mapping[int, int] | None = None,
    ) -> Card:
        """The card of what was promised: promises for the same observer, unit and adjacency become one entry.

        `kinds` says for how many parties the party of a promise stands (1 where it is not named). `parameters` and
        `data` hold public facts only; frozen dataclasses in them (a loss, a schedule) are spelled out.
        """
        if trust not in modes():
            raise InputError(f"Card.build(trust={trust!r}): trust is one of {', '.join(modes())}; name one of them.")
        if not 0 <= delta < 1:
            raise InputError(f"Card.build(delta={delta}): a delta lies in [0, 1); take one far below 1 / records.")
        if sampler.private == is_simulation(sampler.name):
            raise PrivacyError(
                f"Card.build(sampler={sampler.name!r}): the name of a sampler says {SIMULATION!r} if and only if it is "
                "not private; rename it."
            )
        groups: dict[tuple[str, str, str], list[Guarantee]] = {}
        run = _adjacency(data)
        for promise in promises:
            _check_promise(promise)
            check_claim(run, promise.unit, promise.adjacency)
            groups.setdefault((promise.observer, promise.unit, promise.adjacency), []).append(promise)
        if not groups:
            raise InputError("Card.build(promises=[]): a card states at least one guarantee; give one.")
        return cls(
            algorithm=algorithm,
            parameters=plain(dict(parameters), "parameters"),
            data=plain(dict(data), "data"),
            trust=trust,
            sampler=sampler.name,
            simulation=is_simulation(sampler.name),
            delta=float(delta),
            entries=tuple(
                _entry(who, group, delta, kinds or {}, run, is_simulation(sampler.name))
                for (who, _, _), group in groups.items()
            ),
            versions=_versions(sampler.name),
        )

    def to_json(self) -> dict[str, Any]:
        """The card as plain JSON values, with its format and digest."""
        stored = plain({"format": FORMAT, **fields_of(self)}, "card")
        return {**stored, "digest": digest(stored)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Card:
        """The card that `to_json` wrote; its digest is checked, its numbers are not (see `consenso.privacy.verify`)."""
        if not isinstance(stored, Mapping):
            raise TamperError("a card is a table of names and values, and this is none; write it anew.")
        content = {name: value for name, value in stored.items() if name != "digest"}
        if digest(content) != stored.get("digest"):
            raise TamperError(
                "the digest is not that of the card, which was changed after it was written; run `consenso verify` to "
                "see where."
            )
        try:
            if content.pop("format") not in FORMATS:
                raise TamperError(
                    f"this version reads cards of formats {', '.join(map(str, FORMATS))}; use the one that wrote it."
                )
            content = rename_card(content)
            check_card(content, cls)
            return cls(**{**content, "entries": tuple(read_entry(entry) for entry in content["entries"])})
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise TamperError(f"the fields are not those of a card ({error}); write it anew.") from error

    def save(self, path: str | Path) -> Path:
        """Write the card; into a folder as `card.json`."""
        target = Path(path) / FILE if Path(path).is_dir() else Path(path)
        target.write_text(json.dumps(self.to_json(), indent=2, sort_keys=True) + "\n", encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Card:
        """Read a card, or the `card.json` of a run's folder."""
        return cls.from_json(read(path))

    def sentence(self) -> str:
        """What is promised, in one sentence for everybody."""
        return Overview(card=self).sentence

    def summary(self) -> str:
        """The sentence, and a table of what every observer learns."""
        return summary_text(self)

    def text(self) -> str:
        """The card in plain words: summary, every promise, every assumption, all parameters."""
        return card_text(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        # All fields are pages of numbers, which nobody wants at a prompt; `to_json` has them.
        return f"<Card of {self.algorithm}. {self.sentence()}>"

    def _repr_html_(self) -> str:
        return card_html(self)


def read(path: str | Path) -> dict[str, Any]:
    """The JSON of a card, or of the `card.json` of a run's folder, unchecked."""
    target = Path(path) / FILE if Path(path).is_dir() else Path(path)
    try:
        stored = json.loads(
            target.read_text(encoding="utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except FileNotFoundError:
        what = "such file" if target == Path(path) else target.name
        raise InputError(f"{path}: there is no {what}; name a card or the folder of a run.") from None
    except (ValueError, OSError) as error:
        raise InputError(
            f"{target}: this is no card, because it is not JSON ({error}); name a card or the folder of a run."
        ) from error
    if not isinstance(stored, dict):
        raise InputError(f"{target}: this is not a card; name a card or the folder of a run.")
    return stored


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two values under one name a reader would see only one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a card without its digest."""
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def is_simulation(sampler: str) -> bool:
    """Whether a sampler of this name protects nobody."""
    return SIMULATION in sampler


def _adjacency(data: Mapping[str, Any]) -> Adjacency:
    found: Any = data.get("adjacency")
    if found not in get_args(Adjacency):
        raise InputError(
            f"Card.build(data={{'adjacency': {found!r}, ...}}): a card says which adjacency the run was planned for; "
            f"give {' or '.join(map(repr, get_args(Adjacency)))}."
        )
    return found  # type: ignore[no-any-return]


def _entry(
    observer: str, promises: list[Guarantee], delta: float, kinds: Mapping[int, int], run: Adjacency, simulation: bool
) -> Entry:
    refusals = dict.fromkeys(refusal for promise in promises for refusal in promise.refusals)
    # Kinds of parties with the same bound are one kind.
    merged: dict[str, tuple[int, int, Theorem]] = {}
    for promise in promises:
        party, theorem = promise.party, promise.proof
        assert theorem is not None
        key = canonical(to_json(theorem))
        first, before, _ = merged.get(key, (party, 0, theorem))
        merged[key] = (min(first, party), before + kinds.get(party, 1), theorem)
    return Entry.derive(observer, merged.values(), delta, tuple(refusals), run=run, simulation=simulation)


def _check_promise(stated: Guarantee) -> None:
    theorem = stated.proof
    follows = () if theorem is None else (theorem.event(), theorem.unit, theorem.adjacency)
    if (stated.event, stated.unit, bounds_of(stated.adjacency)) != follows:
        raise PrivacyError(
            f"Card.build(promises=...): the guarantee for {stated.observer!r} is not what {stated.theorem} proves; "
            "build the guarantee from the theorem."
        )


def _versions(sampler: str) -> dict[str, str]:
    packages = ["numpy", "scipy", "dp-accounting", *(["opendp"] if "opendp" in sampler.lower() else [])]
    found = {package: find_version(package) for package in packages}
    return {"consenso": __version__, "python": platform.python_version(), **found}
