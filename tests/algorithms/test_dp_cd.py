"""DP-CD: its iterates, its noise by column and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from tests.algorithms.transcription import (
    SEED,
    curator,
    drawn_on_sum,
    noise_of,
    record_gradients,
    soft,
    with_and_without_noise,
)

from consenso.algorithms.dp_cd import DPCD
from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint
from consenso.engine.run import run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Logistic, Softmax, Squared
from consenso.operators import AllBlocks, CyclicBlocks, MeanGradient, RandomBlock, SampledBlocks
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise, NoNoise
from consenso.privacy.samplers import Seeded
from consenso.regularizers import L2, Ball, NoPenalty

ROUNDS = 25


def planned(problem, algorithm, **options):
    settings = {"rounds": ROUNDS, "noise": GaussianNoise(multiplier=0.8), "sampler": Seeded(SEED)} | options
    return plan(problem, algorithm, **settings)


def dp_cd(problem, rows, targets, active, *, bounds, step, std):
    """Mangold et al. 2022, Algorithm 1 without its inner averages: u_j <- prox(u_j - step/M_j (grad_j + noise L_j))."""
    outputs, smoothness = problem.outputs, 0.25 if problem.outputs == 1 else 0.5
    u = np.zeros((3, outputs))
    for k in range(ROUNDS):
        gradients = record_gradients(problem.loss, rows, targets, u).reshape(len(rows), 3, outputs)
        features = active(k)
        noise = drawn_on_sum(k, len(features) * outputs, std(len(features))).reshape(-1, outputs)
        for place, j in enumerate(features):
            length = step / (smoothness * bounds[j] ** 2)
            mean = (gradients[:, j].sum(axis=0) + bounds[j] * noise[place]) / len(rows)
            u[j] = soft(u[j] - length * mean, length * 0.01)
    return u.ravel()


@with_and_without_noise
@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "activation",
    [CyclicBlocks(), RandomBlock(seed=1), SampledBlocks(rate=0.4, seed=1), AllBlocks()],
    ids=lambda a: type(a).__name__,
)
def test_iterates_follow_the_paper(loss, activation, multiplier):
    problem, shards, rows, targets = curator(loss)
    bounds = np.abs(rows).max(axis=0)  # public in this test
    algorithm = DPCD(step=0.8, column_bounds=tuple(bounds), activation=activation)
    result = run(planned(problem, algorithm, noise=noise_of(multiplier)), shards)
    slope = 1.0 if loss.outputs == 1 else np.sqrt(2)
    expected = dp_cd(
        problem,
        rows,
        targets,
        lambda k: activation.active(k, 3),
        bounds=bounds,
        step=0.8,
        std=lambda count: multiplier * 2 * slope * np.sqrt(count),  # replace-one, of columns over their bounds
    )
    np.testing.assert_allclose(result.model, expected, rtol=1e-10, atol=1e-12)


def test_the_fixed_point_iteration_recovers_coordinate_descent():
    problem, shards, *_ = curator(Logistic())
    one = run(planned(problem, DPCD(step=0.5, activation=RandomBlock(seed=2))), shards)
    operator = MeanGradient(step=0.5 / problem.loss.smoothness(1.0))
    other = run(planned(problem, NoisyFixedPoint(operator=operator, blocks=3, activation=RandomBlock(seed=2))), shards)
    np.testing.assert_allclose(one.model, other.model, rtol=1e-10)


def test_small_columns_get_small_noise():
    problem, *_ = curator(Logistic())
    algorithm = DPCD(column_bounds=(1.0, 0.5, 0.1))
    facts = planned(problem, algorithm).facts
    (release,) = algorithm.releases(facts)
    one = problem.loss.slope_bound * problem.scales[0]
    assert release.bounds.at("record", "add-remove") == pytest.approx(one)
    several = DPCD(column_bounds=(1.0, 0.9, 0.8), activation=AllBlocks())
    (release,) = several.releases(facts)
    # Three columns would be sqrt(3); the row bound of 1 over the smallest column bound is less.
    assert release.bounds.at("record", "add-remove") == pytest.approx(one / 0.8)


def test_entries_beyond_their_bound_are_cut_off():
    problem, shards, rows, targets = curator(Logistic(), regularizer=NoPenalty())
    result = run(planned(problem, DPCD(column_bounds=(0.2, 0.2, 0.05)), rounds=1, noise=NoNoise()), shards)
    slopes = problem.loss.slope(np.zeros(len(rows)), targets)
    mean = np.mean(slopes * np.clip(rows[:, 0], -0.2, 0.2))
    assert result.model[0] == pytest.approx(-mean / problem.loss.smoothness(0.2))


def test_coordinate_descent_refuses_what_does_not_fall_apart():
    with pytest.raises(InputError, match="DPSGD"):
        planned(curator(Logistic(), regularizer=Ball(radius=1.0))[0], DPCD())
    with pytest.raises(InputError, match="column_bounds"):
        planned(curator(Logistic())[0], DPCD(column_bounds=(1.0, 2.0)))
    with pytest.raises(PreconditionError, match="smooth"):
        planned(curator(Hinge())[0], DPCD())
    with pytest.raises(PreconditionError, match="slope_clip"):
        planned(curator(Squared(), target_bound=1.0)[0], DPCD())
    planned(curator(Squared(), target_bound=1.0, regularizer=L2(strength=0.1))[0], DPCD(slope_clip=1.0))
