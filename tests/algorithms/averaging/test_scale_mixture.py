"""Noise is taken off numbers by what they have in common: a threshold where few stand out, a factor where all do."""

from __future__ import annotations

import numpy as np
import pytest

from consenso.algorithms.averaging.scale_mixture import estimate


def draw(truth: np.ndarray) -> np.ndarray:
    return truth + np.random.default_rng(1).normal(size=truth.shape)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_numbers_that_are_alike_are_made_smaller_by_one_factor(scale: float) -> None:
    noisy = draw(scale * np.random.default_rng(0).normal(size=20_000))
    best = noisy * scale**2 / (1 + scale**2)
    # At most .09 of a standard deviation for twenty seeds: a grid of scales is not the scale itself.
    assert np.sqrt(np.mean((estimate(noisy) - best) ** 2)) < 0.12


def test_few_numbers_that_stand_out_are_kept_and_the_others_left_out() -> None:
    truth = np.zeros(20_000)
    truth[:100] = 10.0
    noisy = draw(truth)
    kept = estimate(noisy)
    assert np.abs(kept[:100] - noisy[:100]).max() < 0.5
    assert np.mean(np.square(kept[100:])) < 0.02


def test_nothing_but_noise_leaves_next_to_nothing() -> None:
    # At most .01 for a hundred seeds.
    assert np.mean(np.square(estimate(draw(np.zeros(2000))))) < 0.02


def test_what_is_kept_is_odd_continuous_and_no_longer_than_what_was_given() -> None:
    noisy = draw(2 * np.random.default_rng(0).normal(size=(500, 3)))
    kept = estimate(noisy)
    np.testing.assert_array_equal(estimate(-noisy), -kept)
    assert (np.abs(kept) <= np.abs(noisy)).all()
    order = np.argsort(noisy.ravel())
    assert (np.diff(kept.ravel()[order]) >= -1e-9).all()
    np.testing.assert_allclose(estimate(np.array([0.0, 1e9])), [0.0, 1e9], rtol=1e-6)
