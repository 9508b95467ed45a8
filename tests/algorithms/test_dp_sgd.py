"""DP-SGD and DP-CD against plain loops written from the papers' formulas, with the same noise and the same coins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from consenso.algorithms import find
from consenso.algorithms.dp_cd import DPCD
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint
from consenso.engine.run import run
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Logistic, Softmax, Squared
from consenso.operators import AllBlocks, CyclicBlocks, MeanGradient, RandomBlock, SampledBlocks
from consenso.planning.plan import plan
from consenso.privacy import accountants
from consenso.privacy.events import Gaussian, Sampled, repeat, reveal_coin
from consenso.privacy.noise import GaussianNoise, NoNoise, Polynomial
from consenso.privacy.observers import Peer, Public
from consenso.privacy.release import COIN_STREAM, HUB
from consenso.privacy.run_spec import PrivacyQuery
from consenso.privacy.samplers import Key, Seeded
from consenso.problem import Problem
from consenso.regularizers import L1, L2, Ball, NoPenalty
from consenso.schedules import Everyone, FixedSubset, PoissonSubset
from consenso.shards import Shards

SEED, ROUNDS, MULTIPLIER = 3, 25, 0.8


def curator(loss=None, *, records=40, features=3, seed=0, **options):
    """One party's table: the problem, its shards, and the rows and targets as they are after bounding."""
    loss = loss or Logistic()
    rng = np.random.default_rng(seed)
    settings = {"regularizer": L1(strength=0.01), "row_bound": 1.0} | options
    problem = Problem(loss=loss, features=features, sizes=np.array([records]), **settings)
    rows = rng.normal(size=(records, features)) * np.array([1.0, 0.4, 0.1])[:features]
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    targets = rng.integers(loss.outputs, size=records) if loss.outputs > 1 else rng.choice([-1.0, 1.0], size=records)
    return problem, Shards.from_parties(problem, [(rows, targets)]), rows, targets


def planned(problem, algorithm, **options):
    settings = {"rounds": ROUNDS, "noise": GaussianNoise(multiplier=MULTIPLIER), "sampler": Seeded(SEED)} | options
    return plan(problem, algorithm, **settings)


def noise_on_sum(round_, size, std):
    """What a curator adds to the only release of a round: keyed by the number of parties, 1."""
    key = Key(parties=np.array([HUB]), round=round_, release=0, repetition=0)
    return Seeded(SEED).gaussian(np.zeros((1, size)), std, key, sensitivity=1.0)[0]


def coins(round_, records, rate):
    key = Key(parties=np.array([0]), round=round_, release=0, repetition=0, stream=COIN_STREAM)
    return Seeded(SEED).uniform(key, records)[0] < rate


def record_gradients(loss, rows, targets, u):
    """(records, dim): the array that the library never makes."""
    scores = rows @ u.reshape(rows.shape[1], -1)
    slopes = loss.slope(scores if loss.outputs > 1 else scores[:, 0], targets).reshape(len(rows), -1)
    return (rows[:, :, None] * slopes[:, None, :]).reshape(len(rows), -1)


def dp_sgd_by_hand(problem, rows, targets, *, step, clip, rate, sensitivity):
    u, iterates = np.zeros(problem.dim), []
    for k in range(ROUNDS):
        gradients = record_gradients(problem.loss, rows, targets, u)
        lengths = np.linalg.norm(gradients, axis=1)
        shortened = gradients / np.maximum(1.0, lengths / clip)[:, None]
        total = shortened[coins(k, len(rows), rate)].sum(axis=0)
        total = total + noise_on_sum(k, problem.dim, MULTIPLIER * sensitivity)
        u = problem.regularizer.prox(u - step(k) * total / (rate * len(rows)), step(k))
        iterates.append(u)
    return np.array(iterates)


@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize(("rate", "adjacency"), [(1.0, "replace-one"), (0.3, "add-remove")])
def test_iterates_are_those_of_the_formula(loss, rate, adjacency):
    problem, shards, rows, targets = curator(loss, adjacency=adjacency)
    clip = 0.3
    result = run(planned(problem, DPSGD(step=0.7, clip=clip, rate=rate)), shards)
    sensitivity = clip * (1 if adjacency == "add-remove" else 2)
    expected = dp_sgd_by_hand(problem, rows, targets, step=lambda k: 0.7, clip=clip, rate=rate, sensitivity=sensitivity)
    np.testing.assert_allclose(result.model, expected[-1], rtol=1e-10, atol=1e-12)


