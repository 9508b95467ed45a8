"""A target without an observer is for whoever is not trusted, at every entry point."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from consenso.algorithms import discover
from consenso.cli import build
from consenso.estimators import PrivateLogisticRegression
from consenso.losses import Logistic
from consenso.planning.plan import Plan
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.observers import Eavesdropper, Observer, Public, Server
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.solvers import names, prepare
from consenso.study import Study
from consenso.testing.plans import plan_example

TARGET = EpsilonDelta(epsilon=1.0, delta=1e-5)
# Everybody who is not trusted: those against whom a target has to hold.
UNTRUSTED: dict[str, tuple[Observer, ...]] = {
    "local": (Eavesdropper(), Server(), Public()),
    "secure-sum": (Eavesdropper(), Server(), Public()),
    "curator": (Public(),),
}
SETTINGS = [
    (name, trust)
    for name, definition in discover().items()
    if isinstance(definition.example().noise, GaussianNoise)
    for trust in definition.example().trusts
]


def check_kept(made: Plan, trust: str, epsilon: float = TARGET.epsilon, delta: float = TARGET.delta) -> None:
    """The budget is spent on the one who sees the most of those who are not trusted, and kept for all of them."""
    learnt = [made.guarantee(observer, delta).epsilon(delta) for observer in UNTRUSTED[trust]]
    assert max(learnt) <= epsilon
    assert max(learnt) == pytest.approx(epsilon, rel=1e-3)


@pytest.mark.parametrize(("name", "trust"), SETTINGS)
def test_plan_calibrates_for_whoever_is_not_trusted(name: str, trust: Any) -> None:
    check_kept(plan_example(discover()[name].example(), trust=trust, noise=None, target=TARGET), trust)


def test_parties_trust_nobody_unless_they_say_so_and_one_party_is_its_own_curator() -> None:
    example = discover()["PreconditionedFixedPoint"].example()
    check_kept(plan_example(example, trust=None, noise=None, target=TARGET), "local")
    check_kept(prepare(_problem(parties=1), TARGET), "curator")


@pytest.mark.parametrize("trust", UNTRUSTED)
@pytest.mark.parametrize("solver", ["auto", *sorted({*names()} - {"objective-perturbation"})])
def test_prepare_calibrates_for_whoever_is_not_trusted(solver: str, trust: Any) -> None:
    check_kept(prepare(_problem(parties=10), TARGET, solver=solver, trust=trust), trust)


def test_a_named_observer_is_still_the_one_that_is_meant() -> None:
    made = prepare(_problem(parties=10), TARGET, trust="local", observer=Public())
    assert made.guarantee(Public(), 1e-5).epsilon(1e-5) == pytest.approx(1.0, rel=1e-3)
    assert made.guarantee(Eavesdropper(), 1e-5).epsilon(1e-5) > 2


@pytest.mark.parametrize("trust", UNTRUSTED)
@pytest.mark.parametrize("algorithm", ["auto", "DPSGD", "ConsensusADMM"])
def test_studies_and_the_program_calibrate_for_whoever_is_not_trusted(
    trust: str, algorithm: str, tmp_path: Path
) -> None:
    study = Study.from_tables(_tables(trust, algorithm), folder=tmp_path)
    check_kept(study.plan(), trust)
    path = tmp_path / "study.toml"
    path.write_text(study.to_toml())
    told = json.loads(CliRunner().invoke(build(), ["plan", str(path), "--json"]).stdout)
    learnt = [
        float(entry["epsilon"])
        for entry in told["guarantees"]
        if (entry["unit"], entry["adjacency"]) == ("party" if algorithm == "ConsensusADMM" else "record", "replace-one")
        and entry["observer"] in {observer.key for observer in UNTRUSTED[trust]}
    ]
    assert max(learnt) == pytest.approx(told["epsilon"])
    assert told["epsilon"] == pytest.approx(1.0, rel=1e-3)


def test_an_estimator_states_what_was_asked_for_to_whom_the_curator_shows_the_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=3.0, classes=[0, 1], random_state=0)
    model.fit(X, (X[:, 0] > 0).astype(int))
    assert model.guarantee_.observer == Public().key
    assert model.guarantee_.epsilon(1e-5) == pytest.approx(1.0, rel=1e-3)


def _problem(parties: int) -> Problem:
    return Problem(
        loss=Logistic(),
        regularizer=L2(strength=1e-3),
        features=5,
        sizes=np.full(parties, 1000 // parties),
        row_bound=1.0,
    )


def _tables(trust: str, algorithm: str) -> dict[str, Any]:
    return {
        "data": {"dataset": "digits", "rows": 1400, "positive": [0, 2, 4, 6, 8]},
        "model": {"loss": "logistic", "regularizer": {"kind": "l2", "strength": 0.2}},
        "privacy": {
            "epsilon": 1.0,
            "delta": 1e-5,
            "seed": 0,
            "unit": "party" if algorithm == "ConsensusADMM" else "record",
        },
        "setting": {
            "kind": "federated",
            "trust": trust,
            "algorithm": algorithm,
            "split": {"kind": "equal", "parties": 10},
        },
    }
