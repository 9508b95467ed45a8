"""The walk: the recursion against all paths, the bound against exact linear losses, and the local bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.walk import uniform_walk

from consenso.errors import PreconditionError
from consenso.privacy.accountants import excess, rdp
from consenso.privacy.events import Mixture, Repeated, TokenWalk
from consenso.privacy.theorems.walk import WalkWithoutStates

FIGURE = {"parties": 200, "steps": 2000, "step": 1.0, "lipschitz": 1.0, "relaxation": 0.5, "std": 40.0}


def theorem(**changes) -> WalkWithoutStates:
    return WalkWithoutStates(**{**FIGURE, "observers": 1, "final_model": False, **changes})


def spread_cost(path, observers, final_model, visit):
    """Cost of a path: every visit of party 0 is spread over the hops to the next visit of it or of an observer."""
    total = 0.0
    for k, party in enumerate(path):
        if party != 0:
            continue
        for g, later in enumerate(path[k + 1 :], start=1):
            if later <= observers:  # party 0 again, or parties 1..observers
                total += visit / g
                break
        else:
            total += visit / (len(path) - k) if final_model else 0.0
    return total


def linear_cost(path, observers, final_model, visit):
    """Exact cost for linear losses: between two looks the shifts add up, and so does the noise of non-observers."""
    total, visits, hops = 0.0, 0, 0
    for party in path:
        if 1 <= party <= observers:
            total += visit * visits**2 / hops if visits else 0.0
            visits, hops = 0, 0
        else:
            visits, hops = visits + (party == 0), hops + 1
    return total + (visit * visits**2 / hops if visits and final_model else 0.0)


def over_all_paths(cost, parties, steps, observers, final_model, visit, order):
    moments = [
        np.exp((order - 1) * cost(path, observers, final_model, visit))
        for path in product(range(parties), repeat=steps)
    ]
    return np.log(np.mean(moments)) / (order - 1)


@pytest.mark.parametrize(
    ("parties", "steps", "observers"), [(2, 6, 1), (3, 6, 1), (4, 5, 2), (5, 4, 1), (3, 5, 0), (4, 4, 3)]
)
@pytest.mark.parametrize("final_model", [False, True])
def test_the_event_is_the_average_over_all_paths(parties, steps, observers, final_model):
    order, std = 3.0, 4.0
    walk = theorem(parties=parties, steps=steps, observers=observers, final_model=final_model, std=std, relaxation=0.5)
    visit = order * 8 / std**2
    spread = over_all_paths(spread_cost, parties, steps, observers, final_model, visit, order)
    if observers == 0 and not final_model:
        assert rdp(walk.event(), order) == 0  # nobody sees anything
        return
    assert rdp(walk.event(), order) == pytest.approx(spread, rel=1e-9, abs=1e-14)
    # Linear losses are the exact case: several visits in one stretch share their noise in the same way.
    exact = over_all_paths(linear_cost, parties, steps, observers, final_model, visit, order)
    assert exact <= spread * (1 + 1e-12) + 1e-14


def test_figures():
    local = uniform_walk(parties=200, steps=2000, step=1.0, lipschitz=1.0, std=40.0)
    assert rdp(local.event(), 2.0) == pytest.approx(0.1005, rel=1e-3)
    network = rdp(theorem().event(), 2.0)
    assert network == pytest.approx(0.0046, rel=0.02)
    visit = 2 * 8 / 40**2
    assert network == pytest.approx(2 * visit * 2000 * np.log(200) / 200**2, rel=0.25)
    short = rdp(theorem(steps=20).event(), 2.0)
    assert rdp(theorem(steps=20, final_model=True).event(), 2.0) / short == pytest.approx(7.5, rel=0.05)
    assert rdp(theorem(steps=1).event(), 2.0) == 0


def test_the_exact_cost_of_linear_losses_is_a_fifth_of_the_bound():
    # Monte Carlo over 4,000 paths; the standard error is 1.1 %, so the check at 10 % fails by chance
    # less than once in 1e18.
    rng = np.random.default_rng(11)
    visit = 2 * 8 / 40**2
    costs = []
    for _ in range(4000):
        path = rng.integers(0, 200, size=2000)
        relevant = np.flatnonzero(path <= 1)
        looks = relevant[path[relevant] == 1]
        edges = np.concatenate([[-1], looks])
        visits = np.diff(np.searchsorted(np.flatnonzero(path == 0), edges))
        hops = np.diff(edges) - 1
        costs.append(visit * np.sum(visits**2 / np.maximum(hops, 1)))
    exact = np.log(np.mean(np.exp(costs)))
    assert exact == pytest.approx(0.00095, rel=0.1)
    assert 4 * exact < rdp(theorem().event(), 2.0) < 6 * exact


def test_a_visit_is_non_expansive_up_to_the_number_of_parties():
    # z + t (prox(z) - z) with t = 2 relaxation / parties: t = 2 is the reflection; |x| has the most expansive prox.
    rng = np.random.default_rng(3)
    points = rng.normal(size=(2000, 2)) * 3
    prox = lambda z: np.sign(z) * np.maximum(np.abs(z) - 1, 0)
    for t, non_expansive in ((1.0, True), (2.0, True), (2.2, False)):
        moved = points + t * (prox(points) - points)
        ratio = np.abs(moved[:, 0] - moved[:, 1]) / np.abs(points[:, 0] - points[:, 1])
        assert bool(ratio.max() <= 1 + 1e-9) is non_expansive
    theorem(relaxation=200.0)
    with pytest.raises(PreconditionError, match="relaxation"):
        theorem(relaxation=201.0)


def test_uniform_walk_is_sampling_revealed_at_one_over_parties():
    event = uniform_walk(parties=4, steps=9, clip=0.5, std=2.0, adjacency="add-remove").event()
    assert isinstance(event, Repeated)
    assert event.count == 9
    assert isinstance(event.event, Mixture)
    assert event.event.weights == (0.75, 0.25)
    by_hand = 9 / 2 * np.log1p(np.expm1(2 * 3 * (4 * 0.5) ** 2 / (2 * 2.0**2)) / 4)
    assert rdp(event, 3.0) == pytest.approx(by_hand)


@pytest.mark.parametrize("tolerance", [0.0, 1e-4, 1e-2])
def test_inexact_visits(tolerance):
    walk = theorem(tolerance=tolerance, steps=50)
    assert walk.event() == TokenWalk(walk.visit_rho, 200, 50, 1, False)
    # Whatever the number of hops, the charged cost per visit covers the proved one.
    for hops in range(1, 51):
        assert walk.visit_rho / hops >= 8 * (1.0 + hops * tolerance) ** 2 / (hops * 40.0**2) * (1 - 1e-12)
    assert walk.visit_rho == pytest.approx(8 * (1.0 + 50 * tolerance) ** 2 / 40.0**2)


def test_samplers_that_miss_their_law_are_charged():
    assert excess(theorem(excess=1e-9).event()) == 1e-9
    assert rdp(theorem(excess=1e-9).event(), 2.0) == rdp(theorem().event(), 2.0)


def test_errors_of_the_others_add_up_along_the_hops():
    # An adversarial solver errs by +tolerance in one world and -tolerance in the other at every hop: the distance after
    # g hops is (2 relaxation/n)(2 step L + 2 g tolerance), and spreading it evenly is feasible and costs the formula.
    step, lipschitz, tolerance, std, hops, parties, relaxation = 1.0, 1.0, 0.05, 3.0, 7, 20, 0.5
    arrived, absorbed, cost = 0.0, 0.0, 0.0
    share = (4 * relaxation / parties) * (step * lipschitz + hops * tolerance) / hops
    for hop in range(hops):
        arrived += (2 * relaxation / parties) * (2 * tolerance + (2 * step * lipschitz if hop == 0 else 0.0))
        absorbed += share
        assert absorbed <= arrived + 1e-12
        cost += share**2 / (2 * (relaxation * std / parties) ** 2)
    assert absorbed == pytest.approx(arrived)
    assert cost == pytest.approx(8 * (step * lipschitz + hops * tolerance) ** 2 / (hops * std**2))


@given(parties=st.integers(3, 30), steps=st.integers(1, 40), std=st.floats(3, 50))
def test_monotone(parties, steps, std):
    def cost(**changes):
        arguments = {"parties": parties, "steps": steps, "std": std, "relaxation": 0.5}
        return rdp(theorem(**{**arguments, **changes}).event(), 2.0)

    base = cost()
    assert cost(std=2 * std) <= base
    assert cost(steps=steps + 1) >= base * (1 - 1e-12)
    assert cost(final_model=True) > base
    assert cost(observers=2) >= base * (1 - 1e-12)
    local = uniform_walk(parties=parties, steps=steps, step=1.0, lipschitz=1.0, std=std)
    assert cost(final_model=True) <= rdp(local.event(), 2.0) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("changes", "named"),
    [({"keeps_state": True}, "Composition"), ({"observers": 200}, "observers"), ({"lipschitz": np.inf}, "Huber")],
)
def test_refusals(changes, named):
    with pytest.raises(PreconditionError, match=named):
        theorem(**changes)
