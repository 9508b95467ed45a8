"""Checks that theorems share. A refusal is one sentence: who refuses, what was given, what must hold, what to use."""

from __future__ import annotations

import math
from collections.abc import Sequence

from consenso.errors import PreconditionError
from consenso.privacy.events import Adjacency


def require(holds: bool, refusal: str) -> None:
    """Raise PreconditionError with `refusal` unless the precondition holds."""
    if not holds:
        raise PreconditionError(refusal)


def require_positive(theorem: str, **values: float) -> None:
    """Every value is a positive finite number."""
    for name, value in values.items():
        require(
            0 < value < math.inf,
            f"{theorem}({name}={value}): {name} must be positive and finite; give the public number that the run uses.",
        )


def require_not_negative(theorem: str, **values: float) -> None:
    """Every value is zero or a positive finite number."""
    for name, value in values.items():
        require(
            0 <= value < math.inf, f"{theorem}({name}={value}): {name} must be finite and at least 0; use 0 for none."
        )


def require_count(theorem: str, **values: int) -> None:
    """Every value is a whole number of at least 1."""
    for name, value in values.items():
        require(
            1 <= value < math.inf and value == int(value),
            f"{theorem}({name}={value}): {name} must be a whole number of at least 1; charge what was planned.",
        )


def require_lipschitz_constant(theorem: str, lipschitz: float) -> None:
    """The Lipschitz constant is finite: squared losses have none."""
    require(
        0 < lipschitz < math.inf,
        f"{theorem}(lipschitz={lipschitz}): the loss must have a positive finite Lipschitz constant; use "
        "Huber(threshold=...) in place of a squared loss.",
    )


def require_replace_one(theorem: str, adjacency: Adjacency, instead: str) -> None:
    """The theorem is proved for replace-one only."""
    require(
        adjacency == "replace-one",
        f"{theorem}(adjacency={adjacency!r}): the bound is proved for 'replace-one' only; {instead}.",
    )


def per_round(theorem: str, name: str, value: float | tuple[float, ...], rounds: int) -> tuple[float, ...]:
    """One number per round, from one number for all rounds or a tuple of them."""
    if not isinstance(value, Sequence):
        return (float(value),) * rounds
    require(
        len(value) == rounds,
        f"{theorem}({name}=<{len(value)} numbers>): {name} must be one number or one for each of the {rounds} rounds; "
        "give as many as rounds are charged.",
    )
    return tuple(value)
