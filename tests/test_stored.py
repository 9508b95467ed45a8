"""Tables that stay in storage: the same model to the last bit, errors before anything is charged."""

from __future__ import annotations

import os
import tracemalloc
from fractions import Fraction
from itertools import product

import duckdb
import numpy as np
import polars as pl
import pytest
from pyarrow import dataset
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from consenso import PrivateLogisticRegression, PrivateRidge
from consenso.cli import build
from consenso.errors import InputError
from consenso.estimators.stored import FrameBatches, TargetCoding
from consenso.losses import Absolute, Hinge, Logistic, Softmax, Squared
from consenso.models import load_model
from consenso.privacy.calibrate import EpsilonDelta
from consenso.privacy.ledger import Budget, Ledger
from consenso.problem import Problem
from consenso.regularizers import NoPenalty
from consenso.rows import Layout, Rows, moment_step, sum_step
from consenso.shards.row_states import RowStates
from consenso.shards.stored import Intake, StoredCohort
from consenso.solvers.choose import choose
from consenso.solvers.request import Request
from consenso.study import Study
from consenso.study.advice import list_missing_files
from consenso.study.training import train
from consenso.tables import frames, open_libsvm

RECORDS, FEATURES = 1500, 4


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(RECORDS, FEATURES)) * 2
    y = (X @ np.array([1.0, -1.0, 0.5, 0.0]) + rng.normal(size=RECORDS) > 0).astype(int)
    return pl.DataFrame({**{f"x{place}": X[:, place] for place in range(FEATURES)}, "y": y})


@pytest.fixture
def folder(table, tmp_path):
    for part, rows in enumerate((slice(0, 700), slice(700, 701), slice(701, None))):
        table[rows].write_parquet(tmp_path / f"{part}.parquet")
    table.write_csv(tmp_path / "all.csv")
    np.save(tmp_path / "X.npy", table.drop("y").to_numpy())
    return tmp_path


def model(**changes):
    settings = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "row_bound": 3.0,
        "classes": [0, 1],
        "random_state": 1,
        "bounds": "public",
    }
    return PrivateLogisticRegression(**{**settings, **changes})


@pytest.fixture(scope="module")
def expected(table):
    return model().fit(table.drop("y").to_numpy(), table["y"].to_numpy())


@pytest.mark.sweep
@pytest.mark.parametrize("rows", [301, 5000])
@pytest.mark.parametrize("kind", ["parquet", "folder", "paths", "csv", "lazy", "arrow", "table", "duckdb", "memmap"])
def test_a_table_in_storage_gives_the_model_of_one_in_memory(kind, rows, table, folder, expected, monkeypatch) -> None:
    monkeypatch.setattr(frames, "BATCH_NUMBERS", rows * (FEATURES + 1))
    monkeypatch.setattr("consenso.estimators.stored.IN_MEMORY", 0)
    stored = {
        "parquet": lambda: (str(folder / "*.parquet"), "y"),
        "folder": lambda: (folder, "y"),
        "paths": lambda: (sorted(folder.glob("[0-9].parquet")), "y"),
        "csv": lambda: (str(folder / "all.csv"), "y"),
        "lazy": lambda: (pl.scan_parquet(folder / "*.parquet"), "y"),
        "arrow": lambda: (dataset.dataset(sorted(map(str, folder.glob("[0-9].parquet")))), "y"),
        "table": lambda: (table.to_arrow(), "y"),
        "duckdb": lambda: (duckdb.sql(f"select * from '{folder}/all.csv'"), "y"),
        "memmap": lambda: (np.load(folder / "X.npy", mmap_mode="r"), table["y"].to_numpy()),
    }[kind]()
    if kind == "folder":
        (folder / "all.csv").unlink()
    found = model().fit(*stored)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)
    assert found.n_features_in_ == FEATURES


