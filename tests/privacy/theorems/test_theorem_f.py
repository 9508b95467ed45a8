"""Theorem F: what averages of noisy states tell, against exact linear algebra and adversarial searches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from consenso.errors import PreconditionError
from consenso.privacy.accountants import epsilon, excess, rdp
from consenso.privacy.events import Bounded
from consenso.privacy.theorems.inexact import inexact_energy
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates


def theorem(**changes) -> MeanOfNoisyStates:
    defaults = {"parties": 100, "step": 1.0, "lipschitz": 1.0, "relaxation": 0.5, "std": 1.0, "rounds": 20}
    return MeanOfNoisyStates(**{**defaults, **changes})


def linear_run(*, parties, rounds, relaxation, step, lipschitz, std, known=()):
    """Exact Gaussian law of (all states, all averages) for linear losses; parties in `known` have public noise.

    Returns the zCDP of the last average, of the trajectory of averages and of the trajectory of all states. The state
    is affine in the noise: u_k = M_k eta + shift_k, built by running the recursion on its coefficients.
    """
    lam = relaxation
    mean_map = np.full((parties, parties), 1 / parties)
    noise = np.zeros((parties, rounds * parties))
    shift = np.zeros(parties)  # difference of the two worlds' means
    gap = np.zeros(parties)
    gap[0] = 2 * lipschitz
    averages, states, shifts_of_averages, shifts_of_states = [], [], [], []
    for k in range(rounds):
        # u+ = u + 2 lam (z - u - step g) + lam eta with z = mean(u): prox of a linear function is a translation.
        step_map = (1 - 2 * lam) * np.eye(parties) + 2 * lam * mean_map
        noise = step_map @ noise
        for i in range(parties):
            noise[i, k * parties + i] += 0.0 if i in known else lam * std
        shift = step_map @ shift - 2 * lam * step * gap
        states.append(noise)
        averages.append(noise.mean(axis=0))
        shifts_of_states.append(shift)
        shifts_of_averages.append(shift.mean())

    def cost(coefficients, means):
        coefficients, means = np.atleast_2d(np.array(coefficients)), np.array(means)
        if not known:
            return means @ np.linalg.solve(coefficients @ coefficients.T, means) / 2
        # Known noise leaves a singular covariance, whose range the means stay in.
        weights, *_ = np.linalg.lstsq(coefficients, means, rcond=None)
        assert np.allclose(coefficients @ weights, means)
        return weights @ weights / 2

    return (
        cost(averages[-1], [shifts_of_averages[-1]]),
        cost(averages, shifts_of_averages),
        cost(np.concatenate(states), np.concatenate(shifts_of_states)),
    )


def test_figures_of_the_exact_linear_run():
    last, trajectory, states = linear_run(parties=100, rounds=20, relaxation=0.5, step=1, lipschitz=1, std=1)
    assert last == pytest.approx(1.6)
    assert trajectory == pytest.approx(1.6)
    assert states == pytest.approx(160.0)
    assert theorem().rho >= trajectory
    assert theorem().rho <= 4 * trajectory
    assert theorem().local_rho == pytest.approx(160.0)


@pytest.mark.parametrize("relaxation", [0.25, 0.5, 0.7])
@pytest.mark.parametrize("parties", [2, 3, 8])
def test_the_bound_covers_linear_losses(parties, relaxation):
    last, trajectory, _ = linear_run(parties=parties, rounds=3, relaxation=relaxation, step=0.7, lipschitz=2.0, std=1.3)
    bound = theorem(parties=parties, rounds=3, relaxation=relaxation, step=0.7, lipschitz=2.0, std=1.3).rho
    assert last <= trajectory + 1e-12
    assert trajectory == pytest.approx(8 * 3 * (0.7 * 2.0) ** 2 / (parties * 1.3**2))
    assert trajectory <= bound


def test_a_party_that_knows_its_own_noise_counts_as_a_colluder():
    _, outside, _ = linear_run(parties=2, rounds=4, relaxation=0.5, step=1, lipschitz=1, std=1)
    _, inside, _ = linear_run(parties=2, rounds=4, relaxation=0.5, step=1, lipschitz=1, std=1, known=(1,))
    assert outside == pytest.approx(4 * 4.0)
    assert inside == pytest.approx(8 * 4.0)
    # With both parties counted as honest the formula says 7.11 per round, below what the other party really learns.
    assert theorem(parties=2, rounds=1).energy_rho == pytest.approx(64 / 9)
    assert theorem(parties=2, rounds=1, colluders=1).rho == pytest.approx(8.0)
    assert theorem(parties=2, rounds=4).rho < inside <= theorem(parties=2, rounds=4, colluders=1).rho + 1e-9


def test_half_relaxation_formula():
    n, K, step, lipschitz, std = 50, 30, 0.4, 1.5, 2.0
    bound = theorem(parties=n, rounds=K, step=step, lipschitz=lipschitz, std=std)
    assert bound.energy_rho == pytest.approx(32 * n * step**2 * lipschitz**2 * K / ((n + 1) ** 2 * std**2))
    assert bound.energy_rho < bound.local_rho
    assert bound.event() == Bounded(bound.energy_rho)
    assert theorem(parties=1).rho == theorem(parties=1).local_rho


def test_general_relaxation_formula():
    n, K, lam = 40, 25, 0.8
    theta = abs(1 - 2 * lam) * np.sqrt(K) / ((n + 1) * np.sqrt(lam * (1 - lam)))
    reach = 2 * lam / (1 - lam) / (1 - theta)
    expected = 2 * n * reach**2 * K / ((n + 1) ** 2 * lam**2)
    bound = theorem(parties=n, rounds=K, relaxation=lam)
    assert bound.feedback == pytest.approx(theta)
    assert bound.energy_rho == pytest.approx(expected)


# --- the pathwise total, by running both worlds along the same averages ---------------------------------------------


def prox_kink(point, direction, offset, height):
    """Prox (step 1) of height |<direction, x> - offset|, |direction| = 1."""
    return point - np.clip(point @ direction - offset, -height, height) * direction


def shifts_along(points, own, own_changed, others, *, relaxation):
    """Squared shifts of the average, given public points z_k; also the largest sum |e_j| / |e_1| over the run."""
    parties = len(others) + 1
    u, v = np.zeros((parties, 2)), np.zeros((parties, 2))
    total, ratios, totals = 0.0, [0.0], []
    for z in points:
        x, y = np.empty_like(u), np.empty_like(v)
        x[0], y[0] = own(2 * z - u[0]), own_changed(2 * z - v[0])
        x[1:] = np.einsum("jab,jb->ja", others, 2 * z - u[1:])
        y[1:] = np.einsum("jab,jb->ja", others, 2 * z - v[1:])
        moved, changed = 2 * relaxation * (x - z), 2 * relaxation * (y - z)
        shift = (moved - changed).mean(axis=0)
        total += shift @ shift
        totals.append(total)
        u, v = u + moved, v + changed + shift  # the same averages: the common noise makes up for the shift
        gaps = np.linalg.norm(u - v, axis=1)
        ratios.append(gaps[1:].sum() / gaps[0] if gaps[0] > 1e-6 else 0.0)
    return np.array(totals), max(ratios)


def test_the_pathwise_constant_is_tight():
    # f_1 = |<c, x>|, f_1' = |<c', x>| with c, c' nearly parallel: at (0, +-R) their subgradients are opposite, and a
    # flipping z makes each round undo the last one and add as much again. The other parties do not move.
    parties, rounds, angle, far = 50, 100, 0.01, 1e4
    c, changed = np.array([np.cos(angle), np.sin(angle)]), np.array([np.cos(angle), -np.sin(angle)])
    points = [np.array([0.0, far if k % 2 else -far]) for k in range(rounds)]
    totals, _ = shifts_along(
        points,
        lambda p: prox_kink(p, c, 0.0, 1.0),
        lambda p: prox_kink(p, changed, 0.0, 1.0),
        np.zeros((parties - 1, 2, 2)),
        relaxation=0.5,
    )
    linear = rounds * (2 / parties) ** 2  # shift of a linear loss: 4 lam step L / n
    allowed = inexact_energy(parties=parties, gap=2.0, tolerance=0.0, rounds=rounds)
    assert allowed / linear == pytest.approx(3.85, abs=0.01)
    assert totals[-1] / linear == pytest.approx(3.81, abs=0.01)
    assert totals[-1] <= allowed
    # So "one round's sensitivity, composed" would have been too small by the same factor.
    assert theorem(parties=parties, rounds=rounds).rho > 3.8 * 8 * rounds / parties


@pytest.mark.sweep
@pytest.mark.parametrize("relaxation", [0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize("parties", [2, 3, 5, 10])
def test_no_searched_instance_beats_the_bound(parties, relaxation):
    rng = np.random.default_rng([parties, int(100 * relaxation)])
    worst, shortcut = 0.0, 0.0
    for _ in range(40):
        turns = rng.uniform(0, 2 * np.pi, 2)
        c = np.array([np.cos(turns[0]), np.sin(turns[0])])
        changed = c + rng.choice([0.1, 1.0, 2.0]) * np.array([np.cos(turns[1]), np.sin(turns[1])])
        changed /= np.linalg.norm(changed)
        offsets = rng.normal(size=2) * rng.choice([0.0, 1.0, 10.0])
        frames = np.linalg.qr(rng.normal(size=(parties - 1, 2, 2)))[0]
        stiffness = 1 / (1 + 10 ** rng.uniform(-3, 4, size=(parties - 1, 2)))
        others = np.einsum("jab,jb,jcb->jac", frames, stiffness, frames)
        points = rng.normal(size=(15, 2)) * 10 ** rng.uniform(0, 3)
        totals, ratio = shifts_along(
            points,
            lambda p, c=c, b=offsets[0]: prox_kink(p, c, b, 1.0),
            lambda p, c=changed, b=offsets[1]: prox_kink(p, c, b, 1.0),
            others,
            relaxation=relaxation,
        )
        shortcut = max(shortcut, ratio)
        for k, total in enumerate(totals, start=1):
            try:
                bound = theorem(parties=parties, rounds=k, relaxation=relaxation)
            except PreconditionError:  # too much feedback for so many rounds: no claim is made
                break
            worst = max(worst, parties * total / (2 * relaxation**2) / bound.energy_rho)
    assert worst <= 1 + 1e-9
    # The shortcut "the others' gaps add up to at most one's own" is false from three parties on.
    assert parties == 2 or shortcut > 1.01


# --- inexact proxes -------------------------------------------------------------------------------------------------


def erring_run(parties, tolerance, rounds):
    """Linear losses; every party's solver errs by +tolerance in one world and -tolerance in the other."""
    errors = np.full(parties, 2 * tolerance)
    errors[0] += 2.0
    e, total = np.zeros(parties), 0.0
    for _ in range(rounds):
        moved = -e + errors  # difference of the prox residuals at relaxation 1/2
        shift = moved.mean()
        total += shift**2
        e = e + moved - shift
    return total


