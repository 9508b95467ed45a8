"""Files of version 0.1.0: what was right is read, what was wrong is refused with the reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import consenso
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.cli import build
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.losses import Logistic
from consenso.models import load_model
from consenso.planning.plan import plan
from consenso.privacy.card import Card
from consenso.privacy.ledger import Ledger
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.study import Study
from consenso.study.from_table import spell

FOLDER = Path(__file__).parent / "v0_1_0"
GOOD = [FOLDER / "good" / name for name in ("add-remove-fit.json", "secure-sum.json", "add-remove-study")]
REPLACED = "under add-remove of a replace-one run"
WRONG = {
    "replace-one-fit.json": REPLACED,
    "replace-one-study": REPLACED,
    "falling-noise.json": "noise of the first round",
    "clip-add-remove.json": "twice the clip",
    "fixed-size-peer.json": "hidden from a party",
    "two-releases-poisson.json": "a sample of its own",
}


def verify(path, *options):
    return CliRunner().invoke(build(), ["verify", str(path), *options])


def test_every_file_is_looked_at() -> None:
    assert {path.name for path in (FOLDER / "wrong").iterdir()} == set(WRONG)
    there = {path.name for path in (FOLDER / "good").iterdir()}
    assert there == {path.name for path in GOOD} | {"data.ledger", "data.ledger.head", "checkpoint"}
    assert consenso.__version__ != "0.1.0", "cards of this version are told from those of 0.1.0 by its number"


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_a_card_whose_claims_hold_is_read_and_verified_or_says_what_to_do(path) -> None:
    card = Card.load(path)
    assert card.versions["consenso"] == "0.1.0"
    assert card.text()
    found = verify(path)
    assert found.exit_code == 0 or "make it anew" in found.stderr, found.stderr


@pytest.mark.parametrize("options", [(), ("--numbers-only",)], ids=["planned anew", "numbers only"])
@pytest.mark.parametrize(("name", "reason"), WRONG.items())
def test_a_card_whose_claims_were_wrong_is_refused_with_the_reason(name, reason, options) -> None:
    found = verify(FOLDER / "wrong" / name, *options)
    assert found.exit_code == 1
    assert "written by version 0.1.0" in found.stderr
    assert reason in found.stderr
    assert "make it anew" in found.stderr


def test_the_reason_is_not_lost_when_an_old_card_is_saved_anew(tmp_path) -> None:
    again = Card.load(FOLDER / "wrong" / "falling-noise.json").save(tmp_path / "again.json")
    assert "noise of the first round" in verify(again).stderr


def test_a_changed_old_card_is_refused_and_says_what_to_do(tmp_path) -> None:
    stored = json.loads(GOOD[0].read_text())
    stored["entries"][0]["epsilon"] /= 2
    (tmp_path / "card.json").write_text(json.dumps(stored))
    found = verify(tmp_path / "card.json")
    assert found.exit_code == 1
    assert "epsilon" in found.stderr
    assert "make it anew" in found.stderr


def test_a_card_with_a_bound_that_no_plan_states_says_what_to_do(tmp_path) -> None:
    stored = json.loads(GOOD[0].read_text())
    stored["entries"][0]["theorem"] = {"kind": "LocalView", "participations": 1, "std": 1.0, "clip": 1.0}
    (tmp_path / "card.json").write_text(json.dumps(stored))
    found = verify(tmp_path / "card.json", "--numbers-only")
    assert found.exit_code == 1
    assert "LocalView, a bound that no plan states" in found.stderr
    assert "make it anew" in found.stderr


def test_a_model_and_its_study_are_read() -> None:
    folder = FOLDER / "good" / "add-remove-study"
    model = load_model(folder)
    assert model.card == Card.load(folder)
    assert model.study == Study.load(folder / "study.toml").digest
    assert np.isfinite(model.coefficients).all()
    assert model.estimator().guarantee_.adjacency == "add-remove"


def test_a_ledger_is_read_and_goes_on(tmp_path) -> None:
    for name in ("data.ledger", "data.ledger.head"):
        shutil.copy(FOLDER / "good" / name, tmp_path / name)
    ledger = Ledger.open(tmp_path / "data.ledger")
    (balance,) = ledger.balances()
    assert balance.spent == pytest.approx(1.0, rel=1e-3)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    consenso.PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=2.0, classes=[0, 1], ledger=ledger).fit(
        X, (X[:, 0] > 0).astype(int)
    )
    (balance,) = ledger.balances()
    assert 1.3 < balance.spent < 2.0
    assert ledger.verify().fault is None


def test_a_checkpoint_is_refused_with_what_to_do(tmp_path) -> None:
    shutil.copytree(FOLDER / "good" / "checkpoint", tmp_path / "run")
    (tmp_path / "run" / "checkpoint.npz").chmod(0o600)
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=0.1), features=2, sizes=np.full(4, 5), row_bound=1.0, unit="party"
    )
    made = plan(problem, ConsensusADMM(step=0.5), rounds=8, noise=GaussianNoise(multiplier=1.0), sampler=Seeded(3))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    shards = Shards.build(problem, X, y, np.arange(0, 21, 5))
    with pytest.raises(InputError, match="start in another folder"):
        run(made, shards, checkpoint=tmp_path / "run")


def test_parameters_are_known_by_the_names_that_they_had() -> None:
    was = {"kind": "PreconditionedFixedPoint", "looks": 2, "pilot": 1, "steps": 5}
    assert spell(was, "algorithms") == PreconditionedFixedPoint(moment_releases=2, warmup_steps=1, steps=5)
