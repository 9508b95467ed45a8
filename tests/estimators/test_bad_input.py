"""What cannot be fitted is refused by one error that names the place and the rule, before the budget is spent."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import is_classifier
from tests.estimators.discovery import NAMES, X, make, targets_of

import consenso
from consenso.errors import InputError
from consenso.privacy.ledger import Budget, Ledger

CELL, ROW = "HIV-positive", r"row 7 \(rows count from 0\)"
FRAME = pd.DataFrame(X, columns=["age", "bp", "lab"])
DAYS = pd.to_datetime("2021-03-15") + pd.to_timedelta(np.arange(len(X)), "D")
IDS = np.arange(len(X)) // 2
MODELS = [name for name in NAMES if hasattr(make(name), "predict")]


def put(values, cell, place=7):
    changed = np.array(values, dtype=object)
    changed[place] = cell
    return changed


def change(column, cell):
    return FRAME.astype(object).assign(**{column: put(FRAME[column], cell)})


# What X is instead, and what the error says.
TABLES = {
    "a text": (change("lab", CELL), rf"{ROW}, column 'lab' is not a number"),
    "a missing number": (change("lab", None), rf"{ROW}, column 'lab' contains NaN"),
    "a missing number of pandas": (FRAME.convert_dtypes().assign(lab=pd.array(put(FRAME.lab, pd.NA), "Float64")), ROW),
    "a missing number of polars": (pl.DataFrame({"lab": put(FRAME.lab, None).tolist()}), rf"{ROW}, column 'lab'"),
    "an infinite number": (change("bp", np.inf), rf"{ROW}, column 'bp' contains infinity"),
    "both": (
        change("bp", np.inf).assign(lab=put(FRAME.lab, np.nan, 9)),
        r"row 9 \(rows count from 0\), column 'lab' contains NaN.*row 7 \(rows count from 0\), column 'bp' con",
    ),
    "dates": (FRAME.assign(seen=DAYS), "column 'seen' holds dates"),
    "complex numbers": (0.625 + 0j * X, "Complex data not supported. Cells"),
    "complex numbers of a frame": (FRAME.assign(lab=FRAME.lab + 0.625j), "Complex data not supported. Cells"),
    "one complex number": (change("lab", 0.625j), "Complex data not supported. Cells"),
    "categories": (FRAME.assign(ward=pd.Categorical(put(["a"] * len(X), CELL))), "column 'ward' .* is not a number"),
    "two columns of one name": (FRAME.set_axis(["age", "age", "lab"], axis=1), "several are called 'age'"),
    "no columns": (FRAME.iloc[:, :0], "one column is needed"),
    "no rows": (FRAME.iloc[:0], "0 sample"),
}
# What y is instead.
TARGETS = {
    "a missing one": (lambda y: put(y, np.nan).astype(float), rf"{ROW} contains NaN"),
    "dates": (lambda y: DAYS, "holds dates|Unknown label type"),
    "complex numbers": (lambda y: np.arange(len(X)) + 0.625j, "Complex data not supported. Cells"),
    "dates of a column": (lambda y: pd.Series(DAYS), "holds dates|Unknown label type"),
    "too few": (lambda y: y[:-1], "inconsistent numbers"),
}
# Arguments of fit beside them.
ARGUMENTS = {
    "an id that is missing": ({"users": put(IDS, None)}, rf"users=\.\.\.\): {ROW} has no id"),
    "an id that is missing, of pandas": ({"users": pd.array(put(IDS, pd.NA), "Int64")}, rf"{ROW} has no id"),
    "an id that is missing, in a list": ({"users": [None, *np.arange(1, len(X))]}, r"row 0 \(rows count from 0\) has"),
    "ids that are dates": ({"users": DAYS}, "whole numbers or texts"),
    "a cap without people": ({"rows_per_person": 3}, "whose rows"),
    "a weight above its bound": ({"sample_weight": put(np.ones(len(X)), 1.5)}, rf"{ROW} has a weight above"),
    "a weight below 0": ({"sample_weight": put(np.ones(len(X)), -0.5)}, ROW),
    "a weight that is missing": ({"sample_weight": put(np.ones(len(X)), np.nan)}, ROW),
    "an infinite bound": ({"sample_weight": np.ones(len(X)), "weight_bound": np.inf}, "finite"),
}


@pytest.fixture
def ledger(tmp_path):
    units = ("record", "person")
    budgets = [Budget(observer="public", unit=unit, adjacency="replace-one", epsilon=9.0, delta=1e-5) for unit in units]
    return Ledger.create(tmp_path / "patients.ledger", dataset="patients", budgets=budgets)


def refuse(ledger, call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message) as caught:
            call()
    assert CELL not in str(caught.value)
    assert "0.625" not in str(caught.value)
    assert [balance.spent for balance in ledger.balances()] == [0.0, 0.0]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_cannot_be(name, kind, ledger) -> None:
    table, message = TABLES[kind]
    refuse(ledger, lambda: make(name, ledger=ledger).fit(table, targets_of(name)[: len(table)]), message)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_targets_that_cannot_be(name, kind, ledger) -> None:
    changed, message = TARGETS[kind]
    refuse(ledger, lambda: make(name, ledger=ledger).fit(FRAME, changed(targets_of(name))), message)


@pytest.mark.parametrize("kind", ARGUMENTS)
@pytest.mark.parametrize("name", MODELS)
def test_arguments_that_cannot_be(name, kind, ledger) -> None:
    given, message = ARGUMENTS[kind]
    refuse(ledger, lambda: make(name, ledger=ledger).fit(FRAME, targets_of(name), **given), message)


@pytest.mark.parametrize("name", [name for name in MODELS if is_classifier(make(name))])
def test_a_class_that_was_not_declared(name, ledger) -> None:
    labels = put(np.where(targets_of(name) > 0, "ill", "well"), CELL)
    refuse(ledger, lambda: make(name, ledger=ledger, classes=["ill", "well"]).fit(FRAME, labels), ROW)


def test_a_schema_names_the_columns_that_it_does_not_know_or_lacks() -> None:
    from consenso.schema import Numeric, Schema

    schema = Schema(columns=(Numeric(name="age", low=0, high=110), Numeric(name="bp", low=0, high=250)))
    with pytest.raises(InputError, match="'lab' is not in the schema"):
        consenso.SchemaTransformer(schema).fit(FRAME)
    with pytest.raises(InputError, match="'bp' is not in the frame"):
        consenso.SchemaTransformer(schema).fit(FRAME[["age"]])
    fitted = consenso.SchemaTransformer(schema).fit(FRAME[["age", "bp"]])
    with pytest.raises(InputError, match="'bp' is not in the frame"):
        fitted.transform(FRAME[["age"]])
