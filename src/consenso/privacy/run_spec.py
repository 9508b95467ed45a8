"""The public description of a run that guarantees are computed from: who takes part, how values leave, who looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from consenso.arrays import Array, IntArray
from consenso.errors import InputError, PreconditionError
from consenso.graph_sum import Tree, add_mask_edges, spanning_tree
from consenso.privacy.declarations import Declaration, Declarations, Declared
from consenso.privacy.noise import GaussianNoise, Noise
from consenso.privacy.observers import Observer
from consenso.privacy.release import Amount, Release
from consenso.privacy.samplers import Sampler
from consenso.problem import Adjacency, Unit
from consenso.public_facts import PublicFacts
from consenso.schedules import Schedule
from consenso.topology import Topology
from consenso.trust import Trust, TrustMode, mode_of

Trees = Literal["one", "each-round"]


class Probe(Protocol):
    """For the laws of `consenso.testing`: sees exact values, and every release is answered with noise alone.

    A run with a probe learns nothing, which is what makes non-interference and sensitivities measurable.
    """

    def __call__(self, round_: int, release: Release, cohort: IntArray, value: Array, bound: float) -> None: ...


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """A run before it starts: how values leave, and who takes part in which round."""

    noise: Mapping[str, Noise]
    sampler: Sampler
    trust: Trust
    shares: int  # parties whose noise shares make up the whole noise of a secure or masked sum; 1 on a plain tree
    equal_noise: bool  # one scale for all parties (that of the largest bound), instead of each its own
    probe: Probe | None = None
    facts: PublicFacts  # of everyone, in round 0
    schedule: Schedule
    shape: Literal["hub", "peer"]
    topology: Topology | None = None
    colluders: int = 0  # parties that may pool what they know with whoever looks
    # Declarations do not depend on noise: all specifications that are made from this one share their answers.
    _declared: dict[Declaration, Declarations] = field(default_factory=dict, repr=False, compare=False)
    trees: Trees = "one"  # along which sums on a graph go: always the same, or another one in each round
    masks: Topology | None = None  # who shares masks with whom in a masked sum, where it was stated
    _computed: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def mode(self) -> TrustMode:
        """What the trust means."""
        return mode_of(self.trust)

    def noise_for(self, name: str) -> Noise:
        """The noise of a release."""
        if name not in self.noise:
            raise InputError(f"noise: there is none for release {name!r}; there is for {sorted(self.noise)}.")
        return self.noise[name]

    def sensitivity(self, release: Release, facts: PublicFacts, largest: float) -> Amount:
        """The bound that the noise of a release is scaled with: that of the problem's own unit and adjacency.

        `largest` is the largest over all parties. Noise on a sum always uses it: its scale must not tell who is in
        the sum.
        """
        if self.equal_noise or release.at == "sum":
            return largest
        return release.bounds.at(facts.problem.unit, facts.problem.adjacency)

    @property
    def rounds(self) -> int:
        """The number of rounds that is charged."""
        return self.facts.rounds

    @property
    def parties(self) -> int:
        """How many parties there are."""
        return self.facts.parties

    def remember(self, declaration: Declaration) -> Declarations:
        """A declaration that is asked once for rounds that it does not tell apart."""
        if isinstance(declaration, Declarations):
            return declaration
        if declaration not in self._declared:
            self._declared[declaration] = Declarations(declaration)
        return self._declared[declaration]

    def tree(self, round_: int) -> Tree:
        """The spanning tree along which a round's sums go."""
        assert self.topology is not None
        return spanning_tree(self.topology, round_ if self.trees == "each-round" else None)

    @property
    def mask_graph(self) -> Topology:
        """Who shares masks with whom: as stated, or the graph's own edges and as many more as `colluders` asks for."""
        assert self.topology is not None
        return add_mask_edges(self.topology, self.colluders) if self.masks is None else self.masks

    def representatives(self) -> PublicFacts:
        """PublicFacts of one party of each kind that public facts tell apart."""
        return self._one_of_each

    @cached_property
    def _one_of_each(self) -> PublicFacts:
        return self.facts.only(self.facts.classes())


@dataclass(frozen=True, kw_only=True)
class PrivacyQuery:
    """One question: what does this observer learn of one unit of this party, by the bounds of this adjacency?"""

    observer: Observer
    unit: Unit
    adjacency: Adjacency
    party: int


@dataclass(frozen=True)
class Stretch:
    """Consecutive rounds in which a party makes the same releases with the same noise."""

    first: int
    count: int
    releases: tuple[Release, ...]
    multipliers: tuple[float, ...]  # noise of each release, for a sensitivity of 1


