"""A regularizer that leaves the last coordinates alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from consenso.arrays import Array
from consenso.errors import InputError
from consenso.regularizers.checks import check_step, is_count
from consenso.regularizers.formulas import ProxFormula, find_formula
from consenso.regularizers.norms import L1
from consenso.regularizers.regularizer import Regularizer


@dataclass(frozen=True, kw_only=True)
class Unpenalized(Regularizer):
    """`inner` on all coordinates but the `last` ones: an intercept is one coordinate per output."""

    inner: Regularizer
    last: int

    def __post_init__(self) -> None:
        if not is_count(self.last):
            raise InputError(
                f"Unpenalized(last={self.last!r}): last is a number of coordinates, an integer of at least 1; "
                "use the inner regularizer itself to penalize all."
            )

    @classmethod
    def example(cls) -> Unpenalized:
        return cls(inner=L1.example(), last=1)

    @property
    def is_constraint(self) -> bool:
        """Whether the inner one is."""
        return self.inner.is_constraint

    def value(self, x: Array) -> Array:
        """The inner value of the first coordinates."""
        return self.inner.value(self._first(x))

    def prox(self, v: Array, step: float) -> Array:
        """The inner prox of the first coordinates, beside the last ones."""
        check_step(self, step)
        return np.concatenate([self.inner.prox(self._first(v), step), v[..., -self.last :]], axis=-1)

    def prox_formula(self, step: float) -> ProxFormula | None:
        inner = find_formula(self.inner, step)
        return None if inner is None else replace(inner, free=inner.free + self.last)

    def subgradient(self, x: Array) -> Array:
        """The inner subgradient of the first coordinates, beside zeros."""
        slopes = self.inner.subgradient(self._first(x))
        return np.concatenate([slopes, np.zeros((*slopes.shape[:-1], self.last))], axis=-1)

    def _first(self, x: Array) -> Array:
        if np.shape(x)[-1] <= self.last:
            raise InputError(
                f"Unpenalized(last={self.last}): the vector must be longer than what is left alone, and its length is "
                f"{np.shape(x)[-1]}; lower `last`."
            )
        return x[..., : -self.last]
