"""The bound for first-order ADMM holds for runs of it, with noise and without, and scales as it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from experiments.linearised import LinearisedADMM
from scipy.optimize import brentq

from consenso import theory
from consenso.errors import InputError
from consenso.privacy.theorems.gradient_admm import GradientIteration

TARGETS = np.array([-1.0, 0.2, 0.5, 2.0, 0.4])  # losses |x - b|, or Huber's: minimised by the median, 0.4
BEST = 0.4
RUNS = 300


def slope(x, smooth):
    gap = x - TARGETS
    return np.clip(gap / smooth, -1, 1) if smooth else np.sign(gap)


def value(x, smooth):
    gap = np.abs(x - TARGETS)
    return np.where(gap < smooth, gap**2 / (2 * smooth), gap - smooth / 2) if smooth else gap


def gap_of(averages, smooth):
    """Excess of the parties' own averages, (runs,)."""
    grid = np.linspace(-1, 2, 6001)[:, None]
    return value(averages, smooth).mean(axis=1) - value(grid, smooth).mean(axis=1).min()


def with_server(rounds, step, penalty, std, seed=0, fall=0.0, smooth=0.0):
    """InexactADMM's iteration; the average of the points at which gradients were taken."""
    rng, z, dual = np.random.default_rng(seed), np.zeros((RUNS, 5)), np.zeros((RUNS, 5))
    seen = np.zeros((RUNS, 5))
    for k in range(1, rounds + 1):
        eta = step * k**-fall
        w = (z - dual / penalty).mean(axis=1, keepdims=True)
        noisy = slope(z, smooth) + std * rng.normal(size=z.shape)
        after = (penalty * w + dual + z / eta - noisy) / (penalty + 1 / eta)
        seen += (after if smooth else z) / rounds
        z = after
        dual = dual + penalty * (w - z)
    return gap_of(seen, smooth)


def on_ring(rounds, step, penalty, std, inner=1, seed=0):
    """IPADMM's iteration on a ring of five."""
    rng = np.random.default_rng(seed)
    w, said, dual, seen = (np.zeros((RUNS, 5)) for _ in range(4))
    hear = lambda x: np.roll(x, 1, axis=1) + np.roll(x, -1, axis=1)
    for _ in range(rounds):
        pull, total = 2 * dual + penalty * (2 * said + hear(said)), np.zeros_like(w)
        for _ in range(inner):
            seen += w / (rounds * inner)
            w = (pull + w / step - slope(w, 0) - std * rng.normal(size=w.shape)) / (4 * penalty + 1 / step)
            total += w / inner
        said = total
        dual = dual - penalty / 2 * (2 * said - hear(said))
    return gap_of(seen, 0.0)


def under_constraint(rounds, step, penalty, std, weight, target, seed=0):
    """GradientADMM's iteration for |x - target| + weight |y|, x = y, with noise on x."""
    rng, x, dual = np.random.default_rng(seed), np.zeros(RUNS), np.zeros(RUNS)
    means, others = np.zeros(RUNS), np.zeros(RUNS)
    for _ in range(rounds):
        point = x - dual / penalty
        y = np.sign(point) * np.maximum(np.abs(point) - weight / penalty, 0)
        dual = dual - penalty * (x - y)
        means, others = means + x / rounds, others + y / rounds
        x = (x - step * (np.sign(x - target) - penalty * y - dual)) / (1 + step * penalty) + std * rng.normal(size=RUNS)
    return np.abs(means - target) + weight * np.abs(others) - weight * abs(target)


def holds(gaps, bound) -> None:
    """Six standard errors of the mean: a false alarm has probability below 1e-8."""
    assert gaps.mean() - 6 * gaps.std() / np.sqrt(RUNS) <= bound


