"""Costs that have a closed form, against high precision, direct integration and published figures."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from consenso.errors import InputError
from consenso.privacy import accountants
from consenso.privacy.accountants import best, delta, epsilon, excess, gdp, pure, rdp, tradeoff, zcdp
from consenso.privacy.accountants.pairs import curve
from consenso.privacy.events import (
    ZCDP,
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
    SampledFixedSize,
    SampledGroup,
    TokenWalk,
    Unbounded,
    repeat,
    reveal_coin,
)

DELTA = 1e-5


def gaussian_delta(mu: float, eps: float) -> mpmath.mpf:
    """The closed form in 60 digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(eps)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 7.0, 200.0])
@pytest.mark.parametrize("tails", [0.1, 1.0, 5.0, 20.0, 36.0])
def test_delta_of_a_gaussian_is_right_to_the_last_digits_from_half_to_1e_280(mu: float, tails: float) -> None:
    eps = mu**2 / 2 + tails * mu
    exact = gaussian_delta(mu, eps)
    found = delta(Bounded(mu**2 / 2), eps)
    ratio = float(found / exact)
    assert 1 - 1e-13 < ratio < 1 + 1e-8


@pytest.mark.parametrize("mu", [1e-3, 0.3, 1.0, 10.0, 500.0])
@pytest.mark.parametrize("target", [0.3, 1e-2, 1e-5, 1e-10, 1e-100, 1e-280])
def test_epsilon_of_a_gaussian_is_the_smallest_that_holds(mu: float, target: float) -> None:
    eps = epsilon(Bounded(mu**2 / 2), target)
    if eps == 0:
        assert gaussian_delta(mu, 0.0) <= target
        return
    assert gaussian_delta(mu, eps) <= target * (1 + mpmath.mpf(10) ** -13)
    assert gaussian_delta(mu, eps * (1 - 1e-7)) > target


def test_gaussian_conversion_of_one_unit_of_rho() -> None:
    gaussian, loose = Gaussian(std=1.0, sensitivity=math.sqrt(2)), ZCDP(1.0)
    assert epsilon(gaussian, DELTA) == pytest.approx(6.57, abs=0.005)
    textbook = 1 + 2 * math.sqrt(math.log(1 / DELTA))
    assert textbook == pytest.approx(7.79, abs=0.005)
    assert epsilon(gaussian, DELTA) < epsilon(loose, DELTA) < textbook


def test_mu_adds_in_squares_and_exists_for_gaussians_only() -> None:
    event = Composed((Repeated(Gaussian(2.0, 1.0), 3), Bounded(0.5), Gaussian(1.0, 0.0)))
    assert gdp(event) == pytest.approx(math.sqrt(3 / 4 + 1))
    assert gdp(Nothing()) == 0
    assert gdp(Composed((event, Laplace(1.0, 1.0)))) is None
    assert gdp(ZCDP(1.0)) is None
    assert gdp(Sampled(1.0, 1.0, 1.0, "add-remove")) == 1.0
    assert gdp(Sampled(1.0, 1.0, 1.0, "replace-one")) == 2.0


def test_multi_step_gradient_perturbation_needs_the_published_constants() -> None:
    # The factor by which sigma = sqrt(2 log(1.25/delta)) / epsilon may be scaled at most, by epsilon.
    published = {0.5: 0.73, 1.0: 0.77, 4.0: 0.89, 8.0: 0.991, 10.0: 1.03, 16.0: 1.14}
    for target, constant in published.items():
        low, high = 1e-3, 1e3
        for _ in range(200):
            mu = math.sqrt(low * high)
            low, high = (mu, high) if epsilon(Bounded(mu**2 / 2), DELTA) <= target else (low, mu)
        found = target / (low * math.sqrt(2 * math.log(1.25 / DELTA)))
        assert found == pytest.approx(constant, abs=0.006)


def densities(part: Sampled, direction: str) -> tuple[object, object]:
    """Density functions of the worst pair of a sampled Gaussian, from its definition."""
    reach, q = part.contribution / part.std, part.rate

    def normal(x: float) -> float:
        return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)

    def mixture(x: float, shift: float) -> float:
        return (1 - q) * normal(x) + q * normal(x - shift)

    with_unit = lambda x: mixture(x, reach)
    other = (lambda x: mixture(x, -reach)) if part.adjacency == "replace-one" else normal
    return (with_unit, other) if direction == "remove" else (other, with_unit)