@pytest.mark.parametrize(("parties", "tolerance", "factor"), [(50, 0.1, 7), (1000, 0.01, 29)])
def test_substituting_the_tolerance_would_be_wrong(parties, tolerance, factor):
    rounds = 20
    exact = erring_run(parties, tolerance, rounds)
    substituted = inexact_energy(parties=parties, gap=2 + 2 * tolerance, tolerance=0.0, rounds=rounds)
    assert int(exact / substituted) == factor
    proved = inexact_energy(parties=parties, gap=2 + 2 * tolerance, tolerance=tolerance, rounds=rounds)
    assert exact <= proved
    bound = theorem(parties=parties, tolerance=tolerance, rounds=rounds)
    assert parties * exact * 2 <= bound.energy_rho * (1 + 1e-12)


@given(
    parties=st.integers(2, 30),
    tolerance=st.floats(0, 1),
    rounds=st.integers(1, 30),
    seed=st.integers(0, 2**32 - 1),
)
def test_random_errors_stay_within_the_inexact_bound(parties, tolerance, rounds, seed):
    rng = np.random.default_rng(seed)
    curvature = 10 ** rng.uniform(-2, 2, parties)
    keep = 1 / (1 + curvature)  # prox of a quadratic multiplies differences by this
    keep[0] = 1.0
    e, total = np.zeros(parties), 0.0
    for _ in range(rounds):
        errors = 2 * tolerance * rng.uniform(-1, 1, parties)
        errors[0] += 2.0 * rng.uniform(-1, 1)
        moved = -keep * e + errors
        shift = moved.mean()
        total += shift**2
        e = e + moved - shift
    assert total <= inexact_energy(parties=parties, gap=2 + 2 * tolerance, tolerance=tolerance, rounds=rounds) + 1e-12


