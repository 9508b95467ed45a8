"""Variants A, B and C: how far one party's noiseless state and its contribution can move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.oracles.sums import DualSums, IncrementalSums, StateSums, state_growth

from consenso.errors import PreconditionError
from consenso.privacy.events import Gaussian, Repeated

ANGLE, FAR = 1e-3, 1e6
C_ONE = np.array([np.cos(ANGLE), np.sin(ANGLE)])
C_TWO = np.array([np.cos(ANGLE), -np.sin(ANGLE)])


def prox_kink(point, direction, height):
    """Prox (step 1) of height |<direction, x>|."""
    return point - np.clip(point @ direction, -height, height) * direction


def follow(points, relaxation, first=C_ONE, second=C_TWO, clip=None):
    """States and releases of the two worlds along the same public points; step = lipschitz = 1."""
    u, v = np.zeros(2), np.zeros(2)
    rows = []
    for z in points:
        x, y = prox_kink(2 * z - u, first, 1.0), prox_kink(2 * z - v, second, 1.0)
        a, b = x - z, y - z
        if clip is not None:
            a, b = (w * min(1.0, clip / max(np.linalg.norm(w), 1e-300)) for w in (a, b))
        duals = (2 * z - u - x, 2 * z - v - y)
        u, v = u + 2 * relaxation * a, v + 2 * relaxation * b
        rows.append(
            (np.linalg.norm(u - v), 2 * relaxation * np.linalg.norm(a - b), np.linalg.norm(duals[0] - duals[1]))
        )
    return np.array(rows)


@pytest.mark.parametrize(("relaxation", "figure"), [(0.5, 2.0), (0.75, 5.999), (0.9, 17.99)])
def test_the_state_gap_is_tight(relaxation, figure):
    # Above 1/2 the gap changes sign in every round, so the points that feed it must flip as well.
    flips = [np.array([0.0, FAR * (-1) ** (k if relaxation > 0.5 else 0)]) for k in range(400)]
    gaps = follow(flips, relaxation)[:, 0]
    bound = StateSums(step=1.0, lipschitz=1.0, relaxation=relaxation, std=1.0, rounds=1).sensitivity
    assert gaps.max() <= bound * (1 + 1e-9)
    assert gaps.max() == pytest.approx(figure, rel=1e-3)
    assert bound == pytest.approx(figure, rel=1e-3)


@pytest.mark.parametrize("relaxation", [0.1, 0.3, 0.5, 0.75, 0.9])
def test_the_displacement_of_variant_a_is_tight(relaxation):
    # Let the gap build up, then turn: the displacement undoes the gap and adds the new difference.
    sign = [(-1) ** (k if relaxation > 0.5 else 0) for k in range(400)]
    sign.append(-sign[-1])
    moved = follow([np.array([0.0, FAR * s]) for s in sign], relaxation)[:, 1]
    bound = IncrementalSums(step=1.0, lipschitz=1.0, relaxation=relaxation, std=1.0, rounds=1).sensitivity
    assert moved.max() <= bound * (1 + 1e-9)
    assert moved.max() >= 0.99 * bound
    assert bound == pytest.approx(8 * relaxation if relaxation <= 0.5 else 4 * relaxation / (1 - relaxation))


def test_at_relaxation_one_the_gap_grows_without_bound():
    flips = [np.array([0.0, FAR * (-1) ** k]) for k in range(50)]
    gaps = follow(flips, 1.0)[:, 0]
    assert np.allclose(np.diff(gaps), 4.0, atol=1e-3)
    for variant in (IncrementalSums, StateSums):
        with pytest.raises(PreconditionError, match="relaxation"):
            variant(step=1.0, lipschitz=1.0, relaxation=1.0, std=1.0, rounds=1)


@given(
    relaxation=st.floats(0.05, 0.95),
    seed=st.integers(0, 2**32 - 1),
    clip=st.one_of(st.none(), st.floats(0.1, 3)),
    scale=st.floats(0.1, 1e3),
)
def test_no_searched_path_beats_the_sensitivities(relaxation, seed, clip, scale):
    rng = np.random.default_rng(seed)
    turns = rng.uniform(0, 2 * np.pi, 2)
    first, second = (np.array([np.cos(t), np.sin(t)]) for t in turns)
    rows = follow(rng.normal(size=(40, 2)) * scale, relaxation, first, second, clip)
    shared = {"relaxation": relaxation, "std": 1.0, "rounds": 1}
    if clip is None:
        shared |= {"step": 1.0, "lipschitz": 1.0}
        assert rows[:, 0].max() <= StateSums(**shared).sensitivity * (1 + 1e-9)
    else:
        shared |= {"clip": clip}
    assert rows[:, 1].max() <= IncrementalSums(**shared).sensitivity * (1 + 1e-9)
    dual = DualSums(step=1.0, lipschitz=1.0, std=1.0, rounds=1)
    assert rows[:, 2].max() <= dual.sensitivity * (1 + 1e-9)


def test_linear_losses_attain_variant_c():
    # g = 2z - u - x = step * slope, whatever the state.
    dual = DualSums(step=0.7, lipschitz=2.0, std=1.0, rounds=1)
    assert dual.sensitivity == pytest.approx(abs(0.7 * 2.0 - 0.7 * -2.0))
    alone = DualSums(step=0.7, lipschitz=2.0, std=1.0, rounds=1, adjacency="add-remove")
    assert alone.sensitivity == alone.contribution == pytest.approx(1.4)


@pytest.mark.parametrize("relaxation", [0.2, 0.5, 0.8])
def test_add_remove_of_variant_b_is_the_distance_from_the_public_part(relaxation):
    # t = u - Ubar follows t+ = (1 - 2 lam) t - 2 lam step s, |s| <= L: at worst s keeps or flips its sign.
    t, worst = 0.0, 0.0
    for k in range(500):
        slope = 1.5 * (-1) ** (k if relaxation > 0.5 else 0)
        t = (1 - 2 * relaxation) * t - 2 * relaxation * 0.4 * slope
        worst = max(worst, abs(t))
    variant = StateSums(step=0.4, lipschitz=1.5, relaxation=relaxation, std=1.0, rounds=1, adjacency="add-remove")
    assert worst == pytest.approx(variant.sensitivity, rel=1e-6)
    clipped = StateSums(clip=0.6, relaxation=relaxation, std=1.0, rounds=1, adjacency="add-remove")
    assert clipped.sensitivity == pytest.approx(variant.sensitivity)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_clipping_variant_a(adjacency):
    variant = IncrementalSums(clip=0.3, relaxation=0.4, std=1.0, rounds=1, adjacency=adjacency)
    assert variant.sensitivity == pytest.approx(4 * 0.4 * 0.3)


@pytest.mark.parametrize("relaxation", [0.2, 0.5, 0.8])
def test_a_removed_party_moves_variant_a_half_as_far_as_a_replaced_one(relaxation):
    # A party without records: its state follows z. e+ = (1 - 2 lam) e - 2 lam step s, and the increment is e+ - e.
    e, worst = 0.0, 0.0
    for k in range(500):
        slope = 1.5 * (-1) ** (k if relaxation > 0.5 else 0)
        if k == 499 and relaxation <= 0.5:
            slope = -slope
        after = (1 - 2 * relaxation) * e - 2 * relaxation * 0.4 * slope
        e, worst = after, max(worst, abs(after - e))
    bound = IncrementalSums(step=0.4, lipschitz=1.5, relaxation=relaxation, std=1.0, rounds=1, adjacency="add-remove")
    assert worst == pytest.approx(bound.sensitivity, rel=1e-6)


def test_b_and_c_are_the_honest_form_of_the_central_theorem():
    # On the mean, std_z = std / n, rho = 2 K step^2 L^2 / (n^2 std_z^2).
    parties, rounds, step, lipschitz, std_on_mean = 40, 15, 0.3, 2.0, 0.25
    for variant in (
        StateSums(step=step, lipschitz=lipschitz, relaxation=0.5, std=parties * std_on_mean, rounds=rounds),
        DualSums(step=step, lipschitz=lipschitz, std=parties * std_on_mean, rounds=rounds),
    ):
        event = variant.event()
        assert isinstance(event, Repeated)
        assert isinstance(event.event, Gaussian)
        rho = event.count * (event.event.sensitivity / event.event.std) ** 2 / 2
        assert rho == pytest.approx(2 * rounds * step**2 * lipschitz**2 / (parties**2 * std_on_mean**2))


def test_variant_c_at_full_participation_is_consensus_admm():
    # server: P <- (1-2l)P + 2l mean(g), Zb <- (1-2l)Zb + 2l z; party: p_i <- (1-2l)p_i + 2l g_i, u_i = Zb - p_i.
    rng = np.random.default_rng(5)
    parties, dim, relaxation = 6, 3, 0.35
    targets = rng.normal(size=(parties, dim))
    prox = lambda points: (points + targets) / 2  # of |x - target|^2 / 2, step 1
    u, z = np.zeros((parties, dim)), np.zeros(dim)
    P, centre, p = np.zeros(dim), np.zeros(dim), np.zeros((parties, dim))
    for _ in range(30):
        duals = 2 * z - (centre - p) - prox(2 * z - (centre - p))
        u = u + 2 * relaxation * (prox(2 * z - u) - z)
        p = (1 - 2 * relaxation) * p + 2 * relaxation * duals
        P = (1 - 2 * relaxation) * P + 2 * relaxation * duals.mean(axis=0)
        centre = (1 - 2 * relaxation) * centre + 2 * relaxation * z
        assert np.allclose(centre - p, u)
        assert np.allclose(centre - P, u.mean(axis=0))
        z = u.mean(axis=0)
    assert np.allclose(z, targets.mean(axis=0), atol=1e-3)


@given(relaxation=st.floats(0.01, 0.99), step=st.floats(0.01, 10), more=st.floats(1.01, 3))
def test_monotone(relaxation, step, more):
    for variant in (IncrementalSums, StateSums):
        base = variant(step=step, lipschitz=1.0, relaxation=relaxation, std=1.0, rounds=1).sensitivity
        longer = variant(step=step * more, lipschitz=1.0, relaxation=relaxation, std=1.0, rounds=1).sensitivity
        inexact = variant(step=step, lipschitz=1.0, relaxation=relaxation, std=1.0, rounds=1, tolerance=0.1).sensitivity
        assert longer > base
        assert inexact > base
    assert state_growth(relaxation) >= 1


def test_tolerances_widen_every_variant_as_two_worlds_of_errors():
    shared = {"step": 1.0, "lipschitz": 1.0, "std": 1.0, "rounds": 1, "tolerance": 0.25}
    assert IncrementalSums(relaxation=0.5, **shared).sensitivity == pytest.approx(2 * (2 + 0.5))
    assert StateSums(relaxation=0.5, **shared).sensitivity == pytest.approx(2 + 0.5)
    assert DualSums(**shared).sensitivity == pytest.approx(2 + 0.5)
    assert DualSums(**shared, clip=0.9).sensitivity == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (
            lambda: IncrementalSums(relaxation=0.5, std=1.0, rounds=1, clip=1.0, step=1.0, lipschitz=1.0),
            "one of the two",
        ),
        (lambda: IncrementalSums(relaxation=0.5, std=1.0, rounds=1), "clip radius"),
        (lambda: StateSums(relaxation=0.5, std=1.0, rounds=1, lipschitz=1.0), "step"),
        (lambda: StateSums(relaxation=0.5, std=1.0, rounds=1, clip=1.0, step=1.0, lipschitz=1.0), "one of the two"),
        (lambda: DualSums(std=1.0, rounds=1, step=1.0, lipschitz=np.inf), "Huber"),
        (lambda: DualSums(std=-1.0, rounds=1, clip=1.0), "std"),
    ],
)
def test_refusals(build, named):
    with pytest.raises(PreconditionError, match=named):
        build()
