"""Objects that a study spells out: a name, or a table with a kind and its fields, as cards write them.

`{kind = "Polynomial", first = 1.0, power = -0.5}` is `Polynomial(first=1.0, power=-0.5)`. Names may be written in any
case and with hyphens ("elastic-net"), or with their family ("regularizers.ElasticNet"). Only what `consenso.registry`
knows can be spelled: nothing is imported or executed that the file names.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from consenso import registry
from consenso.errors import ConsensoError, InputError
from consenso.study.keys import is_number, show_value


def spell(value: Any, *families: str) -> Any:
    """The object of a family that a text or a table spells out; InputError without the name of the key."""
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping) or not isinstance(value.get("kind"), str):
        first = next(iter(registry.short_names(families[0])))
        raise InputError(f'write a name, or a table such as {{kind = "{first}", ...}}')
    return build(
        registry.spell(value["kind"], families), {name: item for name, item in value.items() if name != "kind"}
    )


def build(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """An object of a frozen dataclass from the values of its fields; InputError says which field is wrong."""
    fields = {each.name: each for each in dataclasses.fields(kind) if each.init}
    # A card also tells what an object computed itself; that is not stated again.
    derived = {each.name for each in dataclasses.fields(kind) if not each.init}
    values = {registry.rename(kind.__name__, name): value for name, value in values.items() if name not in derived}
    for name in values:
        if name not in fields:
            raise InputError(f"{kind.__name__} has no parameter {name!r}; {registry.nearest(name, fields)}")
    hints = typing.get_type_hints(kind)
    given = {name: _fit_value(value, hints[name], f"{kind.__name__}.{name}") for name, value in values.items()}
    for name, each in fields.items():
        missing = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        if missing and name not in given:
            raise InputError(f"{kind.__name__} needs {name}; add {name} = ... to the table")
    try:
        return kind(**given)
    except ConsensoError as error:
        raise InputError(str(error).rstrip(".")) from None
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        raise InputError(
            f"{kind.__name__} cannot be made from {show_value(dict(values))}; see its description"
        ) from None


def _fit_value(value: Any, hint: Any, where: str) -> Any:
    """A value of a TOML file as the type that a field states."""
    for option in _options(hint):
        found = _as(value, option, where)
        if found is not None:
            return found
    if isinstance(value, Mapping):
        return spell(value, *registry.PLANNED)
    raise InputError(f"{where} = {show_value(value)} is not {_describe_type(hint)}")


def _as(value: Any, option: Any, where: str) -> Any:
    """The value as one of the types of a union, or None where it does not fit."""
    origin = typing.get_origin(option)
    if origin is typing.Literal:
        return value if value in typing.get_args(option) else None
    if origin is tuple and isinstance(value, list):
        return tuple(_fit_value(item, typing.get_args(option)[0], where) for item in value)
    if option is float and is_number(value):
        return float(value)
    if option is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if option in (str, bool) and isinstance(value, option):
        return value
    if option is Any and not isinstance(value, Mapping):
        return value
    return None


def _options(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(option for each in typing.get_args(hint) for option in _options(each))
    return (hint,)


def _describe_type(hint: Any) -> str:
    words = []
    for option in _options(hint):
        if typing.get_origin(option) is typing.Literal:
            words += [repr(choice) for choice in typing.get_args(option)]
        elif typing.get_origin(option) is tuple:
            words.append("a list")
        elif dataclasses.is_dataclass(option) or getattr(option, "_is_protocol", False):
            words.append(f'{{kind = "{getattr(option, "__name__", "...")}", ...}}')
        elif option is not type(None):
            names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
            words.append(names.get(option, "a value"))
    return " or ".join(dict.fromkeys(words))
