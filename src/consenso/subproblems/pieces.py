"""Losses that are piecewise linear in the score, written as their kinks and slopes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.losses import Absolute, EpsilonInsensitive, Hinge, Loss


@dataclass(frozen=True, eq=False)
class Pieces:
    """Between kinks[:, k - 1] and kinks[:, k] the slope is slopes[:, k]; both ascend along the second axis."""

    kinks: Array  # (rows, q)
    slopes: Array  # (rows, q + 1)

    def take(self, rows: slice | IntArray) -> Pieces:
        """The pieces of some rows."""
        return Pieces(self.kinks[rows], self.slopes[rows])

    @property
    def jumps(self) -> Array:
        """Largest difference of two slopes, (rows,)."""
        return self.slopes[:, -1] - self.slopes[:, 0]

    def snap(self, slopes: Array) -> Array:
        """The slopes, put exactly on a slope of a piece where rounding has left them beside it."""
        near = np.abs(slopes[:, None] - self.slopes) <= 4 * np.finfo(np.float64).eps
        snapped = np.where(
            near.any(axis=1), np.take_along_axis(self.slopes, near.argmax(axis=1)[:, None], 1)[:, 0], slopes
        )
        return np.clip(snapped, self.slopes[:, 0], self.slopes[:, -1])

    def valid(self, slopes: Array) -> tuple[Array, Array]:
        """The interval of scores at which each number is a subgradient."""
        infinite = np.full((len(slopes), 1), np.inf)
        edges = np.concatenate((-infinite, self.kinks, infinite), axis=1)
        lowest = (self.slopes >= slopes[:, None]).argmax(axis=1)
        highest = (self.slopes <= slopes[:, None]).sum(axis=1)
        return _at(edges, lowest), _at(edges, highest)


def _at(table: Array, columns: Any) -> Array:
    return np.take_along_axis(table, columns[:, None], axis=1)[:, 0]


@singledispatch
def pieces(loss: Loss, targets: Array) -> Pieces:
    """Kinks and slopes of a loss for each target; register a function for a new piecewise linear loss."""
    raise InputError(
        f"pieces(loss={loss!r}): the local prox of a loss with kinks needs to know them; register them with "
        "consenso.subproblems.pieces.pieces.register, or use a smooth loss."
    )


@pieces.register
def _(loss: Hinge, targets: Array) -> Pieces:
    return Pieces(targets[:, None], np.stack((np.minimum(-targets, 0.0), np.maximum(-targets, 0.0)), axis=1))


@pieces.register
def _(loss: Absolute, targets: Array) -> Pieces:
    return Pieces(targets[:, None], np.broadcast_to([-1.0, 1.0], (len(targets), 2)))


@pieces.register
def _(loss: EpsilonInsensitive, targets: Array) -> Pieces:
    edges = np.stack((targets - loss.width, targets + loss.width), axis=1)
    return Pieces(edges, np.broadcast_to([-1.0, 0.0, 1.0], (len(targets), 3)))
