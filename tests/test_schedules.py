from __future__ import annotations

import itertools

import numpy as np
import pytest

from consenso.errors import InputError
from consenso.schedules import (
    Certain,
    Cyclic,
    Everyone,
    FixedSubset,
    Independent,
    OncePerPass,
    PoissonSubset,
    RandomOrder,
    RandomStopping,
    RandomWalk,
    Visits,
)
from consenso.topology import Topology

SCHEDULES = [
    Everyone(),
    PoissonSubset(0.3),
    FixedSubset(2),
    Cyclic(),
    RandomOrder(),
    RandomStopping(),
    RandomWalk(),
    RandomWalk(Topology.star(5)),
    RandomWalk(Topology.ring(5)),
]


def coins_from(seed: int):
    return lambda round_, stream, count: np.random.default_rng([seed, round_, stream]).random(count)


def play(schedule, rounds: int, parties: int, seed: int) -> list[np.ndarray]:
    coins, previous, played = coins_from(seed), None, []
    for round_ in range(schedule.length(rounds, coins)):
        previous = schedule.active(round_, previous, parties, coins)
        played.append(previous)
    return played


@pytest.mark.parametrize("runs", [1000, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_the_stated_law_of_participation_is_the_law_that_is_played(schedule, runs) -> None:
    # Each cell of a 12-cell histogram within 5 standard errors: false alarm below 1e-4 over all cases.
    rounds, parties, party = 7, 5, 1
    counts = np.zeros(rounds + 1)
    law = schedule.participation(party, rounds, parties)
    for seed in range(runs):
        own = [round_ for round_, active in enumerate(play(schedule, rounds, parties, seed)) if party in active]
        counts[len(own)] += 1
        if isinstance(law, Certain):
            assert own == list(law.own)
        if isinstance(law, Visits) and law.own is not None:
            assert own == list(law.own)[: len(own)]
    expected = np.zeros(rounds + 1)
    if isinstance(law, Certain):
        expected[law.count] = 1
    elif isinstance(law, OncePerPass):
        full, rest = divmod(rounds, parties)
        expected[full], expected[full + 1] = 1 - rest / parties, rest / parties
        assert law.most == full + 1
    elif isinstance(law, Visits):
        expected[: len(law.chances)] = law.chances
    else:
        assert isinstance(law, Independent)
        from scipy.stats import binom

        expected = binom.pmf(np.arange(rounds + 1), rounds, law.rate)
    assert expected.sum() == pytest.approx(1)
    error = np.sqrt(np.maximum(expected * (1 - expected), 1e-12) / runs)
    assert (np.abs(counts / runs - expected) <= 5 * error + 1e-9).all()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_rounds_are_sorted_distinct_parties(schedule) -> None:
    for active in play(schedule, 20, 5, seed=0):
        assert active.dtype == np.int64
        assert (np.diff(active) > 0).all()
        assert active.size == 0 or (active.min() >= 0 and active.max() < 5)


def test_a_walk_only_hops_along_edges() -> None:
    graph = Topology.grid(3, 3)
    path = [int(active[0]) for active in play(RandomWalk(graph), 200, 9, seed=4)]
    assert all(b in graph.neighbors(a) for a, b in itertools.pairwise(path))


def test_every_pass_of_a_random_order_visits_everyone_once() -> None:
    path = [int(active[0]) for active in play(RandomOrder(), 15, 5, seed=4)]
    assert [sorted(path[i : i + 5]) for i in (0, 5, 10)] == [list(range(5))] * 3
    assert path[:5] != path[5:10]


def test_full_rates_are_certain() -> None:
    assert PoissonSubset(1.0).participation(0, 9, 4) == Certain(range(9))
    assert FixedSubset(4).participation(0, 9, 4) == Certain(range(9))
    assert RandomWalk().participation(0, 9, 1) == Certain(range(9))
    assert RandomOrder().participation(0, 9, 1) == Certain(range(9))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PoissonSubset(0.0), "a rate lies in"),
        (lambda: PoissonSubset(1.5), r"a rate lies in \(0, 1\]; use Everyone"),
        (lambda: PoissonSubset(float("nan")), "a rate lies in"),
        (lambda: FixedSubset(0), "at least one party"),
        (lambda: FixedSubset(9).participation(0, 1, 4), "only 4 parties"),
        (lambda: RandomWalk(Topology.ring(5)).participation(0, 3, 6), "both must agree"),
    ],
)
def test_bad_schedules_are_refused(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
