"""Dual variable perturbation, DVP (Zhang and Zhu 2017): distributed ADMM with a random linear term in the objectives.

    node i:  w_i   = argmin f_i(w) + r(w) + <dual_i + noise, w> + penalty sum_j |w - (w_i + w_j)/2|^2
    hears:   dual_i <- dual_i + penalty sum_j (w_i - w_j)

    paper         code                what it is
    f_p           state.w             the perturbed minimiser; it is what leaves
    2 mu_p        dual_i + noise      the perturbed dual, used in one minimisation and forgotten
    2 lambda_p    state.dual          the paper steps lambda by eta/2; here the 2 is in the dual
    eta           penalty             weight of disagreement
    zeta          1 / noise scale     of GammaNormNoise, the paper's density exp(-zeta |noise|_2)
    Phi_p         -                   the paper's extra square that makes room for the Jacobian: raise `penalty` instead

Privacy is proved in `consenso.privacy.theorems.dual_perturbation`: a round of a node costs a record gap / scale +
log(1 + c/curvature), where gap is the change of the gradient, c the largest curvature of one record's loss and
curvature = m + 2 penalty d_i. The paper asks for a twice differentiable loss; a Lipschitz slope is enough. It bounds
one round of one node, while here all rounds are charged. GaussianNoise has a bound of its own, for records under
add-remove.

A solver is never exact, and inside a minimisation there is no slack for that: the minimiser leaves with a second, tiny
noise of `cover` times the multiplier. Its true sensitivity is twice the certified tolerance, so that it costs next to
nothing: 2 tolerance / (cover * multiplier) a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from consenso.algorithms.distributed_admm import (
    ExactNode,
    State,
    check_local_problem,
    curvatures,
    give_example,
    minimise,
    pulls,
)
from consenso.algorithms.shape import Example, Source, require_positive
from consenso.errors import InputError, PreconditionError
from consenso.losses import require_lipschitz, require_smooth
from consenso.privacy.noise import GammaNormNoise, GaussianNoise, NoNoise
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec, largest_bounds
from consenso.privacy.theorems import Theorem
from consenso.privacy.theorems.dual_perturbation import DualPerturbedRounds
from consenso.public_facts import PublicFacts
from consenso.shards import Cohort

OBJECTIVE, OUTPUT = "objective", "output"


@dataclass(frozen=True, kw_only=True)
class DualPerturbation(ExactNode):
    """Distributed ADMM with noise in the nodes' objectives; `cover` is the size of the noise on their minimisers."""

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="002", algorithm="DVP of Figure 3", names=("DVP", "dual variable perturbation")),
    )

    penalty: float = 1.0
    tolerance: float = 1e-10
    cover: float = 1e-6

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty)
        check_cover(self, self.tolerance, self.cover)

    def check(self, spec: RunSpec) -> None:
        """Bounded, smooth losses of one margin, and noise whose law the theorem knows."""
        check_local_problem(self, self.penalty, spec)
        check_perturbation(self, spec, range(spec.rounds))

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """A random linear term, and the minimiser with what the solver leaves over."""
        return declare_perturbed_releases(facts, self.cover)

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        yield lambda: prove_perturbed_rounds(self, spec, query, range(spec.rounds))

    def leave(self, facts: PublicFacts, state: State, f: Cohort, release: Releaser) -> Released:
        return release_perturbed_minimiser(self, facts, state, f, release)

    @classmethod
    def example(cls) -> Example:
        """Six nodes of unequal sizes and degrees, logistic loss."""
        return give_example(cls(penalty=0.05), GammaNormNoise(multiplier=1.0)).vary(
            {"penalty": 1.0, "tolerance": 1e-9, "cover": 1e-5}
        )


# --- what every node that perturbs its objective needs ---------------------------------------------------------------


class Perturbed(Protocol):
    """An algorithm that perturbs objectives."""

    @property
    def penalty(self) -> float: ...

    @property
    def tolerance(self) -> float:
        """Certified distance to the exact minimiser."""

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """What leaves in a round."""


def check_cover(owner: object, tolerance: float, cover: float) -> None:
    """The noise on the minimiser is declared for `cover`, which is more than the solver may err."""
    require_positive(owner, tolerance=tolerance, cover=cover)
    if cover < 2 * tolerance:
        raise InputError(
            f"{type(owner).__name__}(cover={cover}, tolerance={tolerance}): the cover is at least twice the tolerance; "
            "raise it."
        )


def check_perturbation(owner: Perturbed, spec: RunSpec, noisy: Sequence[int]) -> None:
    """Refuse losses and noises for which no bound is proved, for any kind of node."""
    name, problem = type(owner).__name__, spec.facts.problem
    require_lipschitz(problem.loss, problem.row_bound, name)
    require_smooth(problem.loss, problem.row_bound, name)
    if problem.outputs > 1:
        raise PreconditionError(
            f"{name}: one record's Hessian must have rank one, and {problem.loss!r} has {problem.outputs} scores per "
            "record; use PrimalPerturbation."
        )
    if all(isinstance(spec.noise_for(each), NoNoise) for each in (OBJECTIVE, OUTPUT)):
        return  # a run that promises nothing
    for party in spec.facts.classes():
        everything = PrivacyQuery(
            observer=Eavesdropper(), unit=problem.unit, adjacency=problem.adjacency, party=int(party)
        )
        prove_perturbed_rounds(owner, spec, everything, noisy)


