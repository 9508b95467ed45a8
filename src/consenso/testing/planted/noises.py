"""Faulty noise and sampling: what is drawn is not what is stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM, State, Up
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dp_sgd import Up as GradientUp
from consenso.algorithms.dual_consensus import DualConsensusADMM, PartyState
from consenso.algorithms.shape import Example
from consenso.operators import shorten_slopes
from consenso.privacy.composition import Entered
from consenso.privacy.events import Event, Sampled, compose, repeat
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.release import Bounds
from consenso.regularizers import NoPenalty
from consenso.schedules import Everyone, FixedSubset, Independent
from consenso.testing.planted.algorithms import prox


def plan_attacked(
    algorithm: Any,
    *,
    parties: int = 4,
    noise: Any = 2.0,
    rounds: int = 4,
    schedule: Any = None,
    trust: Any = "local",
    records: int = 1,
) -> Example:
    """A small federation of users, in one setting so that an attack is quick."""
    base = ConsensusADMM.example()
    problem = replace(base.problem, sizes=np.full(parties, records), features=2, regularizer=NoPenalty())
    noise = noise if isinstance(noise, GaussianNoise) else GaussianNoise(multiplier=noise)
    return replace(
        base,
        algorithm=algorithm,
        problem=problem,
        noise=noise,
        rounds=rounds,
        schedules=(schedule or Everyone(),),
        trusts=(trust,),
    )


@dataclass(frozen=True, kw_only=True)
class HalfTheNoise(GaussianNoise):
    """States twice the scale that it draws."""

    def sample(self, values: Any, sensitivity: Any, round: int, key: Any, sampler: Any) -> Any:  # noqa: A002
        return sampler.gaussian(values, self.scale(sensitivity, round) / 2, key, sensitivity=sensitivity)


@dataclass(frozen=True, kw_only=True)
class VarianceForDeviation(GaussianNoise):
    """As in public code of papers 000 and 003: a variance multiplies a standard normal."""

    def sample(self, values: Any, sensitivity: Any, round: int, key: Any, sampler: Any) -> Any:  # noqa: A002
        return sampler.gaussian(values, self.scale(sensitivity, round) ** 2, key, sensitivity=sensitivity)


@dataclass(frozen=True, kw_only=True)
class OneSided(GaussianNoise):
    """Noise that is never negative, as that of a norm."""

    def sample(self, values: Any, sensitivity: Any, round: int, key: Any, sampler: Any) -> Any:  # noqa: A002
        return values + np.abs(super().sample(np.zeros_like(values), sensitivity, round, key, sampler))


@dataclass(frozen=True, kw_only=True)
class FallingNoise(GaussianNoise):
    """States one scale for all rounds and draws less in each."""

    def sample(self, values: Any, sensitivity: Any, round: int, key: Any, sampler: Any) -> Any:  # noqa: A002
        scale = self.scale(sensitivity, round) / 2.0**round
        return sampler.gaussian(values, scale, key, sensitivity=sensitivity)


@dataclass(frozen=True, kw_only=True)
class ScaleOfTheMoment(GaussianNoise):
    """Another scale whenever it is asked: what was accounted is not what is drawn."""

    asked: ClassVar[list[int]] = []

    def scale(self, sensitivity: Any, round: int) -> Any:  # noqa: A002
        self.asked.append(round)
        return super().scale(sensitivity, round) * (1.0 + 1e-3 * len(self.asked))


class HalfTheSensitivity(ConsensusADMM):
    """Noise for half of what a record can do."""

    def releases(self, facts: Any) -> Any:
        (release,) = super().releases(facts)
        return (replace(release, bounds=release.bounds.scale(0.5)),)


class ScaleFromTheData(ConsensusADMM):
    """Paper 003, equation 20: the noise follows a norm that is measured on the records."""

    def releases(self, facts: Any) -> Any:
        (release,) = super().releases(facts)
        return (replace(release, adaptive=True, bounds=Bounds(party_replace_one=2.0, record_replace_one=2.0)),)

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        residual = prox(self, down, state, f) - down.z
        measured = max(float(np.linalg.norm(f.gradient(down.z), axis=1).max()) * self.step, 1e-3)
        increment = 2 * self.relaxation * releaser("residual", residual, bound=measured)
        return State(u=state.u + increment), Up(increment=increment)


class TakesEverybody(DPSGD):
    """Says that it samples records and does not."""

    def local(self, facts: Any, down: Any, state: Any, f: Any, release: Any) -> Any:
        coefficients = shorten_slopes(f.slopes(f.linear_predictor(down.u)), f.squared_norms, self.clip)
        return state, GradientUp(gradient=release("gradient", f.rmatvec(coefficients) * facts.scales[:, None]))


def sampled_records(algorithm: Any) -> Example:
    """A federation in which records are sampled."""
    made = plan_attacked(algorithm, noise=1.0, rounds=8, trust="curator", records=3)
    return replace(made, problem=replace(made.problem, unit="record"))


@dataclass(frozen=True)
class TwiceUp:
    """Two noisy gradients of one sample."""

    gradient: Any
    again: Any


class AsksTwice(DPSGD):
    """Two releases a round, of the same sample."""

    def releases(self, facts: Any) -> Any:
        (release,) = super().releases(facts)
        return (replace(release, times=2),)

    def local(self, facts: Any, down: Any, state: Any, f: Any, release: Any) -> Any:
        exact: Any = lambda name, value: value  # noqa: E731
        state, up = super().local(facts, down, state, f, exact)
        return state, TwiceUp(gradient=release("gradient", up.gradient), again=release("gradient", up.gradient))

    def combine(self, facts: Any, hub: Any, total: Any) -> Any:
        return super().combine(facts, hub, GradientUp(gradient=(total.gradient + total.again) / 2))


def toss_for_each(entered: Sequence[Entered], query: Any, rate: float) -> Event:
    """What releases of one sample would cost if each had a coin of its own."""
    return compose(
        *(
            repeat(Sampled(each.event.std, each.event.sensitivity / 2, rate, query.adjacency), each.times)
            for each in entered
        )
    )


@dataclass(frozen=True)
class CalledPoisson(FixedSubset):
    """A fixed-size sample that is accounted as a Poisson sample."""

    def participation(self, party: int, rounds: int, parties: int) -> Any:
        return Independent(self.size / parties, rounds, poisson=True)


@dataclass(frozen=True)
class RememberingState:
    """A dual variable, and how often each party has been asked."""

    dual: Any
    visits: Any


@dataclass(frozen=True)
class RememberingUp:
    """The same, sent."""

    dual: Any
    visits: Any


class ShowsItsMemory(DualConsensusADMM):
    """Each party reports how often it was asked; no data in it, but whose memory grew tells who was sampled."""

    def enroll(self, facts: Any, f: Any) -> Any:
        size = len(facts.cohort)
        return RememberingState(dual=super().enroll(facts, f).dual, visits=np.zeros((size, facts.parties)))

    def local(self, facts: Any, down: Any, state: Any, f: Any, releaser: Any) -> Any:
        after, up = self._party(down, PartyState(dual=state.dual), f, releaser)
        visits = state.visits + np.eye(facts.parties)[facts.cohort]
        return RememberingState(dual=after.dual, visits=visits), RememberingUp(dual=up.dual, visits=visits)


def sampled_parties(algorithm: Any, schedule: Any) -> Example:
    """A federation in which parties are sampled behind a secure sum."""
    return plan_attacked(algorithm, parties=10, noise=0.6, rounds=8, schedule=schedule, trust="secure-sum")
