"""What a fit says besides its result: the same for neighbouring tables, or an error that repeats no cell."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from tests.estimators.discovery import FUNCTIONS, NAMES, X, make, targets_of

import consenso
from consenso.errors import InputError
from consenso.estimators import SpendingWarning
from consenso.privacy.ledger import Budget, Ledger
from consenso.schema import Numeric, Schema

# A cell that no message has by chance.
CELL, NUMBER = "HIV-positive", 91234.5625


def with_cell(rows, value):
    changed = np.array(rows, dtype=object if isinstance(value, str) else float)
    changed[(7,) * changed.ndim if changed.ndim == 1 else (7, 1)] = value
    return changed


ROWS = {
    "a text": with_cell(X, CELL),
    "a text in a list": with_cell(X, CELL).tolist(),
    "a text in pandas": pd.DataFrame(with_cell(X, CELL)),
    "a category in pandas": pd.DataFrame(X).assign(c=pd.Categorical([CELL, *["0"] * (len(X) - 1)])),
    "a text in polars": pl.DataFrame({"a": X[:, 0], "b": [CELL, *["0"] * (len(X) - 1)]}),
    "a NaN": with_cell(X, np.nan),
    "an infinity": with_cell(X, np.inf),
    "an overflowing integer": [[int(NUMBER) ** 100, 0.0], *np.zeros((len(X) - 1, 2)).tolist()],
    "a huge row": with_cell(X, 1.7e308),
    "a huge row, sparse": sparse.csr_array(with_cell(X, 1.7e308)),
    "a tiny row": with_cell(X, 5e-324),
    "an odd number": with_cell(X, NUMBER),
}
REALS = {
    "a text": with_cell(X[:, 0], CELL),
    "texts": with_cell(X[:, 0], CELL).astype(str),
    "a NaN": with_cell(X[:, 0], np.nan),
    "a huge number": with_cell(X[:, 0], 1.7e308),
    "an odd number": with_cell(X[:, 0], NUMBER),
}
# More than half of these labels are different, which scikit-learn warns of, once one of them is another.
MANY = np.arange(len(X)) % (len(X) // 2)
LABELS = {
    "one more class": with_cell(MANY, len(X) - 1).astype(int),
    "a label that was not declared": with_cell(MANY, 91234).astype(int),
    "a float label": with_cell(MANY, NUMBER),
    "a NaN": with_cell(MANY, np.nan),
    "a text": with_cell(MANY, CELL),
    "texts": with_cell(MANY.astype(str), CELL).astype(str),
    "one class": np.zeros(len(X), dtype=int),
}


def said(fit, caplog):
    """Warnings and log records of a fit, and the text of its error."""
    caplog.clear()
    error = None
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG), np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            fit()
        except Exception as found:
            parts = []
            while found is not None:
                parts.append(f"{type(found).__name__} {found} {found.args}")
                found = found.__cause__ or found.__context__
            error = " ".join(parts)
    return [str(one.message) for one in caught], [record.getMessage() for record in caplog.records], error


def fit_with(name, which, rows=None, targets=None):
    if name in FUNCTIONS:
        return lambda: getattr(consenso, name)(X if rows is None else rows, targets, epsilon=1.0, random_state=0)
    y = targets_of(name) if targets is None else targets
    declared = {"classes": range(len(X))} if which == "y" and is_classifier(make(name)) else {}
    if declared and name == "PrivateLinearSVC":
        declared = {}
    return lambda: make(name, random_state=0, **declared).fit(X if rows is None else rows, y)


def neighbours():
    for name in (*NAMES, *FUNCTIONS):
        for kind in ROWS:
            yield name, "X", kind
        labels = name not in FUNCTIONS and is_classifier(make(name))
        for kind in LABELS if labels else REALS:
            yield name, "y", kind


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "which", "kind"), list(neighbours()))
def test_neighbouring_tables_are_not_told_apart_by_what_is_said(name, which, kind, caplog) -> None:
    if which == "X":
        usual, other = fit_with(name, which), fit_with(name, which, rows=ROWS[kind])
    elif name not in FUNCTIONS and is_classifier(make(name)):
        base = MANY if name != "PrivateLinearSVC" else targets_of(name)
        usual, other = fit_with(name, which, targets=base), fit_with(name, which, targets=LABELS[kind])
    else:
        usual, other = fit_with(name, which, targets=X[:, 0]), fit_with(name, which, targets=REALS[kind])
    expected, found = said(usual, caplog), said(other, caplog)
    assert found[:2] == expected[:2] == ([], []), "neither a warning nor a record of a log"
    assert expected[2] is None
    if found[2] is not None:
        assert not any(cell in found[2] for cell in (CELL, "91234", "1.7e308")), "an error repeats no cell"


@pytest.mark.parametrize("name", NAMES)
def test_prediction_and_scaling_repeat_no_cell_either(name, caplog) -> None:
    model = make(name, random_state=0).fit(X, targets_of(name))
    apply = model.predict if hasattr(model, "predict") else model.transform
    for kind, rows in ROWS.items():
        if np.shape(rows)[1] == X.shape[1]:
            told = said(lambda rows=rows: apply(rows), caplog)
            assert CELL not in str(told), kind
    assert "row 7 (rows count from 0), column 1" in said(lambda: apply(ROWS["a text"]), caplog)[2]


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("PrivateRidge", with_cell(X[:, 0], np.nan)),
        ("PrivateRidge", pd.Series(with_cell(X[:, 0], np.nan), dtype="Float64")),
        ("PrivateRidge", with_cell(X[:, 0], np.inf)),
        ("PrivateLogisticRegression", with_cell(X[:, 0] > 0, np.nan)),
        (
            "PrivateLogisticRegression",
            np.array([CELL, "none"] * 3 + [CELL, np.nan] + [CELL] * (len(X) - 8), dtype=object),
        ),
    ],
    ids=["NaN", "pandas", "infinity", "label", "beside texts"],
)
def test_a_target_that_is_missing_has_its_row_named(name, targets) -> None:
    with pytest.raises(InputError, match=r"row 7 \(rows count from 0\)") as caught:
        make(name).fit(X, np.array(targets, dtype=object) if isinstance(targets, list) else targets)
    assert CELL not in str(caught.value)


def test_all_columns_that_have_to_be_mended_are_in_one_error_and_no_cell_is() -> None:
    days = pd.to_datetime(["2021-03-15", "2021-03-16", None])
    frame = pd.DataFrame({"day": days, "crea": ["1.5", "n/a", "2"], "age": [50.0, np.nan, np.nan], "ward": [*"abc"]})
    with pytest.raises(InputError) as error:
        consenso.PrivateRidge().fit(frame, [1.0, 2.0, 3.0])
    said = str(error.value)
    for part in ("'day' holds dates", "row 1 (rows count from 0), column 'crea' is not", "'ward' (and 2 more) is not"):
        assert part in said
    assert "row 1 (rows count from 0), column 'age' (and 1 more) is missing" in said
    assert "n/a" not in said


def test_ids_are_asked_for_where_the_name_of_a_column_is_given() -> None:
    with pytest.raises(InputError, match=r"users=frame\['patient'\]"):
        consenso.PrivateRidge().fit(np.ones((3, 1)), [1.0, 2.0, 3.0], users="patient")


def test_columns_of_one_name_are_refused_by_that_name() -> None:
    twice = pd.DataFrame(X[:, [0, 0]], columns=["age", "age"])
    with pytest.raises(InputError, match="several are called 'age'"):
        make("PrivateRidge").fit(twice, X[:, 0])
    with pytest.raises(InputError, match="several are called 'age'"):
        consenso.SchemaTransformer(Schema(columns=(Numeric(name="age", low=0, high=1),))).fit(twice)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".npz", ".libsvm"])
def test_readers_of_tables_repeat_no_cell(suffix, tmp_path) -> None:
    from consenso.errors import InputError
    from consenso.schema import Schema

    path = tmp_path / f"table{suffix}"
    names = ("label", "x1") if suffix == ".libsvm" else ("a", "b")
    if suffix == ".npz":
        np.savez(path, a=np.array(["1.0", CELL]), b=np.array([0.0, 1.0]))
    elif suffix == ".libsvm":
        path.write_text(f"1 1:2.0\n{CELL} 1:3.0\n")
    else:
        mark = "," if suffix == ".csv" else "\t"
        path.write_text(f"a{mark}b\n1.0{mark}0\n{CELL}{mark}1\n")
    described = [f'[columns.{name}]\nkind = "numeric"\nlow = 0\nhigh = 1\n' for name in names]
    with pytest.raises(InputError) as caught:
        Schema.parse("".join(described)).read(path)
    assert CELL not in str(caught.value)
    assert "2" in str(caught.value) or "3" in str(caught.value), "the place is named"


def spends(fit) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    texts = [str(one.message) for one in caught if one.category is SpendingWarning]
    assert not any(str(size) in text for text in texts for size in (len(X), len(X) // 2)), "no private fact"
    return bool(texts)


def refit(model, y):
    for _ in range(2):
        model.fit(X, y)


def impute(model):
    rows = X.copy()
    rows[3, 1] = rows[4, 2] = np.nan
    IterativeImputer(model, max_iter=1).fit(rows)


THREE = np.digitize(X[:, 0], [-0.5, 0.5])
REPEATED = {
    "cross_val_score": lambda model, y: cross_val_score(model, X, y, cv=2),
    "cross_validate": lambda model, y: cross_validate(model, X, y, cv=2),
    "learning_curve": lambda model, y: learning_curve(model, X, y, cv=2, train_sizes=[0.9]),
    "search over an earlier step": lambda model, y: GridSearchCV(
        make_pipeline(consenso.PrivateScaler(epsilon=float("inf")), model), {"privatescaler__tail": [0.1]}, cv=2
    ).fit(X, y),
    "search": lambda model, y: GridSearchCV(model, {"epsilon": [0.5]}, cv=2).fit(X, y),
    "refits": refit,
}


@pytest.mark.parametrize("way", REPEATED)
@pytest.mark.parametrize("name", ["PrivateLogisticRegression", "PrivateRidge"])
def test_repeated_fits_warn(name, way) -> None:
    y = targets_of(name)
    assert spends(lambda: REPEATED[way](make(name), y))
    free = {"epsilon": float("inf"), "alpha": 0.1}
    if way != "search":  # which sets epsilon
        assert not spends(lambda: REPEATED[way](make(name, **free), y)), "without privacy nothing is spent"


def test_one_versus_rest_and_imputers_and_scalers_warn() -> None:
    assert spends(lambda: OneVsRestClassifier(make("PrivateLogisticRegression")).fit(X, THREE))
    assert spends(lambda: impute(make("PrivateRidge")))
    assert spends(lambda: refit(make("PrivateScaler"), None))


def test_fits_that_are_added_up_and_single_fits_do_not_warn(tmp_path) -> None:
    budget = Budget(observer="public", unit="record", adjacency="replace-one", epsilon=9.0, delta=1e-5)
    ledger = Ledger.create(tmp_path / "a.ledger", dataset="a", budgets=[budget])
    y = targets_of("PrivateRidge")
    assert not spends(lambda: refit(make("PrivateRidge", ledger=ledger), y))
    assert not spends(lambda: refit(make("PrivateRidge", random_state=0), y)), "a simulation spends nothing"
    assert not spends(lambda: make("PrivateRidge").fit(X, y))
    assert not spends(lambda: make_pipeline(make("PrivateScaler"), make("PrivateRidge")).fit(X, y))
