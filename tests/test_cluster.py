"""Rows on the workers of a real cluster of two processes: the model of one process, whatever dies."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import polars as pl
import pytest

from consenso import PrivateLogisticRegression
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.estimators.stored import FrameBatches, TargetCoding
from consenso.losses import Logistic
from consenso.planning.plan import plan
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.shards.cluster import ClusterCohort, connect, hold_rows
from consenso.tables import frames

cloudpickle.register_pickle_by_value(sys.modules[__name__])
RECORDS = 900


@pytest.fixture(scope="module")
def client():
    with connect(None) as found:
        yield found


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "BATCH_NUMBERS", 4 * 130)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(RECORDS, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}).write_parquet(tmp_path / "t.parquet")
    return tmp_path / "t.parquet", X, y.astype(float)


def made():
    problem = Problem(
        loss=Logistic(), regularizer=L2(strength=0.01), features=3, sizes=np.array([RECORDS]), row_bound=1.0
    )
    noise = dict.fromkeys(("second moment", "gradient"), GaussianNoise(multiplier=1.0))
    return plan(problem, PreconditionedFixedPoint(steps=5), rounds=6, noise=noise, sampler=Seeded(0), trust="curator")


def batches_of(path):
    return FrameBatches(frames.open_frames(path), ("a", "b", "c"), "y", TargetCoding("test", np.array([-1, 1])))


@dataclass(frozen=True)
class Deadly:
    """A term that kills the worker that it runs on, in the fourth pass over one batch, once."""

    term: Any
    flag: Path
    first: float

    def __call__(self, part, *arguments):
        if abs(part.linear_predictor(np.array([1.0, 0.0, 0.0]))[0] - self.first) < 1e-12:
            passes = len(list(self.flag.iterdir()))
            (self.flag / str(passes)).touch()
            if passes == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.term(part, *arguments)


class DeadlyCohort(ClusterCohort):
    """Rows on workers, one of which dies in the middle of a round."""

    def add_up(self, term, unit, *arguments):
        return super().add_up(Deadly(term, *self.deadly), unit, *arguments)


@pytest.mark.parametrize("killed", [False, True])
def test_the_model_is_that_of_one_process_bit_for_bit(killed, client, table, tmp_path) -> None:
    path, X, y = table
    p = made()
    expected = run(p, Shards.build(p.problem, X, y, np.array([0, RECORDS])))
    shards = hold_rows(client, p.problem, batches_of(path))
    if killed:
        flag = tmp_path / "passes"
        flag.mkdir()
        first = shards.whole.intake.cohort(batches_of(path).batch(1)).linear_predictor(np.array([1.0, 0.0, 0.0]))[0]
        object.__setattr__(shards.whole, "__class__", DeadlyCohort)
        object.__setattr__(shards.whole, "deadly", (flag, float(first)))
    before = set(client.scheduler_info()["workers"])
    found = run(p, shards)
    np.testing.assert_array_equal(found.model, expected.model)
    if killed:
        assert len(list(flag.iterdir())) == 6 + 1  # a round of it was read once more, and counted once
        assert set(client.scheduler_info()["workers"]) != before or len(before) == 2


def test_a_table_that_changes_ends_the_run(client, table) -> None:
    path, *_ = table
    p = made()
    shards = hold_rows(client, p.problem, batches_of(path))

    def touch(done: int, planned: int) -> None:
        if done == 2:
            object.__setattr__(shards.whole, "batches", Changed(shards.whole.batches))

    class Changed:
        def __init__(self, inner):
            self.inner, self.calls = inner, 0
            self.shape, self.count = inner.shape, inner.count

        def fingerprint(self):
            self.calls += 1
            return f"{self.calls}"

    with pytest.raises(InputError, match="changed while it was read"):
        run(p, shards, progress=touch)


def test_a_worker_s_error_is_the_error_of_the_run(client, table) -> None:
    path, *_ = table
    p = made()
    shards = hold_rows(client, p.problem, batches_of(path))
    path.unlink()
    with pytest.raises(InputError):
        run(p, shards)


def test_a_scheduler_that_is_not_there(monkeypatch) -> None:
    monkeypatch.setattr("consenso.shards.cluster.PATIENCE", 1)
    with pytest.raises(InputError, match="no Dask scheduler answered"), connect("tcp://127.0.0.1:1"):
        pass


def test_a_dask_data_frame_is_fitted_where_it_is(client, table) -> None:
    import dask.dataframe as dd

    path, X, y = table
    settings = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "row_bound": 1.0,
        "classes": [-1, 1],
        "random_state": 1,
        "bounds": "public",
    }
    expected = PrivateLogisticRegression(**settings).fit(X, y.astype(int))
    frame = dd.read_parquet(path).repartition(npartitions=3)
    found = PrivateLogisticRegression(**settings).fit(frame, "y")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    assert any("workers" in text for text in found.guarantee_.assumptions)
    assert "Dask" in found.card_.data["engine"]
    with pytest.raises(InputError, match="not among classes"):
        PrivateLogisticRegression(**{**settings, "classes": [0, 1]}).fit(frame, "y")
