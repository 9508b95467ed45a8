"""Objective perturbation, released once by a trusted curator (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and
Thakurta 2012; accounted as Redberg, Koskela and Wang 2023).

    J(w)     = sum over records of phi(<a, w>, b) + (quadratic/2) |w|^2 + <noise, w> + n r(w),     noise ~ N(0, s^2 I)
    w        = argmin J, certified to |w - w*| <= tolerance
    released:  w + output noise

    symbol   code                      what it is
    s        noise of "objective"      a multiple of L, the Lipschitz constant of one record's loss
    Lam      convexity(problem)        quadratic + n times the squared part of r; above B, the smoothness of one loss
    tau      Lam * tolerance           how steep J may still be where the solver stops
    s_o      noise of "output"         a multiple of 2 tolerance, by which two worlds' minimisers may be off
    n        problem.records           public: the regularizer counts once per declared record

The noise does not sit on what leaves, so composing Gaussian releases says nothing about it: the guarantee is a theorem
of its own, for one record of a scalar margin that is added or removed. Adding a record adds a matrix of rank one to the
Hessian, which is why softmax is refused. The output noise makes an inexact minimiser safe, and so the discrete noise of
a deployed run, which lies off continuous noise by a known distance. The rule for (s, Lam) uses public facts only: the
smallest Lam whose s is at most 1.3 times what the Gaussian mechanism would need at the same (epsilon, delta).

Without a regularizer other than a square, J is a quadratic around -noise/Lam plus the curator's objective, and its
minimiser one certified prox. Otherwise accelerated proximal gradients find it, with a subgradient of J as certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from consenso.algorithms.gradient_admm import split_squared_term
from consenso.algorithms.record_sums import Forgetful
from consenso.algorithms.shape import PENALTIES, Example, Source, require_positive, small_problem
from consenso.arrays import Array
from consenso.errors import InputError, PreconditionError, StepError
from consenso.losses import require_lipschitz, require_smooth
from consenso.privacy import events
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, gaussian_draws
from consenso.privacy.theorems import Theorem
from consenso.privacy.theorems.curator import PerturbedObjective
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, NoPenalty, Regularizer
from consenso.schedules import Everyone
from consenso.shards import Cohort
from consenso.subproblems import Worst, certify
from consenso.subproblems.batch import ROUNDING

# The certificate leaves this much of the tolerance for what is rounded before and after the solver.
SHARE = 0.9
STEPS, EVERY = 200_000, 20
# Noise is longer than the root of its dimension and so many standard deviations with a probability below 1e-31; the
# rule, which knows noise before it is calibrated, takes it for a tenth more.
FARTHEST, ROOM = 12.0, 1.1


@dataclass(frozen=True)
class Hub:
    """The model, a number for each coefficient."""

    w: Array


@dataclass(frozen=True)
class Down:
    """Nothing: the curator is not told anything."""


@dataclass(frozen=True)
class Up:
    """The minimiser of the perturbed objective."""

    w: Released


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """Gaussian objective perturbation of a smooth loss of a scalar margin; `rule` chooses `quadratic` for a budget.

    quadratic: strong convexity that is added to the sum of losses, beyond the square of the problem's regularizer.
    tolerance: distance to the exact minimiser that the solver certifies; the output noise is scaled with it.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="", algorithm="", names=("objective perturbation", "Gaussian objective perturbation", "ObjPert")),
    )

    quadratic: float = 0.0
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        require_positive(self, tolerance=self.tolerance)
        if not 0 <= self.quadratic < math.inf:
            raise InputError(f"ObjectivePerturbation(quadratic={self.quadratic}): it is finite and at least 0.")

    @classmethod
    def rule(cls, problem: Problem, *, epsilon: float, delta: float, excess: float = 1.3) -> ObjectivePerturbation:
        """The smallest quadratic with which `excess` times the noise of the Gaussian mechanism is enough.

        A larger one needs less noise and biases the model more. Only public facts are used; plan with the same target
        to get the noise.
        """
        from scipy.optimize import brentq

        from consenso.privacy.accountants import epsilon as cost
        from consenso.privacy.calibrate import EpsilonDelta, calibrate_noise

        if not excess > 1:
            raise InputError(f"ObjectivePerturbation.rule(excess={excess}): noise is compared with a factor above 1.")
        target = EpsilonDelta(epsilon=epsilon, delta=delta)
        ratio = 1 / (excess * calibrate_noise(lambda multiplier: events.Gaussian(multiplier, 1.0), target))
        smoothness = require_smooth(problem.loss, problem.row_bound, "ObjectivePerturbation")

        def over(log_share: float) -> float:
            return cost(events.ObjectivePerturbation(ratio, math.exp(log_share)), delta) - epsilon

        least, most = math.log(1e-12), math.log1p(-1e-12)
        if over(least) > 0:
            raise InputError(
                f"ObjectivePerturbation.rule(epsilon={epsilon}, delta={delta}, excess={excess}): no quadratic is large "
                "enough; allow more noise with a larger excess."
            )
        share = math.exp(brentq(over, least, most, xtol=1e-12) - 1e-9)
        algorithm = cls()
        algorithm = replace(algorithm, quadratic=max(0.0, smoothness / share - algorithm.convexity(problem)))
        longest = ROOM * _longest(problem, problem.loss.lipschitz(problem.row_bound) / ratio)
        return replace(algorithm, tolerance=max(algorithm.tolerance, algorithm.least_tolerance(problem, longest)))

    @property
    def noise_weights(self) -> Mapping[str, float]:
        """The output noise is almost free: a thousand times its sensitivity is nothing beside what it must hide."""
        return {"objective": 1.0, "output": 1000.0}

    def convexity(self, problem: Problem) -> float:
        """Strong convexity of J."""
        return self.quadratic + problem.records * split_squared_term(problem.regularizer)[0]

    def least_tolerance(self, problem: Problem, linear: float) -> float:
        """Where rounding can keep no step from its end, whatever the rows (docs/privacy.md#objective-perturbation).

        Below it rows would decide whether the minimiser is certified, and a step that is not answers for all of them.
        linear: the length of the noise.
        """
        convexity = self.convexity(problem)
        rest, loss, bound = split_squared_term(problem.regularizer)[1], problem.loss, problem.row_bound
        if isinstance(rest, NoPenalty):
            worst = Worst(
                length=np.array([linear / convexity]),
                weights=np.array([1 / convexity]),
                sizes=problem.row_caps,
                loss=loss,
                row_bound=bound,
                target_bound=problem.target_bound,
            )
            return 2 * float(worst.hide_by_rounding()[0]) / SHARE
        # At its minimiser J is no larger than where the regularizer is least, and losses are not negative.
        near = float(np.linalg.norm(rest.prox(np.zeros(problem.dim), 1.0)))
        ends = float(problem.target_bound or 1.0) * np.array([-1.0, 1.0])
        slope, value = loss.lipschitz(bound), float(np.max(loss.value(np.zeros(2), ends)))
        more = problem.row_cap * (value + slope * near) + (convexity * near / 2 + linear) * near
        length = (linear + math.sqrt(linear**2 + 2 * convexity * more)) / convexity
        pulled = problem.row_cap * (slope + loss.curvature_bound * bound**2 * length)
        return 2 * _hide_in_subgradient(problem.dim, pulled, convexity * length, linear) / convexity / SHARE

    def check(self, spec: RunSpec) -> None:
        """One curator, one record added or removed, a smooth loss of one margin, enough convexity."""
        problem = spec.facts.problem
        if spec.parties > 1:
            raise InputError(
                f"ObjectivePerturbation: one curator minimises over all data, and there are {spec.parties} parties; "
                "put their records into one, or use PreconditionedFixedPoint."
            )
        if spec.rounds != 1 or not isinstance(spec.schedule, Everyone):
            raise InputError(
                f"ObjectivePerturbation(rounds={spec.rounds}): the model is released once; plan rounds=1 with "
                "Everyone()."
            )
        if problem.unit != "record" or problem.adjacency != "add-remove":
            raise PreconditionError(
                f"ObjectivePerturbation(unit={problem.unit!r}, adjacency={problem.adjacency!r}): the bound is proved "
                "for one record that is added or removed; use unit='record' and adjacency='add-remove', or "
                "PreconditionedFixedPoint."
            )
        if problem.outputs > 1:
            raise PreconditionError(
                f"ObjectivePerturbation(loss={problem.loss!r}): one record's Hessian must have rank one, which a loss "
                "of several scores breaks; use PreconditionedFixedPoint."
            )
        require_lipschitz(problem.loss, problem.row_bound, "ObjectivePerturbation")
        smoothness = require_smooth(problem.loss, problem.row_bound, "ObjectivePerturbation")
        noisy = not isinstance(spec.noise_for("objective"), NoNoise)
        least = smoothness if noisy else 0.0
        if not self.convexity(problem) > least:
            raise PreconditionError(
                f"ObjectivePerturbation(quadratic={self.quadratic}): the convexity of the sum, "
                f"{self.convexity(problem):.6g}, must be above the smoothness of one record, {least:.6g}; raise it, or "
                "take ObjectivePerturbation.rule(problem, epsilon=..., delta=...)."
            )

        if noisy:
            std = float(np.max(spec.noise_for("objective").scale(problem.loss.lipschitz(problem.row_bound), 0)))
            self._require_tolerance(problem, _longest(problem, std))

    def _require_tolerance(self, problem: Problem, linear: float) -> None:
        """Refuse a tolerance that rows could keep a step from: a rule of noise of this length and of public facts."""
        least = self.least_tolerance(problem, linear)
        if not self.tolerance >= least:
            raise InputError(
                f"ObjectivePerturbation(tolerance={self.tolerance:g}): with so much noise, so many records and rows of "
                "such lengths rounding may keep the minimiser from being certified, and rows would decide whether it "
                f"does; allow {least:.3g}, which is charged, or take ObjectivePerturbation.rule."
            )

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """The linear term inside the minimisation, and the output."""
        off = 2 * self.tolerance
        return (
            Release(
                name="objective",
                size=facts.dim,
                perturbs_objective=True,
                bounds=Bounds(record_add_remove=facts.problem.loss.lipschitz(facts.problem.row_bound)),
                why="one record's gradient, against the random linear term (docs/privacy.md#objective-perturbation)",
            ),
            Release(
                name="output",
                size=facts.dim,
                bounds=Bounds(
                    record_add_remove=off, record_replace_one=off, party_add_remove=off, party_replace_one=off
                ),
                why="for the same exact minimiser two solvers are at most twice the tolerance apart "
                "(docs/privacy.md#objective-perturbation)",
            ),
        )

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """The only guarantee there is, for one record and whoever looks: the model is all that leaves."""
        if query.unit == "record":
            yield lambda: self._theorem(spec, query)

    def _theorem(self, spec: RunSpec, query: PrivacyQuery) -> Theorem:
        problem, sampler = spec.facts.problem, spec.sampler
        lipschitz, convexity = problem.loss.lipschitz(problem.row_bound), self.convexity(problem)
        std, output_std = (gaussian_draws(spec, self.releases, name).std for name in ("objective", "output"))
        off = 2 * self.tolerance
        return PerturbedObjective(
            lipschitz=lipschitz,
            smoothness=problem.loss.smoothness(problem.row_bound),
            strong_convexity=convexity,
            std=std,
            gradient_tolerance=convexity * (self.tolerance + sampler.widening(output_std, off, problem.dim, 2))
            + sampler.displacement(std, lipschitz, problem.dim),
            output_std=output_std,
            excess=sampler.excess(std, lipschitz, problem.dim, "gaussian")
            + sampler.excess(output_std, off, problem.dim, "gaussian"),
            outputs=problem.outputs,
            adjacency=query.adjacency,
            unit=query.unit,
        )

    def start(self, facts: PublicFacts) -> Hub:
        return Hub(w=np.zeros(facts.dim))

    def enroll(self, facts: PublicFacts, f: Cohort) -> Forgetful:
        return Forgetful()

    def down(self, facts: PublicFacts, hub: Hub) -> Down:
        return Down()

    def local(
        self, facts: PublicFacts, down: Down, state: Forgetful, f: Cohort, release: Releaser
    ) -> tuple[Forgetful, Up]:
        minimiser = release.perturb("objective", lambda noise: self._minimise(facts.problem, f, noise[0])[None])
        return state, Up(w=release("output", minimiser))

    def combine(self, facts: PublicFacts, hub: Hub, total: Up) -> Hub:
        """What the curator released."""
        return Hub(w=total.w)

    def model(self, facts: PublicFacts, hub: Hub) -> Array:
        return hub.w

    def _minimise(self, problem: Problem, f: Cohort, linear: Array) -> Array:
        if linear.any():  # a run without noise promises nothing
            self._require_tolerance(problem, float(np.linalg.norm(linear)))
        rest, convexity = split_squared_term(problem.regularizer)[1], self.convexity(problem)
        if isinstance(rest, NoPenalty):
            step, tolerance = 1 / (float(f.scales[0]) * convexity), SHARE * self.tolerance
            found: Array = certify(f.prox((-linear / convexity)[None], step, tolerance), tolerance, type(self).__name__)
            minimiser: Array = found[0]
            return minimiser
        return _Composite(f, linear, convexity, rest, problem.records).minimiser(SHARE * self.tolerance)

    @classmethod
    def example(cls) -> Example:
        """Thirty records of one curator, logistic loss."""
        return Example(
            algorithm=cls(quadratic=2.0),
            problem=small_problem(L2(strength=0.1), sizes=np.array([30]), adjacency="add-remove"),
            noise={"objective": GaussianNoise(multiplier=2.0), "output": GaussianNoise(multiplier=1000.0)},
            rounds=1,
            trusts=("curator", "local"),
            exact=cls(quadratic=1e-4, tolerance=1e-5),
            exact_rounds=1,
            regularizers=PENALTIES,
        ).vary(
            {"quadratic": 10.0, "tolerance": 1e-7},
        )


