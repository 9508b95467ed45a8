"""DP-ADMM on a graph (Huang, Hu, Guo, Chan-Tin and Gong 2019): a first-order step with noise that decreases by itself.

    node i:  g     = grad f_i(w_i) + noise                                                        j over i's neighbours
             w_i   = prox_{r/D}( [ proximity_k w_i + penalty sum_j (w_i + w_j) - dual_i - g ] / D )
             D     = 2 penalty d_i + proximity_k,      proximity_k = proximity (k + 1)^growth in round k = 0, 1, ...
    hears:   dual_i <- dual_i + penalty sum_j (w_i - w_j)

With f_i linearised at the node's noisy model, w_i minimises the augmented Lagrangian
<g + dual_i, w> + r(w) + penalty sum_j |w - (w_i + w_j)/2|^2 + proximity_k/2 |w - w_i|^2.

    paper        code               what it is
    w~_i         state.w            noisy model
    gamma_i      -state.dual
    rho          2 penalty d_i      the paper has a server, and one disagreement per agent; a node has one per neighbour
    1/eta_k      proximity_k        the paper's eta_k falls like 1/sqrt(k): growth = 1/2
    c_1          bound of one record's gradient: the loss's Lipschitz constant, or `clip`
    sigma_k      multiplier * bound / D

Noise of standard deviation s on the gradient is noise of s/D on the model, the paper's output perturbation: with a
constant multiplier its variance on the model decreases as the proximity grows, at a constant cost per round. A
schedule (`Geometric`, `Polynomial`) makes it decrease further, at growing cost.

Privacy. Given the models that were sent, one record moves g by c_1 times its weight (add-remove) or twice that
(replace-one); all else is public, and prox, dual and average are post-processing. Rounds are Gaussian mechanisms and
compose exactly. The paper accounts by moments with sqrt(2 log(1.25/delta))/epsilon per round, which is not used.

What differs from the paper: the graph; the regularizer enters by its prox after the noise in place of a subgradient
at the noisy model, so constraints and sparsity are kept and constant proximity reaches the optimum. `averaging` is
the share of the last rounds whose models are averaged, 1 for the paper's ergodic average, which is free.
`NetworkedADMM(proximal=True)` with the step 1/proximity_k takes the same steps and has more options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from consenso.algorithms.distributed_admm import AveragedState, AveragingNode, pulls
from consenso.algorithms.dp_sgd import check_averaging
from consenso.algorithms.networked import (
    Message,
    degrees_of,
    gradient_release,
    noisy_gradient,
    prox_each,
)
from consenso.algorithms.shape import (
    PENALTIES,
    RING_WITH_CHORD,
    Example,
    Source,
    require_positive,
    small_problem,
)
from consenso.arrays import Array
from consenso.errors import InputError
from consenso.losses import require_lipschitz
from consenso.privacy.noise import GaussianNoise, Polynomial
from consenso.privacy.release import Release
from consenso.privacy.releaser import Releaser, postprocess
from consenso.privacy.run_spec import RunSpec
from consenso.public_facts import PublicFacts
from consenso.regularizers import L2, Ball
from consenso.shards import Cohort


@dataclass(frozen=True, kw_only=True)
class GraphDPADMM(AveragingNode):
    """First-order ADMM on a graph with growing proximity, for smooth and nonsmooth losses.

    clip: 2-norm to which each record's gradient is shortened.
    """

    sources: ClassVar[tuple[Source, ...]] = (
        Source(paper="002", algorithm="DP-ADMM of Figure 3", names=("DP-ADMM", "graph DP-ADMM")),
    )

    penalty: float = 1.0
    proximity: float = 1.0
    growth: float = 0.5
    clip: float | None = None
    averaging: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, penalty=self.penalty, proximity=self.proximity, clip=self.clip)
        if not 0 <= self.growth < np.inf:
            raise InputError(f"GraphDPADMM(growth={self.growth}): the growth is an exponent of at least 0; try 0.5.")
        check_averaging(self, self.averaging)

    def check(self, spec: RunSpec) -> None:
        if self.clip is None:
            require_lipschitz(spec.facts.problem.loss, spec.facts.problem.row_bound, "GraphDPADMM without clip")

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        return (gradient_release(facts, self.clip, None, 1.0),)

    def proximity_at(self, round_: int) -> float:
        """Weight of the distance to the last model in round 0, 1, ..."""
        return float(self.proximity * (round_ + 1.0) ** self.growth)

    def denominator(self, facts: PublicFacts) -> Array:
        """D of each node in this round; the noise on a model is that of the gradient over D."""
        return 2 * self.penalty * degrees_of(facts) + self.proximity_at(facts.round)

    def local(
        self, facts: PublicFacts, state: AveragedState, f: Cohort, release: Releaser
    ) -> tuple[AveragedState, Message]:
        """One noisy first-order step."""
        gradient = noisy_gradient(facts, f, state.w, release, self.clip, 1.0)
        bottom = self.denominator(facts)
        pull = self.proximity_at(facts.round) * state.w + pulls(self.penalty, facts, state) - gradient
        w = prox_each(facts.problem.regularizer, pull / bottom[:, None], 1 / bottom)
        return self.follow(facts, state, w), Message(w=postprocess(w, gradient))

    @classmethod
    def example(cls) -> Example:
        """Six nodes of five records on a ring with a chord, logistic loss."""
        return Example(
            algorithm=cls(penalty=0.2, proximity=0.5, clip=0.6, averaging=0.5),
            problem=small_problem(L2(strength=0.05)),
            noise=GaussianNoise(multiplier=Polynomial(first=2.0, power=-0.1)),
            topology=RING_WITH_CHORD,
            exact=cls(penalty=0.02, proximity=0.1, growth=0.0),
            exact_rounds=200,
            regularizers=(*PENALTIES, Ball(radius=0.7)),
        ).vary(
            {"clip": None, "penalty": 0.5, "averaging": 0.0},
            {"growth": 0.0, "proximity": 2.0},
        )
