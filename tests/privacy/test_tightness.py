"""Costs are exact where an exact one is known: against independent computation, and by laws over all algorithms."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import iv, kv
from scipy.stats import binom

from consenso.algorithms import discover
from consenso.algorithms.consensus import MACHINE, ConsensusADMM
from consenso.conventions import ADJACENCIES, UNITS
from consenso.planning.plan import Plan
from consenso.planning.replan import differences
from consenso.privacy.accountants import delta, epsilon, pairs, rdp
from consenso.privacy.accountants.kinds import gamma_norm, groups
from consenso.privacy.accountants.parts import parts
from consenso.privacy.events import Event, GammaNorm, Gaussian, Laplace, Pure, Sampled, SampledGroup, repeat
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper, Public
from consenso.privacy.relations import claims_of
from consenso.privacy.samplers import Safe, Seeded
from consenso.privacy.verify import first_failure, verify
from consenso.schedules import Everyone, PoissonSubset
from consenso.testing.plans import plan_example

DELTA = 1e-5
QUADRATURE = 5e-4  # error of a sum over a coarse grid of the plane, at the kink of the integrand


# --- gamma-norm noise -----------------------------------------------------------------------------------------------


def hockey_stick(shift: float, dim: int, eps: float) -> float:
    """Delta of two centres by quadrature over the radius and the angle to the shift: no elliptic coordinates."""
    places, weights = np.polynomial.legendre.leggauss(400)
    reach = dim + 12 * math.sqrt(dim) + 40
    radius, angle = reach * (1 + places) / 2, math.pi * (1 + places) / 2
    density = np.exp((dim - 1) * np.log(radius) - radius - math.lgamma(dim))
    around = np.sin(angle) ** (dim - 2)
    around /= weights @ around * math.pi / 2
    loss = np.sqrt(radius[:, None] ** 2 - 2 * shift * radius[:, None] * np.cos(angle) + shift**2) - radius[:, None]
    inner = np.maximum(-np.expm1(np.minimum(eps - loss, 0.0)), 0.0)
    return float((weights * density) @ inner @ (weights * around)) * reach / 2 * math.pi / 2


@pytest.mark.parametrize("dim", [2, 3, 8, 50])
@pytest.mark.parametrize("shift", [0.3, 1.0, 4.0])
def test_gamma_norm_noise_has_the_curve_of_its_two_centres(dim: int, shift: float) -> None:
    for eps in (0.02 * shift, 0.2 * shift, 0.5 * shift):
        found, exact = delta(GammaNorm(2.0, 2 * shift, dim), eps), hockey_stick(shift, dim, eps)
        assert found == pytest.approx(exact, rel=5e-3, abs=1e-6)  # the kink at the cut limits the quadrature


@pytest.mark.parametrize("dim", [2, 3, 10, 51])
@pytest.mark.parametrize("order", [1.2, 3.0, 20.0])
def test_its_renyi_curve_is_a_ratio_of_bessel_functions(dim: int, order: float) -> None:
    shift, nu = 1.5, dim / 2

    def inner(z: float, at: float) -> float:  # integral of exp(z t) (1 - t^2)^(at - 1/2) over [-1, 1]
        return math.sqrt(math.pi) * math.gamma(at + 0.5) * (2 / z) ** at * float(iv(at, z))

    def outer(z: float, at: float) -> float:  # integral of exp(-z t) (t^2 - 1)^(at - 1/2) over [1, inf)
        return float(kv(at, z)) * math.gamma(at + 0.5) / math.sqrt(math.pi) * (2 / z) ** at

    def moment(z: float) -> float:
        return outer(shift / 2, nu) * inner(z, nu - 1) + outer(shift / 2, nu - 1) * inner(z, nu)

    exact = math.log(moment(shift * (order - 0.5)) / moment(shift / 2)) / (order - 1)
    found = float(gamma_norm.rdp(shift, dim, np.array([order]))[0])
    assert exact <= found * (1 + 1e-12)
    assert found == pytest.approx(exact, rel=1e-8)
    assert rdp(GammaNorm(1.0, shift, dim), order) <= found


@settings(max_examples=8)
@given(
    shift=st.floats(0.05, 6.0),
    dim=st.integers(1, 2000),
    rounds=st.sampled_from([1, 3, 40]),
    less=st.floats(0.3, 0.99),
    eps=st.floats(0.01, 3.0),
)
def test_it_costs_less_in_more_dimensions_and_for_shorter_moves(
    shift: float, dim: int, rounds: int, less: float, eps: float
) -> None:
    event = repeat(GammaNorm(1.0, shift, dim), rounds)
    cost = epsilon(event, DELTA)
    assert cost <= epsilon(repeat(Pure(shift), rounds), DELTA) * (1 + 1e-9)
    assert epsilon(repeat(GammaNorm(1.0, shift, dim + 1), rounds), DELTA) <= cost * (1 + 1e-4)
    assert epsilon(repeat(GammaNorm(1.0, shift * less, dim), rounds), DELTA) <= cost * (1 + 1e-4)
    assert delta(GammaNorm(1.0, shift * less, dim), eps) <= delta(GammaNorm(1.0, shift, dim), eps) * (1 + 1e-6)


def test_it_is_laplace_noise_in_one_dimension_and_pure_where_quadrature_ends() -> None:
    assert parts(GammaNorm(2.0, 3.0, 1)) == parts(Laplace(2.0, 3.0))
    assert parts(GammaNorm(2.0, 3.0, gamma_norm.MOST_DIM + 1)) == parts(Pure(1.5))
    assert epsilon(GammaNorm(2.0, 3.0, 40), 0.0) == 1.5


@pytest.mark.parametrize(
    ("event", "stated"),
    [
        (repeat(Pure(1.0), 20), 20.0),
        (repeat(GammaNorm(1.0, 1.0, 50), 20), 2.58),
        (repeat(GammaNorm(1.0, 1.0, 1000), 20), 0.497),
        (repeat(SampledGroup(10.0, 1.0, 0.05, 5, "replace-one"), 20), 0.82),
        (repeat(Gaussian(10.0, 10.0), 20), 28.4),
    ],
)
def test_figures_of_the_reference(event: Event, stated: float) -> None:
    assert epsilon(event, DELTA) == pytest.approx(stated, rel=5e-3)


# --- users whose records are sampled --------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("records", "rate", "std"), [(2, 0.3, 1.0), (7, 0.05, 2.0), (40, 0.5, 10.0), (600, 0.02, 8.0)])
def test_a_group_has_the_curve_of_a_binomial_mixture(records: int, rate: float, std: float, adjacency: Any) -> None:
    x = np.linspace(-40 * std - records, 40 * std + records, 40_001)
    step = x[1] - x[0]
    counts = np.arange(records + 1)
    there = binom.pmf(counts, records, rate) > 1e-18
    weights, counts = binom.pmf(counts, records, rate)[there], counts[there]

    def density(sign: int) -> np.ndarray:
        total = np.zeros_like(x)
        for weight, count in zip(weights, counts, strict=True):
            total += weight * np.exp(-0.5 * ((x - sign * count) / std) ** 2)
        return total / (std * math.sqrt(2 * math.pi))

    present, other = density(1), density(-1) if adjacency == "replace-one" else density(0)
    event = SampledGroup(std, 1.0, rate, records, adjacency)
    for eps in (0.1, 0.5, 2.0):
        exact = max(
            float(np.maximum(a - math.exp(eps) * b, 0).sum() * step) for a, b in ((present, other), (other, present))
        )
        found = delta(event, eps)
        assert exact <= found * (1 + 1e-6) + 1e-12
        assert found <= exact * (1.001 if records <= 256 else 1.2) + 1e-9


@given(
    records=st.integers(1, 4),
    rate=st.floats(0.05, 0.95),
    std=st.floats(0.6, 4.0),
    eps=st.floats(0.0, 2.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_vectors_of_records_are_told_apart_more_easily(
    records: int, rate: float, std: float, eps: float, seed: int
) -> None:
    """Any vectors in the plane, also such as depend on which other records entered, in both worlds."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(-6 * std - records, 6 * std + records, 161)
    x, y = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2

    def world(present: bool) -> np.ndarray:
        total = np.zeros_like(x)
        for coins in range(2**records):
            entered = coins.bit_count()
            weight = rate**entered * (1 - rate) ** (records - entered)
            length = entered * rng.choice([1.0, rng.uniform()]) if present else 0.0
            angle = rng.choice([0.0, math.pi, rng.uniform(0, 2 * math.pi)])
            total += weight * np.exp(
                -((x - length * math.cos(angle)) ** 2 + (y - length * math.sin(angle)) ** 2) / (2 * std**2)
            )
        return total / (2 * math.pi * std**2)

    for adjacency, worlds in (("replace-one", (world(True), world(True))), ("add-remove", (world(True), world(False)))):
        part = parts(SampledGroup(std, 1.0, rate, records, adjacency))[0][0]  # type: ignore[arg-type]
        for one, other, direction in ((*worlds, "remove"), (*worlds[::-1], "add")):
            told = float(np.maximum(one - math.exp(eps) * other, 0).sum() * cell)
            assert told <= float(pairs.delta(part, np.array([eps]), direction)[0]) + QUADRATURE  # type: ignore[arg-type]


