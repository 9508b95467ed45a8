"""Tables as TOML text: sorted into a readable order, numbers exact."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from consenso.errors import InputError

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def write_toml(tables: Mapping[str, Any]) -> str:
    """The text of nested tables; a table inside a table of a section is written inline."""
    lines = [f"{_name(name)} = {_value(value)}" for name, value in tables.items() if not isinstance(value, Mapping)]
    for name, table in tables.items():
        if isinstance(table, Mapping):
            lines += _table(_name(name), table)
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(where: str, table: Mapping[str, Any]) -> list[str]:
    lines = ["", f"[{where}]"]
    lines += [f"{_name(name)} = {_value(value)}" for name, value in table.items()]
    return lines


def _name(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A JSON string is a TOML string, except that TOML also wants the delete character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return ("-inf" if value < 0 else "inf") if math.isinf(value) else repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_name(name)} = {_value(item)}" for name, item in value.items()) + "}"
    raise InputError(f"{value!r}: a study holds texts, numbers, true and false, lists and tables; write one of these.")
