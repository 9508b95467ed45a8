"""What a round of a hub algorithm costs: beside a gradient pass, beside loops, in memory, and as parties are added."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from benchmarks.measure import Figure, best
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.stateless_walk import StatelessWalk
from consenso.arrays import Array
from consenso.datasets import load_adult, load_mnist
from consenso.engine.in_process import InProcessRun
from consenso.engine.run import run as run_plan
from consenso.losses import Logistic, Softmax
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, NoPenalty
from consenso.schedules import RandomWalk
from consenso.shards import Shards
from consenso.subproblems.batch import ROUNDING

MANY, WIDTH = 100_000, 64
LOOPED, STD = 500, 2.0  # users of the loops, and the scale of their noise


def run() -> Iterator[Figure]:
    """All figures."""
    yield _pass_over_adult()
    yield _pass_over_mnist()
    yield from _against_loops()
    yield _memory_of_a_million()
    yield _walk()
    yield from _growth()


def _rounds(
    problem: Problem, algorithm: Any, rows: Array, targets: Any, *, one_by_one: bool = False, **settings: Any
) -> Any:
    """A function that runs one round more."""
    made = plan(problem, algorithm, rounds=10_000, noise=GaussianNoise(multiplier=1.0), **settings)
    shards = Shards.build(problem, rows, targets, np.concatenate(([0], np.cumsum(problem.sizes))))
    rounds = InProcessRun(made, shards, stride=1, one_by_one=one_by_one).rounds()
    return lambda: next(rounds)


def _pass_over_adult() -> Figure:
    if "CONSENSO_DATA" in os.environ:
        adult = load_adult(preprocessing="paper", split=False)
        rows, labels = adult.X, adult.y
    else:
        rows, labels = _made_up(45_222, 104)
    problem = _problem([len(rows)], rows.shape[1])
    w = np.random.default_rng(0).normal(size=rows.shape[1])
    whole, bare = best(
        _rounds(problem, DualConsensusADMM(), rows, labels, trust="curator"),
        lambda: rows.T @ (-labels * expit(-labels * (rows @ w))),
        repeats=15,
    )
    return Figure("DualConsensusADMM by record, Adult, over a gradient pass", whole / bare, limit=1.5)


def _pass_over_mnist() -> Figure:
    if "CONSENSO_DATA" in os.environ:
        mnist = load_mnist()
        rows, digits = mnist.X.astype(np.float64), mnist.y.astype(np.int64)
    else:
        rows, labels = _made_up(60_000, 784)
        digits = (labels > 0).astype(np.int64)
    rows = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    problem = Problem(
        loss=Softmax(classes=10), regularizer=NoPenalty(), features=rows.shape[1], sizes=[len(rows)], row_bound=1.0
    )
    w, chosen = np.random.default_rng(0).normal(size=(rows.shape[1], 10)), np.eye(10)[digits]
    whole, bare = best(
        _rounds(problem, DualConsensusADMM(), rows, digits, trust="curator"),
        lambda: rows.T @ (softmax(rows @ w, axis=1) - chosen),
        repeats=5,
    )
    return Figure("DualConsensusADMM by record, MNIST softmax, over a gradient pass", whole / bare, limit=1.5)


def _against_loops() -> Iterator[Figure]:
    """A loop in Python over users, doing for each what a round of ConsensusADMM does for all 100,000, over that round.

    The limit is on the loop that does the same arithmetic: the library's own step for each user in turn, as a
    deployment makes it, with prox, certificate, releaser and ledger. The other figures have no limit. They say how much
    of it a loop saves that is written by hand for this one problem: for each user its prox, certified to the same
    tolerance, the check that what is released is finite, normals, state, message, and the sum. Its normals come from
    Philox keyed by seed, user and round. Making a generator for every user takes NumPy longer than drawing from it: one
    that is moved from key to key by its state costs less, and one stream for all users, whose noise then depends on who
    else takes part, costs least.
    """
    rows, labels = _made_up(MANY, WIDTH)
    problem, algorithm = _problem(np.ones(MANY, dtype=int), WIDTH, unit="party"), ConsensusADMM()
    few = _problem(np.ones(LOOPED, dtype=int), WIDTH, unit="party")
    loop = Loop(rows[:LOOPED], labels[:LOOPED], algorithm.tolerance)
    apart = _without_noise(few, algorithm, rows[:LOOPED], labels[:LOOPED])
    if not apart <= 1e-10:
        raise ArithmeticError(f"the loop and a round are {apart:g} apart, and are not the same arithmetic")
    round_ = _rounds(problem, algorithm, rows, labels)
    loops = {
        "a loop by hand with a keyed generator for each user": keyed,
        "the loop by hand, one generator moved from key to key": moved,
        "the loop by hand, one stream of normals for all": streamed,
    }
    # Many short turns: a round wants both cores, and on a shared machine has them now and then.
    whole, *times = best(round_, *(partial(loop.round, draw) for draw in loops.values()), repeats=60)
    for (name, draw), each in zip(loops.items(), times, strict=True):
        note = f"{1e6 * each / LOOPED:.1f} microseconds a user"
        if draw is keyed:
            note += f", a round {1e6 * whole / MANY:.3f}; without noise {apart:.0e} apart"
        yield Figure(f"{name}, over a round", each / LOOPED * MANY / whole, note=note)
    whole, each = best(round_, _rounds(few, algorithm, rows[:LOOPED], labels[:LOOPED], one_by_one=True), repeats=5)
    yield Figure(
        "a Python loop over users doing the same step, over a round",
        each / LOOPED * MANY / whole,
        limit=200,
        at_most=False,
        note=f"{1e6 * each / LOOPED:.1f} microseconds a user",
    )


Draw = Callable[[int, int], Array]


class Loop:
    """ConsensusADMM with step 1 and relaxation 1/2, without a regularizer, user by user."""

    def __init__(self, rows: Array, labels: Array, tolerance: float) -> None:
        self.rows, self.labels, self.tolerance = rows, labels.tolist(), tolerance
        self.norms = np.einsum("ij,ij->i", rows, rows).tolist()
        self.states, self.mean, self.rounds = np.zeros_like(rows), np.zeros(rows.shape[1]), 0

    def round(self, draw: Draw | None) -> None:
        """One round; `draw` gives the normals of a user in a round."""
        z, total = self.mean, np.zeros_like(self.mean)
        for i, (row, label, norm) in enumerate(zip(self.rows, self.labels, self.norms, strict=True)):
            state = self.states[i]
            v = 2 * z - state
            score, slope, change = float(row @ v), -label / 2, math.inf
            while abs(change) > self.tolerance:  # Newton's method for the slope of the logistic loss at the prox
                p = 1 / (1 + math.exp(label * (score - norm * slope)))
                change = (slope + label * p) / (1 + norm * p * (1 - p))
                slope -= change
            x = v - slope * row
            # The certificate of the prox: the gradient at x, and rounding.
            gap = abs(slope + label / (1 + math.exp(label * float(row @ x))))
            if not gap + ROUNDING * (math.sqrt(x @ x) + math.sqrt(v @ v) + abs(slope)) <= self.tolerance:
                raise ArithmeticError("a prox is not certified")
            increment = x - z
            if not np.isfinite(increment).all():
                raise ArithmeticError("a residual is not finite")
            if draw is not None:
                increment += STD * draw(i, self.rounds)
            state += increment
            total += increment
        self.mean, self.rounds = z + total / len(self.rows), self.rounds + 1


KEY, COUNTER = np.zeros(2, dtype=np.uint64), np.zeros(4, dtype=np.uint64)
GENERATOR = np.random.Generator(np.random.Philox(0))
PLACE = GENERATOR.bit_generator.state | {"buffer_pos": 4, "has_uint32": 0}


def keyed(user: int, round_: int) -> Array:
    """Normals from a generator of the user's own."""
    KEY[1], COUNTER[1] = user, round_
    return np.random.Generator(np.random.Philox(key=KEY, counter=COUNTER)).standard_normal(WIDTH)


