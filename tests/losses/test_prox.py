"""Laws of the prox, for every loss and steps from 1e-8 to 1e8."""

from __future__ import annotations

import decimal
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import entr, xlogy
from tests.losses.scalar_losses import SCALAR

from consenso.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    SmoothedHinge,
    Softmax,
    Squared,
)

VECTOR = [Softmax(classes=2), Softmax(classes=3), Softmax(classes=11)]
SMOOTH = [loss for loss in SCALAR + VECTOR if np.isfinite(loss.curvature_bound)]
EPS = np.finfo(np.float64).eps
EXACT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)

seeds = st.integers(0, 2**32 - 1)


def draw(loss, seed: int, records: int = 40):
    """Points of all sizes up to 1e8, many of them close to where the slope changes, with steps in [1e-8, 1e8]."""
    rng = np.random.default_rng(seed)
    shape = (records,) if loss.outputs == 1 else (records, loss.outputs)
    steps = 10.0 ** rng.uniform(-8, 8, records)
    wide = rng.choice([-1, 1], shape) * 10.0 ** rng.uniform(-8, 8, shape)
    reach = steps.reshape(-1, *[1] * (len(shape) - 1))
    near = rng.choice([-1, 1], shape) * rng.uniform(0, 1, shape) * reach + 3 * rng.normal(size=shape)
    points = np.where(rng.random(shape) < 0.5, wide, near)
    if loss.targets == "sign":
        targets = rng.choice([-1.0, 1.0], records)
    elif loss.targets == "class":
        targets = rng.integers(0, loss.outputs, records)
    else:
        targets = rng.normal(size=records) * 10.0 ** rng.uniform(-2, 2, records)
    return np.clip(points, -1e8, 1e8), steps, targets


def column(steps, points):
    return steps.reshape(-1, *[1] * (points.ndim - 1))


@pytest.mark.parametrize("loss", SMOOTH, ids=repr)
@given(seed=seeds)
def test_the_slope_is_the_slope_at_the_prox(loss, seed):
    points, steps, targets = draw(loss, seed)
    slopes = loss.prox_slope(points, steps, targets)
    residual = np.abs(slopes - loss.slope(loss.prox(points, steps, targets), targets))
    # The prox point itself is rounded, by this much; where that is harmless the law holds to 1e-10.
    rounding = EPS * (np.abs(points) + column(steps, points) * np.abs(slopes))
    if points.ndim > 1:
        rounding = rounding.max(axis=1, keepdims=True)
    rounding = rounding + EPS * np.abs(slopes)
    assert np.all(residual <= 1e-10 + 4 * rounding)
    assert np.all(residual[rounding < 1e-12] <= 1e-10)


def conjugate(loss, slopes, targets):
    """The convex conjugates (n,), at slopes that are in the domain up to rounding."""
    match loss:
        case Logistic():
            weights = np.clip(-targets * slopes, 0, 1)
            return xlogy(weights, weights) + xlogy(1 - weights, 1 - weights)
        case Softmax():
            weights = slopes.copy()
            weights[np.arange(len(targets)), targets] += 1
            return -entr(np.clip(weights, 0, 1)).sum(axis=1)
        case Squared() | Huber():
            return slopes**2 / 2 + targets * slopes
        case Hinge():
            return targets * slopes
        case SmoothedHinge():
            return targets * slopes + loss.smoothing * slopes**2 / 2
        case Absolute():
            return targets * slopes
        case EpsilonInsensitive():
            return targets * slopes + loss.width * np.abs(slopes)
    raise AssertionError(loss)


def in_domain(loss, slopes, targets):
    match loss:
        case Logistic() | Hinge() | SmoothedHinge():
            return (-targets * slopes >= 0) & (-targets * slopes <= 1)
        case Softmax():
            records = np.arange(len(targets))
            others = slopes.copy()
            others[records, targets] = 0
            total = np.abs(slopes.sum(axis=1)) <= 1e-14
            return total & np.all(others >= 0, axis=1) & (slopes[records, targets] >= -1 - 1e-15)
    return np.abs(slopes) <= loss.slope_bound


@pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)
@given(seed=seeds)
def test_fenchel_and_young_meet_at_the_prox(loss, seed):
    """phi(s) + phi*(g) = s g exactly when g is in the subdifferential of phi at s."""
    points, steps, targets = draw(loss, seed)
    slopes = loss.prox_slope(points, steps, targets)
    scores = loss.prox(points, steps, targets)
    assert np.all(in_domain(loss, slopes, targets))
    product = scores * slopes
    size = np.abs(points * slopes) + column(steps, points) * slopes**2 + np.abs(product)
    if points.ndim > 1:
        product, size = product.sum(axis=1), size.sum(axis=1)
        # Rounding of a score moves the value by as much, also where its slope is tiny.
        size = size + np.abs(points).max(axis=1)
    else:
        size = size + np.abs(points) + np.abs(targets * slopes)
    gap = loss.value(scores, targets) + conjugate(loss, slopes, targets) - product
    assert np.all(np.abs(gap) <= 1e-13 + 16 * EPS * size)


def conjugate_slope(loss, slope, target):
    match loss:
        case Logistic():
            with np.errstate(divide="ignore"):
                return -target * (np.log(-target * slope) - np.log1p(target * slope))
        case Squared() | Huber():
            return slope + target
        case Hinge():
            return target + 0 * slope
        case SmoothedHinge():
            return target + loss.smoothing * slope
        case Absolute():
            return target + 0 * slope
        case EpsilonInsensitive():
            return target + loss.width * np.sign(slope)
    raise AssertionError(loss)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
@given(seed=seeds)
def test_moreau_with_the_prox_of_the_conjugate_by_bisection(loss, seed):
    """The slope of the prox is prox_{phi*/step}(point/step), here found on the conjugate alone."""
    points, steps, targets = draw(loss, seed)
    if loss.targets == "sign":
        low, high = np.minimum(-targets, 0.0), np.maximum(-targets, 0.0)
    else:
        bound = (
            np.abs(points) + np.abs(targets) if loss.slope_bound == np.inf else np.full(len(points), loss.slope_bound)
        )
        low, high = -bound, bound
    for _ in range(120):
        middle = (low + high) / 2
        above = conjugate_slope(loss, middle, targets) + steps * middle > points
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    slopes = loss.prox_slope(points, steps, targets)
    # The bisection adds numbers as large as these, and its root moves by their rounding over step plus curvature.
    stiffness = steps + 1 / min(loss.curvature_bound, 1e300)
    blur = EPS * (np.abs(points) + np.abs(targets) + steps * np.abs(slopes) + 40) / stiffness
    assert np.all(np.abs(slopes - middle) <= 1e-14 + 8 * (blur + EPS * np.abs(slopes)))
    total = loss.prox(points, steps, targets) + steps * middle
    assert np.all(
        np.abs(total - points) <= 1e-14 + 8 * steps * (blur + EPS * np.abs(slopes)) + 8 * EPS * np.abs(points)
    )


@pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)
@given(seed=seeds, gap=st.floats(-6, 8))
def test_the_prox_is_firmly_nonexpansive(loss, seed, gap):
    points, steps, targets = draw(loss, seed)
    moves = np.random.default_rng(seed + 1).normal(size=points.shape) * 10.0**gap
    one, other = points, np.clip(points + moves, -1e8, 1e8)
    slopes = [loss.prox_slope(at, steps, targets) for at in (one, other)]
    scores = [loss.prox(at, steps, targets) for at in (one, other)]
    apart, moved = one - other, scores[0] - scores[1]
    size = np.abs(one) + np.abs(other) + column(steps, one) * (np.abs(slopes[0]) + np.abs(slopes[1]))
    excess = moved**2 - moved * apart
    slack = 1e-10 + 8 * EPS * size * (np.abs(apart) + np.abs(moved) + EPS * size)
    if points.ndim > 1:
        excess, slack = excess.sum(axis=1), slack.sum(axis=1)
    assert np.all(excess <= slack)


