"""A schema as TOML: reading with an error for every key that is not understood, and canonical writing."""

from __future__ import annotations

import dataclasses
import datetime
import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from consenso.errors import InputError
from consenso.schema.columns import KINDS, ColumnKind

if TYPE_CHECKING:
    from consenso.schema.description import Schema

TOP = ("draft", "scale", "intercept", "row_bound", "strict", "missing_values", "columns")


def parse_toml(text: str) -> dict[str, Any]:
    """The arguments of `Schema` written as TOML."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}; correct the line.") from None
    _require_known(found, TOP, where="")
    given: dict[str, Any] = {}
    strict = _check_type(found, "strict", bool, False)
    for key, default in (("draft", False), ("intercept", False)):
        given[key] = _check_type(found, key, bool, default)
    given["scale"] = _check_type(found, "scale", str, "unit")
    given["row_bound"] = _number(found["row_bound"], "row_bound") if "row_bound" in found else None
    given["missing_values"] = _texts(found.get("missing_values", []), "missing_values")
    columns = _check_type(found, "columns", dict, {})
    given["columns"] = tuple(_column(name, entry, strict) for name, entry in columns.items())
    return given


def _column(name: str, entry: Any, strict: bool) -> ColumnKind:
    where = f"columns.{name}"
    if not isinstance(entry, dict) or "kind" not in entry:
        raise InputError(
            f'{where}: a column is a table with a kind; write [{where}] and kind = "numeric", for example.'
        )
    kind = entry["kind"]
    if kind not in KINDS:
        raise InputError(f"{where}.kind: {kind!r} is no kind of column; choose {_nearest(str(kind), KINDS)}.")
    fields = {field.name for field in dataclasses.fields(KINDS[kind])} - {"name"}
    _require_known(entry, ("kind", *sorted(fields)), where=f"{where}.")
    given: dict[str, Any] = {"strict": strict} if "strict" in fields else {}
    for key, value in entry.items():
        if key in {"low", "high"} and kind == "date":
            # TOML has days of its own, written without quotes.
            given[key] = value.isoformat() if isinstance(value, datetime.date) else str(value)
        elif key in {"low", "high"}:
            given[key] = _number(value, f"{where}.{key}")
        elif key in {"categories", "classes", "levels"}:
            given[key] = _texts(value, f"{where}.{key}")
        elif key in {"strict", "indicator"}:
            given[key] = _check_type(entry, key, bool, False, where=f"{where}.")
        elif key == "missing":
            given[key] = value if isinstance(value, str) else _number(value, f"{where}.{key}")
    needed = {field.name for field in dataclasses.fields(KINDS[kind]) if field.default is dataclasses.MISSING} - {
        "name"
    }
    for key in sorted(needed - given.keys()):
        raise InputError(f"{where}.{key}: a column of kind {kind!r} states {key}, and it is absent; add {key} = ... .")
    return KINDS[kind](name=name, **given)


def write_toml(schema: Schema) -> str:
    """The canonical text of a schema."""
    lines = [f"draft = {_value(schema.draft)}", f"scale = {_value(schema.scale)}"]
    lines.append(f"intercept = {_value(schema.intercept)}")
    if schema.row_bound is not None:
        lines.append(f"row_bound = {_value(schema.row_bound)}")
    lines.append(f"missing_values = {_value(schema.missing_values)}")
    for column in schema.columns:
        lines += ["", f"[columns.{_value(column.name)}]", f"kind = {_value(column.kind)}"]
        for field in dataclasses.fields(column):
            # A schema without indicators has the text, and the digest, that it had before there were any.
            if field.name != "name" and not (field.name == "indicator" and not getattr(column, field.name)):
                lines.append(f"{field.name} = {_value(getattr(column, field.name))}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A JSON string is a TOML string, except that TOML also wants the delete character escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(float(value))


def _require_known(found: Mapping[str, Any], known: Iterable[str], *, where: str) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"{where}{key}: no such key; choose {_nearest(key, known)}.")


def _nearest(given: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(given, names, n=1)
    return f"{close[0]!r}" if close else "one of " + ", ".join(names)


def _check_type(found: Mapping[str, Any], key: str, kind: type, default: Any, *, where: str = "") -> Any:
    value = found.get(key, default)
    if not isinstance(value, kind):
        told = {bool: "true or false", str: "a text in quotes", dict: "a set of tables such as [columns.age]"}[kind]
        raise InputError(f"{where}{key}: the value is {told}, and {value!r} was given; correct it.")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: the value is a number, and {value!r} was given; write it without quotes.")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{where}: the number is too large for a float; state a smaller one.") from None


def _texts(value: Any, where: str) -> tuple[str, ...]:
    whole = isinstance(value, list) and all(
        isinstance(item, str | int) and not isinstance(item, bool) for item in value
    )
    if not whole:
        raise InputError(f'{where}: the value is a list of texts, and {value!r} was given; write ["a", "b"].')
    return tuple(str(item) for item in value)
