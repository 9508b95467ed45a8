"""The coins of a schedule, from a run's own source of randomness, apart from its noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from consenso.arrays import Array
from consenso.privacy.release import HUB
from consenso.privacy.samplers import Key, Sampler
from consenso.schedules import LASTING_STREAMS

SCHEDULE_STREAM = 2


@dataclass(frozen=True, kw_only=True)
class DrawnCoins:
    """Coins drawn from a sampler as the hub.

    A draw that several rounds share (an order, a stopping time) is kept with the progress of the run: a sampler for
    deployment would not give it a second time.
    """

    sampler: Sampler
    kept: dict[str, list[float]]

    def __call__(self, round_: int, stream: int, count: int) -> Array:
        """Uniform numbers in (0, 1)."""
        name = f"{stream}/{round_}"
        if stream in LASTING_STREAMS and name in self.kept:
            return np.array(self.kept[name])
        drawn: Array = self.sampler.uniform(self.key(round_, stream), count)[0]
        if stream in LASTING_STREAMS:
            self.kept[name] = drawn.tolist()
        return drawn

    def key(self, round_: int, stream: int) -> Key:
        """Which draw the coins of a round are."""
        hub = np.array([HUB], dtype=np.int64)
        return Key(parties=hub, round=round_, release=stream, repetition=0, stream=SCHEDULE_STREAM)
