"""Choosing the best bound that applies, and saying why the others do not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.privacy.oracles.local import LocalView

from consenso.errors import PreconditionError
from consenso.privacy.accountants import epsilon
from consenso.privacy.events import Gaussian, Repeated
from consenso.privacy.theorems import Composition, strongest
from consenso.privacy.theorems.theorem_f import MeanOfNoisyStates

FLOOR = Composition(
    released=Repeated(Gaussian(10.0, 4.0), 50), why="Residuals are bounded.", adjacency="replace-one", unit="party"
)
COMMON = {"parties": 100, "step": 1.0, "lipschitz": 1.0, "std": 10.0, "rounds": 50}


def test_the_smallest_epsilon_wins():
    best, refusals = strongest(
        [
            lambda: MeanOfNoisyStates(relaxation=0.7, **COMMON),
            lambda: MeanOfNoisyStates(relaxation=0.5, **COMMON),
            lambda: LocalView(participations=50, step=1.0, lipschitz=1.0, std=10.0),
        ],
        FLOOR,
        1e-5,
    )
    assert best == MeanOfNoisyStates(relaxation=0.5, **COMMON)
    assert refusals == ()
    assert epsilon(best.event(), 1e-5) < epsilon(FLOOR.event(), 1e-5)


def test_refusals_are_collected_and_the_floor_remains():
    best, refusals = strongest(
        [
            lambda: MeanOfNoisyStates(relaxation=1.0, **COMMON),
            lambda: MeanOfNoisyStates(relaxation=0.5, **{**COMMON, "lipschitz": np.inf}),
        ],
        FLOOR,
        1e-5,
    )
    assert best is FLOOR
    assert len(refusals) == 2
    assert "Composition" in refusals[0]
    assert "Huber" in refusals[1]


def test_a_worse_candidate_does_not_replace_the_floor():
    worse = LocalView(participations=500, step=1.0, lipschitz=1.0, std=10.0)
    best, refusals = strongest([lambda: worse], FLOOR, 1e-5)
    assert best is FLOOR
    assert refusals == ()


@pytest.mark.parametrize(("adjacency", "unit"), [("add-remove", "party"), ("replace-one", "record")])
def test_bounds_for_other_neighbours_are_never_compared(adjacency, unit):
    cheaper = LocalView(participations=1, clip=0.01, std=10.0, adjacency=adjacency, unit=unit)
    best, refusals = strongest([lambda: cheaper], FLOOR, 1e-5)
    assert best is FLOOR
    assert "state the bound for these" in refusals[0]


def test_other_errors_are_not_swallowed():
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        strongest([broken], FLOOR, 1e-5)


def test_a_composition_states_its_reason():
    with pytest.raises(PreconditionError, match="reason"):
        Composition(released=Gaussian(1.0, 1.0), why=" ", adjacency="add-remove", unit="record")