def _longest(problem: Problem, std: float) -> float:
    """Longer noise of this standard deviation is not to be expected."""
    return std * (math.sqrt(problem.dim) + FARTHEST)


@dataclass(frozen=True, eq=False)
class _Composite:
    """J with a regularizer whose prox is needed: h(w) = sum of losses + square + linear term, and n r(w)."""

    f: Cohort
    linear: Array
    convexity: float
    regularizer: Regularizer
    records: int

    def gradient(self, w: Array) -> Array:
        """The gradient of h."""
        total: Array = self.f.gradient(w)[0] / self.f.scales[0] + self.convexity * w + self.linear
        return total

    def minimiser(self, tolerance: float) -> Array:
        """The last point of accelerated proximal gradients, restarted whenever they turn back.

        That is fast, and not proved: the second half of the steps, if it comes to them, has the momentum with which
        every step makes the distance shorter by a factor of 1 - sqrt(convexity / smoothness), as Nesterov has shown.
        A step from y to w has the subgradient (y - w) smoothness - grad h(y) + grad h(w) of J at w, and J is strongly
        convex: w is at most its length over the convexity away from the minimiser.
        """
        smoothness = self.convexity + self.f.problem.loss.curvature_bound * float(self.f.squared_norms.sum())
        root = math.sqrt(self.convexity / smoothness)
        w = y = np.zeros_like(self.linear)
        momentum = 1.0
        for step in range(STEPS):
            slope = self.gradient(y)
            before, w = w, self.regularizer.prox(y - slope / smoothness, self.records / smoothness)
            if step % EVERY == EVERY - 1:
                left = (y - w) * smoothness - slope + self.gradient(w)
                if (float(np.linalg.norm(left)) + self._rounding(w)) / self.convexity <= tolerance:
                    return w
            if step >= STEPS // 2:
                y = w + (1 - root) / (1 + root) * (w - before)
                continue
            if (y - w) @ (w - before) > 0:
                momentum, y = 1.0, w
                continue
            after = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            momentum, y = after, w + (momentum - 1) / after * (w - before)
        raise StepError(
            f"ObjectivePerturbation: its bound needs the minimiser to a tolerance of {tolerance:g}, which was not "
            "certified; allow a larger tolerance, which is charged, or a larger quadratic."
        )

    def _rounding(self, w: Array) -> float:
        """What rounding may hide in the subgradient at w."""
        f, length = self.f, float(np.linalg.norm(w))
        norms, slopes = np.sqrt(f.squared_norms), np.abs(f.slopes(f.linear_predictor(w)))
        pulled = float(np.sum(norms * (slopes + f.problem.loss.curvature_bound * norms * length)))
        return _hide_in_subgradient(len(w), pulled, self.convexity * length, float(np.linalg.norm(self.linear)))


def _hide_in_subgradient(dim: int, pulled: float, square: float, linear: float) -> float:
    """What rounding may hide in a subgradient of J, from the lengths of its parts."""
    return ROUNDING * math.sqrt(dim) * (2 * pulled + square + linear)
