"""Gossip in a metric that the nodes release once and share: proximal gradient tracking on a graph.

    round 0:            node i releases S_i = scale_i * sum over its records of a a' + noise, and says it
    `mixing` rounds:    S_i <- sum_j a_ij S_j                                    nothing is released
    then Q_i =          max(S_i, 0) + floor,     C_i = clip * typical length of a row in Q_i
    a step:             g_i = noisy sum of phi'(<a, w_i>) * shortened(Q_i^(-1/2) a, C_i)
                        G_i = scale_i Q_i^(1/2) g_i
                        y_i <- y_i + G_i - the last G_i                          y_i follows the mean of the gradients
                        w_i <- prox of weight r in the metric M_i at w_i - M_i^-1 y_i,    M_i = curvature / step * Q_i
                        and says w_i and y_i;  then  w_i, y_i <- sum_j a_ij (w_j, y_j)
    released:           the average of the late w_i

a_ij are Metropolis weights. Tracking (Di Lorenzo and Scutari 2016) is what lets every node have a metric of its own:
where the w_i agree and the y_i have the mean gradient, each prox stands still at the minimiser, whatever its metric.
Without it different metrics would weigh the nodes' gradients differently. Noise of a step is averaged over the graph
before it moves a model.

The second moment costs one release of a node, and mixing it costs nothing: all that a node says was computed from noisy
values (docs/privacy.md#preconditioned-gossip). Where sums on a graph are possible they are better: there the noise of
all nodes is that of one. This is for graphs on which no tree is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.dp_sgd import check_averaging
from consenso.algorithms.networked import running_average
from consenso.algorithms.preconditioning import noise_levels, whitening
from consenso.algorithms.preconditioning.whitening import Slopes, gradient_release, moment_release
from consenso.algorithms.shape import (
    PENALTIES,
    RING_WITH_CHORD,
    Example,
    Heard,
    Source,
    per_row,
    require_positive,
    small_problem,
)
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import require_lipschitz, require_smooth
from consenso.metric import Metric, estimate_metric, pack_symmetric, unpack_symmetric
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser, declare_public, postprocess
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, NoPenalty
from consenso.shards import Cohort
from consenso.topology import Topology

MOMENT, GRADIENT = "second moment", "gradient"


@dataclass(frozen=True)
class State:
    """What a node keeps. But for the factors of its rows, which stay with them, functions of what was released."""

    moment: Array  # packed: what it released, mixed with the others'
    vectors: Array  # of its metric, (parties, features, features)
    values: Array
    effective: Array  # mean squared length of a row in it, (parties,)
    w: Array  # mixed
    tracker: Array  # mixed
    gradient: Array  # its own last one
    model: Array
    factors: Array = per_row()  # by which each whitened row is shortened to length 1


@dataclass(frozen=True)
class Message:
    """What a node says: its second moment, or its iterate and its tracker."""

    said: Released


@dataclass(frozen=True)
class _Factors:
    """Rows in the metric of their node, for `whitening.sum_gradients`."""

    of_rows: Array
    clip: float = 1.0

    def factors(self, rows: Cohort) -> Array:
        return self.of_rows


@dataclass(frozen=True, kw_only=True)
class PreconditionedGossip:
    """Proximal gradient tracking in a shared metric, for losses with bounded slopes and curvature.

    steps: rounds with a gradient, for which the share is reckoned. mixing: rounds in which second moments are averaged;
    `rounds_to_mix` knows how many a graph needs. share: part of the squared budget that buys the second moment. step:
    relative to the inverse curvature. clip: of rows, in typical lengths. averaging: share of the last rounds whose
    iterates are averaged. averages: how many nodes' noises mixing averages, None for half of all.
    rounds of the plan: 1 + mixing + steps (`rounds`).
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="", algorithm="preconditioned gradient tracking", names=("preconditioned gossip",)),
    )

    steps: int = 30
    mixing: int = 20
    share: float = 0.1
    step: float = 0.5
    clip: float = 1.0
    averaging: float = 0.3
    averages: float | None = None

    def __post_init__(self) -> None:
        require_positive(self, step=self.step, clip=self.clip, averages=self.averages or 1.0)
        check_averaging(self, self.averaging)
        if self.steps < 1 or self.mixing < 0:
            raise InputError(
                f"PreconditionedGossip(steps={self.steps}, mixing={self.mixing}): at least one step, no fewer than 0 "
                "rounds of mixing."
            )
        if not 0 < self.share < 1:
            raise InputError(f"PreconditionedGossip(share={self.share}): a share of the budget lies in (0, 1).")

    @property
    def rounds(self) -> int:
        """How many rounds a plan needs."""
        return 1 + self.mixing + self.steps

    def for_rounds(self, rounds: int) -> PreconditionedGossip:
        """The same with as many steps as a stated number of rounds leaves."""
        return replace(self, steps=max(1, rounds - 1 - self.mixing), mixing=min(self.mixing, max(0, rounds - 2)))

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """The multiplier of the second moment relative to that of each gradient."""
        return {MOMENT: math.sqrt((1 - self.share) / (self.share * self.steps)), GRADIENT: 1.0}

    def check(self, spec: RunSpec) -> None:
        """Bounded slopes, a step size from the smoothness, a round that takes a step."""
        problem = spec.facts.problem
        require_lipschitz(problem.loss, problem.row_bound, "PreconditionedGossip")
        require_smooth(problem.loss, problem.row_bound, "PreconditionedGossip")
        if spec.rounds < 2 + self.mixing:
            raise InputError(
                f"PreconditionedGossip(rounds={spec.rounds}): one round for the second moment, {self.mixing} to "
                f"mix it and one for a step are needed, {2 + self.mixing} at least."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """A second moment, then nothing for a while, then a gradient a round."""
        if facts.is_before(1):
            return (replace(moment_release(facts, several=False), at="party"),)
        if facts.is_before(1 + self.mixing):
            return ()
        return (replace(gradient_release(facts), at="party", adaptive=False, parts=False),)

    def enroll(self, facts: PublicFacts, f: Cohort) -> State:
        """Everything at zero; all directions are alike."""
        parties, p = len(facts.cohort), facts.problem.features
        zero = np.zeros((parties, facts.dim))
        return State(
            moment=np.zeros((parties, p * (p + 1) // 2)),
            vectors=np.zeros((parties, p, p)),
            values=np.ones((parties, p)),
            effective=np.ones(parties),
            w=zero,
            tracker=zero,
            gradient=zero,
            model=zero,
            factors=np.zeros(f.rows),
        )

    def local(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> tuple[State, Message]:
        """A second moment, what is known of it, or a step."""
        if facts.is_before(1):
            moment = release(MOMENT, pack_symmetric(whitening.sum_moments(f)))
            mean = postprocess(facts.scales[:, None] * moment, moment)
            return replace(state, moment=mean), Message(said=mean)
        if facts.is_before(1 + self.mixing):
            return state, Message(said=declare_public(state.moment))
        if facts.is_before(2 + self.mixing):
            state = self._shorten_rows(self._read_metric(facts, state), f)
        pulled = whitening.sum_gradients(f, state.w, Slopes(0.0, 1.0), _Factors(state.factors))
        noisy = release(GRADIENT, _apply(state, pulled, -0.5))
        gradient = (facts.scales * self._clip(state))[:, None] * _apply(state, noisy, 0.5)
        tracker = state.tracker + gradient - state.gradient
        w = self._prox(facts, state, tracker)
        said = postprocess(np.concatenate([w, tracker], axis=1), noisy)
        return replace(state, gradient=gradient), Message(said=said)

    def absorb(self, facts: PublicFacts, state: State, heard: Heard) -> State:
        """Mix what was said."""
        mixed = heard.mix("said")
        if facts.is_before(1 + self.mixing):
            return replace(state, moment=mixed)
        w, tracker = mixed[:, : facts.dim], mixed[:, facts.dim :]
        return replace(state, w=w, tracker=tracker, model=running_average(facts, self.averaging, state.model, w))

    def models(self, facts: PublicFacts, state: State) -> Array:
        """Each node's average of its late iterates."""
        return state.model

    def _read_metric(self, facts: PublicFacts, state: State) -> State:
        """The metric of each node, lifted by what noise hides after it was averaged over the graph."""
        problem = facts.problem
        noise = facts.noise[MOMENT] * float(problem.scales.max()) / math.sqrt(self.averages or problem.parties / 2)
        least = whitening.LEAST * problem.row_bound**2
        found = [
            estimate_metric(moment, noise, noise_levels.NoiseLevels.floor, least)
            for moment in unpack_symmetric(state.moment, problem.features)
        ]
        metrics = [whitening.within_bounds(facts, each.metric) for each in found]
        return replace(
            state,
            vectors=np.stack([metric.vectors for metric in metrics]),
            values=np.stack([metric.values for metric in metrics]),
            effective=np.array([each.effective for each in found]),
        )

    def _shorten_rows(self, state: State, f: Cohort) -> State:
        roots = np.stack([metric.power(-0.5) for metric in _metrics(state)])
        clips = f.repeat_per_row(self._clip(state))
        squared = f.transformed_squared_norms(roots)
        return replace(state, factors=whitening.shorten_whitened(squared, clips, f.problem.features) / clips)

    def _clip(self, state: State) -> Array:
        return np.maximum(1.0, self.clip * np.sqrt(state.effective))

    def _prox(self, facts: PublicFacts, state: State, tracker: Array) -> Array:
        problem = facts.problem
        clip, damping = self._clip(state), self._damping(facts, state)
        # Rows that are shortened count less, and so must the regularizer.
        weights = np.minimum(1.0, clip / np.sqrt(state.effective))
        bend = problem.loss.curvature_bound / self.step * weights
        bent = replace(state, values=bend[:, None] * state.values + damping[:, None])
        points = state.w - _apply(bent, tracker + damping[:, None] * state.w, -1.0)
        if isinstance(problem.regularizer, NoPenalty):
            return points
        each = zip(_metrics(bent), points, weights, strict=True)
        return np.stack([metric.prox(problem.regularizer, point, float(weight)) for metric, point, weight in each])

    def _damping(self, facts: PublicFacts, state: State) -> Array:
        """The weight of a prior under which scores are as large as is called for, beside the mean gradient's noise."""
        loss, steps = facts.problem.loss, facts.rounds - 1 - self.mixing
        noises = facts.noise[GRADIENT] * facts.scales * self._clip(state) / math.sqrt(facts.problem.parties * steps)
        curvature = noise_levels.late_curvature(loss) * loss.curvature_bound
        variances = noise_levels.LARGEST_SCORE**2 / state.values.sum(axis=1)
        each = zip(noises.tolist(), variances.tolist(), strict=True)
        return np.array([noise_levels.damping(noise, curvature, variance) for noise, variance in each])

    @classmethod
    def example(cls) -> Example:
        """Six nodes of five records on a ring with a chord, logistic loss."""
        noise = {MOMENT: GaussianNoise(multiplier=2.0), GRADIENT: GaussianNoise(multiplier=1.0)}
        return Example(
            algorithm=cls(steps=6, mixing=1),
            problem=small_problem(L2(strength=0.1)),
            noise=noise,
            topology=RING_WITH_CHORD,
            exact=cls(steps=400, clip=1e6, averaging=0.0),
            exact_rounds=421,
            regularizers=PENALTIES,
        ).vary(
            {"steps": 7, "mixing": 0, "share": 0.3, "step": 0.8, "clip": 2.0, "averaging": 0.0, "averages": 4.0},
        )


def rounds_to_mix(topology: Topology) -> int:
    """Rounds after which what the nodes have averaged has at most twice the variance of the mean of all.

    With second eigenvalue s of the Metropolis weights the excess is s^(2 rounds), and it is to be 1 / parties.
    """
    second = 1.0 - topology.spectral_gap
    if second <= 0:
        return 1
    return max(1, math.ceil(math.log(topology.parties) / (-2 * math.log(min(second, 1 - 1e-12)))))


def _metrics(state: State) -> list[Metric]:
    return [Metric(vectors, values) for vectors, values in zip(state.vectors, state.values, strict=True)]


def _apply(state: State, x: Array, power: float) -> Array:
    """The metric of each node to a power, times its vector (parties, features * outputs)."""
    tables = x.reshape(len(x), state.values.shape[1], -1)
    turned = np.swapaxes(state.vectors, 1, 2) @ tables
    product: Array = state.vectors @ (state.values[:, :, None] ** power * turned)
    return product.reshape(x.shape)
