"""What the hub of PreconditionedFixedPoint makes of its releases: metric, clip, steps. All of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from consenso.algorithms.evidence import Evidence, MomentEvidence, products
from consenso.algorithms.preconditioning import label_levels, noise_levels, shrinking, target_counts
from consenso.algorithms.preconditioning.model import UNMEASURED, WhitenedModel
from consenso.algorithms.preconditioning.noise_levels import NoiseLevels, slope_limit
from consenso.algorithms.preconditioning.settings import FIRST_SHARE
from consenso.algorithms.preconditioning.slope_sizes import Sizes
from consenso.algorithms.preconditioning.whitening import (
    LEAST,
    NARROWEST_WIDTH,
    SHORTEST_CLIP,
    Hub,
    estimate_trace,
    note_first_moment,
    note_second_moment,
    within_bounds,
)
from consenso.arrays import Array
from consenso.metric import Metric, estimate_metric, refine_metric, unpack_symmetric
from consenso.public_facts import PublicFacts

# What a fit finds out.
RESIDUAL_CLIP = "residual clip"


@dataclass(frozen=True, kw_only=True)
class WhitenedSteps(WhitenedModel):
    """The rules that follow from settings and from what was released; rows are never seen here."""

    def start(self, facts: PublicFacts) -> Hub:
        """The zero model; before a second moment is released all directions are alike."""
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
            refuted=0.0,
            origin=zero,
            odds=0.0,
            lead=0.0,
            spread=1.0,
            size=1.0,
            filled=1.0,
            curved=0.0,
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
            moments=np.zeros(0),
            sizes=np.empty(0),
            met=np.empty(0),
            length=UNMEASURED,
        )
        return hub if self.moment_releases or self.counts else self._ready(facts, hub)

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
        hub = replace(hub, odds=found.odds, lead=found.lead)
        if problem.loss.targets == "real" and not self.smoothing:
            hub = replace(hub, size=hub.spread)
        return hub if self.moment_releases else self._ready(facts, hub)

    def _take_moment(self, facts: PublicFacts, hub: Hub, upper: Array) -> Hub:
        problem, least, real = facts.problem, LEAST, facts.problem.loss.targets == "real"
        moment, noise = unpack_symmetric(upper, problem.features), facts.noise["second moment"] / problem.records
        if self._count_moments(facts.round) == 0:
            if self.constant and not problem.is_weighted:
                moment[-1, -1] = self.constant**2  # which is public
            noise /= np.sqrt(FIRST_SHARE if self.moment_releases > 1 else 1.0)
            seen = estimate_metric(moment, noise, NoiseLevels.floor, least * problem.row_bound**2, keeps_trace=real)
            # Rows without their constant, as far as noise lets them be told from none.
            constant = self.constant**2
            hub = replace(hub, trace=estimate_trace(problem, seen.trace, noise * math.sqrt(problem.features), constant))
            length = max(seen.trace - constant, noise * math.sqrt(problem.features))
            hub = replace(hub, filled=min(1.0, max(length / (problem.row_bound**2 - constant), LEAST)))
            hub = note_first_moment(hub, seen, noise)
        else:
            noise = self._moment_noise(facts, hub.clip)
            seen = refine_metric(hub.metric, moment, noise, NoiseLevels.floor, least, keeps_trace=real)
            hub = note_second_moment(hub, seen, noise)
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
        narrow = 1.0
        if self.smoothing:
            narrow = min(1.0, max(noise_levels.NARROWEST, noise_levels.KINKS_PER_NOISE * noise))
            width = spread * narrow
        elif self.threshold is not None:
            width = spread * self.threshold
        else:
            width = found.best_clip(noise)
        # What is cut off after few steps is also what is yet to be learnt: only little noise makes the clip wider.
        if noise > 0:
            width = min(width, noise_levels.FIRST_CLIP * hub.spread * max(1.0, noise_levels.WIDER / noise))
        # Rows that are shortened bend less than the spectrum says, and residuals that are clipped, which were counted.
        curved = hub.curved / (max(found.curvature(hub.width), noise_levels.LEAST_BEND) * self._curvature(facts, hub))
        least = noise_levels.fewest_in_kink(narrow) if self.smoothing else noise_levels.LEAST_BEND
        bend = max(found.curvature(width), least)
        hub = replace(hub, width=min(max(width, NARROWEST_WIDTH), 1.0), bend=bend)
        if not self.smoothing:
            hub = replace(hub, size=min(hub.size, spread))
        return self._plan_steps(facts, hub, curved, narrow)

    def _ready(self, facts: PublicFacts, hub: Hub) -> Hub:
        """Clip and steps for a metric that is now known."""
        hub = replace(hub, bend=1.0)
        levels = self._levels(facts, hub)
        longest = facts.problem.row_bound / float(np.sqrt(hub.values.min()))
        clip = levels.clip if self.clip is None else self.clip
        if self._count_moments(facts.round) + 1 < self.moment_releases:
            longest_of_moment = max(noise_levels.LONGEST, self._clear_clip(facts, hub))
            clip = max(min(clip, longest_of_moment) if self.clip is None else clip, noise_levels.LEAST_OF_MOMENT)
        clip *= float(np.sqrt(hub.effective))
        if facts.problem.loss.targets == "real":
            # A loss with slopes of its own keeps them; squares and kinks have none that privacy could use.
            adapts = self.counts and (self.smoothing > 0 or np.isinf(facts.problem.loss.slope_bound))
            # The noise of slopes that have kinks does not follow their width.
            first = noise_levels.FIRST_CLIP if self.smoothing else levels.first_clip(self._measure_width(facts, hub))
            width = min(1.0, first * hub.spread) if adapts else 1.0
        else:
            width = levels.slopes if facts.problem.outputs == 1 else levels.slopes_of_classes
            width = 1.0 if self.smoothing else width
            if facts.problem.loss.is_likelihood:
                # Slopes of the zero model may all be clipped: their sum then bends as much less as it is shorter.
                hub = replace(hub, bend=min(1.0, width / noise_levels.zero_slope(facts.problem.loss)))
        return self._plan_steps(facts, replace(hub, clip=max(min(clip, longest), SHORTEST_CLIP), width=width))

    def _moment_noise(self, facts: PublicFacts, clip: float) -> float:
        """Of an entry of a second release of the second moment, which grows with the square of the clip."""
        noise = facts.noise["second moment"] / facts.problem.records / math.sqrt(1 - FIRST_SHARE)
        return float(noise * (clip / facts.problem.row_bound) ** 2)

    def _clear_clip(self, facts: PublicFacts, hub: Hub) -> float:
        """The longest clip, in typical lengths, with which directions that rows fill stay clear of that noise.

        Rows that are longer than it bend the loss by more than the metric says, and steps made for that go too far.
        """
        spread = self._moment_noise(facts, math.sqrt(hub.effective)) * math.sqrt(2 * facts.problem.features)
        return math.sqrt(noise_levels.CLEAR / spread) if spread else math.inf

    def _measure_width(self, facts: PublicFacts, hub: Hub) -> float:
        """How much more noise scores have, which have it in the directions that do not stand out, too."""
        return math.sqrt(facts.problem.features / hub.effective)

    def _plan_steps(self, facts: PublicFacts, hub: Hub, curved: float = 0.0, narrow: float = 1.0) -> Hub:
        """How many steps the budget is worth, and how much each goes on with the last one.

        curved: how much the loss was seen to bend, over what is to be expected of it. narrow: width of a kink, over the
        spread of the residuals: it bends in as many records less, and as much more in those.
        """
        residuals = facts.problem.loss.targets == "real"
        # Residuals tell soon how far iterates walk in directions that do not stand out.
        wide = self._measure_width(facts, hub) if residuals else hub.width
        # Where the loss is flat they walk as much further.
        wide /= self._measure_flatness(facts, hub)
        worth = self._levels(facts, replace(hub, bend=hub.bend / narrow)).steps(wide, residuals=residuals)
        most = int(min(max(worth, self.fewest_steps), facts.rounds - self.other_rounds))
        waits = self._kind(facts) == "second moment" and self._count_moments(facts.round) + 1 < self.moment_releases
        if not (self.steps or waits) and residuals and hub.shares.size and (noise := self._noise(facts, hub)):
            curvature, bent = self._curvature(facts, hub), self._bends(facts, hub)
            rates, variance = curvature * hub.shares / bent, self._target_variance(facts, hub)
            # Where typical rows are shortened, directions that longer ones fill bend less than a step has met. Kinks
            # bend elsewhere by the next step.
            is_told = hub.weight == 1 and not self.smoothing
            bends = max(shrinking.BENDS, min(curved, 1.0)) if is_told else shrinking.BENDS
            fewest = self.fewest_steps
            if bends > shrinking.BENDS:
                # The warm-up comes less far than steps by the clip which it chooses: one of those is not averaged.
                fewest = min(max(fewest, shrinking.EARLY * (self.warmup_steps + 1)), most)
            found = shrinking.plan_steps(rates, hub.shares, variance, noise / bent, fewest, most, bends)
            return replace(hub, steps=found[0], momentum=found[1])
        return replace(hub, steps=self.steps or most)

    def _take_step(self, facts: PublicFacts, hub: Hub, gradient: Array) -> Hub:
        noise, released = self._noise(facts, hub) / float(np.sqrt(self._share(hub))), gradient
        gradient = label_levels.drop_common_part(gradient, facts.problem.outputs)
        if hub.taken == 0:
            problem = facts.problem
            if problem.loss.targets == "real":
                # The gradient of clipped residuals understates what a model explains, which is at most all there is.
                variance = self._target_variance(facts, hub)
            else:
                variance, refuted = self._read_first_gradient(facts, hub, gradient, noise)
                hub = replace(hub, momentum=self._label_momentum(facts, hub), refuted=refuted)
            hub = replace(hub, variance=variance)
        before = hub.gradient
        hub = replace(hub, step=noise_levels.shorter(hub.step, gradient, hub.gradient, noise), gradient=gradient)
        bent, metric = self._bent(facts, hub), hub.metric
        if 0 < hub.taken < self.warmup_steps and hub.shares.size:
            way, paces = hub.vectors.T @ metric.apply(hub.x - hub.before, 0.5), hub.values / bent.values
            turned = hub.vectors.T @ (gradient - before)
            hub = replace(hub, curved=shrinking.measure_bend(way, turned, hub.shares, noise, paces))
        damped = self._damping(facts, hub) * (hub.x - hub.origin)
        moved = hub.x - bent.apply(metric.apply(gradient, 0.5) + damped, -1.0)
        loss, way = facts.problem.loss, hub.x - hub.before
        is_real = loss.targets == "real"
        if is_real or loss.is_likelihood or not shrinking.leads_uphill(metric.apply(way, 0.5), gradient, noise):
            moved += hub.momentum * way
        early = (shrinking if is_real else self._levels(facts, hub)).skip_early(hub.steps)
        late = hub.taken >= max(early, self.warmup_steps) if self.averaging else hub.taken == hub.steps - 1
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

    def _label_momentum(self, facts: PublicFacts, hub: Hub) -> float:
        """Losses of labels flatten as models learn, those of rare ones most: steps go on where noise lets them."""
        if not hub.shares.size:
            return 0.0
        bent = self._bends(facts, hub)
        rates = self._later_curvature(facts, hub) * hub.shares / bent
        smooth, noise = facts.problem.loss.is_likelihood, self._noise(facts, hub) / bent
        return shrinking.choose_momentum(rates, hub.shares, noise, hub.steps, smooth=smooth)

    def _read_first_gradient(self, facts: PublicFacts, hub: Hub, gradient: Array, noise: float) -> tuple[float, float]:
        """The variance of scores that it speaks for, and how far it refutes that there is none."""
        outputs = facts.problem.outputs
        if self.counts and self.constant and facts.problem.loss.is_likelihood and not hub.x.any():
            scores = hub.origin[-outputs:] * self.constant
            gradient = label_levels.move_to_constant(gradient, hub.metric, scores, self.constant, hub.weight)
        seen = label_levels.visible_share(hub.metric, facts.problem.features)
        # At the constant model of a rare label the loss bends less than it will.
        curvature = self._later_curvature(facts, hub) * self._measure_flatness(facts, hub)
        read = gradient, noise, curvature, facts.problem.loss, seen
        return label_levels.estimate_variance(*read), label_levels.refute_nothing(*read)

    def findings(self, facts: PublicFacts, hub: Hub) -> Mapping[str, float]:
        """Where residuals were clipped in the end, in the units of the targets."""
        if facts.problem.loss.targets != "real" or self.smoothing:
            return {}
        return {RESIDUAL_CLIP: hub.width * slope_limit(facts.problem)}

    def finished(self, facts: PublicFacts, hub: Hub) -> bool:
        """All steps were taken, and the length is known."""
        return hub.taken > 0 and hub.taken >= hub.steps and (hub.length >= 0 or not self.lengths)

    def evidence(self, facts: PublicFacts, hub: Hub) -> Evidence | None:
        """What standard errors are made of; None where no second moment was released, or kinks were smoothed."""
        if not hub.averaged or not hub.moments.size or self.smoothing:
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
            moments=MomentEvidence(
                **dict(zip(MomentEvidence.__dataclass_fields__, map(float, hub.moments), strict=True))
            ),
            spread=hub.spread * unit if real and hub.spread < 1 else 0.0,
            unit=unit,
            origin=hub.origin,
            sizes=hub.sizes,
            met=hub.met,
        )
