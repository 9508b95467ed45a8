"""The feature map: bounds, categories, missing values, and that it looks at one record at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import InputError
from consenso.schema import Binary, Category, Ignore, Label, Numeric, Schema, TargetColumn, User
from consenso.tables import Table, read_csv

SECRET = "s3cr3t"


def numeric(scale: str = "unit", **given: object) -> Schema:
    return Schema(columns=(Numeric(name="a", low=10, high=20, **given),), scale=scale)  # type: ignore[arg-type]


def column(schema: Schema, cells: list[object]) -> list[list[float]]:
    return schema.features(Table.from_arrays({"a": np.array(cells, dtype=object)})).X.tolist()


def test_numbers_are_scaled_and_clipped() -> None:
    cells: list[object] = [10, 15, 20, -5, 99, "inf", "-inf"]
    assert column(numeric(), cells) == [[0.0], [0.5], [1.0], [0.0], [1.0], [1.0], [0.0]]
    assert column(numeric("signed"), cells) == [[-1.0], [0.0], [1.0], [-1.0], [1.0], [1.0], [-1.0]]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("low", [[0.2], [0.0]]), ("high", [[0.2], [1.0]]), ("middle", [[0.2], [0.5]]), (13.0, [[0.2], [0.3]])],
)
def test_missing_numbers(rule: object, expected: list[list[float]]) -> None:
    np.testing.assert_allclose(column(numeric(missing=rule), [12, None]), expected)
    np.testing.assert_allclose(column(numeric(missing=rule), ["12", "nan"]), expected)


def test_dropping_rows_drops_targets_and_users_too() -> None:
    schema = Schema(
        columns=(
            Numeric(name="a", low=0, high=10, missing="drop-row"),
            Label(name="y", classes=("no", "yes"), missing="drop-row"),
            User(name="u", missing="drop-row"),
        ),
        missing_values=("?",),
    )
    table = Table.from_arrays(
        {
            "a": ["1", "?", "3", "4", "5"],
            "y": ["yes", "no", "", "no", "yes"],
            "u": ["p", "q", "r", "?", "p"],
        }
    )
    X, y, users = schema.features(table)
    assert X.tolist() == [[0.1], [0.5]]
    assert y is not None
    assert users is not None
    assert y.tolist() == [1.0, 1.0]
    assert users.tolist() == ["p", "p"]


def test_categories_and_their_reserved_feature() -> None:
    cells: list[object] = ["x", "y", "z", " x "]
    loose = Schema(columns=(Category(name="a", categories=("x", "y")),))
    assert column(loose, cells) == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    signed = Schema(columns=(Category(name="a", categories=("x", "y")),), scale="signed")
    assert column(signed, cells) == column(loose, cells)
    kept = Schema(columns=(Category(name="a", categories=("x", "y"), strict=True, missing="category"),))
    assert column(kept, ["x", None]) == [[1, 0, 0], [0, 0, 1]]
    strict = Schema(columns=(Category(name="a", categories=("x", "y"), strict=True),))
    assert strict.feature_names == ("a=x", "a=y")
    assert column(strict, ["y", "x"]) == [[0, 1], [1, 0]]
    with pytest.raises(
        InputError, match="row 1 \\(rows count from 0\\), column 'a': the cell is none of the categories"
    ):
        column(strict, ["x", "z"])


def test_binary_is_one_feature() -> None:
    schema = Schema(columns=(Binary(name="a", categories=("no", "yes"), missing="low"),))
    assert column(schema, ["no", "yes", "maybe", None]) == [[0.0], [1.0], [0.5], [0.0]]
    strict = Schema(columns=(Binary(name="a", categories=("no", "yes"), strict=True, missing="high"),), scale="signed")
    assert column(strict, ["no", "yes", None]) == [[-1.0], [1.0], [1.0]]
    with pytest.raises(InputError, match="row 0"):
        column(strict, ["maybe"])


def targets(kind: Label | TargetColumn, cells: list[object]) -> np.ndarray:
    schema = Schema(columns=(Numeric(name="a", low=0, high=1), kind))
    y = schema.features(Table.from_arrays({"a": np.zeros(len(cells)), "y": np.array(cells)})).y
    assert y is not None
    return y


def test_targets() -> None:
    two = targets(Label(name="y", classes=("0", "1")), [1, 0, 1])
    assert two.dtype == np.float64
    assert two.tolist() == [1.0, -1.0, 1.0]
    three = targets(Label(name="y", classes=("c", "b", "a")), ["a", "b", "c"])
    assert three.dtype == np.int64
    assert three.tolist() == [2, 1, 0]
    assert targets(TargetColumn(name="y", low=-2, high=3), [-9.0, 0.5, 9.0]).tolist() == [-2.0, 0.5, 3.0]
    assert TargetColumn(name="y", low=-5, high=3).bound == 5


def test_targets_may_be_absent_when_they_are_not_asked_for() -> None:
    schema = Schema(columns=(Numeric(name="a", low=0, high=1), Label(name="y", classes=("n", "p"))), intercept=True)
    table = Table.from_arrays({"a": [0.5]})
    assert schema.features(table, targets=False).y is None
    with pytest.raises(InputError, match="the schema has a column 'y', and the table has not"):
        schema.features(table)


def test_intercept_is_constant_and_last() -> None:
    schema = Schema(columns=(Numeric(name="a", low=0, high=1),), intercept=True)
    assert schema.features(Table.from_arrays({"a": [0.5, 0.25]})).X.tolist() == [[0.5, 1.0], [0.25, 1.0]]
    assert schema.feature_names[-1] == "(intercept)"


FILE_SCHEMA = Schema(
    columns=(
        Numeric(name="age", low=0, high=100),
        Category(name="job", categories=("cook", "nurse"), strict=True),
        Label(name="y", classes=("no", "yes")),
        User(name="who"),
        Ignore(name="note"),
    )
)
HEADER = "age,job,y,who,note\n"
BAD_CELLS = [
    (f"1,cook,no,u,n\n{SECRET},cook,no,u,n\n", "line 3, column 'age': a numeric column holds numbers"),
    (f"1,cook,no,u,n\n\n2,{SECRET},no,u,n\n", "line 4, column 'job': the cell is none of the categories"),
    (f"1,cook,{SECRET},u,n\n", "line 2, column 'y': the cell is none of the classes"),
    (f",cook,no,{SECRET},n\n", "line 2, column 'age': a value is missing"),
    (f"1,cook,no,,{SECRET}\n", "line 2, column 'who': a value is missing"),
    (f'1,cook,no,u,"{SECRET}\n{SECRET}"\n2,cook,,u,n\n', "line 4, column 'y': a value is missing"),
]


@pytest.mark.parametrize(("body", "message"), BAD_CELLS, ids=[case[1][:30] for case in BAD_CELLS])
def test_a_bad_cell_is_placed_and_not_repeated(body: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(HEADER + body)
    with pytest.raises(InputError) as caught:
        FILE_SCHEMA.read(path)
    assert f"people.csv, {message}" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_file_without_header_shows_no_cell(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"1,cook,no,u,{SECRET}\n2,cook,no,v,n\n")
    with pytest.raises(InputError, match="column 1 is not in the schema") as caught:
        FILE_SCHEMA.read(path)
    assert SECRET not in str(caught.value)


def test_libsvm_column_that_never_occurs_is_zero(tmp_path: Path) -> None:
    path = tmp_path / "t.libsvm"
    path.write_text("+1 1:1\n-1 2:0.5\n")
    kinds = tuple(Numeric(name=str(i), low=0, high=1) for i in (1, 2, 3))
    schema = Schema(columns=(Label(name="label", classes=("-1", "1")), *kinds))
    X, y, _ = schema.read(path)
    assert X.tolist() == [[1, 0, 0], [0, 0.5, 0]]
    assert y is not None
    assert y.tolist() == [1, -1]


cell_sets = {
    "age": st.one_of(st.just(""), st.just("?"), st.floats(-50, 250).map(repr), st.integers(-9, 200).map(str)),
    "job": st.sampled_from(["", "?", "cook", "nurse", "unheard of"]),
    "sex": st.sampled_from(["", "F", "M", "X"]),
    "y": st.sampled_from(["no", "yes"]),
}
records = st.fixed_dictionaries(cell_sets)


@st.composite
def row_schemas(draw: st.DrawFn) -> Schema:
    rule = st.sampled_from(["low", "high", "middle", "drop-row"])
    return Schema(
        columns=(
            Numeric(name="age", low=0, high=100, missing=draw(rule)),
            Category(name="job", categories=("cook", "nurse"), missing=draw(st.sampled_from(["category", "drop-row"]))),
            Binary(name="sex", categories=("F", "M"), missing=draw(rule)),
            Label(name="y", classes=("no", "yes")),
        ),
        scale=draw(st.sampled_from(["unit", "signed"])),
        intercept=draw(st.booleans()),
        missing_values=("?",),
    )


def table_of(rows: list[dict[str, str]]) -> Table:
    return Table.from_arrays({name: np.array([row[name] for row in rows]) for name in cell_sets})


@given(row_schemas(), records, st.lists(records, max_size=5), st.lists(records, max_size=5))
def test_features_of_a_record_do_not_depend_on_the_others(
    schema: Schema, record: dict[str, str], before: list[dict[str, str]], after: list[dict[str, str]]
) -> None:
    alone = schema.features(table_of([record]))
    whole = schema.features(table_of([*before, record, *after]))
    first = schema.features(table_of(before)).X.shape[0] if before else 0
    kept = slice(first, first + alone.X.shape[0])
    np.testing.assert_array_equal(whole.X[kept], alone.X)
    assert whole.y is not None
    assert alone.y is not None
    np.testing.assert_array_equal(whole.y[kept], alone.y)


@given(row_schemas(), st.lists(records, min_size=1, max_size=8))
def test_rows_stay_within_the_bound_of_the_map(schema: Schema, rows: list[dict[str, str]]) -> None:
    X = schema.features(table_of(rows)).X
    assert X.shape[1] == schema.n_features
    assert np.isfinite(X).all()
    assert np.abs(X).max(initial=0.0) <= 1.0
    assert (np.linalg.norm(X, axis=1) <= schema.map_bound).all()


def test_csv_and_arrays_have_the_same_features(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,job,y,who,note\n5,cook,no,1,a\n99,nurse,yes,2,b\n")
    from_file = FILE_SCHEMA.features(read_csv(path))
    arrays = {"age": [5, 99], "job": ["cook", "nurse"], "y": ["no", "yes"], "who": ["1", "2"], "note": ["a", "b"]}
    from_arrays = FILE_SCHEMA.features(Table.from_arrays(arrays))
    for first, second in zip(from_file, from_arrays, strict=True):
        np.testing.assert_array_equal(first, second)
