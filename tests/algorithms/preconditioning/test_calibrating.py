"""The bias of the constant part of a model of labels, and shares that noise hides."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from consenso.algorithms.preconditioning.calibrating import ConstantSteps, keep_bias
from consenso.algorithms.preconditioning.label_levels import estimate_variance, measure_flatness, shares_of
from consenso.algorithms.preconditioning.noise_levels import clip_slopes, late_curvature
from consenso.algorithms.preconditioning.shrinking import average_kept
from consenso.algorithms.preconditioning.target_counts import estimate_shares, read_constant_model
from consenso.losses import Hinge, Logistic
from consenso.problem import Problem
from consenso.regularizers import NoPenalty


def run(origin: np.ndarray, **changes) -> ConstantSteps:
    settings = {"start": np.zeros(len(origin)), "limit": 10.0, "pace": 2.0, "pulled": 0.0, "momentum": 0.0}
    settings |= {"steps": 400, "first": 200}
    return ConstantSteps(origin=origin, **{**settings, **changes})


def test_steps_that_get_there_have_no_bias() -> None:
    for origin in (np.array([-2.0]), np.log([0.5, 0.3, 0.2]) - np.log([0.5, 0.3, 0.2]).mean()):
        assert run(origin).compute_bias() == pytest.approx(0.0, abs=1e-6)
        assert run(origin, start=origin, steps=1, first=0).compute_bias() == pytest.approx(0.0, abs=1e-12)


def test_clipped_slopes_move_a_rare_label_by_the_logarithm_of_the_clip() -> None:
    found = run(np.array([-7.0]), start=np.array([-7.0]), limit=0.5, pace=200.0, steps=4000, first=3000).compute_bias()
    assert found == pytest.approx(np.log(0.5), abs=0.01)
    # Few steps from zero end short of the score, to the other side.
    assert run(np.array([-7.0]), steps=10, first=5).compute_bias() > 2.0


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_steps_are_those_of_records(momentum: float) -> None:
    origin = np.log([0.6, 0.3, 0.1]) - np.log([0.6, 0.3, 0.1]).mean()
    scores = before = np.zeros(3)
    for _ in range(5):
        slopes = clip_slopes(shares_of(scores) - np.eye(3), 0.6)
        moved = scores - 1.5 * np.array([0.6, 0.3, 0.1]) @ slopes - 0.1 * (scores - origin)
        scores, before = moved + momentum * (scores - before), scores
    found = run(origin, limit=0.6, pace=1.5, pulled=0.1, momentum=momentum, steps=5, first=4).compute_bias()
    assert found == pytest.approx(scores - origin)


def find_bias_of_normal_scores(variance: float, share: float, limit: float) -> float:
    """Of steps without noise on labels whose odds follow normal scores, in the score at which labels change."""
    scores = ndtri((np.arange(512) + 0.5) / 512)
    constant = brentq(lambda at: expit(at + np.sqrt(variance) * scores).mean() - share, -60, 60)
    odds, origin = expit(constant + np.sqrt(variance) * scores), np.log(share / (1 - share))
    total, slope, kept = origin, 0.0, []
    for _ in range(40):
        found = expit(total + slope * scores)
        slopes = odds * np.maximum(found - 1, -limit) + (1 - odds) * np.minimum(found, limit)
        total, slope = total - 2.0 * slopes.mean(), slope - 2.0 * (slopes @ scores) / len(scores)
        kept.append((total, slope))
    total, slope = np.mean(kept[20:], axis=0)
    # Made as long as labels call for, which is measured later, the model should end at `constant`.
    come = slope / np.sqrt(variance) if variance else 0.0
    return float(total - origin - (constant - origin) * come)


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_the_bias_falls_as_rows_tell_labels_apart(share: float) -> None:
    alike = find_bias_of_normal_scores(0.0, share, 0.5)
    origin = np.array([np.log(share / (1 - share))])
    assert alike == pytest.approx(run(origin, start=origin, limit=0.5, steps=40, first=20).compute_bias()[0], abs=1e-6)
    left = [find_bias_of_normal_scores(variance, share, 0.5) / alike for variance in (0.0, 0.5, 1.0, 3.0, 10.0)]
    assert left == sorted(left, reverse=True)
    assert 0.6 < left[2] < 0.8
    assert left[3] > 0 > left[4]
    # What is taken off, by what the first gradient speaks for, is at most 0.35 less than that, and never negative.
    scores, curvature = ndtri((np.arange(512) + 0.5) / 512), late_curvature(Logistic()) * Logistic().curvature_bound
    for variance, part in zip((0.0, 0.5, 1.0), left, strict=False):
        pull = np.sqrt(variance) * np.mean(expit(np.sqrt(variance) * scores) * (1 - expit(np.sqrt(variance) * scores)))
        spoken = estimate_variance(np.array([pull]), 0.0, curvature, Logistic(), 1.0)
        assert part - 0.35 < keep_bias(spoken) <= part
    assert 0 < keep_bias(40.0) < 0.02


def test_labels_that_are_alike_cost_little_whatever_the_noise() -> None:
    """Seeded; the mean cost of equal labels is 0.01 at most, and was 0.06 with flat priors alone."""
    rng = np.random.default_rng(0)
    for classes in (2, 3, 10, 40):
        for noise in (0.03, 0.1, 0.2, 0.3, 1.0):
            drawn = [estimate_shares(1 / classes + noise * rng.normal(size=classes), noise) for _ in range(200)]
            costs = [-np.log(classes) - np.log(shares).mean() for shares in drawn]
            assert np.mean(costs) < 0.01 + 2 * np.std(costs) / np.sqrt(len(costs))
    assert (
        average_kept(9.0, 9, np.geomspace(0.1, 100, 20))
        < 0.2
        < 0.9
        < average_kept(900.0, 9, np.geomspace(0.1, 100, 20))
    )


def test_a_hinge_starts_from_the_larger_class_as_far_as_it_is_known() -> None:
    asked = Problem(loss=Hinge(), regularizer=NoPenalty(), features=2, sizes=np.array([100]), row_bound=1.0)
    found = [read_constant_model(asked, np.array([80.0, 20.0]), noise) for noise in (0.0, 5.0, 1e4)]
    assert found[0].scores[0] == -1.0
    assert found[1].scores[0] == pytest.approx(-1.0, abs=1e-6)
    assert abs(found[2].scores[0]) < 0.01
    assert [each.lead for each in found] == [-0.6, -0.6, -0.6]


def test_a_loss_is_as_flat_as_its_label_is_rare() -> None:
    assert measure_flatness(np.zeros(1)) == 1.0
    assert measure_flatness(np.array([-4.6])) == pytest.approx(0.2, abs=0.01)
