"""A compiled round of many parties is the general engine's: the same noise and ledger and, up to rounding, numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from consenso.algorithms.consensus import ConsensusADMM
from consenso.engine.compiled import compile_rounds
from consenso.engine.in_process import InProcessRun
from consenso.engine.run import run
from consenso.errors import ConsensoError, UndeclaredReleaseError
from consenso.losses import Logistic, Softmax, Squared
from consenso.planning.plan import Plan, plan
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, NoNoise, Polynomial
from consenso.privacy.releaser import prepare_compiled
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.samplers import Safe, Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, Ball, Box, NoPenalty
from consenso.schedules import Everyone, FixedSubset, PoissonSubset
from consenso.shards import Shards
from consenso.subproblems import Worst

PARTIES, FEATURES, ROUNDS = 75, 5, 12
NOISE = GaussianNoise(multiplier=0.3)


def made(
    algorithm=None,
    loss=None,
    *,
    features=FEATURES,
    regularizer=None,
    rounds=ROUNDS,
    sizes=None,
    matrix=np.asarray,
    facts=None,
    **settings,
) -> tuple[Plan, Shards]:
    """A plan and its data: consensus ADMM with everyone in every round, unless said otherwise."""
    rng = np.random.default_rng(5)
    loss, sizes = loss or Logistic(), np.ones(PARTIES, int) if sizes is None else np.array(sizes)
    X = 0.6 * rng.normal(size=(sizes.sum(), features))
    X[3] = 0.0
    targets = {
        "sign": rng.choice([-1.0, 1.0], len(X)),
        "real": 2.0 * rng.normal(size=len(X)),
        "class": rng.integers(0, loss.outputs, len(X)),
    }[loss.targets]
    problem = Problem(
        loss=loss,
        regularizer=regularizer or L1(strength=0.02),
        features=features,
        row_bound=1.0,
        target_bound=3.0 if loss.targets == "real" else None,
        **({"unit": "party", "sizes": sizes} | (facts or {})),
    )
    shards = Shards.build(problem, matrix(X), targets, np.concatenate(([0], np.cumsum(sizes))))
    settings = {"noise": NOISE, "sampler": Seeded(0)} | settings
    return plan(problem, algorithm or ConsensusADMM(), rounds=rounds, **settings), shards


def finished(planned: Plan, shards: Shards, **engine):
    progress = InProcessRun(planned, shards, **engine)
    for _ in progress.rounds():
        pass
    return progress


def general(planned: Plan, shards: Shards, **engine):
    """The same run without compiled rounds."""
    return finished(planned, shards, plain=True, **engine)


def assert_same(one, other) -> None:
    """The tolerance of the law that engines agree when they batch their parties differently."""
    for record, like in ((one.hub, other.hub), (one.state, other.state)):
        for name, value in vars(like).items():
            np.testing.assert_allclose(getattr(record, name), value, rtol=1e-10, atol=1e-10, err_msg=name)
    assert one.round == other.round
    assert np.array_equal(one.previous, other.previous)


def assert_same_ledger(one, other) -> None:
    assert len(one.entries) == len(other.entries)
    for mine, theirs in zip(one.entries, other.entries, strict=True):
        assert (mine.round, mine.name, mine.bound, mine.share) == (
            theirs.round,
            theirs.name,
            theirs.bound,
            theirs.share,
        )
        np.testing.assert_array_equal(mine.scale, theirs.scale)
        np.testing.assert_array_equal(mine.cohort, theirs.cohort)


class TestTheSameRounds:
    @pytest.fixture(autouse=True)
    def _only_compiled(self, monkeypatch) -> None:
        """A step that the algorithm itself takes in a compiled run is a failure."""
        local = ConsensusADMM.local
        self.steps = 0

        def counted(algorithm, *arguments):
            self.steps += 1
            return local(algorithm, *arguments)

        monkeypatch.setattr(ConsensusADMM, "local", counted)

    def check(self, planned: Plan, shards: Shards) -> None:
        compiled = finished(planned, shards)
        assert self.steps == 0
        plain = general(planned, shards)
        for other in (plain, finished(planned, shards, one_by_one=True)):
            assert_same(compiled, other)
        assert self.steps > 0
        assert_same_ledger(compiled, plain)

    @pytest.mark.parametrize(
        "algorithm",
        [ConsensusADMM(), ConsensusADMM(step=40.0, relaxation=0.7), ConsensusADMM(clip=0.2)],
        ids=repr,
    )
    def test_with_other_parameters(self, algorithm) -> None:
        self.check(*made(algorithm))

    def test_for_the_squared_loss_which_needs_a_clip(self) -> None:
        self.check(*made(ConsensusADMM(clip=0.3), Squared()))

    @pytest.mark.sweep
    @pytest.mark.parametrize("schedule", [Everyone(), PoissonSubset(0.4), FixedSubset(33)], ids=repr)
    @pytest.mark.parametrize("regularizer", [NoPenalty(), Box(low=-0.05, high=0.1), Ball(radius=0.2)], ids=repr)
    def test_for_every_schedule_and_regularizer(self, schedule, regularizer) -> None:
        self.check(*made(schedule=schedule, regularizer=regularizer))

    @pytest.mark.sweep
    @pytest.mark.parametrize(
        "noise", [NoNoise(), GaussianNoise(multiplier=Polynomial(first=1.0, power=-0.5))], ids=repr
    )
    @pytest.mark.parametrize("matrix", [np.asarray, np.float32], ids=["double", "single"])
    def test_for_other_noise_and_rows(self, noise, matrix) -> None:
        self.check(*made(noise=noise, matrix=matrix))

    @pytest.mark.parametrize("features", [1, 4, 67, 600])
    def test_for_few_and_many_features(self, features) -> None:
        self.check(*made(features=features, rounds=4))

    @pytest.mark.parametrize("equal", ["noise", "epsilon"])
    def test_where_parties_weigh_differently(self, equal) -> None:
        # Declared sizes are upper bounds under add-remove: who holds one row of several weighs it accordingly.
        facts = {"sizes": 1 + np.arange(PARTIES) % 3, "unit": "record", "adjacency": "add-remove", "weighting": "party"}
        planned, shards = made(facts=facts, schedule=PoissonSubset(0.5), equal=equal)
        self.check(planned, shards)
        assert isinstance(finished(planned, shards).entries[0].scale, np.ndarray) is (equal == "epsilon")

    def test_in_several_cohorts(self, monkeypatch) -> None:
        monkeypatch.setattr("consenso.engine.in_process.COHORT_NUMBERS", 32 * FEATURES)
        planned, shards = made(rounds=3)
        assert len(finished(planned, shards).entries) == 9
        self.check(planned, shards)


def test_threads_do_not_change_a_bit(monkeypatch) -> None:
    planned, shards = made()
    monkeypatch.setattr("consenso.algorithms.consensus.PIECE", 7)
    whole = {}
    for threads in (1, 3):
        monkeypatch.setattr("numba.config.NUMBA_NUM_THREADS", threads)
        whole[threads] = finished(planned, shards)
    np.testing.assert_array_equal(whole[1].hub.z, whole[3].hub.z)
    np.testing.assert_array_equal(whole[1].state.u, whole[3].state.u)


def test_traced_checkpointed_and_resumed(tmp_path: Path) -> None:
    planned, shards = made()
    whole = run(planned, shards)
    np.testing.assert_array_equal(run(planned, shards, trace=True).model, whole.model)

    def fail(done: int, _: int) -> None:
        if done > 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(planned, shards, checkpoint=tmp_path, every=3, progress=fail)
    resumed = run(planned, shards, checkpoint=tmp_path, every=3)
    np.testing.assert_array_equal(resumed.model, whole.model)
    assert resumed.entries == whole.entries


def test_parties_that_are_not_certified_are_left_to_the_general_engine(monkeypatch) -> None:
    # Most points are longer in some rounds, and shorter in others.
    monkeypatch.setattr(Worst, "find_longest", lambda self, tolerance: np.full(len(self.weights), 10.0))
    planned, shards = made(ConsensusADMM(step=10.0))
    local, left = ConsensusADMM.local, []

    def counted(self, facts, *arguments):
        left.append(len(facts.cohort))
        return local(self, facts, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(ConsensusADMM, "local", counted)
        mixed = finished(planned, shards)
    assert 0 < sum(left) < ROUNDS * PARTIES
    alone = finished(planned, shards, one_by_one=True)
    np.testing.assert_allclose(mixed.hub.z, alone.hub.z, rtol=1e-9)
    # Everybody releases once in every round, whoever takes the step.
    for round_ in range(ROUNDS):
        cohorts = [entry.cohort for entry in mixed.entries if entry.round == round_]
        assert np.array_equal(np.sort(np.concatenate(cohorts)), np.arange(PARTIES))
    strict, shards = made(ConsensusADMM(step=1e9, tolerance=1e-15))
    with pytest.raises(ConsensoError, match="certif"):
        run(strict, shards)


class Subclass(ConsensusADMM):
    """Has another step."""

    def local(self, *arguments):
        return super().local(*arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": Subclass()},
        {"loss": Softmax(classes=3)},
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
    assert compile_rounds(planned, shards).cohort is None


def test_a_probe_is_left_to_the_general_engine() -> None:
    planned, shards = made()
    assert compile_rounds(planned, shards).cohort is not None
    probed = replace(planned, probe=lambda *seen: None)
    assert compile_rounds(probed, shards).cohort is None


@pytest.mark.parametrize("change", [{"times": 2}, {"at": "sum"}, {"adaptive": True}, {"parts": True}, {"norm": 1}])
def test_a_passage_is_refused_to_what_a_compiled_step_cannot_release(change) -> None:
    planned, _ = made()
    spec, releases = planned, planned.algorithm.releases(planned.facts)
    largest = largest_bounds(spec, planned.algorithm.releases, 0)
    assert prepare_compiled(spec, spec.facts, releases, largest=largest).entry.name == "residual"
    for wrong in ((replace(releases[0], **change),), releases * 2):
        with pytest.raises(UndeclaredReleaseError, match="through its releaser"):
            prepare_compiled(spec, spec.facts, wrong, largest=largest)
    trusting = replace(spec, trust="curator")
    with pytest.raises(UndeclaredReleaseError, match="through its releaser"):
        prepare_compiled(trusting, spec.facts, releases, largest=largest)