def test_the_order_of_the_records_does_not_matter(table, expected, tmp_path) -> None:
    table.sample(fraction=1.0, shuffle=True, seed=3).write_parquet(tmp_path / "shuffled.parquet")
    found = model().fit(tmp_path / "shuffled.parquet", "y")
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_a_query_whose_order_changes_from_pass_to_pass_gives_the_same_model(table, expected) -> None:
    """A factor by which a row is shortened must stay with its row."""
    turn = iter(range(1000))

    def shuffle(frame):
        return frame.sample(fraction=1.0, shuffle=True, seed=next(turn))

    query = table.lazy().map_batches(shuffle, streamable=False)
    np.testing.assert_array_equal(model().fit(query, "y").coef_, expected.coef_)
    assert next(turn) > 2


def test_rows_to_be_predicted_are_in_memory(table, folder, tmp_path) -> None:
    fitted = model().fit(str(folder / "*.parquet"), "y")
    rows = pl.read_parquet(folder / "*.parquet").drop("y")
    np.save(tmp_path / "rows.npy", rows.to_numpy())
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(fitted.predict(mapped), fitted.predict(rows))
    for stored in (str(folder / "*.parquet"), pl.scan_parquet(folder / "*.parquet")):
        with pytest.raises(InputError, match="rows to be predicted are in memory"):
            fitted.predict(stored)


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Softmax(classes=5), Squared(), Absolute()], ids=str)
def test_the_automatic_choice_can_be_made_of_sums_over_rows(loss) -> None:
    for adjacency, features, records in product(("add-remove", "replace-one"), (1, 1201), (30, 10**8)):
        problem = Problem(
            loss=loss,
            regularizer=NoPenalty(),
            features=features,
            sizes=np.array([records]),
            row_bound=1.0,
            adjacency=adjacency,
            target_bound=1.0 if loss.targets == "real" else None,
        )
        for epsilon in (0.05, 100.0):
            chosen = choose(Request(problem=problem, target=EpsilonDelta(epsilon=epsilon, delta=1e-6)))
            assert chosen.algorithm.adds_up_only


def test_a_regression(table, folder) -> None:
    settings = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "row_bound": 3.0,
        "target_bound": 5.0,
        "random_state": 1,
        "bounds": "public",
    }
    expected = PrivateRidge(**settings).fit(table.drop("x0").to_numpy(), table["x0"].to_numpy())
    found = PrivateRidge(**settings).fit(folder / "*.parquet", "x0")
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_single_precision_stays_single_and_within_the_bound(table, tmp_path) -> None:
    single = table.with_columns(pl.exclude("y").cast(pl.Float32))
    single.write_parquet(tmp_path / "single.parquet")
    expected = model().fit(single.drop("y").to_numpy(), single["y"].to_numpy())
    np.testing.assert_array_equal(model().fit(tmp_path / "single.parquet", "y").coef_, expected.coef_)
    opened = frames.open_frames(tmp_path / "single.parquet")
    batches = FrameBatches(opened, opened.names[:-1], "y", TargetCoding("test", np.array([0, 1])))
    problem = Problem(
        loss=Logistic(), regularizer=NoPenalty(), features=FEATURES, sizes=np.array([RECORDS]), row_bound=3.0
    )
    rows = Intake(problem=problem).cohort(batches.batch(0))._rows.matrix
    assert rows.dtype == np.float32
    assert max(sum(Fraction(float(entry)) ** 2 for entry in row) for row in rows) <= 9
    assert np.linalg.norm(single.drop("y").to_numpy(), axis=1).max() > 5


