"""Likelihood ratios of views whose law is known, and what an ideal attack proves with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from consenso.algorithms.gradient_admm import GradientADMM
from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint
from consenso.audit.attack import list_targets
from consenso.audit.bounds import evidence
from consenso.audit.findings import ENOUGH
from consenso.audit.mixtures import Branch, MixtureRatio, draw_mixtures, draw_releases
from consenso.audit.neighbours import unkind
from consenso.audit.table import Attacked, markdown
from consenso.privacy.noise import GammaNormNoise, GaussianNoise, LaplaceNoise
from consenso.schedules import PoissonSubset
from consenso.testing.attacks import findings, list_attacked_plans
from consenso.testing.brackets import bracket
from consenso.testing.exact_values.alike import others_are_alike, own_scripts


def test_the_ratio_of_a_mixture_is_that_of_its_densities():
    branches = [
        Branch(0.25, np.array([0.0]), np.array([1.0]), np.array([[1.0]])),
        Branch(0.75, np.array([0.0]), np.array([-2.0]), np.array([[0.5]])),
    ]
    seen = np.linspace(-4, 4, 9)[:, None]
    zero = 0.25 * norm.pdf(seen[:, 0]) + 0.75 * norm.pdf(seen[:, 0], scale=0.5)
    one = 0.25 * norm.pdf(seen[:, 0], 1.0) + 0.75 * norm.pdf(seen[:, 0], -2.0, 0.5)
    assert MixtureRatio(branches)(seen) == pytest.approx(np.log(one / zero), abs=1e-6)


def test_ideal_attacks_prove_what_their_law_allows():
    """False alarms: once in 10,000 by the confidence; the seeds are fixed."""
    pair = [[Branch(1.0, np.zeros(2), np.array([0.6, 0.8]), np.eye(2))]]
    for scores in (draw_mixtures(pair, 4000), draw_releases([(GaussianNoise(multiplier=1.0), np.array([1.0]))], 4000)):
        assert 0.9 < evidence(*scores, delta=1e-5, confidence=0.9999).mu < 1.0
    for noise in (LaplaceNoise(multiplier=1.0), GammaNormNoise(multiplier=1.0)):
        zero, one = draw_releases([(noise, np.array([0.5, 0.0, 0.0]))], 4000)
        assert max(np.abs(zero).max(), np.abs(one).max()) <= 0.5 + 1e-9  # the loss of a pure mechanism
        assert one.mean() > zero.mean()


def test_whose_coins_matter_is_tried():
    plans = list(list_attacked_plans(NoisyFixedPoint.example()))
    sampled = next(made for made in plans if isinstance(made.schedule, PoissonSubset))
    party = sampled.parties - 1
    pairs = {each.what: each for each in unkind(sampled.problem, "record", "replace-one", party)}
    assert others_are_alike(sampled, party, pairs["opposite gradients along one axis"])
    assert not others_are_alike(sampled, party, pairs["others push"])
    ways = own_scripts(sampled, party)
    assert len(ways) == 2**sampled.rounds
    assert sum(chance for chance, _ in ways) == pytest.approx(1.0)
    assert own_scripts(plans[0], party) == []  # everybody takes part, and no coins fall


def test_an_attack_that_is_told_more_than_a_party_hears_says_so():
    made = next(iter(list_attacked_plans(GradientADMM.example())))
    known = bracket(made, list_targets(made))
    assert {key for key, each in known.items() if each.told} == {"peer:0"}
    found = findings(made, trials=200, slow_trials=100)
    told = [replace(each, bracket=known[each.observer], lower=0.6 * each.claimed) for each in found]
    peer = next(each for each in told if each.observer == "peer:0")
    assert "told every answer of the hub" in peer.reason
    assert "reaches" not in peer.reason
    assert not peer.proved_all(ENOUGH)
    assert f"{peer.lower:.3g}*" in markdown([Attacked(plan=made, findings=told)])
