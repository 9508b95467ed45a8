"""One definition, several settings: what must agree agrees."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.dual_consensus import DualConsensusADMM
from consenso.algorithms.ipadmm import IPADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.engine.run import objective, run
from consenso.errors import InputError, PreconditionError, PrivacyError
from consenso.losses import Absolute, Hinge, Huber, Logistic, Softmax, Squared
from consenso.planning.plan import plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.observers import Eavesdropper, Peer, Public, Server
from consenso.privacy.samplers import Safe, Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Box, ElasticNet, NoPenalty
from consenso.schedules import (
    Certain,
    Cyclic,
    Everyone,
    FixedSubset,
    PoissonSubset,
    RandomOrder,
    RandomStopping,
    RandomWalk,
    is_fair,
)
from consenso.shards import Shards
from consenso.testing.optimum import approach_optimum, optimum
from consenso.testing.worlds import draw
from consenso.topology import Topology


def problem_of(sizes, **changes) -> Problem:
    settings = {
        "loss": Logistic(),
        "regularizer": L2(strength=0.05),
        "features": 4,
        "sizes": np.array(sizes),
        "row_bound": 1.0,
    }
    return Problem(**(settings | changes))


def stacked(problem: Problem, seed: int = 0):
    parts = draw(problem, np.random.default_rng(seed))
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([targets for _, targets in parts])


@pytest.mark.parametrize("trust", ["curator", "secure-sum"])
@pytest.mark.parametrize(
    "algorithm", [DualConsensusADMM(step=2.0), PreconditionedFixedPoint(steps=11)], ids=lambda a: type(a).__name__
)
def test_the_model_does_not_depend_on_how_records_are_spread(algorithm, trust: str) -> None:
    rows, targets = stacked(problem_of([60]))
    models, noises = [], []
    for sizes in ([60], [20, 20, 20], [1, 19, 40], [1] * 60):
        problem = problem_of(sizes)
        shards = Shards.build(problem, rows, targets, np.concatenate(([0], np.cumsum(sizes))))
        for collected, noise in ((models, NoNoise()), (noises, GaussianNoise(multiplier=0.5))):
            if trust == "secure-sum" and len(sizes) < 3:
                continue
            made = plan(problem, algorithm, rounds=12, noise=noise, trust=trust, sampler=Seeded(1))
            collected.append(run(made, shards).model)
    for model in models[1:]:
        np.testing.assert_allclose(model, models[0], rtol=1e-9, atol=1e-11)
    if trust == "curator":  # the hub draws the same noise whoever sends; shares are drawn by the parties
        for model in noises[1:]:
            np.testing.assert_allclose(model, noises[0], rtol=1e-9, atol=1e-11)


def test_federated_with_everyone_is_centralized() -> None:
    problem = problem_of([5] * 8, unit="party")
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))
    models = {
        trust: [
            run(
                plan(
                    problem,
                    ConsensusADMM(),
                    rounds=15,
                    noise=GaussianNoise(multiplier=1.0),
                    schedule=schedule,
                    trust=trust,
                    sampler=Seeded(0),
                ),
                shards,
            ).model
            for schedule in (Everyone(), PoissonSubset(1.0))
        ]
        for trust in ("curator", "local", "secure-sum")
    }
    for everyone, sampled in models.values():
        np.testing.assert_array_equal(everyone, sampled)
    np.testing.assert_array_equal(models["curator"], models["local"])
    # A secure sum adds whole steps of a grid and rounds once; the others round at every addition.
    np.testing.assert_allclose(models["secure-sum"], models["local"], rtol=1e-12)


REGULARIZERS = (NoPenalty(), L1(strength=0.02), L2(strength=0.1), ElasticNet(l1=0.02, l2=0.05), Box(low=-0.4, high=0.4))
LOSSES = (Logistic(), Softmax(classes=3), Huber(threshold=0.5), Hinge(), Absolute())


ALGORITHMS = ("consensus", "dual by party", "dual by record")


def cases():
    """Every loss with every regularizer once, by the algorithms in turn; each of these has every loss.

    Losses with kinks are slow for splitting methods, which keep swinging around the corner; by record a round is cheap.
    """
    for i, loss in enumerate(LOSSES):
        smooth = np.isfinite(loss.smoothness(1.0))
        for j, regularizer in enumerate(REGULARIZERS):
            yield ALGORITHMS[(i + j) % 3 if smooth else 2], loss, regularizer
        if not smooth:
            for algorithm, kind in zip(ALGORITHMS, (L2, Box) if i % 2 else (Box, L2), strict=False):
                yield algorithm, loss, next(each for each in REGULARIZERS if isinstance(each, kind))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("algorithm", "loss", "regularizer"), list(cases()), ids=lambda case: getattr(case, "__name__", repr(case))
)
@pytest.mark.slow
def test_without_noise_the_optimum_of_another_solver_is_reached(algorithm: str, loss, regularizer) -> None:
    bound = {"target_bound": 1.0} if loss.targets == "real" else {}
    problem = problem_of([4, 6, 5, 3], loss=loss, regularizer=regularizer, **bound)
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(5)))
    smooth = np.isfinite(loss.smoothness(1.0))
    step = 16.0 if smooth else 1.0
    made = {
        "consensus": ConsensusADMM(step=step, tolerance=1e-6),
        "dual by party": DualConsensusADMM(level="party", step=step, tolerance=1e-6),
        "dual by record": DualConsensusADMM(step=step),
    }[algorithm]
    rounds = 2000 if algorithm == "dual by record" and not smooth else 400
    reached, best = approach_optimum(plan(problem, made, rounds=rounds, noise=NoNoise()), shards, 1e-6)
    assert reached - best <= 1e-6 * max(abs(best), 1e-3)


def test_the_lasso_of_clipped_consensus() -> None:
    problem = problem_of([5] * 4, loss=Squared(), target_bound=1.0, regularizer=L1(strength=0.02))
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(5)))
    result = run(plan(problem, ConsensusADMM(clip=1e6, step=2.0), rounds=300, noise=NoNoise()), shards)
    assert objective(result.plan, shards, result.model) - optimum(problem, shards) < 1e-9


def test_logistic_regression_equals_scikit_learn() -> None:
    problem = problem_of([80], regularizer=L2(strength=0.01))
    rows, targets = stacked(problem)
    made = plan(problem, DualConsensusADMM(step=8.0), rounds=300, noise=NoNoise())
    model = run(made, Shards.build(problem, rows, targets, [0, 80])).model
    reference = LogisticRegression(C=1 / (0.01 * 80), fit_intercept=False, tol=1e-12, max_iter=10_000).fit(
        rows, targets
    )
    np.testing.assert_allclose(model, reference.coef_[0], atol=1e-6)


def test_calibration_meets_the_target_for_the_named_observer() -> None:
    problem = problem_of([10] * 5, unit="record", adjacency="add-remove")
    for observer in (Public(), Server(), Eavesdropper()):
        target = EpsilonDelta(epsilon=1.0, delta=1e-5)
        made = plan(problem, DualConsensusADMM(), rounds=20, trust="secure-sum", target=target, observer=observer)
        reached = made.guarantee(observer, 1e-5).epsilon(1e-5)
        assert 0.999 <= reached <= 1.0


def test_who_sees_less_learns_no_more() -> None:
    problem = problem_of([5] * 6, unit="party")
    for schedule in (Everyone(), PoissonSubset(0.3), RandomWalk(), Cyclic()):
        for trust in ("local", "secure-sum", "curator"):
            made = plan(
                problem, ConsensusADMM(), rounds=12, noise=GaussianNoise(multiplier=3.0), schedule=schedule, trust=trust
            )
            public, server, wire = (made.guarantee(o, 1e-6).epsilon(1e-6) for o in (Public(), Server(), Eavesdropper()))
            assert public <= server * (1 + 1e-9)
            assert server <= wire * (1 + 1e-9)
            assert public <= made.guarantee(Peer(party=0), 1e-6).epsilon(1e-6) * (1 + 1e-9)


def test_a_walk_on_a_graph_is_accounted_for_whoever_it_visits_most() -> None:
    problem = problem_of([5] * 5, unit="party")
    settings = {"rounds": 10, "noise": GaussianNoise(multiplier=3.0), "schedule": RandomWalk(Topology.path(5))}
    made = plan(problem, ConsensusADMM(), **settings)
    each = [made.prove(Public(), party, 1e-6).epsilon(1e-6) for party in range(5)]
    assert each[0] < max(each)  # the end of a path is visited less often than its middle
    assert made.guarantee(Public(), 1e-6).epsilon(1e-6) == max(each)
    (entry,) = (
        e for e in made.card(1e-6).entries if (e.observer, e.unit, e.adjacency) == ("public", "party", "replace-one")
    )
    assert entry.spread.most == max(each)


@dataclass(frozen=True)
class LastAlways:
    """Everybody in the first round, then the last party alone; it does not say whether it is fair."""

    def active(self, round_, previous, parties, coins):
        return np.arange(parties - 1 if round_ else 0, parties)

    def participation(self, party, rounds, parties):
        return Certain(range(rounds if party == parties - 1 else 1))

    def length(self, rounds, coins):
        return rounds


def test_a_schedule_that_tells_parties_apart_is_accounted_for_each_of_them() -> None:
    made = plan(
        problem_of([5] * 4), DPSGD(clip=1.0), rounds=8, schedule=LastAlways(), noise=GaussianNoise(multiplier=2.0)
    )
    whole = made.guarantee(Eavesdropper(), 1e-5).epsilon(1e-5)
    first, last = (made.prove(Eavesdropper(), party, 1e-5).epsilon(1e-5) for party in (0, 3))
    assert whole == last > 2 * first


@dataclass(frozen=True)
class LastOften(PoissonSubset):
    """It inherits everything but its law: what its parent says of fairness does not count."""

    def participation(self, party, rounds, parties):
        return Certain(range(rounds)) if party == parties - 1 else super().participation(party, rounds, parties)


def test_fairness_is_stated_by_a_schedule_itself() -> None:
    assert all(map(is_fair, (Everyone(), PoissonSubset(0.5), FixedSubset(2), RandomOrder(), RandomWalk())))
    unfair = (Cyclic(), RandomStopping(), RandomWalk(Topology.ring(4)), LastAlways(), LastOften(0.5))
    assert not any(map(is_fair, unfair))


@pytest.mark.parametrize(
    ("schedule", "share"),
    [(LastOften(0.5), (3 * 0.5 + 1) / 4), (LastAlways(), (3 + 8) / 32), (PoissonSubset(0.3), 0.3), (Cyclic(), 0.25)],
    ids=["last often", "last always", "poisson", "cyclic"],
)
def test_sums_are_divided_by_what_all_parties_are_expected_to_add(schedule, share: float) -> None:
    made = plan(problem_of([5] * 4), DPSGD(clip=1.0), rounds=8, schedule=schedule, noise=GaussianNoise(multiplier=2.0))
    assert made.facts.rate == share


def test_nodes_of_different_sizes_share_their_epsilon_or_their_noise() -> None:
    problem = problem_of([5, 20, 80], weighting="party")
    settings = {"rounds": 6, "topology": Topology.complete(3), "observer": Eavesdropper()}
    target = EpsilonDelta(epsilon=1.0, delta=1e-5)

    def entry(equal: str):
        card = plan(problem, IPADMM(), target=target, equal=equal, **settings).card(1e-5)
        (found,) = (e for e in card.entries if (e.observer, e.unit, e.adjacency) == ("public", "record", "replace-one"))
        return found

    assert entry("epsilon").spread.least == pytest.approx(entry("epsilon").spread.most)
    spread = entry("noise").spread
    assert spread.worst == 0  # a record of the smallest node weighs most
    assert spread.least < 0.2 * spread.most
    assert spread.most == pytest.approx(1.0, rel=1e-3)


def test_a_run_needs_a_chosen_source_of_noise() -> None:
    problem = problem_of([5] * 4)
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))
    planned = plan(problem, DualConsensusADMM(), rounds=2, noise=GaussianNoise(multiplier=1.0))
    with pytest.raises(PrivacyError, match="no source of noise was chosen"):
        run(planned, shards)


def test_the_theorem_behind_each_guarantee() -> None:
    problem = problem_of([5] * 20, unit="party")
    noise = GaussianNoise(multiplier=3.0)
    everyone = plan(problem, ConsensusADMM(), rounds=10, noise=noise, trust="secure-sum")
    assert everyone.guarantee(Public(), 1e-6).theorem == "MeanOfNoisyStates"
    sampled = plan(problem, ConsensusADMM(), rounds=10, noise=noise, trust="secure-sum", schedule=PoissonSubset(0.2))
    promise = sampled.prove(Public(), 1, 1e-6)
    assert promise.theorem == "Composition"
    assert any("kept by the parties" in refusal for refusal in promise.refusals)
    dual = plan(
        problem, DualConsensusADMM(level="party"), rounds=10, noise=noise, trust="curator", schedule=PoissonSubset(0.2)
    )
    assert "Theorem P" in dual.prove(Public(), 1, 1e-6).proof.why
    assert np.isinf(dual.guarantee(Server(), 1e-6).epsilon(1e-6))


def test_amplification_is_for_who_does_not_know_the_sample() -> None:
    problem = problem_of([1] * 200, unit="party")
    settings = {"rounds": 50, "noise": GaussianNoise(multiplier=2.0), "schedule": PoissonSubset(0.05)}
    asked = plan(problem, DualConsensusADMM(level="party"), trust="local", **settings)
    hidden = plan(problem, DualConsensusADMM(level="party"), trust="secure-sum", **settings)
    assert hidden.guarantee(Server(), 1e-6).epsilon(1e-6) < 0.3 * asked.guarantee(Server(), 1e-6).epsilon(1e-6)


def test_safe_noise_runs_and_is_not_repeatable() -> None:
    problem = problem_of([5] * 4)
    shards = Shards.from_parties(problem, draw(problem, np.random.default_rng(0)))
    made = plan(problem, DualConsensusADMM(), rounds=3, noise=GaussianNoise(multiplier=1.0), sampler=Safe())
    assert not np.array_equal(run(made, shards).model, run(made, shards).model)
    assert made.guarantee(Public(), 1e-6).epsilon(1e-6) == pytest.approx(
        replace_sampler(made, Seeded(0)).guarantee(Public(), 1e-6).epsilon(1e-6), rel=1e-6
    )


def replace_sampler(made, sampler):
    return replace(made, sampler=sampler)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda p: plan(p, ConsensusADMM(), rounds=0, noise=NoNoise()), "at least one round"),
        (lambda p: plan(p, ConsensusADMM(), rounds=5), "give the noise or the target"),
        (lambda p: plan(p, object(), rounds=5, noise=NoNoise()), "local and combine"),
        (
            lambda p: plan(p, ConsensusADMM(), rounds=5, noise={"other": NoNoise()}),
            "none for release 'residual'|no release 'other'",
        ),
        (lambda p: plan(p, ConsensusADMM(), rounds=5, noise=NoNoise(), topology=Topology.ring(9)), "both must agree"),
        (lambda p: plan(p, ConsensusADMM(), rounds=5, noise=NoNoise(), trust="secure-sum", colluders=9), "may collude"),
        (
            lambda p: plan(p, DualConsensusADMM(), rounds=5, noise=NoNoise(), schedule=PoissonSubset(0.5)),
            "sample records with rate",
        ),
        (lambda p: ConsensusADMM(step=-1.0), "positive finite"),
        (lambda p: ConsensusADMM(relaxation=1.5), "lies in \\(0, 1"),
        (lambda p: DualConsensusADMM(rate=0.0), "a rate lies in"),
        (lambda p: DualConsensusADMM(level="record", clip=1.0), "drop clip"),
    ],
)
def test_bad_plans_are_refused(act, message: str) -> None:
    with pytest.raises(InputError, match=message):
        act(problem_of([5] * 4, unit="party"))


def test_a_loss_without_the_constant_that_a_guarantee_needs_is_refused() -> None:
    squared = problem_of([5] * 4, loss=Squared(), target_bound=1.0, unit="party")
    for algorithm in (ConsensusADMM(), DualConsensusADMM()):
        with pytest.raises(PreconditionError, match="Huber"):
            plan(squared, algorithm, rounds=5, noise=GaussianNoise(multiplier=1.0))


def test_a_unit_without_a_bound_is_refused() -> None:
    problem = problem_of([5] * 4, unit="record", adjacency="add-remove")
    with pytest.raises(PreconditionError, match="no bound on 'dual' is known"):
        plan(problem, DualConsensusADMM(level="party"), rounds=5, noise=GaussianNoise(multiplier=1.0))
