"""Sampled rounds: what Theorem P amplifies, what breaks it, and that the sampling-revealed bound never does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb
from tests.privacy.oracles.local import LocalView
from tests.privacy.oracles.sampling import (
    PoissonSampledSums,
    SamplingRevealed,
    fixed_size_with_memory,
    view_of_sampled_sum,
)
from tests.privacy.oracles.sums import IncrementalSums

from consenso.errors import PreconditionError
from consenso.privacy.accountants import epsilon, rdp
from consenso.privacy.events import (
    Composed,
    Gaussian,
    Mixture,
    Nothing,
    Repeated,
    Sampled,
    SampledFixedSize,
)
from consenso.privacy.observers import Coalition, Eavesdropper, Peer, Public, Server
from consenso.privacy.theorems.sampling import FixedSizeWithoutMemory

GRID = np.linspace(-14, 22, 7201)


def density(mean, grid=GRID):
    return np.exp(-((grid - mean) ** 2) / 2) / np.sqrt(2 * np.pi)


def renyi(p, q, order, grid=GRID):
    """Renyi divergence of two densities on a grid (trapezoid rule: spectrally exact for such integrands)."""
    ratio = np.where(p > 0, p, 1e-300) / np.where(q > 0, q, 1e-300)
    return np.log(np.sum(p * ratio ** (order - 1)) * (grid[1] - grid[0])) / (order - 1)


def revealed_by_hand(rate, order, cost, rounds):
    return rounds / (order - 1) * np.log1p(rate * np.expm1((order - 1) * cost))


# --- sampling-revealed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_sampling_revealed_formula(order):
    theorem = SamplingRevealed(released=Gaussian(2.0, 1.0), rate=0.1, rounds=30, adjacency="replace-one")
    by_hand = revealed_by_hand(0.1, order, order / (2 * 2.0**2), 30)
    assert rdp(theorem.event(), order) == pytest.approx(by_hand, rel=1e-12)


def test_sampling_revealed_of_a_local_view_and_of_variant_a():
    view = LocalView(participations=1, step=0.5, lipschitz=1.0, std=3.0)
    theorem = SamplingRevealed.of(view, rate=0.05, rounds=100)
    cost = 4.0 * 8 * 0.5**2 / 3.0**2
    assert rdp(theorem.event(), 4.0) == pytest.approx(revealed_by_hand(0.05, 4.0, cost, 100), rel=1e-12)
    displacement = IncrementalSums(step=0.5, lipschitz=1.0, relaxation=0.4, std=3.0, rounds=1)
    sampled = SamplingRevealed.of(displacement, rate=0.05, rounds=100)
    cost = 4.0 * (8 * 0.4 * 0.5) ** 2 / (2 * 3.0**2)
    assert rdp(sampled.event(), 4.0) == pytest.approx(revealed_by_hand(0.05, 4.0, cost, 100), rel=1e-12)


def test_at_rate_one_nothing_is_sampled():
    theorem = SamplingRevealed(released=Gaussian(2.0, 1.0), rate=1.0, rounds=3, adjacency="add-remove")
    assert theorem.event() == Repeated(Gaussian(2.0, 1.0), 3)


# --- Theorem P ------------------------------------------------------------------------------------------------------


def test_theorem_p_emits_one_sampled_gaussian_per_round():
    theorem = PoissonSampledSums(rate=0.1, contribution=0.5, std=2.0, rounds=40, adjacency="add-remove")
    assert theorem.event() == Repeated(Sampled(2.0, 0.5, 0.1, "add-remove"), 40)
    varying = PoissonSampledSums(rate=(0.1, 0.2), contribution=1.0, std=(1.0, 2.0), rounds=2, adjacency="replace-one")
    assert varying.event() == Composed((Sampled(1.0, 1.0, 0.1, "replace-one"), Sampled(2.0, 1.0, 0.2, "replace-one")))
    full = PoissonSampledSums(rate=1.0, contribution=1.0, std=1.0, rounds=1, adjacency="replace-one")
    assert full.event() == Gaussian(1.0, 2.0)


@pytest.mark.parametrize(("rate", "multiplier"), [(0.05, 1.0), (0.3, 2.0), (0.01, 0.7)])
@pytest.mark.parametrize("order", [2, 5])
def test_one_round_costs_what_the_integrals_say(rate, multiplier, order):
    shift = 1 / multiplier
    mixed = lambda mean: (1 - rate) * density(0.0) + rate * density(mean)
    added = PoissonSampledSums(rate=rate, contribution=1.0, std=multiplier, rounds=1, adjacency="add-remove")
    terms = sum(
        comb(order, j) * (1 - rate) ** (order - j) * rate**j * np.exp(j * (j - 1) / (2 * multiplier**2))
        for j in range(order + 1)
    )
    assert rdp(added.event(), order) == pytest.approx(np.log(terms) / (order - 1), rel=1e-6)
    assert renyi(mixed(shift), density(0.0), order) == pytest.approx(np.log(terms) / (order - 1), rel=1e-6)
    replaced = PoissonSampledSums(rate=rate, contribution=1.0, std=multiplier, rounds=1, adjacency="replace-one")
    antipodal = renyi(mixed(shift), mixed(-shift), order)
    assert rdp(replaced.event(), order) == pytest.approx(antipodal, rel=1e-4)
    assert rdp(replaced.event(), order) >= antipodal * (1 - 1e-9)


@given(
    rate=st.floats(0.01, 0.9),
    order=st.floats(1.1, 8.0),
    a=st.floats(-1, 1),
    b=st.floats(-1, 1),
)
def test_the_antipodal_pair_is_the_worst(rate, order, a, b):
    mixed = lambda mean: (1 - rate) * density(0.0) + rate * density(mean)
    assert renyi(mixed(a), mixed(b), order) <= renyi(mixed(1.0), mixed(-1.0), order) + 1e-9


@pytest.mark.sweep
@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("order", [1.5, 3.0])
@pytest.mark.parametrize("pair", ["add", "remove", "replace"])
def test_no_memory_beats_two_independent_rounds(rate, order, pair):
    # Round 2 may use any function of the party's own first coin and of what was released in round 1. Brute force: for
    # each first release pick the worst pair of contributions after "in" and after "out", in either world.
    grid = np.linspace(-9, 10, 381)
    cell = grid[1] - grid[0]
    normal = {mean: density(mean, grid) for mean in (-1.0, 0.0, 1.0)}
    choices = (-1.0, 0.0, 1.0)
    contributes = {"add": (True, False), "remove": (False, True), "replace": (True, True)}[pair]

    def first_round(active, vector):
        out, present = (1 - rate) * normal[0.0], rate * normal[vector]
        return (out, present) if active else (normal[0.0], np.zeros_like(grid))

    def second_round(active, posterior, after_out, after_in):
        if not active:
            return normal[0.0]
        mixed = posterior * normal[after_in] + (1 - posterior) * normal[after_out]
        return (1 - rate) * normal[0.0] + rate * mixed

    def integral(p, q):
        return np.sum(p**order * q ** (1 - order)) * cell

    signs = [(x, y) for x in choices for y in choices]
    worst_of_round = max(
        integral(sum(first_round(contributes[0], x)), sum(first_round(contributes[1], y)))
        for x, y in signs
        if (contributes[0] or x == 0) and (contributes[1] or y == 0)
    )
    worst = 0.0
    for x, y in signs:
        p_out, p_in = first_round(contributes[0], x)
        q_out, q_in = first_round(contributes[1], y)
        p, q = p_out + p_in, q_out + q_in
        total = 0.0
        for k in range(0, grid.size, 6):
            inner = max(
                integral(
                    second_round(contributes[0], p_in[k] / p[k], *a), second_round(contributes[1], q_in[k] / q[k], *b)
                )
                for a in (signs if contributes[0] else signs[:1])
                for b in (signs if contributes[1] else signs[:1])
            )
            total += p[k] ** order * q[k] ** (1 - order) * inner * 6 * cell
        worst = max(worst, total)
    ratio = np.log(worst) / (2 * np.log(worst_of_round))
    assert ratio == pytest.approx(1.0, abs=1e-5)


def test_a_visible_displacement_loses_the_amplification():
    # Present: displaced by t, and by +-a across it; absent: 0. The Lipschitz constant bounds a, never t.
    rate, a, order = 0.05, 0.25, 2.0
    along, across = np.linspace(-9, 17, 521), np.linspace(-9, 9, 361)
    cell = (along[1] - along[0]) * (across[1] - across[0])
    figures = {0.0: 6.2e-4, 2.0: 4.7e-3, 8.0: 1.41e-2}
    for t, figure in figures.items():
        absent = np.outer(density(0.0, along), density(0.0, across))
        present = [np.outer(density(t, along), density(sign * a, across)) for sign in (1, -1)]
        p, q = ((1 - rate) * absent + rate * law for law in present)
        assert np.log(np.sum(p**2 / q) * cell) == pytest.approx(figure, rel=0.01)
    # Displaced along the difference it is worse still.
    mixed = lambda sign: (1 - rate) * density(0.0) + rate * density(2.0 + sign * a)
    assert renyi(mixed(1), mixed(-1), order) == pytest.approx(8.4e-3, rel=0.01)
    assert revealed_by_hand(rate, order, order * (2 * a) ** 2 / 2, 1) == pytest.approx(1.41e-2, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sample_hidden": False}, "SamplingRevealed"),
        ({"normaliser": "sampled"}, "fixed number"),
        ({"scheme": "fixed-size"}, "FixedSizeWithoutMemory"),
        ({"scheme": "with-replacement"}, "SamplingRevealed"),
        ({"noise_in_state": True}, "SamplingRevealed"),
        ({"stale_states_released": True}, "StateSums"),
        ({"rate": 0.0}, "rate"),
        ({"rate": (0.1, 0.2)}, "as many as rounds"),
        ({"contribution": np.inf}, "contribution"),
    ],
)
def test_theorem_p_refuses_what_breaks_it(changes, named):
    arguments = {"rate": 0.1, "contribution": 1.0, "std": 1.0, "rounds": 3, "adjacency": "add-remove"}
    with pytest.raises(PreconditionError, match=named):
        PoissonSampledSums(**{**arguments, **changes})


# --- fixed size -----------------------------------------------------------------------------------------------------


def kullback(p, q, cell):
    return float(np.sum(p * np.log(np.maximum(p, 1e-300) / np.maximum(q, 1e-300))) * cell)


def test_memory_breaks_fixed_size_sampling():
    # 7 of 8 parties, contributions of norm at most the noise. Without memory the worst round has KL 1.581807: the
    # protected party contributes 1 or -1, all others -1. With memory, who was displaced in round 1 (so that the
    # protected party was in) says so in round 2 by turning its contribution, at almost no cost: more than two rounds.
    parties = 8
    one = np.linspace(-8, 8, 1601)
    in_, out = (parties - 1) / parties, 1 / parties
    worst_round = max(
        kullback(
            out * density(w, one) + in_ * density(v, one),
            out * density(w, one) + in_ * density(v_, one),
            one[1] - one[0],
        )
        for w in np.linspace(-1, 1, 9)
        for v in (-1.0, 1.0)
        for v_ in (-1.0, 1.0)
    )
    assert worst_round == pytest.approx(1.581807, abs=1e-6)

    turned = lambda angle, sign: np.array([sign * np.cos(angle), np.sin(angle)])
    stayed, displaced = turned(-0.5544, -1), turned(0.5286, -1)  # the others, by what happened to them in round 1
    own = {1: (turned(0.1066, 1), turned(-0.1364, 1)), -1: (turned(-0.0725, -1), turned(-0.0476, -1))}
    grid = np.linspace(-6.5, 7.5, 85)

    def box(first, second):
        lines = [density(mean, grid) for mean in (first, *second)]
        return np.einsum("i,j,k->ijk", *lines)

    def law(world):
        after_in, after_out = own[world]
        absent_first = out * box(-1.0, 2 * stayed) + in_ * box(-1.0, stayed + after_out)
        rest = (parties - 2) / parties
        present_first = (
            out * box(float(world), stayed + displaced)
            + out * box(float(world), stayed + after_in)  # the same other is displaced again
            + rest * box(float(world), displaced + after_in)
        )
        return out * absent_first + in_ * present_first

    two_rounds = kullback(law(1), law(-1), (grid[1] - grid[0]) ** 3)
    assert two_rounds == pytest.approx(3.1718, abs=1e-4)
    assert two_rounds > 2 * worst_round * 1.0012
    # What is reported for fixed sizes with memory covers it: KL is the limit of the Renyi divergence at order 1.
    reported = fixed_size_with_memory(
        size=7, population=8, contribution=1.0, std=1.0, rounds=2, adjacency="replace-one"
    )
    assert rdp(reported.event(), 1.0001) >= two_rounds


def test_fixed_size_events():
    theorem = FixedSizeWithoutMemory(size=10, population=100, contribution=0.5, std=2.0, rounds=3)
    assert theorem.event() == Repeated(SampledFixedSize(2.0, 0.5, 10, 100), 3)
    everyone = FixedSizeWithoutMemory(size=100, population=100, contribution=0.5, std=2.0, rounds=1)
    assert everyone.event() == Gaussian(2.0, 1.0)
    revealed = fixed_size_with_memory(
        size=10, population=100, contribution=0.5, std=2.0, rounds=3, adjacency="add-remove"
    )
    assert revealed.event() == Repeated(Mixture((0.9, 0.1), (Nothing(), Gaussian(2.0, 0.5))), 3)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"memory": True}, "PoissonSubset"),
        ({"sample_hidden": False}, "Composition"),
        ({"adjacency": "add-remove"}, "PoissonSubset"),
        ({"size": 101}, "population"),
    ],
)
def test_fixed_size_refusals(changes, named):
    arguments = {"size": 10, "population": 100, "contribution": 1.0, "std": 1.0, "rounds": 1}
    with pytest.raises(PreconditionError, match=named):
        FixedSizeWithoutMemory(**{**arguments, **changes})


# --- who knows the sample -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("observer", "clients_draw", "expected"),
    [
        (Public(), False, PoissonSampledSums),
        (Public(), True, PoissonSampledSums),
        (Server(), False, SamplingRevealed),
        (Server(), True, PoissonSampledSums),
        (Eavesdropper(), False, SamplingRevealed),
        (Eavesdropper(), True, PoissonSampledSums),
        (Peer(party=3), True, SamplingRevealed),
        (Coalition(parties=(1, 2)), False, SamplingRevealed),
    ],
)
def test_who_knows_the_sample(observer, clients_draw, expected):
    theorem = view_of_sampled_sum(
        observer=observer,
        clients_draw_under_secure_sum=clients_draw,
        unsampled_add_noise=True,
        rate=0.1,
        contribution=1.0,
        std=5.0,
        rounds=100,
        adjacency="replace-one",
    )
    assert type(theorem) is expected
    assert theorem.adjacency == "replace-one"


def test_knowing_the_sample_costs_more_and_noise_shares_must_not_tell_it():
    shared = {"rate": 0.1, "contribution": 1.0, "std": 5.0, "rounds": 100, "adjacency": "add-remove"}
    server = view_of_sampled_sum(
        observer=Server(), clients_draw_under_secure_sum=False, unsampled_add_noise=False, **shared
    )
    public = view_of_sampled_sum(
        observer=Public(), clients_draw_under_secure_sum=False, unsampled_add_noise=False, **shared
    )
    assert epsilon(public.event(), 1e-5) < epsilon(server.event(), 1e-5)
    with pytest.raises(PreconditionError, match="share of the noise"):
        view_of_sampled_sum(observer=Server(), clients_draw_under_secure_sum=True, unsampled_add_noise=False, **shared)


@given(rate=st.floats(0.01, 0.9), std=st.floats(0.5, 5), more=st.floats(1.05, 3), order=st.integers(2, 16))
def test_monotone(rate, std, more, order):
    def cost(**changes):
        arguments = {"rate": rate, "contribution": 1.0, "std": std, "rounds": 2, "adjacency": "add-remove"}
        return rdp(PoissonSampledSums(**{**arguments, **changes}).event(), order)

    base = cost()
    assert cost(std=std * more) < base
    assert cost(rate=rate * 0.9) < base
    assert cost(rounds=3) > base
    assert cost(adjacency="replace-one") > base
    full = Gaussian(std, 1.0)
    hidden = SamplingRevealed(released=full, rate=rate, rounds=2, adjacency="add-remove")
    assert base <= rdp(hidden.event(), order) * (1 + 1e-9)
