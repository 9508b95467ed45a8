"""Public facts as plain JSON values."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from consenso import registry
from consenso.errors import InputError
from consenso.privacy.card.entry import Entry, Kind, Spread


def plain(value: Any, where: str, name_of: Callable[[type[Any]], str] = registry.name_of) -> Any:
    """Public facts as JSON values: dataclasses spelled out, infinities as texts; anything else is refused."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {} if isinstance(value, Entry | Spread | Kind) else {"kind": name_of(type(value))}
        return {**kind, **plain(fields_of(value), where, name_of)}
    if isinstance(value, Mapping):
        return {str(name): plain(item, f"{where}.{name}", name_of) for name, item in value.items()}
    if isinstance(value, np.ndarray):  # a public matrix of the problem
        return plain(value.tolist(), where, name_of)
    if isinstance(value, tuple | list):
        return [plain(item, f"{where}[{place}]", name_of) for place, item in enumerate(value)]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and not math.isnan(value):
        number = float(value)
        return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")
    raise InputError(
        f"{where}={value!r}: a card holds numbers, texts, lists, arrays and dataclasses of these; spell it out."
    )


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass, as they are."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
