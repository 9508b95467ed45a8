"""Networked ADMM against a loop over nodes and records written from the corrected formulas, with the same noise."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.algorithms.silos import CHORD, GRAPHS, SIZES, silos
from tests.algorithms.transcription import SEED, drawn, noise_of, with_and_without_noise
from tests.privacy.oracles.ipadmm import MinibatchIPADMM
from tests.privacy.oracles.networked import NetworkedSteps

from consenso.algorithms import find
from consenso.algorithms.networked import NetworkedADMM, State, falling_variance, prox_each, record_gradient_bound
from consenso.engine.run import objective, run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Absolute, EpsilonInsensitive, Hinge, Huber, Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import rdp
from consenso.privacy.noise import Constant, GaussianNoise, Geometric, NoNoise, Polynomial
from consenso.privacy.observers import Eavesdropper, Peer, Public
from consenso.privacy.release import COIN_STREAM
from consenso.privacy.samplers import Key, Seeded
from consenso.regularizers import L1, L2, Ball, Box, ElasticNet, NoPenalty
from consenso.testing.laws import execute
from consenso.testing.optimum import optimum
from consenso.topology import Topology


def slope(loss, score, target):
    return loss.slope(np.array([score]), np.array([target]))[0]


def gradient(loss, weight, part, point, clip=None):
    """Sum over records, one by one, of gradients shortened to `clip`."""
    total = np.zeros_like(point)
    for row, target in zip(*part, strict=True):
        each = slope(loss, row @ point, target) * row
        if clip is not None:
            each = each * min(1.0, clip / max(np.linalg.norm(each), 1e-300))
        total += each
    return weight * total


# --- the iteration ---------------------------------------------------------------------------------------------------


@with_and_without_noise
@pytest.mark.parametrize("at_average", [False, True])
@pytest.mark.parametrize("proximal", [False, True])
def test_iterates_follow_the_paper(at_average, proximal, multiplier):
    penalty, rounds, clip, weighting = 0.3, 12, 0.4, "party"
    regularizer = ElasticNet(l1=0.02, l2=0.1)
    problem, shards, parts = silos(Logistic(), regularizer, weighting=weighting)
    step = Polynomial(first=2.0, power=-0.3)
    algorithm = NetworkedADMM(
        penalty=penalty, step=step, clip=clip, proximal=proximal, at_average=at_average, averaging=0.5
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
    said, dual, history = np.zeros((n, dim)), np.zeros((n, dim)), []
    metropolis = CHORD.metropolis.toarray()
    for k in range(rounds):
        eta, new = 2.0 * (k + 1) ** -0.3, np.zeros((n, dim))
        for i in range(n):
            neighbors = CHORD.neighbors(i)
            bottom = 2 * penalty * len(neighbors) + 1 / eta
            centre = metropolis[i] @ said if at_average else said[i]
            top = centre / eta - dual[i] - gradient(Logistic(), 1 / SIZES[i], parts[i], centre, clip)
            for j in neighbors:
                top = top + penalty * (said[i] + said[j])
            if not proximal:
                top = top - (0.02 * np.sign(centre) + 0.1 * centre)
            # The paper's place of the noise: on the primal, scaled by the sensitivity 2 c_1 / (M D) of the iterate. The
            # draw that was added to the gradient comes with a minus.
            std = multiplier * 2 * clip / (SIZES[i] * bottom)
            w = top / bottom - drawn("gaussian", k, i, dim, std)[0]
            if proximal:
                w = np.sign(w) * np.maximum(np.abs(w) - 0.02 / bottom, 0) / (1 + 0.1 / bottom)
            new[i] = w
        said = new
        for i in range(n):
            for j in CHORD.neighbors(i):
                dual[i] = dual[i] + penalty * (said[i] - said[j])
        history.append(metropolis @ said if at_average else said)
    np.testing.assert_allclose(progress.state.w, said, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(progress.state.dual, dual, rtol=1e-11, atol=1e-12)
    # The released model: the mean over nodes of the average over the second half of the rounds.
    np.testing.assert_allclose(got, np.mean(history[rounds // 2 :], axis=(0, 1)), rtol=1e-11, atol=1e-12)


def test_sampled_gradients_are_divided_by_a_fixed_number():
    rate = 0.5
    problem, shards, parts = silos(Logistic(), NoPenalty(), weighting="party")
    algorithm = NetworkedADMM(penalty=0.3, step=1.0, rate=rate)
    made = plan(problem, algorithm, rounds=1, noise=NoNoise(), topology=CHORD, sampler=Seeded(SEED))
    _, progress = execute(made, shards)
    for i, (rows, targets) in enumerate(parts):
        key = Key(parties=np.array([i]), round=0, release=0, repetition=0, stream=COIN_STREAM)
        chosen = Seeded(SEED).uniform(key, len(targets))[0] < rate
        drawn = gradient(Logistic(), 1 / (rate * SIZES[i]), (rows[chosen], targets[chosen]), np.zeros(3))
        np.testing.assert_allclose(progress.state.w[i], -drawn / (0.6 * CHORD.degrees[i] + 1), atol=1e-12)


def ridge_loop(update, rounds):
    """Distance to the optimum of a scalar ridge problem on a ring of 5, under an update (w, heard, dual, gradient)."""
    targets, ring, penalty = np.array([1.0, -2.0, 0.5, 3.0, 1.0]), Topology.ring(5), 0.5
    w, dual, adjacency = np.zeros(5), np.zeros(5), ring.adjacency.toarray()
    for _ in range(rounds):
        w, dual = update(w, adjacency, dual, w - targets, penalty)
        if np.abs(w).max() > 1e12:
            return np.inf
    return np.abs(w - targets.mean()).max()


def test_the_printed_update_diverges_and_the_corrected_one_converges():
    def corrected(w, adjacency, dual, g, penalty):
        degree = adjacency.sum(axis=1)
        w = (w + penalty * (degree * w + adjacency @ w) - dual - g) / (2 * penalty * degree + 1)
        return w, dual + penalty * (degree * w - adjacency @ w)

    def printed(w, adjacency, dual, g, penalty):
        degree = adjacency.sum(axis=1)
        w = (w + penalty / 2 * (degree * w - adjacency @ w) + dual / 2 - g) / (2 * penalty * degree + 1)
        return w, dual + penalty * (degree * w - adjacency @ w)

    assert ridge_loop(corrected, 2000) < 1e-14
    assert ridge_loop(printed, 2000) == np.inf


# --- the optimum -----------------------------------------------------------------------------------------------------

SMOOTH = {
    "elastic net": (Squared(), ElasticNet(l1=0.01, l2=0.1)),
    "ridge": (Squared(), L2(strength=0.1)),
    "logistic": (Logistic(), L1(strength=0.02)),
    "box": (Huber(threshold=0.5), Box(low=-0.2, high=0.6)),
}


@pytest.mark.sweep
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("case", SMOOTH)
@pytest.mark.slow
def test_constant_steps_reach_the_central_optimum(graph, case):
    loss, regularizer = SMOOTH[case]
    problem, shards, _ = silos(loss, regularizer, np.array([8, 12, 10, 9, 11, 10, 7, 13]), seed=2)
    topology = GRAPHS[graph]
    algorithm = NetworkedADMM(
        penalty=0.3 * loss.curvature_bound / topology.degrees.mean(),
        step=2.0 / loss.curvature_bound,
        proximal=True,
        radius=20.0 if isinstance(loss, Squared) else None,
        at_average=graph == "random",
    )
    made = plan(problem, algorithm, rounds=300, noise=NoNoise(), topology=topology)
    best = optimum(problem, shards)
    assert abs(objective(made, shards, run(made, shards).model) - best) < 1e-9 * best


@pytest.mark.parametrize("graph", GRAPHS)
def test_falling_steps_come_close_on_nonsmooth_problems_by_subgradients(graph):
    # Least absolute deviations and an l1 norm, both by subgradients as in the paper.
    problem, shards, _ = silos(Absolute(), L1(strength=0.01), np.array([8, 12, 10, 9, 11, 10, 7, 13]), seed=2)
    topology = GRAPHS[graph]
    best, gaps = optimum(problem, shards), []
    for rounds in (60, 600):
        algorithm = NetworkedADMM(
            penalty=0.2 / topology.degrees.mean(), step=Polynomial(first=2.0, power=-0.6), averaging=0.5
        )
        made = plan(problem, algorithm, rounds=rounds, noise=NoNoise(), topology=topology)
        gaps.append(objective(made, shards, run(made, shards).model) / best - 1)
    assert 0 <= gaps[1] < 3e-3
    assert gaps[1] < gaps[0] / 3


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_bounds_follow_the_weights_and_the_noise_on_the_iterate_the_denominator():
    problem, _, _ = silos(Logistic(), NoPenalty(), weighting="party")
    algorithm = NetworkedADMM(penalty=0.3, step=0.5)
    made = plan(problem, algorithm, rounds=3, noise=GaussianNoise(multiplier=2.0), topology=CHORD)
    facts = made.facts
    (release,) = algorithm.releases(facts)
    np.testing.assert_allclose(release.bounds.record_add_remove, 1 / SIZES)
    np.testing.assert_allclose(release.bounds.record_replace_one, 2 / SIZES)
    np.testing.assert_allclose(release.bounds.party_replace_one, 2.0)
    # Lemma I: 2 c_1 / (M_k (2 rho |N_k| + 1/eta)), for every node its own.
    primal = release.bounds.record_replace_one / algorithm.denominator(facts)
    for i in range(6):
        steps = NetworkedSteps(
            gradient_bound=1.0,
            bounded_by="lipschitz",
            records=int(SIZES[i]),
            penalty=0.3,
            degree=int(CHORD.degrees[i]),
            proximity=2.0,
            std=2.0 * primal[i],
            iterations=3,
        )
        assert primal[i] == pytest.approx(steps.sensitivities[0])
        promised = made.prove(Eavesdropper(), i, 1e-5)
        assert rdp(promised.event, 3.0) == pytest.approx(rdp(steps.event(), 3.0))


def test_peers_see_every_message_of_a_neighbour():
    problem, _, _ = silos(Logistic(), NoPenalty())
    made = plan(problem, NetworkedADMM(), rounds=4, noise=GaussianNoise(multiplier=3.0), topology=CHORD)
    costs = {made.guarantee(observer, 1e-5).epsilon(1e-5) for observer in (Eavesdropper(), Peer(party=0), Public())}
    assert len(costs) == 1


def test_the_squared_loss_is_refused_without_a_bound():
    problem, _, _ = silos(Squared(), NoPenalty())
    with pytest.raises(PreconditionError, match=r"Huber\(threshold=\.\.\.\).*clip=.*radius="):
        plan(problem, NetworkedADMM(), rounds=1, noise=NoNoise(), topology=CHORD)
    for bounded in (NetworkedADMM(clip=1.0), NetworkedADMM(radius=2.0)):
        plan(problem, bounded, rounds=1, noise=NoNoise(), topology=CHORD)


def test_projection_bounds_the_gradient_of_the_squared_loss_sharply():
    problem, _, _ = silos(Squared(), NoPenalty())
    bound = record_gradient_bound(problem, None, 2.0)
    assert bound == 1.0 * (1.0 * 2.0 + 3.0)
    assert record_gradient_bound(problem, 0.5, 2.0) == 0.5
    assert record_gradient_bound(replace(problem, loss=Huber(threshold=0.7)), None, 2.0) == pytest.approx(0.7)
    # Attained: the row along the model, the target against it.
    model = np.array([2.0, 0.0, 0.0])
    row, target = np.array([1.0, 0.0, 0.0]), -3.0
    assert np.linalg.norm((row @ model - target) * row) == pytest.approx(bound)


def test_a_neighbour_that_lies_cannot_lengthen_a_gradient():
    problem, shards, _ = silos(Squared(), NoPenalty(), weighting="party")
    algorithm = NetworkedADMM(radius=2.0, at_average=True)
    made = plan(problem, algorithm, rounds=1, noise=NoNoise(), topology=CHORD)
    facts, seen = made.facts, []
    zero = np.zeros((6, 3))
    lied = State(w=zero, heard=zero, centre=np.full((6, 3), 1e6), dual=zero, model=zero)

    def releaser(name, value):
        seen.append(np.linalg.norm(value, axis=1))
        return value

    algorithm.local(facts, lied, shards.cohort(), releaser)
    assert (seen[0] <= record_gradient_bound(problem, None, 2.0)).all()


@pytest.mark.parametrize("loss", [Absolute(), Hinge(), EpsilonInsensitive(width=0.1), Huber(threshold=1.0), Logistic()])
def test_every_lipschitz_loss_is_accepted(loss):
    problem, shards, _ = silos(loss, NoPenalty())
    noise = GaussianNoise(multiplier=1.0)
    made = plan(problem, NetworkedADMM(), rounds=2, noise=noise, topology=CHORD, sampler=Seeded(SEED))
    assert np.isfinite(run(made, shards).model).all()


# --- the noise schedules of the paper ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "decay", "rounds"), [(0.01, 0.97, 50), (0.002, 0.9, 20), (0.1, 0.999, 200)])
def test_a_budget_that_grows_by_one_over_tau_has_the_closed_form_whatever_the_steps(first, decay, rounds):
    problem, _, _ = silos(Logistic(), NoPenalty())
    schedule = GaussianNoise(multiplier=Geometric(first=(2 * first) ** -0.5, ratio=decay))
    closed = first * (1 - decay**rounds) / (decay ** (rounds - 1) - decay**rounds)
    for step in (1.0, Polynomial(first=1.0, power=1.0)):
        made = plan(problem, NetworkedADMM(step=step), rounds=rounds, noise=schedule, topology=CHORD)
        event = made.guarantee(Eavesdropper(), 1e-5).event
        assert rdp(event, 4.0) / 4.0 == pytest.approx(closed, rel=1e-9)


def test_a_falling_variance_under_growing_steps_costs_more_than_the_closed_form():
    # eta^(n) = n, T = 200, 2 rho |N| = 3: 1.8 times the printed sum.
    ring, rounds, decay, first = Topology.random_regular(6, 3, seed=0), 200, 0.99, 30.0
    problem, _, _ = silos(Logistic(), NoPenalty())
    step = Polynomial(first=1.0, power=1.0)
    algorithm = NetworkedADMM(penalty=0.5, step=step)
    schedule = falling_variance(penalty=0.5, degree=3, step=step, first=first, ratio=decay, rounds=rounds)
    made = plan(problem, algorithm, rounds=rounds, noise=schedule, topology=ring)
    rho = rdp(made.guarantee(Eavesdropper(), 1e-5).event, 2.0) / 2.0
    cost = 1 / (2 * first**2)
    printed = cost * (1 - decay**rounds) / (decay ** (rounds - 1) - decay**rounds)
    assert rho / printed == pytest.approx(1.8, abs=0.05)
    # The variance on the iterates does fall by the ratio.
    facts = made.facts
    (release,) = algorithm.releases(facts)
    stds = [schedule.scale(release.bounds.record_replace_one / algorithm.denominator(facts.at(k)), k) for k in range(4)]
    np.testing.assert_allclose([(b / a) ** 2 for a, b in itertools.pairwise(stds)], decay)


def test_with_a_constant_step_both_schedules_agree():
    options = {"penalty": 0.5, "degree": 3, "first": 2.0, "ratio": 0.9, "rounds": 5}
    schedule = falling_variance(step=Constant(value=0.5), **options)
    for k in range(5):
        assert schedule.scale(1.0, k) == pytest.approx(Geometric(first=2.0, ratio=0.9).at(k))


def test_minibatches_are_accounted_as_hidden_poisson_samples():
    problem, _, _ = silos(Logistic(), NoPenalty(), adjacency="add-remove")
    made = plan(problem, NetworkedADMM(rate=0.1), rounds=40, noise=GaussianNoise(multiplier=2.0), topology=CHORD)
    expected = MinibatchIPADMM(multiplier=2.0, rate=0.1, rounds=40, inner_steps=1, adjacency="add-remove")
    assert rdp(made.guarantee(Eavesdropper(), 1e-5).event, 8.0) == pytest.approx(rdp(expected.event(), 8.0))


# --- the rest ---------------------------------------------------------------------------------------------------------


def test_prox_of_nodes_with_different_steps():
    rng = np.random.default_rng(0)
    v, steps = rng.normal(size=(5, 3)), np.array([0.1, 0.5, 0.1, 2.0, 0.5])
    for regularizer in (L1(strength=0.3), L2(strength=0.5), Ball(radius=0.4)):
        each = np.stack([regularizer.prox(row, float(step)) for row, step in zip(v, steps, strict=True)])
        np.testing.assert_array_equal(prox_each(regularizer, v, steps), each)


def test_refusals():
    for parameter in (
        {"penalty": 0.0},
        {"step": -1.0},
        {"clip": 0.0},
        {"radius": -1.0},
        {"rate": 0.0},
        {"averaging": 2},
    ):
        with pytest.raises(InputError, match=next(iter(parameter))):
            NetworkedADMM(**parameter)
    problem, _, _ = silos(Logistic(), Ball(radius=1.0))
    with pytest.raises(PreconditionError, match="proximal=True"):
        plan(problem, NetworkedADMM(), rounds=1, noise=NoNoise(), topology=CHORD)


def test_found_by_the_names_of_the_paper():
    assert find("zCDP-NFL") is NetworkedADMM
    assert find("004") is NetworkedADMM