def hockey_stick(part: Sampled, eps: float, direction: str) -> float:
    upper, lower = densities(part, direction)
    gap = lambda x: max(upper(x) - math.exp(eps) * lower(x), 0.0)
    # The gap has one sign change; splitting finely keeps the quadrature from stepping over it.
    edges = np.linspace(-14, 14 + part.contribution / part.std, 113)
    return math.fsum(quad(gap, a, b, epsabs=1e-16, limit=200)[0] for a, b in pairwise(edges))


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("multiplier", "rate", "eps"), [(1.0, 0.1, 0.5), (0.5, 0.01, 1.0), (5.0, 0.6, 0.1), (2.0, 0.3, 0.02)]
)
def test_one_sampled_round_is_integrated_exactly(adjacency: str, multiplier: float, rate: float, eps: float) -> None:
    part = Sampled(multiplier, 1.0, rate, adjacency)  # type: ignore[arg-type]
    directions = ("remove", "add") if adjacency == "add-remove" else ("remove",)
    exact = max(hockey_stick(part, eps, direction) for direction in directions)
    assert delta(part, eps) == pytest.approx(exact, rel=1e-7, abs=1e-13)
    # Curves also hold at negative epsilon, which compositions use: exchange the worlds and compare.
    (below,) = curve(part, np.array([-eps]))  # type: ignore[misc]
    exchanged = max(1 - math.exp(-eps) + math.exp(-eps) * hockey_stick(part, eps, d) for d in ("remove", "add"))
    assert below == pytest.approx(exchanged, rel=1e-7)


def test_a_single_laplace_and_a_single_randomized_response_have_their_textbook_curves() -> None:
    assert delta(Laplace(2.0, 1.0), 0.2) == pytest.approx(1 - math.exp((0.2 - 0.5) / 2), rel=1e-12)
    assert delta(Laplace(2.0, 1.0), 0.5) == 0.0
    keep = math.exp(0.7) / (1 + math.exp(0.7))
    assert delta(Pure(0.7), 0.3) == pytest.approx(keep - math.exp(0.3) * (1 - keep), rel=1e-12)
    assert epsilon(Laplace(2.0, 1.0), 0.0) == 0.5
    assert epsilon(Pure(0.7), 0.0) == 0.7


def objective_delta(ratio: float, share: float, eps: float) -> float:
    """Redberg, Koskela and Wang 2023, typed in from the statement."""
    floor, half = abs(math.log(1 - share)), ratio**2 / 2

    def gaussian(e: float) -> float:
        return norm.cdf(ratio / 2 - e / ratio) - math.exp(e) * norm.cdf(-ratio / 2 - e / ratio)

    rest = eps - floor - half
    return 2 * gaussian(eps - floor) if rest > 0 else 1 - math.exp(rest) + 2 * math.exp(rest) * gaussian(half)


@pytest.mark.parametrize(("ratio", "share"), [(0.3, 0.1), (1.5, 0.02), (0.05, 0.6)])
@pytest.mark.parametrize("eps", [0.05, 0.3, 1.0, 2.0])
def test_objective_perturbation_alone_follows_its_curve(ratio: float, share: float, eps: float) -> None:
    event = ObjectivePerturbation(ratio, share)
    assert delta(event, eps) == pytest.approx(objective_delta(ratio, share, eps), rel=1e-9, abs=1e-14)
    found = best(event, DELTA)
    assert found.method == "one release (exact)"
    assert objective_delta(ratio, share, found.epsilon) == pytest.approx(DELTA, rel=1e-6)


def test_objective_perturbation_is_tighter_alone_than_by_its_renyi_curve_and_composes() -> None:
    event = ObjectivePerturbation(0.3, 0.1)
    alone = epsilon(event, DELTA)
    orders = np.linspace(1.5, 60, 2000)
    converted = min(
        rdp(event, float(a)) + math.log1p(-1 / a) - (math.log(DELTA) + math.log(a)) / (a - 1) for a in orders
    )
    assert alone < converted < 1.15 * alone
    with_output_noise = best(Composed((event, Gaussian(1e4, 1.0))), DELTA)
    assert with_output_noise.method == "PLD"
    assert alone <= with_output_noise.epsilon < alone * (1 + 1e-4)
    assert epsilon(Repeated(event, 4), DELTA) < 4 * alone


def test_random_order_is_averaged_exactly() -> None:
    rhos = (0.5, 0.1, 0.02)
    event = Mixture((0.2, 0.3, 0.5), tuple(Bounded(rho) for rho in rhos))
    exact = sum(
        w * float(gaussian_delta(math.sqrt(2 * rho), 1.0)) for w, rho in zip((0.2, 0.3, 0.5), rhos, strict=True)
    )
    assert delta(event, 1.0) == pytest.approx(exact, rel=1e-9)
    assert delta(event, epsilon(event, DELTA)) == pytest.approx(DELTA, rel=1e-9)


