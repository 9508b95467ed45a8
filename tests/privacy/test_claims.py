"""No claim is stronger than what is true: laws over everything that is discovered, and exact values beside them."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import hypergeom, norm
from tests.selection import IN_FULL, few_settings

from consenso.algorithms import discover
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.errors import InputError, PreconditionError
from consenso.losses import Hinge, Huber
from consenso.planning.plan import plan
from consenso.privacy.accountants import delta, epsilon, rdp
from consenso.privacy.composition import amplify
from consenso.privacy.events import Bounded, Repeated, Sampled
from consenso.privacy.noise import (
    Constant,
    GammaNormNoise,
    GaussianNoise,
    Geometric,
    LaplaceNoise,
    NoNoise,
    PerRound,
    Polynomial,
)
from consenso.privacy.observers import Coalition, Peer, Public, Server
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import open_releaser
from consenso.privacy.run_spec import PrivacyQuery
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.schedules import Cyclic, FixedSubset, PoissonSubset, RandomOrder, RandomStopping
from consenso.testing.laws import check_sensitivity
from consenso.testing.plans import plan_example

DELTA = 1e-5
ALGORITHMS = discover()


def with_noise(example, noise, **changes):
    """The example's plan with one noise for all of its releases."""
    names = example.noise if isinstance(example.noise, dict) else None
    return plan_example(example, noise=dict.fromkeys(names, noise) if names else noise, **changes)


def settings_of(example, in_full):
    return [
        {"schedule": schedule, "trust": trust}
        for each in ([example] if in_full else few_settings(example))
        for schedule in each.schedules
        for trust in each.trusts
    ]


def gaussian_epsilon(mu: float, share: float = 1.0) -> float:
    """Exact epsilon of a shift by mu standard deviations that is made, and known, with probability `share`."""

    def missing(eps):
        return share * (norm.cdf(mu / 2 - eps / mu) - np.exp(eps + norm.logcdf(-mu / 2 - eps / mu))) - DELTA

    return brentq(missing, 1e-12, mu**2 + 40 * mu + 40)


# --- noise that changes over the rounds ------------------------------------------------------------------------------


@IN_FULL
@pytest.mark.parametrize("name", ALGORITHMS)
def test_falling_noise_costs_at_least_its_last_round_and_at_most_as_if_all_rounds_were_that_quiet(name, in_full):
    example = ALGORITHMS[name].example()
    law = type(next(iter(example.noise.values())) if isinstance(example.noise, dict) else example.noise)
    if law is NoNoise:
        return
    falling = law(multiplier=Geometric(first=8.0, ratio=0.2))
    for changes in settings_of(example, in_full):
        if isinstance(changes["schedule"], RandomStopping):
            continue  # the last round may never be reached
        try:
            made = with_noise(example, falling, rounds=3, **changes)
        except (InputError, PreconditionError):
            continue  # no guarantee can be stated, and none is
        last = law(multiplier=falling.scale(1.0, 2))
        quiet, alone = with_noise(example, last, rounds=3, **changes), None
        one = made.facts.only(np.array([0]))
        if made.algorithm.releases(one) == made.algorithm.releases(one.at(2)):
            alone = with_noise(example, last, rounds=1, **changes)
        for observer in made.observers():
            reported = made.guarantee(observer, DELTA).epsilon(DELTA)
            assert reported <= quiet.guarantee(observer, DELTA).epsilon(DELTA) * (1 + 1e-9)
            if alone is not None:
                assert reported >= alone.guarantee(observer, DELTA).epsilon(DELTA) * (1 - 1e-9), (observer, changes)


