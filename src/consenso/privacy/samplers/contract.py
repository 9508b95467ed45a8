"""What a sampler is: the noise, and how far the noise that is drawn lies from the law that its event states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError

Kind = Literal["gaussian", "laplace", "gamma-norm"]

_WORD = 1 << 63
_HALF_WORD = 1 << 32
# Three bits of a counter word say what a draw is for; a sign bit is left alone.
_REPETITION = 1 << 60


@dataclass(frozen=True, kw_only=True, eq=False)
class Key:
    """Which draw this is. Two draws of one seed with different keys are independent; equal keys give equal noise.

    `parties` (parties,) int64 names the rows of the cohort, each party once, in any order.
    """

    parties: IntArray
    round: int
    release: int
    repetition: int
    stream: int = 0

    def __post_init__(self) -> None:
        parties = np.asarray(self.parties)
        if parties.ndim != 1 or (parties.size and parties.dtype.kind != "i"):
            raise InputError(
                f"Key(parties=...) of shape {parties.shape} and type {parties.dtype}: a list of signed integers is "
                "needed; give the numbers of the parties."
            )
        # A party listed twice would get the same noise twice; most cohorts are sorted, which is quick to see.
        if parties.size > 1 and not (parties[1:] > parties[:-1]).all() and np.unique(parties).size < parties.size:
            raise InputError("Key(parties=...): a party appears twice and would get the same noise; list it once.")
        object.__setattr__(self, "parties", np.ascontiguousarray(parties, dtype=np.int64))
        for name, limit in (
            ("round", _WORD),
            ("release", _HALF_WORD),
            ("repetition", _REPETITION),
            ("stream", _HALF_WORD),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < limit:
                raise InputError(f"Key({name}={value!r}): a whole number in [0, {limit}) is needed; count from 0.")

    @property
    def counter(self) -> tuple[int, int, int]:
        """Three words that are different for different keys; the lowest three bits of the last one are 0."""
        return int(self.round), (int(self.stream) << 32) | int(self.release), int(self.repetition) << 3


class Sampler(Protocol):
    """A source of noise. Values are (parties, dim), scales and sensitivities a number or (parties,).

    `sensitivity` is the one that the noise was scaled with. It fixes the grid of a discrete sampler together with the
    scale, so that what is drawn and what `grid`, `widening` and `excess` state are the same mechanism.
    """

    @property
    def name(self) -> str:
        """What the privacy card says of the source."""

    @property
    def private(self) -> bool:
        """Whether the noise protects anybody: a seeded run is a simulation."""

    def gaussian(self, values: Array, std: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values plus independent N(0, std^2)."""

    def laplace(self, values: Array, scale: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values plus independent Laplace(scale)."""

    def gamma_norm(self, values: Array, scale: Array | float, key: Key, *, sensitivity: Array | float) -> Array:
        """Values plus noise of density proportional to exp(-|x|_2 / scale)."""

    def uniform(self, key: Key, count: int) -> Array:
        """Uniforms of 53 bits in (0, 1), shape (parties, count)."""

    def grid(self, scale: float, sensitivity: float, dim: int) -> float:
        """The step of the grid on which values are released; 0 for no grid."""

    def widening(self, scale: float, sensitivity: float, dim: int, norm: Literal[1, 2]) -> float:
        """How far rounding to the grid can move a vector; two worlds may move apart by twice that."""

    def displacement(self, scale: float, sensitivity: float, dim: int) -> float:
        """How far Gaussian noise that is not added to a release lies from continuous noise, in the 2-norm."""

    def excess(self, scale: float, sensitivity: float, dim: int, kind: Kind) -> float:
        """Total variation, per release of a vector, between what is drawn and a post-processing of the stated law."""


def check_draw(values: Array, scale: Array | float, key: Key, name: str) -> tuple[Array, Array]:
    """Values as a C-ordered float64 (parties, dim) and scales as (parties,), or an error before anything is drawn."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != key.parties.size:
        raise InputError(
            f"values of shape {values.shape}: noise is added to (parties, dim) with a row for each of the "
            f"{key.parties.size} parties of the key; reshape them."
        )
    if not np.isfinite(values).all():
        raise InputError("values hold NaN or infinity: noise protects finite numbers only; clip or reject them before.")
    return values, per_party(scale, key.parties.size, name)


def per_party(scale: Array | float, parties: int, name: str) -> Array:
    """A finite non-negative number, or one for each party, as (parties,)."""
    if isinstance(scale, float) and 0.0 <= scale < math.inf:
        return np.full(parties, scale)
    scales = np.asarray(scale, dtype=np.float64)
    if scales.ndim > 1 or (scales.ndim == 1 and scales.size != parties):
        raise InputError(
            f"{name} of shape {scales.shape}: one number, or one for each of {parties} parties, is needed."
        )
    if not (np.isfinite(scales).all() and (scales >= 0.0).all()):
        raise InputError(
            f"{name}={scale!r}: a finite number of at least 0 is needed; bound the value before releasing it."
        )
    return np.ascontiguousarray(np.broadcast_to(scales, (parties,)))
