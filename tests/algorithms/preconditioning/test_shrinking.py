"""How much of a noisy model is kept: noise of an average of steps, and how far they have come."""

from __future__ import annotations

import numpy as np
import pytest

from consenso.algorithms.preconditioning.label_levels import guess_spectrum, list_variances
from consenso.algorithms.preconditioning.shrinking import (
    BENDS,
    LABEL_MOMENTA,
    LEFT,
    MARGIN_MOMENTA,
    MOMENTA,
    PARTS,
    MomentumSteps,
    NoisyModel,
    choose_momentum,
    leads_uphill,
    measure_bend,
    plan_steps,
    skip_early,
)
from consenso.losses import Logistic


def simulate(run: MomentumSteps, steps: int, late: int, noise: np.ndarray) -> np.ndarray:
    """Averages of the late points of steps towards 1, for each draw of the noise, (draws, directions)."""
    x, total = np.zeros(noise.shape[1:]), np.zeros(noise.shape[1:])
    before = x
    for t in range(steps):
        x, before = x + run.rates * (1 - x) + run.momentum * (x - before) + noise[t], x
        total += x if t >= steps - late else 0.0
    return total / late


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_noise_and_way_are_those_of_the_steps(momentum: float) -> None:
    rates, steps, late = np.array([0.05, 0.4, 1.0]), 12, 6
    run = MomentumSteps(rates=rates, momentum=momentum, most=steps)
    average = run.average(steps, late=late)
    assert average.way() == pytest.approx(simulate(run, steps, late, np.zeros((steps, 3))))
    # The noise of one step with the whole budget is 1: each of them has the root of their number times that.
    noise = np.sqrt(steps) * np.random.default_rng(0).normal(size=(steps, 40_000, 3))
    assert average.noise() == pytest.approx(simulate(run, steps, late, noise).var(axis=0), rel=0.03)
    assert run.wander() == pytest.approx(simulate(run, steps, 1, noise).var(axis=0), rel=0.03)
    # Of many steps that come all the way, half are averaged: twice the noise of the whole budget.
    long = MomentumSteps(rates=np.array([0.5]), momentum=momentum, most=400).average(400, late=200)
    assert long.noise() * 0.5**2 == pytest.approx(2.0, rel=0.03)


def test_a_model_that_is_short_already_is_not_shortened() -> None:
    variances, prior = np.geomspace(1e-3, 1e3, 121), np.zeros(121)

    def compute_factor(size: float, come: float, noise: float = 1.0, filled: float = 1.0) -> float:
        each = np.ones(1000)
        filled = filled * each
        found = NoisyModel(
            size=size * filled.sum(),
            seen=filled,
            noise=noise * each,
            walked=np.empty(0),
            come=come * each,
            filled=filled,
            outputs=1,
        )
        return found.find_factors(variances * 1000, prior).expect()

    # James and Stein's rule where steps have come all the way, and nothing is left of what is all noise.
    assert compute_factor(2.0, 1.0) == pytest.approx(0.5, abs=0.05)
    assert compute_factor(11.0, 1.0) == pytest.approx(10 / 11, abs=0.02)
    assert compute_factor(1.0, 1.0) < 0.1
    # Damping had taken three quarters: of what it left, half is noise.
    assert compute_factor(2.0, 0.25) == pytest.approx(1.0)
    assert compute_factor(1.1, 0.25) == pytest.approx(4 * (1 - 1 / 1.1), abs=0.15)
    assert compute_factor(1.0, 1.0, noise=0.0) == 1.0
    # Where rows are seen to fill no direction there is nothing but noise.
    assert compute_factor(1.0, 1.0, filled=0.0) == 0.0


def test_a_model_of_noise_is_dropped_though_its_directions_are_not_known() -> None:
    """All directions are seen, and rows fill few of them: most of what is seen is noise that no score has."""
    filled = guess_spectrum(50)
    noise, come = np.full(50, 2.0), np.full(50, 0.5)

    def compute_factor(size: float) -> float:
        found = NoisyModel(
            size=size, seen=np.ones(50), noise=noise, walked=np.empty(0), come=come, filled=filled, outputs=1
        )
        return found.find_factors(*list_variances(Logistic())).expect()

    assert compute_factor(100.0) < 0.2 < 0.8 < compute_factor(300.0)


def test_a_model_as_large_as_free_steps_make_it_may_be_about_nothing() -> None:
    noise, each = np.full(20, 0.05), np.ones(20)

    def find_nothing(size: float, walked: np.ndarray) -> float:
        found = NoisyModel(size=size, seen=each, noise=noise, walked=walked, come=0.5 * each, filled=each, outputs=1)
        shrinkage = found.find_factors(*list_variances(Logistic()))
        assert (shrinkage.signal[shrinkage.factors == 0] == 0).all()
        return float(shrinkage.weights[shrinkage.factors == 0].sum())

    # 20 directions of variance 0.3 are what free steps make, and far too much for those that are bent back.
    assert find_nothing(6.0, np.empty(0)) < 1e-6 < 0.1 < find_nothing(6.0, np.full(20, 0.3))
    # Ten times that is too much for either.
    assert find_nothing(60.0, np.full(20, 0.3)) < 1e-6