def test_without_sampling_a_thousand_steps_cost_46() -> None:
    assert epsilon(repeat(Gaussian(5.0, 1.0), 1000), DELTA) == pytest.approx(46.2, abs=0.05)


def test_rho_exists_where_some_renyi_curve_stays_below_a_line() -> None:
    events: list[Event] = [
        Gaussian(2.0, 1.0),
        Bounded(0.3),
        ZCDP(0.2),
        Pure(0.5),
        Pure(6.0),
        Laplace(2.0, 1.0),
        GammaNorm(2.0, 1.0, 7),
        SampledGroup(2.0, 1.0, 0.2, 5, "add-remove"),
        SampledGroup(2.0, 1.0, 0.2, 5, "replace-one"),
        Sampled(1.0, 1.0, 0.2, "add-remove"),
        Sampled(1.0, 1.0, 0.2, "replace-one"),
        SampledFixedSize(4.0, 1.0, 10, 100),
        TokenWalk(0.01, 20, 30, 1, True),
        ObjectivePerturbation(0.4, 0.2),
        reveal_coin(Gaussian(2.0, 1.0), 0.3),
        repeat(Laplace(4.0, 1.0), 7),
    ]
    for event in events:
        rho = zcdp(event)
        assert rho is not None
        for order in (1.001, 1.5, 2.0, 8.0, 60.0, 200.0):
            assert rdp(event, order) <= order * rho * (1 + 1e-12)
    assert zcdp(Gaussian(2.0, 1.0)) == 0.125
    assert zcdp(Unbounded("no clip")) is None


def test_pure_epsilons_add_and_a_mixture_costs_its_worst_branch() -> None:
    assert pure(Composed((Repeated(Pure(0.1), 5), Laplace(2.0, 1.0)))) == pytest.approx(1.0)
    assert pure(Mixture((0.5, 0.5), (Nothing(), Repeated(Pure(0.1), 5)))) == pytest.approx(0.5)
    assert pure(Composed((Pure(0.1), Gaussian(1.0, 1.0)))) is None
    assert best(Repeated(Pure(0.1), 3), 0.0) == accountants.Cost(pytest.approx(0.3), "pure")


def test_delta_zero_needs_a_pure_event() -> None:
    assert epsilon(Gaussian(1.0, 1.0), 0.0) == math.inf
    assert epsilon(Composed((Pure(1.0), ZCDP(0.1))), 0.0) == math.inf
    assert epsilon(Nothing(), 0.0) == 0.0


def test_samplers_that_miss_their_law_add_to_delta() -> None:
    ideal, missed = Repeated(Gaussian(10.0, 1.0), 50), Repeated(Gaussian(10.0, 1.0, 1e-9), 50)
    total = 50 * 1e-9
    assert excess(missed) == pytest.approx(total)
    eps = 1.5
    assert delta(missed, eps) == pytest.approx(delta(ideal, eps) + (1 + math.exp(eps)) * total, rel=1e-12)
    cost = epsilon(missed, DELTA)
    assert cost > epsilon(ideal, DELTA)
    assert delta(ideal, cost) + (1 + math.exp(cost)) * total <= DELTA
    assert delta(ideal, cost * 0.9999) + (1 + math.exp(cost * 0.9999)) * total > DELTA


def test_excess_is_counted_through_the_whole_tree() -> None:
    leaf = Laplace(1.0, 1.0, 1e-6)
    tree = Composed((Repeated(leaf, 3), Mixture((0.75, 0.25), (Nothing(), Repeated(leaf, 4))), leaf))
    assert excess(tree) == pytest.approx(5e-6)


def test_an_excess_that_does_not_fit_into_delta_leaves_no_guarantee() -> None:
    event = Gaussian(1.0, 1.0, 1e-6)
    assert epsilon(event, 1e-6) == math.inf
    # (1 + e^epsilon) E grows with epsilon, but a guarantee at a smaller epsilon also holds at a larger one.
    deltas = [delta(event, eps) for eps in (2.0, 4.0, 8.0, 30.0, 1000.0)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] < 2e-4


def test_total_variation_of_two_coins_shows_why_both_terms_are_needed() -> None:
    # Ideal: (0.5, 0.5) in both worlds, delta(eps) = 0. Real: moved by E in opposite directions.
    missed, eps = 0.01, 0.5
    p, q = (0.5 + missed, 0.5 - missed), (0.5 - missed, 0.5 + missed)
    real = sum(max(a - math.exp(eps) * b, 0.0) for a, b in zip(p, q, strict=True))
    assert real <= (1 + math.exp(eps)) * missed