def insiders(spec: RunSpec, query: PrivacyQuery) -> int:
    """How many parties look on with the observer, knowing their own noise, coins and all that they are sent.

    The observer's own members, and the planned colluders, whoever the observer is (docs/privacy.md#colluders).
    """
    return len(query.observer.insiders) + spec.colluders


def stretches(spec: RunSpec, party: int, declaration: Declaration) -> tuple[Stretch, ...]:
    """The rounds of a run as stretches of equal ones, as far as one party is concerned."""
    key = (stretches, declaration, party)
    if key not in spec._computed:
        spec._computed[key] = tuple(_stretches(spec, party, declaration))
    found: tuple[Stretch, ...] = spec._computed[key]
    return found


def _stretches(spec: RunSpec, party: int, declaration: Declaration) -> Iterator[Stretch]:
    own = spec.facts.only(np.array([party], dtype=np.int64))
    first, before = 0, None
    for declared in spec.remember(declaration).over_rounds(own):
        noises = [spec.noise_for(release.name) for release in declared.releases]
        for round_ in _rounds_of_noise(noises, declared):
            now = declared.releases, tuple(noise.scale(1.0, round_) for noise in noises)
            if before is not None and now != before:
                yield Stretch(first, round_ - first, *before)
                first = round_
            before = now
    if before is not None:
        yield Stretch(first, spec.rounds - first, *before)


def _rounds_of_noise(noises: Sequence[Noise], declared: Declared) -> range:
    """Rounds of equal declarations that stand for all of them: the first, where no noise changes."""
    stop = declared.first + 1 if all(noise.is_constant for noise in noises) else declared.stop
    return range(declared.first, stop)


def largest_bounds(spec: RunSpec, declaration: Declaration, round_: int) -> dict[str, float]:
    """The largest bound of each release of a round over all parties, for the problem's own unit and adjacency."""
    kept = spec._computed.get(largest_bounds)
    if kept is None or kept[0] != (declaration, round_):  # the steps of a round ask one after the other
        problem = spec.facts.problem
        found = {
            release.name: float(np.max(release.bounds.at(problem.unit, problem.adjacency)))
            for release in spec.remember(declaration)(spec.representatives().at(round_))
        }
        kept = spec._computed[largest_bounds] = (declaration, round_), found
    largest: dict[str, float] = kept[1]
    return largest


@dataclass(frozen=True)
class GaussianDraws:
    """The Gaussian noise of one release over all rounds and parties of a run, for theorems that know one law only.

    std: the smallest there is. Louder noise is noise of this size and a rest that may be told to everybody. rounding:
    how far a discrete sampler can move a released value from value plus continuous noise, in the 2-norm. excess: total
    variation between a discrete sampler and the law that theorems speak of, of one draw.
    """

    std: float
    rounding: float
    excess: float


def gaussian_draws(spec: RunSpec, declaration: Declaration, name: str) -> GaussianDraws:
    """The smallest noise of a release and the largest errors of its sampler. Refuses noise that is not Gaussian."""
    noise, sampler = spec.noise_for(name), spec.sampler
    if not isinstance(noise, GaussianNoise):
        raise PreconditionError(
            f"The theorem is about Gaussian noise, and {name!r} has {noise!r}; plan with GaussianNoise(multiplier=...)."
        )
    key = (gaussian_draws, declaration, name)
    if key not in spec._computed:
        drawn = set(_find_scales(spec, declaration, name))
        if not drawn:
            raise PreconditionError(f"The run makes no release {name!r}; plan at least one round in which it does.")
        spec._computed[key] = GaussianDraws(
            std=min(scale for scale, _, _ in drawn),
            rounding=max(
                sampler.displacement(scale, sensitivity, size) + sampler.widening(scale, sensitivity, size, 2)
                for scale, sensitivity, size in drawn
            ),
            excess=max(sampler.excess(scale, sensitivity, size, "gaussian") for scale, sensitivity, size in drawn),
        )
    found: GaussianDraws = spec._computed[key]
    return found


def _find_scales(spec: RunSpec, declaration: Declaration, name: str) -> Iterator[tuple[float, float, int]]:
    """Scale, sensitivity and size of every draw for a release, over the rounds and the kinds of parties."""
    problem, everyone, noise = spec.facts.problem, spec.representatives(), spec.noise_for(name)
    for declared in spec.remember(declaration).over_rounds(everyone):
        for release in (each for each in declared.releases if each.name == name):
            largest = float(np.max(release.bounds.at(problem.unit, problem.adjacency)))
            sensitivity = np.atleast_1d(spec.sensitivity(release, everyone, largest))
            for round_ in _rounds_of_noise([noise], declared):
                scales = noise.scale(sensitivity, round_)
                yield from zip(scales.tolist(), sensitivity.tolist(), [release.size] * len(scales), strict=True)
