"""How long a model should be: what a record may say of it, and what is made of it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from consenso import PrivateLogisticRegression
from consenso.algorithms import lengths
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.errors import MessageError
from consenso.losses import Logistic, Softmax
from consenso.privacy.noise import NoNoise
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.shards import Shards
from consenso.testing.plans import execute, plan_example, shards_of


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


def test_a_length_that_does_not_stand_out_is_left_alone() -> None:
    slopes = np.log(lengths.SCALES) - np.log(2.0)  # the least loss is at twice the length
    assert lengths.choose_length(slopes, 0.0, lambda scale: 0.0) == pytest.approx(2.0)
    assert lengths.choose_length(slopes, 1.0, lambda scale: 0.0) == 1.0
    assert lengths.choose_length(slopes, 0.0, lambda scale: 5 * scale**2) < 1.0
    assert lengths.choose_length(np.zeros(len(lengths.SCALES)), 0.0, lambda scale: 0.0) == 1.0


def test_a_hub_that_names_a_reach_of_its_own_is_refused() -> None:
    class Lying(PreconditionedFixedPoint):
        def down(self, facts, hub):
            return replace(super().down(facts, hub), reach=1e-3)

    example = PreconditionedFixedPoint.example().variants[-1]
    assert example.algorithm.lengths
    lying = Lying(**{each.name: getattr(example.algorithm, each.name) for each in fields(example.algorithm)})
    silent = {name: NoNoise() for name in example.noise}
    with pytest.raises(MessageError, match="reach"):
        execute(plan_example(replace(example, algorithm=lying, noise=silent), trust="curator"), shards_of(example))


def test_classes_that_are_almost_separable_get_a_long_model() -> None:
    """Ten classes of 2,000 records: steps alone end at more than twice this loss."""
    rng = np.random.default_rng(12)
    centres, labels = rng.normal(size=(10, 20)), rng.integers(10, size=2000)
    rows = (centres[labels] + 0.8 * rng.normal(size=(2000, 20))) / np.sqrt(40)
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    model = PrivateLogisticRegression(
        epsilon=3.0, delta=1e-5, row_bound=1.0, classes=list(range(10)), records=2000, random_state=0
    ).fit(rows, labels)
    own = model.predict_proba(rows)[np.arange(2000), labels]
    assert -np.log(own).mean() < 0.04
