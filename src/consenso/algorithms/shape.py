"""The two shapes of an algorithm, and the capabilities it may add.

A *hub* algorithm has `local`, what a party does with what the hub sends, and `combine`, what the hub does with the sum
of what the parties send. The hub is the curator, the server, or the token of a walk: centralized, federated and
random-walk training are schedules of one definition. A *peer* algorithm has `local` and `absorb`, what a node does
with what its neighbours said.

Parties are a batch axis: states and messages are frozen dataclasses of arrays whose first axis runs over the parties of
the cohort (over the rows of the cohort for a field marked `PER_ROW`). The hub's own state and what it sends have no
party axis. State is returned, never mutated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from consenso.algorithms.evidence import Evidence
from consenso.arrays import Array, IntArray
from consenso.errors import InputError
from consenso.losses import Logistic
from consenso.privacy.noise import GaussianNoise, Noise
from consenso.privacy.release import Release
from consenso.privacy.releaser import Released, Releaser
from consenso.privacy.run_spec import PrivacyQuery, RunSpec
from consenso.privacy.theorems import Theorem
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty, Regularizer
from consenso.schedules import Everyone, Schedule
from consenso.shards import Cohort
from consenso.topology import Topology
from consenso.trust import Trust

PER_ROW: Mapping[str, str] = {"axis": "rows"}


def per_row() -> Any:
    """A state field whose first axis runs over the rows of the cohort."""
    return field(metadata=PER_ROW)


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a definition comes from and the names by which people ask for it."""

    paper: str  # "000" to "004", or "" for what stands on its own
    algorithm: str  # as the paper numbers it
    names: tuple[str, ...] = ()


class Algorithm(Protocol):
    """What both shapes have."""

    sources: ClassVar[tuple[Source, ...]]

    def check(self, spec: RunSpec) -> None:
        """Refuse a spec in which the method or its guarantee is not defined, before data are touched."""
        ...

    def releases(self, facts: PublicFacts) -> tuple[Release, ...]:
        """What leaves the parties of this cohort in this round. Planning, running and accounting call this."""
        ...


@runtime_checkable
class HubAlgorithm(Algorithm, Protocol):
    """Parties around a hub."""

    def start(self, facts: PublicFacts) -> Any:
        """The hub before the first round."""
        ...

    def enroll(self, facts: PublicFacts, f: Cohort) -> Any:
        """The cohort's states before the first round; of the data only the number of rows may be used."""
        ...

    def down(self, facts: PublicFacts, hub: Any) -> Any:
        """What the hub sends to every party of a round."""
        ...

    def local(self, facts: PublicFacts, down: Any, state: Any, f: Cohort, release: Releaser) -> tuple[Any, Any]:
        """A party's step: its next state and what it sends up."""
        ...

    def combine(self, facts: PublicFacts, hub: Any, total: Any) -> Any:
        """The hub's step; each field of `total` is the sum over the parties that took part."""
        ...

    def model(self, facts: PublicFacts, hub: Any) -> Array:
        """The model to release, (dim,)."""
        ...


@runtime_checkable
class PeerAlgorithm(Algorithm, Protocol):
    """Nodes on a graph."""

    def enroll(self, facts: PublicFacts, f: Cohort) -> Any:
        """The cohort's states before the first round; of the data only the number of rows may be used."""
        ...

    def local(self, facts: PublicFacts, state: Any, f: Cohort, release: Releaser) -> tuple[Any, Any]:
        """A node's step: its next state and what it says to its neighbours."""
        ...

    def absorb(self, facts: PublicFacts, state: Any, heard: Heard) -> Any:
        """What a node does with what it heard."""
        ...

    def models(self, facts: PublicFacts, state: Any) -> Array:
        """Each node's model, (parties, dim). The released model is their mean."""
        ...


class Heard(Protocol):
    """What the neighbours of each node of a cohort said in this round."""

    def sum(self, name: str) -> Array:
        """Sum over neighbours of a field of their messages, (parties, ...)."""
        ...

    def mix(self, name: str) -> Array:
        """Average of a field over the node and its neighbours with Metropolis weights, (parties, ...)."""
        ...


@runtime_checkable
class HasTheorems(Protocol):
    """An algorithm of which more is proved than that its releases compose."""

    def theorems(self, spec: RunSpec, query: PrivacyQuery) -> Iterable[Callable[[], Theorem]]:
        """Guarantees for a query that are stronger than composing the releases; each refuses where it does not hold."""
        ...


def find_theorems(algorithm: Any, spec: RunSpec, query: PrivacyQuery) -> tuple[Callable[[], Theorem], ...]:
    """The theorems of an algorithm for a query; none where composing its releases is all that is proved."""
    return tuple(algorithm.theorems(spec, query)) if isinstance(algorithm, HasTheorems) else ()


@runtime_checkable
class Finishes(Protocol):
    """A hub that may be done before the rounds are used up, as its releases tell."""

    def finished(self, facts: PublicFacts, hub: Any) -> bool:
        """Whether the next round would do nothing."""
        ...


@runtime_checkable
class GivesEvidence(Protocol):
    """A hub whose releases tell how uncertain its model is."""

    def evidence(self, facts: PublicFacts, hub: Any) -> Evidence | None:
        """What standard errors are made of, from released values alone; None where too little was released."""
        ...


