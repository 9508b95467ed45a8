"""Law 9 has teeth: each planted privacy fault is refuted by an attack, and the sound version is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from experiments.paper000 import claims
from tests.audit.constructions import Path

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.privacy.events import ZCDP
from consenso.privacy.observers import Peer
from consenso.privacy.run_spec import gaussian_draws
from consenso.schedules import FixedSubset, PoissonSubset
from consenso.testing import laws
from consenso.testing.planted.algorithms import ForgetsNoiseOnce
from consenso.testing.planted.noises import HalfTheNoise, VarianceForDeviation, sampled_parties, sampled_records
from consenso.testing.planted.noises import plan_attacked as example


def refuted(faulty, **effort) -> None:
    with pytest.raises(AssertionError, match="REFUTED"):
        laws.attacks_stay_below(faulty, **effort)


# --- faults of consenso.testing.planted: those that are not attacked there, and the sound versions --------------------


@pytest.mark.slow
def test_the_sound_algorithm_passes() -> None:
    laws.attacks_stay_below(example(ConsensusADMM(step=0.5)))
    laws.attacks_stay_below(example(ConsensusADMM(step=0.5), noise=0.5, rounds=1))


def test_half_the_noise_on_a_sum() -> None:
    dual = DualConsensusADMM(level="party", step=0.5)
    for trust in ("curator", "secure-sum"):
        laws.attacks_stay_below(example(dual, trust=trust))
        refuted(example(dual, trust=trust, noise=HalfTheNoise(multiplier=2.0)))


def test_faults_of_a_law_are_refuted_by_an_attack_too() -> None:
    refuted(example(ConsensusADMM(step=0.5), noise=HalfTheNoise(multiplier=2.0)))
    # A record moves the residual by 1 = 2 * step * Lipschitz constant, so the scale is 0.5 and its square 0.25.
    refuted(example(ConsensusADMM(step=0.5), noise=VarianceForDeviation(multiplier=0.5), rounds=1))
    refuted(example(ForgetsNoiseOnce(step=0.5)))


@pytest.mark.slow
def test_sampling_that_is_done_is_not_refuted() -> None:
    laws.attacks_stay_below(sampled_records(DPSGD(clip=0.7, rate=0.2)))
    sound = DualConsensusADMM(level="party", step=0.5)
    for schedule in (PoissonSubset(0.2), FixedSubset(2)):
        laws.attacks_stay_below(sampled_parties(sound, schedule))


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


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [ConsensusADMM, Theorem3], ids=["ours", "printed"])
def test_theorem_3(algorithm) -> None:
    federated = example(
        algorithm(step=0.5), parties=12, noise=1.0, rounds=12, schedule=FixedSubset(9), trust="secure-sum"
    )
    if algorithm is ConsensusADMM:
        laws.attacks_stay_below(federated)
    else:  # false by little: with fewer trials it depends on the seed whether an attack shows it
        refuted(federated, trials=2400)


@pytest.mark.parametrize("algorithm", [ConsensusADMM, Theorem4], ids=["ours", "printed"])
def test_theorem_4(algorithm) -> None:
    # Party 1 is visited once, party 0 ever after: what party 0 receives next has party 1's noise alone on it.
    walk = example(algorithm(step=0.5), parties=2, noise=0.6, rounds=4, schedule=Path((1, 0, 0, 0)))
    laws.attacks_stay_below(walk) if algorithm is ConsensusADMM else refuted(walk)
