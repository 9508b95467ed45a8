"""What the hub of DualAveraging makes of its gradients: rates, sums, what is noise or chance, and the length.

All of it is post-processing; rows are never seen here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from consenso.algorithms.averaging import constant_part, scale_mixture, score_counts
from consenso.algorithms.averaging.columns import AveragedColumns, free_columns, square_of
from consenso.algorithms.averaging.directions import PASSES
from consenso.algorithms.averaging.hub import Hub
from consenso.algorithms.averaging.sampling_chance import SlopeLaw, find_chance_share
from consenso.algorithms.preconditioning import length_laws, noise_levels
from consenso.arrays import Array
from consenso.metric import prox_in_diagonal
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, ElasticNet, Regularizer, Unpenalized

# How far noise may move a coefficient of a row at its bound, in units in which scores matter.
REACH = 2.0
# Noise in a model of labels may move it further where most of what it moves is taken off again, so that no more than
# KEPT_REACH is left on average, up to FURTHER times as far.
KEPT_REACH, FURTHER = 1.0, 2.0
# The constant part of a model of labels follows its last gradients alone, and noise in it moves every score. Where it
# would move by more than STILL in a whole step by noise, steps are shorter, down to this part of the inverse curvature:
# they have a quarter of the variance then, and still forget narrow slopes within the last part.
FREE_STEP, STILL = 0.4, 0.1
# Strong directions are taken in steps of this part of the inverse curvature: noise has turned them a little, and what
# lies across them is not quite apart. Steps across are no longer than what was left there of the strongest allows.
APART = 0.5


@dataclass(frozen=True, kw_only=True)
class AveragedSteps(AveragedColumns):
    """The rules of the steps, and of what is made of their sum."""

    def _noise(self, facts: PublicFacts, hub: Hub) -> Array:
        """Of the mean gradient of this step in the units of the columns, wide."""
        level = self._pass_level(facts) if self._kind(facts) == "range" else self._step_level(facts)
        width = 1.0 if self.smoothing else hub.width
        noise = level * hub.clip * width / facts.problem.records
        return hub.centring.widen_noise(noise, facts.problem.features, facts.problem.outputs)

    def _step_level(self, facts: PublicFacts) -> float:
        """The noise of a step, for a clip and a width of 1."""
        return facts.noise.get("gradient", 0.0) * math.sqrt(self._steps(facts))

    def _pass_level(self, facts: PublicFacts) -> float:
        """That of a step in the round of a pass."""
        return facts.noise.get("range", 0.0) * noise_levels.slope_limit(facts.problem) * math.sqrt(PASSES)

    def _weigh_pass(self, facts: PublicFacts) -> float:
        """How many steps one in the round of a pass is worth, which has more of the budget."""
        quiet = self._pass_level(facts)
        return (self._step_level(facts) / quiet) ** 2 if quiet else 1.0

    def _rates(self, facts: PublicFacts, hub: Hub) -> Array:
        """Step sizes, wide."""
        problem, outputs, curvature = facts.problem, facts.problem.outputs, self._curvature(facts, hub)
        bend = curvature * hub.variances
        if hub.directions.size:
            bend = bend + float(square_of(problem) or 0.0)
        rates = np.repeat(hub.step / (hub.weight * bend), outputs)
        noise, early = self._noise(facts, hub), self._early_steps(facts, hub)
        pass_, is_pass = self._weigh_pass(facts) if early else 1.0, self._kind(facts) == "range"
        rest = facts.dim - free_columns(problem) * outputs
        if outputs > 1:
            # Of a class that is as likely as not the loss bends by more than of one among many.
            rates[rest : facts.dim] *= min(1.0, curvature / constant_part.LIKELY)
        if problem.loss.targets != "real" and noise.any():
            moved = self.constant * (rates * noise)[rest : facts.dim]
            rates[rest : facts.dim] *= np.clip(np.square(STILL / np.maximum(moved, STILL)), FREE_STEP, 1.0)
        if noise.any():
            # Of the sum of all gradients, in which those of passes weigh as much as their budget.
            spread = noise * math.sqrt((self._steps(facts) + early * pass_) * (pass_ if is_pass else 1.0))
            longest = hub.step * self._reach_of_noise(facts, hub) / spread[:rest] * (pass_ if is_pass else 1.0)
            rates[:rest] = np.minimum(rates[:rest], longest)
            if self.constant and rest < facts.dim:
                part = slice(rest, facts.dim)
                far = self._unit(facts, hub) / self.constant
                most = constant_part.hold(
                    far, noise[part], spread[part] / hub.step, self._bends_constant(facts, hub), problem.loss
                )
                rates[part] = np.minimum(rates[part], most)
        if hub.directions.size:
            if hub.astray:
                most = hub.step * APART / (curvature * hub.weight * hub.astray) * np.square(hub.scales)
                rates[:rest] = np.minimum(rates[:rest], np.repeat(most, outputs)[:rest])
            rates[facts.dim :] *= APART * np.repeat(hub.shrinks < 1, outputs)
        return rates

    def _bends_constant(self, facts: PublicFacts, hub: Hub) -> float:
        """How much the loss bends along the constant part, at equal scores."""
        return float(hub.weight * self._curvature(facts, hub) * hub.variances[facts.problem.features - 1])

    def _reach_of_noise(self, facts: PublicFacts, hub: Hub) -> float:
        """How far noise may move a coefficient of a row at its bound."""
        far = REACH
        if facts.problem.loss.is_likelihood:
            kept = np.clip(np.mean(hub.kept[: facts.dim]), KEPT_REACH / (FURTHER * REACH), KEPT_REACH / REACH)
            far = KEPT_REACH / float(kept)
        return far * self._unit(facts, hub) / facts.problem.row_bound

    def _unit(self, facts: PublicFacts, hub: Hub) -> float:
        """In which scores matter: 1 for labels, the spread of real targets as far as it is known."""
        bound = facts.problem.target_bound
        if bound is None:
            return 1.0
        known = hub.spread * (self.smoothing or noise_levels.slope_limit(facts.problem))
        return known or noise_levels.RESIDUAL * bound

    def _take_step(self, facts: PublicFacts, hub: Hub, gradient: Array) -> Hub:
        noise, rates = self._noise(facts, hub), self._rates(facts, hub)
        gradient = hub.centring.widen(gradient)
        if hub.directions.size:
            gradient = gradient + hub.weight * self._pull(facts, hub)
        # In the coordinates in which all steps are equal.
        root = np.sqrt(rates)
        loudest = float(np.sqrt(np.mean(rates * np.square(noise))))
        step = noise_levels.shorter(hub.step, gradient * root, hub.gradient * root, loudest)
        shrunk = step / hub.step
        u = hub.u * shrunk - shrunk * rates * gradient
        variance = shrunk**2 * (hub.variance + np.square(rates * noise))
        chance = shrunk * self._add_chance(facts, hub, rates)
        if not hub.directions.size:
            u = prox_in_diagonal(facts.problem.regularizer, u, shrunk * rates * hub.weight)
        hub = replace(hub, step=step, taken=hub.taken + 1, gradient=gradient, u=u, variance=variance, chance=chance)
        return replace(hub, width=self._width(facts, hub), kept=self._measure_kept(facts, hub))

    def _origin(self, facts: PublicFacts, hub: Hub) -> Array:
        """The constant part of the model, around which its length is measured."""
        origin, rest = np.zeros(facts.dim), facts.dim - free_columns(facts.problem) * facts.problem.outputs
        origin[rest:] = (hub.u * hub.kept)[rest : facts.dim]
        return origin

    def _length_noise(self, facts: PublicFacts) -> float:
        """Of a mean slope along the model, for a reach of 1."""
        return facts.noise.get("length", 0.0) / facts.problem.records

    def _reach(self, facts: PublicFacts, hub: Hub) -> float:
        """How far a record's slopes along the model may reach."""
        limit = noise_levels.slope_limit(facts.problem)
        return length_laws.choose_reach(self._length_noise(facts), self._measure_scores(facts, hub), limit)

    def _measure_scores(self, facts: PublicFacts, hub: Hub) -> float:
        """The size of what the model adds to a score, by released squares."""
        outputs = facts.problem.outputs
        learnt = self._keep(facts, hub)
        learnt[facts.dim - free_columns(facts.problem) * outputs : facts.dim] = 0.0
        square = float(np.repeat(hub.likely, outputs) @ np.square(learnt))
        return math.sqrt(max(square / max(outputs - 1, 1), length_laws.EXACT**2))

    def _take_length(self, facts: PublicFacts, hub: Hub, slopes: Array) -> Hub:
        """The length of the least expected loss and penalty."""
        problem, origin, reach = facts.problem, self._origin(facts, hub), self._reach(facts, hub)
        learnt = self._leave_out(facts, hub) - origin

        def penalty(scales: Array) -> Array:
            return np.array([problem.regularizer.value(origin + scale * learnt) for scale in scales])

        known = length_laws.Lengths(
            loss=problem.loss,
            size=self._measure_scores(facts, hub),
            constant=origin[facts.dim - problem.outputs :] * self.constant,
            lengths=np.ones(1),
            weights=np.ones(1),
            longest=length_laws.longest_scores(reach, problem.loss),
        )
        slopes = slopes + self._measure_optimism(facts, hub)
        return replace(hub, factor=known.choose(slopes, reach * self._length_noise(facts), penalty))

    def _take_scores(self, facts: PublicFacts, hub: Hub, counts: Array) -> Hub:
        """The length and the constant part that are expected of records counted by score and label."""
        last, is_free = facts.dim - 1, bool(self.constant and free_columns(facts.problem))
        found = score_counts.calibrate(
            counts,
            facts.noise.get("length", 0.0),
            facts.problem.records,
            constant=self.constant * float(hub.u[last]) if is_free else 0.0,
            own=self._measure_own(facts, hub),
            width=self._width(facts, replace(hub, taken=0)),  # of all steps but the last
            is_free=is_free,
        )
        u = hub.u.copy()
        if is_free:
            u[last] += found.added / self.constant
        return replace(hub, factor=found.factor, u=u)

    def _measure_own(self, facts: PublicFacts, hub: Hub) -> float:
        """By how much a record's own slopes, of their usual size, have moved its own score.

        They have moved it as chance has, by what is kept of u times its squared entries over their number.
        """
        own = hub.kept * hub.chance * np.sqrt(np.repeat(hub.likely, facts.problem.outputs) / facts.problem.records)
        return float(own.sum())

    def _measure_optimism(self, facts: PublicFacts, hub: Hub) -> float:
        """By how much the records that were learnt from speak for a longer model than others would, on average.

        In most steps slopes were narrow and all of one size: what they have in common with that of the model is its
        mean size.
        """
        return self._measure_own(facts, hub) * self._expect_slopes(facts, hub).size

    def _pull(self, facts: PublicFacts, hub: Hub) -> Array:
        """The slope of the square in a wide model."""
        problem = facts.problem
        slope = float(square_of(problem) or 0.0) * self._leave_out(facts, hub)
        slope[facts.dim - free_columns(problem) * problem.outputs :] = 0.0
        return hub.centring.pull_back(slope)

    def _add_chance(self, facts: PublicFacts, hub: Hub, rates: Array) -> Array:
        """By how much u differs by chance after a step, wide.

        All steps hear the same records, so that chance adds up as what is true does. What the model has of it is heard
        in the gradient, and adds up no more; of a column of which nothing is kept all of it does.
        """
        law, squares = self._expect_slopes(facts, hub), np.repeat(hub.likely, facts.problem.outputs)
        moves = law.deviation * np.sqrt(squares / facts.problem.records) - hub.kept * law.heard * squares * hub.chance
        return np.maximum(hub.chance + hub.weight * rates * moves, 0.0)

    def _expect_slopes(self, facts: PublicFacts, hub: Hub) -> SlopeLaw:
        problem, curvature = facts.problem, self._curvature(facts, hub)
        if problem.loss.targets == "real" or self.smoothing:
            return SlopeLaw(deviation=0.0, size=0.0, heard=curvature)  # how much they differ is not known
        if problem.outputs > 1:
            deviation = min(math.sqrt(curvature), hub.width)
            return SlopeLaw(deviation=deviation, size=deviation, heard=curvature)
        constant = self.constant * float(hub.u[facts.dim - 1]) if free_columns(problem) else 0.0
        return SlopeLaw.of_labels(constant, self._measure_scores(facts, hub), hub.width)

    def _measure_kept(self, facts: PublicFacts, hub: Hub) -> Array:
        """The part of u that is no noise, wide."""
        problem = facts.problem
        rest = facts.dim - free_columns(problem) * problem.outputs
        moved, kept = np.sqrt(hub.variance), np.ones_like(hub.u)
        columns = np.flatnonzero(moved[:rest])
        variance, chance = hub.variance[columns], np.square(hub.chance[columns])
        chance = chance * find_chance_share(hub.u[columns], variance, chance)
        kept[columns] = scale_mixture.find_kept(hub.u[columns] / np.sqrt(variance + chance))
        is_last = hub.taken >= self._steps(facts) + self._early_steps(facts, hub)
        if is_last and problem.outputs > 1 and self.constant and rest < facts.dim:
            # Not before: steps would go on until what is kept of it is what they are after.
            part = slice(rest, facts.dim)
            rates, noise = (each(facts, hub)[part] for each in (self._rates, self._noise))
            wandered = constant_part.wander(rates, noise, hub.variance[part], self._bends_constant(facts, hub))
            kept[part] = constant_part.keep(hub.u[part], wandered)
        along = np.abs(hub.u[facts.dim :])
        kept[facts.dim :] = np.maximum(along - moved[facts.dim :], 0.0) / np.maximum(along, np.finfo(float).tiny)
        if _asks_for_zeros(problem.regularizer):
            # What is left stands out of all columns: noise alone leaves one of them, on average.
            kept[:rest][np.abs(hub.u[:rest]) < float(-ndtri(0.5 / facts.dim)) * moved[:rest]] = 0.0
        return kept

    def _keep(self, facts: PublicFacts, hub: Hub) -> Array:
        """What of u is no noise, as long as it should be, wide."""
        w: Array = hub.u * hub.kept
        w[: facts.dim - free_columns(facts.problem) * facts.problem.outputs] *= hub.factor
        w[facts.dim :] *= hub.factor
        return w

    def _leave_out(self, facts: PublicFacts, hub: Hub) -> Array:
        """The model, without what noise alone may have moved."""
        problem = facts.problem
        if not hub.taken:
            return hub.u[: facts.dim]
        w = self._keep(facts, hub)
        if problem.regularizer.is_constraint:
            w = problem.regularizer.prox(w, 0.0)
        return hub.centring.model(w, problem.features)


def counts_scores(problem: Problem) -> bool:
    """Whether the length of a model is told by counts of scores: that of two labels."""
    return problem.loss.targets == "sign"


def _asks_for_zeros(regularizer: Regularizer) -> bool:
    inner = regularizer.inner if isinstance(regularizer, Unpenalized) else regularizer
    return isinstance(inner, L1) or (isinstance(inner, ElasticNet) and inner.l1 > 0)
