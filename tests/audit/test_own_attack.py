"""An attack is one class, which the audit takes as it takes its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.audit import Effort, audit
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy.events import Gaussian
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Public
from consenso.testing.attacks import list_attacked_plans


@dataclass(frozen=True)
class LargestCoefficient:
    """Looks at the size of the final model, and at nothing else."""

    sentence: str = "the largest coefficient of the final model"

    def watch(self, run: Any, pair: Any, query: Any, *, deviations: bool) -> Any:
        return self

    def see(self, scene: Any) -> None: ...

    def finish(self, models: Any) -> Any:
        return np.abs(models).max(axis=1)


def loud() -> Plan:
    example = replace(DPSGD.example(), rounds=1, trusts=("curator",), noise=GaussianNoise(multiplier=0.2))
    return next(list_attacked_plans(example))


def test_an_attack_of_ones_own_refutes_a_claim_that_is_too_strong_and_not_the_true_one() -> None:
    effort = Effort(trials=400, confidence=0.999)
    (finding,) = audit(loud(), effort, observers=[Public()], kind=LargestCoefficient())
    assert finding.attack == LargestCoefficient().sentence
    assert finding.lower > 0.2
    assert not finding.refuted
    asked = {"observers": [Public()], "kind": LargestCoefficient(), "claim": lambda query: Gaussian(50.0, 1.0)}
    assert audit(loud(), effort, **asked)[0].refuted


def test_an_attack_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="the attacks are ratio, filter, walk, token, model"):
        audit(loud(), Effort(trials=100), observers=[Public()], kind="crystal ball")
