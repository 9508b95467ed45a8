"""The constants hold at adversarial points, and the ones that privacy rests on are attained."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.losses.scalar_losses import SCALAR

from consenso.errors import InputError, PreconditionError
from consenso.losses import (
    Hinge,
    Huber,
    Logistic,
    SmoothedHinge,
    Softmax,
    Squared,
    require_lipschitz,
    require_smooth,
)

LOSSES = [*SCALAR, Softmax(classes=2), Softmax(classes=6)]
LIPSCHITZ = [loss for loss in LOSSES if loss.slope_bound < np.inf]
SMOOTH = [loss for loss in LOSSES if loss.curvature_bound < np.inf]
FEATURES, BOUND, BOUND_1 = 4, 1.7, 2.3


def possible_targets(loss):
    if loss.targets == "sign":
        return np.array([-1.0, 1.0])
    if loss.targets == "class":
        return np.arange(loss.outputs)
    return np.array([-50.0, -0.3, 0.0, 2.0, 50.0])


def gradients(loss, rows, targets, model):
    """Gradients of the records' losses, (n, features * outputs), by the definition."""
    scores = rows @ model
    slopes = loss.slope(scores, targets).reshape(len(rows), -1)
    return (rows[:, :, None] * slopes[:, None, :]).reshape(len(rows), -1)


