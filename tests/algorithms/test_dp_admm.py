"""DP-ADMM with a server: the iteration by hand, noise that follows the denominator, and its optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.algorithms.transcription import SEED, drawn, noise_of, with_and_without_noise

from consenso.algorithms import find
from consenso.algorithms.dp_admm import DPADMM
from consenso.algorithms.inexact_admm import GrowingPenalty, InexactADMM, Proximal
from consenso.engine.run import objective, run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Logistic, Squared
from consenso.planning.plan import plan
from consenso.privacy.accountants import gdp
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, NoNoise, Polynomial
from consenso.privacy.observers import Eavesdropper, Server
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, NoPenalty
from consenso.schedules import PoissonSubset
from consenso.shards import Shards
from consenso.testing.optimum import optimum

FEATURES, SIZES = 3, np.array([4, 6, 8])


LOSS, NOTHING = Logistic(), NoPenalty()


def problem(loss=LOSS, regularizer=NOTHING, **changes) -> Problem:
    return Problem(loss=loss, regularizer=regularizer, features=FEATURES, sizes=SIZES, row_bound=1.0, **changes)


def data(seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(SIZES.sum(), FEATURES))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), rng.choice([-1.0, 1.0], SIZES.sum())


def shards(of: Problem) -> Shards:
    return Shards.build(of, *data(), np.concatenate(([0], np.cumsum(SIZES))))


@with_and_without_noise
@pytest.mark.parametrize("clip", [None, 0.4])
def test_iterates_follow_the_paper(clip, multiplier):
    of = problem(regularizer=L2(strength=0.1))
    penalty = GrowingPenalty(first=0.3, growth=1.5, every=3)
    rounds = 8
    algorithm = DPADMM(penalty=penalty, clip=clip)
    made = plan(of, algorithm, rounds=rounds, noise=noise_of(multiplier), sampler=Seeded(SEED), trust="local")
    model = run(made, shards(of)).model

    # Huang et al. with the duals at the server: step, consensus with the old duals, then the duals.
    rows, labels = data()
    parts = np.split(np.arange(len(labels)), np.cumsum(SIZES)[:-1])
    x, dual, w = np.zeros((3, FEATURES)), np.zeros((3, FEATURES)), np.zeros(FEATURES)
    for k in range(rounds):
        rho, near = 0.3 * 1.5 ** ((k + 1) // 3), math.sqrt(k + 1)
        for p, own in enumerate(parts):
            slopes = -labels[own] / (1 + np.exp(labels[own] * (rows[own] @ x[p])))
            if clip is not None:  # rows have norm 1
                slopes = np.clip(slopes, -clip, clip)
            gradient = rows[own].T @ slopes / SIZES.sum()
            std = multiplier * 2 * (clip or 1.0) / SIZES.sum() / (rho + near)
            x[p] = (rho * w + dual[p] + near * x[p] - gradient) / (rho + near)
            x[p] += drawn("gaussian", k, p, FEATURES, std)[0]
        w = np.mean(x - dual / rho, axis=0) / (1 + 0.1 / (rho * 3))
        dual = dual - rho * (x - w)
    np.testing.assert_allclose(model, w, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("regularizer", [NoPenalty(), L1(strength=0.05), L2(strength=0.1)])
@pytest.mark.parametrize("weighting", ["record", "party"])
@pytest.mark.slow
def test_reaches_the_optimum(regularizer, weighting):
    of = problem(regularizer=regularizer, weighting=weighting)
    own = shards(of)
    made = plan(of, DPADMM(penalty=0.04, proximity=20.0), rounds=400, noise=NoNoise())
    assert objective(made, own, run(made, own).model) == pytest.approx(optimum(of, own), abs=1e-8)


def test_the_noise_decreases_with_the_denominator_and_the_cost_does_not():
    of = problem()
    algorithm = DPADMM(penalty=0.5, proximity=Polynomial(first=2.0, power=-0.5))
    rounds, multiplier = 9, 6.0
    made = plan(of, algorithm, rounds=rounds, noise=GaussianNoise(multiplier=multiplier), sampler=Seeded(0))
    result = run(made, shards(of))
    scales = [float(np.max(entry.scale)) for entry in result.entries]
    gap = 2 / SIZES.sum()  # replace-one, slopes and rows of at most 1, over all records
    expected = [multiplier * gap / (0.5 + math.sqrt(k + 1) / 2) for k in range(rounds)]
    np.testing.assert_allclose(scales, expected, rtol=1e-12)
    assert scales == sorted(scales, reverse=True)
    for observer in (Eavesdropper(), Server()):
        assert gdp(made.guarantee(observer, 1e-6).event) == pytest.approx(math.sqrt(rounds) / multiplier)


def test_a_copy_is_as_noisy_as_its_gradient():
    of = problem()
    proximity = Polynomial(first=1.0, power=-0.5)
    one = plan(of, DPADMM(proximity=proximity), rounds=4, noise=GaussianNoise(multiplier=2.0), sampler=Seeded(0))
    other = plan(
        of,
        InexactADMM(subproblem=Proximal(proximity=proximity), norm=2),
        rounds=4,
        noise=GaussianNoise(multiplier=2.0),
        sampler=Seeded(0),
    )
    for k, (copy, gradient) in enumerate(
        zip(run(one, shards(of)).entries, run(other, shards(of)).entries, strict=True)
    ):
        assert float(np.max(copy.scale)) * (2.0 + math.sqrt(k + 1)) == pytest.approx(float(np.max(gradient.scale)))


def test_user_level_bounds_and_clips():
    of = problem(unit="party")
    facts = plan(of, DPADMM(), rounds=1, noise=NoNoise()).facts
    (release,) = DPADMM(penalty=1.0, proximity=1.0, clip=0.3).releases(facts)
    np.testing.assert_allclose(release.bounds.at("party", "replace-one"), 2 * 0.3 * SIZES / SIZES.sum() / 2)
    np.testing.assert_allclose(release.bounds.at("party", "add-remove"), 0.3 * SIZES / SIZES.sum() / 2)


def test_names():
    assert find("OutP") is DPADMM
    assert find("DP-ADMM (server)") is DPADMM
    assert find("ObjT") is InexactADMM


def test_refusals():
    with pytest.raises(InputError, match="over all parties"):
        plan(problem(), DPADMM(), rounds=2, noise=NoNoise(), schedule=PoissonSubset(0.5))
    with pytest.raises(InputError, match="2-norm"):
        plan(problem(), DPADMM(), rounds=2, noise=LaplaceNoise(multiplier=1.0))
    with pytest.raises(PreconditionError, match="Lipschitz"):
        plan(problem(loss=Squared(), target_bound=1.0), DPADMM(), rounds=2, noise=NoNoise())
    plan(problem(loss=Squared(), target_bound=1.0), DPADMM(clip=1.0), rounds=2, noise=NoNoise())
    with pytest.raises(InputError, match="proximity"):
        DPADMM(proximity=-1.0)
    with pytest.raises(InputError, match="clip"):
        DPADMM(clip=0.0)
