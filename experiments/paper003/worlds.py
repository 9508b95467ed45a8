"""MNIST for ten agents and FEMNIST for its writers, whole or a first part of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.datasets import load_femnist, load_mnist
from experiments.paper003.blocks import Blocks

AGENTS = 10  # of MNIST
SETS = ("MNIST", "FEMNIST")
CLASSES = {"MNIST": 10, "FEMNIST": 62}


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Images agent after agent, rows within [0, 1] and single precision, as the public code has them."""

    X: Any
    y: IntArray
    offsets: IntArray
    X_test: Any
    y_test: IntArray
    classes: int

    @property
    def agents(self) -> int:
        """How many agents hold the images."""
        return len(self.offsets) - 1

    @cached_property
    def _blocks(self) -> Blocks:
        return Blocks.of(self.X, self.offsets)

    @cached_property
    def blocks(self) -> tuple[Any, ...]:
        """Starts, columns, values and rows of the blocks of images, and the 1-norms of the images."""
        made = self._blocks
        return made.starts, made.columns, made.values, made.rows, self.X.sum(axis=1)

    def blocks_of(self, agent: int) -> tuple[int, int]:
        """First block of an agent and the one after its last."""
        return int(self._blocks.agents[agent]), int(self._blocks.agents[agent + 1])

    @cached_property
    def longest(self) -> float:
        """Bound of a record's gradient, as the data have it: sqrt(2) times the longest row."""
        return float(np.sqrt(2 * np.einsum("ij,ij->i", self.X, self.X).max()))

    def test_error(self, w: Array) -> float:
        """Share of test images that a model (features, classes) gets wrong, in per cent."""
        return float(100 * np.mean((self.X_test @ w).argmax(axis=1) != self.y_test))


@cache
def world(name: str, images: int) -> World:
    """The first `images` of MNIST in equal parts, or FEMNIST by writer (whole, whatever `images` says)."""
    if name == "MNIST":
        data = load_mnist()
        X, y = np.asarray(data.X)[:images], np.asarray(data.y)[:images]
        order = np.arange(images)  # the public code splits the file into equal parts
        sizes = np.diff(np.linspace(0, images, AGENTS + 1).astype(int))
    else:
        data = load_femnist()
        X, y, users = np.asarray(data.X), np.asarray(data.y), np.asarray(data.users)
        order = np.argsort(users, kind="stable")
        sizes = np.unique(users, return_counts=True)[1]
    return World(
        X=np.ascontiguousarray(X[order], dtype=np.float32),
        y=y[order],
        offsets=np.concatenate(([0], np.cumsum(sizes))),
        X_test=np.asarray(data.X_test, dtype=np.float32),
        y_test=np.asarray(data.y_test),
        classes=CLASSES[name],
    )
