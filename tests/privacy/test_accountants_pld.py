"""Compositions by privacy loss distributions: never below the exact cost, and close to it, at any delta."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.privacy_accountant import NeighboringRelation
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp
from scipy.stats import binom, norm

from consenso.privacy.accountants import best, delta, epsilon, gaussian, pairs, pld
from consenso.privacy.accountants.conversion import to_epsilon
from consenso.privacy.accountants.distribution import Grid, compose_losses, discretize
from consenso.privacy.accountants.readout import Readout
from consenso.privacy.events import (
    Bounded,
    Composed,
    Event,
    GammaNorm,
    Gaussian,
    Laplace,
    Mixture,
    Nothing,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sampled,
    SampledGroup,
    TokenWalk,
    repeat,
    reveal_coin,
)


def composed_one_by_one(mu: float, rounds: int, target: float, tilt: float | None = None) -> float:
    """Epsilon of Gaussian rounds that are composed by transform, although they could be merged exactly."""
    part = Bounded(mu**2 / 2 / rounds)
    guess = to_epsilon(lambda orders: orders * mu**2 / 2, target)
    interval = math.sqrt(2e-5 * 12 * guess.value / (guess.order * rounds))
    tilt = guess.order - 1 if tilt is None else tilt
    grid = Grid(interval, tilt, math.log(target) - math.log(rounds) - 13, "remove")
    total = compose_losses([(discretize(part, grid), rounds)])
    return Readout.around(total, guess.value).epsilon(target)


@pytest.mark.parametrize(
    ("rounds", "target"),
    [
        (1, 1e-5),
        (2, 1e-3),
        (10, 0.1),
        (1000, 1e-8),
        (10**4, 1e-12),
        (10**5, 1e-5),
        (10**5, 1e-14),
        (10**5, 1e-100),
        (10**6, 1e-10),
    ],
)
def test_transforms_bound_the_exact_cost_closely_from_above_at_any_delta(rounds: int, target: float) -> None:
    exact = gaussian.epsilon(1.0, target)
    found = composed_one_by_one(1.0, rounds, target)
    assert exact <= found <= exact * (1 + 1e-4)


def test_without_tilt_rounding_is_paid_for_instead_of_ignored() -> None:
    # After 1e5 rounds a plain transform knows delta to about 1e-11: at 1e-13 it must say so, not guess.
    exact = gaussian.epsilon(1.0, 1e-13)
    assert composed_one_by_one(1.0, 10**5, 1e-13, tilt=0.0) > exact
    assert composed_one_by_one(1.0, 10**5, 1e-5, tilt=0.0) == pytest.approx(gaussian.epsilon(1.0, 1e-5), rel=1e-3)


def randomized_responses(eps: float, rounds: int, target: float) -> float:
    """Kairouz, Oh and Viswanath: the exact epsilon of a composition of pure mechanisms, from binomial sums."""
    hits = np.arange(rounds + 1.0)
    log_p, log_q = -math.log1p(math.exp(-eps)), -math.log1p(math.exp(eps))
    logs = gammaln(rounds + 1) - gammaln(hits + 1) - gammaln(rounds - hits + 1) + hits * log_p + (rounds - hits) * log_q
    losses = (2 * hits - rounds) * eps

    def log_delta(total: float) -> float:
        above = losses > total
        return float(logsumexp(logs[above] + np.log(-np.expm1(total - losses[above])))) if above.any() else -math.inf

    low, high = 0.0, rounds * eps
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if log_delta(middle) <= math.log(target) else (middle, high)
    return high


@pytest.mark.parametrize(("eps", "published"), [(0.05, 57.8), (0.1, 166.2), (1.0, 9834)])
def test_optimal_composition_of_pure_mechanisms(eps: float, published: float) -> None:
    found = best(repeat(Pure(eps), 20_000), 1e-6)
    assert found.method == "PLD"
    assert found.epsilon == pytest.approx(published, rel=1e-3)
    exact = randomized_responses(eps, 20_000, 1e-6)
    assert exact * (1 - 1e-9) <= found.epsilon <= exact * (1 + 1e-5)


def two_rounds(part: Sampled, eps: float, direction: pairs.Direction) -> float:
    """delta of two rounds: the curve of one, averaged over the loss of the other by quadrature."""
    shift, q = part.contribution / part.std, part.rate
    ratio = lambda x: 1 - q + q * math.exp(shift * x - shift**2 / 2)
    upper, loss = {
        ("add-remove", "remove"): (ratio, lambda x: math.log(ratio(x))),
        ("add-remove", "add"): (lambda x: 1.0, lambda x: -math.log(ratio(x))),
        ("replace-one", "remove"): (ratio, lambda x: math.log(ratio(x) / ratio(-x))),
    }[part.adjacency, direction]

    def integrand(x: float) -> float:
        (value,) = pairs.delta(part, np.array([eps - loss(x)]), direction)
        return upper(x) * norm._pdf(x) * value

    return quad(integrand, -12, 12 + shift, limit=400, epsabs=1e-15, points=[0, shift])[0]


@pytest.mark.parametrize(
    ("part", "eps"),
    [
        (Sampled(1.0, 1.0, 0.1, "add-remove"), 0.8),
        (Sampled(1.0, 1.0, 0.1, "add-remove"), 0.05),
        (Sampled(4.0, 1.0, 0.5, "add-remove"), 0.3),
        (Sampled(1.0, 1.0, 0.1, "replace-one"), 0.8),
        (Sampled(3.0, 1.0, 0.4, "replace-one"), 0.4),
    ],
)
def test_two_sampled_rounds_are_the_integral_of_one_over_the_other(part: Sampled, eps: float) -> None:
    exact = max(two_rounds(part, eps, direction) for direction in pairs.directions(part))
    found = delta(Repeated(part, 2), eps)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-3)
    assert epsilon(Repeated(part, 2), exact) == pytest.approx(eps, rel=1e-4)


@pytest.mark.parametrize(("multiplier", "rate", "rounds"), [(5.0, 0.1, 1000), (1.0, 0.01, 300), (2.0, 0.5, 3)])
def test_revealed_participation_is_a_binomial_average_of_gaussians(multiplier: float, rate: float, rounds: int) -> None:
    event = repeat(reveal_coin(Gaussian(multiplier, 1.0), rate), rounds)
    taken = np.arange(1, rounds + 1)
    weights = binom.pmf(taken, rounds, rate)

    def exact(eps: float) -> float:
        curves = [math.exp(gaussian.log_delta(math.sqrt(k) / multiplier, np.array([eps]))[0]) for k in taken]
        return float(weights @ curves)

    found = best(event, 1e-6)
    assert found.method == "PLD"
    assert exact(found.epsilon) == pytest.approx(1e-6, rel=5e-3)
    assert exact(found.epsilon) <= 1e-6 * (1 + 1e-9)


def test_a_mixture_of_two_point_mechanisms_is_enumerated() -> None:
    # Six rounds; in each, with probability 0.3 and openly, a bit is answered with randomized response.
    eps, rate, rounds, target = 0.9, 0.3, 6, 1e-3
    keep = math.exp(eps) / (1 + math.exp(eps))
    losses = {0.0: 1 - rate, eps: rate * keep, -eps: rate * (1 - keep)}
    total = {0.0: 1.0}
    for _ in range(rounds):
        step: dict[float, float] = {}
        for a, p in total.items():
            for b, q in losses.items():
                step[round(a + b, 12)] = step.get(round(a + b, 12), 0.0) + p * q
        total = step
    exact = lambda e: math.fsum(p * -math.expm1(e - a) for a, p in total.items() if a > e)
    event = repeat(reveal_coin(Pure(eps), rate), rounds)
    for level in (0.3, 0.9, 1.7, 3.0):
        assert delta(event, level) == pytest.approx(exact(level), rel=1e-8)
    assert exact(epsilon(event, target)) == pytest.approx(target, rel=1e-8)


def independent(parts: list[tuple[dp_event.DpEvent, int]], target: float, relation: NeighboringRelation) -> float:
    accountant = PLDAccountant(relation, value_discretization_interval=1e-4)
    for event, count in parts:
        accountant.compose(event, count)
    return float(accountant.get_epsilon(target))


ADD_REMOVE, REPLACE_ONE = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE


@pytest.mark.parametrize("rounds", [1, 50, 10_000])
@pytest.mark.parametrize(("adjacency", "relation"), [("add-remove", ADD_REMOVE), ("replace-one", REPLACE_ONE)])
def test_sampled_rounds_agree_with_an_independent_accountant(
    rounds: int, adjacency: str, relation: NeighboringRelation
) -> None:
    # Its replace-one pair has contributions +C and -C too (a distance of 2 C), so the multipliers are the same.
    rate, multiplier, target = 0.02, 2.0, 1e-6
    theirs = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(multiplier))
    found = epsilon(repeat(Sampled(multiplier, 1.0, rate, adjacency), rounds), target)  # type: ignore[arg-type]
    assert found == pytest.approx(independent([(theirs, rounds)], target, relation), rel=2e-3)


def test_mixed_compositions_agree_with_an_independent_accountant() -> None:
    ours = Composed(
        (
            repeat(Sampled(3.0, 1.0, 0.05, "add-remove"), 400),
            repeat(Laplace(20.0, 1.0), 30),
            Gaussian(4.0, 1.0),
            repeat(Sampled(1.5, 1.0, 0.01, "add-remove"), 100),
        )
    )
    sampled = lambda rate, multiplier: dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(multiplier))
    theirs = [
        (sampled(0.05, 3.0), 400),
        (dp_event.LaplaceDpEvent(20.0), 30),
        (dp_event.GaussianDpEvent(4.0), 1),
        (sampled(0.01, 1.5), 100),
    ]
    assert epsilon(ours, 1e-6) == pytest.approx(independent(theirs, 1e-6, ADD_REMOVE), rel=1e-3)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    "part",
    [
        Bounded(0.08),
        Laplace(1.0, 0.7),
        GammaNorm(1.0, 0.9, 3),
        SampledGroup(3.0, 0.9, 0.2, 5, "add-remove"),
        SampledGroup(3.0, 0.9, 0.2, 5, "replace-one"),
        Pure(0.45),
        Sampled(1.0, 0.9, 0.2, "add-remove"),
        Sampled(1.0, 0.9, 0.2, "replace-one"),
        ObjectivePerturbation(0.4, 0.2),
    ],
)
def test_a_grid_dominates_its_pair(part: Event, direction: pairs.Direction) -> None:
    grid = Grid(0.0173, 0.0, -40.0, direction)
    found = Readout.around(discretize(part, grid), 0.0)  # type: ignore[arg-type]
    for eps in (0.003, 0.1, 0.222, 0.4, 0.69, 1.1):
        (exact,) = pairs.delta(part, np.array([eps]), direction)
        on_grid = math.exp(found.log_delta(eps))
        assert exact - 1e-15 <= on_grid <= exact + 0.0173


def test_tilts_only_move_the_error() -> None:
    part = Sampled(1.0, 0.8, 0.05, "replace-one")
    readouts = []
    for tilt in (0.0, 1.0, 4.0):
        grid = Grid(5e-4, tilt, -60.0, "remove")
        readouts.append(Readout.around(compose_losses([(discretize(part, grid), 200)]), 2.5))
    values = [math.exp(each.log_delta(2.5)) for each in readouts]
    slack = [math.exp(each.log_slack(2.5)) for each in readouts]
    assert max(slack) < 1e-9
    for value, own in zip(values, slack, strict=True):
        assert abs(value - values[0]) <= own + slack[0]


@pytest.mark.sweep
@pytest.mark.parametrize("target", [1e-3, 1e-8, 1e-15, 1e-40])
@pytest.mark.parametrize(
    "event",
    [
        repeat(Sampled(1.0, 1.0, 0.01, "add-remove"), 1000),
        repeat(Sampled(1.0, 1.0, 1e-3, "replace-one"), 20_000),
        repeat(Laplace(5.0, 1.0), 100),
        Composed((repeat(Pure(0.2), 30), Gaussian(2.0, 1.0))),
    ],
)
def test_delta_inverts_epsilon(event: Event, target: float) -> None:
    eps = pld.epsilon(event, target)
    assert math.exp(pld.log_delta(event, eps)) == pytest.approx(target, rel=2e-2)
    assert pld.deltas(event, np.array([0.9 * eps]))[0] >= target * 0.9


def test_small_rates_with_long_tails_beat_the_renyi_curve_by_far() -> None:
    event = repeat(Sampled(1.0, 1.0, 1e-4, "add-remove"), 10**5)
    found = best(event, 1e-5)
    assert found.method == "PLD"
    assert found.epsilon == pytest.approx(0.13188, abs=5e-5)


def test_which_events_have_pairs() -> None:
    gaussian_and_more = (Gaussian(1.0, 1.0), Pure(1.0), Sampled(1.0, 1.0, 0.1, "add-remove"))
    assert pairs.is_supported(Composed(gaussian_and_more))
    assert pairs.is_supported(Mixture((0.5, 0.5), (Nothing(), Composed(gaussian_and_more))))
    assert not pairs.is_supported(Composed((Pure(1.0), TokenWalk(0.1, 5, 5, 1, True))))
    assert not pairs.is_supported(reveal_coin(TokenWalk(0.1, 5, 5, 1, True), 0.5))
    assert best(Composed((Pure(1.0), TokenWalk(0.1, 5, 5, 1, True))), 1e-5).method == "RDP"


def test_the_worse_direction_counts() -> None:
    event = repeat(Sampled(0.5, 1.0, 0.6, "add-remove"), 3)
    assert pairs.directions(event) == ("remove", "add")
    assert pairs.directions(repeat(Sampled(0.5, 1.0, 0.6, "replace-one"), 3)) == ("remove",)
    # A unit that is added can be recognized only so well from the sampled world: its loss is bounded.
    (added,) = pairs.delta(Sampled(0.5, 1.0, 0.6, "add-remove"), np.array([-math.log(0.4)]), "add")
    (removed,) = pairs.delta(Sampled(0.5, 1.0, 0.6, "add-remove"), np.array([-math.log(0.4)]), "remove")
    assert added == 0 < removed
