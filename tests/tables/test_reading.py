"""The same table through every format, and the line numbers of records."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import InputError
from consenso.tables import (
    MISSING,
    UNKNOWN,
    SeriesColumn,
    Table,
    column_of,
    read_csv,
    read_libsvm,
    read_npz,
    read_table,
)

AGES = np.array([31.0, 4.5, 70.0])
JOBS = np.array(["nurse", "cook", "nurse"])
CODES = np.array([7, 8, 9])
NOTHING: frozenset[str] = frozenset()


def write(path: Path) -> Path:
    frame = pl.DataFrame({"age": AGES, "job": JOBS, "code": CODES})
    text = frame.write_csv(separator="\t" if path.name.startswith("t.tsv") else ",")
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix == ".npz":
        np.savez(path, age=AGES, job=JOBS, code=CODES)
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.tsv.gz", "t.parquet", "t.npz"])
def test_every_format_gives_the_same_table(name: str, tmp_path: Path) -> None:
    table = read_table(write(tmp_path / name))
    assert list(table.columns) == ["age", "job", "code"]
    assert table.rows == 3
    np.testing.assert_array_equal(table.columns["age"].numbers(NOTHING).values, AGES)
    np.testing.assert_array_equal(table.columns["job"].codes(("cook", "nurse"), NOTHING), [1, 0, 1])
    np.testing.assert_array_equal(table.columns["code"].codes(("9", "7"), NOTHING), [1, UNKNOWN, 0])
    assert [str(item) for item in table.columns["code"].identifiers(NOTHING)[0]] == ["7", "8", "9"]
    assert table.columns["job"].distinct(2) == ["cook", "nurse"]
    assert table.columns["job"].distinct(1) is None


def test_libsvm_as_columns_and_as_matrix(tmp_path: Path) -> None:
    path = tmp_path / "t.libsvm.gz"
    path.write_bytes(gzip.compress(b"# two records\n+1 1:0.5 3:2\n\n-1 2:1 # end\n"))
    rows, labels = read_libsvm(path, features=4)
    np.testing.assert_array_equal(rows.toarray(), [[0.5, 0, 2, 0], [0, 1, 0, 0]])
    np.testing.assert_array_equal(labels, [1, -1])
    table = read_table(path, features=4)
    assert list(table.columns) == ["label", "1", "2", "3", "4"]
    np.testing.assert_array_equal(table.columns["label"].codes(("-1", "1"), NOTHING), [1, 0])
    assert table.place(1, "2").endswith("line 4, column '2'")


def test_npz_matrix_becomes_numbered_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=np.arange(6).reshape(3, 2), y=np.array([True, False, True]))
    table = read_npz(tmp_path / "t.npz")
    assert list(table.columns) == ["X_0", "X_1", "y"]
    np.testing.assert_array_equal(table.columns["X_1"].numbers(NOTHING).values, [1, 3, 5])
    np.testing.assert_array_equal(table.columns["y"].codes(("false", "true"), NOTHING), [1, 0, 1])


def test_quotes_blank_lines_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffname, note \r\n"a, b","say ""hi"""\r\n\r\n"two\nlines",x\r\nlast,y\r\n\r\n'.encode())
    table = read_csv(path)
    assert list(table.columns) == ["name", "note"]
    assert list(table.columns["name"].identifiers(NOTHING)[0]) == ["a, b", "two\nlines", "last"]
    assert list(table.columns["note"].identifiers(NOTHING)[0]) == ['say "hi"', "x", "y"]
    assert [table.place(row, "name").split(", ")[-2] for row in range(3)] == ["line 2", "line 4", "line 6"]


def test_blank_line_without_quotes_is_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n\n3,4\n")
    table = read_csv(path)
    np.testing.assert_array_equal(table.columns["b"].numbers(NOTHING).values, [2, 4])
    assert "line 4" in table.place(1, "a")


def test_file_without_header(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1, x\n2, y\n")
    table = read_csv(path, names=["n", "t"])
    np.testing.assert_array_equal(table.columns["n"].numbers(NOTHING).values, [1, 2])
    np.testing.assert_array_equal(table.columns["t"].codes(("y", "x"), NOTHING), [1, 0])
    assert "line 2" in table.place(1, "t")


def test_leading_zeros_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("zip,y\n01,1\n1,2\n")
    np.testing.assert_array_equal(read_csv(path).columns["zip"].codes(("01", "1"), NOTHING), [0, 1])


def test_large_integers_beside_nulls_stay_exact(tmp_path: Path) -> None:
    large = 2**60 + 1
    pl.DataFrame({"id": [large, None, large + 1]}).write_parquet(tmp_path / "t.parquet")
    values, gone = read_table(tmp_path / "t.parquet").columns["id"].identifiers(NOTHING)
    assert values[0] == large
    assert values[2] == large + 1
    np.testing.assert_array_equal(gone, [False, True, False])


def test_missing_cells_in_objects() -> None:
    column = column_of(np.array(["a", None, np.nan, " b ", "?"], dtype=object), name="c")
    np.testing.assert_array_equal(column.codes(("a", "b"), frozenset({"?"})), [0, MISSING, MISSING, 1, MISSING])


def test_representations_show_no_cell() -> None:
    table = Table.from_arrays({"a": np.array(["s3cr3t"])})
    series = SeriesColumn(series=pl.Series(["s3cr3t"]))
    assert "s3cr3t" not in f"{table!r} {table.columns!r} {series!r}"


cells = st.one_of(
    st.floats(allow_nan=False, width=32).map(repr),
    st.sampled_from(["", " ", "?", " 7 ", "-0", "1e3", "inf", "nan", "word", "a b", "1_000", "１", "é"]),
)


@given(st.lists(cells, min_size=1, max_size=12))
def test_array_and_series_columns_agree(texts: list[str]) -> None:
    missing = frozenset({"?"})
    array = column_of(np.array(texts), name="c")
    series = SeriesColumn(series=pl.Series(texts, dtype=pl.String))
    first, second = array.numbers(missing), series.numbers(missing)
    assert first.wrong == second.wrong
    if first.wrong is None:
        np.testing.assert_array_equal(first.values, second.values)
        np.testing.assert_array_equal(first.missing, second.missing)
    names = ("word", "7")
    np.testing.assert_array_equal(array.codes(names, missing), series.codes(names, missing))
    assert array.distinct(3) == series.distinct(3)


@given(
    rows=st.lists(
        st.lists(st.text(st.sampled_from('ab1 ",\n'), max_size=4), min_size=2, max_size=2), min_size=1, max_size=6
    )
)
def test_csv_gives_back_what_polars_wrote(rows: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    pl.DataFrame(rows, schema=["p", "q"], orient="row").write_csv(path, quote_style="always")
    table = read_csv(path)
    for position, name in enumerate(("p", "q")):
        found, _ = table.columns[name].identifiers(NOTHING)
        assert list(found) == [row[position].strip() for row in rows]


def test_a_million_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{i}" for i in range(10**6)) + "\n")
    with pytest.raises(InputError, match="1,000,000 were found"):
        read_table(path)


def test_polars_is_asked_for_by_its_extra(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    code = (
        "import sys; sys.modules['polars'] = None\n"
        "from consenso.tables import read_table\n"
        "try:\n    read_table(sys.argv[1])\nexcept ValueError as error:\n    sys.stdout.write(str(error))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t.csv")], capture_output=True, text=True, check=True
    )
    assert "pip install 'consenso[data]'" in answer.stdout
