"""A study of every algorithm in every setting of its example trains, and its card verifies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consenso import registry
from consenso.algorithms import discover
from consenso.algorithms.shape import HubAlgorithm
from consenso.engine.run import run
from consenso.models import load_model
from consenso.planning.plan import plan
from consenso.planning.replan import differences
from consenso.privacy.card import Card
from consenso.privacy.card.plain import plain
from consenso.privacy.noise import NoNoise
from consenso.privacy.verify import first_failure, verify_file
from consenso.schedules import RandomWalk
from consenso.study import Study
from consenso.study.training import train


def without_none(value: Any) -> Any:
    """Values as TOML can hold them."""
    if isinstance(value, dict):
        return {name: without_none(item) for name, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def spelled(value: Any) -> Any:
    return without_none(plain(value, "value"))


def tables_of(example: Any, schedule: Any, trust: str) -> dict[str, Any]:
    """The study that says what an example says, on the table of the fixture."""
    problem = example.problem
    parameters = spelled(example.algorithm)
    parameters.pop("kind")
    walks = isinstance(schedule, RandomWalk) and trust == "local"
    peers = not isinstance(example.algorithm, HubAlgorithm) or walks
    noise = spelled(example.noise)
    noises = noise.values() if "kind" not in noise else [noise]
    for each in noises:
        each.pop("shares", None)
        each["kind"] = registry.short_name(registry.find(each["kind"], ["noises"]))
    setting: dict[str, Any] = {
        "kind": "decentralized" if peers else "federated",
        "trust": trust,
        "algorithm": type(example.algorithm).__name__,
        "rounds": example.rounds,
        "parameters": parameters,
        "weighting": problem.weighting,
        "split": {"kind": "equal", "parties": problem.parties},
    }
    if type(schedule).__name__ != "Everyone":
        setting["schedule"] = {name: value for name, value in spelled(schedule).items() if name != "topology"}
    if example.topology is not None:
        setting["topology"] = {"edges": [list(edge) for edge in example.topology.edges]}
    return {
        "data": {"table": "table.csv", "schema": "schema.toml", "rows": 30, "test": "test.csv"},
        "model": {"loss": "logistic", "regularizer": spelled(problem.regularizer)},
        "privacy": {"noise": noise, "unit": problem.unit, "adjacency": problem.adjacency, "seed": 3},
        "setting": setting,
    }


CASES = [
    pytest.param(name, schedule, trust, id=f"{name}-{type(schedule).__name__}-{trust}")
    for name, definition in discover().items()
    for schedule in definition.example().schedules
    for trust in definition.example().trusts
]


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "schedule", "trust"), CASES)
def test_trains_and_its_card_verifies(name: str, schedule: Any, trust: str, table: Path) -> None:
    example = discover()[name].example()
    study = Study.from_tables(tables_of(example, schedule, trust), folder=table)
    found = train(study, table / "run")
    # The plan is the one that the library makes of the same objects.
    same = plan(
        study.problem(),
        example.algorithm,
        rounds=example.rounds,
        noise=example.noise,
        schedule=schedule,
        trust=trust,  # type: ignore[arg-type]
        topology=example.topology,
        sampler=study.plan().sampler,
    )
    assert repr(same.algorithm) == repr(study.plan().algorithm)
    expected = run(same, study.shards()).coefficients
    np.testing.assert_array_equal(load_model(table / "run").coefficients, expected)
    checks = verify_file(table / "run")
    assert first_failure(checks) is None
    assert differences(Card.load(table / "run")) == []
    assert found.metrics is not None
    assert found.metrics["records"] == 12
    assert not (table / "run" / "checkpoint").exists()


@pytest.mark.parametrize("name", discover())
def test_a_target_is_met_for_the_observer_of_the_study(name: str, table: Path) -> None:
    example = discover()[name].example()
    if isinstance(example.noise, NoNoise):
        # Promised by nobody, so it cannot be asked for.
        tables = tables_of(example, example.schedules[0], example.trusts[0])
        assert np.isinf(Study.from_tables(tables, folder=table).plan().card(1e-5).entries[0].epsilon)
        return
    tables = tables_of(example, example.schedules[0], example.trusts[0])
    noise = tables["privacy"].pop("noise")
    tables["privacy"] |= {"epsilon": 5.0, "delta": 1e-3, "kind": noise.get("kind", "gaussian"), "observer": "public"}
    study = Study.from_tables(tables, folder=table)
    made = study.plan()
    spent = made.guarantee(made.observers()[-1], 1e-3).epsilon(1e-3)
    assert 4.9 < spent <= 5.0
