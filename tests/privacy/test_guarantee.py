"""A guarantee answers for its event, composes with its like and never says more than it knows."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import InputError
from consenso.privacy import accountants
from consenso.privacy.events import (
    Bounded,
    Composed,
    Event,
    Gaussian,
    Laplace,
    Mixture,
    Nothing,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sampled,
    SampledFixedSize,
    Unbounded,
    repeat,
)
from consenso.privacy.guarantee import CHOSEN_BEFORE, LARGEST_USEFUL, Guarantee

EVENT = repeat(Gaussian(10.0, 1.0), 20)


def guarantee(event: Event = EVENT, **changed: object) -> Guarantee:
    fields = {"adjacency": "replace-one", "unit": "party", "observer": "server", "theorem": "Composition", **changed}
    return Guarantee(event=event, **fields)  # type: ignore[arg-type]


def test_it_answers_with_the_costs_of_its_event() -> None:
    mine = guarantee()
    assert mine.epsilon(1e-5) == accountants.epsilon(EVENT, 1e-5)
    assert mine.delta(1.0) == accountants.delta(EVENT, 1.0)
    assert mine.method(1e-5) == "GDP (exact)"
    assert mine.gdp() == pytest.approx(math.sqrt(0.2))
    assert mine.zcdp() == pytest.approx(0.1)
    fpr = np.array([0.05, 0.5])
    assert mine.tradeoff(fpr) == pytest.approx(accountants.tradeoff(EVENT, fpr))


def test_an_inexact_sampler_is_neither_gdp_nor_zcdp() -> None:
    inexact = guarantee(repeat(Gaussian(10.0, 1.0, 1e-15), 20))
    assert inexact.gdp() is None
    assert inexact.zcdp() is None
    assert inexact.epsilon(1e-5) > guarantee().epsilon(1e-5)
    assert "depends on the delta" in inexact.sentence()


@given(
    st.integers(1000, 9999).flatmap(
        lambda digits: st.sampled_from([0.0, 1e-15, 1e-12, 1e-10, 1e-7, 0.3]).map(lambda more: digits + more)
    ),
    st.integers(-9, -2),
)
def test_no_number_that_a_sentence_states_is_below_the_true_one(digits: float, power: int) -> None:
    cost = digits * 10.0**power
    stated = guarantee(Pure(cost)).sentence(0.0)
    told = [float(each) for each in re.findall(r"(?:epsilon |exp\()([0-9.e+-]*[0-9])", stated)]
    assert told
    assert all(cost <= each <= cost * 1.0011 for each in told)


def test_it_composes_events() -> None:
    other = guarantee(Laplace(5.0, 1.0), assumptions=("b", "c"))
    both = guarantee(assumptions=("a", "b")).compose(other)
    assert both.event == Composed((EVENT, Laplace(5.0, 1.0)))
    assert both.assumptions == ("a", "b", "c", CHOSEN_BEFORE)
    assert "2 guarantees" in both.theorem
    assert (both.unit, both.adjacency, both.observer) == ("party", "replace-one", "server")
    assert both.epsilon(1e-5) < guarantee().epsilon(5e-6) + other.epsilon(5e-6)
    assert guarantee().compose() == guarantee()
    assert guarantee().compose(guarantee(), guarantee()).gdp() == pytest.approx(math.sqrt(0.6))


@pytest.mark.parametrize("changed", [{"unit": "record"}, {"adjacency": "add-remove"}, {"observer": "public"}])
def test_it_composes_with_its_like_only(changed: dict[str, str]) -> None:
    with pytest.raises(InputError, match=next(iter(changed))):
        guarantee().compose(guarantee(**changed))


@pytest.mark.parametrize(
    "changed",
    [{"adjacency": "replace"}, {"unit": "row"}, {"observer": "god"}, {"observer": "peer:03"}],
)
def test_names_are_checked(changed: dict[str, str]) -> None:
    with pytest.raises(InputError):
        guarantee(**changed)


@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (Sampled(1.0, 1.0, 0.5, "add-remove"), "replace-one"),
        (repeat(Sampled(1.0, 1.0, 0.5, "replace-one"), 5), "add-remove"),
        (Composed((Nothing(), SampledFixedSize(1.0, 1.0, 1, 2))), "add-remove"),
        (Mixture((0.5, 0.5), (Nothing(), ObjectivePerturbation(0.1, 0.1))), "replace-one"),
    ],
)
def test_an_event_of_the_other_adjacency_is_refused(event: Event, adjacency: str) -> None:
    with pytest.raises(InputError, match="other adjacency"):
        guarantee(event, adjacency=adjacency)


def test_assumptions_of_theorems_become_lines_with_their_anchor() -> None:
    @dataclasses.dataclass(frozen=True)
    class Assumption:
        text: str
        anchor: str

    mine = guarantee(assumptions=(Assumption("Noise is fresh.", "conventions"), "and so on"))
    assert mine.assumptions == ("Noise is fresh. (docs/privacy.md#conventions)", "and so on")


def test_sentences_say_who_what_and_how_much() -> None:
    sentence = guarantee().sentence(1e-5)
    assert "server" in sentence
    assert "replacing all data of one party" in sentence
    assert "delta 1e-05" in sentence
    assert "adding or removing one record" in guarantee(adjacency="add-remove", unit="record").sentence(1e-5)
    assert "0.4473-GDP" in guarantee().sentence()
    assert "without a bound" in guarantee(Unbounded("x")).sentence(1e-5)
    assert "no epsilon bounds" in guarantee().sentence(0.0)
    assert "no probability" in guarantee(Nothing()).sentence(0.0)
    assert "exp(0.2)" in guarantee(Laplace(5.0, 1.0)).sentence(0.0)


def test_sentences_round_up() -> None:
    for rho in np.geomspace(1e-6, 1e3, 40):
        mine = guarantee(Repeated(Bounded(float(rho)), 1))
        exact = mine.epsilon(1e-5)
        if exact > LARGEST_USEFUL:
            assert "no useful guarantee" in mine.sentence(1e-5)
        elif exact > 0:
            stated = float(mine.sentence(1e-5).split("exp(")[1].split(")")[0])
            assert exact <= stated * (1 + 1e-9)
            assert stated <= exact * 1.0011
