"""What every theorem object has: public parameters, JSON, an event, assumptions, a section of the reference."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import json
import math
import re
from pathlib import Path

import pytest
from tests.privacy.oracles.curator import PreconditionedSteps, SecondMoment
from tests.privacy.oracles.general import GeneralSplitting
from tests.privacy.oracles.ipadmm import IPADMMSteps, MinibatchIPADMM
from tests.privacy.oracles.laplace import LaplaceTotal
from tests.privacy.oracles.local import LocalView
from tests.privacy.oracles.networked import NetworkedSteps
from tests.privacy.oracles.record import RecordInParty
from tests.privacy.oracles.sampling import PoissonSampledSums, SamplingRevealed
from tests.privacy.oracles.shares import NoiseShares
from tests.privacy.oracles.sums import DualSums, IncrementalSums, StateSums

from consenso import registry
from consenso.algorithms import discover
from consenso.algorithms.shape import find_theorems
from consenso.errors import InputError, PreconditionError
from consenso.privacy.accountants import epsilon, rdp
from consenso.privacy.events import Bounded, Gaussian, Repeated
from consenso.privacy.run_spec import PrivacyQuery
from consenso.privacy.serial import from_json, to_json
from consenso.privacy.theorems import Assumption
from consenso.testing.plans import ADJACENCIES, UNITS, settings_of

KINDS = registry.kinds("theorems")
ITERATION = KINDS["GradientIteration"](
    step=0.5,
    penalty=1.0,
    std=1.0,
    gradient_gap=1.0,
    smoothness=1.0,
    smallest_singular_value=1.0,
    largest_singular_value=2.0,
    rows=2,
    columns=3,
)
EXAMPLES = [
    KINDS["Composition"](
        released=Repeated(Gaussian(2.0, 1.0), 3), why="Clipped.", adjacency="add-remove", unit="record"
    ),
    KINDS["BlocksInTurn"](sensitivity=1.0, std=2.0, rounds=6, acts=2, adjacency="replace-one", unit="record"),
    KINDS["MeanOfNoisyStates"](parties=10, step=1.0, lipschitz=1.0, relaxation=0.5, std=5.0, rounds=4, tolerance=1e-3),
    KINDS["FixedSizeWithoutMemory"](size=5, population=50, contribution=1.0, std=3.0, rounds=2),
    KINDS["WalkWithoutStates"](
        parties=20, steps=30, step=1.0, lipschitz=1.0, relaxation=0.5, std=20.0, observers=1, final_model=True
    ),
    KINDS["GradientVisits"](iteration=ITERATION, iterations=9, positions=(1, 6)),
    KINDS["GradientRandomOrder"](iteration=ITERATION, users=9),
    KINDS["GradientRandomStopping"](iteration=ITERATION, users=9, position=3),
    KINDS["PerturbedObjective"](lipschitz=1.0, smoothness=0.25, strong_convexity=2.0, std=5.0),
    KINDS["SumsOnGraph"](
        released=Repeated(Gaussian(2.0, 1.0), 3),
        hiding=2,
        nodes=6,
        masked=False,
        adjacency="replace-one",
        unit="record",
    ),
    KINDS["DualPerturbedRounds"](lipschitz=1.0, smoothness=0.25, strong_convexity=2.0, scale=50.0, rounds=3),
]
ORACLES = [
    LocalView(participations=3, step=0.5, lipschitz=1.0, std=2.0),
    LocalView(participations=3, clip=0.5, std=2.0, adjacency="add-remove", unit="record"),
    IncrementalSums(relaxation=0.5, std=5.0, rounds=4, clip=1.0),
    StateSums(relaxation=0.5, std=5.0, rounds=4, step=1.0, lipschitz=1.0, adjacency="add-remove"),
    DualSums(std=5.0, rounds=4, step=1.0, lipschitz=1.0),
    RecordInParty(variant="C", records=30, step=1.0, lipschitz=1.0, relaxation=0.4, std=2.0, rounds=9, rate=0.5),
    SamplingRevealed(released=Gaussian(2.0, 1.0), rate=0.1, rounds=7, adjacency="replace-one"),
    PoissonSampledSums(rate=(0.1, 0.2), contribution=1.0, std=3.0, rounds=2, adjacency="replace-one"),
    GeneralSplitting(parties=10, step=1.0, lipschitz=1.0, smallest_singular_value=0.5, std=1.0, rounds=2),
    IPADMMSteps(multiplier=10.0, rounds=3, inner_steps=2),
    MinibatchIPADMM(multiplier=10.0, rate=0.1, rounds=3, inner_steps=2),
    LaplaceTotal(scale=10.0, sensitivity=1.0, iterations=3),
    NetworkedSteps(
        gradient_bound=1.0,
        bounded_by="projection",
        records=20,
        penalty=0.5,
        degree=2,
        proximity=(1.0, 2.0),
        std=0.5,
        iterations=2,
    ),
    SecondMoment(row_bound=1.0, std=5.0, adjacency="replace-one"),
    PreconditionedSteps(matrix_multiplier=5.0, step_multiplier=9.0, steps=4, adjacency="add-remove"),
    NoiseShares(parties=9, absent=2, std=4.0, contribution=1.0, rounds=2, adjacency="replace-one", grid=0.5),
]
DOCUMENT = Path(__file__).parents[3] / "docs" / "privacy.md"


def names(theorem) -> str:
    return type(theorem).__name__


def slugs() -> set[str]:
    """Anchors that a Markdown renderer gives to the headings of the reference."""
    headings = re.findall(r"^#+ (.+)$", DOCUMENT.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_public_theorem_has_an_example():
    ours = {name: kind for name, kind in KINDS.items() if kind.__module__.startswith("consenso.")}
    classes = {name for name, kind in ours.items() if hasattr(kind, "section")}
    assert classes == {names(theorem) for theorem in EXAMPLES}


def plans_of(example):
    with contextlib.suppress(InputError):  # a variant that has other settings
        yield from settings_of(example)


def test_every_theorem_is_stated_by_a_plan():
    """What no plan can state is an oracle."""
    stated = set()
    for definition in discover().values():
        example = definition.example()
        for made in (made for each in (example, *example.variants) for made in plans_of(each)):
            for observer in made.observers():
                for unit, relation in itertools.product(UNITS, ADJACENCIES):
                    query = PrivacyQuery(observer=observer, unit=unit, adjacency=relation, party=0)
                    for candidate in find_theorems(made.algorithm, made, query):
                        with contextlib.suppress(PreconditionError):
                            stated.add(names(candidate()))
    # What is composed is stated for every plan, on a graph by the component that hides a node.
    assert stated | {"Composition", "SumsOnGraph"} == {names(theorem) for theorem in EXAMPLES}


@pytest.mark.parametrize("theorem", EXAMPLES + ORACLES, ids=names)
def test_parameters_are_frozen_named_and_public(theorem):
    assert dataclasses.is_dataclass(theorem)
    field = dataclasses.fields(theorem)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(theorem, field, None)
    assert all(
        parameter.kind is inspect.Parameter.KEYWORD_ONLY
        for parameter in inspect.signature(type(theorem)).parameters.values()
    )


@pytest.mark.parametrize("theorem", EXAMPLES, ids=names)
def test_json_and_back(theorem):
    stored = json.loads(json.dumps(to_json(theorem)))
    assert from_json(stored) == theorem
    event = json.loads(json.dumps(to_json(theorem.event())))
    assert from_json(event) == theorem.event()


@pytest.mark.parametrize("theorem", EXAMPLES, ids=names)
def test_reading_json_checks_the_preconditions_again(theorem):
    stored = to_json(theorem)
    number = next((name for name in ("std", "multiplier", "scale", "rounds", "steps") if name in stored), None)
    if number is not None:
        with pytest.raises(PreconditionError):
            from_json({**stored, number: 0})


@pytest.mark.parametrize("theorem", EXAMPLES + ORACLES, ids=names)
def test_events_have_finite_costs(theorem):
    event = theorem.event()
    assert 0 < epsilon(event, 1e-6) < 1e4
    assert 0 < rdp(event, 2.0) < 1e4


@pytest.mark.parametrize("theorem", EXAMPLES + ORACLES, ids=names)
def test_statements_point_into_the_reference(theorem):
    anchors = slugs()
    assert theorem.citation
    assert theorem.section in anchors
    assert theorem.adjacency in ("add-remove", "replace-one")
    assert theorem.unit in ("record", "party")
    assumptions = theorem.assumptions()
    assert assumptions
    for assumption in assumptions:
        assert isinstance(assumption, Assumption)
        assert assumption.text.endswith(".")
        assert assumption.anchor in anchors


def test_refusals_are_one_sentence_that_says_what_to_do():
    refusals = []
    for theorem in EXAMPLES + ORACLES:
        for field in dataclasses.fields(theorem):
            for value in (0, -1.0, float("inf"), float("nan"), True, "sampled", "fixed-size", "replace-one", 10**4):
                try:
                    dataclasses.replace(theorem, **{field.name: value})
                except PreconditionError as refusal:
                    refusals.append(str(refusal))
                except (TypeError, AttributeError):  # a number where a text, a tuple or an event belongs
                    continue
    assert len(set(refusals)) > 100
    for refusal in refusals:
        assert re.match(r"^\w+\(", refusal), refusal
        assert refusal.endswith(".")
        assert "; " in refusal, refusal
        assert not re.search(r"[a-z]\. [A-Z]", refusal), refusal


def test_pathwise_totals_convert_like_gaussians():
    assert epsilon(Bounded(1.0), 1e-5) == pytest.approx(6.57, abs=5e-3)
    assert 1.0 + 2 * math.sqrt(math.log(1e5)) == pytest.approx(7.79, abs=5e-3)


def test_examples_of_the_reference_run():
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(DOCUMENT), "exec"), {})


def test_links_within_the_reference_lead_somewhere():
    anchors = slugs()
    links = re.findall(r"\]\(#([\w-]+)\)", DOCUMENT.read_text())
    assert len(links) > 30
    assert set(links) <= anchors
