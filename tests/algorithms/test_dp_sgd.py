"""DP-SGD: its iterates, what sampling costs and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from tests.algorithms.transcription import (
    SEED,
    curator,
    drawn_on_sum,
    noise_of,
    record_gradients,
    sampled_records,
    soft,
    with_and_without_noise,
)

from consenso.algorithms import find
from consenso.algorithms.dp_cd import DPCD
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint
from consenso.engine.run import run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Logistic, Softmax, Squared
from consenso.operators import MeanGradient
from consenso.planning.plan import plan
from consenso.privacy import accountants
from consenso.privacy.events import Gaussian, Sampled, repeat, reveal_coin
from consenso.privacy.noise import GaussianNoise, NoNoise, Polynomial
from consenso.privacy.observers import Peer, Public
from consenso.privacy.run_spec import PrivacyQuery
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.schedules import Everyone, FixedSubset, PoissonSubset
from consenso.shards import Shards

ROUNDS, MULTIPLIER = 25, 0.8


def planned(problem, algorithm, **options):
    settings = {"rounds": ROUNDS, "noise": GaussianNoise(multiplier=MULTIPLIER), "sampler": Seeded(SEED)} | options
    return plan(problem, algorithm, **settings)


def dp_sgd(problem, rows, targets, *, step, clip, rate, std):
    """Abadi et al. 2016, Algorithm 1, with a proximal step for the 1-norm and the public size of the sample."""
    u, iterates = np.zeros(problem.dim), []
    for k in range(ROUNDS):
        gradients = record_gradients(problem.loss, rows, targets, u)
        lengths = np.linalg.norm(gradients, axis=1)
        shortened = gradients / np.maximum(1.0, lengths / clip)[:, None]
        total = shortened[sampled_records(k, 0, len(rows), rate)].sum(axis=0) + drawn_on_sum(k, problem.dim, std)
        u = soft(u - step(k) * total / (rate * len(rows)), step(k) * 0.01)
        iterates.append(u)
    return np.array(iterates)


@with_and_without_noise
@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize(("rate", "adjacency"), [(1.0, "replace-one"), (0.3, "add-remove")])
def test_iterates_follow_the_paper(loss, rate, adjacency, multiplier):
    problem, shards, rows, targets = curator(loss, adjacency=adjacency)
    clip = 0.3
    made = planned(problem, DPSGD(step=0.7, clip=clip, rate=rate), noise=noise_of(multiplier))
    std = multiplier * clip * (1 if adjacency == "add-remove" else 2)
    expected = dp_sgd(problem, rows, targets, step=lambda k: 0.7, clip=clip, rate=rate, std=std)
    np.testing.assert_allclose(run(made, shards).model, expected[-1], rtol=1e-10, atol=1e-12)


def test_steps_and_averages_follow_their_sequences():
    problem, shards, rows, targets = curator(Logistic())
    schedule = Polynomial(first=1.0, power=-0.5)
    result = run(planned(problem, DPSGD(step=schedule, clip=0.3, averaging=0.4)), shards)
    expected = dp_sgd(problem, rows, targets, step=lambda k: (k + 1) ** -0.5, clip=0.3, rate=1.0, std=0.6 * MULTIPLIER)
    np.testing.assert_allclose(result.model, expected[-10:].mean(axis=0), rtol=1e-10)


def test_sparse_rows_give_the_same_iterates():
    problem, shards, rows, targets = curator(Logistic())
    compressed = Shards.from_parties(problem, [(sparse.csr_array(rows), targets)])
    made = planned(problem, DPSGD(step=0.7, clip=0.3, rate=0.5))
    np.testing.assert_allclose(run(made, compressed).model, run(made, shards).model, rtol=1e-12)


def test_the_fixed_point_iteration_recovers_dp_sgd():
    problem, shards, *_ = curator(Logistic(), regularizer=NoPenalty())
    smoothness, step = problem.loss.smoothness(1.0), 0.9
    general = NoisyFixedPoint(
        operator=MeanGradient(step=2 / smoothness, clip=0.3), relaxation=step * smoothness / 2, rate=0.4
    )
    one = run(planned(problem, DPSGD(step=step, clip=0.3, rate=0.4)), shards)
    other = run(planned(problem, general), shards)
    np.testing.assert_allclose(one.model, other.model, rtol=1e-10)


def test_the_model_does_not_depend_on_how_records_are_spread_over_parties():
    problem, shards, rows, targets = curator(Logistic())
    spread = Problem(
        loss=problem.loss, regularizer=problem.regularizer, features=3, sizes=np.array([10, 25, 5]), row_bound=1.0
    )
    parts = [(rows[:10], targets[:10]), (rows[10:35], targets[10:35]), (rows[35:], targets[35:])]
    algorithm = DPSGD(step=0.7, clip=0.3)
    alone = run(planned(problem, algorithm, noise=NoNoise()), shards)
    together = run(planned(spread, algorithm, noise=NoNoise(), trust="curator"), Shards.from_parties(spread, parts))
    np.testing.assert_allclose(alone.model, together.model, rtol=1e-10)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_what_a_run_costs_is_the_sampled_gaussian(adjacency):
    problem, *_ = curator(Logistic(), adjacency=adjacency)
    rate, clip = 0.2, 0.3
    made = planned(problem, DPSGD(step=0.7, clip=clip, rate=rate))
    std = MULTIPLIER * clip * (1 if adjacency == "add-remove" else 2)
    expected = accountants.epsilon(repeat(Sampled(std, clip, rate, adjacency), ROUNDS), 1e-5)
    assert made.guarantee(Public(), 1e-5).epsilon(1e-5) == pytest.approx(expected, rel=1e-6)
    without = planned(problem, DPSGD(step=0.7, clip=clip))
    plain = accountants.epsilon(repeat(Gaussian(MULTIPLIER, 1.0), ROUNDS), 1e-5)
    assert without.guarantee(Public(), 1e-5).epsilon(1e-5) == pytest.approx(plain, rel=1e-6)
    assert expected < plain


@pytest.mark.parametrize("weighting", ["record", "party"])
def test_bounds_at_both_units_and_adjacencies(weighting):
    problem = Problem(
        loss=Logistic(),
        regularizer=NoPenalty(),
        features=3,
        sizes=np.array([4, 10]),
        row_bound=1.0,
        weighting=weighting,
    )
    facts = planned(problem, DPSGD(clip=0.3), trust="curator").facts
    (release,) = DPSGD(clip=0.3).releases(facts)
    one = 0.3 * problem.scales
    for unit, size in (("record", 1), ("party", problem.sizes)):
        np.testing.assert_allclose(np.broadcast_to(release.bounds.at(unit, "add-remove"), 2), one * size)
        np.testing.assert_allclose(np.broadcast_to(release.bounds.at(unit, "replace-one"), 2), 2 * one * size)


def test_sampling_parties_by_a_fixed_size_is_claimed_for_the_public_only():
    problem = Problem(
        loss=Logistic(), regularizer=NoPenalty(), features=3, sizes=np.full(20, 3), row_bound=1.0, unit="party"
    )
    algorithm = DPSGD(step=0.7, clip=0.3)
    options = {"trust": "curator", "noise": GaussianNoise(multiplier=3.0)}
    fixed = planned(problem, algorithm, schedule=FixedSubset(2), **options)
    promise = fixed.prove(Public(), 0, 1e-5)
    assert promise.theorem == "FixedSizeWithoutMemory"
    everyone = planned(problem, algorithm, schedule=Everyone(), **options)
    assert promise.epsilon(1e-5) < everyone.guarantee(Public(), 1e-5).epsilon(1e-5)


def test_a_fixed_size_sample_is_charged_for_the_largest_party():
    # A small party that is drawn displaces a large one, so its guarantee rests on the large one's contribution.
    sizes = np.array([1] * 10 + [5] * 10)
    problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=3, sizes=sizes, row_bound=1.0, unit="party")
    made = planned(
        problem,
        DPSGD(clip=0.3),
        schedule=FixedSubset(2),
        trust="curator",
        noise=GaussianNoise(multiplier=3.0),
    )
    (candidate,) = DPSGD(clip=0.3).theorems(
        made, PrivacyQuery(observer=Public(), unit="party", adjacency="replace-one", party=0)
    )
    theorem = candidate()
    # The large one adds 5 * 0.3 to a sum whose noise is 3 times twice that.
    assert theorem.contribution / theorem.std == pytest.approx(1 / 6)


def test_records_in_sampled_parties_are_not_amplified():
    # The rest of a party's records tells that it takes part: a record's own bound says nothing of that.
    problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=3, sizes=np.full(20, 50), row_bound=1.0)
    made = planned(problem, DPSGD(clip=0.3), schedule=PoissonSubset(0.1), trust="curator")
    promise = made.prove(Public(), 0, 1e-5)
    one = Gaussian(MULTIPLIER, 1.0)
    sound = accountants.epsilon(repeat(reveal_coin(one, 0.1), ROUNDS), 1e-5)
    assert promise.epsilon(1e-5) >= sound * (1 - 1e-6)


def test_a_party_knows_its_own_share_of_the_noise_on_sampled_sums():
    problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=3, sizes=np.full(4, 6), row_bound=1.0)
    made = planned(problem, DPSGD(clip=0.3, rate=0.5), trust="secure-sum", noise=GaussianNoise(multiplier=3.0))
    inside, outside = (made.guarantee(observer, 1e-5).epsilon(1e-5) for observer in (Peer(party=0), Public()))
    assert inside > outside * 1.05


def test_squared_losses_need_a_clip_and_kinks_do_not_matter():
    problem, *_ = curator(Squared(), target_bound=1.0)
    with pytest.raises(PreconditionError, match="clip"):
        planned(problem, DPSGD())
    planned(problem, DPSGD(clip=1.0))
    planned(curator(Hinge())[0], DPSGD())
    for bad in ({"step": 0.0}, {"clip": -1.0}, {"rate": 0.0}, {"averaging": 1.5}):
        with pytest.raises(InputError, match=next(iter(bad))):
            DPSGD(**bad)


def test_people_find_it_by_its_names():
    assert find("DP-SGD") is DPSGD
    assert find("dp-cd") is DPCD
    assert find("000-1") is NoisyFixedPoint
