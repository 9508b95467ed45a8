"""Law 1: under a seed the network engines give the local engine's model bit for bit, or refuse before anything starts.

Every discovered algorithm, in every schedule and under every trust of its example, masked sums included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.transport.settings import graph_runs, star_runs

from consenso.algorithms import discover
from consenso.algorithms.dp_sgd import DPSGD
from consenso.deployment.engines import list_engines, refusal
from consenso.planning.plan import Plan
from consenso.schedules import PoissonSubset, RandomWalk
from consenso.testing.laws import plan_example, settings_of
from consenso.topology import Topology

STAR, GRAPH, FLOWER = list_engines()
PLANS = [
    pytest.param(made, id=f"{name}-{type(made.schedule).__name__}-{made.trust}")
    for name, definition in discover().items()
    for made in settings_of(definition.example())
]


def what_is_planned(made: Plan) -> dict[str, object]:
    return {"algorithm": type(made.algorithm), "schedule": type(made.schedule), "trust": made.trust}


def run_by(runs: Callable[[Plan], bool], *, walks: bool = False) -> list:
    plans = [each for each in PLANS if runs(each.values[0])]
    return [each for each in plans if isinstance(each.values[0].schedule, RandomWalk) == walks]


@pytest.mark.parametrize("made", PLANS)
def test_what_an_engine_cannot_run_is_refused_before_anything_starts(made):
    reasons = {engine: refusal(engine, made) for engine in (STAR, GRAPH, FLOWER)}
    assert reasons[STAR] == reasons[FLOWER]  # they run the same hub and the same parties
    assert [reasons[STAR] is None, reasons[GRAPH] is None] == [star_runs(made), graph_runs(made)]
    for reason in filter(None, reasons.values()):
        named = type(made.algorithm).__name__ in reason or (made.trust == "secure-sum")
        assert named
        assert ";" in reason


def test_every_algorithm_is_run_by_some_engine():
    every = [*run_by(star_runs), *run_by(graph_runs), *run_by(graph_runs, walks=True)]
    ran = {type(each.values[0].algorithm).__name__ for each in every}
    assert ran == set(discover())


@pytest.mark.sweep(by=what_is_planned)
@pytest.mark.parametrize("made", run_by(star_runs))
def test_a_star_agrees_with_the_local_engine(world, made):
    here = world(made)
    hub, star = here.hub()
    clients = [here.client(party) for party in here.names]
    rounds = list(hub.rounds(star))
    assert not any(done.missing for done in rounds)
    expected = here.local()
    assert np.array_equal(hub.model(), expected)
    assert star.end(hub.model_bytes(), seconds=300) == tuple(here.names)
    star.close()
    here.join()
    assert not here.errors
    assert all(np.array_equal(client._party.model, expected) for client in clients)


@pytest.mark.parametrize("made", run_by(graph_runs))
def test_neighbours_agree_with_the_local_engine(world, made):
    check_peers(world, made)


@pytest.mark.parametrize("made", run_by(graph_runs, walks=True))
def test_a_walk_agrees_with_the_local_engine(world, made):
    check_peers(world, made)


@pytest.mark.parametrize("name", ["ConsensusADMM", "StatelessWalk"])
def test_a_walk_on_a_graph_agrees_with_the_local_engine(world, name):
    check_peers(
        world, plan_example(discover()[name].example(), schedule=RandomWalk(topology=Topology.star(6)), rounds=25)
    )


@pytest.mark.parametrize("trust", ["masked-sum", "tree"])
def test_sums_on_a_graph_agree_with_the_local_engine(world, trust):
    example = replace(DPSGD.example(), rounds=3)
    graph = Topology.from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 4)])
    check_peers(world, plan_example(example, schedule=PoissonSubset(0.7), trust=trust, topology=graph))


def check_peers(world, made) -> None:
    here = world(made)
    peers = [here.peer(party) for party in here.names]
    here.join()
    assert not here.errors
    expected = here.local()
    assert all(np.array_equal(peer.worker.model(), expected) for peer in peers)
