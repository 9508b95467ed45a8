"""What is said of a run before it starts: guarantees as the card has them, a cost, and a bound that holds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consenso.engine.run import objective, run
from consenso.study import Study
from consenso.study.cost import estimate_cost
from consenso.study.plan_summary import epsilon_for, summarize_plan

TABLES: dict[str, Any] = {
    "data": {"dataset": "digits", "rows": 1400, "positive": [0, 2, 4, 6, 8]},
    "model": {"loss": "logistic", "regularizer": {"kind": "l2", "strength": 0.2}},
    "privacy": {"epsilon": 8.0, "delta": 1e-5, "seed": 0},
    "setting": {"kind": "central"},
}


def study_of(**changes: Any) -> Study:
    study = Study.from_tables(TABLES, folder=Path())
    return study.change({key.replace("__", "."): value for key, value in changes.items()})


def test_the_outlook_is_json_and_its_figures_are_the_card_s() -> None:
    found = summarize_plan(study_of())
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert found.epsilon == epsilon_for(found.card, "public") == pytest.approx(8.0, rel=1e-4)
    assert len(told["guarantees"]) == len(found.card.entries) == 4
    for told_entry, entry in zip(told["guarantees"], found.card.entries, strict=True):
        assert told_entry["epsilon"] == entry.epsilon
        assert told_entry["theorem"]
    bare = json.loads(json.dumps(summarize_plan(study_of(privacy__epsilon=math.inf)).to_json(), allow_nan=False))
    assert bare["epsilon"] == "inf"


def test_the_predicted_error_is_above_what_the_steps_leave() -> None:
    study = study_of()
    prediction = summarize_plan(study).prediction
    assert prediction is not None
    assert prediction.informative
    # The bound is for proximal gradient steps of length 1/smoothness, which DP-SGD takes.
    smoothness = float(np.mean(study.problem().smoothness))
    gaps = []
    for seed in range(5):
        steps = study.change(
            {
                "privacy.seed": seed,
                "setting.algorithm": "DP-SGD",
                "setting.rounds": prediction.rounds,
                "setting.parameters": {"step": 1 / smoothness},
            }
        )
        shards = steps.shards()
        noisy = run(steps.plan(), shards).model
        bare = steps.change({"privacy.epsilon": math.inf, "setting.rounds": 400})
        exact = run(bare.plan(), bare.shards()).model
        gaps.append(objective(steps.plan(), shards, noisy) - objective(steps.plan(), shards, exact))
    # The mean of five runs is below a bound on the expectation that is an order of magnitude above it.
    assert 0 < np.mean(gaps) < prediction.excess_risk
    assert prediction.excess_risk < prediction.at_zero == pytest.approx(math.log(2))


def test_there_is_no_prediction_where_theory_has_none() -> None:
    assert summarize_plan(study_of(model__regularizer="none")).prediction is None
    assert summarize_plan(study_of(model__intercept=True)).prediction is None
    lasso = summarize_plan(study_of(model__regularizer={"kind": "elastic-net", "l1": 0.1, "l2": 0.2})).prediction
    assert lasso is not None
    assert lasso.excess_risk is None
    weak = summarize_plan(study_of(model__regularizer={"kind": "l2", "strength": 1e-4})).prediction
    assert weak is not None
    assert not weak.informative


def test_more_costs_more_and_local_noise_predicts_a_larger_error() -> None:
    central = summarize_plan(study_of())
    local = summarize_plan(study_of(setting={"kind": "federated", "trust": "local", "split": {"parties": 50}}))
    assert central.prediction is not None
    assert local.prediction is not None
    assert local.prediction.squared_distance > central.prediction.squared_distance
    slow = study_of(setting={"kind": "central", "algorithm": "DP-SGD", "rounds": 100_000}, privacy__epsilon=math.inf)
    assert estimate_cost(slow.plan()).seconds > 3 * central.cost.seconds
    safe = study_of(privacy__seed=None)
    assert estimate_cost(safe.plan()).seconds > central.cost.seconds