def exact_slope_errors(points, step, target, slopes):
    """Newton's correction to the softmax slopes of a record in sixty digits: their error, up to its square."""
    with decimal.localcontext(EXACT):
        step = Decimal(float(step))
        given_slopes = [Decimal(float(g)) for g in slopes]
        scores = [Decimal(float(v)) - step * g for v, g in zip(points, given_slopes, strict=True)]
        top = max(scores)
        weights = [(s - top).exp() for s in scores]
        total = sum(weights)
        weights = [w / total for w in weights]
        others = sum(w for k, w in enumerate(weights) if k != target)
        residual = [(-others if k == target else w) - given_slopes[k] for k, w in enumerate(weights)]
        shares = [w / (1 + step * w) for w in weights]
        pull = step * sum(a * r for a, r in zip(shares, residual, strict=True)) / sum(shares)
        return [float((r + w * pull) / (1 + step * w)) for r, w in zip(residual, weights, strict=True)]


@given(
    exponent=st.floats(-8, 8),
    fraction=st.floats(-0.5, 1.5),
    offset=st.floats(-60, 60),
    target=st.sampled_from([-1.0, 1.0]),
)
@example(exponent=8.0, fraction=0.5, offset=0.0, target=1.0)
@example(exponent=-8.0, fraction=0.0, offset=-60.0, target=-1.0)
def test_logistic_slopes_are_right_to_the_last_digits(exponent, fraction, offset, target):
    step = 10.0**exponent
    point = -target * (fraction * step + offset)
    slope = Logistic().prox_slope(np.array([point]), step, np.array([target]))[0]
    # A logistic record is a softmax record with scores (0, margin) of which only the second may move.
    with decimal.localcontext(EXACT):
        score = Decimal(float(point)) - Decimal(step) * Decimal(float(slope))
        weight = 1 / (1 + (Decimal(target) * score).exp())
        residual = -Decimal(target) * weight - Decimal(float(slope))
        error = residual / (1 + Decimal(step) * weight * (1 - weight))
    assert abs(error) <= 4 * EPS * abs(slope) + 1e-307  # slopes below exp(-708) are as good as zero


@pytest.mark.parametrize("classes", [2, 3, 7])
@given(seed=seeds)
def test_softmax_slopes_are_right_to_the_last_digits(classes, seed):
    loss = Softmax(classes=classes)
    points, steps, targets = draw(loss, seed, records=8)
    slopes = loss.prox_slope(points, steps, targets)
    for i in range(len(points)):
        errors = np.array(exact_slope_errors(points[i], steps[i], targets[i], slopes[i]))
        assert np.all(np.abs(errors) <= 4 * EPS)
        # A weight exp(-d) feels the rounding of d, as far as its own slope does not make up for it; weights below
        # exp(-708) are as good as zero.
        depth = (np.ptp(points[i]) + steps[i] * np.abs(slopes[i]).max()) / (1 + steps[i] * np.abs(slopes[i]))
        assert np.all(np.abs(errors) <= EPS * (8 + classes + 2 * depth) * np.abs(slopes[i]) + 1e-306)


@pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)
def test_a_batch_equals_its_records_one_by_one(loss):
    points, steps, targets = draw(loss, 7, records=37)
    batch = loss.prox_slope(points, steps, targets)
    alone = [loss.prox_slope(points[i : i + 1], steps[i], targets[i : i + 1])[0] for i in range(37)]
    np.testing.assert_array_equal(batch, np.array(alone))
    for method in (loss.value, loss.slope):
        np.testing.assert_array_equal(
            method(points, targets), np.array([method(points[i : i + 1], targets[i : i + 1])[0] for i in range(37)])
        )
    common = loss.prox_slope(points, 0.3, targets)
    np.testing.assert_array_equal(common, loss.prox_slope(points, np.full(37, 0.3), targets))


@pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)
def test_step_zero_gives_the_slope(loss):
    points, _, targets = draw(loss, 3)
    np.testing.assert_allclose(
        loss.prox_slope(points, 0.0, targets), loss.slope(points, targets), rtol=1e-13, atol=1e-300
    )
    np.testing.assert_array_equal(loss.prox(points, 0.0, targets), points)


@pytest.mark.parametrize("loss", SCALAR + VECTOR, ids=repr)
def test_no_records_give_no_slopes(loss):
    points, steps, targets = (part[:0] for part in draw(loss, 3))
    assert loss.prox_slope(points, steps, targets).shape == points.shape
    assert loss.value(points, targets).shape == (0,)
    loss.check_targets(targets)


@pytest.mark.parametrize("loss", SCALAR, ids=repr)
def test_a_step_at_a_kink_stays_there(loss):
    """Where the loss has a kink within reach, the prox lands on it and stays for neighbouring points."""
    kink = {Hinge: 1.0, Absolute: 0.5, EpsilonInsensitive: 0.9}.get(type(loss))
    targets = np.array([1.0 if loss.targets == "sign" else 0.5])
    if kink is None:
        moved = loss.prox(np.array([0.9, 0.95]), 0.2, np.repeat(targets, 2))
        assert moved[1] > moved[0]
    else:
        inside = -1 if isinstance(loss, Hinge) else 1
        points = kink + inside * np.array([0.1, 0.2, 0.3])
        np.testing.assert_allclose(loss.prox(points, 0.4, np.repeat(targets, 3)), kink, rtol=1e-15)


@given(seed=seeds)
def test_two_classes_are_the_logistic_loss_of_the_difference(seed):
    """Both scores move, in opposite directions, so a step for softmax is two steps for the difference."""
    softmax, logistic = Softmax(classes=2), Logistic()
    points, steps, targets = draw(softmax, seed)
    margins, signs = points[:, 1] - points[:, 0], 2.0 * targets - 1.0
    np.testing.assert_allclose(softmax.value(points, targets), logistic.value(margins, signs), rtol=1e-13, atol=1e-300)
    slopes = softmax.slope(points, targets)
    np.testing.assert_allclose(slopes[:, 1], logistic.slope(margins, signs), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(slopes[:, 0], -slopes[:, 1], rtol=1e-15)
    proxed = softmax.prox_slope(points, steps, targets)
    # The difference of the points is rounded, which the slope feels divided by the step, and by 4 without one.
    blur = EPS * (np.abs(points).max(axis=1) + 800 * np.abs(proxed[:, 1])) / (2 * steps + 4)
    expected = logistic.prox_slope(margins, 2 * steps, signs)
    assert np.all(np.abs(proxed[:, 1] - expected) <= 4 * blur + 8 * EPS * np.abs(expected))
    np.testing.assert_allclose(proxed[:, 0], -proxed[:, 1], rtol=1e-14)


@pytest.mark.parametrize("classes", [3, 10, 200])
def test_softmax_treats_tied_and_hopeless_classes_alike(classes):
    loss = Softmax(classes=classes)
    tied = np.zeros((1, classes))
    for step in (1e-8, 1.0, 1e8):
        slopes = loss.prox_slope(tied, step, np.array([1]))[0]
        others = np.delete(slopes, 1)
        np.testing.assert_allclose(others, others[0], rtol=1e-13)
        np.testing.assert_allclose(slopes[1], -others.sum(), rtol=1e-13)
    # All weight on one wrong class that is out of reach.
    far = np.zeros((1, classes))
    far[0, 0] = 1e8
    slopes = loss.prox_slope(far, 1.0, np.array([1]))[0]
    np.testing.assert_allclose(slopes[:2], [1.0, -1.0], rtol=1e-15)


def test_losses_load_without_what_is_slow_to_load():
    code = "import sys, consenso.losses; sys.exit(bool({'numba', 'scipy.special'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