def test_steps_and_averages_follow_their_sequences():
    problem, shards, rows, targets = curator()
    schedule = Polynomial(first=1.0, power=-0.5)
    result = run(planned(problem, DPSGD(step=schedule, clip=0.3, averaging=0.4)), shards)
    expected = dp_sgd_by_hand(
        problem, rows, targets, step=lambda k: (k + 1) ** -0.5, clip=0.3, rate=1.0, sensitivity=0.6
    )
    np.testing.assert_allclose(result.model, expected[-10:].mean(axis=0), rtol=1e-10)


def test_sparse_rows_give_the_same_iterates():
    problem, shards, rows, targets = curator()
    compressed = Shards.from_parties(problem, [(sparse.csr_array(rows), targets)])
    made = planned(problem, DPSGD(step=0.7, clip=0.3, rate=0.5))
    np.testing.assert_allclose(run(made, compressed).model, run(made, shards).model, rtol=1e-12)


def test_the_fixed_point_iteration_recovers_dp_sgd():
    problem, shards, *_ = curator(regularizer=NoPenalty())
    smoothness, step = problem.loss.smoothness(1.0), 0.9
    general = NoisyFixedPoint(
        operator=MeanGradient(step=2 / smoothness, clip=0.3), relaxation=step * smoothness / 2, rate=0.4
    )
    one = run(planned(problem, DPSGD(step=step, clip=0.3, rate=0.4)), shards)
    other = run(planned(problem, general), shards)
    np.testing.assert_allclose(one.model, other.model, rtol=1e-10)


def test_the_model_does_not_depend_on_how_records_are_spread_over_parties():
    problem, shards, rows, targets = curator()
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
    problem, *_ = curator(adjacency=adjacency)
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
    facts = planned(problem, DPSGD(clip=0.3), trust="curator").spec.facts
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
    assert promise.guarantee.theorem == "FixedSizeWithoutMemory"
    everyone = planned(problem, algorithm, schedule=Everyone(), **options)
    assert promise.guarantee.epsilon(1e-5) < everyone.guarantee(Public(), 1e-5).epsilon(1e-5)


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
        made.spec, PrivacyQuery(observer=Public(), unit="party", adjacency="replace-one", party=0)
    )
    theorem = candidate()
    longest = 5 * 0.3  # and replace-one noise is three times twice that
    assert theorem.contribution / theorem.std == pytest.approx(longest / (3.0 * 2 * longest))


def test_records_in_sampled_parties_are_not_amplified():
    # The rest of a party's records tells that it takes part: a record's own bound says nothing of that.
    problem = Problem(loss=Logistic(), regularizer=NoPenalty(), features=3, sizes=np.full(20, 50), row_bound=1.0)
    made = planned(problem, DPSGD(clip=0.3), schedule=PoissonSubset(0.1), trust="curator")
    promise = made.prove(Public(), 0, 1e-5)
    one = Gaussian(MULTIPLIER, 1.0)
    sound = accountants.epsilon(repeat(reveal_coin(one, 0.1), ROUNDS), 1e-5)
    assert promise.guarantee.epsilon(1e-5) >= sound * (1 - 1e-6)


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


# --- DP-CD -----------------------------------------------------------------------------------------------------------


def dp_cd_by_hand(problem, rows, targets, features_of_round, *, bounds, slope_bound, step, sensitivity):
    """u_j <- prox_{step_j r}(u_j - step_j (grad_j + noise)), coordinate by coordinate."""
    u, outputs = np.zeros(problem.dim), problem.outputs
    for k in range(ROUNDS):
        gradients = record_gradients(problem.loss, rows, targets, u).reshape(len(rows), problem.features, outputs)
        active, before = features_of_round(k), u.copy()
        if len(active) == 0:
            continue
        noise = noise_on_sum(k, len(active) * outputs, MULTIPLIER * sensitivity(len(active))).reshape(-1, outputs)
        for place, j in enumerate(active):
            total = gradients[:, j].sum(axis=0) + bounds[j] * noise[place]  # noise in proportion to L_j
            length = step / problem.loss.smoothness(bounds[j])  # 1 / M_j
            moved = before.copy()
            moved[j * outputs : (j + 1) * outputs] -= length * total / len(rows)
            u[j * outputs : (j + 1) * outputs] = problem.regularizer.prox(moved, length)[
                j * outputs : (j + 1) * outputs
            ]
    return u


