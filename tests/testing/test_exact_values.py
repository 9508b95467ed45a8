"""Law 10: the law itself is run on every algorithm by tests/algorithms/test_laws.py; here it is put to the test."""

from __future__ import annotations

import dataclasses
import itertools
import re
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import consenso.algorithms
from consenso.algorithms import discover
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.record_sums import Forgetful, sum_bounds
from consenso.algorithms.shape import Example
from consenso.algorithms.stateless_walk import StatelessWalk
from consenso.audit.mixtures import Branch
from consenso.errors import ConsensoError
from consenso.losses import Logistic
from consenso.operators import gradient_bound
from consenso.planning.plan import Plan, plan
from consenso.privacy import composition as views
from consenso.privacy.events import Gaussian, Sampled, repeat
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Public, list_names
from consenso.privacy.release import Release
from consenso.privacy.run_spec import largest_bounds
from consenso.privacy.theorems import Composition
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.schedules import Everyone, FixedSubset, PoissonSubset, RandomWalk
from consenso.testing import laws
from consenso.testing.exact_values.cases import cases_of, plan_of
from consenso.testing.exact_values.compare import NotAffineError, compare
from consenso.testing.exact_values.divergences import curve_of
from consenso.testing.exact_values.law import attacked_parties, rows_of, strongest_theorems
from consenso.testing.exact_values.table import BEGIN, BELOW, END
from consenso.testing.graph_sums import plans_of

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"


# --- every algorithm, parameter and theorem is reached ---------------------------------------------------------------


@pytest.mark.parametrize("name", discover())
def test_an_example_and_its_variants_change_every_parameter(name: str) -> None:
    example = discover()[name].example()
    algorithms = [each.algorithm for each in (example, *example.variants)]
    for each in dataclasses.fields(example.algorithm):
        values = {repr(getattr(algorithm, each.name)) for algorithm in algorithms}
        assert len(values) > 1, f"{name}.example(): no variant changes {each.name}, so no law sees what it does"


def reachable_theorems() -> set[str]:
    """Theorems that algorithms, or the rules for what observers see, make."""
    modules = [each for each in vars(consenso.algorithms).values() if isinstance(each, ModuleType)] + [views]
    return {
        each.__name__
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and hasattr(each, "citation") and each.__module__.startswith("consenso.privacy")
    }


def long_walk() -> Plan:
    example = StatelessWalk.example()
    noise = GaussianNoise(multiplier=4.0)
    return plan(example.problem, example.algorithm, rounds=30, noise=noise, schedule=RandomWalk())


@pytest.mark.slow
def test_every_theorem_is_the_strongest_somewhere() -> None:
    strongest: set[str] = set()
    for definition in discover().values():
        cases = cases_of(definition.example())
        for row in (*cases.core(), *cases.long()):
            try:
                strongest |= strongest_theorems(plan_of(cases, row))
            except ConsensoError:
                continue
    for made, _, _ in plans_of(DPSGD.example()):
        strongest |= strongest_theorems(made)
    # It is the strongest from about thirty steps on, which have too many paths to try all of them here: tests of the
    # theorem compare it with exact costs of linear losses.
    strongest |= strongest_theorems(long_walk())
    never = reachable_theorems() - strongest
    assert not never, f"{sorted(never)} are never the strongest, so that law 10 does not test them"


def test_the_small_set_of_plans_has_every_choice_of_the_large_one() -> None:
    cases = cases_of(DPSGD.example())
    few, many = ([row for row, _ in rows_of(cases, pairs=pairs)] for pairs in (False, True))
    assert len(few) < 0.75 * len(many)
    assert {choice for row in few for choice in row} == {choice for row in many for choice in row}


# --- exact values that are known -------------------------------------------------------------------------------------


def branch(m, gap, chance=1.0) -> Branch:
    gap = np.array(gap, dtype=float)
    return Branch(chance, np.zeros_like(gap), gap, np.array(m, dtype=float))


def test_mu_is_the_length_of_the_shortest_noise_that_explains_the_difference() -> None:
    assert branch([[2.0]], [1.0]).mu == pytest.approx(0.5)
    assert branch([[1.0, 0.0], [1.0, 1.0]], [1.0, 0.0]).mu == pytest.approx(np.sqrt(2))
    assert branch([[1.0, 0.0], [0.0, 1e-7]], [0.0, 1e-7]).mu == pytest.approx(1.0), "little noise is noise"


def test_what_no_noise_explains_is_seen_with_certainty() -> None:
    assert np.isinf(branch([[1.0], [1.0]], [1.0, -1.0]).mu), "two looks at one noise"
    assert np.isinf(branch([[1.0], [0.0]], [0.0, 1.0]).mu), "a number without noise"
    assert branch([[1.0], [0.0]], [0.0, 0.0]).mu == 0


