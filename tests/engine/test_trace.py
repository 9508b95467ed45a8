from __future__ import annotations

import numpy as np

from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.ipadmm import IPADMM
from consenso.engine.run import objective, run
from consenso.privacy.noise import NoNoise
from consenso.shards import Shards
from consenso.testing import laws
from consenso.testing.worlds import draw


def traced(definition, **options):
    example = definition.example()
    shards = Shards.from_parties(example.problem, draw(example.problem, np.random.default_rng(0)))
    made = laws.plan_example(example, noise=NoNoise(), rounds=30)
    return run(made, shards, **options), shards


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    result, _ = traced(ConsensusADMM)
    assert result.trace.columns == {}


def test_a_trace_has_only_what_the_hub_sees() -> None:
    result, _ = traced(ConsensusADMM, trace=True)
    assert result.trace.audience == {"model movement": "hub"}
    assert len(result.trace.columns["model movement"]) == 30


def test_diagnostics_are_marked_private_and_shrink_without_noise() -> None:
    for definition in (ConsensusADMM, IPADMM):
        result, shards = traced(definition, diagnostics=True)
        columns, audience = result.trace.columns, result.trace.audience
        assert audience["objective"] == audience["consensus violation"] == "private"
        assert columns["objective"][-1] == objective(result.plan, shards, result.model)
        assert columns["objective"][-1] < columns["objective"][0]
    assert columns["consensus violation"][-1] < max(columns["consensus violation"])


def test_progress_is_told_after_each_round() -> None:
    told: list[tuple[int, int]] = []
    traced(ConsensusADMM, progress=lambda done, planned: told.append((done, planned)))
    assert told == [(done, 30) for done in range(1, 31)]
