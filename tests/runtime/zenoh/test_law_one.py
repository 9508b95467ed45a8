"""Law 1: under a seed the network engines give the local engine's model bit for bit, or refuse before anything starts.

Every discovered algorithm, in every schedule and under every trust of its example. Masked sums have their own tests.
"""

from __future__ import annotations

import numpy as np
import pytest

from consenso.algorithms import discover
from consenso.errors import InputError
from consenso.runtime.hub import check_star
from consenso.runtime.node import check_graph
from consenso.runtime.walker import check_walk
from consenso.schedules import RandomWalk
from consenso.testing.laws import planned, settings_of
from consenso.topology import Topology

PLANS = [
    pytest.param(made, id=f"{name}-{type(made.setting.schedule).__name__}-{made.setting.doorway.trust}")
    for name, definition in discover().items()
    for made in settings_of(definition.example())
    if made.setting.doorway.trust != "secure-sum"
]


def refusal(check, made) -> str | None:
    try:
        check(made)
    except InputError as refused:
        return str(refused)
    return None


def runs(check, made) -> bool:
    return refusal(check, made) is None


@pytest.mark.parametrize("made", PLANS)
def test_what_an_engine_cannot_run_is_refused_before_anything_starts(made):
    reasons = [refusal(check, made) for check in (check_star, check_graph, check_walk)]
    assert reasons.count(None) == (0 if _nobody_runs(made) else 1)
    for reason in reasons:
        assert reason is None or (type(made.algorithm).__name__ in reason and ";" in reason)


def _nobody_runs(made) -> bool:
    """A curator alone has nobody to send to; on a walk there is no curator."""
    walks = isinstance(made.setting.schedule, RandomWalk)
    return made.setting.doorway.trust == "curator" and (walks or made.setting.parties == 1)


@pytest.mark.parametrize("made", [each for each in PLANS if runs(check_star, each.values[0])])
def test_a_star_agrees_with_the_local_engine(world, made):
    here = world(made)
    hub, star = here.hub()
    clients = [here.client(party) for party in here.names]
    rounds = list(hub.rounds(star))
    assert not any(done.missing for done in rounds)
    expected = here.local()
    assert np.array_equal(hub.model(), expected)
    assert star.end(hub.model_bytes(), seconds=20) == tuple(here.names)
    star.close()
    here.join()
    assert not here.errors
    assert all(np.array_equal(client._party.model, expected) for client in clients)


@pytest.mark.parametrize("made", [each for each in PLANS if runs(check_graph, each.values[0])])
def test_neighbours_agree_with_the_local_engine(world, made):
    check_peers(world, made)


@pytest.mark.parametrize("made", [each for each in PLANS if runs(check_walk, each.values[0])])
def test_a_walk_agrees_with_the_local_engine(world, made):
    check_peers(world, made)


@pytest.mark.parametrize("name", ["ConsensusADMM", "StatelessWalk"])
def test_a_walk_on_a_graph_agrees_with_the_local_engine(world, name):
    check_peers(world, planned(discover()[name].example(), schedule=RandomWalk(topology=Topology.star(6)), rounds=25))


def check_peers(world, made) -> None:
    here = world(made)
    peers = [here.peer(party) for party in here.names]
    here.join()
    assert not here.errors
    expected = here.local()
    assert all(np.array_equal(peer.worker.model(), expected) for peer in peers)
