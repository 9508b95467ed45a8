"""What released values say of a fit to labels: how large its scores are, and how much its loss bends.

variance    Of scores around those of the constant model: the mean of its posterior, given the size of the first
            gradient there and its noise. The prior is even over orders of magnitude, up to scores that labels seldom
            call for, and falls beyond: where noise hides the gradient, the answer does not grow with the noise.
moved       The gradient at the constant model, from that at zero: all slopes move by the same amounts, so that their
            sum moves by them times the sum of rows, a column of the second moment if there is a constant column.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp, softmax

from consenso.arrays import Array
from consenso.losses import Loss
from consenso.metric import Metric

# Variances of scores that are called for: even over orders of magnitude up to LARGEST, then falling as their square.
SMALLEST, LARGEST, LARGEST_MARGIN, BEYOND, GRID = 1 / 16, 16.0, 1.0, 1e4, 200
VARIANCES = np.geomspace(SMALLEST, BEYOND, GRID)
# How likely it is before that rows tell nothing of labels. Noise moves as many scores of a record as there are classes,
# and few records of several classes need a stronger doubt: the least, in tenths, with which six random tables that
# were above the constant model keep to 0.01 or nearly so (docs/solvers-measured.md).
NOTHING, NOTHING_OF_CLASSES = 0.5, 0.8
# A gradient whose squared length is so many times that of its noise leaves no doubt, and what is left of any.
CLEAR, REFUTED = 100.0, -50.0


def weigh_variances(loss: Loss) -> Array:
    """Logarithms of prior weights of VARIANCES: a hinge asks for margins of 1, where log-odds of 4 are called for."""
    return fall_beyond(VARIANCES, LARGEST if loss.is_likelihood else LARGEST_MARGIN)


def fall_beyond(variances: Array, largest: float) -> Array:
    """Logarithms of weights that are even up to the largest variance and fall as the square beyond."""
    weights: Array = -2 * np.log(np.maximum(variances / largest, 1.0))
    return weights


def list_variances(loss: Loss) -> tuple[Array, Array]:
    """Variances of scores that a model may be about, and logarithms of their weights: it may be about nothing."""
    prior, nothing = weigh_variances(loss), NOTHING if loss.outputs == 1 else NOTHING_OF_CLASSES
    rest = prior - np.log(np.sum(np.exp(prior))) + math.log(1 - nothing)
    return np.append(0.0, VARIANCES), np.append(math.log(nothing), rest)


def estimate_variance(gradient: Array, noise: float, curvature: float, loss: Loss, seen: float) -> float:
    """Variance of the scores that a gradient of this noise speaks for, where the loss bends so much.

    seen: the part of the variance that shows in the gradient (`visible_share`).
    """
    power, dim, scale = _measure_power(gradient, curvature, loss)
    if noise == 0 or power > CLEAR * dim * noise**2:
        return (power - dim * noise**2) / scale
    guesses = seen * VARIANCES
    fit = weigh_variances(loss) + _fit_power(power, dim, scale, noise, guesses)
    weights = np.exp(fit - fit.max())
    return float(weights @ guesses / weights.sum())


def refute_nothing(gradient: Array, noise: float, curvature: float, loss: Loss, seen: float) -> float:
    """The logarithm by which this gradient makes it less likely that rows tell nothing; 0 where it does not."""
    power, dim, scale = _measure_power(gradient, curvature, loss)
    if noise == 0 or power > CLEAR * dim * noise**2:
        return REFUTED
    prior = weigh_variances(loss)
    something = prior - logsumexp(prior) + _fit_power(power, dim, scale, noise, seen * VARIANCES)
    nothing = float(_fit_power(power, dim, scale, noise, np.zeros(1))[0])
    return min(0.0, max(REFUTED, nothing - float(logsumexp(something))))


def _measure_power(gradient: Array, curvature: float, loss: Loss) -> tuple[float, int, float]:
    """Its squared length, its numbers, and the squared length that scores of the variance 1 add."""
    outputs = max(loss.outputs - 1, 1)
    return float(gradient @ gradient), len(gradient) // loss.outputs * outputs, curvature**2 * outputs


def _fit_power(power: float, dim: int, scale: float, noise: float, variances: Array) -> Array:
    """Logarithms of how likely a squared length is, for scores of these variances."""
    deviations = 2 * dim * noise**4 + 4 * noise**2 * scale * variances
    fit: Array = -0.5 * (power - dim * noise**2 - scale * variances) ** 2 / deviations - 0.5 * np.log(deviations)
    return fit


def shares_of(scores: Array) -> Array:
    """Probabilities of the outputs at scores (outputs,): that of the positive label, or of each class."""
    if len(scores) == 1:
        return np.array([1 / (1 + math.exp(-scores[0]))])
    shares: Array = softmax(scores)
    return shares


def measure_flatness(scores: Array) -> float:
    """How much less the loss of two labels bends around the constant model of this score than at zero.

    It bends by p (1 - p) there, and by 1/4 where a label is as likely as not, which is where rows of the rare one soon
    are: the geometric mean, as for several classes.
    """
    share = float(shares_of(scores)[0])
    return 2 * math.sqrt(share * (1 - share))


def move_to_constant(gradient: Array, metric: Metric, scores: Array, constant: float, weight: float) -> Array:
    """The whitened gradient at the model of these scores for all rows, from that at zero.

    constant: value of the last column. weight: how much a typical row is shortened.
    """
    shift = shares_of(scores) - (0.5 if len(scores) == 1 else 1 / len(scores))
    features = len(gradient) // len(scores)
    column = np.zeros(features)
    column[-1] = constant if metric.is_round else 1 / constant
    row = metric.apply(column, -0.5 if metric.is_round else 0.5)
    return gradient + weight * np.outer(row, shift).ravel()


def drop_common_part(gradient: Array, outputs: int) -> Array:
    """A gradient (features * outputs,) without what all classes have in common.

    Probabilities do not change with it, so that a gradient has nothing of it but noise, which nothing would bend back.
    """
    if outputs == 1:
        return gradient
    table = gradient.reshape(-1, outputs)
    apart: Array = (table - table.mean(axis=1, keepdims=True)).ravel()
    return apart


def visible_share(metric: Metric, features: int) -> float:
    """The part of the variance of scores that shows in a gradient: all of it where rows are whitened.

    Where they are not, each direction shows by its second moment: `guess_spectrum` is the guess.
    """
    if not metric.is_round:
        return 1.0
    return float(np.sum(guess_spectrum(features) ** 2))


def guess_spectrum(features: int) -> Array:
    """Parts of the squared lengths of rows by direction, where nothing is known of them."""
    falling = np.arange(1.0, features + 1) ** -1.5
    spectrum: Array = falling / falling.sum()
    return spectrum