def adversarial(loss, seed):
    """Every pair of target and row out of a set with rows at the bounds, and models from tiny to huge."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(12, FEATURES))
    rows = np.vstack([rows, np.eye(FEATURES), -np.eye(FEATURES)])
    rows *= np.minimum(BOUND / np.linalg.norm(rows, axis=1), BOUND_1 / np.abs(rows).sum(axis=1))[:, None]
    pairs = list(itertools.product(range(len(rows)), possible_targets(loss)))
    shape = (FEATURES,) if loss.outputs == 1 else (FEATURES, loss.outputs)
    for size in (0.0, 1e-3, 1.0, 30.0, 1e4):
        model = size * rng.normal(size=shape)
        yield rows[[i for i, _ in pairs]], np.array([target for _, target in pairs]), model


@pytest.mark.parametrize("loss", LIPSCHITZ, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_no_gradient_exceeds_the_bounds(loss, seed):
    for rows, targets, model in adversarial(loss, seed):
        grads = gradients(loss, rows, targets, model)
        gaps = grads[:, None] - grads[None]
        for norm in (1, 2):
            alone = loss.gradient_gap(BOUND, norm, "add-remove", row_bound_1=BOUND_1)
            swapped = loss.gradient_gap(BOUND, norm, "replace-one", row_bound_1=BOUND_1)
            assert np.linalg.norm(grads, norm, axis=1).max() <= alone * (1 + 1e-12)
            assert np.linalg.norm(gaps, norm, axis=2).max() <= swapped * (1 + 1e-12)
        assert np.linalg.norm(grads, axis=1).max() <= loss.lipschitz(BOUND) * (1 + 1e-12)


def worst_pair(loss, rows):
    """A model and targets at which both rows, nearly opposite along the second axis, have slopes of full size.

    The rows share a small negative first entry, and the model is huge along it.
    """
    far = 1e12
    if loss.targets == "class":
        model = np.zeros((rows.shape[1], loss.outputs))
        # The shared entry is negative, so class 0 gets the high score.
        model[0, 0] = -far
        return model, np.array([1, 1])
    model = np.zeros(rows.shape[1])
    model[0] = far
    return model, np.array([1.0, 1.0])


@pytest.mark.parametrize("loss", LIPSCHITZ, ids=repr)
def test_the_bounds_are_approached(loss):
    """Nearly opposite rows for the 2-norm, rows on disjoint coordinates for the 1-norm."""
    tilt = 1e-7
    side = np.sqrt(1 - tilt**2)
    rows = BOUND * np.array([[-tilt, side, 0.0], [-tilt, -side, 0.0]])
    model, targets = worst_pair(loss, rows)
    grads = gradients(loss, rows, targets, model)
    reached = np.linalg.norm(grads, axis=1).max(), np.linalg.norm(grads[0] - grads[1])
    claimed = [loss.gradient_gap(BOUND, 2, adjacency) for adjacency in ("add-remove", "replace-one")]
    assert np.all(np.array(reached) / claimed > 1 - 1e-6)
    assert reached[0] / loss.lipschitz(BOUND) > 1 - 1e-6

    rows = BOUND_1 * np.array([[-tilt, 1 - tilt, 0.0], [-tilt, 0.0, 1 - tilt]])
    model, targets = worst_pair(loss, rows)
    grads = gradients(loss, rows, targets, model)
    reached = np.abs(grads).sum(axis=1).max(), np.abs(grads[0] - grads[1]).sum()
    # The shared entry cancels in the difference.
    claimed = [
        loss.gradient_gap(BOUND_1, 1, adjacency, row_bound_1=BOUND_1) for adjacency in ("add-remove", "replace-one")
    ]
    assert np.all(np.array(reached) / claimed > 1 - 1e-6)


def test_softmax_has_the_constants_of_the_literature():
    loss = Softmax(classes=10)
    np.testing.assert_allclose(loss.gradient_gap(3.0, 2, "add-remove"), np.sqrt(2) * 3)
    np.testing.assert_allclose(loss.gradient_gap(3.0, 2, "replace-one"), 2 * np.sqrt(2) * 3)
    np.testing.assert_allclose(loss.gradient_gap(3.0, 1, "add-remove", row_bound_1=5.0), 2 * 5)
    np.testing.assert_allclose(loss.gradient_gap(3.0, 1, "replace-one", row_bound_1=5.0), 4 * 5)
    np.testing.assert_allclose(loss.smoothness(3.0), 9 / 2)


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
def test_smoothness_holds_and_is_attained(loss):
    rng = np.random.default_rng(11)
    bound = loss.curvature_bound
    shape = (4000,) if loss.outputs == 1 else (4000, loss.outputs)
    for size in (1e-3, 1.0, 30.0, 1e6):
        one, other = size * rng.normal(size=(2, *shape))
        targets = rng.choice(possible_targets(loss), 4000)
        change = (loss.slope(one, targets) - loss.slope(other, targets)).reshape(4000, -1)
        apart = (one - other).reshape(4000, -1)
        assert np.all(np.linalg.norm(change, axis=1) <= bound * np.linalg.norm(apart, axis=1) * (1 + 1e-9) + 1e-13)
    if loss.targets == "class":
        # Two classes share the weight and exchange it.
        score = np.full(loss.outputs, -60.0)
        score[:2] = 0.0
        direction = np.zeros(loss.outputs)
        direction[:2] = np.array([1.0, -1.0]) / np.sqrt(2)
        steepest = np.linalg.norm(loss.curvature_product(score[None], np.array([0]), direction[None]))
    else:
        grid = np.linspace(-2, 2, 4001)
        steepest = loss.curvature(grid, np.ones(4001)).max()
    assert steepest / bound > 1 - 1e-6
    np.testing.assert_allclose(loss.smoothness(BOUND), bound * BOUND**2)


def test_constants_by_hand():
    assert Logistic().lipschitz(2.0) == 2.0
    assert Logistic().smoothness(2.0) == 1.0
    assert Huber(threshold=0.5).lipschitz(2.0) == 1.0
    assert SmoothedHinge(smoothing=0.5).smoothness(2.0) == 8.0
    assert Squared().lipschitz(2.0) == np.inf
    assert Squared().gradient_gap(2.0, 2, "replace-one") == np.inf
    assert Hinge().smoothness(2.0) == np.inf


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_requirements_return_the_constant_or_name_the_loss(loss):
    if loss in LIPSCHITZ:
        assert require_lipschitz(loss, 2.0, "Walk") == loss.lipschitz(2.0)
    else:
        with pytest.raises(
            PreconditionError,
            match=r"Walk needs a Lipschitz loss, and the slope of Squared\(\) is unbounded; use Huber\(.*clips",
        ):
            require_lipschitz(loss, 2.0, "Walk")
    if loss in SMOOTH:
        assert require_smooth(loss, 2.0, "Walk") == loss.smoothness(2.0)
    else:
        name = type(loss).__name__
        with pytest.raises(
            PreconditionError,
            match=rf"Walk needs a smooth loss, and the slope of {name}.* jumps; use SmoothedHinge\(.*Huber",
        ):
            require_smooth(loss, 2.0, "Walk")


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan, np.inf, None])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_row_bound_is_finite_and_positive(loss, bound):
    for constant in (loss.lipschitz, loss.smoothness):
        with pytest.raises(InputError, match=r"row_bound=.*finite number above 0; clip the rows"):
            constant(bound)
    with pytest.raises(InputError, match=r"row_bound_1=.*finite number above 0"):
        loss.gradient_gap(1.0, 1, "add-remove", row_bound_1=-1.0)


def test_the_1_norm_needs_its_own_bound_and_no_other_norm_is_known():
    with pytest.raises(InputError, match=r"norm=1, row_bound_1=None.*sqrt\(features\)"):
        Logistic().gradient_gap(1.0, 1, "add-remove")
    with pytest.raises(InputError, match=r"norm=3.*norm 1 or 2"):
        Logistic().gradient_gap(1.0, 3, "add-remove")
    with pytest.raises(InputError, match=r"adjacency='swap'.*'add-remove' or 'replace-one'"):
        Logistic().gradient_gap(1.0, 2, "swap")
