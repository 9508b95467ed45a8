"""Renyi curves against quadrature, enumeration, an independent library and published figures."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad

from consenso.arrays import Array
from consenso.privacy.accountants import conversion, epsilon, rdp, renyi
from consenso.privacy.accountants.kinds import walk
from consenso.privacy.accountants.kinds.sampled import poisson_rdp
from consenso.privacy.events import (
    Bounded,
    Composed,
    Event,
    Gaussian,
    Laplace,
    Mixture,
    Nothing,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sampled,
    SampledFixedSize,
    TokenWalk,
    repeat,
    reveal_coin,
)

ORDERS = (1.05, 1.5, 2.0, 2.7, 5.0, 17.3, 64.0)


def converted(event: Event, delta: float) -> float:
    """Epsilon by the Renyi curve alone."""
    return conversion.to_epsilon(lambda orders: renyi.curve(event, orders), delta).value


def normal(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.npdf(x)


def sampled_divergence(multiplier: float, rate: float, order: float, kind: str) -> float:
    """The divergence of the worst pair of one round, from its definition, in 20 digits."""
    with mpmath.workdps(20):
        shift, q, a = 1 / mpmath.mpf(multiplier), mpmath.mpf(rate), mpmath.mpf(order)
        mixed = lambda x, s: (1 - q) * normal(x) + q * normal(x - s)
        upper, lower = {
            "remove": (lambda x: mixed(x, shift), normal),
            "add": (normal, lambda x: mixed(x, shift)),
            "replace-one": (lambda x: mixed(x, shift), lambda x: mixed(x, -shift)),
        }[kind]
        edges = mpmath.linspace(-14 - shift, 14 + a * shift, 16)
        moment = mpmath.quad(lambda x: upper(x) ** a * lower(x) ** (1 - a), edges)
        return float(mpmath.log(moment) / (a - 1))


@pytest.mark.parametrize(
    ("multiplier", "rate", "order"), [(1.0, 0.05, 1.3), (1.0, 0.05, 9.0), (5.0, 0.3, 2.0), (0.7, 0.001, 4.5)]
)
def test_sampled_curves_are_the_integrals_of_theorem_p(multiplier: float, rate: float, order: float) -> None:
    remove = sampled_divergence(multiplier, rate, order, "remove")
    assert rdp(Sampled(multiplier, 1.0, rate, "add-remove"), order) == pytest.approx(remove, rel=1e-9)
    assert sampled_divergence(multiplier, rate, order, "add") <= remove * (1 + 1e-12)
    replace = sampled_divergence(multiplier, rate, order, "replace-one")
    assert rdp(Sampled(multiplier, 1.0, rate, "replace-one"), order) == pytest.approx(replace, rel=1e-9)


@pytest.mark.parametrize("rate", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_tiny_rates_keep_their_digits(rate: float, adjacency: str) -> None:
    # To second order in the rate: order/2 q^2 chi^2, with chi^2 between the unsampled pair, (e^m - 1) resp.
    # (2 e^m - 2 e^-m) for m = 1/z^2.
    event = Sampled(2.0, 1.0, rate, adjacency)  # type: ignore[arg-type]
    m = 0.25
    chi = math.expm1(m) if adjacency == "add-remove" else 2 * math.exp(m) - 2 * math.exp(-m)
    for order in (2.0, 3.0, 6.5):
        assert rdp(event, order) == pytest.approx(order / 2 * rate**2 * chi, rel=30 * rate + 1e-8)


def test_integer_and_real_orders_meet() -> None:
    for order in (2.0, 7.0, 33.0):
        event = Sampled(1.3, 1.0, 0.04, "add-remove")
        nearby = [rdp(event, order + step) for step in (-1e-9, 0.0, 1e-9)]
        assert nearby[1] == pytest.approx((nearby[0] + nearby[2]) / 2, rel=1e-8)


@pytest.mark.parametrize("order", [300.0, 5000.5, 1e6, 1e9])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_huge_orders_stay_below_the_bound_without_sampling(order: float, adjacency: str) -> None:
    value = rdp(Sampled(0.8, 1.0, 0.01, adjacency), order)  # type: ignore[arg-type]
    # Far beyond the transition one world contributes and the other seems not to, under both adjacencies.
    plain = order / (2 * 0.8**2)
    assert plain - 2 * abs(math.log(0.01)) <= value <= plain + 0.011


def test_amplification_is_lost_when_participation_shows() -> None:
    # Rate 0.05, replace-one gap 2 * 0.25 around 0: 6.2e-4; when the displacement reveals who took part: 1.41e-2.
    assert rdp(Sampled(1.0, 0.25, 0.05, "replace-one"), 2.0) == pytest.approx(6.2e-4, rel=0.01)
    assert rdp(reveal_coin(Gaussian(1.0, 0.5), 0.05), 2.0) == pytest.approx(1.41e-2, rel=0.01)


def test_sampling_a_thousand_steps_costs_two_instead_of_46() -> None:
    assert converted(repeat(Sampled(5.0, 1.0, 0.071, "add-remove"), 1000), 1e-5) == pytest.approx(1.97, abs=0.005)


@pytest.mark.parametrize("shift", [1e-6, 1e-3, 0.5, 3.0, 40.0])
def test_laplace_is_the_divergence_of_two_laplaces(shift: float) -> None:
    for order in ORDERS:
        with mpmath.workdps(40):
            a, e = mpmath.mpf(order), mpmath.mpf(shift)
            moment = a / (2 * a - 1) * mpmath.exp((a - 1) * e) + (a - 1) / (2 * a - 1) * mpmath.exp(-a * e)
            exact = float(mpmath.log(moment) / (a - 1))
        assert rdp(Laplace(1.0, shift), order) == pytest.approx(exact, rel=1e-11)
    integral = quad(lambda x: 0.5 * math.exp(-2 * abs(x) + abs(x - 0.7)), -60, 60, points=[0, 0.7], limit=300)[0]
    assert rdp(Laplace(1.0, 0.7), 2.0) == pytest.approx(math.log(integral), rel=1e-9)


def test_a_shift_of_one_coordinate_is_the_worst_of_its_one_norm() -> None:
    for order in ORDERS:
        split = sum(rdp(Laplace(1.0, share), order) for share in (0.5, 0.3, 0.2))
        assert split <= rdp(Laplace(1.0, 1.0), order)


@pytest.mark.parametrize("eps", [1e-6, 1e-2, 1.0, 30.0])
def test_pure_is_randomized_response(eps: float) -> None:
    for order in ORDERS:
        with mpmath.workdps(40):
            a, e = mpmath.mpf(order), mpmath.mpf(eps)
            p = mpmath.exp(e) / (1 + mpmath.exp(e))
            exact = float(mpmath.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1))
        assert rdp(Pure(eps), order) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(
    ("per_round", "rounds", "total"),
    [
        (0.05, 20_000, 59.8),
        (0.1, 20_000, 167.6),
        (1, 20_000, 7953),
        (5, 20_000, 81367),
        (0.01, 20_000, 7.75),
        (0.01, 10**6, 100.4),
    ],
)
def test_published_totals_of_laplace_rounds(per_round: float, rounds: int, total: float) -> None:
    event = repeat(Laplace(1 / per_round, 1.0), rounds)
    assert converted(event, 1e-6) == pytest.approx(total, rel=2e-3)
    assert epsilon(event, 1e-6) <= converted(event, 1e-6)


@pytest.mark.parametrize(("per_round", "total"), [(0.00156, 1.0), (0.0124, 10.0)])
def test_published_rounds_for_a_total(per_round: float, total: float) -> None:
    assert converted(repeat(Laplace(1 / per_round, 1.0), 20_000), 1e-6) == pytest.approx(total, rel=0.01)


def test_mixtures_average_moments() -> None:
    inner = (Gaussian(3.0, 1.0), Laplace(2.0, 1.0), Nothing())
    weights = (0.2, 0.3, 0.5)
    for order in ORDERS:
        moment = sum(w * math.exp((order - 1) * rdp(e, order)) for w, e in zip(weights, inner, strict=True))
        assert rdp(Mixture(weights, inner), order) == pytest.approx(math.log(moment) / (order - 1), rel=1e-11)


def test_revealed_participation_follows_its_formula_and_survives_overflow() -> None:
    q, cost = 0.01, lambda order: order * 8 / 25
    event = repeat(reveal_coin(Gaussian(5.0, 4.0), q), 40)
    for order in (2.0, 10.0, 30.0):
        exact = 40 / (order - 1) * math.log(1 - q + q * math.exp((order - 1) * cost(order)))
        assert rdp(event, order) == pytest.approx(exact, rel=1e-12)
    assert rdp(event, 1e4) == pytest.approx(40 * cost(1e4), rel=1e-4)


def test_gradient_admm_in_random_order_costs_0_128_instead_of_1() -> None:
    # kappa = eta = Delta = sigma = 1: a = 1/2; position t has rho = a b / (a + b), b = Chat a / floor(m / 2),
    # with m = N - t iterations after it.
    spectrum = 2.0
    trace, determinant = 2 - 1 / spectrum + 1 / spectrum**2, 1 - 1 / spectrum
    chat = max(1.0, (trace + math.sqrt(trace**2 - 4 * determinant)) / 2)
    assert chat == pytest.approx(1.39, abs=0.005)
    rhos = []
    for position in range(1, 101):
        pairs = (100 - position) // 2
        later = chat * 0.5 / pairs if pairs else math.inf
        rhos.append(0.5 * later / (0.5 + later) if pairs else 0.5)
    event = Mixture((0.01,) * 100, tuple(Bounded(rho) for rho in rhos))
    assert rdp(event, 2.0) == pytest.approx(0.128, abs=5e-4)
    assert rdp(Bounded(rhos[-1]), 2.0) == 1.0


def enumerated_walk(event: TokenWalk, order: float) -> float:
    """Average over all paths of the exponential of their cost: a visit is spread until the next one or the end."""
    visit, n = (order - 1) * order * event.visit_rho, event.parties
    chances = {"me": 1 / n, "observer": event.observers / n, "other": 1 - (1 + event.observers) / n}
    total = 0.0
    for path in itertools.product(chances, repeat=event.steps):
        cost = 0.0
        for place, who in enumerate(path):
            if who == "me":
                gaps = [later - place for later in range(place + 1, event.steps) if path[later] != "other"]
                if gaps:
                    cost += visit / gaps[0]
                elif event.final_model:
                    cost += visit / (event.steps - place)
        total += math.prod(chances[who] for who in path) * math.exp(cost)
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("final_model", [True, False])
@pytest.mark.parametrize("observers", [0, 1, 2])
def test_the_walk_is_the_average_over_all_paths(observers: int, final_model: bool) -> None:
    for steps in (1, 2, 5, 7):
        event = TokenWalk(0.2, 4, steps, observers, final_model)
        if observers or final_model:
            assert rdp(event, 2.5) == pytest.approx(enumerated_walk(event, 2.5), rel=1e-12, abs=1e-15)


def test_published_figures_of_the_walk() -> None:
    # n = 200, K = 2000, sigma = 40, order 2: 0.0046 for the network, 0.1005 locally; the last model costs 7.5 times
    # more than the hops alone in 20 steps.
    rho = 8 / 40**2
    assert rdp(TokenWalk(rho, 200, 2000, 1, False), 2.0) == pytest.approx(0.0046, abs=5e-5)
    assert rdp(repeat(reveal_coin(Bounded(rho), 1 / 200), 2000), 2.0) == pytest.approx(0.1005, abs=5e-5)
    with_model, without = (rdp(TokenWalk(rho, 200, 20, 1, shown), 2.0) for shown in (True, False))
    assert with_model / without == pytest.approx(7.5, abs=0.4)
    assert rdp(TokenWalk(rho, 200, 1, 1, True), 2.0) == pytest.approx(math.log1p(math.expm1(2 * rho) / 200), rel=1e-12)
    assert rdp(TokenWalk(rho, 200, 1, 1, False), 2.0) == 0.0


def test_a_walk_never_costs_more_than_the_local_view() -> None:
    for rho in (1e-3, 1.0, 300.0):
        for order in (1.5, 4.0, 40.0):
            local = rdp(repeat(reveal_coin(Bounded(rho), 1 / 30), 50), order)
            assert rdp(TokenWalk(rho, 30, 50, 3, True), order) <= local * (1 + 1e-9)


def test_long_walks_are_bounded_closely_from_above(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = np.array([2.0, 8.0])
    exact = walk.walk_rdp(0.005, 60, 1500, 1, True, orders)
    monkeypatch.setattr(walk, "_EXACT_STEPS", 100)
    blocks = walk.walk_rdp(0.005, 60, 1500, 1, True, orders)
    assert np.all(blocks >= exact)
    assert np.all(blocks <= exact * 1.005)


def test_longer_walks_of_more_observers_cost_more() -> None:
    costs = [
        [rdp(TokenWalk(0.02, 40, steps, observers, True), 3.0) for steps in (5, 50, 500)] for observers in (0, 1, 5)
    ]
    assert np.all(np.diff(costs, axis=0) > 0)
    assert np.all(np.diff(costs, axis=1) > 0)


def fixed_size_moment(multiplier: float, fraction: float, order: int) -> float:
    """Wang, Balle and Kasiviswanathan 2019, Theorem 27, with exact forward differences."""
    with mpmath.workdps(80):
        gaussian = lambda j: mpmath.exp(mpmath.mpf(j) * (j - 1) / (2 * mpmath.mpf(multiplier) ** 2))
        difference = lambda n: mpmath.fsum((-1) ** (n - i) * mpmath.binomial(n, i) * gaussian(i) for i in range(n + 1))
        total = mpmath.mpf(1)
        for j in range(2, order + 1):
            if j == 2:
                factor = min(4 * (gaussian(2) - 1), 2 * gaussian(2))
            else:
                even = difference(2 * (j // 2)) * difference(2 * ((j + 1) // 2))
                factor = min(4 * mpmath.sqrt(even), 2 * gaussian(j))
            total += mpmath.binomial(order, j) * mpmath.mpf(fraction) ** j * factor
        return float(mpmath.log(total))


@pytest.mark.parametrize("std", [1.0, 6.0, 60.0])
@pytest.mark.parametrize("order", [2, 3, 8, 20])
def test_sampling_without_replacement_is_theorem_27_with_the_doubled_contribution(order: int, std: float) -> None:
    event = SampledFixedSize(std=std, contribution=1.0, size=30, population=600)
    exact = fixed_size_moment(std / 2, 0.05, order) / (order - 1)
    assert rdp(event, float(order)) == pytest.approx(exact, rel=1e-9)


def test_sampling_without_replacement_never_costs_more_than_taking_everyone() -> None:
    for order in (1.2, 2.0, 7.5, 100.0, 1000.0):
        for std in (0.3, 2.0, 30.0):
            assert rdp(SampledFixedSize(std, 1.0, 90, 100), order) <= rdp(Gaussian(std, 2.0), order) * (1 + 1e-12)
    assert rdp(SampledFixedSize(2.0, 1.0, 100, 100), 3.0) == rdp(Gaussian(2.0, 2.0), 3.0)


def test_objective_perturbation_follows_its_formula_and_covers_linear_losses() -> None:
    for order in ORDERS:
        ratio, share = 0.4, 0.25
        swing = math.log(2 * float(mpmath.ncdf((order - 1) * ratio))) / (order - 1)
        exact = -math.log(1 - share) + order * ratio**2 / 2 + swing
        assert rdp(ObjectivePerturbation(ratio, share), order) == pytest.approx(exact, rel=1e-12)
        assert rdp(ObjectivePerturbation(ratio, share), order) >= order * ratio**2 / 2


def independent(event: dp_event.DpEvent, count: int, delta: float, relation: NeighboringRelation) -> float:
    accountant = RdpAccountant(np.concatenate([np.linspace(1.05, 12, 220), np.arange(13, 400)]), relation)
    return float(accountant.compose(event, count).get_epsilon(delta))


@pytest.mark.parametrize("count", [100, 10_000])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Gaussian(60.0, 1.0), dp_event.GaussianDpEvent(60.0)),
        (Laplace(80.0, 1.0), dp_event.LaplaceDpEvent(80.0)),
        (Sampled(2.0, 1.0, 0.01, "add-remove"), dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(2.0))),
    ],
)
def test_conversion_agrees_with_an_independent_accountant(ours: Event, theirs: dp_event.DpEvent, count: int) -> None:
    expected = independent(theirs, count, 1e-6, NeighboringRelation.ADD_OR_REMOVE_ONE)
    found = converted(repeat(ours, count), 1e-6)
    # It looks at fewer orders than we do, so ours is at most as large, and hardly smaller.
    assert expected * 0.98 <= found <= expected * (1 + 1e-9)


def test_the_minimum_over_orders_is_not_at_an_end() -> None:
    for rho in (1e-9, 1e-4, 1.0, 1e4):
        for delta in (1e-2, 1e-6, 1e-30):
            found = conversion.to_epsilon(lambda orders, rho=rho: orders * rho, delta)
            around = np.array([0.97, 1.0, 1.03]) * (found.order - 1) + 1
            values = around * rho + np.log1p(-1 / around) - (math.log(delta) + np.log(around)) / (around - 1)
            assert values.argmin() == 1 or found.value == 0
            assert found.value <= rho + 2 * math.sqrt(rho * math.log(1 / delta))


def test_reading_the_conversion_for_delta_inverts_it() -> None:
    for event in (
        repeat(Laplace(20.0, 1.0), 300),
        TokenWalk(0.01, 50, 100, 1, True),
        repeat(SampledFixedSize(9.0, 1.0, 5, 100), 50),
    ):
        curve = lambda orders, event=event: renyi.curve(event, orders)
        eps = conversion.to_epsilon(curve, 1e-6).value
        assert math.exp(conversion.to_log_delta(curve, eps).value) == pytest.approx(1e-6, rel=5e-3)
        (many,) = conversion.to_log_deltas(curve, np.array([eps]))
        assert many >= conversion.to_log_delta(curve, eps).value - 1e-6
        assert many == pytest.approx(math.log(1e-6), rel=2e-2)


def test_curves_are_evaluated_at_many_orders_at_once() -> None:
    event = Composed((repeat(Laplace(3.0, 1.0), 4), Gaussian(2.0, 1.0), Sampled(2.0, 1.0, 0.1, "replace-one")))
    orders: Array = np.array([1.2, 2.0, 9.5])
    assert renyi.curve(event, orders) == pytest.approx([rdp(event, float(order)) for order in orders], rel=1e-13)
    assert poisson_rdp(0.5, 0.1, "replace-one", orders).shape == (3,)


def test_a_count_is_multiplied_once_whatever_the_nesting() -> None:
    leaf = Laplace(3.0, 1.0)
    nested = Repeated(Composed((Repeated(leaf, 2), Repeated(Composed((leaf, leaf)), 3))), 5)
    assert rdp(nested, 3.0) == pytest.approx(40 * rdp(leaf, 3.0), rel=1e-12)
