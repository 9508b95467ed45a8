"""Attacks on sums on a graph: pairs at every distance and coalitions stay below the claims, planted faults do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.audit.attack import Effort, audit
from consenso.planning.plan import Plan, plan
from consenso.privacy import composition
from consenso.privacy.graph_views import count_hiding
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Coalition, Eavesdropper, Peer
from consenso.regularizers import NoPenalty
from consenso.testing.exact_values.compare import compare
from consenso.testing.graph_sums import plans_of, sums_need_no_server
from consenso.topology import Topology

EXAMPLE = DPSGD.example()
EFFORT = Effort(trials=2000, seed=5)


def make(**changes: Any) -> Plan:
    problem = replace(EXAMPLE.problem, sizes=np.full(6, 1), features=1, regularizer=NoPenalty())
    settings: dict[str, Any] = {
        "rounds": 3,
        "noise": GaussianNoise(multiplier=1.5),
        "topology": Topology.path(6),
        "trust": "tree",
    }
    return plan(problem, replace(EXAMPLE.algorithm, rate=1.0), **(settings | changes))


def test_pairs_at_every_distance_and_coalitions_learn_no_more_than_is_claimed() -> None:
    observers = [Eavesdropper(), *(Peer(party=1 + steps) for steps in (1, 2, 3, 4)), Coalition(parties=(2, 4))]
    found = audit(make(), EFFORT, observers=observers, party=1)
    assert not any(finding.refuted for finding in found)
    # Node 1 is hidden among 2, 3, 4 and 5 nodes: the further away, the less is learnt, and the attack sees that.
    reached = [finding.lower for finding in found[1:5]]
    assert reached == sorted(reached, reverse=True)
    assert all(finding.lower > 0.5 * finding.claimed for finding in found)


def test_masked_pairs_learn_no_more_than_is_claimed() -> None:
    found = audit(
        make(trust="masked-sum", colluders=2),
        EFFORT,
        observers=[Eavesdropper(), Peer(party=3), Coalition(parties=(0, 2))],
        party=1,
    )
    assert not any(finding.refuted for finding in found)


# --- planted faults --------------------------------------------------------------------------------------------------


def test_a_branch_that_is_counted_with_a_wrong_size_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "count_hiding", lambda *at: min(4, count_hiding(*at) + 1))
    with pytest.raises(AssertionError, match="guarantees on a graph are false"):
        sums_need_no_server(EXAMPLE)


@dataclass(frozen=True, kw_only=True)
class LeftOutByOne(GaussianNoise):
    def sample(self, values: Any, sensitivity: Any, round: int, key: Any, sampler: Any) -> Any:  # noqa: A002
        noisy = super().sample(values, sensitivity, round, key, sampler)
        return np.where((key.parties == 2)[:, None], values, noisy)


def test_noise_that_one_node_leaves_out_is_seen() -> None:
    made, attacked, _ = next(iter(plans_of(EXAMPLE)))
    assert not any(finding.below for finding in compare(made, attacked))
    noise = {name: LeftOutByOne(multiplier=each.multiplier) for name, each in made.noise.items()}
    faulty = replace(made, noise=noise, colluders=0)
    assert any(finding.below for finding in compare(faulty, attacked))