@pytest.mark.parametrize(("rounds", "step", "penalty", "std"), [(50, 0.1, 1.0, 0.0), (200, 0.05, 0.3, 2.0)])
def test_with_a_server(rounds, step, penalty, std):
    made = LinearisedADMM.with_server(penalty=penalty, step=step, distance=BEST, gradient=1.0, noise=std**2)
    holds(with_server(rounds, step, penalty, std), made.bound(rounds))
    falling = replace(made, fall=0.5, distance=4.0)  # the iterates stay within [-2, 2]
    holds(with_server(rounds, step, penalty, std, fall=0.5), falling.bound(rounds))


def test_smooth_losses_do_not_pay_for_their_gradients():
    common = {"penalty": 0.3, "step": 0.4, "distance": 0.6, "noise": 0.0}
    smooth = LinearisedADMM.with_server(**common, smoothness=1.0)
    rough = LinearisedADMM.with_server(**common, gradient=1.0)
    assert smooth.bound(400) < rough.bound(400) / 50
    holds(with_server(400, 0.4, 0.3, 0.0, smooth=1.0), smooth.bound(400))
    noisy = replace(smooth, noise=0.25)
    holds(with_server(400, 0.4, 0.3, 0.5, smooth=1.0), noisy.bound(400))


@pytest.mark.parametrize("inner", [1, 4])
def test_on_a_graph_with_inner_steps(inner):
    made = LinearisedADMM.on_graph(
        penalty=0.2, largest_degree=2, step=0.02, distance=BEST, gradient=1.0, noise=1.0, inner_steps=inner
    )
    for rounds in (10, 60):
        holds(on_ring(rounds, 0.02, 0.2, 1.0, inner=inner), made.bound(rounds))
    assert replace(made, inner_steps=4).bound(10) < replace(made, inner_steps=1).bound(10)


def test_under_a_constraint():
    step, penalty, std = 0.05, 1.0, 0.01
    made = LinearisedADMM.under_constraint(
        penalty=penalty, std=std, dim=1, matrix_norm=1.0, far=0.7, step=step, distance=0.7, gradient=1.0
    )
    holds(under_constraint(300, step, penalty, std, 0.3, 0.7), made.bound(300))
    # A wrong sign of the dual, or noise that is left out, would show: the bound is within a factor of the truth.
    assert made.bound(300) < 20 * abs(under_constraint(300, step, penalty, std, 0.3, 0.7).mean())


def test_a_bound_that_leaves_something_out_is_broken():
    made = LinearisedADMM.with_server(penalty=1.0, step=0.5, distance=BEST, gradient=1.0, noise=400.0)
    gaps = with_server(100, 0.5, 1.0, 20.0)
    holds(gaps, made.bound(100))
    assert gaps.mean() > replace(made, noise=0.0).bound(100)


@pytest.mark.parametrize(
    "options",
    [
        {"gradient": 1.0, "noise": 4.0},
        {"gradient": 1.0, "noise": 4.0, "fall": 0.5, "inner_steps": 3},
        {"noise": 4.0, "smoothness": 2.0, "step": 0.1, "inner_steps": 3},
        {"noise": 0.0, "smoothness": 2.0, "step": 0.1},
    ],
)
def test_the_best_step_is_the_best(options):
    made = LinearisedADMM.with_server(**{"penalty": 1.0, "step": 1.0, "distance": 0.7, **options}).with_best_step(100)
    for factor in (0.3, 0.9, 0.99, 1.01, 1.1, 3.0):
        longer = factor * made.step
        if made.smoothness is None or longer < 1 / made.smoothness:
            assert made.bound(100) <= replace(made, step=longer).bound(100) * (1 + 1e-12)


def test_rates():
    made = LinearisedADMM.with_server(penalty=1.0, step=1.0, distance=1.0, gradient=1.0, noise=1.0)
    few, many = (made.with_best_step(rounds).bound(rounds) for rounds in (10_000, 1_000_000))
    assert many / few == pytest.approx(0.1, rel=0.05)  # 1/sqrt(T)
    falling = replace(made, fall=0.5)
    assert falling.bound(1_000_000) / falling.bound(10_000) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("inner", [1, 5])
