"""Bad parameters, targets, points and steps are refused in one sentence, before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

from consenso.errors import InputError
from consenso.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    ScalarLoss,
    SmoothedHinge,
    Softmax,
    Squared,
)

SIGN = [Logistic(), Hinge(), SmoothedHinge(smoothing=0.5)]
REAL = [Squared(), Huber(), Absolute(), EpsilonInsensitive(width=0.1)]
LOSSES = [*SIGN, *REAL, Softmax(classes=3)]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Huber(threshold=0.0), r"Huber\(threshold=0.0\): a threshold is a finite number above 0; use Absolute"),
        (lambda: Huber(threshold=-1), r"Huber\(threshold=-1\)"),
        (lambda: Huber(threshold=np.nan), r"Huber\(threshold=nan\)"),
        (lambda: Huber(threshold=np.inf), r"Huber\(threshold=inf\).*Squared"),
        (lambda: Huber(threshold="1"), r"Huber\(threshold='1'\)"),
        (lambda: SmoothedHinge(smoothing=0.0), r"SmoothedHinge\(smoothing=0.0\): a smoothing.*use Hinge\(\)"),
        (lambda: EpsilonInsensitive(width=-0.1), r"EpsilonInsensitive\(width=-0.1\): a width is a finite number of"),
        (lambda: EpsilonInsensitive(width=np.nan), r"EpsilonInsensitive\(width=nan\)"),
        (lambda: Softmax(classes=1), r"Softmax\(classes=1\): the number of classes is an integer of at least 2"),
        (lambda: Softmax(classes=2.5), r"Softmax\(classes=2.5\)"),
        (lambda: Softmax(classes=True), r"Softmax\(classes=True\)"),
    ],
)
def test_parameters(build, message):
    with pytest.raises(InputError, match=message):
        build()


def targets_for(loss, records):
    return np.ones(records, dtype=np.int64) if loss.targets == "class" else np.ones(records)


def points_for(loss, records):
    return np.zeros((records, loss.outputs)) if loss.outputs > 1 else np.zeros(records)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_good_targets_pass(loss):
    loss.check_targets(targets_for(loss, 3))


@pytest.mark.parametrize("loss", SIGN, ids=repr)
@pytest.mark.parametrize("bad", [0.0, 2.0, np.nan, np.inf])
def test_labels_are_signs(loss, bad):
    with pytest.raises(InputError, match=r"targets must be -1 or \+1, and some are neither; map labels 0 and 1"):
        loss.check_targets(np.array([1.0, bad, -1.0]))


@pytest.mark.parametrize("loss", REAL, ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_real_targets_are_finite(loss, bad):
    with pytest.raises(InputError, match=r"targets must be finite, and some are NaN or infinite; drop or impute"):
        loss.check_targets(np.array([1.0, bad]))


@pytest.mark.parametrize("bad", [-1, 3, 10**9])
def test_classes_are_indices(bad):
    loss = Softmax(classes=3)
    targets = np.array([0, bad, 2])
    with pytest.raises(
        InputError, match=r"Softmax\(classes=3\): targets must be class indices in 0\.\.2, and some lie"
    ):
        loss.check_targets(targets)
    # The compiled solver indexes with the targets, so the prox checks them too.
    with pytest.raises(InputError, match=r"class indices in 0\.\.2"):
        loss.prox_slope(np.zeros((3, 3)), 1.0, targets)


@pytest.mark.parametrize("targets", [np.array([0.0, 1.0]), np.array([True, False]), np.array(["a", "b"])])
def test_classes_are_integers(targets):
    with pytest.raises(
        InputError, match=r"Softmax\(classes=3\): targets must be (integer class indices|a numeric vector)"
    ):
        Softmax(classes=3).check_targets(targets)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_targets_are_a_numeric_vector(loss):
    with pytest.raises(InputError, match=r"targets must be a numeric vector of shape \(records,\).*\(2, 1\)"):
        loss.check_targets(targets_for(loss, 2)[:, None])
    with pytest.raises(InputError, match=r"targets must be a numeric vector"):
        loss.check_targets(np.array(["1", "-1"]))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_and_points_are_finite(loss, bad):
    points = points_for(loss, 2)
    points[1] = bad
    message = r"scores must be finite, and some are NaN or infinite; check the rows"
    with pytest.raises(InputError, match=message):
        loss.prox_slope(points, 1.0, targets_for(loss, 2))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_shapes_fit(loss):
    with pytest.raises(InputError, match=r"scores must have shape \(records.*reshape"):
        loss.prox_slope(np.zeros((2, 2, 2)), 1.0, targets_for(loss, 2))
    points = points_for(loss, 3)
    with pytest.raises(InputError, match=r"3 points need as many targets.*\(2,\) and \(\)"):
        loss.prox_slope(points, 1.0, targets_for(loss, 2))
    with pytest.raises(InputError, match=r"3 points need as many targets.*\(3,\) and \(2,\)"):
        loss.prox_slope(points, np.ones(2), targets_for(loss, 3))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("bad", [-1e-3, np.nan, np.inf, 1e13])
def test_steps_are_in_range(loss, bad):
    for steps in (bad, np.array([1.0, bad])):
        with pytest.raises(InputError, match=r"a step lies in \[0, 1e\+12\], and some do not; rescale"):
            loss.prox_slope(points_for(loss, 2), steps, targets_for(loss, 2))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_errors_do_not_quote_private_targets(loss):
    secret = np.array([13, 1]) if loss.targets == "class" else np.array([13.0, np.nan])
    with pytest.raises(InputError) as error:
        loss.check_targets(secret)
    assert "13" not in str(error.value)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_losses_are_recognised(loss):
    assert isinstance(loss, Loss)
    assert isinstance(loss, ScalarLoss) == (loss.outputs == 1)
    assert not isinstance("logistic", Loss)
    assert loss == type(loss)(**vars(loss))
