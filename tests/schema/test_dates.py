"""Columns of days: bounded, and refused by place where a cell is none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from consenso.errors import InputError
from consenso.estimators.frames import SchemaTransformer
from consenso.schema import Schema
from consenso.tables import Table

TEXT = """
[columns.seen]
kind = "date"
low = 2020-01-01
high = "2020-12-31"
missing = "middle"
"""


def features(*cells, text=TEXT):
    return Schema.parse(text).features(Table.from_arrays({"seen": np.array(cells)})).X[:, 0]


def test_days_are_placed_between_their_bounds() -> None:
    found = features("2020-01-01", "2020-12-31", "2020-07-01 13:45", "1066-10-14", "2999-01-01", "", " 2020-07-01 ")
    np.testing.assert_allclose(found, [0.0, 1.0, 182 / 365, 0.0, 1.0, 0.5, 182 / 365])
    np.testing.assert_allclose(features("2020-01-01", text='scale = "signed"\n' + TEXT), [-1.0])


def test_a_schema_with_days_is_written_and_read_again() -> None:
    schema = Schema.parse(TEXT)
    assert Schema.parse(schema.to_toml()) == schema


def test_frames_with_days_of_their_own_type() -> None:
    frame = pd.DataFrame({"seen": pd.to_datetime(["2020-01-01", None, "2020-12-31"])})
    rows = SchemaTransformer(Schema.parse(TEXT)).fit_transform(frame)
    np.testing.assert_allclose(np.asarray(rows)[:, 0], [0.0, 0.5, 1.0])


@pytest.mark.parametrize("cell", ["inf", "9999999-01-01", "2020-02-30", "15.3.2021", "NaT", "secret"])
def test_cells_that_are_no_days_are_named_by_their_place(cell) -> None:
    with pytest.raises(InputError, match=r"seen.*holds days such as") as caught:
        features("2020-01-01", cell)
    assert cell not in str(caught.value)


def test_a_missing_day_without_a_rule_is_an_error() -> None:
    with pytest.raises(InputError, match="a value is missing"):
        features("", text=TEXT.replace('missing = "middle"\n', ""))


@pytest.mark.parametrize(
    "change",
    [
        ("2020-01-01", "2021-01-01"),
        ('"2020-12-31"', '"inf"'),
        ('"2020-12-31"', "5"),
        ('"middle"', '"category"'),
    ],
)
def test_schemas_that_cannot_be(change) -> None:
    with pytest.raises(InputError, match=r"columns\.seen"):
        Schema.parse(TEXT.replace(*change))