@given(rate=st.floats(0.01, 0.99), records=st.integers(1, 5000))
def test_levels_are_never_below_the_numbers_they_stand_for(rate: float, records: int) -> None:
    tops, masses = groups.levels(rate, records)
    assert masses.sum() == pytest.approx(1.0, rel=1e-9)
    assert tops[-1] == records
    for top, reached in zip(tops, np.cumsum(masses), strict=True):
        # Below any level there is at most as much as there was: numbers were rounded up.
        assert reached <= binom.cdf(top, records, rate) * (1 + 1e-9) + 1e-300


def test_a_group_of_one_is_a_sampled_record_and_a_sure_one_a_gaussian() -> None:
    for adjacency in ADJACENCIES:
        assert parts(SampledGroup(2.0, 1.0, 0.3, 1, adjacency)) == parts(Sampled(2.0, 1.0, 0.3, adjacency))
        whole = 5.0 if adjacency == "add-remove" else 10.0
        assert parts(SampledGroup(2.0, 1.0, 1.0, 5, adjacency)) == parts(Gaussian(2.0, whole))


# --- what plans report ----------------------------------------------------------------------------------------------


SAMPLING = [name for name, each in discover().items() if "rate" in {field.name for field in fields(each)}]
PARTIES, RECORDS = 9, 4