def test_hidden_coins_are_a_mixture_and_known_coins_are_not() -> None:
    heads, tails = branch([[1.0]], [1.0], 0.1), branch([[1.0]], [0.0], 0.9)
    hidden, known = curve_of([[heads, tails]]), curve_of([[heads], [tails]])
    # The order-2 divergence of the subsampled Gaussian: log(1 + rate^2 (e^{mu^2} - 1)).
    assert hidden.renyi(2.0) == pytest.approx(np.log1p(0.01 * np.expm1(1.0)), rel=1e-6)
    assert known.renyi(2.0) == pytest.approx(np.log(0.9 + 0.1 * np.e), rel=1e-9)
    assert hidden.epsilon(1e-5) < known.epsilon(1e-5)
    event = Sampled(1.0, 1.0, 0.1, "add-remove")
    from consenso.privacy.accountants import epsilon

    assert hidden.epsilon(1e-5) == pytest.approx(epsilon(event, 1e-5), rel=1e-4)


@pytest.mark.slow
def test_a_clip_that_large_noise_reaches_is_not_affine() -> None:
    example = ConsensusADMM.example()
    cases = cases_of(replace(example, algorithm=ConsensusADMM(step=0.5, clip=2.0), variants=()))
    _, plan = next(iter(rows_of(cases)))
    with pytest.raises(NotAffineError, match="standard deviations"):
        compare(plan, attacked_parties(plan)[0])


# --- planted faults --------------------------------------------------------------------------------------------------


def believing(cls, event_of):
    """The algorithm with a theorem that claims what it likes: event_of(self, setting, view), None for nothing."""

    class Believing(cls):
        def theorems(self, setting, view):
            event = event_of(self, setting, view)
            if event is not None:
                yield lambda: event if hasattr(event, "citation") else claim(event, view)
            yield from super().theorems(setting, view)

    return Believing


def claim(event, view) -> Composition:
    return Composition(released=event, unit=view.unit, adjacency=view.adjacency, why="a fault")


def noise_scale(setting, declaration, name, round_=0):
    """The noise of a release in a round, where all parties draw the same."""
    return float(setting.noise_for(name).scale(largest_bounds(setting, declaration, round_)[name], round_))


def first_noise(algorithm, setting, view):
    """Theorem F with the noise of the first round instead of the smallest."""
    if view.adjacency != "replace-one" or not isinstance(view.observer, Public):
        return None
    if not isinstance(setting.schedule, Everyone):
        return None
    return MeanOfNoisyStates(
        parties=setting.parties,
        step=algorithm.step,
        lipschitz=float(setting.facts.problem.lipschitz[view.party]),
        relaxation=algorithm.relaxation,
        std=2 * noise_scale(setting, algorithm.releases, "residual"),
        rounds=setting.rounds,
        unit=view.unit,
    )


def sampled_for_everybody(algorithm, setting, view):
    """Amplification by sampling parties, for parties too, who know their own draw."""
    participation = setting.schedule.participation(view.party, setting.rounds, setting.parties)
    if not isinstance(setting.schedule, FixedSubset) or setting.trust != "curator" or view.unit != "party":
        return None
    if not view.observer.insiders or not hasattr(participation, "rate"):
        return None
    (release,) = algorithm.releases(setting.facts)
    contribution = float(np.max(release.bounds.at("party", "add-remove")))
    std = noise_scale(setting, algorithm.releases, release.name)
    return repeat(Sampled(std, contribution, participation.rate, view.adjacency), setting.rounds)


def coin_for_each_release(algorithm, setting, view):
    """Theorem P with a coin for each release of a round."""
    participation = setting.schedule.participation(view.party, setting.rounds, setting.parties)
    if not isinstance(setting.schedule, PoissonSubset) or setting.trust != "curator" or view.unit != "party":
        return None
    if not isinstance(view.observer, Public) or not hasattr(participation, "rate"):
        return None
    releases = algorithm.releases(setting.facts)
    contribution = float(np.max(releases[0].bounds.at("party", "add-remove")))
    std = noise_scale(setting, algorithm.releases, releases[0].name)
    count = setting.rounds * sum(release.times for release in releases)
    return repeat(Sampled(std, contribution, participation.rate, view.adjacency), count)


class HalvesItsSensitivity(DPSGD):
    def releases(self, facts):
        (release,) = super().releases(facts)
        return (replace(release, bounds=release.bounds.scale(0.5)),)


class ForgetsARound(DPSGD):
    """Claims one round less than are run."""

    def theorems(self, setting, view):
        if setting.rounds > 1 and isinstance(setting.schedule, Everyone) and setting.trust == "curator":
            (release,) = self.releases(setting.facts)
            seen = float(np.max(release.bounds.at(view.unit, view.adjacency)))
            if isinstance(view.observer, Public):
                std = noise_scale(setting, self.releases, release.name)
                yield lambda: claim(repeat(Gaussian(std, seen), setting.rounds - 1), view)


