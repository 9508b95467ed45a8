"""Draft schemas: they read back, they cover the file, and they are refused for private use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from consenso.errors import PrivacyError
from consenso.schema import Category, Ignore, Label, Numeric, Schema, TargetColumn, User, draft_schema


def test_draft_of_a_mixed_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    remarks = [f"remark {i}" for i in range(60)]
    lines = [
        f"p{i % 7},{20 + i},{'cook' if i % 2 else '?'},{remarks[i]},3,{'yes' if i % 3 else 'no'}" for i in range(60)
    ]
    path.write_text("user_id,age,job,remark,same,label\n" + "\n".join(lines) + "\n")
    text = draft_schema(path)
    assert text.startswith("# DRAFT, NOT PUBLIC")
    assert "draft = true" in text
    schema = Schema.parse(text)
    assert schema.columns == (
        User(name="user_id"),
        Numeric(name="age", low=20.0, high=79.0),
        Category(name="job", categories=("cook",), missing="category"),
        Ignore(name="remark"),
        Ignore(name="same"),
        Label(name="label", classes=("no", "yes")),
    )
    assert schema.missing_values == ("?",)
    X, y, users = schema.read(path)
    assert X.shape == (60, 3)
    assert y is not None
    assert users is not None
    with pytest.raises(PrivacyError, match="draft"):
        schema.require_public()
    assert Schema.parse(text.replace("draft = true", "")).require_public().draft is False


def test_numeric_last_column_is_the_target(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez(path, X=np.arange(120.0).reshape(60, 2), price=np.linspace(-3, 9, 60))
    columns = Schema.parse(draft_schema(path)).columns
    assert columns == (
        Numeric(name="X_0", low=0.0, high=118.0),
        Numeric(name="X_1", low=1.0, high=119.0),
        TargetColumn(name="price", low=-3.0, high=9.0),
    )


def test_one_column_and_two_identifiers(tmp_path: Path) -> None:
    lone = tmp_path / "lone.csv"
    lone.write_text("age\n1\n2\n")
    assert Schema.parse(draft_schema(lone)).columns == (Numeric(name="age", low=1.0, high=2.0),)
    two = tmp_path / "two.csv"
    two.write_text("id,user,age,y\na,b,1,no\nc,d,2,yes\n")
    assert [column.kind for column in Schema.parse(draft_schema(two)).columns] == ["user", "ignore", "numeric", "label"]


def test_draft_of_real_files_reads_them_back(data_dir: Path) -> None:
    housing = data_dir / "california_housing.csv.gz"
    schema = Schema.parse(draft_schema(housing))
    X, _, _ = schema.read(housing)
    # The last column is the proximity to the ocean, so the guess takes it for the label; a person corrects that.
    assert schema.classes is not None
    assert len(schema.classes) == 5
    assert X.shape == (20_640, 9)
    assert X.min() == 0.0
    assert X.max() == 1.0
