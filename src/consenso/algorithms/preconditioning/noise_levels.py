"""What noise is worth: public rules for clip, steps and damping, from how far the noise will move a score.

    score noise = (noise of the gradients with the whole budget, whitened) * (effective dimension) / (n * curvature)

is the standard deviation that the noise gives to the score of a typical record, in units in which scores matter: 1 for
labels, a share of the bound for real targets. It does not depend on the clip, since shortening all rows scales noise
and curvature alike. Every rule is a function of it:

steps       The iterates wander by about sqrt(steps) times as much as their average, and slopes are not linear: enough
            steps to converge, but not so many that they wander further than slopes are straight.
clip        Short clips only reweigh records, and the noise falls until all whitened rows have one length; where there
            is less noise than reweighing costs, the clip is raised.
slopes      Few records have slopes near the bound, and those are the ones that the model gets most wrong: clipping
            slopes a little costs little bias and takes its share off the noise.
damping     A square in the model's own coordinates, with the weight of a prior whose variance is read off the first
            gradient (`label_levels`): directions that say less than the noise are left alone.
sparser     A 1-norm is strengthened by the noise of a coordinate when the model is released: what is smaller is noise.
shorter     A step is halved when two gradients in a row turn against each other and do not get shorter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.arrays import Array
from consenso.losses import Loss
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, L2, ElasticNet, Regularizer, Unpenalized

# Steps are this much of the inverse curvature at the start. Losses of labels flatten as models learn, to about this.
STEP, FLATTENED = 1.2, 0.4
# How far the clip of rows goes, in typical lengths of whitened rows, where few of them are longer; and that which a
# second moment has at least: it is to show the lengths that rows have.
SHORTEST, LONGEST, LEAST_OF_MOMENT = 0.4, 2.0, 0.8
# Labels: score noise times the root of the curvature at which half of LONGEST is the best clip. Noise then costs 0.0002
# of log loss, which is what records that weigh alike cost a table whose labels are not linear in its rows. Chosen on
# mushroom, phoneme, twonorm, chess, breast and wisconsin (docs/solvers-measured.md).
WEIGHED_ALIKE = 0.02
# The score noise below which rows with heavy tails call for a longer clip than LONGEST (labels), or for a longer one
# than SHORTEST (numbers).
QUIET, QUIET_RESIDUAL = 0.012, 0.01
# A second moment is looked at with a longer clip than LONGEST, up to that of the gradients, while its noise is less
# than this part of a direction that rows fill: steps are made for the metric, and so much of them does not matter.
CLEAR = 0.1
# How much of the slopes of labels is given up where noise is loud, and the score noise at which half of that is. More
# than half clips all slopes of the zero model. That costs length, and lengths are measured; but scores are not bent
# back then before they are as large as the logit of what is given up: 0.4 here, 0.85 for 0.7, which lets noise wander.
GIVEN_UP, HALF_WAY = 0.6, 0.05
# Slopes of several classes are all long at the zero model: clipping them there costs nothing but length.
GIVEN_UP_CLASSES, HALF_WAY_CLASSES = 0.8, 0.15
# Variance that the iterates may add to a score: for residuals, whose noise is that of a clip of 0.8 spreads of the
# targets, they wander by one such spread then.
WANDERING, WANDERING_RESIDUAL = 3.0, 0.3
# Steps in which the distance to the optimum falls by a factor of e in most directions.
CONVERGED = 16
# The score noise beyond which no fewer steps converge, as slopes are not straight that far, and more of them are
# averaged. Chosen on 33 small tables and 19 with a rare label (docs/solvers-measured.md).
LOUD_SCORE = 0.5
# Residuals of the constant model are clipped at this many spreads of the targets, and where noise is loud at less, down
# to half of it: a model that explains nearly all has many clips to go, and does not get there in few steps. LOUD is the
# noise of a score in all directions, for slopes of 1, at which half of it is best. Both chosen on 24 tables of R
# packages, checked on 24 others (docs/solvers-measured.md).
FIRST_CLIP, LEAST_CLIP, LOUD = 0.8, 0.4, 0.06
# Residuals matter on this share of their bound.
RESIDUAL = 0.2
# The median of the sizes of Gaussian residuals of unit variance.
GAUSSIAN_MEDIAN = 0.6745
# Kinks of absolute residuals are smoothed over as much as iterates wander, in spreads of the residuals: this many
# times the score noise, from the narrowest to one spread.
KINKS_PER_NOISE, NARROWEST = 7.0, 0.05
# The score noise below which a clip may be wider than the spread of targets suggests.
WIDER = 0.01
# A clip leaves at least this share of the records unclipped, as far as steps count on it.
LEAST_BEND = 0.2
# Scores of labels beyond this are seldom called for.
LARGEST_SCORE = 4.0
# Parts of the variance of numbers that a model may explain, over which shrinkage is averaged.
EXPLAINED = np.geomspace(1 / 256, 1.0, 33)
# Steps on numbers, and the coefficients that are kept, have this part of a default 1-norm: its bias then costs a tenth
# of what the draw of the records costs. Which are kept is asked at all of it (Meinshausen 2007, "Relaxed lasso").
# Chosen on 60 tables of R packages, checked on 109 others (docs/solvers-measured.md).
RELAXED = math.sqrt(0.1)
# A hinge bends where records are, not everywhere: as much as this on average.
HINGE = 0.5


@dataclass(frozen=True, kw_only=True)
class NoiseLevels:
    """The rules at one score noise."""

    floor: ClassVar[float] = 0.5  # of the noise of a second moment's spectrum, under its eigenvalues

    score: float
    real: bool = False  # whether targets are numbers
    outputs: int = 1  # scores of a record that noise moves
    curvature: float = 1.0  # of the loss at a model that has learnt

    @classmethod
    def of(cls, facts: PublicFacts, curvature: float, effective: float) -> NoiseLevels:
        """From the noise of the gradients."""
        problem = facts.problem
        real = problem.loss.targets == "real"
        noise = facts.noise.get("gradient", 0.0)  # not known yet while a plan is made
        score = noise * effective / (problem.records * curvature * (slope_limit(problem) if real else 1.0))
        return cls(score=score, real=real, outputs=max(problem.outputs - 1, 1), curvature=curvature)

    @property
    def slopes(self) -> float:
        """Where slopes of labels are clipped, relative to their bound."""
        return self.slopes_without(GIVEN_UP)

    def slopes_without(self, part: float) -> float:
        """The same where up to this part of them is given up."""
        return 1.0 - part * self.score / (self.score + HALF_WAY)

    @property
    def slopes_of_classes(self) -> float:
        """The same for several classes."""
        return 1.0 - GIVEN_UP_CLASSES * self.score / (self.score + HALF_WAY_CLASSES)

    def steps(self, width: float, *, residuals: bool) -> float:
        """How many steps the budget is worth, with slopes of this width."""
        if self.score == 0:
            return math.inf
        score, wandering = self.score * width, WANDERING_RESIDUAL if residuals else WANDERING
        return min(2 * wandering / FLATTENED / score**2, CONVERGED * math.log(1 / min(score, LOUD_SCORE)))

    def skip_early(self, steps: int) -> int:
        """How many of so many steps on labels are not averaged.

        First points are far from the optimum, so half of them; but where noise is loud few steps are as far as many
        would be, and every gradient tells as much.
        """
        return int(steps / 2 * (1.0 if self.score <= LOUD_SCORE else LOUD_SCORE / self.score))

    def first_clip(self, wide: float) -> float:
        """Where residuals are clipped before their sizes are known, in spreads of the targets.

        wide: how much more noise scores have than in the directions that stand out alone. With noise z the error of a
        score is z c for a clip c, and what c cuts off is taken for FIRST_CLIP - c: the sum of their squares, of which
        the second has the weight LOUD^2, is least at FIRST_CLIP / (1 + z^2 / LOUD^2).
        """
        return max(LEAST_CLIP, FIRST_CLIP / (1 + (self.score * wide / LOUD) ** 2))

    @property
    def clip(self) -> float:
        """In units of a whitened row's typical length.

        Excess risks are squares, of noise and of bias. Noise grows with the clip C. In most tables rows end at about
        LONGEST, so that C cuts off LONGEST - C: the sum of k c (z C)^2 and of a multiple of (LONGEST - C)^2 is least at
        LONGEST / (1 + k c z^2 / WEIGHED_ALIKE^2), for k scores and curvature c. Where lengths have heavy tails, what is
        lost falls as 1 / C, and the best clip follows the inverse of the noise to the power 2/3.
        """
        if self.score == 0:
            return math.inf
        if not self.real:
            loud = self.outputs * self.curvature * (self.score / WEIGHED_ALIKE) ** 2
            tails = math.cbrt((QUIET / self.score) ** 2 / self.outputs)
            return max(SHORTEST, LONGEST / (1 + loud), LONGEST * tails)
        clip = max(SHORTEST * QUIET_RESIDUAL / self.score, SHORTEST)
        return clip if clip <= LONGEST else LONGEST * max(1.0, clip / LONGEST**2) ** (2 / 3)


def curvature_of(loss: Loss, smoothing: float) -> float:
    """How much a loss bends at the zero model, averaged over records; `smoothing` is the width of its kinks."""
    bound = 1.0 / smoothing if smoothing else loss.curvature_bound
    if loss.outputs > 1:
        return 2 * bound / loss.outputs  # a score of each of so many classes that are equally likely
    return min(bound, HINGE) if loss.targets == "sign" else bound


def fewest_in_kink(narrow: float) -> float:
    """The least share of the residuals inside a kink that is this part of their spread wide.

    Half of the residuals are smaller than their median, and of a law with one peak as many in each part of that, or
    more near 0. Around a model that is still off few are counted near 0, and steps made for so few would go too far.
    """
    return min(0.5, narrow / (2 * GAUSSIAN_MEDIAN))


def zero_slope(loss: Loss) -> float:
    """Length of the slopes of the zero model over their bound."""
    return math.sqrt(1 - 1 / loss.outputs) / loss.slope_bound if loss.outputs > 1 else 0.5


def steepest(loss: Loss) -> float:
    """How much more a loss bends on the way than at the zero model.

    A score of one of many classes bends by 1 / classes while all are equally likely, and by 1/4 where the class is as
    likely as not, which is where its rows soon are: steps are made for the geometric mean.
    """
    return math.sqrt(max(1.0, loss.outputs / 4)) if loss.outputs > 1 else 1.0


def late_curvature(loss: Loss) -> float:
    """The part of that curvature which is left at a model that has learnt."""
    return 1.0 if loss.targets == "real" else FLATTENED


def slope_limit(problem: Problem) -> float:
    """A bound on slopes: that of the loss, or where they are clipped, at the largest that the zero model can have."""
    bound = problem.loss.slope_bound
    return float(problem.target_bound or 1.0) if math.isinf(bound) else bound


def clip_slopes(slopes: Array, limit: float) -> Array:
    """Slopes (rows,), or (rows, outputs) by their lengths, no longer than the limit."""
    if slopes.ndim == 1:
        return np.clip(slopes, -limit, limit)
    lengths = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))
    short: Array = slopes * np.minimum(1.0, limit / np.maximum(lengths, np.finfo(float).tiny))[:, None]
    return short


def damping(noise: float, curvature: float, variance: float) -> float:
    """The weight of the square that minimises the mean squared error, for a prior of this variance per coordinate."""
    return 0.0 if noise == 0 else 2 * noise**2 / (curvature * variance)  # about half of the steps are averaged


def shrinkage_factor(size: float, noise: float) -> float:
    """How much of a model of this squared size is kept, noise having added `noise` to it (James and Stein)."""
    return 1.0 if noise == 0 else max(0.0, 1.0 - noise / max(size, noise))


def is_sparse(regularizer: Regularizer) -> bool:
    """Whether a 1-norm leaves zeros."""
    inner = regularizer.inner if isinstance(regularizer, Unpenalized) else regularizer
    return isinstance(inner, L1) or (isinstance(inner, ElasticNet) and inner.l1 > 0)


def sparser(regularizer: Regularizer, noise: float) -> Regularizer:
    """The regularizer, its 1-norm strengthened by the noise of a coordinate of the gradient."""
    if isinstance(regularizer, L1):
        return L1(strength=regularizer.strength + noise)
    if isinstance(regularizer, ElasticNet) and regularizer.l1:
        return ElasticNet(l1=regularizer.l1 + noise, l2=regularizer.l2)
    if isinstance(regularizer, Unpenalized):
        return Unpenalized(inner=sparser(regularizer.inner, noise), last=regularizer.last)
    return regularizer


def scale_regularizer(regularizer: Regularizer, norm: float, square: float) -> Regularizer:
    """The regularizer with its 1-norm and its square times factors."""
    if isinstance(regularizer, L1):
        return L1(strength=regularizer.strength * norm)
    if isinstance(regularizer, L2):
        return L2(strength=regularizer.strength * square)
    if isinstance(regularizer, ElasticNet):
        return ElasticNet(l1=regularizer.l1 * norm, l2=regularizer.l2 * square)
    if isinstance(regularizer, Unpenalized):
        return Unpenalized(inner=scale_regularizer(regularizer.inner, norm, square), last=regularizer.last)
    return regularizer


def shorter(step: float, gradient: Array, before: Array, noise: float) -> float:
    """The step, or half of it after two gradients that turn against each other by more than noise explains."""
    inner, sizes = float(gradient @ before), (float(np.linalg.norm(gradient)), float(np.linalg.norm(before)))
    unexplained = 3 * noise * (sizes[0] + sizes[1]) + 3 * noise**2 * math.sqrt(len(gradient))
    return step / 2 if inner < -unexplained and sizes[0] > 0.8 * sizes[1] and sizes[1] > 0 else step
