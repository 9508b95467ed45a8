"""The card of a plan names the threat model of its secure sum, and the server's guarantee rests on it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Peer, Server
from consenso.privacy.samplers import Safe
from consenso.privacy.threshold import least_threshold
from consenso.schedules import PoissonSubset
from consenso.secure_sum import terms_of


def made(colluders: int, parties: int = 6, trust: str = "secure-sum", rate: float = 1.0) -> Plan:
    example = DPSGD.example()
    return plan(
        replace(example.problem, sizes=np.full(parties, 5), unit="party"),
        DPSGD(clip=0.6),
        rounds=4,
        noise=GaussianNoise(multiplier=2.0),
        trust=trust,  # type: ignore[arg-type]
        schedule=PoissonSubset(rate),
        sampler=Safe(),
        colluders=colluders,
    )


@pytest.mark.parametrize(("parties", "colluders"), [(6, 0), (6, 2), (6, 4), (11, 3)])
def test_the_card_names_the_threat_model(parties: int, colluders: int) -> None:
    text = " ".join(made(colluders, parties).card(1e-5).text().split())
    terms = terms_of(made(colluders, parties))
    assert "semi-honest" in text
    assert f"at least {terms.threshold} of {parties} parties" in text
    assert "discarded before anything is unmasked" in text
    if colluders:
        assert f"at most {colluders} of {parties} parties may, counted together, collude with it or drop out" in text
    else:
        assert "no party may collude with it or drop out of a round" in text


def test_other_trusts_name_none() -> None:
    assert "threat model" not in made(0, trust="curator").card(1e-5).text()


def test_the_guarantee_against_the_server_holds_with_the_colluders_that_the_card_names() -> None:
    """Planned for two, the server with two colluders learns as little as the server alone when planned for none."""
    alone, planned_for = made(0), made(2)
    delta = 1e-5
    assert planned_for.guarantee(Server(), delta).epsilon(delta) == pytest.approx(
        alone.guarantee(Server(), delta).epsilon(delta), rel=1e-9
    )
    # Colluders that the plan counts already are not in its favour: one more costs more.
    more = planned_for.guarantee(Peer(party=1), delta).epsilon(delta)
    assert more > planned_for.guarantee(Server(), delta).epsilon(delta)


def test_a_hidden_sample_amplifies_for_the_server_under_a_secure_sum_only() -> None:
    delta = 1e-5
    hidden = made(0, rate=0.2).guarantee(Server(), delta)
    assert hidden.epsilon(delta) < made(0, rate=1.0).guarantee(Server(), delta).epsilon(delta)
    assert re.search("Sampled", repr(hidden.event))


@pytest.mark.parametrize("parties", range(2, 13))
def test_the_threshold_is_above_half_and_above_the_colluders(parties: int) -> None:
    for absent in range(parties - 1):
        threshold = least_threshold(parties, absent)
        assert threshold > absent
        assert 2 * threshold > parties
        assert parties - threshold <= absent
