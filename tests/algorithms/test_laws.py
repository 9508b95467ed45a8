"""Every discovered algorithm obeys every law. A new file in consenso/algorithms is enough to be tested here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.selection import cover, few_settings

from consenso.algorithms import discover
from consenso.algorithms.shape import Example
from consenso.testing import laws
from consenso.testing.attacks import TRIALS

# Laws that go through schedules and trusts take every one of them once here; lies and sizes of noise are taken in turn,
# and in law 3 units and adjacencies: all of them for an algorithm, one or more for each of its settings. In full they
# are slow. From the places of the algorithm and of the setting, and the number of settings.
SCOPES = len(laws.UNITS) * len(laws.ADJACENCIES)
SHORT: dict[laws.Law, Callable[[int, int, int], dict[str, Any]]] = {
    laws.non_interference: lambda place, setting, of: {"one_in": min(of, SCOPES), "first": setting % min(of, SCOPES)},
    laws.check_sensitivity: lambda place, setting, of: {"first": place},
    laws.attacks_stay_below: lambda place, setting, of: {"trials": TRIALS // 2},
    laws.no_value_below_exact: lambda place, setting, of: {"once": True},
    laws.lies_gain_nothing: lambda place, setting, of: {"one_in": 3, "first": place % 3},
}
OVER_SETTINGS = (laws.engines_agree, laws.ledger_equals_plan, laws.non_interference, laws.messages_are_releases)


def list_attacked(example: Example) -> Iterator[tuple[Example, dict[str, Any]]]:
    """The example in each of its settings, and the kinds that this has."""
    for schedule, trust in itertools.product(example.schedules, example.trusts):
        yield replace(example, schedules=(schedule,), trusts=(trust,)), {"schedule": type(schedule), "trust": trust}


def list_solved(example: Example) -> Iterator[tuple[Example, dict[str, Any]]]:
    """The example with each of its regularizers."""
    for regularizer in example.regularizers or (example.problem.regularizer,):
        yield replace(example, regularizers=(regularizer,)), {"regularizer": type(regularizer)}


def cover_kinds(split: Callable[[Example], Iterator[tuple[Example, dict[str, Any]]]]) -> dict[str, list[Example]]:
    """Every algorithm in the first of the cases that its example is split into, and more: every kind is there."""
    cases = [(name, *case) for name, definition in discover().items() for case in split(definition.example())]
    covering = cover([kinds for _, _, kinds in cases])
    found: dict[str, list[Example]] = {name: [] for name in discover()}
    for place, (name, example, _) in enumerate(cases):
        if not found[name] or place in covering:
            found[name].append(example)
    return found


# An attack takes seconds for each setting, of which law 10 has the exact values; an optimum is reached, or it is not.
FEW = {laws.attacks_stay_below: cover_kinds(list_attacked), laws.reaches_optimum: cover_kinds(list_solved)}


def examples_for(law: laws.Law, name: str) -> Iterable[Example]:
    """What a law is held to here."""
    if law in FEW:
        return FEW[law][name]
    example = discover()[name].example()
    return few_settings(example) if law in OVER_SETTINGS else [example]


@pytest.mark.parametrize("law", laws.EVERY, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", discover())
def test_law(name: str, law: laws.Law) -> None:
    short, examples = SHORT.get(law), list(examples_for(law, name))
    for setting, each in enumerate(examples):
        law(each, **(short(list(discover()).index(name), setting, len(examples)) if short else {}))


@pytest.mark.slow
@pytest.mark.parametrize("law", dict.fromkeys([*OVER_SETTINGS, *SHORT, *FEW]), ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", discover())
def test_law_in_full(name: str, law: laws.Law) -> None:
    law(discover()[name].example())


VARIANTS = [(name, number) for name in discover() for number in range(len(discover()[name].example().variants))]


@pytest.mark.parametrize("law", laws.OF_VARIANTS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(("name", "number"), VARIANTS)
def test_law_with_other_parameters(name: str, number: int, law: laws.Law) -> None:
    variant = discover()[name].example().variants[number]
    law(replace(variant, schedules=variant.schedules[:1], trusts=variant.trusts[:1]))


@pytest.mark.parametrize(("name", "number"), VARIANTS)
def test_no_release_moves_too_far_with_other_parameters(name: str, number: int) -> None:
    """Every unit and adjacency with a third of the sizes of noise, another third than the variant before it."""
    variant = discover()[name].example().variants[number]
    laws.check_sensitivity(replace(variant, schedules=variant.schedules[:1]), first=number)


def releases_more(name: str, number: int) -> bool:
    """Whether a variant makes releases that the example does not make."""
    example = discover()[name].example()
    asked, usual = example.variants[number].noise, example.noise
    return isinstance(asked, dict) and isinstance(usual, dict) and not asked.keys() <= usual.keys()


@pytest.mark.parametrize(("name", "number"), [each for each in VARIANTS if releases_more(*each)])
def test_lies_gain_nothing_in_rounds_that_the_example_does_not_have(name: str, number: int) -> None:
    variant = discover()[name].example().variants[number]
    laws.lies_gain_nothing(variant, one_in=8, first=number % 8, rounds=variant.rounds)
