"""`consenso audit study.toml --data`: a real run with canaries, charged like any run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from consenso.algorithms.dp_sgd import DPSGD
from consenso.audit.one_run import canaries, guess_from_model
from consenso.engine.run import run
from consenso.errors import BudgetError, InputError
from consenso.losses import Huber
from consenso.planning.plan import plan
from consenso.planning.replan import differences
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.card import Card
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.observers import Public
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.shards import Shards
from consenso.study import Study
from consenso.study.audited import AUDIT, audit_data, plant

STUDY = """
title = "a small study"

[data]
dataset = "breast_cancer"

[model]
loss = "logistic"
intercept = true
regularizer = {{kind = "l2", strength = 0.5}}

[privacy]
epsilon = 1.0
delta = 1e-5
{more}

[setting]
{setting}
rounds = 4
"""
PARTIES = "\n[setting.split]\nkind = 'equal'\nparties = 4\n"
SETTINGS = {
    "central": 'kind = "central"\nalgorithm = "DPSGD"',
    "federated": 'kind = "federated"\ntrust = "secure-sum"\nalgorithm = "DPSGD"',
    "decentralized": 'kind = "decentralized"\ntopology = { kind = "complete" }',
}


def study_at(folder: Path, more: str, kind: str = "central") -> Study:
    text = STUDY.format(more=more, setting=SETTINGS[kind]) + ("" if kind == "central" else PARTIES)
    (folder / "study.toml").write_text(text.replace("rounds = 4\n", "") if kind == "decentralized" else text)
    return Study.load(folder / "study.toml")


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_run_with_canaries_is_charged_and_its_card_says_so(kind: str, tmp_path: Path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=5.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "people.ledger", dataset="breast_cancer", budgets=[budget])
    study = study_at(tmp_path, 'ledger = "people.ledger"', kind)
    found = audit_data(study, tmp_path / "run", count=40)
    assert found.run.canaries == 40
    assert 0.0 <= found.run.lower <= found.claimed
    (charged,) = ledger.runs()
    assert charged.state == "committed"
    card = json.loads((tmp_path / "run" / "card.json").read_text())
    assert card["data"]["canaries"].startswith("40 of")
    assert differences(Card.load(tmp_path / "run")) == []  # the remark is no parameter of the plan
    told = json.loads((tmp_path / "run" / AUDIT).read_text())
    assert told["claimed"] == pytest.approx(found.claimed)
    assert {"lower", "within", "pair", "right", "guesses", "ideal"} <= told.keys()
    assert 0.0 <= found.ideal < found.claimed


def test_canaries_that_no_record_hides_are_guessed() -> None:
    """At epsilon 30 most of 30 guesses are right; 27 of 30 by chance less than once in 1e5."""
    problem = Problem(
        loss=Huber(threshold=1.0),
        regularizer=NoPenalty(),
        features=40,
        sizes=np.array([60]),
        row_bound=1.0,
        target_bound=1e3,
    )
    made = plan(
        problem,
        DPSGD(step=1.0),
        rounds=2,
        target=EpsilonDelta(epsilon=30.0, delta=1e-5),
        observer=Public(),
        sampler=Seeded(3),
    )
    silent = Shards.from_parties(problem, [(np.zeros((60, 40)), np.full(60, 1e3))])
    chosen, coins = canaries(problem, 30, seed=5), np.random.default_rng(0).integers(2, size=30).astype(bool)
    model = run(made, plant(silent, chosen, coins)).model
    claimed, found = guess_from_model(made, model, chosen, coins, delta=1e-5, confidence=0.95)
    assert claimed == pytest.approx(30.0, rel=1e-3)
    assert found.right >= 0.9 * found.guesses
    assert 0.0 < found.lower <= claimed


def test_every_other_record_stays_as_it_is(tmp_path: Path) -> None:
    study = study_at(tmp_path, "seed = 1")
    shards = study.shards()
    chosen = canaries(study.problem(), 5, seed=0, constant=study.constant)
    planted = plant(shards, chosen, np.array([True, False, True, False, True]))
    before, after = (each.cohort()._rows.matrix for each in (shards, planted))
    assert np.array_equal(before[5:], after[5:])
    assert np.linalg.norm(after[:5], axis=1).max() <= study.problem().row_bound
    assert np.allclose(after[[0, 2, 4], -1], study.constant)
    assert planted.scaled_rows() == 0


def test_a_budget_that_is_too_small_stops_it_before_anything_is_run(tmp_path: Path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=0.5, delta=1e-5)
    ledger = Ledger.create(tmp_path / "people.ledger", dataset="breast_cancer", budgets=[budget])
    with pytest.raises(BudgetError, match=r"0\.5 is left"):
        audit_data(study_at(tmp_path, 'ledger = "people.ledger"'), tmp_path / "run", count=40)
    assert ledger.runs() == ()
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_audited_is_refused_before_anything_is_spent(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="take the place of records"):
        audit_data(study_at(tmp_path, "seed = 1"), tmp_path / "run", count=10_000)
    assert not (tmp_path / "run").exists()
