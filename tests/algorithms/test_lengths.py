"""How long a wide model should be: what a record may say of it, and what is made of it."""

from __future__ import annotations

import numpy as np
import pytest

from consenso.algorithms import lengths
from consenso.losses import Logistic, Softmax
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.shards import Shards


def made(loss, rows, targets) -> Shards:
    problem = Problem(
        loss=loss,
        regularizer=NoPenalty(),
        features=rows.shape[1],
        sizes=np.array([len(rows)]),
        row_bound=float(np.linalg.norm(rows, axis=1).max()),
    )
    return Shards.from_parties(problem, [(rows, targets)])


@pytest.mark.parametrize("classes", [2, 4])
def test_slopes_are_derivatives_of_the_loss_by_the_log_of_the_length(classes: int) -> None:
    rng = np.random.default_rng(0)
    rows, outputs = rng.normal(size=(50, 3)), 1 if classes == 2 else classes
    targets = rng.integers(classes, size=50) if classes > 2 else rng.choice([-1.0, 1.0], size=50)
    loss = Softmax(classes=classes) if classes > 2 else Logistic()
    x, origin = rng.normal(size=(2, 3 * outputs))
    found = lengths.sum_slopes(made(loss, rows, targets).cohort(), x, origin, 1e4)[0]

    def value(scale: float) -> float:
        scores = rows @ (origin + scale * (x - origin)).reshape(3, outputs)
        return float(loss.value(scores if outputs > 1 else scores[:, 0], targets).sum())

    wanted = [(value(s * 1.0001) - value(s / 1.0001)) / (2 * np.log(1.0001)) for s in lengths.SCALES]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_a_record_says_no_more_than_its_reach() -> None:
    """Also of a model that is wrong by far."""
    rows = np.array([[3.0, -1.0]])
    for x in (np.array([1e-3, 0.0]), np.array([5.0, 2.0]), np.array([1e100, 0.0])):
        for target in (-1.0, 1.0):
            said = lengths.sum_slopes(made(Logistic(), rows, np.array([target])).cohort(), x, np.zeros(2), 2.0)
            assert np.linalg.norm(said) <= 2.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_that_overflows_takes_nothing_of_the_others_away() -> None:
    """A hub may name a model so long that some rows overflow, and others do not."""
    rows, targets, x = np.array([[0.0, 1.0], [30.0, 0.0]]), np.array([1.0, 1.0]), np.array([1e308, 0.5])
    said = [
        lengths.sum_slopes(made(Logistic(), part, targets[: len(part)]).cohort(), x, np.zeros(2), 2.0)
        for part in (rows, rows[:1])
    ]
    assert np.isfinite(said).all()
    assert np.linalg.norm(said[0] - said[1]) <= 2.0 + 1e-12
    assert np.linalg.norm(said[1]) > 0.1


def test_a_length_that_does_not_stand_out_is_left_alone() -> None:
    slopes = np.log(lengths.SCALES) - np.log(2.0)  # the least loss is at twice the length
    assert lengths.choose_length(slopes, 0.0, lambda scale: 0.0) == pytest.approx(2.0)
    assert lengths.choose_length(slopes, 1.0, lambda scale: 0.0) == 1.0
    assert lengths.choose_length(slopes, 0.0, lambda scale: 5 * scale**2) < 1.0
    assert lengths.choose_length(np.zeros(len(lengths.SCALES)), 0.0, lambda scale: 0.0) == 1.0