def declare_perturbed_releases(facts: PublicFacts, cover: float) -> tuple[Release, ...]:
    """The gradient that the linear term hides, and the minimiser. A node without records stays in the graph."""
    return (
        Release(
            name=OBJECTIVE,
            size=facts.dim,
            perturbs_objective=True,
            bounds=Bounds.of_contributions(record=facts.record_lipschitz, party=facts.lipschitz),
            why="a record's gradient is bounded by its Lipschitz constant (docs/privacy.md#objective-perturbation)",
        ),
        Release(
            name=OUTPUT,
            size=facts.dim,
            bounds=Bounds(
                record_add_remove=cover, record_replace_one=cover, party_add_remove=cover, party_replace_one=cover
            ),
            why="given the exact minimiser, twice the certified tolerance (docs/privacy.md#inexact-subproblems)",
        ),
    )


def release_perturbed_minimiser(
    owner: Perturbed, facts: PublicFacts, state: State, f: Cohort, release: Releaser
) -> Released:
    """The minimiser of each node's objective with its random linear term, as it may leave, (parties, dim)."""
    pull, curvature = pulls(owner.penalty, facts, state), curvatures(owner.penalty, facts)
    who = type(owner).__name__
    exact = release.perturb(OBJECTIVE, lambda noise: minimise(f, pull - noise, curvature, owner.tolerance, who))
    return release(OUTPUT, exact)


def prove_perturbed_rounds(
    owner: Perturbed, spec: RunSpec, query: PrivacyQuery, noisy: Sequence[int]
) -> DualPerturbedRounds:
    """The guarantee of one node's perturbed minimisations in the rounds `noisy`, from the noise that the releaser
    draws.
    """
    own = spec.facts.only(np.array([query.party], dtype=np.int64))
    problem, sampler, law = own.problem, spec.sampler, _law(owner, spec)
    curvature = float(curvatures(owner.penalty, own)[0])
    # Bounds are those of every noisy round; multipliers may change from round to round.
    gap, cover = (_find_sensitivity(owner, spec, own.at(noisy[0]), name) for name in (OBJECTIVE, OUTPUT))
    scales = [float(spec.noise_for(OBJECTIVE).scale(gap, round_)) for round_ in noisy]
    outputs = [float(spec.noise_for(OUTPUT).scale(cover, round_)) for round_ in noisy]
    wrong, excess = 0.0, 0.0
    for scale, output in set(zip(scales, outputs, strict=True)):
        # Discrete noise in a linear term is continuous noise with an error, over the curvature on the minimiser.
        moved = sampler.displacement(scale, gap, own.dim) / curvature + sampler.widening(output, cover, own.dim, 2)
        inside = sampler.excess(scale, gap, own.dim, law)
        wrong, excess = max(wrong, moved), max(excess, inside + sampler.excess(output, cover, own.dim, law))
    return DualPerturbedRounds(
        lipschitz=float(own.lipschitz[0] if query.unit == "party" else own.record_lipschitz[0]),
        smoothness=float(own.scales[0] * problem.loss.smoothness(problem.row_bound)),
        strong_convexity=curvature,
        scale=_one_or_all(scales),
        rounds=len(scales),
        tolerance=owner.tolerance + wrong,
        output_scale=_one_or_all(outputs),
        law=law,
        excess=excess,
        records=int(own.sizes[0]) if query.unit == "party" else 1,
        dim=own.dim,
        outputs=problem.outputs,
        adjacency=query.adjacency,
        unit=query.unit,
    )


def _law(owner: object, spec: RunSpec) -> Literal["gamma-norm", "gaussian"]:
    kinds = {type(spec.noise_for(name)) for name in (OBJECTIVE, OUTPUT)}
    if kinds == {GammaNormNoise}:
        return "gamma-norm"
    if kinds == {GaussianNoise}:
        return "gaussian"
    raise PreconditionError(
        f"{type(owner).__name__}(noise=...): the linear term and the output need noise of one kind, GammaNormNoise, or "
        "GaussianNoise under add-remove; give both."
    )


def _find_sensitivity(owner: Perturbed, spec: RunSpec, own: PublicFacts, name: str) -> float:
    """The sensitivity that a node's noise is scaled with."""
    (release,) = (each for each in spec.remember(owner.releases)(own) if each.name == name)
    largest = largest_bounds(spec, owner.releases, own.round)[name]
    return float(np.max(spec.sensitivity(release, own, largest)))


def _one_or_all(values: list[float]) -> float | tuple[float, ...]:
    """One number where all rounds have the same."""
    return values[0] if len(set(values)) == 1 else tuple(values)