@pytest.mark.parametrize("loss", [Logistic(), Softmax(classes=3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "activation",
    [CyclicBlocks(), RandomBlock(seed=1), SampledBlocks(rate=0.4, seed=1), AllBlocks()],
    ids=lambda a: type(a).__name__,
)
def test_coordinate_iterates_are_those_of_the_formula(loss, activation):
    problem, shards, rows, targets = curator(loss)
    bounds = np.abs(rows).max(axis=0)  # public in this test
    algorithm = DPCD(step=0.8, column_bounds=tuple(bounds), activation=activation)
    result = run(planned(problem, algorithm), shards)

    def sensitivity(count):
        return 2 * loss.slope_bound * np.sqrt(count)  # replace-one, of columns over their bounds

    expected = dp_cd_by_hand(
        problem,
        rows,
        targets,
        lambda k: activation.active(k, 3),
        bounds=bounds,
        slope_bound=loss.slope_bound,
        step=0.8,
        sensitivity=sensitivity,
    )
    np.testing.assert_allclose(result.model, expected, rtol=1e-9, atol=1e-12)


def test_the_fixed_point_iteration_recovers_coordinate_descent():
    problem, shards, *_ = curator()
    one = run(planned(problem, DPCD(step=0.5, activation=RandomBlock(seed=2))), shards)
    operator = MeanGradient(step=0.5 / problem.loss.smoothness(1.0))
    other = run(planned(problem, NoisyFixedPoint(operator=operator, blocks=3, activation=RandomBlock(seed=2))), shards)
    np.testing.assert_allclose(one.model, other.model, rtol=1e-10)


def test_small_columns_get_small_noise():
    problem, *_ = curator()
    algorithm = DPCD(column_bounds=(1.0, 0.5, 0.1))
    facts = planned(problem, algorithm).spec.facts
    (release,) = algorithm.releases(facts)
    one = problem.loss.slope_bound * problem.scales[0]
    assert release.bounds.at("record", "add-remove") == pytest.approx(one)
    several = DPCD(column_bounds=(1.0, 0.9, 0.8), activation=AllBlocks())
    (release,) = several.releases(facts)
    # Three columns would be sqrt(3); the row bound of 1 over the smallest column bound is less.
    assert release.bounds.at("record", "add-remove") == pytest.approx(one / 0.8)


def test_entries_beyond_their_bound_are_cut_off():
    problem, shards, rows, targets = curator(regularizer=NoPenalty())
    result = run(planned(problem, DPCD(column_bounds=(0.2, 0.2, 0.05)), rounds=1, noise=NoNoise()), shards)
    slopes = problem.loss.slope(np.zeros(len(rows)), targets)
    mean = np.mean(slopes * np.clip(rows[:, 0], -0.2, 0.2))
    assert result.model[0] == pytest.approx(-mean / problem.loss.smoothness(0.2))


def test_coordinate_descent_refuses_what_does_not_fall_apart():
    with pytest.raises(InputError, match="DPSGD"):
        planned(curator(regularizer=Ball(radius=1.0))[0], DPCD())
    with pytest.raises(InputError, match="column_bounds"):
        planned(curator()[0], DPCD(column_bounds=(1.0, 2.0)))
    with pytest.raises(PreconditionError, match="smooth"):
        planned(curator(Hinge())[0], DPCD())
    with pytest.raises(PreconditionError, match="slope_clip"):
        planned(curator(Squared(), target_bound=1.0)[0], DPCD())
    planned(curator(Squared(), target_bound=1.0, regularizer=L2(strength=0.1))[0], DPCD(slope_clip=1.0))
