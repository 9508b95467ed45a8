"""Law 11 has teeth: an algorithm that believes its hub is caught."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.errors import MessageError
from consenso.schedules import Everyone
from consenso.testing import laws


def small(example):
    return replace(example, schedules=(Everyone(),), trusts=("local",))


def test_a_metric_that_is_believed_gives_a_record_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consenso.algorithms.preconditioned.check_metric", lambda facts, metric: None)
    with pytest.raises(AssertionError, match=r"moved by|rows decide"):
        laws.lies_gain_nothing(small(PreconditionedFixedPoint.example()))


class RefusesByItsRows(DPSGD):
    def local(self, facts, down, state, f, releaser):
        if np.abs(f.linear_predictor(down.u)).max() > 1e3:
            raise MessageError("the scores are too large.")
        return super().local(facts, down, state, f, releaser)


def test_a_refusal_that_rows_decide_is_seen() -> None:
    example = DPSGD.example()
    faulty = RefusesByItsRows(**vars(example.algorithm))
    with pytest.raises(AssertionError, match="rows decide what is refused"):
        laws.lies_gain_nothing(small(replace(example, algorithm=faulty)))


class MovesWithTheNumbersOfTheHub(DPSGD):
    """Its bound holds for models that an honest hub sends, and for no others."""

    def local(self, facts, down, state, f, releaser):
        stretched = f.rmatvec(f.linear_predictor(down.u)) * facts.scales[:, None] * 1e-2
        return super().local(
            facts, down, state, f, lambda name, value, **rest: releaser(name, value + stretched, **rest)
        )


def test_a_bound_that_holds_for_honest_messages_only_is_seen() -> None:
    example = DPSGD.example()
    faulty = MovesWithTheNumbersOfTheHub(**{**vars(example.algorithm), "rate": 1.0})
    with pytest.raises(AssertionError, match="moved by"):
        laws.lies_gain_nothing(small(replace(example, algorithm=faulty)))
