"""Law 9 has teeth: each planted privacy fault is refuted by an attack, and the sound version is not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from experiments.paper000 import claims

from consenso.algorithms.consensus import ConsensusADMM, State, Up
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dp_sgd import Up as GradientUp
from consenso.algorithms.dual_consensus import DualConsensusADMM, PartyState
from consenso.audit.constructions import Path
from consenso.operators import shorten_slopes
from consenso.privacy.events import ZCDP
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Peer
from consenso.privacy.release import Bounds
from consenso.privacy.run_spec import gaussian_draws
from consenso.regularizers import NoPenalty
from consenso.schedules import Everyone, FixedSubset, Independent, PoissonSubset
from consenso.subproblems import certify
from consenso.testing import laws


def example(algorithm, *, parties=4, noise=2.0, rounds=4, schedule=None, trust="local", records=1):
    """A small federation of users, in one setting so that a test is quick."""
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


def refuted(faulty, **effort) -> None:
    with pytest.raises(AssertionError, match="REFUTED"):
        laws.attacks_stay_below(faulty, **effort)


# --- the noise ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HalfTheNoise(GaussianNoise):
    def sample(self, values, sensitivity, round, key, sampler):  # noqa: A002
        return sampler.gaussian(values, self.scale(sensitivity, round) / 2, key, sensitivity=sensitivity)


@dataclass(frozen=True, kw_only=True)
class VarianceForDeviation(GaussianNoise):
    """As in public code of papers 000 and 003: a variance multiplies a standard normal."""

    def sample(self, values, sensitivity, round, key, sampler):  # noqa: A002
        return sampler.gaussian(values, self.scale(sensitivity, round) ** 2, key, sensitivity=sensitivity)


def test_the_sound_algorithm_passes() -> None:
    laws.attacks_stay_below(example(ConsensusADMM(step=0.5)))
    laws.attacks_stay_below(example(ConsensusADMM(step=0.5), noise=0.5, rounds=1))


def test_noise_of_half_the_scale() -> None:
    refuted(example(ConsensusADMM(step=0.5), noise=HalfTheNoise(multiplier=2.0)))


def test_half_the_noise_on_a_sum() -> None:
    dual = DualConsensusADMM(level="party", step=0.5)
    for trust in ("curator", "secure-sum"):
        laws.attacks_stay_below(example(dual, trust=trust))
        refuted(example(dual, trust=trust, noise=HalfTheNoise(multiplier=2.0)))


def test_a_variance_used_as_a_standard_deviation() -> None:
    # A record moves the residual by 1 = 2 * step * Lipschitz constant, so the scale is 0.5 and its square 0.25.
    refuted(example(ConsensusADMM(step=0.5), noise=VarianceForDeviation(multiplier=0.5), rounds=1))


def prox(algorithm, down, state, f):
    solved = f.prox(2 * down.z - state.u, algorithm.step, algorithm.tolerance)
    return certify(solved, algorithm.tolerance, "a faulty algorithm")


class ForgetsNoiseOnce(ConsensusADMM):
    def local(self, facts, down, state, f, releaser):
        residual = prox(self, down, state, f) - down.z
        noisy = releaser("residual", residual)
        increment = 2 * self.relaxation * (residual if facts.round == 2 else noisy)
        return State(u=state.u + increment), Up(increment=increment)


def test_noise_forgotten_in_one_message() -> None:
    refuted(example(ForgetsNoiseOnce(step=0.5)))


# --- the sensitivity ------------------------------------------------------------------------------------------------


class HalfTheSensitivity(ConsensusADMM):
    def releases(self, facts):
        (release,) = super().releases(facts)
        return (replace(release, bounds=release.bounds.scale(0.5)),)


def test_half_the_sensitivity() -> None:
    refuted(example(HalfTheSensitivity(step=0.5)))


class ScaleFromTheData(ConsensusADMM):
    """Paper 003, equation 20: the noise follows a norm that is measured on the records."""

    def releases(self, facts):
        (release,) = super().releases(facts)
        return (replace(release, adaptive=True, bounds=Bounds(party_replace_one=2.0, record_replace_one=2.0)),)

    def local(self, facts, down, state, f, releaser):
        residual = prox(self, down, state, f) - down.z
        measured = max(float(np.linalg.norm(f.gradient(down.z), axis=1).max()) * self.step, 1e-3)
        increment = 2 * self.relaxation * releaser("residual", residual, bound=measured)
        return State(u=state.u + increment), Up(increment=increment)


def test_a_scale_read_from_the_data() -> None:
    refuted(example(ScaleFromTheData(step=0.5)))


# --- the sampling ---------------------------------------------------------------------------------------------------


class TakesEverybody(DPSGD):
    """Says that it samples records and does not."""

    def local(self, facts, down, state, f, releaser):
        coefficients = shorten_slopes(f.slopes(f.linear_predictor(down.u)), f.squared_norms, self.clip)
        return state, GradientUp(gradient=releaser("gradient", f.rmatvec(coefficients) * facts.scales[:, None]))


def test_sampling_that_is_claimed_and_not_done() -> None:
    def at(algorithm):
        sampled = example(algorithm, noise=1.0, rounds=8, trust="curator", records=3)
        return replace(sampled, problem=replace(sampled.problem, unit="record"))

    laws.attacks_stay_below(at(DPSGD(clip=0.7, rate=0.2)))
    refuted(at(TakesEverybody(clip=0.7, rate=0.2)))


@dataclass(frozen=True)
class CalledPoisson(FixedSubset):
    """A fixed-size sample that is accounted as a Poisson sample."""

    def participation(self, party, rounds, parties):
        return Independent(self.size / parties, rounds, poisson=True)


@dataclass(frozen=True)
class RememberingState:
    dual: np.ndarray
    visits: np.ndarray  # how often each party has been asked


@dataclass(frozen=True)
class RememberingUp:
    dual: np.ndarray
    visits: np.ndarray


class ShowsItsMemory(DualConsensusADMM):
    """Each party reports how often it was asked; no data in it, but whose memory grew tells who was sampled."""

    def enroll(self, facts, f):
        size = len(facts.cohort)
        return RememberingState(dual=super().enroll(facts, f).dual, visits=np.zeros((size, facts.parties)))

    def local(self, facts, down, state, f, releaser):
        after, up = self._party(down, PartyState(dual=state.dual), f, releaser)
        visits = state.visits + np.eye(facts.parties)[facts.cohort]
        return RememberingState(dual=after.dual, visits=visits), RememberingUp(dual=up.dual, visits=visits)


def test_poisson_accounting_of_a_fixed_size_sample_whose_memory_shows() -> None:
    def at(algorithm, schedule):
        return example(algorithm, parties=10, noise=0.6, rounds=8, schedule=schedule, trust="secure-sum")

    sound = DualConsensusADMM(level="party", step=0.5)
    laws.attacks_stay_below(at(sound, PoissonSubset(0.2)))
    laws.attacks_stay_below(at(sound, FixedSubset(2)))
    refuted(at(ShowsItsMemory(level="party", step=0.5), CalledPoisson(2)))


# --- printed bounds in place of ours --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A bound as a paper prints it."""

    citation: ClassVar[str] = "as printed"
    section: ClassVar[str] = "summary-of-the-printed-bounds"

    rho: float
    adjacency: str
    unit: str

    def event(self):
        return ZCDP(self.rho)

    def assumptions(self):
        return ()