@pytest.mark.parametrize(
    "multiplier",
    [
        Constant(value=3.0),
        Geometric(first=4.0, ratio=0.1),
        Polynomial(first=0.5, power=2.0),
        PerRound(values=(3.0, 0.3, 4.0, 2.0, 5.0, 1.0)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("colluders", [0, 2])
def test_means_of_linear_losses_cost_what_is_reported_or_less(multiplier, colluders):
    # Prox of a linear loss: the mean moves by 4 relaxation step L / n, the n - c noises that nobody knows hide it.
    parties, rounds, step = 6, 6, 0.01
    problem = Problem(
        loss=Hinge(), regularizer=NoPenalty(), features=1, sizes=np.ones(parties, int), row_bound=1.0, unit="party"
    )
    noise = GaussianNoise(multiplier=multiplier)
    made = plan(problem, ConsensusADMM(step=step), rounds=rounds, noise=noise, trust="local", colluders=colluders)
    (release,) = made.algorithm.releases(made.facts)
    stds = [2 * noise.scale(float(release.bounds.party_replace_one), k) for k in range(rounds)]
    mu = math.sqrt(sum(16 * step**2 / ((parties - colluders) * std**2) for std in stds))
    assert made.guarantee(Public(), DELTA).epsilon(DELTA) >= gaussian_epsilon(mu)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("noise", [LaplaceNoise(multiplier=3.0), GammaNormNoise(multiplier=3.0)], ids=repr)
def test_no_theorem_about_gaussian_noise_is_claimed_for_another(name, noise):
    example = ALGORITHMS[name].example()
    for changes in settings_of(example, in_full=True):
        try:
            made = with_noise(example, noise, **changes)
        except (InputError, PreconditionError):
            continue  # the algorithm does not take this noise
        for observer in made.observers():
            for promise in made.prove_each(observer, DELTA):
                text = repr(promise.event)
                assert not any(kind in text for kind in ("Gaussian", "Bounded(", "Walk", "Sampled"))


# --- one coin a round ------------------------------------------------------------------------------------------------


def sampled_world(rounds: int, multiplier: float):
    """Parties of one record, Poisson-sampled, of whose gradients a curator shows noisy sums."""
    problem = Problem(
        loss=Hinge(), regularizer=NoPenalty(), features=1, sizes=np.ones(5, int), row_bound=1.0, unit="party"
    )
    noise = dict.fromkeys(("a", "b"), GaussianNoise(multiplier=multiplier))
    made = plan(
        problem,
        DPSGD(),
        rounds=rounds,
        noise=noise["a"],
        schedule=PoissonSubset(0.01),
        trust="curator",
        sampler=Seeded(0),
    )
    return replace(made, noise=noise)


def release(name, times, contribution=1.0, rate=1.0):
    bounds = Bounds.of_contributions(party=contribution, record=contribution)
    return Release(name=name, size=1, at="sum", times=times, bounds=bounds, why="a test", rate=rate)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "declared",
    [(release("a", 20),), (release("a", 1), release("b", 3)), (release("a", 2, 2.0), release("b", 1, 0.5))],
    ids=("times", "two", "unequal"),
)
def test_releases_of_a_round_share_its_coin(declared, adjacency):
    """Exact: who is in moves all of them, so the round is a mixture of two Gaussians, here integrated numerically."""
    spec = sampled_world(rounds=1, multiplier=1.5)
    query = PrivacyQuery(observer=Public(), unit="party", adjacency=adjacency, party=0)
    event = amplify(spec, query, lambda facts: declared).event()
    drawn = 2.0  # noise is scaled with the problem's own adjacency, replace-one
    shift = math.sqrt(sum(each.times / (1.5 * drawn) ** 2 for each in declared))  # contribution over its own noise
    x = np.linspace(-30, 30, 400_001)
    rate, outside = 0.01, norm.pdf(x)
    one = (1 - rate) * outside + rate * norm.pdf(x - shift)
    other = outside if adjacency == "add-remove" else (1 - rate) * outside + rate * norm.pdf(x + shift)
    eps = 0.3
    exact = max(np.trapezoid(np.maximum(p - math.exp(eps) * q, 0), x) for p, q in ((one, other), (other, one)))
    assert exact * (1 - 1e-4) <= delta(event, eps) <= exact * 1.05


def test_twenty_releases_of_twenty_rounds_cost_thirteen_and_not_one_half():
    spec = sampled_world(rounds=20, multiplier=0.75)  # 1.5 of what is added or removed
    query = PrivacyQuery(observer=Public(), unit="party", adjacency="add-remove", party=0)
    event = amplify(spec, query, lambda facts: (release("a", 20),)).event()
    together = Repeated(Sampled(1.5 / math.sqrt(20), 1.0, 0.01, "add-remove"), 20)
    apart = Repeated(Sampled(1.5, 1.0, 0.01, "add-remove"), 400)
    assert epsilon(event, DELTA) == pytest.approx(epsilon(together, DELTA), rel=1e-6)
    assert epsilon(event, DELTA) > 20 * epsilon(apart, DELTA)


def test_records_have_a_coin_of_their_own_for_each_use_of_each_release():
    spec = sampled_world(rounds=1, multiplier=1.0)
    declared = (release("a", 2, rate=0.5), release("b", 1, rate=0.5))
    facts = spec.facts.only(np.array([0], dtype=np.int64))
    releaser, _ = open_releaser(spec, facts, declared, largest={"a": 1.0, "b": 1.0}, record=lambda entry: None)
    count, value = np.array([4000]), np.zeros((1, 1))
    first, again, other = releaser.coins("a", count), releaser.coins("a", count), releaser.coins("b", count)
    releaser("a", value)
    second = releaser.coins("a", count)
    assert np.array_equal(first, again)  # asked again before the use: the same coin
    for one, two in ((first, second), (first, other), (second, other)):
        assert abs(np.mean(one == two) - 0.5) < 5 * 0.5 / math.sqrt(4000)  # false alarm below 1e-6


# --- fixed-size samples, and who knows of their draw -----------------------------------------------------------------


def exact_fixed_size(parties, size, known, multiplier, others, eps):
    """Exact delta of one round: the insiders know their draws, the others' contributions are `others` (of 1)."""
    honest, noise = parties - known, 2 * multiplier
    x = np.linspace(-10 * noise - size, 10 * noise + size, 40_001)

    def density(own, drawn):
        inside = drawn / honest
        within, without = (norm.pdf(x, mean, noise) for mean in (own + (drawn - 1) * others, drawn * others))
        return inside * within + (1 - inside) * without

    total = 0.0
    for insiders in range(max(0, size - honest), min(size, known) + 1):
        drawn = size - insiders
        gap = density(1.0, drawn) - math.exp(eps) * density(-1.0, drawn) if drawn else 0 * x
        total += hypergeom.pmf(insiders, parties, known, size) * np.trapezoid(np.maximum(gap, 0), x)
    return total


@pytest.mark.sweep
@pytest.mark.parametrize(("parties", "size"), [(2, 1), (3, 1), (4, 2), (5, 4)])
@pytest.mark.parametrize("colluders", [0, 1])
@pytest.mark.parametrize("multiplier", [2.0, 6.0])
def test_a_party_knows_its_own_draw(parties, size, colluders, multiplier):
    problem = Problem(
        loss=Huber(threshold=1.0),
        regularizer=NoPenalty(),
        features=1,
        sizes=np.ones(parties, int),
        row_bound=1.0,
        target_bound=1e4,
        unit="party",
    )
    made = plan(
        problem,
        DPSGD(),
        rounds=1,
        noise=GaussianNoise(multiplier=multiplier),
        schedule=FixedSubset(size),
        trust="curator",
        sampler=Seeded(0),
        colluders=colluders,
    )
    observers = [Public(), Peer(party=0)] + ([Coalition(parties=(0, 1))] if parties > 2 else [])
    for observer in observers:
        known = colluders + {"public": 0, "peer:0": 1}.get(observer.key, 2)
        if known >= parties:
            continue
        reported = made.prove(observer, parties - 1, DELTA).epsilon(DELTA)
        for others in (-1.0, 0.0, 1.0):
            assert exact_fixed_size(parties, size, known, multiplier, others, reported * (1 + 1e-6)) <= DELTA
        if known == parties - 1:  # whoever was not drawn knows who was
            assert reported == pytest.approx(gaussian_epsilon(1 / multiplier, size / parties), rel=1e-3)


# --- a party without records -----------------------------------------------------------------------------------------


def clipped_examples():
    for name, cls in ALGORITHMS.items():
        example = cls.example()
        if any(each.name == "clip" for each in fields(example.algorithm)):
            try:
                algorithm = replace(example.algorithm, clip=0.05)
            except InputError:
                continue  # no clip at this level of the algorithm
            yield pytest.param(replace(example, algorithm=algorithm, schedules=example.schedules[:1]), id=name)


@IN_FULL
@pytest.mark.parametrize("example", list(clipped_examples()))
def test_clipped_values_move_as_far_as_declared(example, in_full):
    check_sensitivity(example, first=None if in_full else 1)


@pytest.mark.parametrize("clip", [None, 0.1])
def test_a_removed_party_of_consensus_admm_still_answers(clip):
    problem = Problem(
        loss=Hinge(),
        regularizer=NoPenalty(),
        features=1,
        sizes=np.ones(6, int),
        row_bound=1.0,
        unit="party",
        adjacency="add-remove",
    )
    step, tolerance = 3.0, 1e-10
    made = plan(
        problem, ConsensusADMM(step=step, clip=clip), rounds=2, noise=GaussianNoise(multiplier=2.0), trust="local"
    )
    (declared,) = made.algorithm.releases(made.facts)
    expected = step + 2 * tolerance if clip is None else 2 * clip
    assert declared.bounds.party_add_remove == pytest.approx(expected, rel=1e-12)
    assert made.guarantee(Server(), DELTA).epsilon(DELTA) == pytest.approx(gaussian_epsilon(math.sqrt(2) / 2), rel=1e-6)


# --- what is planned can be stated -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALGORITHMS)
def test_whatever_is_planned_has_a_card(name):
    example = ALGORITHMS[name].example()
    alone = replace(example, problem=replace(example.problem, sizes=example.problem.sizes[:1]))
    falling = GaussianNoise(multiplier=Polynomial(first=2.0, power=-0.5))
    stated = 0
    for each, noise in ((example, example.noise), (example, falling), (example, NoNoise()), (alone, example.noise)):
        try:
            made = plan_example(each, noise=noise) if noise is example.noise else with_noise(each, noise)
        except (InputError, PreconditionError):
            continue
        assert made.card(DELTA).entries
        stated += 1
    assert stated > 0


def test_parts_of_one_cost_need_one_noise():
    example = ALGORITHMS["PreconditionedFixedPoint"].example()
    with pytest.raises(PreconditionError, match="may not change over the rounds; give it a constant multiplier"):
        with_noise(example, GaussianNoise(multiplier=Geometric(first=2.0, ratio=0.9)))


def test_a_plan_of_many_rounds_states_its_theorems_without_going_through_each_of_them_for_every_view(monkeypatch):
    example = ConsensusADMM.example()
    asked = 0
    releases = ConsensusADMM.releases

    def counted(self, facts):
        nonlocal asked
        asked += 1
        return releases(self, facts)

    monkeypatch.setattr(ConsensusADMM, "releases", counted)
    plan_example(example, rounds=400)
    assert asked < 8 * 400  # sixteen views and their theorems


# --- whose turn it is ------------------------------------------------------------------------------------------------


def in_turn(schedule, multiplier, rounds=7, parties=3):
    problem = Problem(
        loss=Hinge(), regularizer=NoPenalty(), features=1, sizes=np.ones(parties, int), row_bound=1.0, unit="party"
    )
    noise = GaussianNoise(multiplier=multiplier)
    return plan(problem, ConsensusADMM(step=0.1), rounds=rounds, noise=noise, schedule=schedule, trust="local")


TURNS = [
    Geometric(first=8.0, ratio=0.3),
    Geometric(first=0.5, ratio=3.0),
    PerRound(values=(3.0, 0.4, 2.0, 5.0, 6.0, 1.0, 4.0)),
]


@pytest.mark.parametrize("multiplier", TURNS, ids=repr)
def test_a_party_pays_for_the_rounds_in_which_it_acts(multiplier):
    made = in_turn(Cyclic(), multiplier)
    costs = []
    for party in range(3):
        mu = math.sqrt(sum(multiplier.at(k) ** -2 for k in range(party, 7, 3)))
        costs.append(gaussian_epsilon(mu))
        assert made.prove(Server(), party, DELTA).epsilon(DELTA) == pytest.approx(costs[-1], rel=1e-6)
    assert made.guarantee(Server(), DELTA).epsilon(DELTA) == pytest.approx(max(costs), rel=1e-6)


@pytest.mark.parametrize("multiplier", TURNS, ids=repr)
def test_a_random_order_costs_one_round_of_each_pass(multiplier):
    made = in_turn(RandomOrder(), multiplier)
    event, order = made.prove(Server(), 0, DELTA).event, 3.0
    by_hand = 0.0
    for first in (0, 3, 6):
        moments = [
            math.exp((order - 1) * order / (2 * multiplier.at(k) ** 2)) if k < 7 else 1.0
            for k in range(first, first + 3)
        ]
        by_hand += math.log(sum(moments) / 3) / (order - 1)
    assert rdp(event, order) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("multiplier", TURNS, ids=repr)
def test_a_random_stop_costs_at_most_the_own_rounds(multiplier):
    made = in_turn(RandomStopping(), multiplier)
    for party in range(3):
        event = made.prove(Server(), party, DELTA).event
        rho = sum(multiplier.at(k) ** -2 / 2 for k in range(party, 7, 3))
        assert epsilon(event, DELTA) <= epsilon(Bounded(rho), DELTA) * (1 + 1e-9)


# --- colluders -------------------------------------------------------------------------------------------------------


@IN_FULL
@pytest.mark.parametrize("name", ALGORITHMS)
def test_colluders_mean_the_same_to_every_algorithm(name, in_full):
    """The public with c colluders knows what a coalition of c parties knows, and more colluders never know less."""
    example = ALGORITHMS[name].example()
    if example.problem.parties < 4:
        return
    attacked = 2  # not the last in any order, so that others act after it
    for changes in settings_of(example, in_full):
        made = plan_example(example, colluders=2, **changes)
        before = 0.0
        for count, pooled in ((0, Public()), (1, Peer(party=0)), (2, Coalition(parties=(0, 1)))):
            asked = [
                replace(made, colluders=colluders).prove(observer, attacked, DELTA)
                for colluders, observer in ((count, Public()), (0, pooled))
            ]
            public, coalition = (promise.epsilon(DELTA) for promise in asked)
            assert public == pytest.approx(coalition, rel=1e-9), (changes, count)
            assert public >= before * (1 - 1e-9)
            before = public


def test_nobody_is_left_if_all_collude():
    example = ConsensusADMM.example()
    for trust, most in (("local", 5), ("curator", 5), ("secure-sum", 4)):
        plan_example(example, trust=trust, colluders=most)
        with pytest.raises(InputError, match=f"between 0 and {most} of 6 parties may collude"):
            plan_example(example, trust=trust, colluders=most + 1)
