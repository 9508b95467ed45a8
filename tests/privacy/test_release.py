from __future__ import annotations

import inspect

import numpy as np
import pytest

from consenso.errors import InputError, PrivacyError, UndeclaredReleaseError
from consenso.losses import Logistic
from consenso.privacy.noise import GaussianNoise, LaplaceNoise, NoNoise
from consenso.privacy.release import Bounds, Release
from consenso.privacy.releaser import SumTerm, open_releaser, open_sum, silent_share
from consenso.privacy.run_spec import RunSpec
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.public_facts import PublicFacts
from consenso.regularizers import NoPenalty
from consenso.schedules import Everyone

PROBLEM = Problem(
    loss=Logistic(), regularizer=NoPenalty(), features=4, sizes=np.array([3, 5, 2]), row_bound=1.0, unit="party"
)
FACTS = PublicFacts.everyone(PROBLEM, rounds=5)


def release(**changes) -> Release:
    settings = {
        "name": "value",
        "size": 4,
        "bounds": Bounds.of_contributions(record=0.5, party=2.0),
        "why": "by construction",
    }
    return Release(**(settings | changes))


def policy(noise=None, trust="local", **changes) -> RunSpec:
    settings = {
        "noise": {"value": noise or GaussianNoise(multiplier=1.5)},
        "sampler": Seeded(3),
        "trust": trust,
        "shares": 2,
        "equal_noise": False,
        "facts": FACTS,
        "schedule": Everyone(),
        "shape": "hub",
    }
    return RunSpec(**(settings | changes))


def opened(*releases: Release, way: RunSpec | None = None, facts: PublicFacts = FACTS):
    entries = []
    largest = {each.name: float(np.max(each.bounds.at("party", "replace-one"))) for each in releases}
    releaser, close = open_releaser(way or policy(), facts, releases, largest=largest, record=entries.append)
    return releaser, close, entries, largest


def test_a_release_is_clipped_perturbed_and_recorded() -> None:
    releaser, close, entries, _ = opened(release(clip=1.0), way=policy(NoNoise()))
    value = np.array([[3.0, 4.0, 0, 0], [0.3, 0, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(releaser("value", value), [[0.6, 0.8, 0, 0], [0.3, 0, 0, 0], [0, 0, 0, 0]])
    close()
    assert [(e.round, e.name, e.share) for e in entries] == [(0, "value", 1.0)]


def test_a_releaser_hides_nothing_from_an_algorithm_and_says_so() -> None:
    releaser = opened(release())[0]
    held = inspect.getclosurevars(releaser.__call__ if not inspect.isfunction(releaser) else releaser).nonlocals
    assert any(isinstance(value, Seeded) or hasattr(value, "sampler") for value in held.values())
    assert "trusted code" in (inspect.getdoc(inspect.getmodule(open_releaser)) or "")


def test_the_recorded_scale_is_the_multiplier_times_the_bound_of_the_problem() -> None:
    releaser, _, entries, _ = opened(release())
    releaser("value", np.zeros((3, 4)))
    assert entries[0].scale == 1.5 * 4.0  # replace-one, user: two contributions of 2


def test_parties_with_different_bounds_draw_different_noise_unless_told_otherwise() -> None:
    each = release(bounds=Bounds(party_replace_one=np.array([1.0, 2.0, 4.0])))
    for equal, scales in ((False, [1.5, 3.0, 6.0]), (True, [6.0, 6.0, 6.0])):
        releaser, _, entries, _ = opened(each, way=policy(equal_noise=equal))
        releaser("value", np.zeros((3, 4)))
        np.testing.assert_allclose(np.broadcast_to(entries[0].scale, 3), scales)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda releaser: releaser("other", np.zeros((3, 4))), "not declared"),
        (lambda releaser: [releaser("value", np.zeros((3, 4))) for _ in range(2)], "one more"),
        (lambda releaser: releaser("value", np.zeros((3, 5))), "declared as 4 numbers"),
        (lambda releaser: releaser("value", np.zeros((2, 4))), "declared as 4 numbers"),
        (lambda releaser: releaser("value", np.zeros((3, 4)), bound=2.0), "only an adaptive release"),
        (lambda releaser: releaser("value", np.zeros((3, 4)), share=0.5), "not declared in parts"),
        (lambda releaser: releaser.perturb("value", lambda noise: noise), "additive release"),
    ],
)
def test_what_was_not_declared_is_refused(act, message: str) -> None:
    releaser, _, _, _ = opened(release())
    with pytest.raises(UndeclaredReleaseError, match=message):
        act(releaser)


def test_a_missing_release_is_refused_at_the_end_of_the_step() -> None:
    _, close, _, _ = opened(release())
    with pytest.raises(UndeclaredReleaseError, match="made 0 time"):
        close()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_never_leave(bad: float) -> None:
    releaser, _, _, _ = opened(release())
    with pytest.raises(PrivacyError, match="not finite"):
        releaser("value", np.full((3, 4), bad))