class PrintedBound(ConsensusADMM):
    def bound(self, setting, view, **common):
        raise AssertionError

    def theorems(self, setting, view):
        # The paper adds lambda * eta where the library adds 2 * lambda * noise.
        common = {
            "lipschitz": float(setting.facts.problem.lipschitz[view.party]),
            "step": self.step,
            "parties": setting.parties,
            "std": 2 * gaussian_draws(setting, self.releases, "residual").std,
        }
        rho = self.bound(setting, view, **common)
        if rho is not None and view.adjacency == "replace-one":
            yield lambda: Printed(rho=rho, adjacency=view.adjacency, unit=view.unit)


class Theorem2(PrintedBound):
    def bound(self, setting, view, **common):
        return claims.printed_theorem_2(rounds=setting.rounds, **common)


class Theorem3(PrintedBound):
    def bound(self, setting, view, **common):
        return claims.printed_theorem_3_central(rounds=setting.rounds, **common)


class Theorem4(PrintedBound):
    def bound(self, setting, view, **common):
        if not isinstance(view.observer, Peer):
            return None
        visits = setting.schedule.participation(view.party, setting.rounds, setting.parties).count
        return claims.printed_theorem_4(participations=visits, **common)


@pytest.mark.parametrize("algorithm", [ConsensusADMM, Theorem2], ids=["ours", "printed"])
def test_theorem_2(algorithm) -> None:
    central = example(algorithm(step=0.5), parties=12, noise=0.7, rounds=8, trust="secure-sum")
    laws.attacks_stay_below(central) if algorithm is ConsensusADMM else refuted(central)


@pytest.mark.parametrize("algorithm", [ConsensusADMM, Theorem3], ids=["ours", "printed"])
def test_theorem_3(algorithm) -> None:
    federated = example(
        algorithm(step=0.5), parties=12, noise=1.0, rounds=12, schedule=FixedSubset(9), trust="secure-sum"
    )
    # A bound that is false by little: with fewer trials it depends on the seed whether an attack shows it.
    attack = laws.attacks_stay_below if algorithm is ConsensusADMM else refuted
    attack(federated, trials=2400)


@pytest.mark.parametrize("algorithm", [ConsensusADMM, Theorem4], ids=["ours", "printed"])
def test_theorem_4(algorithm) -> None:
    # Party 1 is visited once, party 0 ever after: what party 0 receives next has party 1's noise alone on it.
    walk = example(algorithm(step=0.5), parties=2, noise=0.6, rounds=4, schedule=Path((1, 0, 0, 0)))
    laws.attacks_stay_below(walk) if algorithm is ConsensusADMM else refuted(walk)