def sampling(name: str, rate: float, **changes: Any) -> Plan:
    """The plan of an algorithm that samples records at this rate."""
    definition = discover()[name]
    example = definition.example()
    more = {"level": "record"} if "level" in {field.name for field in fields(definition)} else {}
    if example.topology is None:
        example = replace(example, problem=replace(example.problem, sizes=np.full(PARTIES, RECORDS)))
    algorithm = replace(example.algorithm, rate=rate, **more)
    return plan_example(replace(example, algorithm=algorithm), **({"schedule": Everyone()} | changes))


def learnt(made: Plan, observer: Any) -> dict[tuple[str, str], float]:
    """Epsilon by unit and adjacency."""
    return {
        (unit, relation): made.guarantee(observer, DELTA, unit=unit, adjacency=relation).epsilon(DELTA)
        for unit in UNITS
        for relation in claims_of(made.problem.adjacency, unit)
    }


def sums(made: Plan) -> bool:
    return all(release.at == "sum" for release in made.algorithm.releases(made.facts))


@pytest.mark.parametrize("rate", [0.1, 1.0])
@pytest.mark.parametrize("name", [name for name in SAMPLING if sums(sampling(name, 0.5))])
def test_everybodys_noise_hides_a_sampled_record_from_whoever_sees_sums(name: str, rate: float) -> None:
    """The noise of n parties is that of a curator with sqrt(n) times the multiplier."""
    own = sampling(name, rate, trust="local", noise=GaussianNoise(multiplier=2.0))
    one = sampling(name, rate, trust="curator", noise=GaussianNoise(multiplier=2.0 * math.sqrt(PARTIES)))
    assert learnt(own, Public()) == pytest.approx(learnt(one, Public()), rel=1e-4)
    # Whoever reads every message sees each party's noise alone.
    seen = sampling(name, rate, trust="curator", noise=GaussianNoise(multiplier=2.0))
    assert learnt(own, Eavesdropper()) == pytest.approx(learnt(seen, Public()), rel=1e-4)


@pytest.mark.parametrize("name", SAMPLING)
def test_users_gain_by_the_sampling_of_their_records(name: str) -> None:
    noise = GaussianNoise(multiplier=20.0)
    few, all_of_them = (learnt(sampling(name, rate, noise=noise), Public()) for rate in (0.1, 1.0))
    assert few["record", "replace-one"] <= few["party", "replace-one"] < 0.5 * all_of_them["party", "replace-one"]


def test_sampled_parties_with_sampled_records_are_amplified_as_before() -> None:
    made = sampling("DPSGD", 0.5, schedule=PoissonSubset(0.1), trust="secure-sum", noise=GaussianNoise(multiplier=20.0))
    whole = sampling(
        "DPSGD", 1.0, schedule=PoissonSubset(0.1), trust="secure-sum", noise=GaussianNoise(multiplier=20.0)
    )
    of_a_party = ("party", "replace-one")
    assert learnt(made, Public())[of_a_party] <= learnt(whole, Public())[of_a_party] * (1 + 1e-9)


@pytest.mark.parametrize("sampler", [Seeded(0), Safe()], ids=["seeded", "safe"])
@pytest.mark.parametrize("relaxation", [0.35, 0.5, 0.6])
def test_a_default_tolerance_costs_nothing_at_any_relaxation(relaxation: float, sampler: Any) -> None:
    example = ConsensusADMM.example()
    problem = replace(example.problem, sizes=np.full(80, 5))

    def public(**parameters: Any) -> tuple[str, float]:
        algorithm = ConsensusADMM(step=0.5, relaxation=relaxation, **parameters)
        made = plan_example(replace(example, problem=problem, algorithm=algorithm), trust="curator", sampler=sampler)
        (promise,) = made.prove_each(Public(), DELTA)
        return promise.theorem, promise.epsilon(DELTA)

    (theorem, cost), (_, exact) = public(), public(tolerance=MACHINE)
    assert theorem == "MeanOfNoisyStates"
    assert cost == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("name", ["DPSGD", "PrimalPerturbation"])
def test_cards_with_these_events_are_verified(name: str) -> None:
    card = plan_example(discover()[name].example()).card(DELTA)
    assert first_failure(verify(json.loads(json.dumps(card.to_json())))) is None
    assert differences(card) == []
    assert {"events.SampledGroup", "events.GammaNorm"} & {
        word for entry in card.entries for word in json.dumps(entry.event).split('"')
    }
