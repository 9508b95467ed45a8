"""Guarantees of sums on a graph: for every pair, coalitions, all links and the public; what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.ipadmm import IPADMM
from consenso.errors import ConsensoError, PreconditionError
from consenso.planning.plan import Plan, plan
from consenso.planning.replan import differences
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Coalition, Eavesdropper, Peer, Public, Server
from consenso.schedules import Cyclic, FixedSubset, PoissonSubset
from consenso.topology import Topology

EXAMPLE = DPSGD.example()
ALGORITHM = replace(EXAMPLE.algorithm, rate=1.0)
PROBLEM = replace(EXAMPLE.problem, sizes=np.full(6, 5))
PATH = Topology.path(6)  # its root is node 3, or 2


def make(trust: Any, topology: Topology | None = PATH, **changes: Any) -> Plan:
    settings: dict[str, Any] = {"rounds": 4, "noise": GaussianNoise(multiplier=2.0)}
    return plan(PROBLEM, ALGORITHM, trust=trust, topology=topology, **(settings | changes))


def rho(made: Plan, observer: Any, party: int) -> float:
    found = made.prove(observer, party, 1e-5).zcdp()
    assert found is not None
    return found


ONE = 4 / (2 * 2.0**2)  # four rounds with noise of twice the sensitivity


@pytest.mark.parametrize(
    ("observer", "party", "hiding"),
    [
        (Eavesdropper(), 3, 1),
        (Public(), 3, 6),
        (Peer(party=0), 3, 5),
        (Peer(party=2), 3, 3),
        (Peer(party=2), 0, 2),
        (Peer(party=4), 5, 1),
        (Coalition(parties=(1, 4)), 2, 2),
        (Coalition(parties=(1, 4)), 0, 1),
    ],
)
def test_a_plain_tree_hides_a_node_among_its_branch(observer: Any, party: int, hiding: int) -> None:
    assert rho(make("tree"), observer, party) == pytest.approx(ONE / hiding)


def test_colluders_stand_next_to_the_node() -> None:
    made = make("tree", colluders=1)
    assert rho(made, Public(), 1) == pytest.approx(ONE / 2)  # one at node 2 leaves nodes 0 and 1
    assert rho(made, Peer(party=5), 1) == pytest.approx(ONE / 2)
    assert rho(make("tree", colluders=2), Public(), 1) == pytest.approx(ONE)


def test_another_tree_each_round_spreads_the_cost() -> None:
    made = make("tree", Topology.complete(6), trees="each-round", rounds=40)
    sizes = [len(made.tree(k).component(1, frozenset({0}))) for k in range(40)]
    expected = sum(1 / (2 * 2.0**2 * size) for size in sizes)
    assert len(set(sizes)) > 1
    assert rho(made, Peer(party=0), 1) == pytest.approx(expected)


@pytest.mark.parametrize("observer", [Eavesdropper(), Peer(party=2), Coalition(parties=(0, 4)), Public()])
def test_a_masked_sum_has_the_guarantee_of_a_secure_sum(observer: Any) -> None:
    central = make("secure-sum", None, colluders=2)
    assert rho(make("masked-sum", colluders=2), observer, 3) == pytest.approx(rho(central, Server(), 3))


def test_a_larger_coalition_pays_for_the_shares_that_are_left() -> None:
    made = make("masked-sum", Topology.ring(6), colluders=1, masks=Topology.ring(6))
    # Nodes 1 and 4 take the ring apart: node 2 is left with node 3, whose share is one of four.
    assert rho(made, Coalition(parties=(1, 4)), 2) == pytest.approx(4 * rho(made, Peer(party=1), 2))


def test_a_hidden_sample_amplifies_for_whoever_sees_all_links() -> None:
    parties = replace(PROBLEM, unit="party")
    costs = [
        plan(
            parties,
            ALGORITHM,
            rounds=4,
            noise=GaussianNoise(multiplier=3.0),
            trust="masked-sum",
            topology=PATH,
            colluders=1,
            schedule=schedule,
        )
        .guarantee(Eavesdropper(), 1e-5)
        .epsilon(1e-5)
        for schedule in (None, PoissonSubset(0.1))
    ]
    assert costs[1] < 0.5 * costs[0]


def test_the_target_is_met_for_whoever_sees_all_links() -> None:
    for trust, colluders in (("tree", 0), ("masked-sum", 1)):
        made = make(trust, noise=None, target=EpsilonDelta(epsilon=1.0, delta=1e-5), colluders=colluders)
        assert made.guarantee(Eavesdropper(), 1e-5).epsilon(1e-5) == pytest.approx(1.0, abs=1e-3)


def test_the_card_follows_from_its_parameters() -> None:
    for made in (make("tree", trees="each-round"), make("masked-sum", colluders=1)):
        assert differences(made.card(1e-5)) == []


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"trust": "tree", "topology": None}, "give its topology"),
        ({"trust": "masked-sum", "colluders": 0}, "a peer that looks is counted"),
        ({"trust": "masked-sum", "colluders": 5}, "may collude"),
        ({"trust": "masked-sum", "colluders": 1, "masks": PATH}, "node connectivity must be larger"),
        ({"trust": "masked-sum", "colluders": 2, "masks": Topology.ring(6)}, "node connectivity must be larger"),
        ({"trust": "tree", "schedule": FixedSubset(2)}, "only its own coin"),
        ({"trust": "tree", "schedule": Cyclic()}, "only its own coin"),
        ({"trust": "local", "trees": "each-round"}, "belong to sums on a graph"),
    ],
)
def test_what_cannot_be_summed_on_a_graph_is_refused(what: dict[str, Any], said: str) -> None:
    with pytest.raises(ConsensoError, match=said):
        make(**what)


def test_noise_that_stays_in_states_is_refused() -> None:
    example = ConsensusADMM.example()
    ring = Topology.ring(example.problem.parties)
    with pytest.raises(PreconditionError, match="stays in the states"):
        plan(example.problem, example.algorithm, rounds=3, noise=example.noise, trust="tree", topology=ring)


def test_a_peer_algorithm_has_no_sums() -> None:
    example = IPADMM.example()
    with pytest.raises(ConsensoError, match="single values"):
        plan(example.problem, example.algorithm, rounds=3, noise=example.noise, trust="tree", topology=example.topology)
