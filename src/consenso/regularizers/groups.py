"""A penalty that selects whole groups of coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.regularizers.checks import check_step, check_strength, is_count
from consenso.regularizers.regularizer import Regularizer


@dataclass(frozen=True, kw_only=True)
class GroupL1(Regularizer):
    """strength * sum over groups of |x_group|_2, every group with the same strength.

    `groups` is the size of contiguous equal groups, or a tuple of sizes that add up to the length of x. With several
    outputs, groups=outputs keeps or drops a feature for all of them at once.
    """

    strength: float
    groups: int | tuple[int, ...]

    def __post_init__(self) -> None:
        check_strength("GroupL1", "strength", self.strength)
        sizes = self.groups if isinstance(self.groups, tuple) else (self.groups,)
        if not sizes or not all(is_count(size) for size in sizes):
            raise InputError(
                f"GroupL1(groups={self.groups!r}): groups is a size or a tuple of sizes, integers of at least 1; "
                "use groups=1 for one coordinate each."
            )

    @classmethod
    def example(cls) -> GroupL1:
        return cls(strength=0.02, groups=1)

    def value(self, x: Array) -> Array:
        """Strength times the sum of the norms of the groups."""
        values: Array = self.strength * np.sum(self._norms(x, self._sizes(x)), axis=-1)
        return values

    def prox(self, v: Array, step: float) -> Array:
        """Move every group towards 0 by step * strength in norm, stopping at 0."""
        check_step(self, step)
        sizes = self._sizes(v)
        norms = self._norms(v, sizes)
        kept = np.maximum(norms - step * self.strength, 0.0)
        factors = np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)
        shrunk: Array = v * np.repeat(factors, sizes, axis=-1)
        return shrunk

    def subgradient(self, x: Array) -> Array:
        """Strength times the unit vectors of the groups, zero for a zero group."""
        sizes = self._sizes(x)
        norms = self._norms(x, sizes)
        factors = np.divide(self.strength, norms, out=np.zeros_like(norms), where=norms > 0)
        slopes: Array = x * np.repeat(factors, sizes, axis=-1)
        return slopes

    def _sizes(self, x: Array) -> IntArray:
        length = np.shape(x)[-1]
        if isinstance(self.groups, tuple):
            fits = sum(self.groups) == length
            sizes = np.array(self.groups, dtype=np.int64)
        else:
            fits = length % self.groups == 0
            sizes = np.full(length // self.groups, self.groups, dtype=np.int64)
        if not fits:
            raise InputError(
                f"GroupL1(groups={self.groups!r}): the groups must cover a vector of length {length} exactly; "
                "leave an intercept out with Unpenalized(inner=..., last=...)."
            )
        return sizes

    def _norms(self, x: Array, sizes: IntArray) -> Array:
        starts = np.cumsum(sizes) - sizes
        norms: Array = np.sqrt(np.add.reduceat(np.square(x), starts, axis=-1))
        return norms
