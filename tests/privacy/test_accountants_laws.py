"""Laws that hold for every event, on events that are drawn at random."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consenso import registry
from consenso.privacy.accountants import best, conversion, delta, epsilon, gaussian, pairs, pld, rdp, renyi, tradeoff
from consenso.privacy.events import (
    ZCDP,
    BestOf,
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
    Told,
    Unbounded,
    repeat,
    reveal_coin,
)

# Grids and searches are accurate to about 1e-5 of epsilon; a law may be missed by no more than this.
SLACK = 1 + 1e-4

multipliers = st.floats(0.5, 40.0)
rates = st.floats(1e-3, 0.9)
counts = st.integers(1, 300)
deltas = st.floats(-14, -2).map(lambda power: 10.0**power)
adjacencies = st.sampled_from(["add-remove", "replace-one"])
orders = st.floats(1.01, 80.0)

LEAVES: dict[type[Event], st.SearchStrategy[Event]] = {
    Nothing: st.just(Nothing()),
    Unbounded: st.just(Unbounded("nothing is clipped")),
    Gaussian: st.builds(lambda z: Gaussian(z, 1.0), multipliers),
    Laplace: st.builds(lambda z: Laplace(z, 1.0), multipliers),
    GammaNorm: st.builds(lambda z, dim: GammaNorm(z, 1.0, dim), multipliers, st.integers(1, 300)),
    Pure: st.builds(Pure, st.floats(1e-3, 2.0)),
    Told: st.builds(lambda z, p: Composed((Gaussian(z, 1.0), Told(p))), multipliers, st.floats(1e-18, 1e-15)),
    Bounded: st.builds(Bounded, st.floats(1e-4, 2.0)),
    ZCDP: st.builds(ZCDP, st.floats(1e-4, 2.0)),
    ObjectivePerturbation: st.builds(ObjectivePerturbation, st.floats(0.01, 2.0), st.floats(0.0, 0.8)),
    TokenWalk: st.builds(
        lambda rho, n, k, c, f: TokenWalk(rho, n, k, c, f),
        st.floats(1e-4, 0.5),
        st.integers(4, 60),
        st.integers(1, 40),
        st.integers(0, 3),
        st.booleans(),
    ),
    BestOf: st.builds(BestOf, st.floats(1e-4, 2.0), st.floats(1e-3, 0.9)),
    Sampled: st.builds(lambda z, q, adjacency: Sampled(z, 1.0, q, adjacency), multipliers, rates, adjacencies),
    SampledGroup: st.builds(
        lambda z, q, records, adjacency: SampledGroup(z, 1.0, q, records, adjacency),
        multipliers,
        rates,
        st.integers(1, 20),
        adjacencies,
    ),
    SampledFixedSize: st.builds(
        lambda z, size, others: SampledFixedSize(z, 1.0, size, size + others),
        multipliers,
        st.integers(1, 50),
        st.integers(0, 1000),
    ),
}


def draw_events(*but: type[Event]) -> st.SearchStrategy[Event]:
    """Events of all kinds but some."""
    return st.recursive(
        st.one_of(*(leaf for kind, leaf in LEAVES.items() if kind not in but)),
        lambda inner: st.one_of(
            st.builds(Repeated, inner, st.integers(0, 20)),
            st.builds(lambda a, b: Composed((a, b)), inner, inner),
            st.builds(reveal_coin, inner, st.floats(0.05, 1.0)),
        ),
        max_leaves=4,
    )


events = draw_events()


def test_every_kind_of_event_is_drawn() -> None:
    known = {kind for kind in registry.kinds("events").values() if kind.__module__ == Event.__module__}
    assert set(LEAVES) == known - {Repeated, Composed, Mixture}


@given(events, st.integers(0, 5), orders)
def test_repeating_is_composing(event: Event, count: int, order: float) -> None:
    one_by_one, at_once = Composed((event,) * count), Repeated(event, count)
    assert rdp(one_by_one, order) == pytest.approx(rdp(at_once, order), rel=1e-12)
    assert best(one_by_one, 1e-5) == best(at_once, 1e-5)


@given(events, events, orders)
def test_order_and_brackets_do_not_matter(a: Event, b: Event, order: float) -> None:
    assert rdp(Composed((a, b)), order) == pytest.approx(rdp(a, order) + rdp(b, order), rel=1e-12)
    assert rdp(Composed((Composed((b,)), Nothing(), a)), order) == pytest.approx(
        rdp(Composed((a, b)), order), rel=1e-12
    )


@given(events, deltas, st.floats(1.5, 100.0))
def test_more_delta_costs_less_epsilon(event: Event, target: float, factor: float) -> None:
    assert epsilon(event, min(target * factor, 0.9)) <= epsilon(event, target) * SLACK


@given(events, deltas)
def test_epsilon_and_delta_are_two_readings_of_one_curve(event: Event, target: float) -> None:
    eps = epsilon(event, target)
    if 0 < eps < math.inf:
        # The search over orders is done anew, so the two may choose different ones.
        assert delta(event, eps * (1 + 1e-6)) <= target * 1.06
        assert delta(event, eps * 0.98) >= target * 0.3 or best(event, target).method != "PLD"


# What is known of the best of several runs is a bound, which is loose at small orders.
@given(draw_events(BestOf), orders, st.floats(1.05, 3.0))
def test_renyi_curves_grow_with_the_order(event: Event, order: float, factor: float) -> None:
    larger = 1 + (order - 1) * factor
    assert rdp(event, order) <= rdp(event, larger) * (1 + 1e-9)
    # (order - 1) RDP is convex and 0 at order 1.
    assert (order - 1) * rdp(event, order) <= (larger - 1) * rdp(event, larger) / factor * (1 + 1e-9)


def with_noise(kind: str, multiplier: float, rate: float) -> Event:
    return {
        "gaussian": Gaussian(multiplier, 1.0),
        "laplace": Laplace(multiplier, 1.0),
        "add-remove": Sampled(multiplier, 1.0, rate, "add-remove"),
        "replace-one": Sampled(multiplier, 1.0, rate, "replace-one"),
        "gamma-norm": GammaNorm(multiplier, 1.0, 9),
        "group, add-remove": SampledGroup(multiplier, 1.0, rate, 4, "add-remove"),
        "group, replace-one": SampledGroup(multiplier, 1.0, rate, 4, "replace-one"),
        "revealed": reveal_coin(Gaussian(multiplier, 1.0), rate),
        "objective": ObjectivePerturbation(1 / multiplier, 0.1),
        "walk": TokenWalk(1 / multiplier**2, 20, 30, 1, True),
    }[kind]


kinds = st.sampled_from(
    [
        *("gaussian", "laplace", "gamma-norm", "add-remove", "replace-one", "group, add-remove", "group, replace-one"),
        *("revealed", "objective", "walk"),
    ]
)


@given(kinds, multipliers, rates, counts, deltas, st.floats(1.01, 3.0))
def test_more_noise_costs_less(kind: str, z: float, q: float, count: int, target: float, factor: float) -> None:
    more, less = with_noise(kind, z * factor, q), with_noise(kind, z, q)
    assert epsilon(repeat(more, count), target) <= epsilon(repeat(less, count), target) * SLACK


@given(
    st.sampled_from(["gaussian", "laplace", "add-remove", "replace-one"]),
    multipliers,
    rates,
    st.floats(1.0, 5.0),
    orders,
)
def test_noise_and_sensitivity_count_by_their_ratio(kind: str, z: float, q: float, factor: float, order: float) -> None:
    part = with_noise(kind, z, q)
    names = [field.name for field in dataclasses.fields(part)][:2]
    scaled = dataclasses.replace(part, **{name: getattr(part, name) * factor for name in names})  # type: ignore[type-var]
    assert rdp(scaled, order) == pytest.approx(rdp(part, order), rel=1e-9)
    wider = dataclasses.replace(part, **{names[1]: factor})  # type: ignore[type-var]
    assert rdp(wider, order) >= rdp(part, order) * (1 - 1e-9)


@given(kinds, multipliers, rates, counts, counts, deltas)
def test_more_rounds_cost_more(kind: str, z: float, q: float, count: int, further: int, target: float) -> None:
    part = with_noise(kind, z, q)
    assert epsilon(repeat(part, count), target) <= epsilon(repeat(part, count + further), target) * SLACK


@given(
    st.sampled_from(["add-remove", "replace-one", "revealed"]), multipliers, rates, counts, deltas, st.floats(0.1, 0.99)
)
def test_larger_samples_cost_more(kind: str, z: float, q: float, count: int, target: float, share: float) -> None:
    smaller, larger = with_noise(kind, z, q * share), with_noise(kind, z, q)
    assert epsilon(repeat(smaller, count), target) <= epsilon(repeat(larger, count), target) * SLACK


@settings(max_examples=10)
@given(multipliers, rates, counts, deltas)
def test_hiding_the_sample_never_costs_more_than_showing_it(z: float, q: float, count: int, target: float) -> None:
    hidden = epsilon(repeat(Sampled(z, 1.0, q, "add-remove"), count), target)
    both_hidden = epsilon(repeat(Sampled(z, 1.0, q, "replace-one"), count), target)
    shown = epsilon(repeat(reveal_coin(Gaussian(z, 1.0), q), count), target)
    both_shown = epsilon(repeat(reveal_coin(Gaussian(z, 2.0), q), count), target)
    everyone = epsilon(repeat(Gaussian(z, 1.0), count), target)
    assert hidden <= shown * SLACK
    assert shown <= everyone * SLACK
    assert both_hidden <= both_shown * SLACK
    # Adding or removing a unit moves the sum half as far as replacing one.
    assert hidden <= both_hidden * SLACK


@given(multipliers, st.sampled_from([1, 1.0]), orders)
def test_sampling_everyone_is_not_sampling(z: float, rate: float, order: float) -> None:
    assert rdp(Sampled(z, 1.0, rate, "add-remove"), order) == rdp(Gaussian(z, 1.0), order)
    assert rdp(Sampled(z, 1.0, rate, "replace-one"), order) == rdp(Gaussian(z, 2.0), order)
    assert best(Sampled(z, 1.0, rate, "add-remove"), 1e-6) == best(Gaussian(z, 1.0), 1e-6)
    assert epsilon(Sampled(z, 1.0, 1 - 1e-12, "add-remove"), 1e-6) == pytest.approx(
        epsilon(Gaussian(z, 1.0), 1e-6), rel=1e-6
    )
    assert rdp(reveal_coin(Gaussian(z, 1.0), rate), order) == rdp(Gaussian(z, 1.0), order)
    assert rdp(SampledFixedSize(z, 1.0, 7, 7), order) == rdp(Gaussian(z, 2.0), order)


@given(st.floats(0.01, 30.0), deltas)
def test_every_curve_lies_above_the_exact_one(mu: float, target: float) -> None:
    event = Bounded(mu**2 / 2)
    exact = gaussian.epsilon(mu, target)
    by_orders = conversion.to_epsilon(lambda at: renyi.curve(event, at), target).value
    assert by_orders >= exact * (1 - 1e-9)
    if exact > 0:
        by_distribution = pld.epsilon(event, target)
        assert exact * (1 - 1e-9) <= by_distribution <= exact * SLACK


@given(st.lists(st.floats(0.1, 1.0), min_size=2, max_size=5), st.floats(0.05, 1.5), orders, st.randoms())
def test_no_pure_mechanism_costs_more_than_randomized_response(
    masses: list[float], eps: float, order: float, random: object
) -> None:
    # Any two distributions whose ratios lie in [e^-eps, e^eps]: tilt one by factors in [e^-eps/2, e^eps/2].
    factors = [math.exp(random.uniform(-eps / 2, eps / 2)) for _ in masses]  # type: ignore[attr-defined]
    p = np.array(masses) / sum(masses)
    q = p * factors / np.sum(p * factors)
    ratio = np.max(np.abs(np.log(p / q)))
    divergence = math.log(float(np.sum(p**order * q ** (1 - order)))) / (order - 1)
    assert divergence <= rdp(Pure(ratio), order) * (1 + 1e-9) + 1e-12
    for level in (0.05, eps / 2):
        stick = float(np.sum(np.maximum(p - math.exp(level) * q, 0)))
        assert stick <= delta(Pure(ratio), level) + 1e-12


@given(events, events, st.floats(0.05, 0.95), orders)
def test_a_mixture_costs_between_its_branches(a: Event, b: Event, weight: float, order: float) -> None:
    costs = sorted((rdp(a, order), rdp(b, order)))
    mixed = rdp(Mixture((weight, 1 - weight), (a, b)), order)
    assert costs[0] * (1 - 1e-9) <= mixed <= costs[1] * (1 + 1e-9)


@given(events, events, deltas)
def test_composing_curves_never_costs_more_than_adding_epsilons(a: Event, b: Event, target: float) -> None:
    if all(pairs.is_supported(event) for event in (a, b)):
        together = epsilon(Composed((a, b)), target)
        assert together <= (epsilon(a, target / 2) + epsilon(b, target / 2)) * SLACK + 1e-9


@given(events)
def test_tradeoffs_are_convex_decreasing_and_below_chance(event: Event) -> None:
    fpr = np.linspace(0, 1, 41)
    fnr = tradeoff(event, fpr)
    assert np.all(fnr <= 1 - fpr + 1e-12)
    assert np.all(np.diff(fnr) <= 1e-12)
    assert np.all(np.diff(fnr, 2) >= -1e-9)
    eps = epsilon(event, 1e-3)
    if eps < 30:
        # No test can beat what (epsilon, delta) allows; the curve that is drawn may not promise more than exists.
        assert np.all(fnr >= np.maximum(1 - 1e-3 - math.exp(eps) * fpr, 0) - 0.02)
