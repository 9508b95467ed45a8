"""Events, theorems and other frozen records of plain values as JSON, and back, exactly.

An object becomes `{"kind": "theorems.Composition", field: value, ...}`, with the names of `consenso.registry`. Reading
is strict: a kind, a field or a type that the class does not state is refused, so that what is read is what was written.
Infinities are the texts "inf" and "-inf", because JSON has no number for them; every finite float comes back bit for
bit.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import types
import typing
from collections.abc import Mapping
from typing import Any

from consenso import registry
from consenso.errors import InputError, TamperError

KIND = "kind"
_HINTS: dict[type[Any], dict[str, Any]] = {}
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


def to_json(value: object) -> dict[str, Any]:
    """A theorem or an event as a dictionary of JSON values (no NaN, no infinity, no tuple)."""
    cls = type(value)
    name = registry.name_of(cls)
    if name.partition(".")[0] not in registry.PROVED:
        raise InputError(f"to_json({cls.__name__}): consenso.registry knows no such theorem or event; register it.")
    stored: dict[str, Any] = {KIND: name}
    for name, hint in _fields(cls).items():
        stored[name] = _store(_check(getattr(value, name), hint, f"{cls.__name__}.{name}", reading=False))
    return stored


def from_json(stored: Mapping[str, Any]) -> Any:
    """The object that `to_json` wrote; raises TamperError for anything that it cannot have written."""
    if not isinstance(stored, Mapping) or not isinstance(stored.get(KIND), str):
        raise TamperError(f"from_json: an object with a text under {KIND!r} must be given, got {_short(stored)}.")
    kind = stored[KIND]
    try:
        cls = registry.find(kind, registry.PROVED)
    except InputError as error:
        raise TamperError(f"from_json: the kind {error}") from None
    hints = _fields(cls)
    if set(stored) - {KIND} != set(hints):
        strange = ", ".join(sorted(map(str, set(stored) - {KIND} - set(hints)))) or "none"
        missing = ", ".join(sorted(set(hints) - set(stored))) or "none"
        raise TamperError(
            f"from_json: a {kind} has the fields {', '.join(hints) or 'none'}; strange: {strange}; missing: {missing}."
        )
    return cls(**{name: _check(stored[name], hint, f"{kind}.{name}", reading=True) for name, hint in hints.items()})


def _fields(cls: type[Any]) -> dict[str, Any]:
    if cls not in _HINTS:
        if any(field.name == KIND for field in dataclasses.fields(cls)):
            raise InputError(f"{cls.__name__}: a field cannot be called {KIND!r}; rename it.")
        hints = typing.get_type_hints(cls)
        _HINTS[cls] = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    return _HINTS[cls]


class _MismatchError(Exception):
    """The value is not of the hinted type."""


def _check(value: Any, hint: Any, where: str, *, reading: bool) -> Any:
    """The value as the hint wants it, or an error that names the field."""
    try:
        return _match(value, hint, reading)
    except _MismatchError:
        wanted = hint.__name__ if isinstance(hint, type) else str(hint).replace("consenso.privacy.", "")
        error = TamperError if reading else InputError
        raise error(f"{where}: a value of type {wanted} must be given, got {_short(value)}.") from None


def _match(value: Any, hint: Any, reading: bool) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _first_match(value, typing.get_args(hint), reading)
    if origin is typing.Literal:
        # True == 1 in Python, so the types are compared too.
        return _require(value, any(value == choice and type(value) is type(choice) for choice in typing.get_args(hint)))
    if origin is tuple:
        return _match_tuple(value, typing.get_args(hint), reading)
    if hint is float:
        return _number(value, reading)
    if hint is int:
        return int(_require(value, isinstance(value, numbers.Integral) and not isinstance(value, bool)))
    if hint in (bool, str):
        return _require(value, type(value) is hint)
    if hint is type(None):
        return _require(value, value is None)
    return _read_nested(value, hint, reading)


def _first_match(value: Any, hints: tuple[Any, ...], reading: bool) -> Any:
    # Float last, so that `int | float` keeps an integer an integer.
    for hint in sorted(hints, key=lambda hint: hint is float):
        try:
            return _match(value, hint, reading)
        except _MismatchError:
            continue
    raise _MismatchError


def _match_tuple(value: Any, hints: tuple[Any, ...], reading: bool) -> tuple[Any, ...]:
    _require(value, isinstance(value, list if reading else tuple))
    if len(hints) == 2 and hints[1] is Ellipsis:
        hints = (hints[0],) * len(value)
    _require(value, len(hints) == len(value))
    return tuple(_match(item, hint, reading) for item, hint in zip(value, hints, strict=True))


def _number(value: Any, reading: bool) -> float:
    if reading and isinstance(value, str) and value in _INFINITIES:
        return _INFINITIES[value]
    _require(value, isinstance(value, numbers.Real) and not isinstance(value, bool))
    try:
        found = float(value)
    except OverflowError:  # an integer beyond every float
        raise _MismatchError from None
    # JSON text cannot say NaN or infinity as a number: whoever reads one there reads what was never written.
    return float(_require(found, math.isfinite(found) if reading else not math.isnan(found)))


def _read_nested(value: Any, hint: Any, reading: bool) -> Any:
    if not reading:
        return _require(value, isinstance(value, hint))
    _require(value, isinstance(value, Mapping) and isinstance(value.get(KIND), str))
    try:
        _require(value, issubclass(registry.find(value[KIND], registry.PROVED), hint))
    except InputError:
        raise _MismatchError from None
    return from_json(value)


def _store(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_store(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return to_json(value) if dataclasses.is_dataclass(value) else value


def _require(value: Any, holds: bool) -> Any:
    if not holds:
        raise _MismatchError
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
