"""The public description of a private table: bounds, categories and classes that are known before looking.

A schema turns each record into a row of features by a rule that depends on the schema alone, so the map costs no
privacy. `draft_schema` writes a first version from a file; it is private until a person has replaced what it found.
"""

from __future__ import annotations

from consenso.schema.columns import Binary, Category, Ignore, Label, Numeric, Ordinal, TargetColumn, User
from consenso.schema.dates import Date
from consenso.schema.description import Features, Schema
from consenso.schema.draft import draft_schema

__all__ = [
    "Binary",
    "Category",
    "Date",
    "Features",
    "Ignore",
    "Label",
    "Numeric",
    "Ordinal",
    "Schema",
    "TargetColumn",
    "User",
    "draft_schema",
]
