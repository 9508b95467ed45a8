"""Malformed files: one sentence each, which names the place and never repeats a cell."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from consenso.errors import InputError
from consenso.tables import read_libsvm, read_table

SECRET = "s3cr3t"
GOOD = f"age,job\n1,{SECRET}\n2,{SECRET}\n"


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content) and None


def raw(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


def object_array(path: Path) -> None:
    np.savez(path, a=np.array([SECRET, None], dtype=object))


def unequal_arrays(path: Path) -> None:
    np.savez(path, a=np.zeros(2), b=np.zeros(3))


def deep_array(path: Path) -> None:
    np.savez(path, a=np.zeros((2, 2, 2)))


def complex_array(path: Path) -> None:
    np.savez(path, a=np.zeros(2, dtype=complex))


def clashing_arrays(path: Path) -> None:
    np.savez(path, a=np.zeros((2, 1)), a_0=np.zeros(2))


def lists(path: Path) -> None:
    pl.DataFrame({"a": [[1, 2], [3]]}).write_parquet(path)


def cut_parquet(path: Path) -> None:
    pl.DataFrame({"a": [SECRET] * 100}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])


BAD = [
    ("empty.csv", raw(b""), "the file is empty"),
    ("blank.csv", raw(b"\n \n"), "the file is empty"),
    ("header.csv", text("age,job\n"), "at least one record"),
    ("short.csv", text(GOOD + "3\n"), "line 4: a record has 2 cells, and 1 were found"),
    ("long.csv", text(f"age,job\n1,{SECRET},3\n"), "line 2: a record has 2 cells, and 3 were found"),
    ("long2.csv", text(GOOD + f"3,{SECRET},4\n"), "line 4: a record has 2 cells, and 3 were found"),
    ("twice.csv", text(f"{SECRET},b,{SECRET}\n1,2,3\n"), "line 1: columns 1 and 3 have the same name"),
    ("unnamed.csv", text(f"age,,job\n1,2,{SECRET}\n"), "line 1: column 2 has no name"),
    ("latin.csv", raw(f"age,job\n1,{SECRET}\n2,caf".encode() + b"\xe9\n"), "line 3: the text is not UTF-8"),
    ("utf16.csv", raw(GOOD.encode("utf-16-le")), "line 1: a text file holds no zero bytes"),
    ("quote.csv", text(f'age,job\n1,x\n2,"{SECRET}\n3,z\n'), "line 3: a quoted cell is not closed"),
    ("quote2.csv", text(f'age,job\n1,"{SECRET}"x\n'), "line 2: a quoted cell is not closed"),
    ("mac.csv", raw(GOOD.replace("\n", "\r").encode()), "bare carriage return"),
    ("cut.csv.gz", raw(gzip.compress(GOOD.encode())[:-12]), "not a complete gzip file"),
    ("plain.csv.gz", text(GOOD), "not a complete gzip file"),
    ("table.xlsx", text(GOOD), "a table is a file of one of the kinds .csv, .tsv"),
    ("noise.parquet", text(GOOD), "not a complete Parquet file"),
    ("cut.parquet", cut_parquet, "not a complete Parquet file"),
    ("lists.parquet", lists, "column 'a' holds lists or bytes"),
    ("noise.npz", text(GOOD), "not an NPZ file of plain arrays"),
    ("empty.npz", raw(b""), "not an NPZ file of plain arrays"),
    ("objects.npz", object_array, "not an NPZ file of plain arrays"),
    ("unequal.npz", unequal_arrays, "arrays have one number of rows, and these differ (a 2, b 3)"),
    ("deep.npz", deep_array, "array 'a' has 3 axes"),
    ("complex.npz", complex_array, "a column holds numbers, truth values or text"),
    ("clash.npz", clashing_arrays, "two arrays give the column 'a_0'"),
    ("label.libsvm", text(f"1 1:1\n{SECRET} 1:1\n"), "line 2: a line starts with a label"),
    ("pair.libsvm", text(f"1 1:1\n1 2:{SECRET}\n"), "line 2: a feature is written index:value"),
    ("zero.libsvm", text("1 1:1\n\n1 0:1\n"), "line 3: indices count from 1"),
    ("order.libsvm", text("1 3:1 2:1\n"), "line 1: indices rise along a line"),
]


@pytest.mark.parametrize(("name", "write", "message"), BAD, ids=[case[0] for case in BAD])
def test_bad_file_has_one_clear_error(name: str, write: Callable[[Path], None], message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(path)
    with pytest.raises(InputError) as caught:
        read_table(path)
    told = str(caught.value)
    assert message in told
    assert name in told
    assert SECRET not in told
    assert "\n" not in told
    # The cause of an error is shown in a traceback, and parsers repeat cells.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_absent_file_and_folder(tmp_path: Path) -> None:
    for name in ("t.csv", "t.npz", "t.parquet", "t.libsvm"):
        with pytest.raises(InputError, match="no such file"):
            read_table(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="this is a folder"):
        read_table(tmp_path / "folder.csv")


def test_libsvm_index_beyond_the_public_number(tmp_path: Path) -> None:
    path = tmp_path / "t.libsvm"
    path.write_text("1 1:1\n1 7:1\n")
    with pytest.raises(InputError, match="line 2: an index is at most the 5 features"):
        read_libsvm(path, features=5)
