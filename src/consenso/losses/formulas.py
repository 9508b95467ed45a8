"""A loss inside compiled loops.

A loss that brings `formulas()` gives its functions once more, in the part of Python that Numba compiles. Loops over
parties take them as arguments, so that a loop is compiled once for all losses, and a loss without them runs the loops
that are not compiled. Everything here works on blocks of records, one call for each block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from consenso.arrays import Array
from consenso.speedups import compile_block, is_own

# (count, parameters, points, steps, targets, slopes): write the slopes of the loss at point - step * slope.
ProxSlopes: TypeAlias = Callable[[int, Array, Array, Array, Array, Array], None]
# (count, parameters, scores, targets, slopes, curvatures): write both derivatives of a smooth loss.
Derivatives: TypeAlias = Callable[[int, Array, Array, Array, Array, Array], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Formulas:
    """A loss of one score as functions of blocks; parameters are its numbers, which the functions read.

    The functions are plain ones of a module: loops over `count` records that index what they are given and check
    nothing, for finite points, steps in [0, 1e12] and targets of the loss's kind. A loss with kinks has no derivatives.
    """

    parameters: tuple[float, ...]
    prox_slopes: ProxSlopes
    derivatives: Derivatives | None = None


@runtime_checkable
class HasFormulas(Protocol):
    """A loss for compiled loops."""

    def formulas(self) -> Formulas: ...


@dataclass(frozen=True, eq=False)
class CompiledLoss:
    """The formulas of a loss, compiled; derivatives write nothing where the loss has none."""

    parameters: Array
    prox_slopes: Any
    derivatives: Any


def compile_loss(loss: object) -> CompiledLoss | None:
    """A loss for compiled loops; None where it brings no formulas, or where a subclass has changed what they say."""
    if not isinstance(loss, HasFormulas) or not is_own(loss, "formulas", "slope", "curvature", "prox_slope"):
        return None
    formulas = loss.formulas()
    derivatives = formulas.derivatives or _no_derivatives
    parameters = np.array(formulas.parameters, dtype=np.float64)
    return CompiledLoss(parameters, compile_block(formulas.prox_slopes, 5), compile_block(derivatives, 5))


def _no_derivatives(
    count: int, parameters: Array, scores: Array, targets: Array, slopes: Array, curvatures: Array
) -> None:
    """A loss with kinks is certified by its pieces."""
