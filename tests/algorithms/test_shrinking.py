"""How much of a noisy model is kept: noise of an average of steps, and how far they have come."""

from __future__ import annotations

import numpy as np
import pytest

from consenso.algorithms.shrinking import Run


def simulate(rates: np.ndarray, steps: int, late: int, noise: np.ndarray) -> np.ndarray:
    """Averages of the late points of steps towards 1, for each draw of the noise, (draws, directions)."""
    x, total = np.zeros(noise.shape[1:]), np.zeros(noise.shape[1:])
    for t in range(steps):
        x = x + rates * (1 - x) + noise[t]
        total += x if t >= steps - late else 0.0
    return total / late


def test_noise_and_way_are_those_of_the_steps() -> None:
    rates, steps, late = np.array([0.05, 0.4, 1.0]), 12, 6
    run = Run(rates=rates, steps=steps, taken=steps, late=late)
    assert run.way() == pytest.approx(simulate(rates, steps, late, np.zeros((steps, 3))))
    # The noise of one step with the whole budget is 1: each of them has the root of their number times that.
    noise = np.sqrt(steps) * np.random.default_rng(0).normal(size=(steps, 40_000, 3))
    assert run.noise() == pytest.approx(simulate(rates, steps, late, noise).var(axis=0), rel=0.03)
    # Of many steps that come all the way, half are averaged: twice the noise of the whole budget.
    long = Run(rates=np.array([0.5]), steps=400, taken=400, late=200)
    assert long.noise() * 0.5**2 == pytest.approx(2.0, rel=0.02)


def test_a_model_that_is_short_already_is_not_shortened() -> None:
    ones, move = np.ones(3), np.full(3, 0.01)
    come = Run(rates=ones, steps=20, taken=20, late=10)
    noise = float(move @ come.noise())
    assert come.kept(2 * noise, move, ones, ones) == pytest.approx(0.5)
    assert come.kept(noise / 2, move, ones, ones) == 0.0
    # Damping had taken three quarters, as its prior said: half of them were noise's.
    assert come.kept(2 * noise, move, ones, ones / 4) == 1.0
    assert come.kept(1.1 * noise, move, ones, ones / 4) == pytest.approx(4 * (1 - 1 / 1.1))
    # A direction that no record fills counts for nothing.
    filled = np.array([1.0, 1.0, 0.0])
    assert come.kept(2 * noise, move, filled, ones) == pytest.approx(2 / 3)
    assert come.kept(1.0, move, np.zeros(3), ones) == 1.0
