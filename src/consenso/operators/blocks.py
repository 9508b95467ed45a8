"""Blocks of a vector, which of them act in a round, and which regularizers fall apart into blocks.

Activations draw from public coins: who acts when may be known to everybody, and no guarantee rests on hiding it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.regularizers import (
    L1,
    L2,
    Box,
    ElasticNet,
    GroupL1,
    NoPenalty,
    Regularizer,
    Sum,
    Unpenalized,
)


@runtime_checkable
class Activation(Protocol):
    """Which blocks act in a round."""

    def active(self, round_: int, blocks: int) -> IntArray:
        """Sorted indices of the blocks of a round."""
        ...


@dataclass(frozen=True)
class AllBlocks:
    """Every block in every round."""

    def active(self, round_: int, blocks: int) -> IntArray:
        return np.arange(blocks, dtype=np.int64)


@dataclass(frozen=True)
class CyclicBlocks:
    """One block a round, in order."""

    def active(self, round_: int, blocks: int) -> IntArray:
        return np.array([round_ % blocks], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class RandomBlock:
    """One block a round, uniform, independent over rounds."""

    seed: int = 0

    def active(self, round_: int, blocks: int) -> IntArray:
        return public_coins(self.seed, round_).integers(blocks, size=1, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class SampledBlocks:
    """Each block with probability `rate`, independently: the activation of the utility theorem. May be nobody."""

    rate: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InputError(f"SampledBlocks(rate={self.rate}): a rate lies in (0, 1]; use AllBlocks() to take all.")

    def active(self, round_: int, blocks: int) -> IntArray:
        """Those whose coin came up."""
        return np.flatnonzero(public_coins(self.seed, round_).random(blocks) < self.rate).astype(np.int64)


def public_coins(seed: int, round_: int) -> np.random.Generator:
    """Coins of a round that everybody who knows the public seed can flip."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, round_], dtype=np.uint64)))


def block_sizes(owner: str, blocks: int | tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Sizes of contiguous blocks: given, or as equal as `blocks` of them can be."""
    if isinstance(blocks, tuple):
        if any(size < 1 for size in blocks) or sum(blocks) != dim:
            raise InputError(
                f"{owner}(blocks={blocks}): block sizes are positive and add up to the length of the model, {dim}."
            )
        return blocks
    if not 1 <= blocks <= dim:
        raise InputError(f"{owner}(blocks={blocks}): between 1 and {dim} blocks fit the model; use 1 for none.")
    size, longer = divmod(dim, blocks)
    return (size + 1,) * longer + (size,) * (blocks - longer)


def coordinates(sizes: tuple[int, ...], active: IntArray) -> IntArray:
    """Coordinates of the active blocks, sorted."""
    inside = np.zeros(len(sizes), dtype=np.bool_)
    inside[active] = True
    return np.flatnonzero(np.repeat(inside, sizes)).astype(np.int64, copy=False)


def is_separable(regularizer: Regularizer, sizes: tuple[int, ...]) -> bool:
    """Whether the prox of each block depends on that block alone."""
    match regularizer:
        case NoPenalty() | L1() | L2() | ElasticNet() | Box():
            return True
        case Unpenalized(inner=inner, last=last):
            return is_separable(inner, _shorten(sizes, last))
        case Sum(parts=parts):
            return all(is_separable(part, sizes) for part in parts)
        case GroupL1(groups=groups):
            dim = sum(sizes)
            ends = np.cumsum(groups if isinstance(groups, tuple) else (groups,) * (dim // groups))
            return bool(np.isin(np.cumsum(sizes), ends).all())
    return len(sizes) == 1


def _shorten(sizes: tuple[int, ...], last: int) -> tuple[int, ...]:
    """The sizes of what blocks keep of a vector without its last coordinates."""
    ends = np.minimum(np.cumsum(sizes), max(sum(sizes) - last, 0))
    kept: Array = np.diff(ends, prepend=0)
    return tuple(int(size) for size in kept if size > 0)
