"""How long a model should be: what a record may say of it, and what is made of it."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from consenso import PrivateLogisticRegression
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.algorithms.preconditioning import length_laws
from consenso.errors import MessageError
from consenso.losses import Hinge, Logistic, Softmax
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
def test_slopes_are_derivatives_of_the_loss_by_the_length(classes: int) -> None:
    rng = np.random.default_rng(0)
    rows, outputs = rng.normal(size=(50, 3)), 1 if classes == 2 else classes
    targets = rng.integers(classes, size=50) if classes > 2 else rng.choice([-1.0, 1.0], size=50)
    loss = Softmax(classes=classes) if classes > 2 else Logistic()
    x, origin = rng.normal(size=(2, 3 * outputs))
    found = length_laws.sum_slopes(made(loss, rows, targets).cohort(), x, origin, 1e4)[0]

    def value(scale: float) -> float:
        scores = rows @ (origin + scale * (x - origin)).reshape(3, outputs)
        return float(loss.value(scores if outputs > 1 else scores[:, 0], targets).sum())

    wanted = [(value(s + 1e-4) - value(s - 1e-4)) / 2e-4 for s in length_laws.SCALES]
    np.testing.assert_allclose(found[:-1], wanted, rtol=1e-5, atol=1e-5)


def test_a_record_says_no_more_than_its_reach() -> None:
    """Also of a model that is wrong by far."""
    rows = np.array([[3.0, -1.0]])
    for x in (np.array([1e-3, 0.0]), np.array([5.0, 2.0]), np.array([1e100, 0.0])):
        for loss, target in ((Logistic(), -1.0), (Logistic(), 1.0), (Softmax(classes=3), 2), (Hinge(), -1.0)):
            model = np.outer(x, np.array([1.0, 0.5, -1.0])[: loss.outputs]).ravel()
            said = length_laws.sum_slopes(made(loss, rows, np.array([target])).cohort(), model, 0 * model, 2.0)
            assert 0 < np.linalg.norm(said) <= 2.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_row_that_overflows_takes_nothing_of_the_others_away() -> None:
    """A hub may name a model so long that some rows overflow, and others do not."""
    rows, targets, x = np.array([[0.0, 1.0], [30.0, 0.0]]), np.array([1.0, 1.0]), np.array([1e308, 0.5])
    said = [
        length_laws.sum_slopes(made(Logistic(), part, targets[: len(part)]).cohort(), x, np.zeros(2), 2.0)
        for part in (rows, rows[:1])
    ]
    assert np.isfinite(said).all()
    assert np.linalg.norm(said[0] - said[1]) <= 2.0 + 1e-12
    assert np.linalg.norm(said[1]) > 0.1


def test_records_of_large_scores_weigh_less_whether_they_are_right_or_wrong() -> None:
    rows = np.array([[8.0]])
    right, wrong = (
        length_laws.sum_slopes(made(Logistic(), rows, np.array([y])).cohort(), np.ones(1), np.zeros(1), 2.0)[0]
        for y in (1.0, -1.0)
    )
    # At length 0 both slopes are half of the score, which is shortened to 1. A doubt makes it no shorter than this.
    assert -right[0] == pytest.approx(0.5)
    assert 0.5 / np.hypot(1.0, length_laws.DOUBT) <= wrong[0] <= 0.5


@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3), Hinge()])
def test_a_row_of_zeros_is_no_row(loss) -> None:
    model = np.ones(2 * loss.outputs)
    shards = made(loss, np.array([[0.0, 0.0], [1.0, 0.0]]), np.ones(2, dtype=int))
    alone = made(loss, np.array([[1.0, 0.0]]), np.ones(1, dtype=int))
    said, wanted = (length_laws.sum_slopes(each.cohort(), model, 0 * model, 2.0) for each in (shards, alone))
    np.testing.assert_allclose(said, wanted, atol=1e-6)


def know(loss, size: float, *, longest: float = 100.0) -> length_laws.Lengths:
    """A length of 1, as far as it is known."""
    return length_laws.Lengths(
        loss=loss, size=size, constant=np.zeros(1), lengths=np.ones(1), weights=np.ones(1), longest=longest
    )


def free(scales: np.ndarray) -> np.ndarray:
    return np.zeros(len(scales))


def simulate_slopes(best: float, size: float) -> np.ndarray:
    """Those of log loss, where log-odds are `best` times scores of a normal law."""
    t = size * np.random.default_rng(1).normal(size=200_000)
    return np.array([np.mean(t * (expit(s * t) - expit(best * t))) for s in length_laws.SCALES])


@pytest.mark.parametrize(("best", "off"), [(0.3, 0.05), (1.0, 0.01), (2.5, 0.1)])
def test_slopes_without_noise_tell_the_best_length(best: float, off: float) -> None:
    """2.5 lies beyond the last scale at which slopes are measured."""
    found = know(Logistic(), 1.5).choose(simulate_slopes(best, 1.5), 1e-3, free)
    assert found == pytest.approx(best, rel=off)


@pytest.mark.parametrize(("steep", "least", "most"), [(0.5, 0.6, 1.2), (1.5, 0.5, 1.2), (20.0, 0.5, 2.0)])
def test_what_is_added_for_records_that_were_learnt_from_is_what_others_would_add(
    steep: float, least: float, most: float
) -> None:
    """Slopes of a fit on other records are above those on its own by this: labels with odds, and all but separable."""
    rng, columns, records, apart, added = np.random.default_rng(3), 20, 1000, [], []
    for _ in range(40):
        rows, way = rng.normal(size=(5 * records, columns)), rng.normal(size=columns) * steep / np.sqrt(columns)
        odds = expit(rows @ way)
        labels = np.where(rng.random(len(rows)) < odds, 1.0, -1.0)
        learnt = LogisticRegression(C=0.1, fit_intercept=False).fit(rows[:records], labels[:records]).coef_[0]
        scores = rows @ learnt
        doubts = expit(-labels * scores)
        own, others = -(labels * scores * doubts)[:records], (scores * (expit(scores) - odds))[records:]
        apart.append(others.mean() - own.mean())
        problem = made(Logistic(), rows[:records], labels[:records]).problem
        curved = np.linalg.eigvalsh(rows[:records].T @ rows[:records]) * np.mean(expit(scores) * expit(-scores))
        directions = float(np.sum(curved / (curved + 10)))  # 1/C is added to the curvature
        doubt = float(np.mean(doubts[:records]))
        added.append(length_laws.correct_optimism(problem, directions, doubt, noise=1.0)[2])
        # With a growing budget it vanishes.
        assert (length_laws.correct_optimism(problem, directions, doubt, noise=1e-6) <= 2e-6).all()
    assert least < np.mean(added) / np.mean(apart) < most


def test_doubts_are_what_a_model_leaves_of_the_labels_probability() -> None:
    rows, x, reach = np.random.default_rng(5).normal(size=(50, 2)), np.array([0.3, -0.2]), 50.0
    two = length_laws.sum_slopes(made(Logistic(), rows, np.ones(50)).cohort(), x, np.zeros(2), reach)[0, -1]
    assert two == pytest.approx(length_laws.DOUBT * reach * expit(-rows @ x).sum(), rel=1e-6)
    weights = np.random.default_rng(6).normal(size=(2, 3))
    several = length_laws.sum_slopes(
        made(Softmax(classes=3), rows, np.ones(50, dtype=int)).cohort(), weights.ravel(), np.zeros(6), reach
    )[0, -1]
    assert several == pytest.approx(length_laws.DOUBT * reach * (1 - softmax(rows @ weights, axis=1)[:, 1]).sum())


def test_what_noise_hides_is_left_as_it_was_known() -> None:
    slopes = simulate_slopes(2.5, 1.5)
    assert 0.5 < know(Logistic(), 1.5).choose(slopes, 100.0, free) < 1.5
    assert know(Logistic(), 1.5).choose(simulate_slopes(0.0, 1.5), 0.05, free) < 0.25
    assert know(Logistic(), 1.5).choose(slopes, 0.05, free) > 1.8
    assert know(Logistic(), 1.5).choose(slopes, 0.05, lambda scales: 5 * scales**2) < 0.2


def test_the_law_of_several_classes_is_that_of_two_where_there_are_two() -> None:
    one, two = (
        length_laws.Law.of_odds(size, constant, 1.5)[2]
        for size, constant in ((1.2, np.array([0.4])), (1.2 / np.sqrt(2), np.array([-0.2, 0.2])))
    )
    # Centred scores of two classes are half of the difference, each, with opposite signs: sizes differ by sqrt 2.
    odds = np.eye(len(length_laws.CANDIDATES))
    one_losses, two_losses = (np.array([law.expect(each) for each in odds]) for law in (one, two))
    np.testing.assert_allclose(two_losses, one_losses, atol=0.06 * np.abs(one_losses).max())


def test_a_hub_that_names_a_reach_of_its_own_is_refused() -> None:
    class Lying(PreconditionedFixedPoint):
        def down(self, facts, hub):
            return replace(super().down(facts, hub), reach=1e-6)

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


def test_noise_of_a_length_falls_with_the_budget_whatever_the_size_of_scores() -> None:
    for size in (0.0, 0.1, 1.0, 5.0):
        reaches = [length_laws.choose_reach(noise, size, 1.0) for noise in (1e-2, 1e-4, 1e-6, 0.0)]
        assert reaches == sorted(reaches)  # scores are shortened less and less
        told = [noise * reach for noise, reach in zip((1e-2, 1e-4, 1e-6), reaches, strict=False)]
        assert told == sorted(told, reverse=True)
        # Slopes of scores of this size are about its square.
        assert told[-1] <= 0.01 * max(size, 0.1) ** 2


@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_a_larger_budget_shortens_scores_less_and_tells_lengths_more_exactly(size: float) -> None:
    noises = np.array([1e-4, 1e-5, 1e-6])
    reaches = np.array([length_laws.choose_reach(noise, size, 1.0) for noise in noises])
    # What is left of the noise is also the most that lengths are corrected for records that were learnt from.
    assert np.all(np.diff(np.log(noises * reaches)) < -1)
    assert np.all(np.diff(np.log(reaches)) > 1)
