"""What is written is what is read, and nothing else is."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso import registry
from consenso.errors import InputError, TamperError
from consenso.privacy.events import (
    ZCDP,
    BestOf,
    Bounded,
    Composed,
    Event,
    GammaNorm,
    Gaussian,
    Laplace,
    Mixture,
    Nothing,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sampled,
    SampledFixedSize,
    SampledGroup,
    TokenWalk,
    Told,
    Unbounded,
)
from consenso.privacy.serial import from_json, to_json

numbers = st.floats(min_value=0, allow_nan=False)
counts = st.integers(0, 10**18)
adjacencies = st.sampled_from(["add-remove", "replace-one"])
LEAVES = {
    Nothing: st.just(Nothing()),
    Unbounded: st.builds(Unbounded, st.text()),
    Gaussian: st.builds(Gaussian, numbers, numbers, numbers),
    Told: st.builds(Told, numbers),
    Laplace: st.builds(Laplace, numbers, numbers, numbers),
    GammaNorm: st.builds(GammaNorm, numbers, numbers, st.integers(1, 10)),
    Pure: st.builds(Pure, numbers),
    ZCDP: st.builds(ZCDP, numbers),
    Bounded: st.builds(Bounded, numbers),
    Sampled: st.builds(Sampled, numbers, numbers, numbers, adjacencies, numbers),
    SampledGroup: st.builds(SampledGroup, numbers, numbers, numbers, counts, adjacencies, numbers),
    SampledFixedSize: st.builds(SampledFixedSize, numbers, numbers, counts, counts, numbers),
    TokenWalk: st.builds(TokenWalk, numbers, counts, counts, counts, st.booleans()),
    ObjectivePerturbation: st.builds(ObjectivePerturbation, numbers, numbers),
    BestOf: st.builds(BestOf, numbers, numbers, numbers),
}
events = st.recursive(
    st.one_of(*LEAVES.values()),
    lambda inner: st.one_of(
        st.builds(Repeated, inner, counts),
        st.builds(Composed, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Mixture, st.lists(numbers, max_size=3).map(tuple), st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def test_every_kind_of_event_is_drawn() -> None:
    known = {kind for kind in registry.kinds("events").values() if kind.__module__ == Event.__module__}
    assert set(LEAVES) == known - {Repeated, Composed, Mixture}


@given(events)
def test_events_come_back_bit_for_bit_through_json_text(event: Event) -> None:
    text = json.dumps(to_json(event), allow_nan=False)
    again = from_json(json.loads(text))
    assert again == event
    assert repr(again) == repr(event)
    assert to_json(again) == to_json(event)


def test_the_form_is_plain() -> None:
    assert to_json(Repeated(Gaussian(2.0, math.inf), 3)) == {
        "kind": "events.Repeated",
        "event": {"kind": "events.Gaussian", "std": 2.0, "sensitivity": "inf", "excess": 0.0},
        "count": 3,
    }


def test_numbers_of_numpy_and_whole_floats_are_written_as_plain_floats() -> None:
    stored = to_json(Gaussian(np.float64(2.0), 1))
    assert stored == {"kind": "events.Gaussian", "std": 2.0, "sensitivity": 1.0, "excess": 0.0}
    assert [type(stored[name]) for name in ("std", "sensitivity")] == [float, float]
    assert from_json({"kind": "Gaussian", "std": 2, "sensitivity": 1, "excess": 0}) == Gaussian(2.0, 1.0)


GAUSSIAN = {"kind": "Gaussian", "std": 1.0, "sensitivity": 1.0, "excess": 0.0}


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        {},
        {"kind": 3},
        {"kind": ["Gaussian"]},
        {"kind": "Gaussian"},
        {"kind": "gaussian", "std": 1.0, "sensitivity": 1.0, "excess": 0.0},
        {"kind": "os.system", "command": "true"},
        {**GAUSSIAN, "epsilon": 0.1},
        {**GAUSSIAN, "std": "1.0"},
        {**GAUSSIAN, "std": True},
        {**GAUSSIAN, "std": None},
        {**GAUSSIAN, "std": math.nan},
        {**GAUSSIAN, "std": math.inf},
        {**GAUSSIAN, "std": 10**400},
        {"kind": "Repeated", "event": GAUSSIAN, "count": 2.0},
        {"kind": "Repeated", "event": GAUSSIAN, "count": True},
        {"kind": "Repeated", "event": "Gaussian", "count": 2},
        {"kind": "Repeated", "event": {**GAUSSIAN, "more": 1}, "count": 2},
        {"kind": "Composed", "events": GAUSSIAN},
        {"kind": "Composed", "events": [GAUSSIAN, 3]},
        {"kind": "Mixture", "weights": [0.5, "0.5"], "events": [GAUSSIAN, GAUSSIAN]},
        {"kind": "Sampled", "std": 1.0, "contribution": 1.0, "rate": 0.1, "adjacency": "both", "excess": 0.0},
        {"kind": "Walk", "visit_rho": 0.1, "parties": 5, "steps": 5, "observers": 1, "final_model": 1},
        {"kind": "Unbounded", "reason": 3},
    ],
)
def test_what_was_never_written_is_refused(stored: object) -> None:
    with pytest.raises(TamperError):
        from_json(stored)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        Gaussian(math.nan, 1.0),
        Gaussian("inf", 1.0),  # type: ignore[arg-type]
        Gaussian(True, 1.0),
        Composed([Nothing()]),  # type: ignore[arg-type]
        Repeated(Nothing(), 1.5),  # type: ignore[arg-type]
        Repeated("Nothing", 1),  # type: ignore[arg-type]
        "a text",
        3.0,
    ],
)
def test_what_could_not_be_read_again_is_not_written(value: object) -> None:
    with pytest.raises(InputError):
        to_json(value)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """As theorems are: optional numbers, literals, tuples, a nested event."""

    step: float | None
    rounds: int | float
    pair: tuple[int, float]
    mode: Literal["a", "b"] | None = None
    event: Gaussian | None = None


registry.register("theorems", Plan)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(step=None, rounds=3, pair=(1, 2.0)),
        Plan(step=0.5, rounds=2.5, pair=(1, math.inf), mode="b", event=Gaussian(1.0, 1.0)),
    ],
)
def test_registered_classes_come_back(plan: Plan) -> None:
    again = from_json(json.loads(json.dumps(to_json(plan), allow_nan=False)))
    assert again == plan
    assert type(again.rounds) is type(plan.rounds)


def test_registered_classes_are_read_as_strictly() -> None:
    stored = to_json(Plan(step=None, rounds=3, pair=(1, 2.0)))
    for change in ({"pair": [1]}, {"pair": [1, 2.0, 3.0]}, {"mode": "c"}, {"event": to_json(Pure(1.0))}, {"step": "x"}):
        with pytest.raises(TamperError, match=next(iter(change))):
            from_json({**stored, **change})


def test_only_frozen_dataclasses_with_a_free_name_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Loose:
        value: float

    @dataclass(frozen=True)
    class Tagged:
        kind: str

    impostor = dataclass(frozen=True)(type("Composition", (), {"__annotations__": {"std": float}}))
    assert "Composition" in registry.kinds("theorems")
    for cls, message in ((Loose, "frozen"), (impostor, "belongs to"), (int, "frozen")):
        with pytest.raises(InputError, match=message):
            registry.register("theorems", cls)
    monkeypatch.setitem(registry._FAMILY_OF, Tagged, "theorems")
    with pytest.raises(InputError, match="a field cannot be called 'kind'"):
        to_json(Tagged("kind"))
    with pytest.raises(InputError, match="knows no such"):
        to_json(impostor(1.0))  # type: ignore[call-arg]
