"""What a fit does to every row by itself once bounds and weights are known: in memory, in storage, or on workers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from consenso.arrays import Array
from consenso.estimators.row_map import RowMap
from consenso.estimators.weights import codes_of
from consenso.shards.cluster import ClusterBatches
from consenso.shards.stored import RowBatch, RowBatches


@dataclass(frozen=True, kw_only=True, eq=False)
class RowChange:
    """Columns on one scale, targets around their middle, and weights times those of classes, (classes,).

    weight_bound: what weights are at most after that.
    """

    rows: RowMap
    middle: float
    class_weights: Array | None
    weight_bound: float

    def __call__(self, batch: RowBatch) -> RowBatch:
        """The rows as they are fitted; they are shortened to their bound later."""
        weights = batch.weights
        if self.class_weights is not None:
            own = self.class_weights[codes_of(batch.targets, len(self.class_weights))]
            weights = np.minimum(own if weights is None else own * weights, self.weight_bound)
        targets = batch.targets - self.middle if self.middle else batch.targets
        return RowBatch(self.rows.scale(batch.X), targets, weights)


@dataclass(frozen=True, eq=False)
class ChangedBatches:
    """Batches, each after a change."""

    batches: RowBatches
    change: RowChange

    @property
    def shape(self) -> tuple[int, int]:
        return self.batches.shape

    @property
    def count(self) -> int:
        """How many batches there are."""
        return self.batches.count

    def __iter__(self) -> Iterator[RowBatch]:
        return map(self.change, self.batches)

    def batch(self, place: int) -> RowBatch:
        return self.change(self.batches.batch(place))

    def fingerprint(self) -> str:
        """That of the batches as they are stored."""
        return self.batches.fingerprint()


class ChangedOnCluster(ChangedBatches):
    """The same on the workers that hold them."""

    @property
    def client(self) -> Any:
        """Who talks to the scheduler."""
        assert isinstance(self.batches, ClusterBatches)
        return self.batches.client


def change_batches(batches: RowBatches, change: RowChange) -> RowBatches:
    """Batches after a change, where they are."""
    return (ChangedOnCluster if isinstance(batches, ClusterBatches) else ChangedBatches)(batches, change)