@pytest.mark.parametrize(
    ("event", "cost"),
    [
        (Unbounded("no clip"), math.inf),
        (Gaussian(0.0, 1.0), math.inf),
        (Gaussian(1.0, math.inf), math.inf),
        (Laplace(0.0, 1.0), math.inf),
        (Sampled(0.0, 1.0, 0.5, "add-remove"), math.inf),
        (SampledFixedSize(0.0, 1.0, 1, 2), math.inf),
        (Pure(math.inf), math.inf),
        (Mixture((0.9, 0.1), (Nothing(), Unbounded("now and then"))), math.inf),
        (Composed((Gaussian(1.0, 1.0), Unbounded("also"))), math.inf),
        (Repeated(Unbounded("never"), 0), 0.0),
        (Gaussian(0.0, 0.0), 0.0),
        (Gaussian(math.inf, 1.0), 0.0),
        (Repeated(Gaussian(0.0, 1.0), 0), 0.0),
        (TokenWalk(0.1, 5, 0, 1, True), 0.0),
        (TokenWalk(0.1, 5, 7, 0, False), 0.0),
        (ObjectivePerturbation(0.0, 0.0), 0.0),
        (Composed(()), 0.0),
    ],
)
def test_degenerate_events_cost_nothing_or_everything(event: Event, cost: float) -> None:
    assert epsilon(event, DELTA) == cost
    assert rdp(event, 2.0) == cost
    assert delta(event, 1.0) == (1.0 if cost else 0.0)
    assert tradeoff(event, np.array([0.2]))[0] == pytest.approx(0.0 if cost else 0.8)


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(-1.0, 1.0),
        Gaussian(math.nan, 1.0),
        Gaussian(1.0, math.nan),
        Gaussian(math.inf, math.inf),
        Gaussian(1.0, 1.0, -1e-9),
        Laplace(1.0, -1.0),
        Pure(-0.1),
        ZCDP(math.nan),
        Bounded(-1.0),
        Sampled(1.0, 1.0, 0.0, "add-remove"),
        Sampled(1.0, 1.0, 1.5, "add-remove"),
        SampledGroup(1.0, 1.0, 1.5, 2, "add-remove"),
        SampledGroup(1.0, 1.0, 0.5, 0, "add-remove"),
        GammaNorm(1.0, 1.0, 0),
        GammaNorm(-1.0, 1.0, 2),
        Sampled(1.0, 1.0, math.nan, "add-remove"),
        Sampled(1.0, 1.0, 0.5, "both"),  # type: ignore[arg-type]
        SampledFixedSize(1.0, 1.0, 5, 4),
        SampledFixedSize(1.0, 1.0, 0, 4),
        SampledFixedSize(1.0, 1.0, 1.5, 4),  # type: ignore[arg-type]
        Mixture((0.5, 0.4), (Nothing(), Pure(1.0))),
        Mixture((1.0,), (Nothing(), Pure(1.0))),
        Mixture((1.5, -0.5), (Nothing(), Pure(1.0))),
        TokenWalk(0.1, 1, 5, 0, True),
        TokenWalk(0.1, 5, 5, 5, True),
        TokenWalk(0.1, 5, -1, 1, True),
        ObjectivePerturbation(1.0, 1.0),
        Repeated(Pure(1.0), -1),
        Repeated(Pure(1.0), 1.5),  # type: ignore[arg-type]
        Composed(("a Gaussian",)),  # type: ignore[arg-type]
    ],
)
def test_bad_events_are_refused_by_name(event: Event) -> None:
    with pytest.raises(InputError, match=r"\w+\(|event of"):
        epsilon(event, DELTA)


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(1.0, 1.0),
        Gaussian(1e6, 1.0),
        Gaussian(1e-3, 1.0),
        Laplace(1.0, 1.0),
        Pure(400.0),
        Sampled(1.0, 1.0, 0.1, "add-remove"),
        Sampled(0.05, 1.0, 0.5, "replace-one"),
        GammaNorm(1.0, 1.0, 20),
        GammaNorm(1e6, 1.0, 20),
        GammaNorm(1.0, 400.0, 2),
        SampledGroup(1.0, 1.0, 0.1, 30, "add-remove"),
        SampledGroup(0.05, 1.0, 0.5, 1000, "replace-one"),
        repeat(GammaNorm(1.0, 1.0, 20), 5),
        pytest.param(repeat(SampledGroup(1.0, 1.0, 0.1, 30, "add-remove"), 5), marks=pytest.mark.slow),
        repeat(Sampled(1.0, 1.0, 0.1, "add-remove"), 5),
        pytest.param(repeat(Sampled(0.05, 1.0, 0.5, "replace-one"), 5), marks=pytest.mark.slow),
        repeat(Laplace(1.0, 1.0), 5),
        ObjectivePerturbation(0.3, 0.1),
        TokenWalk(0.1, 5, 5, 1, True),
        repeat(reveal_coin(Gaussian(1.0, 1.0), 0.3), 4),
        SampledFixedSize(3.0, 1.0, 4, 50),
        Composed((Pure(400.0), Gaussian(0.05, 1.0))),
    ],
)
def test_extremes_are_monotone_and_neither_warn_nor_vanish(event: Event) -> None:
    deltas = [delta(event, eps) for eps in (1e-9, 1e-3, 10.0, 700.0, 1e5, math.inf)]
    assert np.all(np.diff(deltas) <= 1e-9)
    assert deltas[-1] == 0 if pure(event) is not None else deltas[-1] > 0
    epsilons = [epsilon(event, target) for target in (1e-300, 1e-5, 0.99, 1 - 1e-12)]
    assert np.all(np.diff(epsilons) <= 0)
    assert epsilons[0] <= (pure(event) or math.inf)


