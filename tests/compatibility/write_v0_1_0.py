"""Writes the files of version 0.1.0 that lie beside this script; it runs with that version only.

    git worktree add /tmp/v010 7652fed
    PYTHONPATH=/tmp/v010/src python tests/compatibility/write_v0_1_0.py

good/ has what is read today, wrong/ has cards whose claims were too strong, by the reason that a reader must be told.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import consenso
from consenso.algorithms.consensus import ConsensusADMM
from consenso.algorithms.dp_sgd import DPSGD
from consenso.algorithms.noisy_fixed_point import NoisyFixedPoint
from consenso.engine.run import run
from consenso.losses import Huber, Logistic
from consenso.planning.plan import plan
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.noise import GaussianNoise, Geometric
from consenso.privacy.samplers import Safe, Seeded
from consenso.problem import Problem
from consenso.regularizers import L2, NoPenalty
from consenso.schedules import FixedSubset, PoissonSubset
from consenso.shards import Shards
from consenso.study import Study
from consenso.study.training import train

FOLDER = Path(__file__).parent / "v0_1_0"
GOOD, WRONG = FOLDER / "good", FOLDER / "wrong"
DELTA = 1e-5
STUDY = """
title = "a study"
[data]
dataset = "diabetes"
rows = 300
holdout = 100
target_bound = 3.0
[model]
loss = {kind = "Huber", threshold = 1.0}
regularizer = {kind = "l2", strength = 0.01}
[privacy]
epsilon = 2.0
delta = 1e-5
seed = 0
adjacency = "ADJACENCY"
[setting]
kind = "central"
"""


@dataclass(frozen=True, kw_only=True)
class TwoSums(NoisyFixedPoint):
    """An algorithm that releases two sums a round."""

    def releases(self, facts):
        """The same sum under two names."""
        (one,) = super().releases(facts)
        return (one, replace(one, name="second"))


def problem(parties=4, **rest):
    facts = {"unit": "party", **rest}
    return Problem(
        loss=Logistic(), regularizer=L2(strength=0.1), features=2, sizes=np.full(parties, 5), row_bound=1.0, **facts
    )


def rows(seed=0, many=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(many, 2))
    return X, (X[:, 0] > 0).astype(int)


def write_checkpoint(folder):
    """A seeded run of eight rounds that was stopped after the fourth."""
    made = plan(problem(), ConsensusADMM(step=0.5), rounds=8, noise=GaussianNoise(multiplier=1.0), sampler=Seeded(3))
    X, y = rows(many=20)
    X /= np.maximum(np.linalg.norm(X, axis=1), 1.0)[:, None]
    shards = Shards.build(made.problem, X, np.where(y == 1, 1.0, -1.0), np.arange(0, 21, 5))

    def stop(done, planned):
        if done == 4:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        run(made, shards, checkpoint=folder, progress=stop)


def save(card, path):
    """A card without the spaces of a file that people read."""
    path.write_text(json.dumps(json.loads(json.dumps(card.to_json())), separators=(",", ":")))


OPTIONS = {"epsilon": 1.0, "delta": DELTA, "row_bound": 2.0, "classes": [0, 1]}
ASKED = {"rounds": 6, "sampler": Safe(), "noise": GaussianNoise(multiplier=3.0)}


def write_study(adjacency, folder):
    (FOLDER / "study.toml").write_text(STUDY.replace("ADJACENCY", adjacency))
    train(Study.load(FOLDER / "study.toml"), folder)
    (FOLDER / "study.toml").unlink()


def write_good():
    X, y = rows()
    fitted = consenso.PrivateLogisticRegression(**OPTIONS, adjacency="add-remove", records=100).fit(X, y)
    save(fitted.card_, GOOD / "add-remove-fit.json")
    far = problem(adjacency="add-remove", unit="record")
    save(plan(far, ConsensusADMM(step=0.5), **ASKED, trust="secure-sum").card(DELTA), GOOD / "secure-sum.json")
    write_study("add-remove", GOOD / "add-remove-study")
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=3.0, delta=DELTA)
    ledger = Ledger.create(GOOD / "data.ledger", dataset="data", budgets=[budget])
    consenso.PrivateLogisticRegression(**OPTIONS, ledger=ledger).fit(X, y)
    write_checkpoint(GOOD / "checkpoint")


def write_wrong():
    X, y = rows()
    save(consenso.PrivateLogisticRegression(**OPTIONS).fit(X, y).card_, WRONG / "replace-one-fit.json")
    write_study("replace-one", WRONG / "replace-one-study")
    falling = {**ASKED, "noise": GaussianNoise(multiplier=Geometric(first=3.0, ratio=0.1))}
    once = {**ASKED, "rounds": 1, "sampler": Seeded(0)}
    gone = problem(adjacency="add-remove")
    silos = Problem(
        loss=Huber(threshold=1.0),
        regularizer=NoPenalty(),
        features=1,
        sizes=np.ones(2, dtype=int),
        row_bound=1.0,
        target_bound=10.0,
        unit="party",
    )
    example = NoisyFixedPoint.example()
    twice = TwoSums(**vars(example.algorithm))
    several = replace(example.problem, unit="party", adjacency="add-remove")
    plans = {
        "falling-noise": plan(problem(), ConsensusADMM(step=0.5), **falling, trust="secure-sum"),
        "clip-add-remove": plan(gone, ConsensusADMM(step=0.5, clip=0.1), **ASKED),
        "fixed-size-peer": plan(silos, DPSGD(), **once, schedule=FixedSubset(1), trust="curator"),
        "two-releases-poisson": plan(several, twice, **ASKED, schedule=PoissonSubset(0.1), trust="curator"),
    }
    for name, made in plans.items():
        save(made.card(DELTA), WRONG / f"{name}.json")


if __name__ == "__main__":
    assert consenso.__version__ == "0.1.0"
    shutil.rmtree(FOLDER, ignore_errors=True)
    for folder in (GOOD, WRONG, GOOD / "checkpoint"):
        folder.mkdir(parents=True)
    write_good()
    write_wrong()
