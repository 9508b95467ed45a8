"""The model that PreconditionedFixedPoint makes of its steps: noise and damping, shrinkage, and its length.

All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from consenso.algorithms.preconditioning import (
    calibrating,
    label_levels,
    length_laws,
    margin_laws,
    noise_levels,
    shrinking,
    slope_sizes,
)
from consenso.algorithms.preconditioning.noise_levels import NoiseLevels, slope_limit
from consenso.algorithms.preconditioning.settings import WARMUP_SHARE, WhitenedSettings
from consenso.algorithms.preconditioning.whitening import LEAST, Hub
from consenso.arrays import Array
from consenso.metric import Metric
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import Regularizer
from consenso.rows import BLOCK_NUMBERS

# Of a length, while it is not known.
UNMEASURED = -1.0


@dataclass(frozen=True, kw_only=True)
class WhitenedModel(WhitenedSettings):
    """What noise, steps and damping make of a model, and how much of it is kept."""

    def _starts_at_counts(self, problem: Problem) -> bool:
        """Whether steps start at the constant model: those of numbers, and of two labels."""
        if problem.loss.targets == "real":
            return self.counts
        return self.counts and self.constant != 0 and problem.outputs == 1 and problem.loss.is_likelihood

    def _measure_flatness(self, facts: PublicFacts, hub: Hub) -> float:
        """How much less a loss of two labels bends than at the zero model, where one of them is rare."""
        if facts.problem.loss.targets == "real" or not self._starts_at_counts(facts.problem):
            return 1.0
        return label_levels.measure_flatness(hub.origin[-1:] * self.constant)

    def _target_variance(self, facts: PublicFacts, hub: Hub) -> float:
        """Of numbers around the constant model: all that scores can explain."""
        return (hub.spread * (self.smoothing or slope_limit(facts.problem))) ** 2

    def _levels(self, facts: PublicFacts, hub: Hub) -> NoiseLevels:
        real = facts.problem.loss.targets == "real"
        curvature = hub.bend * (1.0 if real else noise_levels.curvature_of(facts.problem.loss, self.smoothing))
        late = noise_levels.late_curvature(facts.problem.loss)
        return NoiseLevels.of(facts, late * curvature, hub.effective)

    def _share(self, hub: Hub) -> float:
        """Equal parts, those of the warm-up smaller, and what is kept for the length."""
        if self._asks_length(hub):
            return self.length_share
        steps = 1.0 - self.length_share if self.lengths else 1.0
        if not self.warmup_steps:
            return steps / hub.steps
        early = hub.taken < self.warmup_steps
        return steps * (
            WARMUP_SHARE / self.warmup_steps if early else (1 - WARMUP_SHARE) / (hub.steps - self.warmup_steps)
        )

    def _asks_length(self, hub: Hub) -> bool:
        return self.lengths and 0 < hub.steps <= hub.taken

    def _reach(self, facts: PublicFacts, hub: Hub) -> float:
        size = self._measure_scores(facts, hub, self.model(facts, hub) - hub.origin)[0]
        return length_laws.choose_reach(self._length_noise(facts), size, slope_limit(facts.problem))

    def _measure_scores(self, facts: PublicFacts, hub: Hub, learnt: Array) -> tuple[float, float]:
        """Size and mean of what a model adds to a score of the constant one, as far as the second moment tells."""
        outputs = facts.problem.outputs
        table = learnt.reshape(-1, outputs)
        if hub.metric.is_round:
            # That of a direction that is like any other.
            square = hub.values[0] * float(np.sum(table**2)) / facts.problem.features
            mean = self.constant * float(table[-1, 0])
        else:
            along = hub.vectors.T @ table
            mean = 0.0
            if self.constant and outputs == 1:
                part = self._find_constant_part(hub, along[:, 0])
                mean, along = self.constant * part, along - part * hub.vectors[-1][:, None]
            square = mean**2 + float(hub.values * hub.shares @ np.sum(along**2, axis=1))
        size = math.sqrt(max(square / max(outputs - 1, 1), length_laws.EXACT**2))
        return size, min(max(mean, -size), size)

    def _find_constant_part(self, hub: Hub, along: Array) -> float:
        """The coefficient of the constant column without which a model (directions,) has the mean 0."""
        told = hub.vectors[-1] * hub.values * hub.shares
        return float(told @ along) / max(float(told @ hub.vectors[-1]), np.finfo(float).tiny)

    def _length_noise(self, facts: PublicFacts) -> float:
        """Of a mean slope along the model, for a reach of 1."""
        whole = facts.noise["gradient"] / slope_limit(facts.problem)
        return whole / math.sqrt(self.length_share) / facts.problem.records

    def _take_length(self, facts: PublicFacts, hub: Hub, numbers: Array) -> Hub:
        """The length of the least expected loss and penalty, by mean slopes and the mean doubt."""
        learnt, regularizer = self.model(facts, hub) - hub.origin, self._regularizer(facts, hub)

        def penalty(scales: Array) -> Array:
            # A default penalty is for directions of which no record speaks; of the length all of them do.
            if self.follows:
                return np.zeros(len(scales))
            # So many at once that they stay in a processor's cache, however wide the model.
            parts = np.array_split(scales, min(len(scales), 1 + len(scales) * facts.dim // BLOCK_NUMBERS))
            return np.concatenate([regularizer.value(hub.origin + part[:, None] * learnt) for part in parts])

        size, mean = self._measure_scores(facts, hub, learnt)
        before = self._average(facts, hub) - hub.origin - self._find_constant_bias(facts, hub)
        shrinkage, reach = self._find_shrinkage(facts, hub, before), self._reach(facts, hub)
        noise, doubt_noise = np.array([reach, 1 / length_laws.DOUBT]) * self._length_noise(facts)
        doubt = max(numbers[-1] / (length_laws.DOUBT * reach), doubt_noise)
        directions = shrinkage.expect() * float(self._read_model(facts, hub, before).come.sum())
        slopes = numbers[:-1] + length_laws.correct_optimism(facts.problem, directions, doubt, noise)
        loss, constant = facts.problem.loss, hub.origin[-facts.problem.outputs :] * self.constant
        longest = length_laws.longest_scores(reach, loss)
        if loss.is_likelihood:
            known = length_laws.Lengths(
                loss=loss,
                size=size,
                constant=constant,
                lengths=shrinkage.factors / max(shrinkage.expect(), np.finfo(float).tiny),
                weights=shrinkage.weights,
                longest=longest,
            )
            return replace(hub, length=known.choose(slopes, noise, penalty))
        margins = margin_laws.Margins(
            loss=loss,
            size=size,
            mean=mean,
            constant=float(constant[0]),
            odds=hub.odds,
            lead=hub.lead,
            longest=longest,
            signal=shrinkage.signal,
            weights=shrinkage.weights,
        )
        length, origin = margins.choose(slopes, noise, penalty), hub.origin.copy()
        if length:
            return replace(hub, length=length)
        # The larger class alone, with what keeps the order that rows tell of records, and costs nothing.
        if self.counts and self.constant:
            origin[-1] = math.copysign(1.0, hub.lead) / self.constant
        return replace(hub, length=margin_laws.SHORT, origin=origin)

    def _noise(self, facts: PublicFacts, hub: Hub) -> float:
        """Of a mean gradient that has the whole budget."""
        width = 1.0 if self.smoothing else hub.width
        return facts.noise["gradient"] * hub.clip * width / facts.problem.records

    def _curvature(self, facts: PublicFacts, hub: Hub) -> float:
        """Of the loss over shortened rows, in the metric."""
        bend = hub.bend * self._measure_flatness(facts, hub)
        return bend * hub.weight * noise_levels.curvature_of(facts.problem.loss, self.smoothing * hub.width)

    def _later_curvature(self, facts: PublicFacts, hub: Hub) -> float:
        return noise_levels.late_curvature(facts.problem.loss) * self._curvature(facts, hub)

    def _damping(self, facts: PublicFacts, hub: Hub) -> float:
        if not self.damping:
            return 0.0
        noise, curvature = self._noise(facts, hub), self._later_curvature(facts, hub)
        return noise_levels.damping(noise, curvature, hub.variance / hub.trace)

    def _bent(self, facts: PublicFacts, hub: Hub) -> Metric:
        """M."""
        return hub.metric.plus(self._bends(facts, hub), self._damping(facts, hub))

    def _bends(self, facts: PublicFacts, hub: Hub) -> float:
        """Of M without damping, in the metric: the inverse of a step."""
        return noise_levels.steepest(facts.problem.loss) * self._curvature(facts, hub) / hub.step

    def _regularizer(self, facts: PublicFacts, hub: Hub) -> Regularizer:
        """What steps have: as stated, or for rows and slopes as large as they are, a 1-norm of numbers relaxed."""
        is_relaxed = self.follows and facts.problem.loss.targets == "real"
        return self._scale_regularizer(facts, hub, noise_levels.RELAXED if is_relaxed else 1.0)

    def _scale_regularizer(self, facts: PublicFacts, hub: Hub, part: float) -> Regularizer:
        """The regularizer, if it follows rows and slopes with this part of its 1-norm."""
        regularizer = facts.problem.regularizer
        if not self.follows:
            return regularizer
        # Absolute values bend by the inverse of the width of their kinks, other losses as they are.
        bends = 1.0 / hub.width if self.smoothing and facts.problem.loss.targets == "real" else 1.0
        at_bound = (facts.problem.row_bound**2 - self.constant**2) / facts.problem.features
        norm = part * hub.size * math.sqrt(min(1.0, self._typical_square(facts, hub) / at_bound))
        return noise_levels.scale_regularizer(regularizer, norm, hub.filled * bends)

    def _typical_square(self, facts: PublicFacts, hub: Hub) -> float:
        """Of a column, for 1-norms: s |x|_1 costs s^2 tr(Q^-1) / 2, so it is the harmonic mean of the spectrum."""
        if hub.metric.is_round:
            return hub.trace / facts.problem.features
        return len(hub.values) / float(np.sum(1 / hub.values))

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        """The prox of the average of the late points, which is as sparse as a prox is; or the last iterate."""
        if not hub.averaged:
            return hub.x
        return self._keep_most(facts, hub) - self._find_pull(facts, hub)

    def _find_pull(self, facts: PublicFacts, hub: Hub) -> Array:
        """What clipped residuals have done to the constant part of a model of means."""
        pull, problem = np.zeros(facts.dim), facts.problem
        is_mean = problem.loss.targets == "real" and math.isinf(problem.loss.slope_bound)
        if is_mean and hub.sizes.size and self.constant and not self.smoothing and self.threshold is None:
            found = slope_sizes.find_pull(problem, hub.sizes, facts.noise["slopes"], hub.width)
            pull[-1] = found * slope_limit(problem) / self.constant
        return pull

    def _keep_most(self, facts: PublicFacts, hub: Hub) -> Array:
        x, regularizer = self._average(facts, hub), self._regularizer(facts, hub)
        # A 1-norm of numbers that was raised by their noise has taken it off already, coordinate by coordinate. Where
        # nothing is known of directions, all of them together still tell whether there is anything but noise.
        is_sparse = facts.problem.loss.targets == "real" and noise_levels.is_sparse(regularizer)
        if not self.damping or regularizer.is_constraint or (is_sparse and not hub.metric.is_round):
            return x
        learnt = x - hub.origin - self._find_constant_bias(facts, hub)
        seen = hub.total / hub.averaged - hub.origin if is_sparse else learnt
        kept = self._find_shrinkage(facts, hub, seen).expect()
        length = 1.0 if hub.length == UNMEASURED else hub.length
        return hub.origin + learnt * kept * length

    def _average(self, facts: PublicFacts, hub: Hub) -> Array:
        """The prox of the late points, which leaves out what cannot be told from noise."""
        regularizer, bent, late = self._regularizer(facts, hub), self._bent(facts, hub), hub.total / hub.averaged
        if not self.damping or not noise_levels.is_sparse(regularizer):
            return bent.prox(regularizer, late, hub.weight)
        # Noise of a coordinate of the averaged gradient: about half of the steps are averaged.
        entry = self._noise(facts, hub) * math.sqrt(2 * self._typical_square(facts, hub)) / hub.weight
        asked = noise_levels.sparser(self._scale_regularizer(facts, hub, 1.0), entry)
        sparse = bent.prox(asked, late, hub.weight)
        if not self.follows or facts.problem.loss.targets != "real":
            return sparse
        return bent.prox_among(regularizer, late, hub.weight, sparse != 0)

    def _find_constant_bias(self, facts: PublicFacts, hub: Hub) -> Array:
        """What clipped slopes, few steps and damping have done to the constant part of a model of labels."""
        problem, outputs, bias = facts.problem, facts.problem.outputs, np.zeros(facts.dim)
        if not (self.counts and self.constant and problem.loss.is_likelihood):
            return bias
        values, bent = hub.values, self._bent(facts, hub).values
        if hub.metric.is_round:
            pace, pulled = self.constant**2 / bent[0], self._damping(facts, hub) / bent[0]
        else:
            # The constant function lies in these parts in the directions of the metric.
            parts = values * hub.vectors[-1] ** 2
            parts /= parts.sum()
            pace, pulled = parts @ (hub.shares * values / bent), parts @ (self._damping(facts, hub) / bent)
        scores = hub.origin[-outputs:] * self.constant
        run = calibrating.ConstantSteps(
            start=scores if self._starts_at_counts(problem) else np.zeros(outputs),
            origin=scores,
            limit=slope_limit(problem) * hub.width,
            pace=hub.weight * float(pace),
            pulled=float(pulled),
            momentum=hub.momentum,
            steps=hub.taken,
            first=hub.taken - hub.averaged,
        )
        bias[-outputs:] = calibrating.keep_bias(hub.variance) * run.compute_bias() / self.constant
        return bias

    def _round_noise(self, facts: PublicFacts, hub: Hub) -> float:
        """Variance of the noise of a direction of a model of numbers in the metric, where all directions are alike."""
        return 2 * (self._noise(facts, hub) / self._later_curvature(facts, hub)) ** 2

    def _read_model(self, facts: PublicFacts, hub: Hub, learnt: Array) -> shrinking.NoisyModel:
        """What was learnt, with what steps and noise have done to it, direction by direction."""
        problem, values, bent = facts.problem, hub.values, self._bent(facts, hub).values
        table, filled = learnt.reshape(-1, problem.outputs), hub.shares
        if hub.metric.is_round:
            # Which directions rows fill is not known: of the model all are seen, and the spectrum is a guess.
            filled = label_levels.guess_spectrum(problem.features)
            seen, size = np.ones(len(filled)), float(values[0] * np.sum(table**2))
        else:
            seen, size = filled, float(filled * values @ np.sum((hub.vectors.T @ table) ** 2, axis=1))
        noise, damping = self._noise(facts, hub) * values / bent, self._damping(facts, hub)
        bends = self._later_curvature(facts, hub) * filled * values
        run = shrinking.MomentumSteps(rates=(bends + damping) / bent, momentum=hub.momentum, most=hub.taken)
        average = run.average(hub.steps, taken=hub.taken, late=hub.averaged)
        walked = np.empty(0)
        if problem.loss.targets != "real":
            free = replace(run, rates=damping / bent).average(hub.steps, taken=hub.taken, late=hub.averaged)
            walked = noise**2 * free.noise()
        return shrinking.NoisyModel(
            size=size,
            seen=seen,
            noise=noise**2 * average.noise(),
            walked=walked,
            come=bends / np.maximum(bends + damping, LEAST * bent) * average.way(),
            filled=filled,
            outputs=problem.outputs,
        )

    def _read_varying(self, facts: PublicFacts, hub: Hub, learnt: Array) -> shrinking.NoisyModel:
        """The part of a model that differs between records.

        Steps on margins start at zero, and what they learn of the larger class says nothing of what rows tell.
        """
        if facts.problem.loss.is_likelihood or not self.constant or hub.metric.is_round:
            return self._read_model(facts, hub, learnt)
        rest = learnt.copy()
        rest[-1] -= self._find_constant_part(hub, hub.vectors.T @ learnt)
        told = hub.values * hub.shares * hub.vectors[-1] ** 2
        parts = told / max(float(told.sum()), np.finfo(float).tiny)
        return self._read_model(facts, hub, rest).leave_out(parts)

    def _find_shrinkage(self, facts: PublicFacts, hub: Hub, learnt: Array) -> shrinking.ShrinkageFactors:
        """How much of what was learnt should be kept, noise having added to it."""
        problem = facts.problem
        if problem.loss.targets != "real":
            variances, weights = label_levels.list_variances(problem.loss)
            weights[0] += hub.refuted
            return self._read_varying(facts, hub, learnt).find_factors(variances, weights)
        if hub.metric.is_round:
            # Nothing is known of the directions: noise is that of all of them.
            size, noise = float(np.sum(hub.metric.apply(learnt, 0.5) ** 2)), facts.dim * self._round_noise(facts, hub)
            return shrinking.ShrinkageFactors.of(noise_levels.shrinkage_factor(size, noise))
        most, even = self._target_variance(facts, hub), np.zeros(len(noise_levels.EXPLAINED))
        return self._read_model(facts, hub, learnt).find_factors(most * noise_levels.EXPLAINED, even)