def test_the_signal_of_a_model_is_what_noise_leaves_of_the_variance_of_its_scores() -> None:
    each = np.ones(20)
    found = NoisyModel(
        size=100.0, seen=each, noise=0.5 * each, walked=np.empty(0), come=0.5 * each, filled=each, outputs=1
    )
    # Scores of the variance 4 that have come half of the way have 1 of it; noise has 20 times 0.5.
    assert found.find_factors(np.array([0.0, 4.0]), np.zeros(2)).signal == pytest.approx([0.0, 1 / 11])
    # What lies in the first direction alone is not looked at; and of nothing else nothing is kept.
    first = np.eye(20)[0]
    left = found.leave_out(first)
    assert left.filled.sum() == 19
    assert left.seen[0] == 0
    assert (
        NoisyModel(size=1.0, seen=first, noise=0.5 * each, walked=np.empty(0), come=each, filled=first, outputs=1)
        .leave_out(0.99 * first)
        .find_factors(np.array([0.0, 4.0]), np.zeros(2))
        .expect()
        == 0.0
    )


def test_steps_end_when_little_is_left_to_learn_beside_noise() -> None:
    rates, filled, noise = np.array([1.0, 0.3]), np.array([1.0, 0.2]), 0.01

    def left_at(bends: float, steps: int, momentum: float, rates=rates, filled=filled) -> float:
        run = MomentumSteps(rates=bends * rates, momentum=momentum, most=steps).average(
            steps, late=steps - skip_early(steps)
        )
        learnt = float(filled @ (1 - run.way()) ** 2) / float(filled.sum())
        return learnt / (noise**2 * float(filled @ run.noise()))

    def left(steps: int, momentum: float) -> float:
        return max(left_at(bends, steps, momentum) for bends in np.geomspace(BENDS, 1, PARTS))

    steps, momentum = plan_steps(rates, filled, 1.0, noise, 1, 400)
    assert left(steps, momentum) <= LEFT < left(steps - 1, momentum)
    # Momentum is for directions that bend little: with it steps end sooner.
    assert momentum > 0
    assert left(steps, 0.0) > LEFT
    # The larger one is for directions that bend by little; there is none where noise is loud, and points wander.
    slow = np.array([1.0, 0.1])
    assert plan_steps(slow, filled, 1.0, 0.001, 1, 400)[1] == max(MOMENTA)
    assert plan_steps(slow, filled, 1.0, 0.2, 1, 400)[1] == 0.0
    # One direction, in which nine steps that bend by 0.3 swing to where they should be by chance, and others do not.
    alike = np.array([1.2]), np.ones(1)
    assert left_at(BENDS, 9, 0.25, *alike) < LEFT < left_at(1.0, 9, 0.25, *alike)
    steps, momentum = plan_steps(*alike, 1.0, noise, 1, 400)
    assert max(left_at(bends, steps, momentum, *alike) for bends in np.linspace(0.3, 1.0, 29)) < 2 * LEFT
    # Never fewer or more than is asked for; where rows fill nothing, nothing is known of what is left.
    assert plan_steps(rates, filled, 1.0, 10.0, 4, 80)[0] == 4
    assert plan_steps(rates, filled, 1.0, 1e-12, 4, 20)[0] == plan_steps(rates, np.zeros(2), 1.0, noise, 4, 20)[0] == 20


@pytest.mark.parametrize(("smooth", "momenta"), [(True, LABEL_MOMENTA), (False, MARGIN_MOMENTA)])
def test_steps_on_labels_go_on_where_noise_is_quiet(smooth: bool, momenta: tuple[float, ...]) -> None:
    rates, filled = np.array([0.02, 0.5]), np.ones(2)
    found = [choose_momentum(rates, filled, noise, 40, smooth=smooth) for noise in np.geomspace(1e-3, 0.3, 40)]
    assert found[0] == max(momenta)
    assert found[-1] == 0.0
    assert sorted(found, reverse=True) == found
    assert set(found) == {0.0, *momenta}


def test_a_step_leads_uphill_where_its_gradient_says_so_by_more_than_noise() -> None:
    way, rng = np.array([3.0, 4.0]), np.random.default_rng(0)
    assert leads_uphill(way, np.array([0.3, 0.4]), 0.4)
    assert not leads_uphill(way, np.array([0.3, 0.4]), 0.6)
    assert not leads_uphill(way, -way, 0.0)
    told = [leads_uphill(way, rng.normal(size=2), 1.0) for _ in range(2000)]
    assert np.mean(told) == pytest.approx(0.16, abs=0.03)


def test_a_step_tells_how_much_the_loss_bends_and_its_noise_does_not() -> None:
    """The noise of the first gradient is in the step and in the change of gradients: it would look like a bend."""
    rng, filled, paces, bend = np.random.default_rng(0), np.linspace(0.2, 1.0, 40), np.full(40, 1.2), 0.6

    def measure(noise: float) -> float:
        start = np.full(40, 2.0)
        first = bend * filled * start + noise * rng.normal(size=40)
        way = -paces * first
        second = bend * filled * (start + way) + noise * rng.normal(size=40)
        return measure_bend(way, second - first, filled, noise, paces)

    assert measure(0.0) == pytest.approx(bend)
    # Two standard deviations less: seldom more than the loss bends, and less the more noise there is.
    for noise in (0.01, 0.1, 1.0):
        told = np.array([measure(noise) for _ in range(2000)])
        assert np.mean(told > bend) < 0.05
    assert np.mean([measure(0.01) for _ in range(100)]) > 0.9 * bend > 0.5 * bend > np.mean(told)
    assert measure_bend(np.zeros(40), np.ones(40), filled, 1.0, paces) == 0.0


def test_steps_that_met_more_curvature_end_sooner() -> None:
    rates, filled = np.full(20, 1.1), np.full(20, 0.9)
    pessimistic, known = (plan_steps(rates, filled, 1.0, 0.001, 4, 80, bends)[0] for bends in (BENDS, 0.8))
    assert known < pessimistic
