"""P-ADMM against exact local minimisers from linear algebra, with the same noise; its sensitivities by search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.algorithms.silos import CHORD, EIGHT, GRAPHS, SIZES, silos
from tests.algorithms.transcription import SEED, drawn, with_and_without_noise

from consenso.algorithms import find
from consenso.algorithms.padmm import PADMM
from consenso.engine.run import objective, run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Huber, Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import rdp
from consenso.privacy.noise import GaussianNoise, Geometric, NoNoise
from consenso.privacy.observers import Eavesdropper
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, NoPenalty
from consenso.testing.laws import execute
from consenso.testing.optimum import optimum
from consenso.topology import Topology


def minimiser(rows, targets, weight, bottom, point):
    """argmin of weight/2 |rows w - targets|^2 + bottom/2 |w - point|^2."""
    hessian = weight * rows.T @ rows + bottom * np.eye(len(point))
    return np.linalg.solve(hessian, weight * rows.T @ targets + bottom * point)


@with_and_without_noise
@pytest.mark.parametrize("regularizer", [NoPenalty(), L2(strength=0.2)])
def test_iterates_follow_the_paper(regularizer, multiplier):
    penalty, rounds, radius, ratio = 0.3, 10, 50.0, 0.8
    problem, shards, parts = silos(Squared(), regularizer, weighting="party")
    algorithm = PADMM(penalty=penalty, radius=radius, averaging=0.5, tolerance=1e-12)
    noise = GaussianNoise(multiplier=Geometric(first=multiplier, ratio=ratio)) if multiplier else NoNoise()
    made = plan(problem, algorithm, rounds=rounds, noise=noise, topology=CHORD, sampler=Seeded(SEED))
    got, progress = execute(made, shards)

    strength = regularizer.strong_convexity
    said, dual, history = np.zeros((6, 3)), np.zeros((6, 3)), []
    for k in range(rounds):
        new = np.zeros((6, 3))
        for i, (rows, targets) in enumerate(parts):
            neighbors, weight = CHORD.neighbors(i), 1 / SIZES[i]
            # f + r + <dual, w> + penalty sum_j |w - (w_i + w_j)/2|^2, minimised directly.
            hessian = weight * rows.T @ rows + (strength + 2 * penalty * len(neighbors)) * np.eye(3)
            right = weight * rows.T @ targets - dual[i] + penalty * sum(said[i] + said[j] for j in neighbors)
            x = np.linalg.solve(hessian, right)
            gain = 1 / (2 * penalty * len(neighbors) + strength)
            longest = radius + np.sqrt(gain) * 3.0 / 2
            sensitivity = 2 * gain * weight * (longest + 3.0)
            new[i] = x + drawn("gaussian", k, i, 3, multiplier * ratio ** (k / 2) * sensitivity)[0]
        said = new
        for i in range(6):
            for j in CHORD.neighbors(i):
                dual[i] = dual[i] + penalty * (said[i] - said[j])
        history.append(said)
    np.testing.assert_allclose(progress.state.w, said, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(progress.state.dual, dual, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(got, np.mean(history[rounds // 2 :], axis=(0, 1)), rtol=1e-9, atol=1e-10)


@pytest.mark.sweep
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(
    ("loss", "regularizer"),
    [(Squared(), L2(strength=0.1)), (Logistic(), L2(strength=0.05)), (Huber(threshold=0.5), NoPenalty())],
    ids=["ridge", "logistic", "huber"],
)
@pytest.mark.slow
def test_reaches_the_central_optimum(graph, loss, regularizer):
    problem, shards, _ = silos(loss, regularizer, EIGHT, seed=2)
    topology = GRAPHS[graph]
    algorithm = PADMM(
        penalty=0.3 * loss.curvature_bound / topology.degrees.mean(),
        radius=50.0 if isinstance(loss, Squared) else None,
        tolerance=1e-12,
    )
    made = plan(problem, algorithm, rounds=120, noise=NoNoise(), topology=topology)
    best = optimum(problem, shards)
    assert abs(objective(made, shards, run(made, shards).model) - best) < 1e-9 * best


# --- sensitivities ----------------------------------------------------------------------------------------------------


def test_bounds_of_a_lipschitz_loss_follow_each_node_s_denominator():
    problem, _, _ = silos(Logistic(), L2(strength=0.1), weighting="party")
    algorithm = PADMM(penalty=0.3, tolerance=1e-9)
    made = plan(problem, algorithm, rounds=1, noise=NoNoise(), topology=CHORD)
    (release,) = algorithm.releases(made.facts)
    bottom = 0.6 * CHORD.degrees + 0.1
    np.testing.assert_allclose(release.bounds.record_replace_one, 2 / (SIZES * bottom) + 2e-9)
    np.testing.assert_allclose(release.bounds.record_add_remove, 1 / (SIZES * bottom) + 2e-9)
    np.testing.assert_allclose(release.bounds.party_replace_one, 2 / bottom + 2e-9)
    np.testing.assert_allclose(release.bounds.party_add_remove, 1 / bottom + 2e-9)


def squared_bounds(size, radius, weighting="party"):
    problem = Problem(
        loss=Squared(),
        regularizer=NoPenalty(),
        features=2,
        sizes=np.array([size, size]),
        row_bound=1.0,
        target_bound=1.5,
        weighting=weighting,
    )
    algorithm = PADMM(penalty=0.2, radius=radius, tolerance=1e-12)
    made = plan(problem, algorithm, rounds=1, noise=NoNoise(), topology=Topology.ring(2))
    return algorithm.releases(made.facts)[0].bounds


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 4), radius=st.floats(0.1, 5), whole=st.booleans())
def test_no_pair_of_neighbours_moves_the_ridge_minimiser_beyond_the_bound(seed, size, radius, whole):
    rng = np.random.default_rng(seed)
    bounds = squared_bounds(size, radius)
    bottom = 0.4  # 2 * 0.2 * one neighbour
    point = rng.normal(size=2)
    point *= radius / np.linalg.norm(point)
    rows = rng.normal(size=(size, 2))
    rows *= rng.choice([0.5, 1.0], size=(size, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    # Unkind: rows along the point, targets at their bounds.
    rows[0] = point / radius
    targets = rng.choice([-1.5, 1.5], size=size)
    others, other_targets = rows.copy(), targets.copy()
    changed = slice(None) if whole else slice(0, 1)
    others[changed] *= rng.choice([-1.0, 0.0, 1.0])
    other_targets[changed] = rng.choice([-1.5, 1.5], size=len(targets[changed]))
    one = minimiser(rows, targets, 1 / size, bottom, point)
    other = minimiser(others, other_targets, 1 / size, bottom, point)
    assert np.linalg.norm(one - other) <= (bounds.party_replace_one if whole else bounds.record_replace_one)


def test_the_bound_of_ridge_is_not_idle():
    # One record a node, target from one end to the other: within a factor of four of the bound.
    bounds = squared_bounds(1, 0.5)
    row, point = np.array([[1.0, 0.0]]), np.array([0.5, 0.0])
    gap = minimiser(row, np.array([-1.5]), 1.0, 0.4, point) - minimiser(row, np.array([1.5]), 1.0, 0.4, point)
    assert np.linalg.norm(gap) > bounds.record_replace_one / 8


def test_ridge_has_no_bound_under_add_remove():
    bounds = squared_bounds(3, 1.0)
    assert bounds.record_add_remove == np.inf
    assert bounds.party_add_remove == np.inf


def test_far_points_are_projected_before_the_prox():
    problem, shards, parts = silos(Squared(), NoPenalty(), weighting="party")
    algorithm = PADMM(penalty=0.3, radius=0.01, tolerance=1e-12)
    made = plan(problem, algorithm, rounds=1, noise=NoNoise(), topology=CHORD)
    facts = made.facts
    state = replace(algorithm.enroll(facts, shards.cohort()), heard=np.full((6, 3), 1e6))
    after, _ = algorithm.local(facts, state, shards.cohort(), lambda name, value: value)
    inside = np.full(3, 0.01 / np.sqrt(3))
    for i, (rows, targets) in enumerate(parts):
        expected = minimiser(rows, targets, 1 / SIZES[i], 0.6 * CHORD.degrees[i], inside)
        np.testing.assert_allclose(after.w[i], expected, atol=1e-10)


def test_the_cost_is_the_sum_of_the_rounds():
    problem, _, _ = silos(Logistic(), L2(strength=0.1))
    first, decay, rounds = 0.01, 0.9, 25
    noise = GaussianNoise(multiplier=Geometric(first=(2 * first) ** -0.5, ratio=decay))
    made = plan(problem, PADMM(), rounds=rounds, noise=noise, topology=CHORD)
    total = sum(first * decay**-k for k in range(rounds))
    assert rdp(made.guarantee(Eavesdropper(), 1e-5).event, 3.0) / 3.0 == pytest.approx(total)


def test_refusals():
    for parameter in ({"penalty": 0.0}, {"radius": -1.0}, {"tolerance": 0.0}, {"averaging": 2.0}):
        with pytest.raises(InputError, match=next(iter(parameter))):
            PADMM(**parameter)
    problem, _, _ = silos(Logistic(), L1(strength=0.1))
    with pytest.raises(PreconditionError, match="NetworkedADMM"):
        plan(problem, PADMM(), rounds=1, noise=NoNoise(), topology=CHORD)
    problem, _, _ = silos(Squared(), NoPenalty())
    with pytest.raises(PreconditionError, match=r"Huber\(threshold=\.\.\.\).*radius="):
        plan(problem, PADMM(), rounds=1, noise=NoNoise(), topology=CHORD)
    alone = Problem(loss=Logistic(), regularizer=NoPenalty(), features=3, sizes=np.array([4]), row_bound=1.0)
    with pytest.raises(InputError, match="neighbour"):
        plan(alone, PADMM(), rounds=1, noise=NoNoise(), topology=Topology(1, ()))


def test_found_by_the_name_of_the_paper():
    assert find("P-ADMM") is PADMM