def moved(user: int, round_: int) -> Array:
    """The same normals, from one generator for all users."""
    KEY[1], COUNTER[1] = user, round_
    PLACE["state"] = {"key": KEY, "counter": COUNTER}
    GENERATOR.bit_generator.state = PLACE
    return GENERATOR.standard_normal(WIDTH)


def streamed(user: int, round_: int) -> Array:
    """Whatever normals come next."""
    return GENERATOR.standard_normal(WIDTH)


def _without_noise(problem: Problem, algorithm: ConsensusADMM, rows: Array, labels: Array) -> float:
    """How far the loop and the engine are apart after three rounds without noise, in states and model."""
    made = plan(problem, algorithm, rounds=3, noise=NoNoise())
    shards = Shards.build(problem, rows, labels, np.arange(len(rows) + 1))
    at, loop = InProcessRun(made, shards), Loop(rows, labels, algorithm.tolerance)
    for _ in at.rounds():
        loop.round(None)
    pairs = (at.state.u, loop.states), (at.hub.z, loop.mean)
    return max(float(np.abs(one - other).max()) for one, other in pairs)


MILLION = """
import resource
import numpy as np
from benchmarks.hub import _made_up, _problem, _rounds
from consenso.algorithms.consensus import ConsensusADMM
rows, labels = _made_up(1_000_000, 64)
step = _rounds(_problem(np.ones(1_000_000, dtype=int), 64, unit="party"), ConsensusADMM(), rows, labels)
step(); step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def _memory_of_a_million() -> Figure:
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True)
    return Figure("peak memory of 1,000,000 users of 64 features, 2 rounds", float(done.stdout), "GB", limit=3.0)


def _walk() -> Figure:
    """A step of the walk in NumPy, with noise from NumPy's generator, over a compiled one.

    The compiled step draws noise in a second thread, or in its own where that one gets no turn: with both cores busy
    elsewhere it takes up to twice as long.
    """
    users, steps, looped = 10_000, 200_000, 500
    rows, labels = _made_up(users, WIDTH)
    problem = _problem(np.ones(users, dtype=int), WIDTH, unit="party", regularizer=L1(strength=1e-3))
    shards = Shards.build(problem, rows, labels, np.arange(users + 1))
    walk, rng, share = StatelessWalk(), np.random.default_rng(0), 1.0 / users
    made = plan(
        problem, walk, rounds=steps, noise=GaussianNoise(multiplier=1.0), schedule=RandomWalk(), sampler=Seeded(0)
    )

    def loop() -> Array:
        z = np.zeros(WIDTH)
        for _ in range(looped):
            i = int(rng.integers(users))
            score, norm = float(rows[i] @ z), float(rows[i] @ rows[i])
            slope = -labels[i] / 2
            for _ in range(8):
                p = expit(-labels[i] * (score - norm * slope))
                slope -= (slope + labels[i] * p) / (1 + norm * p * (1 - p))
            x = z - slope * rows[i]
            # The certificate that the compiled step makes as well: the gradient at x, and rounding.
            gap = abs(slope + labels[i] * expit(-labels[i] * (rows[i] @ x)))
            residual = x - z
            if not gap + ROUNDING * (np.sqrt(x @ x) + np.sqrt(z @ z) + abs(slope)) <= walk.tolerance:
                raise ArithmeticError("a prox is not certified")
            if not np.isfinite(residual).all():
                raise ArithmeticError("a residual is not finite")
            v = z + share * (residual + rng.normal(scale=2.0, size=WIDTH))
            z = np.sign(v) * np.maximum(np.abs(v) - share * 1e-3, 0.0)
        return z

    whole, interpreted = best(lambda: run_plan(made, shards), loop, repeats=15)
    return Figure(
        "a NumPy step of the walk, over a compiled one",
        interpreted / looped / (whole / steps),
        limit=50,
        at_most=False,
        note=f"{1e6 * whole / steps:.2f} microseconds a step",
    )


def _growth() -> Iterator[Figure]:
    """Exponents of the time of a round in users and in features, by a line through logarithms."""
    users = (1_000, 10_000, 100_000, 1_000_000)
    times = []
    for count in users:
        rows, labels = _made_up(count, 16)
        problem = _problem(np.ones(count, dtype=int), 16, unit="party")
        times += best(_rounds(problem, ConsensusADMM(), rows, labels), repeats=3)
    yield Figure("exponent of the time in users, 1e3 to 1e6", _slope(users, times), limit=1.15)
    features = (8, 64, 512, 2048)
    times = []
    for count in features:
        rows, labels = _made_up(10_000, count)
        problem = _problem(np.ones(10_000, dtype=int), count, unit="party")
        times += best(_rounds(problem, ConsensusADMM(), rows, labels), repeats=3)
    yield Figure("exponent of the time in features, 8 to 2048", _slope(features, times), limit=1.15)


def _slope(sizes: tuple[int, ...], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def _problem(sizes: Any, features: int, **changes: Any) -> Problem:
    settings = {"loss": Logistic(), "regularizer": NoPenalty(), "row_bound": 1.0}
    return Problem(features=features, sizes=np.asarray(sizes), **(settings | changes))


def _made_up(count: int, features: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, features))
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows, np.where(rows[:, 0] > 0, 1.0, -1.0)
