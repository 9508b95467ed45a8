"""A walk compiled is the walk of the general engine: the same hops, noise, ledger and, up to rounding, numbers."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.stateless_walk import StatelessWalk
from consenso.engine import in_process
from consenso.engine.coins import make_coins
from consenso.engine.compiled import compile_rounds
from consenso.engine.in_process import InProcessRun
from consenso.engine.release_records import ReleaseRecords, VisitRecords
from consenso.engine.run import run
from consenso.engine.walk import CompiledWalk
from consenso.engine.walk_draws import draw_noise
from consenso.errors import ConsensoError
from consenso.losses import Absolute, Hinge, Logistic, Softmax, Squared
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, NoNoise, Polynomial
from consenso.privacy.releaser import ReleaseRecord
from consenso.privacy.samplers import Key, Safe, Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, NoPenalty, Unpenalized
from consenso.schedules import ROUND, FixedSubset, RandomWalk
from consenso.shards import Shards
from consenso.subproblems import Worst
from consenso.topology import Topology

PARTIES, FEATURES, ROUNDS = 9, 5, 150
NOISE, FALLING = GaussianNoise(multiplier=0.1), GaussianNoise(multiplier=Polynomial(first=1.0, power=-0.5))


def made(
    algorithm=None,
    loss=None,
    *,
    regularizer=None,
    schedule=None,
    rounds=ROUNDS,
    sizes=None,
    matrix=np.asarray,
    **settings,
) -> tuple[Plan, Shards]:
    """A plan and its data: consensus ADMM on a uniform walk over logistic records, unless said otherwise."""
    rng = np.random.default_rng(3)
    loss, sizes = loss or Logistic(), np.ones(PARTIES, int) if sizes is None else np.array(sizes)
    X = rng.normal(size=(sizes.sum(), FEATURES))
    targets = {
        "sign": rng.choice([-1.0, 1.0], len(X)),
        "real": 2.0 * rng.normal(size=len(X)),
        "class": rng.integers(0, loss.outputs, len(X)),
    }[loss.targets]
    problem = Problem(
        loss=loss,
        regularizer=regularizer or L1(strength=0.02),
        features=FEATURES,
        sizes=sizes,
        row_bound=1.0,
        target_bound=3.0 if loss.targets == "real" else None,
        unit="party",
    )
    shards = Shards.build(problem, matrix(X), targets, np.concatenate(([0], np.cumsum(sizes))))
    settings = {"noise": NOISE, "schedule": schedule or RandomWalk()} | settings
    return plan(problem, algorithm or ConsensusADMM(), rounds=rounds, **({"sampler": Seeded(0)} | settings)), shards


def finished(planned: Plan, shards: Shards, **engine):
    progress = InProcessRun(planned, shards, **engine)
    for _ in progress.rounds():
        pass
    return progress


def assert_same(one, other) -> None:
    for record, like in ((one.hub, other.hub), (one.state, other.state)):
        for name, value in vars(like).items():
            np.testing.assert_allclose(getattr(record, name), value, rtol=1e-9, atol=1e-9, err_msg=name)
    assert one.round == other.round
    assert np.array_equal(one.previous, other.previous)
    assert one.entries == other.entries
    assert [entry.cohort.tolist() for entry in one.entries] == [entry.cohort.tolist() for entry in other.entries]


ALGORITHMS = (
    ConsensusADMM(),
    ConsensusADMM(step=40.0, relaxation=0.7),
    ConsensusADMM(clip=0.2),
    StatelessWalk(step=2.0, relaxation=3.0),
)
GRAPHS = (None, Topology.ring(PARTIES), Topology.complete(PARTIES), Topology.star(PARTIES))


def name_of(value: object) -> str:
    return f"graph{len(value.edges)}" if isinstance(value, Topology) else repr(value)


class TestTheSameRounds:
    @pytest.fixture(autouse=True)
    def _only_compiled(self, monkeypatch) -> None:
        """A general step of a run that is not asked to go party by party is a failure."""
        general = in_process.InProcessRun._take_steps

        def tripwire(self, *arguments):
            assert self._one_by_one
            return general(self, *arguments)

        monkeypatch.setattr(in_process.InProcessRun, "_take_steps", tripwire)

    @pytest.mark.parametrize("algorithm", ALGORITHMS, ids=name_of)
    def test_with_other_parameters(self, algorithm) -> None:
        planned, shards = made(algorithm)
        assert_same(finished(planned, shards), finished(planned, shards, one_by_one=True))

    def test_for_the_squared_loss_which_needs_a_clip(self) -> None:
        planned, shards = made(ConsensusADMM(clip=0.3), Squared())
        assert_same(finished(planned, shards), finished(planned, shards, one_by_one=True))

    @pytest.mark.parametrize("algorithm", [ALGORITHMS[0], ALGORITHMS[-1]], ids=name_of)
    @pytest.mark.parametrize("graph", GRAPHS, ids=name_of)
    def test_for_every_graph(self, algorithm, graph) -> None:
        planned, shards = made(algorithm, schedule=RandomWalk(graph))
        assert_same(finished(planned, shards), finished(planned, shards, one_by_one=True))

    @pytest.mark.sweep
    @pytest.mark.parametrize(
        "noise", [NoNoise(), GaussianNoise(multiplier=Polynomial(first=1.0, power=-0.5))], ids=repr
    )
    @pytest.mark.parametrize("matrix", [np.asarray, np.float32], ids=["double", "single"])
    def test_for_other_noise_and_rows(self, noise, matrix) -> None:
        planned, shards = made(noise=noise, matrix=matrix)
        assert_same(finished(planned, shards), finished(planned, shards, one_by_one=True))

    def test_with_a_row_of_zeros_and_many_features(self) -> None:
        rng = np.random.default_rng(0)
        for features in (1, 2, 8, 67):
            X = rng.normal(size=(4, features))
            X[2] = 0.0
            for loss in (Logistic(), Absolute(), Hinge()):
                bound = 3.0 if loss.targets == "real" else None
                problem = Problem(
                    loss=loss,
                    regularizer=NoPenalty(),
                    features=features,
                    sizes=np.ones(4, int),
                    row_bound=2.0,
                    target_bound=bound,
                )
                shards = Shards.build(problem, X, np.array([1.0, -1.0, 1.0, -1.0]), np.arange(5))
                planned = plan(
                    problem, ConsensusADMM(), rounds=60, noise=NOISE, schedule=RandomWalk(), sampler=Seeded(0)
                )
                assert_same(finished(planned, shards), finished(planned, shards, one_by_one=True))

    def test_in_pieces_and_blocks(self, monkeypatch) -> None:
        planned, shards = made()
        whole = finished(planned, shards)
        monkeypatch.setattr("consenso.engine.walk.AHEAD_NUMBERS", 7 * FEATURES)
        monkeypatch.setattr("consenso.engine.walk.BLOCK", 40)
        pieces = finished(planned, shards, stride=60)
        np.testing.assert_array_equal(pieces.hub.z, whole.hub.z)
        assert pieces.entries == whole.entries

    def test_where_the_thread_that_draws_ahead_gets_no_turn(self, monkeypatch) -> None:
        class Idle:
            def submit(self, *call) -> Future:
                return Future()

        planned, shards = made()
        whole = finished(planned, shards)
        monkeypatch.setattr("consenso.engine.walk.AHEAD_NUMBERS", 7 * FEATURES)
        monkeypatch.setattr("consenso.engine.walk.CompiledWalk._pool", Idle())
        alone = finished(planned, shards)
        np.testing.assert_array_equal(alone.hub.z, whole.hub.z)
        assert alone.entries == whole.entries

    def test_traced_checkpointed_and_resumed(self, tmp_path: Path) -> None:
        planned, shards = made()
        whole = run(planned, shards)
        traced = run(planned, shards, trace=True)
        assert len(traced.trace.columns["model movement"]) == ROUNDS
        np.testing.assert_array_equal(traced.model, whole.model)

        def fail(done: int, _: int) -> None:
            if done > 70:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(planned, shards, checkpoint=tmp_path, every=30, progress=fail)
        resumed = run(planned, shards, checkpoint=tmp_path, every=30)
        np.testing.assert_array_equal(resumed.model, whole.model)
        assert resumed.entries == whole.entries


def test_a_round_that_is_not_certified_is_left_to_the_general_engine() -> None:
    planned, shards = made(ConsensusADMM(step=10.0), rounds=60)
    general, calls = in_process.InProcessRun._take_steps, []

    def counted(self, *rest):
        calls.append(rest)
        return general(self, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_process.InProcessRun, "_take_steps", counted)
        # Some points are longer.
        patch.setattr(Worst, "find_longest", lambda self, tolerance: np.full(len(self.weights), 3.0))
        mixed = finished(planned, shards)
    assert 0 < len(calls) < 60
    alone = finished(planned, shards, one_by_one=True)
    np.testing.assert_allclose(mixed.hub.z, alone.hub.z, rtol=1e-9)
    assert mixed.entries == alone.entries
    strict, shards = made(ConsensusADMM(step=1e9, tolerance=1e-15))
    with pytest.raises(ConsensoError, match="certif"):
        run(strict, shards)


def walk_of(planned: Plan, shards: Shards) -> CompiledWalk | None:
    rounds = compile_rounds(planned, shards).walk
    possible = rounds is not None and isinstance(planned.schedule, RandomWalk)
    return CompiledWalk(planned, rounds) if possible else None


class Subclass(ConsensusADMM):
    """Has another step."""

    def local(self, *arguments):
        return super().local(*arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": Subclass()},
        {"loss": Softmax(classes=3)},
        {"regularizer": Ball(radius=1.0)},
        {"regularizer": Unpenalized(inner=Ball(radius=1.0), last=1)},
        {"schedule": FixedSubset(1)},
        {"noise": LaplaceNoise(multiplier=1.0)},
        {"sampler": Safe()},
        {"trust": "curator"},
        {"trust": "secure-sum"},
        {"sizes": (1,) * 8 + (2,)},
        {"matrix": sparse.csr_array},
    ],
    ids=repr,
)
def test_what_is_not_compiled_is_left_to_the_general_engine(change) -> None:
    planned, shards = made(**change)
    assert walk_of(planned, shards) is None


def test_a_probe_is_left_to_the_general_engine() -> None:
    planned, shards = made()
    assert walk_of(planned, shards) is not None
    probed = replace(planned, probe=lambda *seen: None)
    assert walk_of(probed, shards) is None


@pytest.mark.parametrize("graph", GRAPHS, ids=name_of)
def test_the_path_is_the_schedules(graph) -> None:
    schedule = RandomWalk(graph)
    planned, shards = made(schedule=schedule, sampler=Seeded(2**64 - 1))
    coins, walk = make_coins(planned.sampler), walk_of(planned, shards)
    previous, expected = None, []
    for round_ in range(300):
        previous = schedule.active(round_, previous, PARTIES, coins)
        expected.append(int(previous[0]))
    assert walk._path(None, 0, 300).tolist() == expected
    assert walk._path(np.array([expected[99]]), 100, 200).tolist() == expected[100:]
    assert coins(0, ROUND, 1).shape == (1,)


@pytest.mark.parametrize("features", [1, 3, 4, 64, 70])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_the_noise_is_the_samplers(features: int, seed: int) -> None:
    path, first = np.random.default_rng(0).integers(0, 10**6, 400), 12345
    drawn = np.empty((len(path), features))
    draw_noise(np.uint64(seed), (np.uint64(0), np.uint64(0)), path, first, drawn)
    zero = np.zeros((1, features))
    for k, party in enumerate(path):
        key = Key(parties=np.array([party]), round=first + k, release=0, repetition=0)
        expected = Seeded(seed).gaussian(zero, 1.0, key, sensitivity=1.0)[0]
        np.testing.assert_allclose(drawn[k], expected, rtol=1e-14, atol=1e-15)


def test_entries_of_walks_and_of_single_rounds_are_one_sequence() -> None:
    path, scales = np.array([4, 2, 2]), np.array([0.1, 0.2, 0.3])
    entries = ReleaseRecords([ReleaseRecord(0, "a", np.arange(5), 1.0, 1.0, 1.0)])
    entries.extend(VisitRecords(1, "b", path, scales))
    entries.append(ReleaseRecord(4, "c", np.arange(2), 1.0, 0.5, 1.0))
    entries.append(ReleaseRecord(5, "d", np.arange(2), 1.0, 0.5, 1.0))
    written = [*entries]
    assert [(e.round, e.name) for e in written] == [(0, "a"), (1, "b"), (2, "b"), (3, "b"), (4, "c"), (5, "d")]
    assert len(entries) == 6
    assert [entries[k] for k in range(-6, 6)] == written + written
    assert entries[1:4] == written[1:4]
    assert (entries[2].cohort.tolist(), entries[2].scale) == ([2], 0.2)
    assert entries == ReleaseRecords(written)
    assert entries != ReleaseRecords(written[:5])
    with pytest.raises(IndexError):
        entries[6]


@pytest.mark.slow
def test_a_walk_is_distributed_as_federated_training_with_one_user_a_round() -> None:
    """A uniform walk and samples of one user have the same law; two coordinates at 1e-4 each: false alarms 2e-4."""
    seeds, rounds = 1000, 5
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=0.1), features=2, sizes=np.ones(3, int), row_bound=1.0, unit="party"
    )
    rows = np.array([[0.9, 0.1], [-0.5, 0.6], [0.2, -0.8]])
    shards = Shards.build(problem, rows, np.array([1.0, 1.0, -1.0]), np.arange(4))
    models = []
    for schedule, first in ((RandomWalk(), 0), (FixedSubset(1), seeds)):
        planned = plan(
            problem,
            ConsensusADMM(step=4.0),
            rounds=rounds,
            noise=GaussianNoise(multiplier=0.05),
            schedule=schedule,
            sampler=Seeded(0),
        )
        drawn = [replace(planned, sampler=Seeded(first + seed)) for seed in range(seeds)]
        models.append(np.array([run(each, shards).model for each in drawn]))
    walked, sampled = models
    assert walked.std(axis=0).min() > 0.01
    for coordinate in range(2):
        assert stats.ks_2samp(walked[:, coordinate], sampled[:, coordinate]).pvalue > 1e-4
