"""What noise costs: the safe sampler by entry, the seeded one against NumPy's generator on the same array.

The target of the seeded sampler: 6.4e6 normals (100,000 parties of 64) within twice `Generator.standard_normal`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np

from benchmarks.measure import Figure, best
from consenso.privacy.samplers import Key, Safe, Seeded


def run() -> Iterator[Figure]:
    """Seconds, and ratios measured in turns in one run, so that a busy machine slows both sides down."""
    for entries in (100, 10_000):
        values, key = np.zeros((1, entries)), _key(1)
        for kind in ("gaussian", "laplace"):
            draw = getattr(Safe(), kind)
            draw(values[:, :1], 1.0, key, sensitivity=1.0)
            (own,) = best(lambda draw=draw, values=values, key=key: draw(values, 1.0, key, sensitivity=1.0))
            yield Figure(f"safe {kind}, {entries} entries", own, "s")
    values, key, generator = np.zeros((100_000, 64)), _key(100_000), np.random.default_rng(0)
    threads = numba.get_num_threads()
    for kind in ("gaussian", "laplace", "gamma_norm"):
        draw = getattr(Seeded(0), kind)
        for used in sorted({1, threads}):
            numba.set_num_threads(used)
            draw(values, 1.0, key, sensitivity=1.0)
            ours, numpys = best(
                lambda draw=draw: draw(values, 1.0, key, sensitivity=1.0),
                lambda: generator.standard_normal(values.shape),
            )
            limit = 2.0 if kind == "gaussian" else None
            yield Figure(
                f"seeded {kind}, 100000 x 64, {used} thread(s), over NumPy's normals", ours / numpys, limit=limit
            )
    numba.set_num_threads(threads)
    small, one = np.zeros((1, 64)), _key(1)
    (own,) = best(lambda: Seeded(0).gaussian(small, 1.0, one, sensitivity=1.0))
    yield Figure("seeded gaussian, 1 x 64", own, "s")


def _key(parties: int) -> Key:
    return Key(parties=np.arange(parties), round=0, release=0, repetition=0)