def test_weights_that_miss_one_by_rounding_lose_no_probability() -> None:
    short = Mixture((0.5 - 4e-10, 0.5), (Gaussian(1.0, 1.0), Nothing()))
    exact = Mixture((0.5, 0.5), (Gaussian(1.0, 1.0), Nothing()))
    assert delta(short, 1.0) == pytest.approx(delta(exact, 1.0), rel=1e-8)
    assert rdp(short, 2.0) == pytest.approx(rdp(exact, 2.0), rel=1e-8)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, 2.0, math.nan])
def test_bad_deltas_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="delta"):
        best(Pure(1.0), bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_bad_epsilons_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        delta(Pure(1.0), bad)


@pytest.mark.parametrize("bad", [1.0, 0.5, math.inf, math.nan])
def test_bad_orders_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="order"):
        rdp(Pure(1.0), bad)


def test_bad_rates_of_a_tradeoff_are_refused() -> None:
    with pytest.raises(InputError, match="fpr"):
        tradeoff(Pure(1.0), np.array([0.1, 1.1]))


def test_tradeoff_of_a_gaussian_is_the_closed_form() -> None:
    fpr = np.linspace(0, 1, 11)
    assert tradeoff(Gaussian(1.0, 1.0), fpr) == pytest.approx(norm.cdf(norm.isf(fpr) - 1.0))


def test_tradeoff_of_randomized_response_is_its_two_lines() -> None:
    fpr = np.linspace(0, 1, 21)
    lines = np.maximum(1 - math.e * fpr, (1 - fpr) / math.e)
    assert tradeoff(Pure(1.0), fpr) == pytest.approx(lines, abs=1e-9)


def test_tradeoff_from_a_curve_of_deltas_is_close_below_the_exact_one() -> None:
    fpr = np.linspace(0, 1, 51)
    # Sampling at rate 1 - 1e-12 is a Gaussian for all purposes, but goes the general way; so do two halves of one.
    exact = norm.cdf(norm.isf(fpr) - 1.0)
    for event in (
        Sampled(1.0, 1.0, 1 - 1e-12, "add-remove"),
        Repeated(Sampled(math.sqrt(2), 1.0, 1 - 1e-12, "add-remove"), 2),
    ):
        found = tradeoff(event, fpr)
        assert np.all(found <= exact + 1e-9)
        assert np.max(exact - found) < 1e-3


def test_excess_lowers_the_tradeoff() -> None:
    fpr = np.array([0.1, 0.5])
    missed = tradeoff(Gaussian(1.0, 1.0, 1e-3), fpr)
    assert np.all(missed < tradeoff(Gaussian(1.0, 1.0), fpr))
    assert missed == pytest.approx(norm.cdf(norm.isf(fpr + 1e-3) - 1.0) - 1e-3)


def test_gaussian_trees_load_neither_the_accounting_library_nor_transforms() -> None:
    code = (
        "import sys\n"
        "from consenso.privacy.accountants import best, delta\n"
        "from consenso.privacy.events import Gaussian, repeat\n"
        "assert best(repeat(Gaussian(10.0, 1.0), 7), 1e-5).method == 'GDP (exact)'\n"
        "assert delta(repeat(Gaussian(10.0, 1.0), 7), 1.0) > 0\n"
        "print(*[name for name in ('dp_accounting', 'scipy.signal', 'opendp') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
