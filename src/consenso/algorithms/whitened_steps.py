"""What the hub of PreconditionedFixedPoint makes of its releases: metric, clip, steps. All of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from consenso.algorithms import calibrating, label_levels, length_laws, noise_levels, shrinking, target_counts
from consenso.algorithms.evidence import Evidence, Looked, products
from consenso.algorithms.noise_levels import NoiseLevels, slope_limit
from consenso.algorithms.slope_sizes import Sizes
from consenso.algorithms.whitened_settings import FIRST_LOOK, PILOT_SHARE, WhitenedSettings
from consenso.algorithms.whitening import (
    LEAST,
    NARROWEST_WIDTH,
    SHORTEST_CLIP,
    Hub,
    estimate_trace,
    first_look,
    second_look,
    within_bounds,
)
from consenso.arrays import Array
from consenso.metric import Metric, again, look, unpack_symmetric
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import Regularizer
from consenso.rows import BLOCK_NUMBERS

# What a fit finds out.
RESIDUAL_CLIP = "residual clip"
UNMEASURED = -1.0


@dataclass(frozen=True, kw_only=True)
class WhitenedSteps(WhitenedSettings):
    """The rules that follow from settings and from what was released; rows are never seen here."""

    def start(self, facts: PublicFacts) -> Hub:
        """The zero model; before a look all directions are alike."""
        bound = facts.problem.row_bound**2
        metric, zero = Metric.round(bound), np.zeros(facts.dim)
        hub = Hub(
            vectors=metric.vectors,
            values=metric.values,
            effective=1.0,
            shares=np.empty(0),
            trace=bound,
            clip=1.0,
            steps=0,
            taken=0,
            width=1.0,
            step=noise_levels.STEP,
            momentum=0.0,
            variance=0.0,
            origin=zero,
            spread=1.0,
            size=1.0,
            filled=1.0,
            bend=1.0,
            gradient=zero,
            x=zero,
            before=zero,
            total=zero,
            averaged=0,
            points=zero,
            pulls=zero,
            products=np.zeros(3),
            moment=np.empty((0, 0)),
            looked=np.zeros(0),
            sizes=np.empty(0),
            met=np.empty(0),
            length=UNMEASURED,
        )
        return hub if self.looks or self.counts else self._ready(facts, hub)

    def _take_targets(self, facts: PublicFacts, hub: Hub, counts: Array) -> Hub:
        """The constant model, and the spread of targets around it."""
        problem = facts.problem
        found = target_counts.read_constant_model(problem, counts, facts.noise["targets"])
        origin, spread = hub.origin, found.spread
        if self.constant:
            origin = origin.copy()
            origin[-problem.outputs :] = found.scores / self.constant
        elif problem.loss.targets == "real":
            spread = float(np.hypot(spread, found.scores[0]))  # around 0, where the model has no intercept
        unit = self.smoothing or slope_limit(problem) if problem.loss.targets == "real" else 1.0
        # Losses of labels are flat at the constant model of a rare class, and steps from there are short; but from zero
        # they do not get to that of a very rare one.
        start = origin if self._starts_at_counts(problem) else hub.x
        hub = replace(hub, origin=origin, x=start, before=start, spread=min(1.0, spread / unit))
        if problem.loss.targets == "real" and not self.smoothing:
            hub = replace(hub, size=hub.spread)
        return hub if self.looks else self._ready(facts, hub)

    def _starts_at_counts(self, problem: Problem) -> bool:
        """Whether steps start at the constant model: those of numbers, and of two labels."""
        if problem.loss.targets == "real":
            return self.counts
        return self.counts and self.constant != 0 and problem.outputs == 1 and problem.loss.is_likelihood

    def _take_moment(self, facts: PublicFacts, hub: Hub, upper: Array) -> Hub:
        problem, least = facts.problem, LEAST
        moment, noise = unpack_symmetric(upper, problem.features), facts.noise["second moment"] / problem.records
        if self._count_looks(facts.round) == 0:
            if self.constant and not problem.is_weighted:
                moment[-1, -1] = self.constant**2  # which is public
            noise /= np.sqrt(FIRST_LOOK if self.looks > 1 else 1.0)
            seen = look(moment, noise, NoiseLevels.floor, least * problem.row_bound**2)
            # Rows without their constant, as far as noise lets them be told from none.
            constant = self.constant**2
            hub = replace(hub, trace=estimate_trace(problem, seen.trace, noise * math.sqrt(problem.features), constant))
            length = max(seen.trace - constant, noise * math.sqrt(problem.features))
            hub = replace(hub, filled=min(1.0, max(length / (problem.row_bound**2 - constant), LEAST)))
            hub = first_look(hub, seen, noise)
        else:
            noise *= (hub.clip / problem.row_bound) ** 2 / np.sqrt(1 - FIRST_LOOK)
            seen = again(hub.metric, moment, noise, NoiseLevels.floor, least)
            hub = second_look(hub, seen, noise)
        metric = within_bounds(facts, seen.metric)
        hub = replace(hub, vectors=metric.vectors, values=metric.values, shares=seen.shares)
        return self._ready(facts, replace(hub, effective=seen.effective))

    def _take_sizes(self, facts: PublicFacts, hub: Hub, counts: Array) -> Hub:
        """A clip, and how many steps are left, for slopes as large as they are."""
        problem, noise = facts.problem, facts.noise["gradient"] * hub.effective / facts.problem.records
        found = Sizes.read(problem, counts, facts.noise["slopes"])
        hub = replace(hub, sizes=counts, met=hub.x)
        if found is None:
            return hub
        # What was counted of the targets is too narrow where what a model leaves of them is wider.
        hub = replace(hub, spread=min(1.0, max(hub.spread, found.root_mean_square())))
        noise /= slope_limit(problem)
        spread = found.median() / noise_levels.GAUSSIAN_MEDIAN
        if self.smoothing:
            width = spread * min(1.0, max(noise_levels.NARROWEST, noise_levels.KINKS_PER_NOISE * noise))
        elif self.threshold is not None:
            width = spread * self.threshold
        else:
            width = found.best_clip(noise)
        # What is cut off after few steps is also what is yet to be learnt: only little noise makes the clip wider.
        if noise > 0:
            width = min(width, noise_levels.FIRST_CLIP * hub.spread * max(1.0, noise_levels.WIDER / noise))
        bend = max(found.curvature(width), noise_levels.LEAST_BEND)
        hub = replace(hub, width=min(max(width, NARROWEST_WIDTH), 1.0), bend=bend)
        if not self.smoothing:
            hub = replace(hub, size=min(hub.size, spread))
        return self._plan_steps(facts, hub)

    def _ready(self, facts: PublicFacts, hub: Hub) -> Hub:
        """Clip and steps for a metric that is now known."""
        hub = replace(hub, bend=1.0)
        levels = self._levels(facts, hub)
        longest = facts.problem.row_bound / float(np.sqrt(hub.values.min()))
        clip = levels.clip if self.clip is None else self.clip
        if self._count_looks(facts.round) + 1 < self.looks:
            clip = max(clip, noise_levels.LOOKED_AT)
        clip *= float(np.sqrt(hub.effective))
        if facts.problem.loss.targets == "real":
            # A loss with slopes of its own keeps them; squares and kinks have none that privacy could use.
            adapts = self.counts and (self.smoothing > 0 or np.isinf(facts.problem.loss.slope_bound))
            width = min(1.0, noise_levels.FIRST_CLIP * hub.spread) if adapts else 1.0
        else:
            width = levels.slopes if facts.problem.outputs == 1 else levels.slopes_of_classes
            width = 1.0 if self.smoothing else width
            if facts.problem.loss.is_likelihood:
                # Slopes of the zero model may all be clipped: their sum then bends as much less as it is shorter.
                hub = replace(hub, bend=min(1.0, width / noise_levels.zero_slope(facts.problem.loss)))
        return self._plan_steps(facts, replace(hub, clip=max(min(clip, longest), SHORTEST_CLIP), width=width))

    def _measure_flatness(self, facts: PublicFacts, hub: Hub) -> float:
        """How much less a loss of two labels bends than at the zero model, where one of them is rare."""
        if facts.problem.loss.targets == "real" or not self._starts_at_counts(facts.problem):
            return 1.0
        return label_levels.measure_flatness(hub.origin[-1:] * self.constant)

    def _plan_steps(self, facts: PublicFacts, hub: Hub) -> Hub:
        """How many steps the budget is worth, and how much each goes on with the last one."""
        residuals = facts.problem.loss.targets == "real"
        # Iterates walk in the directions that do not stand out, too, and residuals tell soon how far.
        wide = float(np.sqrt(facts.problem.features / hub.effective)) if residuals else hub.width
        # Where the loss is flat they walk as much further.
        wide /= self._measure_flatness(facts, hub)
        worth = self._levels(facts, hub).steps(wide, residuals=residuals)
        most = int(min(max(worth, self.fewest_steps), facts.rounds - self.other_rounds))
        waits = self._kind(facts) == "second moment" and self._count_looks(facts.round) + 1 < self.looks
        if not (self.steps or waits) and residuals and hub.shares.size and (noise := self._noise(facts, hub)):
            curvature, bent = self._curvature(facts, hub), self._bends(facts, hub)
            rates, variance = curvature * hub.shares / bent, self._target_variance(facts, hub)
            found = shrinking.plan_steps(rates, hub.shares, variance, noise / bent, self.fewest_steps, most)
            return replace(hub, steps=found[0], momentum=found[1])
        return replace(hub, steps=self.steps or most)

    def _target_variance(self, facts: PublicFacts, hub: Hub) -> float:
        """Of numbers around the constant model: all that scores can explain."""
        return (hub.spread * (self.smoothing or slope_limit(facts.problem))) ** 2

    def _levels(self, facts: PublicFacts, hub: Hub) -> NoiseLevels:
        real = facts.problem.loss.targets == "real"
        curvature = hub.bend * (1.0 if real else noise_levels.curvature_of(facts.problem.loss, self.smoothing))
        late = noise_levels.late_curvature(facts.problem.loss)
        return NoiseLevels.of(facts, late * curvature, hub.effective)

    def _share(self, hub: Hub) -> float:
        """Equal parts, those of the pilot smaller, and what is kept for the length."""
        if self._asks_length(hub):
            return self.length_share
        steps = 1.0 - self.length_share if self.lengths else 1.0
        if not self.pilot:
            return steps / hub.steps
        early = hub.taken < self.pilot
        return steps * (PILOT_SHARE / self.pilot if early else (1 - PILOT_SHARE) / (hub.steps - self.pilot))

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
            square = float(hub.values * hub.shares @ np.sum(along**2, axis=1))
            mean = float((hub.vectors[-1] * hub.values * hub.shares) @ along[:, 0]) / (self.constant or math.inf)
        size = math.sqrt(max(square / max(outputs - 1, 1), length_laws.EXACT**2))
        return size, min(max(mean, -size), size)

    def _length_noise(self, facts: PublicFacts) -> float:
        """Of a mean slope along the model, for a reach of 1."""
        whole = facts.noise["gradient"] / slope_limit(facts.problem)
        return whole / math.sqrt(self.length_share) / facts.problem.records

    def _take_length(self, facts: PublicFacts, hub: Hub, slopes: Array) -> Hub:
        """The length of the least expected loss and penalty."""
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
        factors, weights = self._find_factors(facts, hub, before)
        reach = self._reach(facts, hub)
        noise = reach * self._length_noise(facts)
        directions = float(weights @ factors) * float(self._read_model(facts, hub, before).come.sum())
        slopes = slopes + length_laws.correct_optimism(facts.problem, directions, noise)
        known = length_laws.Lengths(
            loss=facts.problem.loss,
            size=size,
            mean=mean,
            constant=hub.origin[-facts.problem.outputs :] * self.constant,
            lengths=factors / max(float(weights @ factors), np.finfo(float).tiny),
            weights=weights,
            longest=length_laws.longest_scores(reach, facts.problem.loss),
        )
        return replace(hub, length=known.choose(slopes, noise, penalty))

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

    def _take_step(self, facts: PublicFacts, hub: Hub, gradient: Array) -> Hub:
        noise, released = self._noise(facts, hub) / float(np.sqrt(self._share(hub))), gradient
        gradient = label_levels.drop_common_part(gradient, facts.problem.outputs)
        if hub.taken == 0:
            problem = facts.problem
            if problem.loss.targets == "real":
                # The gradient of clipped residuals understates what a model explains, which is at most all there is.
                variance = self._target_variance(facts, hub)
            else:
                variance = self._score_variance(facts, hub, gradient, noise)
            hub = replace(hub, variance=variance)
        hub = replace(hub, step=noise_levels.shorter(hub.step, gradient, hub.gradient, noise), gradient=gradient)
        bent, metric = self._bent(facts, hub), hub.metric
        damped = self._damping(facts, hub) * (hub.x - hub.origin)
        moved = hub.x - bent.apply(metric.apply(gradient, 0.5) + damped, -1.0)
        moved += hub.momentum * (hub.x - hub.before)
        early = hub.steps // 2 if facts.problem.loss.targets != "real" else shrinking.skip_early(hub.steps)
        late = hub.taken >= max(early, self.pilot) if self.averaging else hub.taken == hub.steps - 1
        return replace(
            hub,
            taken=hub.taken + 1,
            x=bent.prox(self._regularizer(facts, hub), moved, hub.weight),
            before=hub.x,
            total=hub.total + moved if late else hub.total,
            averaged=hub.averaged + late,
            points=hub.points + hub.x if late else hub.points,
            pulls=hub.pulls + released if late else hub.pulls,
            products=hub.products + late * products(metric.apply(hub.x, 0.5), released),
        )

    def _score_variance(self, facts: PublicFacts, hub: Hub, gradient: Array, noise: float) -> float:
        outputs = facts.problem.outputs
        if self.counts and self.constant and facts.problem.loss.is_likelihood and not hub.x.any():
            scores = hub.origin[-outputs:] * self.constant
            gradient = label_levels.move_to_constant(gradient, hub.metric, scores, self.constant, hub.weight)
        seen = label_levels.visible_share(hub.metric, facts.problem.features)
        # At the constant model of a rare label the loss bends less than it will.
        curvature = self._later_curvature(facts, hub) * self._measure_flatness(facts, hub)
        return label_levels.estimate_variance(gradient, noise, curvature, facts.problem.loss, seen)

    def _regularizer(self, facts: PublicFacts, hub: Hub) -> Regularizer:
        """As stated, or for rows and slopes as large as they are."""
        regularizer = facts.problem.regularizer
        if not self.follows:
            return regularizer
        # Absolute values bend by the inverse of the width of their kinks, other losses as they are.
        bends = 1.0 / hub.width if self.smoothing and facts.problem.loss.targets == "real" else 1.0
        at_bound = (facts.problem.row_bound**2 - self.constant**2) / facts.problem.features
        norm = hub.size * math.sqrt(min(1.0, self._typical_square(facts, hub) / at_bound))
        return noise_levels.scale_regularizer(regularizer, norm, hub.filled * bends)

    def _typical_square(self, facts: PublicFacts, hub: Hub) -> float:
        """Of a column, for 1-norms: s |x|_1 costs s^2 tr(Q^-1) / 2, so it is the harmonic mean of the spectrum."""
        if hub.metric.is_round:
            return hub.trace / facts.problem.features
        return len(hub.values) / float(np.sum(1 / hub.values))

    def findings(self, facts: PublicFacts, hub: Hub) -> Mapping[str, float]:
        """Where residuals were clipped in the end, in the units of the targets."""
        if facts.problem.loss.targets != "real" or self.smoothing:
            return {}
        return {RESIDUAL_CLIP: hub.width * slope_limit(facts.problem)}

    def finished(self, facts: PublicFacts, hub: Hub) -> bool:
        """All steps were taken, and the length is known."""
        return hub.taken > 0 and hub.taken >= hub.steps and (hub.length >= 0 or not self.lengths)

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        """The prox of the average of the late points, which is as sparse as a prox is; or the last iterate."""
        if not hub.averaged:
            return hub.x
        x, regularizer = self._average(facts, hub), self._regularizer(facts, hub)
        # A 1-norm of numbers that was raised by their noise has taken it off already, coordinate by coordinate. Where
        # nothing is known of directions, all of them together still tell whether there is anything but noise.
        is_sparse = facts.problem.loss.targets == "real" and noise_levels.is_sparse(regularizer)
        if not self.damping or regularizer.is_constraint or (is_sparse and not hub.metric.is_round):
            return x
        learnt = x - hub.origin - self._find_constant_bias(facts, hub)
        seen = hub.total / hub.averaged - hub.origin if is_sparse else learnt
        factors, weights = self._find_factors(facts, hub, seen)
        length = 1.0 if hub.length == UNMEASURED else hub.length
        return hub.origin + learnt * float(weights @ factors) * length

    def _average(self, facts: PublicFacts, hub: Hub) -> Array:
        """The prox of the late points."""
        regularizer = self._regularizer(facts, hub)
        if self.damping:
            # Noise of a coordinate of the averaged gradient: about half of the steps are averaged.
            entry = self._noise(facts, hub) * math.sqrt(2 * self._typical_square(facts, hub))
            regularizer = noise_levels.sparser(regularizer, entry / hub.weight)
        return self._bent(facts, hub).prox(regularizer, hub.total / hub.averaged, hub.weight)

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
            steps=hub.taken,
            first=hub.taken - hub.averaged,
        )
        bias[-outputs:] = run.compute_bias() / self.constant
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

    def _find_factors(self, facts: PublicFacts, hub: Hub, learnt: Array) -> tuple[Array, Array]:
        """How much of what was learnt should be kept, noise having added to it, and how likely each is."""
        problem = facts.problem
        if hub.metric.is_round and problem.loss.targets == "real":
            # Nothing is known of the directions: noise is that of all of them.
            size, noise = float(np.sum(hub.metric.apply(learnt, 0.5) ** 2)), facts.dim * self._round_noise(facts, hub)
            return np.array([noise_levels.shrinkage_factor(size, noise)]), np.ones(1)
        found = self._read_model(facts, hub, learnt)
        if problem.loss.targets == "real":
            most = self._target_variance(facts, hub)
            return found.find_factors(most * noise_levels.EXPLAINED, np.zeros(len(noise_levels.EXPLAINED)))
        return found.find_factors(*label_levels.list_variances(problem.loss))

    def evidence(self, facts: PublicFacts, hub: Hub) -> Evidence | None:
        """What standard errors are made of; None where no second moment was released, or kinks were smoothed."""
        if not hub.averaged or not hub.looked.size or self.smoothing:
            return None
        problem, real = facts.problem, facts.problem.loss.targets == "real"
        point, pull, unit = hub.points / hub.averaged, hub.pulls / hub.averaged, slope_limit(problem)
        spread = hub.products / hub.averaged - products(hub.metric.apply(point, 0.5), pull)
        share = self._share(replace(hub, taken=hub.steps - 1))
        return Evidence(
            metric=hub.metric,
            point=point,
            pull=pull,
            noise=self._noise(facts, hub) / float(np.sqrt(share * hub.averaged)),
            clip=hub.clip,
            limit=unit * hub.width,
            steps=hub.averaged,
            scatter=spread / facts.dim * hub.averaged / max(hub.averaged - 1, 1),
            looked=Looked(**dict(zip(Looked.__dataclass_fields__, map(float, hub.looked), strict=True))),
            spread=hub.spread * unit if real and hub.spread < 1 else 0.0,
            unit=unit,
            origin=hub.origin,
            sizes=hub.sizes,
            met=hub.met,
        )
