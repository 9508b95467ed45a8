"""Random walks over parties of one record each, many rounds in one compiled call.

A round of a walk is a handful of operations on one vector, and the general engine pays a thousand times that to arrange
it. `compile_walk` gives the same rounds compiled: the same hops and the same noise, drawn from the same counters, so
that the model is the general engine's up to rounding and the ledger is the same. Where it returns None, and in every
round that the compiled prox cannot certify, the general engine runs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM, Hub, State
from consenso.algorithms.stateless_walk import StatelessWalk, Token
from consenso.arrays import Array, IntArray
from consenso.engine.coins import DrawnCoins
from consenso.engine.release_records import VisitRecords
from consenso.engine.single_record_parties import records_of
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.release import NOISE_STREAM
from consenso.privacy.run_spec import RunSpec, largest_bounds
from consenso.privacy.samplers import Key, Seeded
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty, Regularizer, Unpenalized
from consenso.schedules import ROUND, Coins, RandomWalk
from consenso.shards import Shards

if TYPE_CHECKING:
    from consenso.engine.in_process import Progress

# Rounds after which a walk comes back to its caller, who may want to show how far it is.
BLOCK = 50_000
# Noise is drawn ahead this many numbers at a time, so that it is still in the cache when the rounds get to it.
AHEAD_NUMBERS = 1 << 17

Shrinkage: TypeAlias = tuple[Array, Array, Array, Array]
# Takes the hub and the states, a path, its noise scales and its normals; the hub after as many rounds as were done.
Rounds: TypeAlias = Callable[[Any, Any, IntArray, Array, Array], tuple[Any, int]]


def compile_walk(algorithm: object, spec: RunSpec, shards: Shards, coins: Coins) -> CompiledWalk | None:
    """The compiled rounds of a run, or None where there are none for it.

    There are for `StatelessWalk` and `ConsensusADMM` on a `RandomWalk`, under local trust and without a probe, with
    seeded Gaussian noise, dense rows, one for each party, scalar losses and regularizers that act on each coordinate.
    """
    policy = spec.policy
    if (
        not isinstance(spec.schedule, RandomWalk)
        or not isinstance(policy.sampler, Seeded)
        or not (isinstance(coins, DrawnCoins) and coins.sampler == policy.sampler)
        or policy.trust != "local"
        or policy.probe is not None
    ):
        return None
    rounds = _rounds(algorithm, spec, shards)
    if rounds is None or not isinstance(policy.noise_for("residual"), GaussianNoise | NoNoise):
        return None
    return CompiledWalk(algorithm, spec, coins, rounds)


class CompiledWalk:
    """The rounds of one run."""

    def __init__(self, algorithm: Any, spec: RunSpec, coins: DrawnCoins, rounds: Rounds) -> None:
        assert isinstance(spec.schedule, RandomWalk)
        assert isinstance(spec.policy.sampler, Seeded)
        self._rounds, self._setting = rounds, spec
        self._seed = np.uint64(spec.policy.sampler.seed)
        (release,) = spec.declared(algorithm.releases)(spec.facts)
        self._name = release.name
        largest = largest_bounds(spec, algorithm.releases, 0)[release.name]
        sensitivity = spec.policy.sensitivity(release, spec.facts, largest)
        self._sensitivities = np.broadcast_to(np.asarray(sensitivity, dtype=np.float64), (spec.parties,))
        topology = spec.schedule.topology
        graph = None if topology is None else topology.adjacency.sorted_indices()
        nowhere = np.empty(0, dtype=np.int64)
        self._pointers = nowhere if graph is None else graph.indptr.astype(np.int64)
        self._neighbors = nowhere if graph is None else graph.indices.astype(np.int64)
        coin = coins.key(0, ROUND)
        self._coin, self._coin_counter = int(coin.parties[0]), _upper(coin)
        self._noise_counter = _upper(Key(parties=coin.parties, round=0, release=0, repetition=0, stream=NOISE_STREAM))
        self._reach = BLOCK

    def run(self, progress: Progress, stop: int) -> int:
        """Run rounds up to `stop`, and at most a block of them; how many were done before one that is not certified."""
        first = progress.round
        path = self._path(progress.previous, first, min(stop - first, self._reach))
        scales = self._scales(path, first)
        done = self._follow(progress, path, scales)
        # Noise beyond a round that is not certified was drawn for nothing, so the next attempt is a short one.
        self._reach = min(BLOCK, 2 * self._reach) if done == len(path) else 1
        if done:
            progress.entries.extend(VisitRecords(first, self._name, path[:done], scales[:done]))
            progress.previous = path[done - 1 : done].copy()
            progress.round = first + done
        return done

    def _follow(self, progress: Progress, path: IntArray, scales: Array) -> int:
        here, ahead = self._buffers
        length, first, done = len(here), progress.round, 0
        self._draw(path[:length], first, here)
        while done < len(path):
            piece, following = slice(done, done + length), path[done + length : done + 2 * length]
            # While the rounds of one piece run, another thread draws the noise of the next.
            beyond = following, first + done + length, ahead
            drawn = self._pool.submit(self._draw, *beyond) if len(following) else None
            progress.hub, count = self._rounds(progress.hub, progress.state, path[piece], scales[piece], here)
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
        graph = self._pointers, self._neighbors, self._setting.parties
        hop(self._seed, self._coin, self._coin_counter, *graph, here, first, path)
        return path

    def _scales(self, path: IntArray, first: int) -> Array:
        """Noise scales as the releaser would draw them, (rounds,)."""
        noise = self._setting.policy.noise_for(self._name)
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

        if not isinstance(self._setting.policy.noise_for(self._name), NoNoise):
            draw_noise(self._seed, self._noise_counter, path, first, out)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """One thread for the whole run; it ends when the walk is let go."""
        return ThreadPoolExecutor(1)

    @cached_property
    def _buffers(self) -> tuple[Array, Array]:
        shape = min(BLOCK, max(1, AHEAD_NUMBERS // self._setting.facts.dim)), self._setting.facts.dim
        return np.zeros(shape), np.zeros(shape)


def _upper(key: Key) -> tuple[np.uint64, np.uint64]:
    """The words of a key that do not change from round to round."""
    _, second, third = key.counter
    return np.uint64(second), np.uint64(third)


def _rounds(algorithm: object, spec: RunSpec, shards: Shards) -> Rounds | None:
    # A subclass may have another step, so the types are exact.
    if type(algorithm) is ConsensusADMM:
        return _consensus_rounds(algorithm, spec, shards)
    if type(algorithm) is StatelessWalk:
        return _stateless_rounds(algorithm, spec, shards)
    return None


def _consensus_rounds(algorithm: ConsensusADMM, spec: RunSpec, shards: Shards) -> Rounds | None:
    records = records_of(spec, shards, algorithm.step)
    shrinkage = _shrinkage(spec.facts.problem.regularizer, algorithm.step, spec.facts.dim)
    if records is None or shrinkage is None:
        return None
    clip = np.inf if algorithm.clip is None else algorithm.clip
    constants = *records, shrinkage, algorithm.tolerance, float(clip), float(algorithm.relaxation)

    def rounds(hub: Hub, state: State, path: IntArray, scales: Array, noise: Array) -> tuple[Hub, int]:
        from consenso.engine.walk_kernels import consensus_rounds

        mean, z = hub.mean.copy(), hub.z.copy()
        done = consensus_rounds(*constants, path, scales, noise, (mean, z), state.u)
        return Hub(mean=mean, z=z), done

    return rounds


def _stateless_rounds(algorithm: StatelessWalk, spec: RunSpec, shards: Shards) -> Rounds | None:
    share = 2 * algorithm.relaxation / spec.parties
    records = records_of(spec, shards, algorithm.step)
    shrinkage = _shrinkage(spec.facts.problem.regularizer, share * algorithm.step, spec.facts.dim)
    if records is None or shrinkage is None:
        return None
    constants = *records, shrinkage, algorithm.tolerance, share

    def rounds(hub: Token, state: object, path: IntArray, scales: Array, noise: Array) -> tuple[Token, int]:
        from consenso.engine.walk_kernels import stateless_rounds

        z = hub.z.copy()
        done = stateless_rounds(*constants, path, scales, noise, z)
        return Token(z=z), done

    return rounds


def _shrinkage(regularizer: Regularizer, step: float, dim: int) -> Shrinkage | None:
    """Thresholds, factors and bounds of a prox that acts on each coordinate, (dim,) each."""
    threshold, factor, low, high = 0.0, 1.0, -np.inf, np.inf
    match regularizer:
        case NoPenalty():
            pass
        case L1():
            threshold = step * regularizer.strength
        case L2():
            factor = 1.0 / (1.0 + step * regularizer.strength)
        case ElasticNet():
            threshold, factor = step * regularizer.l1, 1.0 / (1.0 + step * regularizer.l2)
        case Box():
            low, high = regularizer.low, regularizer.high
        case Unpenalized() if dim > regularizer.last:
            inner = _shrinkage(regularizer.inner, step, dim - regularizer.last)
            free = _shrinkage(NoPenalty(), step, regularizer.last)
            if inner is None or free is None:
                return None
            thresholds, factors, lows, highs = (np.concatenate(both) for both in zip(inner, free, strict=True))
            return thresholds, factors, lows, highs
        case _:
            return None
    return np.full(dim, threshold), np.full(dim, factor), np.full(dim, low), np.full(dim, high)
