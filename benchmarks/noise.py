"""What noise costs: the safe sampler by entry, the seeded one against NumPy's generator on the same array.

The target of the seeded sampler: 6.4e6 normals (100,000 parties of 64) within twice `Generator.standard_normal`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numba
import numpy as np

from consenso.privacy.samplers import Key, Safe, Seeded


def run() -> dict[str, float]:
    """Seconds, and ratios measured in turns in one run, so that a busy machine slows both sides down."""
    figures: dict[str, float] = {}
    for entries in (100, 10_000):
        values, key = np.zeros((1, entries)), _key(1)
        for kind in ("gaussian", "laplace"):
            draw = getattr(Safe(), kind)
            draw(values[:, :1], 1.0, key, sensitivity=1.0)
            seconds, _ = _best(lambda draw=draw, values=values, key=key: draw(values, 1.0, key, sensitivity=1.0))
            figures[f"safe {kind}, {entries} entries, seconds"] = seconds
    values, key, generator = np.zeros((100_000, 64)), _key(100_000), np.random.default_rng(0)
    threads = numba.get_num_threads()
    for kind in ("gaussian", "laplace", "gamma_norm"):
        draw = getattr(Seeded(0), kind)
        for used in sorted({1, threads}):
            numba.set_num_threads(used)
            draw(values, 1.0, key, sensitivity=1.0)
            ours, numpys = _best(
                lambda draw=draw: draw(values, 1.0, key, sensitivity=1.0),
                lambda: generator.standard_normal(values.shape),
            )
            figures[f"seeded {kind}, 100000 x 64, {used} thread(s), seconds"] = ours
            figures[f"seeded {kind}, 100000 x 64, {used} thread(s), over NumPy's normals on one"] = ours / numpys
    numba.set_num_threads(threads)
    small, one = np.zeros((1, 64)), _key(1)
    figures["seeded gaussian, 1 x 64, seconds"], _ = _best(lambda: Seeded(0).gaussian(small, 1.0, one, sensitivity=1.0))
    return figures


def _key(parties: int) -> Key:
    return Key(parties=np.arange(parties), round=0, release=0, repetition=0)


def _best(first: Callable[[], object], second: Callable[[], object] = lambda: None) -> tuple[float, float]:
    """The best of a few turns of each."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(7):
        for call, kept in zip((first, second), times, strict=True):
            start = perf_counter()
            call()
            kept.append(perf_counter() - start)
    return min(times[0]), min(times[1])


if __name__ == "__main__":
    for name, figure in run().items():
        print(f"{name:75s} {figure:.3g}")
