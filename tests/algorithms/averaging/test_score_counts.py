"""The length and the constant part of a model of two labels, from counts of records by score and label."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from consenso.algorithms.averaging import score_counts
from consenso.algorithms.averaging.score_counts import BINS, ENDS, calibrate
from consenso.losses import Logistic
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.shards import Cohort, Shards


def count(t: np.ndarray, labels: np.ndarray) -> np.ndarray:
    places = np.searchsorted(ENDS, t, side="right") + BINS * (labels > 0)
    return np.bincount(places, minlength=2 * BINS).astype(float)


def draw(records: int, *, factor: float, added: float, constant: float, seed: int = 0):
    """Scores with two humps, as those of texts, and labels that ask for this length and constant part."""
    rng = np.random.default_rng(seed)
    t = np.where(rng.random(records) < 0.8, rng.normal(-0.6, 0.3, records), rng.normal(3.0, 1.5, records))
    return t, (rng.random(records) < expit(constant + added + factor * t)).astype(float)


def cohort_of(rows: np.ndarray, signs: np.ndarray) -> Cohort:
    problem = Problem(
        loss=Logistic(),
        regularizer=NoPenalty(),
        features=rows.shape[1],
        sizes=np.array([len(rows)]),
        row_bound=float(np.linalg.norm(rows, axis=1).max()),
    )
    return Shards.from_parties(problem, [(rows, signs)]).cohort()


@pytest.mark.parametrize(("factor", "added"), [(1.0, 0.0), (0.5, 0.4), (2.0, -0.7), (0.0, 0.3)])
def test_with_little_noise_length_and_constant_are_those_that_the_labels_ask_for(factor: float, added: float) -> None:
    t, labels = draw(400_000, factor=factor, added=added, constant=-1.0)
    found = calibrate(count(t, labels), 1.0, len(t), constant=-1.0, own=0.0, width=1.0, is_free=True)
    # Bins are coarse.
    assert found.factor == pytest.approx(factor, abs=0.06 + 0.06 * factor)
    assert found.added == pytest.approx(added, abs=0.12)


def test_without_noise_it_is_logistic_regression_on_the_scores() -> None:
    """Labels that no logistic model fits, as those of texts: the answer is that of least loss all the same."""
    t, _ = draw(50_000, factor=1.0, added=0.0, constant=0.0)
    labels = (np.random.default_rng(3).random(len(t)) < 0.05 + 0.9 * expit(3 * (t - 1))).astype(float)
    expected = minimize(
        lambda given: np.mean(np.logaddexp(0, (1 - 2 * labels) * (given[0] * t + given[1]))), [1.0, 0.0]
    )
    found = calibrate(count(t, labels), 0.0, len(t), constant=0.0, own=0.0, width=1.0, is_free=True)
    np.testing.assert_allclose([found.factor, found.added], expected.x, atol=0.05)


def test_where_noise_hides_the_counts_a_model_stays_as_it_is() -> None:
    t, labels = draw(1000, factor=1.0, added=0.0, constant=0.0)
    for seed in range(20):
        noisy = count(t, labels) + np.random.default_rng(seed).normal(0, 1e5, 2 * BINS)
        found = calibrate(noisy, 1e5, len(t), constant=0.0, own=0.0, width=1.0, is_free=True)
        assert 0.0 <= found.factor <= score_counts.LONGEST_FACTOR
        assert abs(found.factor - 1) < 1
        assert abs(found.added) < 1


def test_noise_moves_the_answer_by_no_more_than_the_prior_allows_and_hardly_where_it_is_small() -> None:
    """Twenty draws of the noise: the mean square of the error is below that of keeping the model as it is."""
    t, labels = draw(50_000, factor=0.6, added=-0.5, constant=0.0)
    off = []
    for seed in range(20):
        noisy = count(t, labels) + np.random.default_rng(seed).normal(0, 100, 2 * BINS)
        found = calibrate(noisy, 100, len(t), constant=0.0, own=0.0, width=1.0, is_free=True)
        off.append([found.factor - 0.6, found.added + 0.5])
    assert (np.mean(np.square(off), axis=0) < [0.4**2 / 2, 0.5**2 / 2]).all()


@pytest.mark.parametrize(("factor", "width"), [(0.0, 1.0), (0.0, 0.3), (1.5, 0.3), (1.5, 1.0)])
def test_what_records_have_moved_of_their_own_scores_is_taken_off(factor: float, width: float) -> None:
    """Labels of which a model tells so much; while it grew, a slope of 1 in all steps moved its record's score by 1."""
    rng = np.random.default_rng(1)
    t = rng.normal(size=400_000)
    labels = (rng.random(len(t)) < expit(factor * t)).astype(float)
    moved = np.mean([np.clip(labels - expit(part * t), -width, width) for part in np.linspace(0, 1, 20)], axis=0)
    given = {"counts": count(t + moved, labels), "noise": 1.0, "records": len(t), "constant": 0.0, "is_free": True}
    plain = calibrate(own=0.0, width=width, **given)
    mended = calibrate(own=float(np.sqrt(np.mean(moved**2))), width=width, **given)
    assert plain.factor > factor + 0.35
    assert abs(mended.factor - factor) < 0.4 * (plain.factor - factor)


def test_a_constant_part_that_is_not_free_is_left_alone() -> None:
    t, labels = draw(50_000, factor=1.0, added=0.8, constant=0.0)
    assert calibrate(count(t, labels), 1.0, len(t), constant=0.0, own=0.0, width=1.0, is_free=False).added == 0.0


def test_every_record_is_in_one_bin_whatever_the_model_is() -> None:
    rng = np.random.default_rng(0)
    rows, signs = rng.normal(size=(50, 3)), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    cohort = cohort_of(rows, signs)
    for x in (np.ones(3), np.full(3, 1e308), np.array([1e308, -1e308, 1e308]), np.zeros(3)):
        with np.errstate(over="ignore", invalid="ignore"):
            bins = score_counts.find_bins(cohort, x, np.zeros(3))
        assert bins.shape == (50,)
        assert ((bins >= 0) & (bins < 2 * BINS)).all()
        np.testing.assert_array_equal(bins >= BINS, signs > 0)
    scores = rows @ np.ones(3)
    inside = score_counts.find_bins(cohort, np.ones(3), np.zeros(3)) % BINS
    ends = np.concatenate([[-np.inf], ENDS, [np.inf]])
    assert ((ends[inside] <= scores) & (scores < ends[inside + 1])).all()