@pytest.mark.parametrize(
    ("changes", "double", "single"),
    [
        ({}, 0.9, 0.65),
        # Rows are moved into the ranges of their columns while they are copied.
        pytest.param({"row_bound": None, "bounds": "private"}, 0.9, 0.8, marks=pytest.mark.slow),
    ],
)
def test_rows_are_copied_in_single_precision(changes, double: float, single: float) -> None:
    """What grows with the table, over a table of doubles; blocks and numbers of single rows are doubles."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 200)), rng.integers(0, 2, 20_000)

    def peak(rows) -> int:
        tracemalloc.start()
        model(**{"row_bound": 15.0, **changes}).fit(rows, y[: len(rows)])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    for kind, most in ((np.float64, double), (np.float32, single)):
        given = X.astype(kind)
        peak(given[:500])  # compiles and imports
        assert peak(given) - peak(given[:5000]) < most * X[5000:].nbytes


def test_the_numbers_of_rows_that_are_remembered_are_on_disk() -> None:
    """Nothing grows with the number of rows but a file without a name."""
    states = RowStates()
    for place in (0, 1):
        states.of(place, 2)["factors"] = np.full(5, float(place))
    states.of(0, 2)["others"] = np.arange(5.0)
    np.testing.assert_array_equal(states.of(0, 2)["others"], np.arange(5.0))
    np.testing.assert_array_equal(states.of(1, 2)["factors"], np.ones(5))
    assert "factors" not in states.of(0, 2)
    assert not [value for value in vars(states.of(0, 2)).values() if isinstance(value, np.ndarray)]
    for strange in range(2, 9):  # rows that come in another order each time are never seen again
        assert "factors" not in states.of(strange, 2)
    assert "factors" not in states.of(1, 2)


@pytest.mark.parametrize("changes", [{"row_bound": None}, {"class_weight": "balanced"}, {"row_bound": 2.0}])
def test_bounds_and_weights_that_are_found_are_those_of_a_table_in_memory(changes, table, folder, monkeypatch) -> None:
    """Histograms, numbers of records of classes and numbers of shortened rows are sums over rows, too."""
    monkeypatch.setattr(frames, "BATCH_NUMBERS", 301 * (FEATURES + 1))
    asked = model(bounds="private", **changes)
    expected = asked.fit(table.drop("y").to_numpy(), table["y"].to_numpy())
    found = model(bounds="private", **changes).fit(folder / "*.parquet", "y")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.notes_ == expected.notes_
    assert found.guarantee_ == expected.guarantee_


@pytest.mark.parametrize("declared", [None, 1e4], ids=["nobody declared", "far too wide"])
def test_a_target_bound_that_is_found(table, folder, declared) -> None:
    settings = {"epsilon": 1.0, "delta": 1e-6, "random_state": 1, "target_bound": declared}
    expected = PrivateRidge(**settings).fit(table.drop("x0").to_numpy(), table["x0"].to_numpy())
    found = PrivateRidge(**settings).fit(folder / "*.parquet", "x0")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.target_bound_ == expected.target_bound_
    assert found.target_bound_ < 100


def test_people_of_a_table_in_storage(table, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(frames, "BATCH_NUMBERS", 301 * (FEATURES + 1))
    ids = np.minimum(np.arange(RECORDS) // 2, 600)  # 600 people with two rows, and one with 300
    named = table.with_columns(pl.Series("id", ids))
    named.write_parquet(tmp_path / "people.parquet")
    expected = model().fit(table.drop("y").to_numpy(), table["y"].to_numpy(), users=ids, rows_per_person=1)
    found = model().fit(tmp_path / "people.parquet", "y", users="id")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    for given in (dataset.dataset(tmp_path / "people.parquet"), named.to_arrow()):
        opened = model().fit(given, "y", users="id")
        np.testing.assert_array_equal(opened.coef_, expected.coef_)
        assert found.guarantee_.unit == opened.guarantee_.unit == "person"
    assert found.n_features_in_ == FEATURES
    with pytest.raises(InputError, match="known by its place"):
        model().fit(named.lazy(), "y", users="id")
    with pytest.raises(InputError, match="no such column"):
        model().fit(tmp_path / "people.parquet", "y", users="patient")


@pytest.mark.parametrize("first", ["memory", "storage"])
@pytest.mark.parametrize("second", ["memory", "storage"])
def test_parts_are_learnt_one_after_the_other_wherever_they_are(first, second, table, tmp_path) -> None:
    files = [tmp_path / name for name in ("0.parquet", "1.parquet")]
    for file, rows in zip(files, (slice(0, 700), slice(700, None)), strict=True):
        table[rows].write_parquet(file)

    def learn(*places: str) -> PrivateLogisticRegression:
        made = model(classes=None, row_bound=None, bounds="private")
        for file, place in zip(files, places, strict=True):
            frame = pl.read_parquet(file).to_pandas()
            given = (frame.drop(columns="y"), frame["y"]) if place == "memory" else (file, "y")
            made.partial_fit(*given, classes=[0, 1])
        return made

    expected, found = learn("memory", "memory"), learn(first, second)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.guarantee_ == expected.guarantee_
    table.with_columns(z=1.0)[:100].write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="columns are not those of the calls before"):
        found.partial_fit(tmp_path / "other.parquet", "y")
    assert found.n_features_in_ == FEATURES


class TestLibsvm:
    """Compressed rows in pieces."""

    WIDE = 40

    @pytest.fixture
    def files(self, tmp_path, monkeypatch):
        rng = np.random.default_rng(4)
        X = sparse.random(600, self.WIDE, density=0.1, random_state=1, format="csr")
        y = np.where(X @ rng.normal(size=self.WIDE) > 0, 1, -1)
        for name, rows in (("a", slice(0, 250)), ("b", slice(250, None))):
            dump_svmlight_file(X[rows], y[rows], str(tmp_path / f"{name}.libsvm"), zero_based=False)
        monkeypatch.setattr("consenso.tables.libsvm_files.PIECE_BYTES", 2000)
        return tmp_path, X, y

    def test_the_model_is_that_of_rows_in_memory(self, files) -> None:
        folder, X, y = files
        opened = open_libsvm(folder / "*.libsvm", features=self.WIDE)
        assert len(opened.pieces) > 5
        settings = {"classes": [-1, 1], "row_bound": None, "bounds": "private"}
        expected = model(**settings).fit(X, y)
        found = model(**settings).fit(opened, "label")
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))

    def test_bad_files(self, files) -> None:
        folder, *_ = files
        with pytest.raises(InputError, match="an index is at most the 3 features"):
            model(classes=[-1, 1]).fit(open_libsvm(folder, features=3), "label")
        with pytest.raises(InputError, match="public number of features"):
            open_libsvm(folder, features=0)
        with pytest.raises(InputError, match="open_libsvm"):
            model().fit(folder / "*.libsvm", "label")
        opened = open_libsvm(folder, features=self.WIDE)
        with (folder / "b.libsvm").open("a") as last:
            last.write("1 2:HIV\n")
        with pytest.raises(InputError, match="changed while it was read"):
            model(classes=[-1, 1]).fit(opened, "label")
        with pytest.raises(InputError, match=r"b.libsvm, line 351: a feature is written") as raised:
            model(classes=[-1, 1]).fit(open_libsvm(folder, features=self.WIDE), "label")
        assert "HIV" not in str(raised.value)


def _ledger(folder) -> Ledger:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=5.0, delta=1e-5)
    return Ledger.create(folder / "data.ledger", dataset="data", budgets=[budget])


class TestBadInput:
    """One sentence, no cell in it, and nothing charged."""

    def refuse(self, X, y, match, tmp_path, of=None, **changes):
        ledger = _ledger(tmp_path)
        made = model(**changes) if of is None else of
        with pytest.raises(InputError, match=match) as raised:
            made.set_params(ledger=ledger, random_state=None).fit(X, y)
        assert "HIV" not in str(raised.value)
        assert not ledger.runs()

    def test_no_such_file(self, tmp_path) -> None:
        self.refuse(tmp_path / "nothing*.parquet", "y", "no such file", tmp_path)

    def test_no_such_column(self, folder, tmp_path) -> None:
        self.refuse(folder / "*.parquet", "outcome", "names the column to be learnt", tmp_path)

    def test_a_part_with_other_columns(self, folder, table, tmp_path) -> None:
        table.rename({"x1": "z"})[:5].write_parquet(folder / "3.parquet")
        self.refuse(folder / "*.parquet", "y", "not those of", tmp_path)

    def test_a_part_with_other_types(self, folder, table, tmp_path) -> None:
        table.with_columns(pl.col("x1").cast(pl.String))[:5].write_parquet(folder / "3.parquet")
        self.refuse(folder / "*.parquet", "y", "not those of", tmp_path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda table: table.rename({"x1": "z"}),
            lambda table: table.with_columns(pl.col("x1").cast(pl.Float32)),
            lambda table: table.with_columns(pl.col("x1").cast(pl.String)),
        ],
        ids=["columns", "single precision", "text"],
    )
    def test_a_part_of_an_arrow_data_set_that_is_not_like_it(self, change, folder, table, tmp_path) -> None:
        change(table[:5]).write_parquet(folder / "3.parquet")
        files = sorted(map(str, folder.glob("*.parquet")))
        self.refuse(dataset.dataset(files), "y", "not those of the data set", tmp_path)

    @pytest.mark.parametrize("how", ["pattern", "list"])
    def test_a_part_of_a_query_of_files_that_is_not_like_the_first(self, how, folder, table, tmp_path) -> None:
        """DuckDB casts to the types of the first file."""
        table.with_columns(pl.col("x1").cast(pl.String))[:5].write_parquet(folder / "3.parquet")
        files = sorted(map(str, folder.glob("*.parquet")))
        asked = duckdb.sql(f"select x0, x1, y from '{folder}/*.parquet'") if how == "pattern" else None
        self.refuse(asked or duckdb.read_parquet(files), "y", "3.parquet: its columns or their types", tmp_path)
        two = duckdb.sql(f"select * from '{files[0]}' where x0 in (select x0 from '{files[-1]}')")
        assert model().fit(two, "y").n_features_in_ == FEATURES, "two tables of one query have their own types"

    @pytest.mark.parametrize("kind", ["text", "dates", "memory map"])
    def test_targets_that_are_no_numbers(self, kind, table, tmp_path, monkeypatch) -> None:
        """What a conversion says of a cell is not passed on, and a date is no number."""
        words = pl.lit("HIV") if kind != "dates" else pl.date(2020, 1, pl.col("y") + 1)
        table.with_columns(words.alias("y")).write_parquet(tmp_path / "targets.parquet")
        X, y = tmp_path / "targets.parquet", "y"
        if kind == "memory map":
            monkeypatch.setattr("consenso.estimators.stored.IN_MEMORY", 0)
            np.save(tmp_path / "X.npy", table.drop("y").to_numpy())
            X = np.load(tmp_path / "X.npy", mmap_mode="r")
            y = np.full(len(X), "HIV")
        of = PrivateRidge(epsilon=1.0, row_bound=3.0, target_bound=1.0)
        self.refuse(X, y, r"targets are numbers, and row 0 \(rows count from 0\) has none", tmp_path, of=of)

    def test_a_file_without_content(self, folder, tmp_path) -> None:
        (folder / "3.parquet").touch()
        self.refuse(folder / "*.parquet", "y", "3.parquet: it cannot be read", tmp_path)

    def test_an_empty_part_is_fine(self, folder, table) -> None:
        before = model().fit(folder / "*.parquet", "y")
        table[:0].write_parquet(folder / "3.parquet")
        np.testing.assert_array_equal(model().fit(folder / "*.parquet", "y").coef_, before.coef_)

    def test_a_label_that_was_not_declared(self, folder, tmp_path) -> None:
        self.refuse(
            folder / "*.parquet", "y", r"not among classes=\[0, 2\], the first in row", tmp_path, classes=[0, 2]
        )

    def test_a_missing_cell(self, table, tmp_path) -> None:
        table.with_columns(
            pl.when(pl.int_range(pl.len()) == 1000).then(None).otherwise("x2").alias("x2")
        ).write_parquet(tmp_path / "gaps.parquet")
        self.refuse(
            tmp_path / "gaps.parquet", "y", r"row 1000 \(rows count from 0\), column 'x2': a cell is missing", tmp_path
        )

    def test_a_cell_that_is_no_number(self, tmp_path) -> None:
        rows = "\n".join(["a,y", *["1.5,0"] * 30_000, "HIV-positive,1"])
        (tmp_path / "cells.csv").write_text(rows)
        self.refuse(tmp_path / "cells.csv", "y", "cannot be read|columns of numbers", tmp_path)

    def test_a_column_of_text(self, table, tmp_path) -> None:
        table.with_columns(pl.lit("HIV").alias("ward")).write_parquet(tmp_path / "text.parquet")
        self.refuse(tmp_path / "text.parquet", "y", "ward is not", tmp_path)

    def test_more_records_than_declared(self, folder, tmp_path) -> None:
        self.refuse(folder / "*.parquet", "y", "declare", tmp_path, adjacency="add-remove", records=RECORDS - 1)

    def test_a_solver_that_needs_memory(self, folder, tmp_path) -> None:
        self.refuse(folder / "*.parquet", "y", "needs its rows in memory", tmp_path, solver="dp-sgd")


@pytest.mark.parametrize("how", ["whole numbers in csv", "folders"])
def test_an_arrow_data_set_has_the_types_that_its_files_leave_open(how, table, tmp_path) -> None:
    """CSV files have no types, and names of folders are columns."""
    table = table.with_columns(pl.when(pl.int_range(pl.len()) < 700).then(0.0).otherwise(1.0).alias("x3"))
    if how == "folders":
        for value in (0, 1):
            (tmp_path / f"x3={value}").mkdir()
            table.filter(pl.col("x3") == value).drop("x3").write_parquet(tmp_path / f"x3={value}/part.parquet")
        found = dataset.dataset(tmp_path, partitioning="hive")
    else:
        table[700:].write_csv(tmp_path / "0.csv")
        table[:700].with_columns(pl.col("x3").cast(pl.Int64)).write_csv(tmp_path / "1.csv")
        found = dataset.dataset(tmp_path, format="csv")
    given = table.select([name for name in found.schema.names if name != "y"]).to_numpy(), table["y"].to_numpy()
    np.testing.assert_array_equal(model().fit(found, "y").coef_, model().fit(*given).coef_)


@pytest.mark.parametrize(
    "opened", [str, lambda pattern: dataset.dataset(sorted(map(str, pattern.parent.glob(pattern.name))))]
)
def test_a_file_that_changes_during_the_run_ends_it(opened, table, folder, monkeypatch) -> None:
    passes = iter(range(100))
    before = frames.Frames.fingerprint

    def fingerprint(self):
        if next(passes) == 5:
            os.utime(folder / "1.parquet", ns=(1, 1))
        return before(self)

    monkeypatch.setattr(frames.Frames, "fingerprint", fingerprint)
    ledger = _ledger(folder)
    with pytest.raises(InputError, match="changed while it was read"):
        model(ledger=ledger, random_state=None).fit(opened(folder / "*.parquet"), "y")
    # What was released stays charged, once; the rows that are left can be fitted anew.
    assert len(ledger.runs()) == 1
    model(ledger=ledger, random_state=None).fit(opened(folder / "*.parquet"), "y")
    assert len(ledger.runs()) == 2


def test_a_file_that_changes_between_two_passes_ends_the_run(folder, monkeypatch) -> None:
    """Even where each pass by itself sees files that do not change."""
    passes = iter(range(100))
    before = StoredCohort.add_up

    def add_up(self, *told):
        if next(passes) == 2:
            os.utime(folder / "1.parquet", ns=(1, 1))
        return before(self, *told)

    monkeypatch.setattr(StoredCohort, "add_up", add_up)
    with pytest.raises(InputError, match="changed while it was read"):
        model().fit(folder / "*.parquet", "y")


@pytest.mark.parametrize("rows", [1, 5000, 3 * 2**20])
def test_grids_leave_room_for_every_sum(rows: int) -> None:
    """Sums over all rows fit into 63 bits, and those over a block into the 53 of a double."""
    assert rows * 1.7 / sum_step(1.7, rows) < 2**63
    assert 2**12 * 1.7 / sum_step(1.7, rows) <= 2**53
    assert rows * (1.7 / moment_step(1.7, rows)) ** 2 < 2**63
    assert min(rows, 2**13) * (1.7 / moment_step(1.7, rows)) ** 2 <= 2**53


def test_exact_sums_are_those_of_fractions() -> None:
    rng = np.random.default_rng(2)
    X, weights = rng.normal(size=(10_000, 3)), rng.normal(size=10_000)
    step = sum_step(8.0, len(X))
    rows = Rows(X, Layout(np.array([0, len(X)])))
    (found,) = rows.exact_sums(weights, step)
    np.testing.assert_array_equal(found, np.rint(X * weights[:, None] / step).astype(np.int64).sum(axis=0))
    step = moment_step(8.0, len(X))
    cut = np.trunc(X / step).astype(np.int64)
    np.testing.assert_array_equal(rows.exact_moments(step)[0], cut.T @ cut)


STUDY = """
[data]
table = "{table}"
schema = "schema.toml"
rows = 1500
[model]
loss = "logistic"
[privacy]
epsilon = 2.0
delta = 1e-5
seed = 3
[setting]
kind = "central"
"""
SCHEMA = """
row_bound = 1.5
[columns.x0]
kind = "numeric"
low = -6
high = 6
[columns.x1]
kind = "numeric"
low = -6
high = 6
[columns.x2]
kind = "ignore"
[columns.x3]
kind = "ignore"
[columns.y]
kind = "label"
classes = ["0", "1"]
"""


def train_study(folder, table: str, out: str, **options):
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / f"{out}.toml").write_text(STUDY.format(table=table))
    return train(Study.load(folder / f"{out}.toml"), folder / out, **options)


def test_a_study_reads_a_pattern_of_files_through_its_schema(folder, monkeypatch) -> None:
    monkeypatch.setattr(frames, "BATCH_NUMBERS", 301 * (FEATURES + 1))
    whole = train_study(folder, "all.csv", "whole")
    stored = train_study(folder, "[0-9].parquet", "stored")
    np.testing.assert_array_equal(stored.model.coefficients, whole.model.coefficients)
    assert list_missing_files(Study.load(folder / "stored.toml")) == []
    for part in folder.glob("[0-3].parquet"):
        part.unlink()
    gone = pl.when(pl.int_range(pl.len()) == 1400).then(None).otherwise("x1").alias("x1")
    pl.read_csv(folder / "all.csv").with_columns(gone).write_parquet(folder / "9.parquet")
    with pytest.raises(InputError, match=r"row 1400 \(rows count from 0\), column 'x1'"):
        train_study(folder, "[0-9].parquet", "wrong")
    (folder / "9.parquet").unlink()
    assert "no such file" in list_missing_files(Study.load(folder / "stored.toml"))[0]


@pytest.fixture
def formats(folder, table):
    """The same records in every format that a study names."""
    table.write_parquet(folder / "all.parquet")
    table.write_ipc(folder / "all.arrow")
    for kind, write in (("parquet", pl.DataFrame.write_parquet), ("csv", pl.DataFrame.write_csv)):
        (folder / f"{kind}s").mkdir()
        for part, rows in enumerate((slice(0, 700), slice(700, None))):
            write(table[rows], folder / f"{kind}s" / f"{part}.{kind}")
    lines = [f"{row[-1]} " + " ".join(f"{j}:{cell!r}" for j, cell in enumerate(row[:-1], 1)) for row in table.rows()]
    (folder / "svms").mkdir()
    for name, chosen in (("all", lines), ("svms/0", lines[:700]), ("svms/1", ["# a comment", *lines[700:]])):
        (folder / f"{name}.libsvm").write_text("\n".join(chosen) + "\n")
    numbered = SCHEMA.replace("columns.y", "columns.label")
    for place in range(FEATURES):
        numbered = numbered.replace(f"columns.x{place}", f"columns.{place + 1}")
    (folder / "numbered.toml").write_text(numbered)
    return folder


FILES = ("all.parquet", "all.arrow", "all.libsvm")
FOLDERS = ("parquets", "parquets/*.parquet", "csvs", "csvs/*.csv", "svms", "s*/*.libsvm")


@pytest.fixture(scope="module")
def learnt(table, tmp_path_factory):
    """The coefficients of the records in one file that is read whole."""
    folder = tmp_path_factory.mktemp("whole")
    table.write_csv(folder / "all.csv")
    return train_study(folder, "all.csv", "whole").model.coefficients


def kinds_of(source: str, large: bool) -> dict[str, object]:
    kind = next(each for each in ("parquet", "arrow", "csv", "svm") if each in source)
    return {"format": kind, "file": source in FILES, "pattern": "*" in source, "large": large}


@pytest.mark.sweep(by=kinds_of)
@pytest.mark.parametrize("source", [*FILES, *FOLDERS])
@pytest.mark.parametrize("large", [False, True])
def test_the_program_trains_on_every_format(source, large, formats, learnt, monkeypatch) -> None:
    """Single files are read whole, or in batches where their public size is large: the model is the same."""
    monkeypatch.setattr(frames, "BATCH_NUMBERS", 301 * (FEATURES + 1))
    if large:
        monkeypatch.setattr("consenso.study.stored.IN_MEMORY", RECORDS)
    schema = "numbered.toml" if "svm" in source else "schema.toml"
    (formats / "schema.toml").write_text(SCHEMA)
    (formats / "one.toml").write_text(STUDY.format(table=source).replace("schema.toml", schema))
    is_one = source in FILES and not source.endswith("arrow")
    assert Study.load(formats / "one.toml").where() == ("memory" if is_one and not large else "storage")
    told = ["train", str(formats / "one.toml"), "--out", str(formats / "out"), "--no-report"]
    found = CliRunner().invoke(build(), told)
    assert found.exit_code == 0, found.exception
    np.testing.assert_array_equal(load_model(formats / "out").coefficients, learnt)


def test_a_large_file_is_read_whole_where_an_algorithm_needs_it(formats, monkeypatch) -> None:
    monkeypatch.setattr("consenso.study.stored.IN_MEMORY", RECORDS)
    text = STUDY.format(table="all.parquet") + 'algorithm = "DPSGD"\nrounds = 5\n'
    (formats / "schema.toml").write_text(SCHEMA)
    (formats / "one.toml").write_text(text)
    assert Study.load(formats / "one.toml").where() == "memory"


def test_a_line_of_a_libsvm_file_that_a_schema_refuses_is_named(formats) -> None:
    """Counted in its own file, with comments."""
    lines = (formats / "svms" / "1.libsvm").read_text().splitlines()
    lines[5] = "3" + lines[5][1:]
    (formats / "svms" / "1.libsvm").write_text("\n".join(lines) + "\n")
    (formats / "one.toml").write_text(STUDY.format(table="svms").replace("schema.toml", "numbered.toml"))
    with pytest.raises(InputError, match=r"1\.libsvm, line 6, column 'label'"):
        train(Study.load(formats / "one.toml"), formats / "out")