@runtime_checkable
class Diagnoses(Protocol):
    """An algorithm that can say how far its parties are from consensus. Private: computed from data without noise."""

    def diagnose(self, facts: PublicFacts, hub: Any, state: Any, f: Cohort) -> Mapping[str, float]:
        """Private figures by name."""
        ...


@runtime_checkable
class Finds(Protocol):
    """A hub algorithm that finds out more than a model; from releases only, so that it may be told."""

    def findings(self, facts: PublicFacts, hub: Any) -> Mapping[str, float]:
        """Released figures by name."""
        ...


@dataclass(frozen=True, eq=False)
class SingleRecords:
    """The records of parties that have one each, as compiled rounds read them. Private."""

    rows: Any  # (parties, features)
    targets: Array
    scales: Array  # weight of each record's loss
    norms: Array  # 2-norms of the rows


@dataclass(frozen=True)
class NoiseDraw:
    """What a compiled step needs to clip and perturb its release as the releaser does."""

    clip: float  # infinite for none
    scales: Array  # of the noise, one or one for each party of the cohort
    key: tuple[Any, int, tuple[Any, Any]]  # seed, round and what else tells the noise
    sum: Callable[[Array], Released]  # of what the step has drawn its noise for, over parties


# Hub, states, path, noise scales and normals (rounds, features) of a walk; the hub after as many rounds as were done.
WalkRounds: TypeAlias = Callable[[Any, Any, IntArray, Array, Array], tuple[Any, int]]
# What the hub sends, states, a cohort and its noise; what it sends in sums of pieces, and who took the step. The states
# of the others are as they were: the plain step is taken for them.
CohortStep: TypeAlias = Callable[[Any, Any, IntArray, NoiseDraw], tuple[Any, NDArray[np.bool_]]]


@dataclass(frozen=True, kw_only=True)
class CompiledRounds:
    """Rounds of parties of one record each, which change the states in place; None where there are none."""

    walk: WalkRounds | None = None
    cohort: CohortStep | None = None


@runtime_checkable
class CompilesRounds(Protocol):
    """An algorithm with compiled rounds beside its plain ones, for one plain release in the 2-norm under local trust.

    They give the plain round's iterates, up to rounding; a law of `consenso.testing` checks it.
    """

    def compile_rounds(self, facts: PublicFacts, records: SingleRecords) -> CompiledRounds:
        """The compiled rounds for a problem."""
        ...


def require_positive(owner: object, **values: Any) -> None:
    """Refuse hyperparameters that are not positive finite numbers.

    None, for an option that is not taken, and sequences over the rounds, which have checked themselves, pass.
    """
    for name, value in values.items():
        if value is not None and not hasattr(value, "at") and not 0 < value < float("inf"):
            raise InputError(f"{type(owner).__name__}({name}={value}): {name} is a positive finite number.")


# Regularizers with which a method that takes the prox of any of them converges.
PENALTIES: tuple[Regularizer, ...] = (
    NoPenalty(),
    L1(strength=0.02),
    L2(strength=0.1),
    ElasticNet(l1=0.01, l2=0.05),
    Box(low=-0.5, high=0.3),
)
# Six nodes, of which two have three neighbours.
RING_WITH_CHORD = Topology.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 3)])


def small_problem(regularizer: Regularizer = PENALTIES[1], **facts: Any) -> Problem:
    """Six parties of five records with three features, logistic loss; `facts` take the place of these."""
    usual: dict[str, Any] = {"loss": Logistic(), "features": 3, "sizes": np.full(6, 5), "row_bound": 1.0}
    return Problem(regularizer=regularizer, **usual | facts)


@dataclass(frozen=True, kw_only=True)
class Example:
    """A small instance of an algorithm, on which the laws of `consenso.testing` are checked.

    `variants` are examples with other parameters: over all of them each parameter of the algorithm takes at least two
    values, so that no option escapes the laws (`vary` makes them).
    """

    algorithm: Any
    problem: Problem = field(default_factory=small_problem)
    noise: Noise | Mapping[str, Noise] = GaussianNoise(multiplier=1.0)  # noqa: RUF009 - frozen
    rounds: int = 8
    schedules: tuple[Schedule, ...] = (Everyone(),)
    trusts: tuple[Trust, ...] = ("local",)
    topology: Topology | None = None
    exact: Any | None = None  # the variant that converges without noise, where clipping would move the solution
    exact_rounds: int = 2000
    exact_tolerance: float = 1e-6  # relative gap of the objective to the optimum
    regularizers: tuple[Regularizer, ...] = ()  # with which it converges; empty: the problem's own only
    variants: tuple[Example, ...] = ()

    def vary(self, *changes: Mapping[str, Any]) -> Example:
        """The example with a variant for each of these changes: of parameters, of the example or of its problem."""
        return replace(self, variants=self.variants + tuple(self._vary(change) for change in changes))

    def _vary(self, change: Mapping[str, Any]) -> Example:
        def part(names: set[str]) -> dict[str, Any]:
            return {name: value for name, value in change.items() if name in names}

        parameters, own = ({each.name for each in fields(record)} for record in (self.algorithm, self))
        problem = part(set(change) - parameters - own)
        varied = replace(self, variants=(), **part(own - parameters))
        return replace(
            varied,
            algorithm=replace(self.algorithm, **part(parameters)),
            problem=replace(varied.problem, **problem) if problem else varied.problem,
        )
