"""All bad cells in one message, by position and rule and never by what they hold; fills with indicators; ordinals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from consenso.errors import InputError
from consenso.schema import Schema, draft_schema
from consenso.tables import Table

SCHEMA = """
missing_values = ["n/a"]
[columns.age]
kind = "numeric"
low = 0
high = 100
missing = "middle"
indicator = true
[columns.stage]
kind = "ordinal"
levels = ["I", "II", "III", "IV", "V"]
strict = true
missing = "low"
[columns.seen]
kind = "date"
low = 2020-01-01
high = 2020-12-31
missing = "error"
"""


def _table(ages: list[str], stages: list[str], days: list[str]) -> Table:
    columns = {"age": np.array(ages), "stage": np.array(stages), "seen": np.array(days)}
    return Table.from_arrays(columns, source="patients.csv")


def test_every_bad_cell_is_named_once_and_none_is_quoted() -> None:
    table = _table(
        ["50", "secret", "n/a", "hidden"], ["I", "IX", "II", "III"], ["2020-01-01", "infinity", "", "9999-99-99"]
    )
    with pytest.raises(InputError) as caught:
        Schema.parse(SCHEMA).features(table)
    told = str(caught.value)
    assert "6 cells break rules of the schema" in told
    assert "Column 'age', row 1, row 3 (rows count from 0): a numeric column holds numbers" in told
    assert "Column 'stage', row 1 (rows count from 0): the cell is none of the levels" in told
    assert "Column 'seen', row 1, row 3 (rows count from 0): a date column holds days" in told
    assert "Column 'seen', row 2 (rows count from 0): a value is missing" in told
    assert not any(cell in told for cell in ("secret", "hidden", "IX", "infinity", "9999"))


def test_one_bad_cell_is_one_sentence() -> None:
    table = _table(["50"], ["I"], ["inf"])
    with pytest.raises(
        InputError,
        match=r"^patients.csv, row 0 \(rows count from 0\), column 'seen': a date column holds days such as ",
    ):
        Schema.parse(SCHEMA).features(table)


def test_many_bad_cells_are_counted() -> None:
    table = _table(["x"] * 30, ["I"] * 30, ["2020-01-01"] * 30)
    with pytest.raises(InputError, match=r"row 19 and 10 more \(rows count from 0\): a numeric column"):
        Schema.parse(SCHEMA).features(table)


def test_a_fill_and_its_indicator() -> None:
    schema = Schema.parse(SCHEMA)
    table = _table(["0", "n/a", "100"], ["I", "IV", "n/a"], ["2020-01-01"] * 3)
    X = schema.features(table).X
    assert schema.feature_names == ("age", "age=(missing)", "stage", "seen")
    assert X[:, :3].tolist() == [[0.0, 0.0, 0.0], [0.5, 1.0, 0.75], [1.0, 0.0, 0.0]]
    # Three columns, and one for the indicator: no row is longer, whatever is missing.
    assert schema.bound == 2.0
    assert schema == Schema.parse(schema.to_toml())


def test_an_indicator_needs_something_that_fills_in() -> None:
    with pytest.raises(InputError, match=r"columns.age.indicator: .* fills nothing"):
        Schema.parse(SCHEMA.replace('missing = "middle"', 'missing = "drop-row"'))


def test_a_schema_without_indicators_keeps_its_digest() -> None:
    assert "indicator" not in Schema.parse(SCHEMA.replace("indicator = true\n", "")).to_toml()


def test_a_draft_says_why_a_column_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    lines = ["age,note,empty,same,patient_id,user_id,label"]
    lines += [f"{place},note {place},,7,p{place},u{place},{place % 2}" for place in range(80)]
    path.write_text("\n".join(lines) + "\n")
    text = draft_schema(path)
    assert Schema.parse(text).draft
    reasons = {"note": "more than 50", "empty": "no cell", "same": "all its numbers", "user_id": "a second"}
    for name, why in reasons.items():
        after = text.split(f'[columns."{name}"]\n')[1]
        assert after.startswith(f"# ignored: {why}")
