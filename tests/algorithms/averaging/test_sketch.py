"""A sketch tells whether rows have directions that are worth looking for; where they have none, passes are steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from consenso.algorithms.averaging import columns
from consenso.algorithms.averaging.centring import Centring
from consenso.algorithms.averaging.directions import PASSES, least_worth
from consenso.algorithms.averaging.sketch import SIZE, draw_sketch, measure_strength, sum_sketch
from consenso.algorithms.dual_averaging import DualAveraging
from consenso.losses import Logistic
from consenso.metric import pack_symmetric, unpack_symmetric
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.plans import execute

RECORDS, FEATURES = 3000, 200


def pose(records: int, features: int) -> Problem:
    return Problem(
        loss=Logistic(), regularizer=L2(strength=1e-5), features=features, sizes=np.array([records]), row_bound=1.0
    )


def draw_rows(part: float) -> np.ndarray:
    """Columns of which one direction, with signs that no other has, has this part of the squared lengths."""
    rng = np.random.default_rng(3)
    X = np.sqrt(1 - part) * rng.normal(size=(RECORDS, FEATURES))
    X += np.sqrt(part) * rng.normal(size=(RECORDS, 1)) * rng.choice([-1, 1], size=FEATURES)
    return X / np.quantile(np.linalg.norm(X, axis=1), 0.95)


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array], ids=["dense", "compressed"])
def test_sums_are_those_of_shortened_vectors(rows) -> None:
    rng = np.random.default_rng(1)
    X, shift, scales = rng.normal(size=(40, 5)), np.array([0.3, -0.5, 0.0, 0.1, 0.0]), np.array([1, 0.5, 0.2, 1, 1])
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    X[7] = 0.0
    cohort = Shards.from_parties(pose(40, 5), [(rows(X), np.ones(40))]).cohort()
    vectors, clip = draw_sketch(5, free=1), 0.4
    assert not vectors[4].any()
    z = scales * (X - shift * X[:, 4:]) @ vectors
    z *= np.minimum(1, clip / np.maximum(np.linalg.norm(z, axis=1), 1e-300))[:, None]
    told = sum_sketch(cohort, Centring(shift, clip, scales), vectors)
    np.testing.assert_allclose(unpack_symmetric(told, SIZE)[0], z.T @ z, atol=1e-9)


def test_one_row_is_no_longer_than_the_squared_clip() -> None:
    X = np.random.default_rng(2).normal(size=(1, 5))
    X /= np.linalg.norm(X)
    cohort = Shards.from_parties(pose(1, 5), [(X, np.ones(1))]).cohort()
    for clip in (0.01, 0.1, 0.3):
        told = sum_sketch(cohort, Centring(np.empty(0), clip, np.ones(5)), draw_sketch(5, free=0))
        assert np.linalg.norm(told) == pytest.approx(clip**2)
        assert np.linalg.norm(told) <= clip**2


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6])
def test_the_part_along_a_direction_is_measured(part) -> None:
    """A sketch of 16 numbers is off by a third (seeded); of twelve other directions none was further off."""
    X = draw_rows(part)
    cohort = Shards.from_parties(pose(RECORDS, FEATURES), [(X, np.ones(RECORDS))]).cohort()
    clip = float(np.sqrt(np.mean(np.square(X).sum(axis=1))))
    sums = sum_sketch(cohort, Centring(np.empty(0), clip, np.ones(FEATURES)), draw_sketch(FEATURES, free=0))
    moment = sums[0] / RECORDS / clip**2
    noise = 0.005
    noisy = moment + noise * np.random.default_rng(0).normal(size=moment.shape)
    found = measure_strength(noisy, noise, 0.0)
    assert found == 0.0 if part == 0 else 0.6 * part < found < 1.7 * part
    assert measure_strength(noisy, noise, 1.0) == 0.0


def test_noise_alone_is_no_direction() -> None:
    """The spectral norm of noise is at the edge of what counts: eight tenths of draws have nothing, none has 0.16."""
    rng = np.random.default_rng(5)
    found = [
        measure_strength(pack_symmetric(np.eye(SIZE)[None] / SIZE)[0] + 0.008 * rng.normal(size=136), 0.008, 0.0)
        for _ in range(200)
    ]
    assert np.mean(np.array(found) == 0) > 0.8
    assert max(found) < 0.16


def run_with(X):
    y = np.where(X[:, :5].sum(axis=1) > 0, 1.0, -1.0)
    algorithm, problem = DualAveraging(directions=4), pose(RECORDS, FEATURES)
    noise = {name: GaussianNoise(multiplier=weight) for name, weight in algorithm.noise_weights.items()}
    noise = {name: law for name, law in noise.items() if name not in ("mean", "length")}
    rounds = algorithm.other_rounds(problem) + 20
    made = plan(problem, algorithm, rounds=rounds, noise=noise, sampler=Seeded(1), trust="curator")
    return execute(made, Shards.from_parties(problem, [(X, y)]))[1]


def test_passes_look_for_directions_where_there_is_one_and_are_steps_where_there_is_none() -> None:
    for part, looks in ((0.6, True), (0.0, False)):
        run = run_with(draw_rows(part))
        hub = run.hub
        assert hub.looks == looks
        assert hub.taken == 20 + (0 if looks else PASSES)
        assert bool(hub.found.any()) == looks
        used = [entry for entry in run.entries if entry.name == "range"]
        assert len(used) == PASSES
        assert sum(entry.share for entry in used) == pytest.approx(1.0)


@pytest.mark.parametrize("worth", [-1.0, 2.0], ids=["looks", "steps"])
def test_a_pass_keeps_to_its_sensitivity_whatever_it_is_used_for(worth, monkeypatch) -> None:
    monkeypatch.setattr(columns, "least_worth", lambda share: worth)
    given = DualAveraging.example().variants[1]
    assert given.algorithm.directions
    laws.check_sensitivity(given, first=0)


def test_what_a_pass_must_find_to_be_worth_its_share() -> None:
    # Rows of the square 1.1 (1 - s) with 0.94 of the budget, or of the square 1 with all of it.
    assert 1.1 * (1 - least_worth(0.06)) == pytest.approx(0.94)
    assert DualAveraging(directions=8)._range_part() == pytest.approx(0.06 / (1 - 0.01 - 0.02 - 0.01 - 0.003))