@dataclass(frozen=True)
class Hub:
    u: np.ndarray


UPS = {n: make_dataclass(f"Up{n}", [f"part{i}" for i in range(n)], frozen=True) for n in range(1, 7)}


@dataclass(frozen=True, kw_only=True)
class RepeatedSums:
    """Several sums a round, each made several times: no algorithm that is discovered does this with sampled parties."""

    sources: ClassVar = ()
    times: int = 3
    sums: int = 1

    def check(self, setting) -> None:
        """Everything is allowed."""

    def releases(self, facts):
        bounds = sum_bounds(facts, gradient_bound(facts.problem, None))
        return tuple(
            Release(
                name=f"sum {i}", size=facts.dim, at="sum", times=self.times, bounds=bounds, why="bounded by its loss"
            )
            for i in range(self.sums)
        )

    def theorems(self, setting, view):
        return ()

    def start(self, facts):
        return Hub(u=np.zeros(facts.dim))

    def enroll(self, facts, f):
        return Forgetful()

    def down(self, facts, hub):
        return hub

    def local(self, facts, down, state, f, releaser):
        sums = f.gradient(down.u)
        made = [releaser(f"sum {i}", sums) for i in range(self.sums) for _ in range(self.times)]
        return state, UPS[len(made)](*made)

    def combine(self, facts, hub, total):
        parts = [getattr(total, each.name) for each in dataclasses.fields(total)]
        return Hub(u=hub.u - np.mean(parts, axis=0))

    def model(self, facts, hub):
        return hub.u

    @classmethod
    def example(cls) -> Example:
        return Example(
            algorithm=cls(),
            problem=Problem(
                loss=Logistic(), regularizer=NoPenalty(), features=1, sizes=np.full(3, 2), row_bound=1.0, unit="party"
            ),
            noise=GaussianNoise(multiplier=1.0),
            schedules=(Everyone(), PoissonSubset(0.5)),
            trusts=("curator", "secure-sum", "local"),
        ).vary({"times": 1, "sums": 2})


@pytest.mark.slow
def test_a_party_that_is_in_a_round_is_in_for_all_of_its_releases() -> None:
    laws.no_value_below_exact(RepeatedSums.example())


def faulty(cls, algorithm, *, schedule, **parameters):
    return replace(cls.example(), algorithm=algorithm(**parameters), variants=(), schedules=(schedule,))


FAULTS = {
    "Theorem F with the first noise": faulty(
        ConsensusADMM, believing(ConsensusADMM, first_noise), schedule=Everyone(), step=0.5
    ),
    "sampling that a party sees through": faulty(
        DPSGD, believing(DPSGD, sampled_for_everybody), schedule=FixedSubset(1)
    ),
    "a coin for each release": faulty(
        RepeatedSums, believing(RepeatedSums, coin_for_each_release), schedule=PoissonSubset(0.5)
    ),
    "a sensitivity that is too small": faulty(DPSGD, HalvesItsSensitivity, schedule=Everyone()),
    "a round that is not counted": faulty(DPSGD, ForgetsARound, schedule=Everyone()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_seen(fault: str) -> None:
    example = FAULTS[fault]
    cases = cases_of(example)
    core = set(cases.core())
    plans = (plan for row, plan in rows_of(cases, pairs=False) if row in core)
    assert any(finding.below for plan in plans for finding in compare(plan, attacked_parties(plan)[0]))


def test_the_law_names_what_is_false() -> None:
    with pytest.raises(AssertionError, match=r"guarantees are false:\nHalvesItsSensitivity .* is reported as"):
        laws.no_value_below_exact(FAULTS["a sensitivity that is too small"])


# --- the page --------------------------------------------------------------------------------------------------------


def table() -> str:
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def test_the_page_names_every_algorithm_and_nothing_is_below() -> None:
    for name in discover():
        assert re.search(rf"^(\| {name} \||\* {name}\b)", table(), re.M), name
    assert BELOW not in table()


@pytest.mark.slow
@pytest.mark.parametrize("name", discover())
def test_the_page_is_up_to_date(name: str) -> None:
    """The usual plan of each algorithm is as tight as the page says."""
    example = replace(discover()[name].example(), variants=())
    found = re.search(rf"^\| {name} \|(.*)\|$", table(), re.M)
    for _, made in itertools.islice(rows_of(cases_of(example)), 1):
        try:
            findings = compare(made, attacked_parties(made)[0])
        except NotAffineError:
            assert re.search(rf"^\* {name}\b", table(), re.M), f"{name} is not named as not affine"
            continue
        for finding in findings:
            assert found, f"{name} is not in the table"
            cell = found[1].split("|")[list_names().index(finding.observer.partition(":")[0])]
            least, _, most = map(float, re.findall(r"[\d.e+]+", cell)[:3])
            assert least * 0.99 <= finding.ratio <= most * 1.01, "write the table anew"