def test_the_best_private_error_falls_with_records_and_budget(inner):
    """Of the order sqrt(p) / (n epsilon), whatever the number of inner steps: 002, Theorem 7."""
    made = LinearisedADMM.with_server(penalty=1e-3, step=1.0, distance=1.0, gradient=1.0, noise=0.0, inner_steps=inner)

    def best(records, epsilon, dim=20):
        price, rho = dim * theory.price_of_sum(step=1.0, sensitivity=2.0, units=records), theory.budget(epsilon, 1e-5)
        planned, rounds = made.at_budget(rho, price=price)
        assert planned.bound(rounds) > np.sqrt(price / rho)  # what is left after infinitely many rounds
        return planned.bound(rounds)

    assert best(1000, 1.0) / best(2000, 1.0) == pytest.approx(2.0, rel=0.1)
    assert best(1000, 1.0) / best(1000, 2.0) == pytest.approx(2.0, rel=0.15)
    assert best(1000, 1.0, dim=80) / best(1000, 1.0) == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(("engine", "inner"), [("server", 1), ("ring", 1), ("ring", 3)])
def test_a_planned_private_run_keeps_the_bound(engine, inner):
    """Rounds and step from the budget, noise from rounds and budget; the runs are those of 003, 004 and 002."""
    common = {"penalty": 1.0, "step": 1.0, "distance": BEST, "gradient": 1.0, "noise": 0.0, "inner_steps": inner}
    if engine == "server":
        made = LinearisedADMM.with_server(**common)
    else:
        made = LinearisedADMM.on_graph(largest_degree=2, **common)
    price = theory.price_of_sum(step=1.0, sensitivity=2.0, units=50)
    planned, rounds = made.at_budget(theory.budget(1.0, 1e-5), price=price, most=300)
    std = np.sqrt(planned.noise)
    if engine == "server":
        gaps = with_server(rounds, planned.step, 1.0, std)
    else:
        gaps = on_ring(rounds, planned.step, 1.0, std, inner=inner)
    holds(gaps, planned.bound(rounds))
    assert planned.bound(rounds) < 10 * gaps.mean()  # a bound that leaves nothing out, and not all too wide


def test_the_more_users_follow_the_less_noise_a_user_needs():
    """001: for a fixed cost of the first half of the users, final model seen, the bound falls with their number."""

    def planned(users, rho=0.01):
        def cost(std):
            step = GradientIteration(
                step=0.05,
                penalty=1.0,
                std=std,
                gradient_gap=2.0,
                smoothness=1.0,
                smallest_singular_value=1.0,
                largest_singular_value=1.0,
                rows=1,
                columns=1,
            )
            return step.rho(users // 2)

        std = brentq(lambda std: cost(std) - rho, 1e-4, 10.0)
        made = LinearisedADMM.under_constraint(
            penalty=1.0, std=std, dim=1, matrix_norm=1.0, far=0.7, step=0.05, distance=0.7, gradient=1.0
        )
        return std, made.bound(users)

    (loud, wide), (quiet, narrow) = planned(400), planned(40_000)
    assert quiet < loud / 5  # of the order 1/sqrt(T)
    assert narrow < wide / 2
    holds(under_constraint(400, 0.05, 1.0, loud, 0.3, 0.7), wide)


def test_what_the_bound_is_not_proved_for_is_refused():
    common = {"step": 0.5, "distance": 1.0, "noise": 0.0}
    for name, wrong in (
        ("step", {"step": 0.0}),
        ("noise", {"noise": -1.0}),
        ("inner_steps", {"inner_steps": 0}),
        ("fall", {"fall": 1.0}),
        ("smoothness", {"smoothness": 3.0}),
    ):
        with pytest.raises(InputError, match=name):
            LinearisedADMM(**{**common, **wrong})
    with pytest.raises(InputError, match="penalty"):
        LinearisedADMM.with_server(penalty=0.0, **common)
    with pytest.raises(InputError, match="rounds"):
        LinearisedADMM(**common).bound(0)
