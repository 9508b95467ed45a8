"""Random walks over parties of one record each, many rounds in one compiled call.

A round of a walk is a handful of operations on one vector, and the plain round pays a thousand times that to arrange
it. What is here draws the hops and the noise ahead, from the counters of the plain round; the rounds themselves are the
algorithm's (`CompiledRounds`). A round whose prox they cannot certify is left to the plain one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from consenso.algorithms.shape import WalkRounds
from consenso.arrays import Array, IntArray
from consenso.engine.coins import make_key
from consenso.engine.release_records import VisitRecords
from consenso.planning.plan import Plan
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.release import NOISE_STREAM
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.samplers import Key, Seeded
from consenso.schedules import ROUND, RandomWalk

if TYPE_CHECKING:
    from consenso.engine.in_process import InProcessRun

# Rounds after which a walk comes back to its caller, who may want to show how far it is.
BLOCK = 50_000
# Noise is drawn ahead this many numbers at a time, so that it is still in the cache when the rounds get to it.
AHEAD_NUMBERS = 1 << 17


class CompiledWalk:
    """The rounds of one run."""

    def __init__(self, plan: Plan, rounds: WalkRounds) -> None:
        assert isinstance(plan.schedule, RandomWalk)
        assert isinstance(plan.sampler, Seeded)
        self._rounds, self._plan = rounds, plan
        self._seed = np.uint64(plan.sampler.seed)
        declaration = plan.algorithm.releases
        (release,) = plan.remember(declaration)(plan.facts)
        self._name = release.name
        sensitivity = plan.sensitivity(release, plan.facts, largest_bounds(plan, declaration, 0)[release.name])
        self._sensitivities = np.broadcast_to(np.asarray(sensitivity, dtype=np.float64), (plan.parties,))
        topology = plan.schedule.topology
        graph = None if topology is None else topology.adjacency.sorted_indices()
        nowhere = np.empty(0, dtype=np.int64)
        self._pointers = nowhere if graph is None else graph.indptr.astype(np.int64)
        self._neighbors = nowhere if graph is None else graph.indices.astype(np.int64)
        coin = make_key(0, ROUND)
        self._coin, self._coin_counter = int(coin.parties[0]), _upper(coin)
        self._noise_counter = _upper(Key(parties=coin.parties, round=0, release=0, repetition=0, stream=NOISE_STREAM))
        self._reach = BLOCK

    def run(self, run: InProcessRun, stop: int) -> int:
        """Run rounds up to `stop`, and at most a block of them; how many were done before one that is not certified."""
        first = run.round
        path = self._path(run.previous, first, min(stop - first, self._reach))
        scales = self._scales(path, first)
        done = self._follow(run, path, scales)
        # Noise beyond a round that is not certified was drawn for nothing, so the next attempt is a short one.
        self._reach = min(BLOCK, 2 * self._reach) if done == len(path) else 1
        if done:
            run.entries.extend(VisitRecords(first, self._name, path[:done], scales[:done]))
            run.previous = path[done - 1 : done].copy()
            run.round = first + done
        return done

    def _follow(self, run: InProcessRun, path: IntArray, scales: Array) -> int:
        here, ahead = self._buffers
        length, first, done = len(here), run.round, 0
        self._draw(path[:length], first, here)
        while done < len(path):
            piece, following = slice(done, done + length), path[done + length : done + 2 * length]
            # While the rounds of one piece run, another thread draws the noise of the next.
            beyond = following, first + done + length, ahead
            drawn = self._pool.submit(self._draw, *beyond) if len(following) else None
            run.hub, count = self._rounds(run.hub, run.state, path[piece], scales[piece], here)
            done += count
            if drawn is None:
                break
            # On a busy machine the other thread may not have had its turn: then this one draws.
            waiting = drawn.cancel()
            if not waiting:
                drawn.result()
            if count < length:
                break
            if waiting:
                self._draw(*beyond)
            here, ahead = ahead, here
        return done

    def _path(self, previous: IntArray | None, first: int, count: int) -> IntArray:
        from consenso.engine.walk_draws import hop

        path = np.empty(count, dtype=np.int64)
        here = -1 if previous is None else int(previous[0])
        graph = self._pointers, self._neighbors, self._plan.parties
        hop(self._seed, self._coin, self._coin_counter, *graph, here, first, path)
        return path

    def _scales(self, path: IntArray, first: int) -> Array:
        """Noise scales as the releaser would draw them, (rounds,)."""
        noise = self._plan.noise_for(self._name)
        if isinstance(noise, NoNoise):
            return np.zeros(len(path))
        assert isinstance(noise, GaussianNoise)
        if isinstance(noise.multiplier, float | int):
            return noise.scale(self._sensitivities[path], first)
        factors: Array = np.array([noise.scale(1.0, first + k) for k in range(len(path))])
        return self._sensitivities[path] * factors

    def _draw(self, path: IntArray, first: int, out: Array) -> None:
        """Write the normals of a path into the first rows of `out`."""
        from consenso.engine.walk_draws import draw_noise

        if not isinstance(self._plan.noise_for(self._name), NoNoise):
            draw_noise(self._seed, self._noise_counter, path, first, out)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """One thread for the whole run; it ends when the walk is let go."""
        return ThreadPoolExecutor(1)

    @cached_property
    def _buffers(self) -> tuple[Array, Array]:
        shape = min(BLOCK, max(1, AHEAD_NUMBERS // self._plan.facts.dim)), self._plan.facts.dim
        return np.zeros(shape), np.zeros(shape)


def _upper(key: Key) -> tuple[np.uint64, np.uint64]:
    """The words of a key that do not change from round to round."""
    _, second, third = key.counter
    return np.uint64(second), np.uint64(third)
