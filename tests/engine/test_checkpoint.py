from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.gradient_admm import GradientADMM
from consenso.algorithms.ipadmm import IPADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Safe, Seeded
from consenso.schedules import PoissonSubset, RandomOrder, RandomStopping, RandomWalk
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.worlds import draw
from consenso.topology import Topology


class StopError(Exception):
    """The power fails."""


def interrupted(made, shards, folder: Path, after: int, every: int = 1):
    def fail(done: int, planned: int) -> None:
        if done == after:
            raise StopError

    with pytest.raises(StopError):
        run(made, shards, checkpoint=folder, every=every, progress=fail)


def shards_of(problem) -> Shards:
    return Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))


CASES = [
    (ConsensusADMM, None),
    (ConsensusADMM, PoissonSubset(0.5)),
    (ConsensusADMM, RandomWalk()),
    (DualConsensusADMM, None),
    (PreconditionedFixedPoint, None),
    (GradientADMM, RandomOrder()),
    (GradientADMM, RandomStopping()),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("definition", "schedule"), CASES, ids=repr)
@pytest.mark.parametrize("every", [1, 3])
def test_a_resumed_run_is_the_run(definition, schedule, every: int, tmp_path: Path) -> None:
    example = definition.example()
    made = laws.plan_example(example, **({"schedule": schedule} if schedule else {}))
    shards = shards_of(example.problem)
    whole = run(made, shards)
    if whole.rounds > 4:
        interrupted(made, shards, tmp_path, after=4, every=every)
    resumed = run(made, shards, checkpoint=tmp_path, every=every)
    np.testing.assert_array_equal(resumed.model, whole.model)
    assert [(e.round, e.name, np.asarray(e.scale).tolist()) for e in resumed.entries] == [
        (e.round, e.name, np.asarray(e.scale).tolist()) for e in whole.entries
    ]


def test_safe_noise_is_never_drawn_twice_for_a_round(tmp_path: Path) -> None:
    example = DualConsensusADMM.example()
    made = plan(example.problem, example.algorithm, rounds=8, noise=GaussianNoise(multiplier=1.0), sampler=Safe())
    shards = shards_of(example.problem)
    interrupted(made, shards, tmp_path, after=5, every=3)  # rounds 3 and 4 were released after the last checkpoint
    resumed = run(made, shards, checkpoint=tmp_path, every=3)
    rounds = sorted({entry.round for entry in resumed.entries})
    assert rounds == [0, 1, 2, 5, 6, 7]
    assert resumed.rounds == 8


def test_a_checkpoint_holds_private_states_and_is_for_its_owner_only(tmp_path: Path) -> None:
    example = DualConsensusADMM.example()
    interrupted(laws.plan_example(example), shards_of(example.problem), tmp_path, after=2)
    assert (tmp_path / "checkpoint.npz").stat().st_mode & 0o077 == 0


def test_a_secret_order_survives_a_restart(tmp_path: Path) -> None:
    example = GradientADMM.example()
    n = example.problem.parties
    made = laws.plan_example(example, schedule=RandomOrder(), rounds=n, sampler=Safe())
    shards = shards_of(example.problem)
    interrupted(made, shards, tmp_path, after=3)
    resumed = run(made, shards, checkpoint=tmp_path)
    assert sorted(int(entry.cohort[0]) for entry in resumed.entries) == list(range(n))


@pytest.mark.parametrize(
    "change",
    [
        lambda e, m: laws.plan_example(e, noise=GaussianNoise(multiplier=9.0)),
        lambda e, m: laws.plan_example(e, sampler=Seeded(8)),
        lambda e, m: laws.plan_example(e, rounds=e.rounds + 1),
        lambda e, m: laws.plan_example(replace(e, algorithm=ConsensusADMM(step=0.7))),
        lambda e, m: laws.plan_example(replace(e, problem=replace(e.problem, row_bound=0.5))),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(change, tmp_path: Path) -> None:
    example = ConsensusADMM.example()
    made = laws.plan_example(example)
    interrupted(made, shards_of(example.problem), tmp_path, after=2)
    other = change(example, made)
    with pytest.raises(InputError, match="belongs to another"):
        run(other, shards_of(other.problem), checkpoint=tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        Topology.ring(6),
        # Every node keeps its degree, hence its noise and its bounds: only the edges tell.
        Topology.from_edges(6, [(0, 1), (1, 4), (2, 3), (3, 4), (2, 5), (0, 5), (0, 3)]),
    ],
    ids=["ring", "same degrees"],
)
def test_a_checkpoint_of_peers_on_another_graph_is_refused(other: Topology, tmp_path: Path) -> None:
    example = IPADMM.example()
    shards = shards_of(example.problem)
    interrupted(laws.plan_example(example), shards, tmp_path, after=2)
    with pytest.raises(InputError, match="belongs to another"):
        run(laws.plan_example(example, topology=other), shards, checkpoint=tmp_path)
    assert run(laws.plan_example(example), shards, checkpoint=tmp_path).rounds == example.rounds
