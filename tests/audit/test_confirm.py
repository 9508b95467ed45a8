"""No claim is called refuted by one attack: a second one with new noise decides, for all claims together."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from consenso.algorithms.consensus import ConsensusADMM
from consenso.audit import Effort, audit, confirm, linear
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper
from consenso.testing.plans import plan_example

EFFORT = Effort(trials=300, family=False)


@dataclass(frozen=True, kw_only=True)
class HalfTheNoise(GaussianNoise):
    def sample(self, values, sensitivity, round, key, sampler):  # noqa: A002
        return sampler.gaussian(values, self.scale(sensitivity, round) / 2, key, sensitivity=sensitivity)


def plan_of(noise: GaussianNoise):
    """One round whose bound linear losses attain."""
    example = ConsensusADMM.example()
    return plan_example(replace(example, problem=linear(example.problem), noise=noise), rounds=1)


@pytest.mark.parametrize("claims", [1, 4, 300])
def test_the_error_is_shared_among_the_claims_and_the_noise_is_new(claims: int) -> None:
    again = EFFORT.again(claims)
    assert 1 - again.confidence == pytest.approx((1 - EFFORT.confidence) / claims)
    assert again.seed != EFFORT.seed


def test_what_is_refuted_by_chance_is_not_called_so_and_both_attacks_are_told() -> None:
    """At confidence 0.55 a claim that is exactly true is refuted by chance in up to 45 of 100 attacks."""
    made = plan_of(GaussianNoise(multiplier=2.0))
    doubted = None
    for seed in range(30):
        found = audit(made, replace(EFFORT, seed=seed, confidence=0.55), observers=[Eavesdropper()])
        if found[0].refuted:
            doubted = seed, found
            break
    assert doubted is not None
    seed, found = doubted
    (second,) = confirm(made, found, replace(EFFORT, seed=seed).again(24))
    assert second.first is found[0]
    assert not second.refuted
    sentence = second.sentence()
    assert "REFUTED" not in sentence
    for told in (f"{found[0].lower:.4g} with confidence 0.55", f"{second.lower:.4g} with confidence 0.997917"):
        assert told in sentence
    assert second.to_json()["first"]["lower"] == found[0].lower


def test_a_false_claim_is_refuted_twice_and_what_was_not_doubted_stays() -> None:
    made = plan_of(HalfTheNoise(multiplier=2.0))
    found = audit(made, EFFORT)
    final = confirm(made, found, EFFORT.again(len(found)))
    assert [each.observer for each in final] == [each.observer for each in found]
    assert any(each.refuted for each in final)
    for before, after in zip(found, final, strict=True):
        assert after is before if not before.refuted else after.first is before
        if after.refuted:
            assert after.lower > after.claimed
            assert "again with new noise" in after.sentence()
