"""The coins of a schedule, from a run's own source of randomness, apart from its noise."""

from __future__ import annotations

import numpy as np

from consenso.arrays import Array
from consenso.privacy.release import HUB
from consenso.privacy.samplers import Key, Sampler
from consenso.schedules import LASTING_STREAMS, Coins

SCHEDULE_STREAM = 2


def make_coins(sampler: Sampler, kept: dict[str, list[float]] | None = None) -> Coins:
    """Coins drawn from a sampler as the hub: uniform numbers in (0, 1).

    A draw that several rounds share (an order, a stopping time) goes into `kept`, which belongs to where the run
    stands: a sampler for deployment would not give it a second time.
    """
    lasting: dict[str, list[float]] = {} if kept is None else kept

    def coins(round_: int, stream: int, count: int) -> Array:
        name = f"{stream}/{round_}"
        if stream in LASTING_STREAMS and name in lasting:
            return np.array(lasting[name])
        drawn: Array = sampler.uniform(make_key(round_, stream), count)[0]
        if stream in LASTING_STREAMS:
            lasting[name] = drawn.tolist()
        return drawn

    return coins


def make_key(round_: int, stream: int) -> Key:
    """Which draw the coins of a round are."""
    hub = np.array([HUB], dtype=np.int64)
    return Key(parties=hub, round=round_, release=stream, repetition=0, stream=SCHEDULE_STREAM)
