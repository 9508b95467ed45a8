"""A small table with its schema, and studies of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

SCHEMA = """
row_bound = 1.0
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.height]
kind = "numeric"
low = 1
high = 2
[columns.smoker]
kind = "binary"
categories = ["no", "yes"]
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder with table.csv (30 records), test.csv (12) and schema.toml."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    rng = np.random.default_rng(0)
    for name, rows in (("table.csv", 30), ("test.csv", 12)):
        lines = ["age,height,smoker,ill"]
        for _ in range(rows):
            age, height, smoker = rng.uniform(0, 100), rng.uniform(1, 2), rng.random() < 0.5
            ill = age / 100 + smoker + rng.normal() > 1
            lines.append(f"{age:.1f},{height:.2f},{'yes' if smoker else 'no'},{'yes' if ill else 'no'}")
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path
