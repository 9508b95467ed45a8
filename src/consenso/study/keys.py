"""Reading the keys of a study: every fault is collected, named by its key, and told with what to do instead."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from consenso.errors import InputError
from consenso.registry import nearest

SHORTEST = 60  # characters of a value that an error repeats
MOST = 1 << 50  # the largest whole number that a study may state


@dataclass
class Faults:
    """What is wrong with a study, one sentence each, in the order in which it was found."""

    sentences: list[str] = field(default_factory=list)

    def add(self, key: str, reason: str) -> None:
        """Note a fault of a key; `reason` says what must hold and what to do."""
        self.sentences.append(f"{key}: {reason}" + ("" if reason.endswith("?") else "."))

    def add_value(self, key: str, value: Any, reason: str) -> None:
        """Note a fault of a value."""
        self.add(f"{key} = {show_value(value)}", reason)

    def refuse(self, source: str) -> None:
        """Raise all faults as one error, if there are any."""
        if not self.sentences:
            return
        if len(self.sentences) == 1:
            raise InputError(f"{source}: {self.sentences[0]}")
        listed = "".join(f"\n  - {sentence}" for sentence in self.sentences)
        raise InputError(f"{source}: {len(self.sentences)} things must be corrected:{listed}")


@dataclass(frozen=True)
class Keys:
    """One table of a study. Each reader returns the value, or the default where the key is absent or wrong."""

    table: Mapping[str, Any]
    where: str
    faults: Faults
    asked: set[str] = field(default_factory=set)

    def __contains__(self, name: str) -> bool:
        self.asked.add(name)
        return name in self.table

    def key(self, name: str) -> str:
        """The full name of a key."""
        return f"{self.where}.{name}" if self.where else name

    def raw(self, name: str, default: Any = None) -> Any:
        """The value as it stands in the file."""
        self.asked.add(name)
        return self.table.get(name, default)

    def wrong(self, name: str, reason: str) -> None:
        """Note a fault of the value of a key, or of its absence."""
        if name in self.table:
            self.faults.add_value(self.key(name), self.table[name], reason)
        else:
            self.faults.add(self.key(name), reason)

    def text(self, name: str, default: str | None = None, *, choices: Iterable[str] = ()) -> str | None:
        """A text, one of `choices` if there are any."""
        value = self.raw(name)
        if value is None:
            return default
        known = list(choices)
        if not isinstance(value, str):
            self.wrong(name, f"a text in quotes is needed{_list_keys(known)}")
            return default
        if known and value not in known:
            self.wrong(name, nearest(value, known))
            return default
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self.raw(name, default)
        if not isinstance(value, bool):
            self.wrong(name, "write true or false, without quotes")
            return default
        return value

    def number(self, name: str, default: float | None = None, *, rule: str, low: float, high: float) -> float | None:
        """A number in (low, high); infinite ends are excluded as well. `rule` says what holds and what to do."""
        value = self.raw(name)
        if value is None:
            return default
        if not is_number(value) or not low < value < high:
            self.wrong(name, rule if is_number(value) else f"a number without quotes is needed; {rule}")
            return default
        return float(value)

    def whole(self, name: str, default: int | None = None, *, least: int, what: str, most: int = MOST) -> int | None:
        """A whole number from `least` to `most`."""
        value = self.raw(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            beyond = isinstance(value, int) and value > most
            self.wrong(name, f"{what} is a whole number, at {f'most {most}' if beyond else f'least {least}'}")
            return default
        return value

    def inner(self, name: str) -> Keys | None:
        """A table inside this one; None where it is absent or no table."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong(name, f"a table is needed; write [{self.key(name)}] and its keys below it")
            return None
        return Keys(value, self.key(name), self.faults)

    def finish(self) -> None:
        """Note the keys that nobody asked for, with the nearest known one."""
        for name in self.table:
            if name not in self.asked:
                self.faults.add(self.key(name), f"there is no such key; {nearest(name, sorted(self.asked))}")


def is_number(value: Any) -> bool:
    """Whether a value of a TOML file is a number; nan is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max if isinstance(value, int) else not math.isnan(value)


def show_value(value: Any) -> str:
    """A value as an error repeats it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) or value is None:
        return repr(value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= SHORTEST else f"{text[:SHORTEST]}..."


def _list_keys(known: list[str]) -> str:
    return f": one of {', '.join(known)}" if known else ""
