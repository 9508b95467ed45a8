"""IPADMM against a loop over nodes and inner steps written from the corrected formulas, with the same noise."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.silos import CHORD, EIGHT, GRAPHS, SIZES, silos
from tests.algorithms.transcription import SEED, drawn, noise_of, with_and_without_noise
from tests.privacy.oracles.ipadmm import IPADMMSteps, MinibatchIPADMM, inner_step_sensitivity

from consenso.algorithms import find
from consenso.algorithms.ipadmm import IPADMM, RootGrowth
from consenso.algorithms.networked import NetworkedADMM
from consenso.engine.run import objective, run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Absolute, Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import rdp
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GaussianNoise, NoNoise, Polynomial
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, ElasticNet, NoPenalty
from consenso.testing.laws import execute
from consenso.testing.optimum import optimum
from consenso.topology import Topology

# --- the iteration ---------------------------------------------------------------------------------------------------


@with_and_without_noise
@pytest.mark.parametrize(("at_average", "linearised"), [(False, False), (True, False), (False, True)])
def test_iterates_follow_the_paper(at_average, linearised, multiplier):
    penalty, rounds, inner = 0.3, 6, 3
    problem, shards, parts = silos(Logistic(), L2(strength=0.1), weighting="party")
    algorithm = IPADMM(
        penalty=penalty,
        proximity=RootGrowth(first=0.4),
        inner_steps=inner,
        at_average=at_average,
        averaging=0.5,
        linearised=linearised,
    )
    made = plan(
        problem,
        algorithm,
        rounds=rounds,
        noise=noise_of(multiplier),
        topology=CHORD,
        sampler=Seeded(SEED),
    )
    got, progress = execute(made, shards)

    n, dim = 6, 3
    w, said, dual = np.zeros((3, n, dim))
    history = []
    metropolis = CHORD.metropolis.toarray()
    for k in range(rounds):
        new = np.zeros((n, dim))
        for i in range(n):
            neighbors, (rows, targets) = CHORD.neighbors(i), parts[i]
            iterate = w[i]
            for r in range(inner):
                eta = 0.4 * np.sqrt((k + 1) * (r + 1))  # eta^{k,r+1}, of the step that is taken
                bottom = 2 * penalty * len(neighbors) + eta
                slopes = -targets / (1 + np.exp(targets * (rows @ iterate)))
                top = 2 * dual[i] + eta * iterate - slopes @ rows / SIZES[i]
                for j in neighbors:
                    top = top + penalty * (said[i] + said[j])
                # Noise on the primal, scaled by 2 c_1 / (m_i D); the draw on the gradient comes with a minus.
                std = multiplier * 2 / (SIZES[i] * bottom)
                if linearised:  # the paper: the regularizer's gradient with that of the loss
                    top = top - 0.1 * iterate
                iterate = top / bottom - drawn("gaussian", k, i, dim, std, repetition=r)[0]
                iterate = iterate if linearised else iterate / (1 + 0.1 / bottom)
                new[i] += iterate / inner
            w[i] = iterate
        said = new
        for i in range(n):
            for j in CHORD.neighbors(i):
                dual[i] = dual[i] - penalty / 2 * (said[i] - said[j])
        if at_average:
            w = metropolis @ said
        history.append((w if at_average else said).copy())
    np.testing.assert_allclose(progress.state.said, said, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(progress.state.w, w, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(progress.state.dual, dual, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(got, np.mean(history[rounds // 2 :], axis=(0, 1)), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("at_average", [False, True])
def test_one_inner_step_is_networked_admm(at_average):
    problem, shards, _ = silos(Logistic(), ElasticNet(l1=0.01, l2=0.1))
    options = {"rounds": 10, "noise": GaussianNoise(multiplier=0.5), "topology": CHORD, "sampler": Seeded(SEED)}
    step = Polynomial(first=2.0, power=-0.5)
    proximity = Polynomial(first=0.5, power=0.5)
    one = plan(problem, IPADMM(penalty=0.2, proximity=proximity, at_average=at_average), **options)
    other = plan(problem, NetworkedADMM(penalty=0.2, step=step, proximal=True, at_average=at_average), **options)
    np.testing.assert_allclose(run(one, shards).model, run(other, shards).model, rtol=1e-10)


def test_the_printed_sign_diverges_and_the_corrected_one_converges():
    targets, penalty, proximity = np.array([1.0, -2.0, 0.5, 3.0, 1.0]), 0.5, 1.0
    adjacency = Topology.ring(5).adjacency.toarray()
    degree = adjacency.sum(axis=1)

    def distance(sign):
        w, dual = np.zeros(5), np.zeros(5)
        for _ in range(2000):
            top = -sign * (w - targets) + 2 * dual + penalty * (degree * w + adjacency @ w) + proximity * w
            w = top / (2 * penalty * degree + proximity)
            dual = dual - penalty / 2 * (degree * w - adjacency @ w)
            if np.abs(w).max() > 1e12:
                return np.inf
        return np.abs(w - targets.mean()).max()

    assert distance(+1) < 1e-14
    assert distance(-1) == np.inf


# --- the optimum -----------------------------------------------------------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [
        (Squared(), ElasticNet(l1=0.01, l2=0.1)),
        (Squared(), L2(strength=0.1)),
        (Logistic(), L1(strength=0.02)),
        (Logistic(), Ball(radius=1.0)),
    ],
    ids=["elastic net", "ridge", "logistic", "ball"],
)
@pytest.mark.slow
def test_constant_schedules_reach_the_central_optimum(graph, loss, regularizer):
    problem, shards, _ = silos(loss, regularizer, EIGHT, seed=2)
    topology = GRAPHS[graph]
    algorithm = IPADMM(
        penalty=0.3 * loss.curvature_bound / topology.degrees.mean(),
        proximity=0.5 * loss.curvature_bound,
        inner_steps=2 if graph == "ring" else 1,
        radius=20.0 if isinstance(loss, Squared) else None,
        at_average=graph == "random",
    )
    made = plan(problem, algorithm, rounds=300, noise=NoNoise(), topology=topology)
    best = optimum(problem, shards)
    assert abs(objective(made, shards, run(made, shards).model) - best) < 1e-9 * best


@pytest.mark.parametrize("graph", GRAPHS)
def test_growing_proximity_comes_close_on_a_nonsmooth_loss(graph):
    problem, shards, _ = silos(Absolute(), L2(strength=0.05), EIGHT, seed=2)
    topology = GRAPHS[graph]
    best, gaps = optimum(problem, shards), []
    for rounds in (40, 400):
        algorithm = IPADMM(
            penalty=0.2 / topology.degrees.mean(), proximity=RootGrowth(first=0.5), inner_steps=2, averaging=0.5
        )
        made = plan(problem, algorithm, rounds=rounds, noise=NoNoise(), topology=topology)
        gaps.append(objective(made, shards, run(made, shards).model) / best - 1)
    assert 0 <= gaps[1] < 3e-3
    assert gaps[1] < gaps[0] / 3


# --- bounds and costs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_noise_on_the_primal_is_scaled_by_the_denominator_of_each_inner_step(adjacency):
    problem, _, _ = silos(Logistic(), NoPenalty(), weighting="party", adjacency=adjacency)
    algorithm = IPADMM(penalty=0.01, proximity=RootGrowth(first=0.98), inner_steps=3)
    made = plan(problem, algorithm, rounds=3, noise=GaussianNoise(multiplier=1.0), topology=CHORD)
    (release,) = algorithm.releases(made.facts)
    assert release.times == 3
    for round_ in range(3):
        facts = made.facts.at(round_)
        for inner in (1, 2, 3):
            primal = release.bounds.at("record", adjacency) / algorithm.denominator(facts, inner)
            for i in range(6):
                assert primal[i] == pytest.approx(
                    inner_step_sensitivity(
                        gradient_bound=1.0,
                        penalty=0.01,
                        degree=int(CHORD.degrees[i]),
                        proximity=0.98 * np.sqrt((round_ + 1) * inner),
                        records=int(SIZES[i]),
                        adjacency=adjacency,
                    )
                )


@pytest.mark.parametrize(("round_", "factor"), [(1, 5.9), (10, 16.6)])
def test_the_printed_denominator_understates_the_sensitivity(round_, factor):
    # Adult: penalty 0.001, 99 neighbours. Noise scaled with eta^{k,r+1} for a step that divides by eta^{k,r}, which is
    # 0 at the first inner step. One constant, 0.976, meets both figures: they grow like sqrt(k).
    algorithm = IPADMM(penalty=0.001, proximity=RootGrowth(first=0.976))
    common = {"gradient_bound": 1.0, "penalty": 0.001, "degree": 99, "records": 452, "adjacency": "replace-one"}
    accounted = inner_step_sensitivity(proximity=algorithm.proximity_at(round_ - 1, 1), **common)
    divided_by_the_old_one = 2 / (452 * 2 * 0.001 * 99)
    assert divided_by_the_old_one / accounted == pytest.approx(factor, abs=0.05)


def test_user_bounds_are_those_of_all_records_together():
    problem, _, _ = silos(Logistic(), NoPenalty())
    made = plan(problem, IPADMM(), rounds=1, noise=NoNoise(), topology=CHORD)
    (release,) = IPADMM().releases(made.facts)
    np.testing.assert_allclose(release.bounds.party_replace_one, SIZES * release.bounds.record_replace_one)
    np.testing.assert_allclose(release.bounds.party_add_remove, SIZES * release.bounds.record_add_remove)


def test_the_guarantee_is_the_exact_composition_of_all_inner_steps():
    problem, _, _ = silos(Logistic(), NoPenalty())
    algorithm = IPADMM(proximity=RootGrowth(first=1.0), inner_steps=4)
    made = plan(problem, algorithm, rounds=25, noise=GaussianNoise(multiplier=30.0), topology=CHORD)
    exact = IPADMMSteps(multiplier=30.0, rounds=25, inner_steps=4)
    got = made.guarantee(Eavesdropper(), 1e-5)
    assert rdp(got.event, 7.0) == pytest.approx(rdp(exact.event(), 7.0))
    # mu = sqrt(t l) / sigma = 1/3.
    assert rdp(got.event, 7.0) == pytest.approx(7.0 * (1 / 3) ** 2 / 2)


def test_minibatches_are_hidden_poisson_samples_divided_by_a_fixed_number():
    # rate 0.071, multiplier 5, 1000 steps, delta 1e-5, add-remove: 1.97, and 46.2 when every record enters.
    problem, _, _ = silos(Logistic(), NoPenalty(), adjacency="add-remove")
    options = {"rounds": 100, "noise": GaussianNoise(multiplier=5.0), "topology": CHORD}
    sampled = plan(problem, IPADMM(inner_steps=10, rate=0.071), **options).guarantee(Eavesdropper(), 1e-5)
    everyone = plan(problem, IPADMM(inner_steps=10), **options).guarantee(Eavesdropper(), 1e-5)
    assert sampled.epsilon(1e-5) <= 1.98
    assert everyone.epsilon(1e-5) == pytest.approx(46.2, abs=0.1)
    theorem = MinibatchIPADMM(multiplier=5.0, rate=0.071, rounds=100, inner_steps=10, adjacency="add-remove")
    assert rdp(sampled.event, 6.0) == pytest.approx(rdp(theorem.event(), 6.0))


def test_planned_noise_meets_a_target_for_every_kind_of_node():
    problem, _, _ = silos(Logistic(), NoPenalty(), weighting="party")
    target = EpsilonDelta(epsilon=1.0, delta=1e-5)
    made = plan(problem, IPADMM(inner_steps=2), rounds=10, target=target, observer=Eavesdropper(), topology=CHORD)
    for party in range(6):
        cost = made.prove(Eavesdropper(), party, 1e-5).epsilon(1e-5)
        assert 0.999 < cost <= 1.0


def test_options_are_free():
    problem, _, _ = silos(Logistic(), NoPenalty())
    options = {"rounds": 10, "noise": GaussianNoise(multiplier=5.0), "topology": CHORD}
    costs = {
        plan(problem, algorithm, **options).guarantee(Eavesdropper(), 1e-5).epsilon(1e-5)
        for algorithm in (IPADMM(), IPADMM(at_average=True), IPADMM(averaging=0.5))
    }
    assert len(costs) == 1


def test_options_help_against_noise():
    # Fixed seeds, so this cannot fail by chance.
    problem, shards, _ = silos(Logistic(), L2(strength=1e-3), np.full(20, 50), seed=4)
    topology, gaps = Topology.complete(20), []
    best = optimum(problem, shards)
    for options in ({}, {"at_average": True, "averaging": 0.5}):
        algorithm = IPADMM(penalty=1 / (2 * 19 * 4), proximity=0.0, **options)
        found = []
        for seed in range(5):
            noisy = GaussianNoise(multiplier=30.0)
            made = plan(problem, algorithm, rounds=40, noise=noisy, topology=topology, sampler=Seeded(seed))
            found.append(objective(made, shards, run(made, shards).model) - best)
        gaps.append(np.mean(found))
    assert gaps[1] < gaps[0] / 2


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_refusals():
    for parameter in (
        {"penalty": 0.0},
        {"proximity": -1.0},
        {"inner_steps": 0},
        {"clip": 0.0},
        {"radius": 0.0},
        {"rate": 1.5},
        {"averaging": -0.1},
    ):
        with pytest.raises(InputError, match=next(iter(parameter))):
            IPADMM(**parameter)
    with pytest.raises(InputError, match="first"):
        RootGrowth(first=0.0)
    problem, _, _ = silos(Squared(), NoPenalty())
    with pytest.raises(PreconditionError, match=r"Huber\(threshold=\.\.\.\).*clip=.*radius="):
        plan(problem, IPADMM(), rounds=1, noise=NoNoise(), topology=CHORD)
    alone = Problem(loss=Logistic(), regularizer=NoPenalty(), features=3, sizes=np.array([4]), row_bound=1.0)
    with pytest.raises(InputError, match="proximity"):
        plan(alone, IPADMM(proximity=0.0), rounds=1, noise=NoNoise(), topology=Topology(1, ()))


def test_found_by_the_names_of_the_paper():
    assert find("improved private ADMM") is IPADMM
    assert find("002") is IPADMM
