"""An epsilon for every ordered pair of peers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.ipadmm import IPADMM
from consenso.planning.pairs import pair_costs
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper, Peer
from consenso.topology import Topology

EXAMPLE = DPSGD.example()


def make(**changes: Any) -> Plan:
    settings: dict[str, Any] = {"rounds": 4, "noise": GaussianNoise(multiplier=2.0), "topology": Topology.path(6)}
    algorithm = replace(EXAMPLE.algorithm, rate=1.0)
    return plan(replace(EXAMPLE.problem, sizes=np.full(6, 5)), algorithm, **(settings | changes))


@pytest.mark.parametrize("changes", [{"trust": "tree"}, {"trust": "tree", "trees": "each-round", "colluders": 1}])
def test_every_pair_has_the_epsilon_that_is_proved_for_it(changes: dict[str, Any]) -> None:
    made = make(**changes)
    costs = pair_costs(made, 1e-5)
    for u in range(6):
        assert np.isnan(costs.epsilons[u, u])
        for v in set(range(6)) - {u}:
            expected = made.prove(Peer(party=u), v, 1e-5).epsilon(1e-5)
            assert costs.epsilons[u, v] == pytest.approx(expected, rel=1e-9)


def test_the_table_goes_by_distance() -> None:
    rows = {label: (many, found) for label, many, found in pair_costs(make(trust="tree"), 1e-5).quantiles()}
    assert [rows[f"distance {steps}"][0] for steps in (1, 2, 3)] == [10, 8, 6]
    assert rows["distance 4 or more"][0] == 6
    many, found = rows["all pairs"]
    assert many == 30
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_masked_pairs_are_alike_and_gossip_gets_no_credit_for_distance() -> None:
    masked = pair_costs(make(trust="masked-sum", colluders=1), 1e-5)
    example = IPADMM.example()
    gossip = plan(
        example.problem, example.algorithm, rounds=3, noise=GaussianNoise(multiplier=2.0), topology=example.topology
    )
    for costs in (masked, pair_costs(gossip, 1e-5)):
        assert np.nanmax(costs.epsilons, axis=0) == pytest.approx(np.nanmin(costs.epsilons, axis=0))
    worst = gossip.guarantee(Eavesdropper(), 1e-5).epsilon(1e-5)
    assert np.nanmax(pair_costs(gossip, 1e-5).epsilons) == pytest.approx(worst)
