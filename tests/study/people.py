"""A table of people with several records, and its schema."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

SCHEMA = """
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.patient]
kind = "user"
[columns.ill]
kind = "label"
classes = ["no", "yes"]
"""


def write_people(table: Path, rows: Iterable[tuple[int, str, bool]]) -> None:
    """Write ages, patients and whether they are ill to a file, and the schema beside it."""
    (table.parent / "schema.toml").write_text(SCHEMA)
    lines = [f"{age},{patient},{'yes' if ill else 'no'}" for age, patient, ill in rows]
    table.write_text("\n".join(["age,patient,ill", *lines]) + "\n")
