"""Gradient ADMM: the norm, the contraction, two iterations of noise, and whole runs, against exact Gaussian laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import PreconditionError
from consenso.privacy.accountants import rdp
from consenso.privacy.events import ZCDP, Bounded, Mixture
from consenso.privacy.theorems.gradient_admm import (
    GradientIteration,
    GradientRandomOrder,
    GradientRandomStopping,
    GradientVisits,
    absorption,
    contraction,
    pair_constant,
)


def iteration(**changes) -> GradientIteration:
    defaults = {
        "step": 1.0,
        "penalty": 1.0,
        "std": 1.0,
        "gradient_gap": 1.0,
        "smoothness": 1.0,
        "smallest_singular_value": 1.0,
        "largest_singular_value": 1.0,
        "rows": 1,
        "columns": 2,
    }
    return GradientIteration(**{**defaults, **changes})


class LinearWorld:
    """Quadratic losses and a quadratic g: every iteration is affine, so laws are exactly Gaussian.

    `resolvent` maps w to lambda+ (any symmetric matrix between 0 and I); each iteration has its own Hessian.
    """

    def __init__(self, rng, rows, columns, step, penalty, low, high, aligned):
        left, right = (np.linalg.qr(rng.normal(size=(k, k)))[0] for k in (rows, columns))
        self.singular = 10 ** rng.uniform(-0.5, 0.5, rows)
        self.matrix = left @ np.diag(self.singular) @ right[:rows]
        self.step, self.penalty, self.low, self.high = step, penalty, low, high
        self.rng, self.right, self.aligned = rng, right, aligned
        frame = left if aligned else np.linalg.qr(rng.normal(size=(rows, rows)))[0]
        self.resolvent = frame @ np.diag(rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], size=rows)) @ frame.T
        self.inverse = np.linalg.inv(np.eye(columns) + step * penalty * self.matrix.T @ self.matrix)

    def hessian(self):
        columns = self.matrix.shape[1]
        frame = self.right.T if self.aligned else np.linalg.qr(self.rng.normal(size=(columns, columns)))[0]
        return frame @ np.diag(self.rng.uniform(self.low, self.high, columns)) @ frame.T

    def map(self, hessian):
        """Linear part of one iteration on (x, lambda)."""
        rows, columns = self.matrix.shape
        w = np.hstack([-self.penalty * self.matrix, np.eye(rows)])
        dual = self.resolvent @ w
        rest = w - dual
        x = np.hstack([np.eye(columns) - self.step * hessian, np.zeros((columns, rows))])
        x = self.inverse @ (x + self.step * self.matrix.T @ (dual - rest))
        return np.vstack([x, dual])

    @property
    def metric(self):
        """|(x, lambda)|^2 = |x|^2 + (step/penalty)|lambda - penalty A x|^2 as a matrix."""
        rows, columns = self.matrix.shape
        w = np.hstack([-self.penalty * self.matrix, np.eye(rows)])
        square = np.zeros((rows + columns, rows + columns))
        square[:columns, :columns] = np.eye(columns)
        return square + self.step / self.penalty * w.T @ w

    def iteration(self, std=1.0, gap=1.0):
        rows, columns = self.matrix.shape
        return iteration(
            step=self.step,
            penalty=self.penalty,
            std=std,
            gradient_gap=gap,
            smoothness=self.high,
            strong_convexity=self.low,
            smallest_singular_value=float(self.singular.min()),
            largest_singular_value=float(self.singular.max()),
            rows=rows,
            columns=columns,
        )


def worlds(count, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        rows = int(rng.integers(1, 4))
        columns = rows + int(rng.integers(0, 3))
        low, high = float(rng.choice([0.0, 0.3])), 1.0
        step = 2 / (low + high) * rng.uniform(0.05, 1.0)
        yield LinearWorld(rng, rows, columns, step, 10 ** rng.uniform(-1, 1), low, high, bool(rng.integers(2)))


def divergence(shift, covariance):
    """zCDP of two Gaussians with the same, possibly singular, covariance."""
    values, frame = np.linalg.eigh(covariance)
    along = frame.T @ shift
    seen = values > 1e-12 * values.max()
    assert np.abs(along[~seen]).max(initial=0.0) <= 1e-6 * np.linalg.norm(shift) + 1e-12
    return np.sum(along[seen] ** 2 / values[seen]) / 2


def test_one_iteration_in_the_basis_of_singular_vectors():
    # |(x+, lambda+)|^2 = sum_s [(a - t p)^2 + l^2] / (1 + t^2) + |a in the kernel of A|^2, t = sqrt(kappa) s.
    for world in worlds(40, seed=1):
        rows, columns = world.matrix.shape
        left, singular, right = np.linalg.svd(world.matrix)
        difference = world.rng.normal(size=rows + columns)
        hessian = world.hessian()
        image = world.map(hessian) @ difference
        a = right @ (difference[:columns] - world.step * hessian @ difference[:columns])
        w = difference[columns:] - world.penalty * world.matrix @ difference[:columns]
        scale = np.sqrt(world.step / world.penalty)
        dual = left.T @ (world.resolvent @ w) * scale
        p = left.T @ (w - world.resolvent @ w) * scale
        t = np.sqrt(world.step * world.penalty) * singular
        by_formula = np.sum(((a[:rows] - t * p) ** 2 + dual**2) / (1 + t**2)) + np.sum(a[rows:] ** 2)
        assert image @ world.metric @ image == pytest.approx(by_formula, rel=1e-10)


def test_contraction_holds_and_is_attained():
    closest = 0.0
    for world in worlds(200, seed=2):
        root = np.linalg.cholesky(world.metric)
        image = root.T @ world.map(world.hessian()) @ np.linalg.inv(root.T)
        squared = np.linalg.norm(image, 2) ** 2
        bound = world.iteration().squared_contraction
        assert squared <= bound * (1 + 1e-9)
        closest = max(closest, squared / bound)
    assert closest > 0.98


def test_contraction_figures():
    assert contraction(curvature=1.0, smallest=1.0, largest=1.0, gradient_factor=0.9) == pytest.approx(0.905)
    assert contraction(curvature=1.0, smallest=1.0, largest=3.0, gradient_factor=1.0) == pytest.approx(1.0)
    assert iteration(strong_convexity=0.1, step=1.0).squared_contraction == pytest.approx(0.905)
    assert iteration().squared_contraction == pytest.approx(1.0)


@pytest.mark.parametrize(("curvature", "figure"), [(1.0, 1.39), (2.0, 1.0), (5.0, 1.0), (0.1, 18.7)])
def test_pair_constant_figures(curvature, figure):
    assert pair_constant(curvature=curvature, smallest=1.0, wide=True) == pytest.approx(figure, rel=1e-2)


def test_two_iterations_hide_a_difference_as_the_constant_says():
    closest = 0.0
    for world in worlds(300, seed=3):
        rows, columns = world.matrix.shape
        first, second = world.map(world.hessian()), world.map(world.hessian())
        noise = np.zeros((rows + columns, rows + columns))
        noise[:columns, :columns] = np.eye(columns)
        covariance = second @ noise @ second.T + noise
        root = np.linalg.inv(np.linalg.cholesky(world.metric))
        image = second @ first @ root.T  # of the unit ball of the norm
        values, frame = np.linalg.eigh(covariance)
        seen = values > 1e-12 * values.max()
        assert np.abs(frame[:, ~seen].T @ image).max(initial=0.0) < 1e-6
        cost = np.linalg.norm((frame[:, seen] / np.sqrt(values[seen])).T @ image, 2) ** 2
        bound = pair_constant(
            curvature=world.step * world.penalty, smallest=float(world.singular.min()), wide=columns > rows
        )
        assert cost <= bound * (1 + 1e-6)
        closest = max(closest, cost / bound)
    assert closest > 0.5


@pytest.mark.parametrize(("later", "figure"), [(0, 0.5), (1, 0.5), (2, 0.291), (10, 0.109), (100, 0.0135)])
def test_figures_of_convex_runs(later, figure):
    assert iteration().rho(later) == pytest.approx(figure, rel=6e-3)


def test_figure_of_a_strongly_convex_run():
    assert iteration(strong_convexity=0.1).rho(100) == pytest.approx(7.1e-6, rel=1e-2)


@given(pairs=st.integers(1, 400), squared=st.floats(0.05, 1.0))
def test_absorption_is_the_geometric_sum_and_beats_its_mean(pairs, squared):
    total = absorption(pairs=pairs, squared_contraction=squared)
    if -2 * pairs * math.log10(squared) > 299:
        assert total >= 1e290  # cut, so that a cost is overstated rather than lost
        return
    assert total == pytest.approx(math.fsum(squared ** (-2.0 * t) for t in range(pairs)), rel=1e-6)
    # Arithmetic against geometric mean: the printed L^(T-1)/T is weaker.
    assert total >= pairs * squared ** (-(pairs - 1)) * (1 - 1e-9)


def test_spreading_by_absorption_is_optimal():
    # w_t = rho (w_{t-1} - q_t) must reach 0 after T pairs; the least sum of q_t^2 is |v|^2 / S_T.
    squared, pairs = 0.8, 6
    constraint = squared ** -np.arange(pairs)  # sum_t q_t rho^-(t-1) = 1, rho the distance factor of a pair
    q = constraint / np.sum(constraint**2)
    assert constraint @ q == pytest.approx(1.0)
    assert np.sum(q**2) == pytest.approx(1 / absorption(pairs=pairs, squared_contraction=squared))


def test_whole_runs_stay_within_the_bound():
    closest = {}
    for world in worlds(150, seed=4):
        rows, columns = world.matrix.shape
        total = int(world.rng.integers(1, 12))
        visits = sorted({int(v) for v in world.rng.integers(1, total + 1, size=int(world.rng.integers(1, 3)))})
        std = 1.7
        candidates = [*np.linalg.svd(world.matrix)[2], *world.rng.normal(size=(2, columns))]
        maps = [world.map(world.hessian()) for _ in range(total)]
        worst = 0.0
        for direction in candidates:
            gap = direction / np.linalg.norm(direction)
            shift = np.zeros(rows + columns)
            covariance = np.zeros((rows + columns, rows + columns))
            for t, step_map in enumerate(maps, start=1):
                shift, covariance = step_map @ shift, step_map @ covariance @ step_map.T
                covariance[:columns, :columns] += std**2 * np.eye(columns)
                if t in visits:
                    shift[:columns] += world.inverse @ (world.step * gap)
            worst = max(worst, divergence(shift, covariance))
        bound = GradientVisits(iteration=world.iteration(std=std), iterations=total, positions=tuple(visits))
        assert worst <= bound.rho * (1 + 1e-6)
        assert bound.event() == Bounded(bound.rho)
        if len(visits) == 1:
            later = total - visits[0]
            closest[later] = max(closest.get(later, 0.0), worst / bound.rho)
    assert closest[0] == pytest.approx(1.0, abs=1e-6)  # the user's own noise alone: exact
    assert closest[2] > 0.3


def test_visits_add_up():
    step = iteration()
    several = GradientVisits(iteration=step, iterations=20, positions=(3, 9, 20))
    assert several.rho == pytest.approx(step.rho(5) + step.rho(10) + step.rho(0))
    first = GradientVisits(iteration=step, iterations=20, positions=(1,))
    assert first.rho == pytest.approx(step.rho(19))


def test_random_order_and_random_stopping():
    step, users, order = iteration(), 100, 2.0
    by_hand = np.log(np.mean([np.exp((order - 1) * order * step.rho(users - t)) for t in range(1, users + 1)]))
    shuffled = GradientRandomOrder(iteration=step, users=users)
    assert rdp(shuffled.event(), order) == pytest.approx(by_hand, rel=1e-9)
    assert rdp(shuffled.event(), order) == pytest.approx(0.128, rel=5e-3)
    assert order * step.own_rho == pytest.approx(1.0)
    event = shuffled.event()
    assert isinstance(event, Mixture)
    assert all(isinstance(part, ZCDP) for part in event.events)  # converted through Renyi only
    stopped = GradientRandomStopping(iteration=step, users=users)
    worst = max(
        rdp(GradientRandomStopping(iteration=step, users=users, position=t).event(), order) for t in range(1, 101, 7)
    )
    assert rdp(stopped.event(), order) == pytest.approx(worst)
    middle = [0.0] * 49 + [step.rho(m) for m in range(51)]
    by_hand = np.log(np.mean(np.exp((order - 1) * order * np.array(middle))))
    half_way = GradientRandomStopping(iteration=step, users=users, position=50)
    assert rdp(half_way.event(), order) == pytest.approx(by_hand, rel=1e-9)


def test_one_user_is_no_mixture():
    assert GradientRandomOrder(iteration=iteration(), users=1).event() == ZCDP(iteration().own_rho)


def test_costs_never_round_to_zero():
    step = iteration(strong_convexity=1.0)
    assert 0 < step.rho(10**7) < 1e-290


@given(
    later=st.integers(0, 60),
    penalty=st.floats(0.05, 20),
    std=st.floats(0.1, 10),
    convexity=st.floats(0.0, 0.5),
)
def test_monotone(later, penalty, std, convexity):
    base = iteration(penalty=penalty, std=std, strong_convexity=convexity, step=1.0)
    assert base.rho(later + 1) <= base.rho(later)
    assert base.rho(later) <= base.own_rho
    assert iteration(penalty=penalty, std=2 * std, strong_convexity=convexity).rho(later) < base.rho(later)
    assert iteration(penalty=penalty, std=std, gradient_gap=2.0, strong_convexity=convexity).rho(later) > base.rho(
        later
    )


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"smoothness": np.inf}, "SmoothedHinge"),
        ({"step": 2.5}, "step"),
        ({"step": 1.9, "strong_convexity": 0.5}, "step"),
        ({"smallest_singular_value": 0.0}, "full row rank"),
        ({"rows": 3}, "full row rank"),
        ({"largest_singular_value": 0.5}, "largest_singular_value"),
        ({"strong_convexity": 2.0}, "strong_convexity"),
        ({"std": 0.0}, "std"),
    ],
)
def test_refusals(changes, named):
    with pytest.raises(PreconditionError, match=named):
        iteration(**changes)


def test_positions_are_checked():
    for positions in ((), (2, 2), (3, 1), (0,), (11,)):
        with pytest.raises(PreconditionError, match="positions"):
            GradientVisits(iteration=iteration(), iterations=10, positions=positions)
    with pytest.raises(PreconditionError, match="position"):
        GradientRandomStopping(iteration=iteration(), users=10, position=11)
