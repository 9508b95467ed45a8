"""The prox of a regularizer inside compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from consenso.arrays import Array
from consenso.speedups import compile_block, is_own


@dataclass(frozen=True, kw_only=True, eq=False)
class ProxFormula:
    """A prox with its step, as a function (count, parameters, v, x) that writes x.

    It is a plain function of a module, in the part of Python that Numba compiles. The last `free` coordinates are left
    as they are, and the function does not see them.
    """

    parameters: tuple[float, ...]
    prox: Callable[[int, Array, Array, Array], None]
    free: int = 0


@runtime_checkable
class HasProxFormula(Protocol):
    """A regularizer for compiled loops."""

    def prox_formula(self, step: float) -> ProxFormula | None:
        """Its prox; None where it has none for these parameters."""
        ...


def find_formula(regularizer: object, step: float) -> ProxFormula | None:
    """The prox formula of a regularizer; None where it brings none, or where a subclass has changed its prox."""
    if not isinstance(regularizer, HasProxFormula) or not is_own(regularizer, "prox_formula", "prox"):
        return None
    return regularizer.prox_formula(step)


def compile_prox(regularizer: object, step: float) -> tuple[Array, Any, int] | None:
    """Parameters, compiled prox and number of free coordinates, as compiled loops take them."""
    formula = find_formula(regularizer, step)
    if formula is None:
        return None
    return np.array(formula.parameters, dtype=np.float64), compile_block(formula.prox, 3), formula.free
