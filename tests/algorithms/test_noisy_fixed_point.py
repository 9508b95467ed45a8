"""The noisy fixed-point iteration: its blocks, relaxation and errors, and the utility bound on a real problem."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.transcription import SEED, drawn_on_sum, noise_of, record_gradients, soft, with_and_without_noise

from consenso import theory
from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint, RandomErrors
from consenso.engine.run import run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Logistic
from consenso.operators import AllBlocks, CyclicBlocks, MeanGradient, MeanProx, RandomBlock, SampledBlocks
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise, NoNoise, PerRound, Polynomial
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, NoPenalty
from consenso.shards import Shards

ROUNDS, MULTIPLIER, STEP = 20, 0.7, 3.0


def curator(loss=None, *, records=30, features=4, seed=0, **options):
    loss = loss or Logistic()
    rng = np.random.default_rng(seed)
    settings = {"regularizer": NoPenalty(), "row_bound": 1.0} | options
    problem = Problem(loss=loss, features=features, sizes=np.array([records]), **settings)
    rows = rng.normal(size=(records, features))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    targets = rng.choice([-1.0, 1.0], size=records)
    return problem, Shards.from_parties(problem, [(rows, targets)]), rows, targets


def planned(problem, algorithm, **options):
    settings = {"rounds": ROUNDS, "noise": GaussianNoise(multiplier=MULTIPLIER), "sampler": Seeded(SEED)} | options
    return plan(problem, algorithm, **settings)


def by_hand(rows, targets, *, active, relaxation, errors, strength, clip, multiplier):
    """Algorithm 1, with R(u) = prox_{step r}(u - step (mean gradient + noise))."""
    u = np.zeros(4)
    for k in range(ROUNDS):
        gradients = record_gradients(Logistic(), rows, targets, u)
        gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1) / clip)[:, None]
        where = active(k)
        if len(where) == 0:
            continue
        mean = gradients.mean(axis=0)
        mean[where] += drawn_on_sum(k, len(where), multiplier * 2 * clip) / len(rows)
        target = soft(u - STEP * mean, STEP * strength) + errors(k)
        u = u.copy()
        u[where] += relaxation(k) * (target - u)[where]
    return u


@pytest.mark.parametrize(
    ("blocks", "activation"),
    [(1, AllBlocks()), (2, CyclicBlocks()), ((1, 3), RandomBlock(seed=4)), (4, SampledBlocks(rate=0.4, seed=4))],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("strength", [0.0, 0.02])
@with_and_without_noise
def test_iterates_follow_the_paper(blocks, activation, strength, multiplier):
    problem, shards, rows, targets = curator(regularizer=L1(strength=strength) if strength else NoPenalty())
    sizes = {1: (4,), 2: (2, 2), 4: (1, 1, 1, 1)}.get(blocks, blocks)
    starts = np.cumsum((0, *sizes))

    def active(k):
        chosen = activation.active(k, len(sizes))
        return np.concatenate([np.arange(starts[b], starts[b + 1]) for b in chosen] or [np.empty(0, dtype=int)])

    errors = RandomErrors(size=0.05, seed=9)
    algorithm = NoisyFixedPoint(
        operator=MeanGradient(step=STEP, clip=0.4),
        blocks=blocks,
        activation=activation,
        relaxation=Polynomial(first=0.9, power=-0.2),
        errors=errors,
    )
    expected = by_hand(
        rows,
        targets,
        active=active,
        relaxation=lambda k: 0.9 * (k + 1) ** -0.2,
        errors=lambda k: errors.at(k, 4),
        strength=strength,
        clip=0.4,
        multiplier=multiplier,
    )
    made = planned(problem, algorithm, noise=noise_of(multiplier))
    np.testing.assert_allclose(run(made, shards).model, expected, rtol=1e-10, atol=1e-13)


def test_errors_have_the_stated_size():
    lengths = [np.linalg.norm(RandomErrors(size=0.3, seed=1).at(k, 7)) for k in range(20)]
    np.testing.assert_allclose(lengths, 0.3)


def test_a_round_without_blocks_releases_nothing_and_costs_nothing():
    problem, shards, *_ = curator()
    activation = SampledBlocks(rate=0.3, seed=0)
    algorithm = NoisyFixedPoint(operator=MeanGradient(step=STEP), blocks=2, activation=activation)
    idle = [k for k in range(ROUNDS) if len(activation.active(k, 2)) == 0]
    assert idle
    made = planned(problem, algorithm)
    result = run(made, shards)
    assert {entry.round for entry in result.entries} == set(range(ROUNDS)) - set(idle)
    # A row has one length for both blocks, so that the one which acts more often counts.
    acts = np.bincount(np.concatenate([activation.active(k, 2) for k in range(ROUNDS)]))
    busy = planned(problem, NoisyFixedPoint(operator=MeanGradient(step=STEP)), rounds=int(acts.max()))
    assert made.guarantee(Public(), 1e-5).epsilon(1e-5) == pytest.approx(busy.guarantee(Public(), 1e-5).epsilon(1e-5))


def test_the_mean_of_proxes_learns_with_kinks():
    problem, shards, rows, targets = curator(Hinge(), regularizer=L2(strength=0.1))
    algorithm = NoisyFixedPoint(operator=MeanProx(step=0.05))
    model = run(planned(problem, algorithm, rounds=1500, noise=NoNoise()), shards).model

    def objective(x):
        return np.maximum(0, 1 - targets * (rows @ x)).mean() + 0.05 * x @ x

    import cvxpy as cp

    x = cp.Variable(4)
    best = cp.Problem(
        cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(targets, rows @ x))) / len(rows) + 0.05 * cp.sum_squares(x))
    ).solve(solver=cp.CLARABEL)
    # The envelopes lie at most step/2 * L^2 = 0.025 below the losses.
    assert best <= objective(model) + 1e-9 <= best + 0.0255


@pytest.mark.parametrize("chance", [1.0, 0.5])
def test_the_utility_bound_holds_for_private_ridge_logistic_regression(chance):
    strength, rounds, runs, step = 0.5, 15, 60, 2.0
    problem, shards, *_ = curator(regularizer=L2(strength=strength))
    activation = AllBlocks() if chance == 1 else SampledBlocks(rate=chance, seed=1)
    operator = MeanGradient(step=step)
    exact = NoisyFixedPoint(operator=operator)
    fixed = run(planned(problem, exact, rounds=200, noise=NoNoise()), shards).model
    contraction = operator.lipschitz(problem)
    assert contraction < 1
    std = 2.0 * 2 * problem.loss.lipschitz(1.0)
    noise = step * std / problem.records / (1 + step * strength)
    squares = []
    for seed in range(runs):
        coins = activation if chance == 1 else SampledBlocks(rate=chance, seed=seed)
        algorithm = NoisyFixedPoint(operator=operator, blocks=1 if chance == 1 else 4, activation=coins)
        made = planned(problem, algorithm, rounds=rounds, noise=GaussianNoise(multiplier=2.0), sampler=Seeded(seed))
        squares.append(np.sum((run(made, shards).model - fixed) ** 2))
    utility = theory.Utility(contraction=contraction, dim=problem.dim, noise=noise, chance=chance)
    bound = utility.bound(rounds, float(fixed @ fixed))
    # Six standard errors: a false alarm has probability below 1e-8.
    assert np.mean(squares) - 6 * np.std(squares) / np.sqrt(runs) <= bound
    assert np.mean(squares) >= bound / 20  # and the bound says something


def test_what_cannot_be_done_is_refused():
    problem, *_ = curator(regularizer=Ball(radius=1.0))
    with pytest.raises(InputError, match="blocks=1"):
        planned(problem, NoisyFixedPoint(operator=MeanGradient(step=1.0), blocks=2))
    plain, *_ = curator()
    for relaxation in (0.0, 1.5, PerRound(values=(1.0,) * (ROUNDS - 1) + (2.0,))):
        with pytest.raises(InputError, match="relaxation"):
            planned(plain, NoisyFixedPoint(operator=MeanGradient(step=1.0), relaxation=relaxation))
    with pytest.raises(PreconditionError, match="non-expansive"):
        planned(plain, NoisyFixedPoint(operator=MeanGradient(step=9.0)))
    with pytest.raises(InputError, match="blocks"):
        planned(plain, NoisyFixedPoint(operator=MeanGradient(step=1.0), blocks=5))
    with pytest.raises(InputError, match="rate"):
        NoisyFixedPoint(operator=MeanGradient(step=1.0), rate=1.2)