@given(
    parties=st.integers(2, 30),
    tolerance=st.floats(0, 1),
    rounds=st.integers(1, 30),
    relaxation=st.floats(0.1, 0.9),
    greedy=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_errors_stay_within_the_bound_at_every_relaxation(parties, tolerance, rounds, relaxation, greedy, seed):
    rng = np.random.default_rng(seed)
    share = abs(1 - 2 * relaxation) * np.sqrt(rounds) / ((parties + 1) * np.sqrt(relaxation * (1 - relaxation)))
    assume(share < 0.99)
    keep = 1 / (1 + 10 ** rng.uniform(-2, 2, parties))  # prox of a quadratic multiplies differences by this
    keep[0] = 1.0
    e, total = np.zeros(parties), 0.0
    for _ in range(rounds):
        # Greedy solvers err in the direction in which the mean moves anyway.
        signs = np.sign(-(keep * e).mean() or 1.0) if greedy else rng.uniform(-1, 1, parties)
        errors = 2 * tolerance * signs * np.ones(parties)
        errors[0] += 2.0 * (signs if greedy else rng.uniform(-1, 1))
        moved = 2 * relaxation * (errors - keep * e)
        shift = moved.mean()
        total += shift**2
        e = e + moved - shift
    gap = 2 + 2 * tolerance
    proved = inexact_energy(parties=parties, gap=gap, tolerance=tolerance, rounds=rounds, relaxation=relaxation)
    assert total <= proved * (1 + 1e-12)


@pytest.mark.parametrize("relaxation", [0.2, 0.4, 0.5, 0.6, 0.9])
def test_a_tolerance_far_below_the_step_costs_next_to_nothing(relaxation):
    exact = theorem(relaxation=relaxation, rounds=5)
    assert exact.energy_rho == pytest.approx(
        2 * 100 * (max(1.0, relaxation / (1 - relaxation)) * 2.0 / (1 - exact.feedback)) ** 2 * 5
        / (101**2 * relaxation**2),
    )  # fmt: skip
    inexact = theorem(relaxation=relaxation, rounds=5, tolerance=1e-10)
    assert exact.rho < inexact.rho <= exact.rho * (1 + 1e-7)


def test_without_tolerance_the_two_formulas_agree():
    assert inexact_energy(parties=9, gap=0.7, tolerance=0.0, rounds=13) == pytest.approx(4 * 0.7**2 * 13 / 10**2)
    almost = theorem(tolerance=1e-13).rho
    assert almost == pytest.approx(theorem().rho, rel=1e-9)
    assert almost >= theorem().rho


# --- monotonicity and refusals --------------------------------------------------------------------------------------


@given(parties=st.integers(2, 500), rounds=st.integers(1, 200), std=st.floats(0.1, 10), more=st.floats(1.01, 5))
def test_monotone(parties, rounds, std, more):
    base = theorem(parties=parties, rounds=rounds, std=std).rho
    assert theorem(parties=parties, rounds=rounds, std=std * more).rho < base
    assert theorem(parties=parties, rounds=rounds + 1, std=std).rho > base
    assert theorem(parties=parties, rounds=rounds, std=std, colluders=1).rho >= base
    assert theorem(parties=parties, rounds=rounds, std=std, tolerance=0.1).rho > base


def test_samplers_that_miss_their_law_are_charged():
    event = theorem(excess=1e-9).event()
    assert excess(event) == 1e-9
    assert rdp(event, 2.0) == pytest.approx(rdp(theorem().event(), 2.0))
    assert epsilon(event, 1e-5) > epsilon(theorem().event(), 1e-5)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"relaxation": 1.0}, "Composition"),
        ({"relaxation": 0.0}, "Composition"),
        ({"relaxation": 0.9, "rounds": 10**6}, "feedback"),
        ({"colluders": 100}, "colluders"),
        ({"colluders": -1}, "colluders"),
        ({"lipschitz": np.inf}, "Huber"),
        ({"rounds": 0}, "rounds"),
    ],
)
def test_refusals(changes, named):
    with pytest.raises(PreconditionError, match=named):
        theorem(**changes)
