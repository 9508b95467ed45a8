"""What accounting costs: 1e5 rounds of a sampled Gaussian by privacy loss distributions, and calibrating them.

Run `python -m benchmarks.accounting`. Accounting has 5 seconds and calibrating 30, on one core; beside them stand the
seconds of dp-accounting's own composition on a grid that is as fine, and how far the two epsilons are apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.measure import Figure
from consenso.privacy.accountants import best, pld
from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise
from consenso.privacy.events import Adjacency, Event, Sampled, repeat

ROUNDS, DELTA = 100_000, 1e-5
MOST_SECONDS = {"account": 5.0, "calibrate": 30.0}
CASES: tuple[tuple[float, float, Adjacency], ...] = (
    (0.01, 10.0, "add-remove"),
    (0.01, 10.0, "replace-one"),
    (0.001, 1.0, "add-remove"),
    (0.0001, 1.0, "add-remove"),
)

Result = TypeVar("Result")


def run() -> list[Figure]:
    """Seconds per task and case, and what was found."""
    rows = []
    for rate, multiplier, adjacency in CASES:
        rows += [_account(rate, multiplier, adjacency), _calibrate(rate, adjacency)]
    return rows


def _account(rate: float, multiplier: float, adjacency: Adjacency) -> Figure:
    event = repeat(Sampled(multiplier, 1.0, rate, adjacency), ROUNDS)
    cost, seconds = _timed(lambda: best(event, DELTA))
    theirs, their_seconds = _timed(lambda: _dp_accounting(rate, multiplier, adjacency, cost.epsilon))
    found = f"epsilon {cost.epsilon:.6g} by {cost.method}; dp-accounting {theirs:.6g} in {their_seconds:.2g} s"
    return _figure("account", rate, adjacency, seconds, found)


def _calibrate(rate: float, adjacency: Adjacency) -> Figure:
    asked = 0

    def build(multiplier: float) -> Event:
        nonlocal asked
        asked += 1
        return repeat(Sampled(multiplier, 1.0, rate, adjacency), ROUNDS)

    target = EpsilonDelta(epsilon=1.0, delta=DELTA)
    multiplier, seconds = _timed(lambda: calibrate_noise(build, target))
    spent = target.cost(build(multiplier))
    return _figure("calibrate", rate, adjacency, seconds, f"multiplier {multiplier:.6g}, spends {spent:.6f} of 1")


def _dp_accounting(rate: float, multiplier: float, adjacency: Adjacency, epsilon: float) -> float:
    """Epsilon by dp-accounting, on a grid that makes about the same error."""
    from dp_accounting.pld import privacy_loss_distribution
    from dp_accounting.privacy_accountant import NeighboringRelation

    relation = {
        "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace-one": NeighboringRelation.REPLACE_ONE,
    }[adjacency]
    one = privacy_loss_distribution.from_gaussian_mechanism(
        multiplier,
        sampling_prob=rate,
        value_discretization_interval=min(1e-4, 0.02 * epsilon / ROUNDS**0.5),
        neighboring_relation=relation,
    )
    return float(one.self_compose(ROUNDS).get_epsilon_for_delta(DELTA))


def _figure(task: str, rate: float, adjacency: Adjacency, seconds: float, note: str) -> Figure:
    name = f"{task} {ROUNDS} rounds, rate {rate:g}, {adjacency}"
    return Figure(name, seconds, "s", limit=MOST_SECONDS[task], note=note)


def _timed(call: Callable[[], Result]) -> tuple[Result, float]:
    pld.epsilon.cache_clear()
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start