def test_nothing_of_a_releaser_can_be_replaced() -> None:
    releaser, _, _, _ = opened(release())
    assert not hasattr(releaser, "__dict__")
    assert [name for name in dir(releaser) if not name.startswith("__")] == ["coins", "perturb"]
    with pytest.raises(AttributeError):
        releaser.noise = NoNoise()


def test_a_sum_is_exact_until_it_is_opened_with_noise() -> None:
    each, way = release(at="sum"), policy(trust="curator")
    releaser, close, entries, largest = opened(each, way=way)
    token = releaser("value", np.arange(12.0).reshape(3, 4))
    close()
    assert isinstance(token, SumTerm)
    assert repr(token) == "SumTerm('value', 3 x 4 values)"
    assert not entries  # nothing has left yet
    total = open_sum(way, FACTS, token, largest=largest, record=entries.append)
    assert entries[0].scale == 6.0
    assert not np.allclose(total, [12, 15, 18, 21])


def test_noise_on_a_sum_does_not_tell_who_is_in_it() -> None:
    way, scales = policy(trust="curator"), []
    for cohort in ([0], [0, 1], [0, 1, 2]):
        here = FACTS.only(np.array(cohort))
        declared = release(at="sum", bounds=Bounds(party_replace_one=np.array([1.0, 2.0, 8.0])[cohort]))
        entries = []
        releaser, _ = open_releaser(way, here, [declared], largest={"value": 8.0}, record=entries.append)
        token = releaser("value", np.zeros((len(cohort), 4)))
        open_sum(way, here, token, largest={"value": 8.0}, record=entries.append)
        scales.append(float(entries[0].scale))
    assert scales == [12.0] * 3


def test_shares_of_a_secure_sum_add_up_to_the_noise_whoever_was_sampled() -> None:
    # Variance of a sum of 3 shares of V/2 is 1.5 V, with any number of them silent. 400 draws x 40 entries: a 5 sigma
    # band on the variance is 5*sqrt(2/16000) = 5.6 %; false alarm below 1e-6.
    each, draws = release(at="sum", size=40), []
    for seed in range(400):
        way = policy(trust="secure-sum", sampler=Seeded(seed))
        here, rest = FACTS.only(np.array([1])), FACTS.only(np.array([0, 2]))
        releaser, _, _, largest = opened(each, way=way, facts=here)
        part = releaser("value", np.zeros((1, 40)))
        draws.append(part.value.sum(axis=0) + silent_share(way, rest, part, largest).sum(axis=0))
    assert np.var(draws) == pytest.approx(1.5 * 6.0**2, rel=0.056)


def test_parts_share_one_cost() -> None:
    releaser, _, entries, _ = opened(release(parts=True, adaptive=True))
    releaser("value", np.zeros((3, 4)), bound=2.0, share=0.25)
    assert float(entries[0].scale) == pytest.approx(1.5 * 4.0 * 2.0 / 0.5)


def test_objective_perturbation_hands_over_the_noise_and_returns_the_minimiser() -> None:
    each = release(perturbs_objective=True)
    releaser, close, entries, _ = opened(each)
    out = releaser.perturb("value", lambda noise: noise * 0 + 7.0)
    close()
    np.testing.assert_array_equal(out, np.full((3, 4), 7.0))
    assert len(entries) == 1


def test_coins_are_one_per_row_with_the_declared_rate() -> None:
    each, flips = release(rate=0.25), []
    for seed in range(2000):
        releaser, _, _, _ = opened(each, way=policy(sampler=Seeded(seed)))
        flips.append(releaser.coins("value", PROBLEM.sizes))
    # 20,000 flips: 5 sigma is 0.0153; false alarm below 1e-6.
    assert flips[0].shape == (10,)
    assert np.mean(flips) == pytest.approx(0.25, abs=0.0153)


def test_bounds_by_unit_and_adjacency() -> None:
    bounds = Bounds(record_replace_one=3.0, record_add_remove=1.0, party_replace_one=2.0, party_add_remove=5.0)
    assert bounds.at("record", "replace-one") == 2.0  # a record is a part of a user
    assert bounds.at("record", "add-remove") == 1.0
    assert Bounds(party_add_remove=5.0).at("record", "add-remove") == np.inf
    assert bounds.scale(2.0).at("party", "add-remove") == 10.0


def test_laplace_noise_cannot_be_shared() -> None:
    releaser, _, _, _ = opened(release(at="sum"), way=policy(LaplaceNoise(multiplier=1.0), trust="secure-sum"))
    with pytest.raises(PrivacyError, match="Laplace"):
        releaser("value", np.zeros((3, 4)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 0.0}, "a rate lies in"),
        ({"clip": -1.0}, "a clip is positive"),
        ({"times": 0}, "at least 1"),
        ({"times": 2, "parts": True}, "one part"),
    ],
)
def test_bad_declarations(changes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release(**changes)


def test_bad_bounds() -> None:
    with pytest.raises(InputError, match="from 0 to infinity"):
        Bounds(party_replace_one=float("nan"))
