"""Rows on the workers of a real cluster of two processes: the model of one process, whatever dies."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import polars as pl
import pytest
from tests import forks
from typer.testing import CliRunner

from consenso import PrivateLogisticRegression, PrivateRidge
from consenso.algorithms.preconditioned import PreconditionedFixedPoint
from consenso.cli import build
from consenso.cli.cluster import Engine, cluster
from consenso.cli.train import Pace
from consenso.engine.run import run
from consenso.errors import InputError
from consenso.estimators.reading import read_arrays
from consenso.estimators.stored import DaskBatches, FrameBatches, TargetCoding
from consenso.losses import Logistic
from consenso.models import load_model
from consenso.planning.plan import plan
from consenso.privacy.ledger import Budget, Ledger
from consenso.privacy.noise import GaussianNoise
from consenso.privacy.samplers import Seeded
from consenso.problem import Problem
from consenso.regularizers import L2
from consenso.shards import Shards
from consenso.shards.cluster import ClusterCohort, connect, hold_rows, sum_batches
from consenso.study import Study
from consenso.study.plan_summary import summarize_plan
from consenso.study.training import train
from consenso.tables import frames

pytestmark = pytest.mark.waits

cloudpickle.register_pickle_by_value(sys.modules[__name__])
RECORDS = 900


@pytest.fixture(scope="module")
def client():
    before = dict(os.environ)
    with connect(None) as found:
        yield found
    # What Dask sets for its workers would slow down programs that are started later.
    left = {name for name, value in os.environ.items() if before.get(name) != value}
    assert all(name.startswith(("POLARS_", "PYTEST_")) for name in left), left


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


@pytest.mark.parametrize("killed", [True, pytest.param(False, marks=pytest.mark.slow)])
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
        assert not before <= set(client.scheduler_info()["workers"])  # one of them is gone


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

    part = frame.head(50)
    for other, match in (
        (part.rename(columns={"b": "z"}), "columns or their types are not those"),
        (part.assign(z=1.0), "columns or their types are not those"),
        (part.assign(b="HIV"), "columns or their types are not those"),
        (part.assign(b=part["b"].astype(np.float32)), "columns or their types are not those"),
        (part.assign(b=np.nan), "one is not"),
        (part.assign(y="HIV"), "columns or their types are not those"),
    ):
        wrong = dd.from_map(lambda each: each, [part, other], meta=part[:0])
        with pytest.raises(InputError, match=match) as raised:
            PrivateLogisticRegression(**settings).fit(wrong, "y")
        assert "HIV" not in str(raised.value)
    more = dd.concat([frame, dd.from_pandas(frame.head(0), npartitions=1)])
    np.testing.assert_array_equal(PrivateLogisticRegression(**settings).fit(more, "y").coef_, expected.coef_)
    with pytest.raises(InputError, match="the Dask data frame: a table has at least one record"):
        PrivateLogisticRegression(**settings).fit(dd.from_pandas(frame.head(0), npartitions=1), "y")
    with pytest.raises(InputError, match="X has more rows"):
        PrivateLogisticRegression(**settings, adjacency="add-remove", records=RECORDS - 1).fit(frame, "y")
    with pytest.raises(InputError, match="known by its place"):
        PrivateLogisticRegression(**settings).fit(frame, "y", users="a")


def test_cells_of_a_dask_data_frame_are_read_like_those_of_one_in_memory(client, table) -> None:
    import dask.dataframe as dd

    whole = dd.read_parquet(table[0]).compute()
    coding = TargetCoding("test", np.array([-1, 1]))
    for kinds in ({"a": "float32", "b": "int16", "c": "bool"}, {"a": "float32", "b": "int32"}, {"a": "Float32"}):
        frame = whole[[*kinds, "y"]].round().fillna(0).astype(kinds)
        batches = DaskBatches(dd.from_pandas(frame, npartitions=2), tuple(kinds), "y", coding)
        expected, _ = read_arrays("test", frame[list(kinds)])
        found = np.vstack([batch.X for batch in batches])
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    gap = whole.astype({"b": "Float64"})
    gap.loc[gap.index[3], "b"] = None
    settings = {"epsilon": 1.0, "row_bound": 1.0, "random_state": 1}
    with pytest.raises(InputError, match=r"partition 0, row 3 .*: cells are finite numbers, and one is not"):
        PrivateLogisticRegression(**settings, classes=[-1, 1]).fit(dd.from_pandas(gap, npartitions=2), "y")
    words = dd.from_pandas(whole.assign(y="HIV"), npartitions=2)
    with pytest.raises(InputError, match="targets are numbers") as raised:
        PrivateRidge(**settings, target_bound=1.0).fit(words, "y")
    assert "HIV" not in str(raised.value)


STUDY = """
[data]
table = "{table}"
schema = "schema.toml"
rows = 900
[model]
loss = "logistic"
[privacy]
epsilon = 2.0
delta = 1e-5
seed = 3
[setting]
kind = "central"
[output]
checkpoint = 1
"""
SCHEMA = """
[columns.a]
kind = "numeric"
low = -4
high = 4
[columns.b]
kind = "numeric"
low = -4
high = 4
[columns.c]
kind = "ignore"
[columns.y]
kind = "label"
classes = ["-1", "1"]
"""


@pytest.fixture
def study(table):
    path, *_ = table
    (path.parent / "schema.toml").write_text(SCHEMA)
    for name, pattern in (("study", "t.parquet"), ("stored", "t*.parquet")):
        (path.parent / f"{name}.toml").write_text(STUDY.format(table=pattern))
    return path.parent


@pytest.mark.slow
def test_the_program_trains_on_a_cluster_of_which_a_worker_is_killed(client, study) -> None:
    whole = forks.run("train", "study.toml", "--out", "whole", "--no-report", cwd=study)
    assert whole.returncode == 0, whole.stderr
    told = ("--engine", "dask", "--scheduler", client.scheduler.address, "--out", "spread", "--no-report", "--json")
    env, out, wrong = {**os.environ, "NO_COLOR": "1"}, study / "out", study / "err"
    process = forks.start("train", "study.toml", *told, cwd=study, env=env, out=out, err=wrong)
    deadline = time.monotonic() + 300
    while not (study / "spread" / "checkpoint" / "checkpoint.npz").exists():
        assert process.poll() is None, wrong.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
    assert process.wait(300) == 0, wrong.read_text()
    here, spread = load_model(study / "whole"), load_model(study / "spread")
    np.testing.assert_array_equal(spread.coefficients, here.coefficients)
    assert "Dask" in spread.card.data["engine"]
    assert "engine" not in here.card.data


def test_the_program_says_that_there_is_no_scheduler(study, monkeypatch) -> None:
    monkeypatch.setattr("consenso.shards.cluster.PATIENCE", 1)
    with pytest.raises(InputError, match="no Dask scheduler answered"), cluster(Engine.dask, "tcp://127.0.0.1:1"):
        pass
    with pytest.raises(InputError, match="only --engine dask has one"), cluster(Engine.process, "tcp://127.0.0.1:1"):
        pass
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=5.0, delta=1e-5)
    ledger = Ledger.create(study / "data.ledger", dataset="data", budgets=[budget])
    text = (study / "study.toml").read_text().replace("seed = 3", 'ledger = "data.ledger"')
    (study / "study.toml").write_text(text)
    told = ["train", str(study / "study.toml"), "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"]
    found = CliRunner().invoke(build(), told)
    assert found.exit_code != 0
    assert "no Dask scheduler answered" in str(found.exception) + found.output
    assert not ledger.runs()


def test_a_task_that_is_run_twice_is_counted_once(client, table, tmp_path) -> None:
    """A worker that was slow, or lost, may answer twice; here every batch is added up by both."""
    path, X, y = table
    p = made()
    shards = hold_rows(client, p.problem, batches_of(path))
    ran = tmp_path / "ran"
    ran.mkdir()
    object.__setattr__(shards.whole, "__class__", RetriedCohort)
    object.__setattr__(shards.whole, "ran", ran)
    expected = Shards.build(p.problem, X, y, np.array([0, RECORDS])).cohort()
    step = 2.0**-40
    np.testing.assert_array_equal(shards.whole.add_up(_sums, step, step), expected.add_up(_sums, step, step))
    assert len(list(ran.iterdir())) >= shards.whole.batches.count + 3  # three batches were worked on twice


def _sums(part, step):
    return part.exact_sums(np.ones(part.rows), step)


@dataclass(frozen=True)
class Retried:
    """A term whose worker is lost, once, in the third batch of a task: after two answers of it, before its own."""

    term: Any
    ran: Path

    def __call__(self, part, *arguments):
        found = self.term(part, *arguments)
        (self.ran / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        if len(list(self.ran.glob(f"{os.getpid()}-*"))) < 3:
            return found
        try:
            (self.ran.parent / "failed").touch(exist_ok=False)
        except FileExistsError:
            return found
        return os.kill(os.getpid(), signal.SIGKILL)


class RetriedCohort(ClusterCohort):
    """Rows on workers, one of which is lost between its answer and its arrival."""

    def add_up(self, term, unit, *arguments):
        return super().add_up(Retried(term, self.ran), unit, *arguments)


def _kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def _allow(failures, dask_scheduler=None):
    dask_scheduler.allowed_failures = failures


@pytest.mark.slow
def test_a_batch_that_no_worker_survives_is_one_clear_error(client, table, monkeypatch) -> None:
    import dask.dataframe as dd

    path, *_ = table
    monkeypatch.setattr(frames, "BATCH_NUMBERS", 4 * RECORDS)  # one batch, so that one worker dies
    held = hold_rows(client, made().problem, batches_of(path)).whole
    frame = DaskBatches(dd.read_parquet(path), ("a", "b", "c"), "y", TargetCoding("test", np.array([-1, 1])))
    assert held.batches.count == frame.count == 1
    client.run_on_scheduler(_allow, 0)
    try:
        with pytest.raises(InputError, match="lost with every worker"):
            held.add_up(_kill, 1.0)
        with pytest.raises(InputError, match="lost with every worker"):
            sum_batches(frame, _kill)
    finally:
        client.run_on_scheduler(_allow, 3)


class TestPlan:
    """What a plan says of reading, and what a run reads."""

    def test_what_is_read_how_often_and_the_memory(self, study) -> None:
        text = STUDY.replace("rows = 900", "rows = 100_000_000")
        (study / "long.toml").write_text(text.format(table="t*.parquet"))
        long = Study.load(study / "long.toml")
        stored, spread = summarize_plan(long).cost, summarize_plan(long, on_cluster=True).cost
        (study / "long.toml").write_text(text.format(table="t.parquet"))
        assert summarize_plan(Study.load(study / "long.toml")).cost.reading == stored.reading
        (study / "long.toml").write_text(text.replace("100_000_000", "1_000_000").format(table="t.parquet"))
        here = summarize_plan(Study.load(study / "long.toml")).cost
        assert (here.reading.where, here.reading.passes) == ("memory", 1)
        assert stored.reading.passes == long.plan().rounds + 2
        assert spread.reading.passes == 2
        assert here.memory > here.reading.size
        assert stored.reading.size > 10 * stored.memory
        assert stored.memory == spread.memory
        assert "1.5 GB of numbers each time" in stored.reading.sentence
        assert "workers read it once and hold 1.5 GB" in spread.reading.sentence

    def test_a_run_reads_as_often_as_the_plan_says(self, study) -> None:
        stored, seen, ahead = Study.load(study / "stored.toml"), [], []
        before = stored.shards().whole.batches.count
        found = train(stored, study / "run", watch=seen.append, progress=lambda done, planned: ahead.append(planned))
        assert sum(seen) == RECORDS * found.rounds["rounds run"]
        assert len(seen) == before * found.rounds["rounds run"]
        assert sum(seen) <= RECORDS * (summarize_plan(stored).cost.reading.passes - 2)

    def test_training_shows_rows_a_second_and_the_time_left(self, study) -> None:
        told = forks.run("train", "stored.toml", "--out", "shown", "--no-report", cwd=study)
        assert re.search(r"rounds, [0-9:-]+ left, [0-9,]+ rows\s+a\s+second", told.stderr), told.stderr

    def test_rows_a_second_and_the_part_of_a_round(self) -> None:
        now = iter([0.0, 2.0, 4.0, 4.0])
        pace = Pace(rows=1000, clock=lambda: next(now))
        assert pace.read(250) == 0.25
        assert pace.text == ", 125 rows a second"
        assert pace.finish(1) == 1
        assert pace.read(500) == 1.5
        assert pace.text == ", 188 rows a second"


@pytest.mark.slow
def test_people_in_memory_in_storage_and_on_workers_learn_the_same(client, study) -> None:
    """A patient has three stays, over several batches; one of them has 100 more, of which 64 are kept."""
    rows = pl.read_parquet(study / "t.parquet")
    ids = np.append(np.arange(RECORDS - 100) % 267, np.full(100, 5))
    rows.with_columns(c=pl.Series([f"patient-{one}" for one in ids])).write_parquet(study / "t.parquet")
    (study / "schema.toml").write_text(SCHEMA.replace('[columns.c]\nkind = "ignore"', '[columns.c]\nkind = "user"'))
    models = []
    for name, pattern, workers in (
        ("here", "t.parquet", None),
        ("far", "t*.parquet", None),
        ("spread", "t.parquet", client),
    ):
        text = STUDY.format(table=pattern).replace("delta = 1e-5", 'delta = 1e-5\nunit = "person"')
        (study / f"{name}.toml").write_text(text.replace("rows = 900", "rows = 267"))
        trained = train(Study.load(study / f"{name}.toml"), study / name, client=workers)
        assert {entry.unit for entry in trained.card.entries} == {"person"}
        assert "patient-" not in (study / name / "card.json").read_text()
        models.append(trained.model.coefficients)
    np.testing.assert_array_equal(models[1], models[0])
    np.testing.assert_array_equal(models[2], models[0])
    (study / "far.toml").write_text((study / "far.toml").read_text().replace("rows = 267", "rows = 900"))
    with pytest.raises(InputError, match="900 people are declared"):
        Study.load(study / "far.toml").shards()
