"""What a user waits for: a private fit beside the usual one, the program to start, an audit, a refusal, a forecast.

Limits are generous where they are in seconds; ratios are taken between calls that take turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, best, seconds
from consenso.errors import InputError


def run() -> Iterator[Figure]:
    """A figure for each."""
    yield _fit()
    yield from _start()
    yield from _plan()
    yield _audit()
    yield _refusal()
    yield from _forecast()


def _fit() -> Figure:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    from benchmarks.utility.tasks import adult
    from consenso import PrivateLogisticRegression

    task = adult()
    X, y = np.ascontiguousarray(task.X[:, :-1]), task.y  # without the constant, which the estimators add

    def private() -> None:
        PrivateLogisticRegression(epsilon=1.0, delta=1e-5, row_bound=1.0, classes=[-1, 1]).fit(X, y)

    def usual() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            LogisticRegression().fit(X, y)

    own, reference = best(private, usual, repeats=5)
    return Figure("private logistic regression of Adult, over scikit-learn's", own / reference, limit=5.0)


def _start() -> Iterator[Figure]:
    def python(code: str, *arguments: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, check=True)

    (bare, imported, helped) = best(
        python("import numpy"),
        python("import consenso"),
        python("from consenso.cli import main; main()", "--help"),
        repeats=5,
    )
    yield Figure("import consenso, over import numpy", imported / bare, limit=5.0)
    yield Figure("consenso --help", helped, "s", limit=5.0)


def _plan() -> Iterator[Figure]:
    """`consenso plan` from its start to its end, in processor time: others share the machine."""
    peers = 'kind = "decentralized"\ntopology = "ring"\nsplit = {kind = "equal", parties = 10}'
    summed = 'kind = "federated"\ntrust = "secure-sum"\nsplit = {kind = "equal", parties = 10}'
    for name, setting in (("central", 'kind = "central"'), ("peers", peers), ("summed", summed)):
        with tempfile.TemporaryDirectory() as folder:
            study = Path(folder) / "study.toml"
            study.write_text(
                '[data]\ndataset = "digits"\nrows = 1400\npositive = [0, 2, 4, 6, 8]\n'
                '[model]\nloss = "logistic"\nregularizer = {kind = "l2", strength = 0.2}\n'
                f"[privacy]\nepsilon = 2.0\ndelta = 1e-4\n[setting]\n{setting}\n"
            )
            command = [sys.executable, "-m", "consenso", "plan", str(study)]
            taken = []
            for _ in range(3):
                before = os.times()
                subprocess.run(command, capture_output=True, check=True)
                after = os.times()
                taken.append(sum(after[2:4]) - sum(before[2:4]))
        yield Figure(f"consenso plan, {name}", min(taken), "s", limit=2.5)


def _audit() -> Figure:
    """20 rounds of 50 parties with 10 features, in seconds of one core; 20,000 runs take a minute of two."""
    from consenso.algorithms.consensus import ConsensusADMM
    from consenso.audit.neighbours import unkind
    from consenso.audit.simulate import Watch, simulate, stacking_of
    from consenso.losses import Logistic
    from consenso.planning.plan import plan
    from consenso.privacy.noise import GaussianNoise
    from consenso.privacy.observers import Eavesdropper
    from consenso.privacy.run_spec import PrivacyQuery
    from consenso.problem import Problem
    from consenso.regularizers import L1

    problem = Problem(
        loss=Logistic(), regularizer=L1(strength=0.01), features=10, sizes=np.full(50, 1), row_bound=1.0, unit="party"
    )
    made = plan(problem, ConsensusADMM(step=0.5), rounds=20, noise=GaussianNoise(multiplier=4.0))
    pair = list(unkind(problem, "party", "replace-one", 1))[-1]
    query = PrivacyQuery(observer=Eavesdropper(), unit="party", adjacency="replace-one", party=1)
    stacking = stacking_of(made, pair.zero)
    start = time.process_time()
    simulate(made, pair, [Watch(query=query, kind="ratio")], trials=1000, seed=0, stacking=stacking)
    return Figure("2,000 audited runs of 20 rounds and 50 parties", time.process_time() - start, "s", limit=12.0)


def _refusal() -> Figure:
    from consenso.tables import read_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.csv"
        path.write_text(",".join(f"c{i}" for i in range(10**6)) + "\n")

        def refuse() -> None:
            try:
                read_table(path)
            except InputError:
                return
            raise AssertionError("a million columns were read")

        refuse()
        taken = seconds(refuse)
    return Figure("refusing a table of a million columns", taken, "s", limit=2.0)


def _forecast() -> Iterator[Figure]:
    from consenso.engine.run import run as train
    from consenso.study import Study
    from consenso.study.cost import estimate_cost

    tables: dict[str, Any] = {
        "data": {"dataset": "digits", "rows": 1400, "positive": [0, 2, 4, 6, 8]},
        "model": {"loss": "logistic", "regularizer": {"kind": "l2", "strength": 0.2}},
        "privacy": {"multiplier": 5.0, "delta": 1e-5, "seed": 0},
        "setting": {"kind": "central", "algorithm": "DP-SGD", "rounds": 3000},
    }
    study = Study.from_tables(tables, folder=Path())
    shards = study.shards()
    train(study.change({"setting.rounds": 2}).plan(), shards)
    start = time.process_time()
    train(study.plan(), shards)
    taken, expected = time.process_time() - start, estimate_cost(study.plan()).seconds
    name = "expected time of 3,000 steps, over what they took"
    yield Figure(name, expected / taken, limit=0.1, at_most=False)
    yield Figure(name, expected / (taken + 1), limit=10.0)
