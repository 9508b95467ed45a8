"""Frames as features of a schema, in front of a private model that takes the bound over."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import consenso
from consenso.errors import InputError, PrivacyError
from consenso.estimators.frames import BoundedRows, SchemaTransformer, bound_of
from consenso.schema import Schema

TEXT = """
missing_values = ["n/a"]
[columns.age]
kind = "numeric"
low = 0
high = 100
missing = "middle"
[columns.ward]
kind = "category"
categories = ["a", "b"]
missing = "category"
[columns.patient]
kind = "user"
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""
RNG = np.random.default_rng(4)
SIZE = 1500
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(SIZE) < 0.05, "n/a", RNG.integers(0, 100, SIZE).astype(str)),
        "ward": RNG.choice(["a", "b", "c"], SIZE),
        "patient": [f"p{number // 2}" for number in range(SIZE)],
    }
)
ILL = np.where((pd.to_numeric(FRAME["age"], errors="coerce").fillna(50) > 50) ^ (FRAME["ward"] == "b"), "yes", "no")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "patients.schema.toml").write_text(TEXT)
    return tmp_path / "patients.schema.toml"


def test_a_model_takes_the_bound_of_the_schema_over(path) -> None:
    model = consenso.PrivateLogisticRegression(epsilon=2.0, classes=["no", "yes"], random_state=0)
    pipeline = make_pipeline(SchemaTransformer(path), model)
    pipeline.fit(FRAME, ILL, privatelogisticregression__users=FRAME["patient"])
    assert pipeline[-1].row_bound_ == pytest.approx(np.sqrt(2))
    assert pipeline[-1].guarantee_.unit == "person"
    assert "No row_bound" not in " ".join(pipeline[-1].notes_), "nothing was looked for"
    assert "The row bound 1.414 was taken over from the schema" in " ".join(pipeline[-1].notes_)
    assert pipeline.predict(FRAME.drop(columns="patient")).shape == (SIZE,)
    assert list(pipeline[0].get_feature_names_out()) == ["age", "ward=a", "ward=b", "ward=(other)"]


def test_rows_are_those_of_the_schema_and_only_they_have_its_bound(path) -> None:
    rows = SchemaTransformer(path).fit_transform(FRAME)
    assert isinstance(rows, BoundedRows)
    assert np.linalg.norm(rows, axis=1).max() <= rows.row_bound
    for changed in (rows * 2, rows[:10], rows + 0, np.asarray(rows), pickle.loads(pickle.dumps(rows))):
        assert bound_of(changed) is None, "what is computed of bounded rows need not be bounded"
    other = FRAME.copy()
    other.loc[0, "age"] = "99"
    moved = np.flatnonzero((SchemaTransformer(path).fit(FRAME).transform(other) != rows).any(axis=1))
    assert set(moved) <= {0}, "no row depends on another record"


def test_it_is_a_transformer_that_can_be_cloned(path) -> None:
    given = SchemaTransformer(Schema.load(path))
    again = clone(given).fit(FRAME)
    np.testing.assert_array_equal(again.transform(FRAME), SchemaTransformer(path).fit_transform(FRAME))


def test_what_cannot_be(path, tmp_path) -> None:
    with pytest.raises(InputError, match="a frame with named columns"):
        SchemaTransformer(path).fit(np.zeros((3, 2)))
    draft = tmp_path / "draft.toml"
    draft.write_text("draft = true\n" + TEXT)
    with pytest.raises(PrivacyError, match="draft"):
        SchemaTransformer(draft).fit(FRAME)
    dropping = tmp_path / "drop.toml"
    dropping.write_text(TEXT.replace('"middle"', '"drop-row"'))
    with pytest.raises(InputError, match="drops records"):
        SchemaTransformer(dropping).fit(FRAME)
    wrong = FRAME.copy()
    wrong.loc[3, "age"] = "secret"
    with pytest.raises(InputError, match="age") as caught:
        SchemaTransformer(path).fit(FRAME).transform(wrong)
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="ward"):
        SchemaTransformer(path).fit(FRAME).transform(FRAME.drop(columns="ward"))


def test_a_raw_frame_is_refused_by_all_its_columns_at_once() -> None:
    days = pd.to_datetime(["2021-01-01", "2021-01-02", "2021-01-03"])
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "ward": ["secret", "b", "c"], "crp": ["1", "n/a", "3"], "day": days})
    with pytest.raises(InputError) as caught:
        consenso.PrivateLogisticRegression(random_state=0).fit(frame, [True, False, True])
    said = str(caught.value)
    assert "'day' holds dates" in said
    assert "row 0 (rows count from 0), column 'ward' (and 2 more)" in said
    assert "row 1 (rows count from 0), column 'crp'" in said
    assert "secret" not in said
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(InputError, match=rf"row 2 \(rows count from 0\), column 'age' contains {word}"):
            consenso.PrivateLogisticRegression(random_state=0).fit(
                pd.DataFrame({"age": [1.0, 2.0, value]}), [True, False, True]
            )


def test_truth_values_that_may_be_missing_are_public_by_their_type() -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2))
    labels = pd.Series(rows[:, 0] > 0).astype("boolean")
    model = consenso.PrivateLogisticRegression(epsilon=1.0, row_bound=3.0, random_state=0).fit(rows, labels)
    assert model.classes_.tolist() == [False, True]
    labels[5] = pd.NA
    with pytest.raises(InputError, match=r"row 5 \(rows count from 0\) has no label"):
        consenso.PrivateLogisticRegression(random_state=0).fit(rows, labels)


@pytest.mark.parametrize("kind", ["Int64", "UInt8", "int64[pyarrow]", "uint8[pyarrow]", "Polars"])
def test_whole_numbers_stay_whole_as_labels(kind) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2))
    labels = (rows[:, 0] > 0).astype(int) + 3
    given = pl.Series(labels) if kind == "Polars" else pd.Series(labels).astype(kind)
    model = consenso.PrivateLogisticRegression(epsilon=8.0, row_bound=3.0, random_state=0).fit(rows, given)
    assert model.classes_.tolist() == [3, 4]
    assert np.issubdtype(model.classes_.dtype, np.integer)


def test_a_summary_names_the_features_of_a_schema_and_says_where_its_bound_is_from(path) -> None:
    rows = SchemaTransformer(path).fit_transform(FRAME)
    model = consenso.PrivateLogisticRegression(epsilon=8.0, classes=["no", "yes"], random_state=0).fit(rows, ILL)
    summary = model.summary()
    assert [row.name for row in summary.rows] == [
        *SchemaTransformer(path).fit(FRAME).get_feature_names_out(),
        "intercept",
    ]
    said = " ".join(str(summary).split())
    assert "ranges of the schema" in said
    assert "found in the data" not in said
    search = consenso.PrivateSearchCV(model, {"alpha": [1e-3, 1e-2]}, epsilon=8.0, draws=2, random_state=0)
    best = search.fit(rows, ILL).best_estimator_
    assert best.row_bound_ == bound_of(rows)
    assert [row.name for row in best.summary().rows] == [row.name for row in summary.rows]
