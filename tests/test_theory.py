"""The utility bounds hold in simulation, are attained for R(u) = tau u, and trade-offs scale as they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consenso import theory
from consenso.errors import InputError
from consenso.privacy import accountants
from consenso.privacy.events import Gaussian


def price_of_own_noise(*, step: float, sensitivity: float, units: int) -> float:
    """Every unit perturbs its own part, and every message is seen; R moves by `step` times the mean of the parts."""
    return (step * sensitivity) ** 2 / (2 * units)


def price_of_states(*, step: float, lipschitz: float) -> float:
    """Consensus ADMM with the noise kept in the states, every message seen."""
    return 8 * (step * lipschitz) ** 2


def price_of_seen_means(*, step: float, lipschitz: float, parties: int) -> float:
    """The same at relaxation 1/2 and full participation, for an observer who sees the means only (Theorem F)."""
    return 32 * parties * (step * lipschitz) ** 2 / (parties + 1) ** 2


def simulate(operator, *, start, fixed, noise, rounds, runs, chance=1.0, relaxation=1.0, error=None, seed=0):
    """Squared distances to the fixed point after `rounds`, one block per coordinate, (runs,)."""
    rng = np.random.default_rng(seed)
    u = np.broadcast_to(start, (runs, len(start))).copy()
    for _ in range(rounds):
        active = rng.random(u.shape) < chance
        moved = operator(u) - u + noise * rng.normal(size=u.shape)
        if error is not None:
            moved = moved + error(u)
        u = u + np.where(active, relaxation * moved, 0.0)
    return np.sum((u - fixed) ** 2, axis=1)


@pytest.mark.parametrize(("tau", "chance", "relaxation"), [(0.9, 0.25, 1.0), (0.5, 1.0, 1.0), (0.8, 0.5, 0.6)])
def test_the_bound_is_attained_by_a_scaled_identity(tau, chance, relaxation):
    dim, noise, rounds, runs = 8, 0.7, 15, 40_000
    start = np.linspace(-2, 3, dim)
    bound = theory.Utility(contraction=tau, dim=dim, noise=noise, chance=chance, relaxation=relaxation)
    squares = simulate(
        lambda u: tau * u,
        start=start,
        fixed=np.zeros(dim),
        noise=noise,
        rounds=rounds,
        runs=runs,
        chance=chance,
        relaxation=relaxation,
    )
    # Five standard errors on either side: a false alarm has probability below 1e-6.
    slack = 5 * squares.std() / np.sqrt(runs)
    assert abs(squares.mean() - bound.bound(rounds, float(start @ start))) <= slack


def test_the_bound_of_the_worked_example():
    # tau = 0.9, q = 0.25, p = 8, sigma = 1: the floor is p / (1 - tau^2) = 42.1.
    bound = theory.Utility(contraction=0.9, dim=8, noise=1.0, chance=0.25)
    assert bound.floor == pytest.approx(8 / (1 - 0.81))
    assert bound.floor == pytest.approx(42.105, abs=1e-3)
    assert bound.factor == pytest.approx(1 - 0.25 * 0.19)


def test_the_printed_relaxation_diverges_where_the_bound_converges():
    tau, lam = 0.5, 2.56
    step = abs(1 - lam * (1 + tau))  # u <- u + lam (R(u) - u) with R(u) = -tau u
    assert step > 1
    assert abs(1 - 1.0 * (1 + tau)) == tau


@settings(max_examples=15)
@given(st.integers(0, 1000), st.floats(0.2, 0.95), st.floats(0.2, 1.0), st.floats(0.3, 1.0))
def test_the_bound_holds_for_coupled_contractions(seed, tau, chance, relaxation):
    dim, rounds, runs = 4, 12, 2000
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    fixed, start = rng.normal(size=(2, dim))
    bound = theory.Utility(contraction=tau, dim=dim, noise=0.3, chance=chance, relaxation=relaxation)
    squares = simulate(
        lambda u: fixed + tau * np.abs(u - fixed) @ rotation.T,
        start=start,
        fixed=fixed,
        noise=0.3,
        rounds=rounds,
        runs=runs,
        chance=chance,
        relaxation=relaxation,
        seed=seed,
    )
    # Six standard errors: below 1e-8 per example.
    distance = float((start - fixed) @ (start - fixed))
    assert squares.mean() - 6 * squares.std() / np.sqrt(runs) <= bound.bound(rounds, distance)


@pytest.mark.parametrize("tau", [0.3, 0.9])
def test_errors_that_push_outwards_stay_within_the_bound(tau):
    dim, rounds, runs, size = 5, 60, 4000, 0.4

    def outwards(u):
        return size * u / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1e-12)

    bound = theory.Utility(contraction=tau, dim=dim, noise=0.2, chance=0.6, error=size)
    without = theory.Utility(contraction=tau, dim=dim, noise=0.2, chance=0.6)
    squares = simulate(
        lambda u: tau * u,
        start=np.ones(dim),
        fixed=np.zeros(dim),
        noise=0.2,
        rounds=rounds,
        runs=runs,
        chance=0.6,
        error=outwards,
    )
    # Six standard errors: a false alarm has probability below 1e-8.
    assert squares.mean() - 6 * squares.std() / np.sqrt(runs) <= bound.bound(rounds, dim)
    assert squares.mean() > without.bound(rounds, dim)  # the errors do matter
    # A deterministic pull alone ends at size / (1 - tau), whose square the floor must reach.
    alone = theory.Utility(contraction=tau, dim=dim, noise=0.0, error=size)
    assert (size / (1 - tau)) ** 2 <= alone.floor


def test_the_bound_refuses_what_is_not_a_contraction():
    with pytest.raises(InputError, match="contracts"):
        theory.Utility(contraction=1.0, dim=2, noise=0.1)
    with pytest.raises(InputError, match="chance"):
        theory.Utility(contraction=0.5, dim=2, noise=0.1, chance=0.0)
    with pytest.raises(InputError, match="relaxation"):
        theory.Utility(contraction=0.5, dim=2, noise=0.1, relaxation=1.5)
    with pytest.raises(InputError, match="noise"):
        theory.Utility(contraction=0.5, dim=2, noise=np.inf)


def test_a_tradeoff_is_the_utility_at_the_noise_that_the_budget_buys():
    n, rounds, rho, sensitivity, step = 500, 40, 0.3, 2.0, 0.5
    std = np.sqrt(rounds * sensitivity**2 / (2 * rho))  # on the sum
    direct = theory.Utility(contraction=0.8, dim=10, noise=step * std / n).bound(rounds, 3.0)
    price = theory.price_of_sum(step=step, sensitivity=sensitivity, units=n)
    traded = theory.Tradeoff(price=price, contraction=0.8, dim=10, distance=3.0)
    assert traded.error(rho, rounds) == pytest.approx(direct, rel=1e-12)
    own = theory.Utility(contraction=0.8, dim=10, noise=step * std / np.sqrt(n)).bound(rounds, 3.0)
    local = price_of_own_noise(step=step, sensitivity=sensitivity, units=n)
    assert theory.Tradeoff(price=local, contraction=0.8, dim=10, distance=3.0).error(rho, rounds) == pytest.approx(own)


def test_the_best_number_of_rounds_is_the_best():
    traded = theory.Tradeoff(price=1e-5, contraction=0.9, dim=20, distance=4.0)
    for rho in (0.01, 0.1, 1.0):
        best = traded.best_rounds(rho)
        errors = [traded.error(rho, k) for k in range(1, 400)]
        assert best == 1 + int(np.argmin(errors))
        assert traded.error(rho, best) == min(errors)
    assert traded.best_rounds(1.0) > traded.best_rounds(0.01)


def test_errors_scale_with_records_as_the_view_allows():
    common = {"contraction": 0.8, "dim": 10, "distance": 1.0}

    def slope(price):
        """Power of n of the best error, between n = 1e8 and 1e9; logarithms make it a little flatter."""
        options = [theory.Tradeoff(price=price(n), **common) for n in (10**8, 10**9)]
        few, many = (each.error(1.0, each.best_rounds(1.0)) for each in options)
        return np.log10(many / few)

    assert -2.0 <= slope(lambda n: theory.price_of_sum(step=1.0, sensitivity=2.0, units=n)) <= -1.8
    assert -1.0 <= slope(lambda n: price_of_own_noise(step=1.0, sensitivity=2.0, units=n)) <= -0.8
    assert -1.0 <= slope(lambda n: price_of_seen_means(step=1.0, lipschitz=1.0, parties=n)) <= -0.8
    assert slope(lambda n: price_of_states(step=1.0, lipschitz=1.0)) == 0.0


def test_prices_agree_with_the_theorems_they_come_from():
    from tests.privacy.oracles.local import LocalView
    from tests.privacy.oracles.sums import DualSums

    from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates

    rounds, step, lipschitz, n = 12, 0.7, 1.3, 40
    rho = lambda event: accountants.rdp(event, 2.0) / 2

    # The noise of variance price * K / rho costs exactly rho.
    price = price_of_states(step=step, lipschitz=lipschitz)
    std = np.sqrt(price * rounds / 0.9)
    each = LocalView(participations=rounds, std=std, step=step, lipschitz=lipschitz)
    assert rho(each.event()) == pytest.approx(0.9, rel=1e-9)

    price = price_of_seen_means(step=step, lipschitz=lipschitz, parties=n)
    std = np.sqrt(price * rounds / 0.05)
    seen = MeanOfNoisyStates(
        parties=n, colluders=0, step=step, lipschitz=lipschitz, relaxation=0.5, std=std, rounds=rounds
    )
    assert rho(seen.event()) == pytest.approx(0.05, rel=1e-9)

    # Variant C at relaxation 1/2 releases step * gradients: one mean of parts of sensitivity 2 step L.
    price = theory.price_of_sum(step=1.0, sensitivity=2 * step * lipschitz, units=n)
    std_of_mean = np.sqrt(price * rounds / 0.2)
    summed = DualSums(step=step, lipschitz=lipschitz, std=n * std_of_mean, rounds=rounds)
    assert rho(summed.event()) == pytest.approx(0.2, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-5)])
def test_a_budget_is_the_rho_that_costs_epsilon(epsilon, delta):
    rho = theory.budget(epsilon, delta)
    mechanism = Gaussian(1.0, float(np.sqrt(2 * rho)))
    assert accountants.epsilon(mechanism, delta) == pytest.approx(epsilon, rel=1e-9)
    # Exact, hence more generous than the conversion rho + 2 sqrt(rho log 1/delta).
    assert rho + 2 * np.sqrt(rho * np.log(1 / delta)) > epsilon


def test_budgets_and_tradeoffs_refuse_nonsense():
    with pytest.raises(InputError, match="epsilon"):
        theory.budget(0.0, 1e-5)
    with pytest.raises(InputError, match="price"):
        theory.Tradeoff(price=0.0, contraction=0.5, dim=2, distance=1.0)
    with pytest.raises(InputError, match="rho"):
        theory.Tradeoff(price=1.0, contraction=0.5, dim=2, distance=1.0).error(0.0, 3)
