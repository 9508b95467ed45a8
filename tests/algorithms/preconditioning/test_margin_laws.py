"""How long a model of margins should be, by slopes along it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from consenso.algorithms.preconditioning import margin_laws
from consenso.algorithms.preconditioning.length_laws import CANDIDATES, SCALES
from consenso.losses import Hinge, Loss, SmoothedHinge


def know(
    size: float,
    *,
    mean: float = 0.0,
    constant: float = -1.0,
    odds: float = 0.0,
    lead: float = 0.0,
    signal: float = 1.0,
    nothing: float = 0.5,
    longest: float = 100.0,
    loss: Loss | None = None,
) -> margin_laws.Margins:
    """Scores of this size, of which this part is signal, unless they are of nothing."""
    return margin_laws.Margins(
        loss=loss or Hinge(),
        size=size,
        mean=mean,
        constant=constant,
        odds=odds,
        lead=lead,
        longest=longest,
        signal=np.array([0.0, signal]),
        weights=np.array([nothing, 1 - nothing]),
    )


def free(scales: np.ndarray) -> np.ndarray:
    return np.zeros(len(scales))


def measure_slopes(
    t: np.ndarray, labels: np.ndarray, constant: float = -1.0, loss: Loss | None = None, longest: float = 100.0
) -> np.ndarray:
    """Slopes of the loss along shortened scores t of labels -1 or 1."""
    loss, short = loss or Hinge(), t * longest / np.maximum(np.abs(t), longest)
    return np.array([np.mean(loss.slope(constant + s * t, labels) * short) for s in SCALES])


def measure_hinge(t: np.ndarray, labels: np.ndarray, length: float, constant: float = -1.0) -> float:
    return float(np.mean(np.maximum(0, 1 - labels * (constant + length * t))))


def test_a_hinge_of_noise_becomes_the_larger_class_and_one_of_margins_does_not() -> None:
    rng = np.random.default_rng(2)
    t, y = rng.normal(size=100_000), rng.choice([-1.0, 1.0], size=100_000, p=[0.7, 0.3])
    known = know(1.0, odds=np.log(0.3 / 0.7))
    assert known.choose(measure_slopes(t, y), 0.05, free) == 0.0
    assert known.choose(measure_slopes(t, np.sign(t - 0.3)), 0.05, free) > 0.5


def test_a_rare_label_that_rows_tell_is_learnt() -> None:
    # 7 % of the labels: with the odds of the constant score, -1, every model looked worse than none, at any budget.
    rng = np.random.default_rng(3)
    y = np.where(rng.random(100_000) < 0.07, 1.0, -1.0)
    t = 1.5 * y - 0.5 + rng.normal(size=len(y))
    best = min(CANDIDATES, key=lambda s: measure_hinge(t, y, s))
    for noise in (1e-3, 1e-2):
        known = know(float(np.sqrt(np.mean(t**2))), mean=float(t.mean()), odds=np.log(0.07 / 0.93))
        found = known.choose(measure_slopes(t, y), noise, free)
        losses = [measure_hinge(t, y, s) for s in (0.0, best, found)]
        assert losses[2] - losses[1] < 0.2 * (losses[0] - losses[1])


def test_with_little_noise_the_length_is_that_of_the_released_slopes() -> None:
    # Scores of another law: those of a tenth of the records are eight times as long. By the law alone 9 % are lost.
    rng = np.random.default_rng(4)
    t = rng.normal(size=50_000) * np.where(rng.random(50_000) < 0.1, 8.0, 1.0)
    y = np.where(rng.random(len(t)) < expit(0.5 * t), 1.0, -1.0)
    best = min(measure_hinge(t, y, s) for s in CANDIDATES)
    found = know(float(np.sqrt(np.mean(t**2)))).choose(measure_slopes(t, y), 1e-4, free)
    assert measure_hinge(t, y, found) - best < 0.04 * (measure_hinge(t, y, 0.0) - best)


@pytest.mark.parametrize("smoothing", [0.05, 0.5])
def test_slopes_of_the_law_are_those_of_the_loss_that_was_fitted(smoothing: float) -> None:
    """Its kink is smoothed: a hinge of which a law had not known that seemed to gain by leaving the larger class."""
    rng, loss = np.random.default_rng(5), SmoothedHinge(smoothing=smoothing)
    y = np.where(rng.random(400_000) < 0.45, 1.0, -1.0)
    t = 0.3 * y + 0.4 + 0.7 * rng.normal(size=len(y))
    size, mean = float(np.sqrt(np.mean(t**2))), float(t.mean())
    known = know(size, mean=mean, odds=np.log(0.45 / 0.55), loss=loss)
    # Log-odds are 2 * 0.3 / 0.7^2 times t, whose own standard deviation is this:
    steep = 0.6 / 0.49 * np.sqrt(size**2 - mean**2)
    law = margin_laws.MarginLaws.of(known, np.ones(1), np.array([steep]))
    np.testing.assert_allclose(law.find_slopes(known)[0], measure_slopes(t, y, loss=loss), atol=0.006)
    expected = law.find_losses(-1.0, np.ones(1))
    for length, loss_there in list(zip(CANDIDATES, expected, strict=True))[::40]:
        assert loss_there == pytest.approx(measure_hinge(t, y, length), abs=0.006)


@pytest.mark.parametrize("share", [0.48, 0.3])
@pytest.mark.parametrize("moved", [0.01, 0.3, 1.2])
def test_a_model_that_only_moves_the_constant_part_is_not_kept(share: float, moved: float) -> None:
    """Steps that start at zero have learnt little of the larger class, and rows that tell nothing add nothing."""
    rng, loss = np.random.default_rng(6), SmoothedHinge(smoothing=0.05)
    y = np.where(rng.random(10_000) < share, 1.0, -1.0)
    t = np.full(len(y), moved)
    known = know(moved, mean=moved, odds=np.log(share / (1 - share)), nothing=1e-4, loss=loss)
    for seed in range(20):
        noise = 0.02 * moved
        slopes = measure_slopes(t, y, loss=loss) + noise * np.random.default_rng(seed).normal(size=len(SCALES))
        lost = measure_hinge(t, y, known.choose(slopes, noise, free)) - measure_hinge(t, y, 0.0)
        assert lost < 0.001


def test_scores_that_are_noise_for_the_most_part_are_not_taken_for_labels_without_doubt() -> None:
    """What a hundredth of signal can tell is not worth the larger class; all signal may be."""
    rng = np.random.default_rng(7)
    y = np.where(rng.random(200_000) < 0.3, 1.0, -1.0)
    t = np.where(y > 0, 0.35, -0.15) + 0.2 * rng.normal(size=len(y))
    size, mean = float(np.sqrt(np.mean(t**2))), float(t.mean())
    slopes = measure_slopes(t, y)
    found = [
        know(size, mean=mean, odds=np.log(3 / 7), signal=signal).choose(slopes, 0.15, free) for signal in (0.01, 0.99)
    ]
    assert found[0] == 0.0 < 0.1 < found[1]


def test_the_larger_class_is_kept_whole_where_a_model_gains_less_than_it_leads_by() -> None:
    """Counts that are not sure of it start steps at half of its margin, which is half of what it is worth."""
    rng = np.random.default_rng(8)
    y = np.where(rng.random(200_000) < 0.45, 1.0, -1.0)
    t = 0.05 * y + 0.2 * rng.normal(size=len(y))
    size, slopes = float(np.sqrt(np.mean(t**2))), measure_slopes(t, y, -0.5)
    gained = measure_hinge(t, y, 0.0, -0.5) - min(measure_hinge(t, y, length, -0.5) for length in CANDIDATES)
    for lead in (-0.1, -4 * gained):
        known = know(size, mean=float(t.mean()), constant=-0.5, odds=np.log(0.45 / 0.55), lead=lead)
        assert (known.choose(slopes, 1e-3, free) > 0) == (abs(lead) / 2 < gained)


def test_long_scores_that_follow_no_law_get_the_length_that_slopes_tell() -> None:
    """Labels that a skewed column decides, and scores of which slopes see a fifth: no normal law is near.

    The one that was the least far away had a slope of 0 where the loss still fell, and was believed there.
    """
    rng, loss, longest = np.random.default_rng(9), SmoothedHinge(smoothing=0.05), 2.7
    x = rng.exponential(size=20_000)
    y = np.where(x + 0.05 * rng.normal(size=len(x)) > 1.0, 1.0, -1.0)
    t = 12.0 * (x - 1.0) + 1.0
    best = min(measure_hinge(t, y, length) for length in CANDIDATES)
    size, mean = float(np.sqrt(np.mean(t**2))), float(t.mean())
    known = know(size, mean=mean, odds=np.log(0.37 / 0.63), loss=loss, longest=longest)
    slopes = measure_slopes(t, y, loss=loss, longest=longest)
    for noise in (1e-3, 4e-3):
        assert measure_hinge(t, y, known.choose(slopes, noise, free)) < best + 0.01
