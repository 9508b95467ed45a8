"""The description: reading, writing, hashing, and an error for whatever is not understood."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consenso.errors import InputError, PrivacyError
from consenso.schema import Binary, Category, Ignore, Label, Numeric, Schema, TargetColumn, User

TEXT = """
# a comment
intercept = true
row_bound = 1
strict = true
missing_values = ["?"]

[columns.age]
kind = "numeric"
low = 17
high = 90
missing = "middle"

[columns.job]
kind = "category"
categories = ["cook", "nurse"]
missing = "category"

[columns.sex]
kind = "binary"
categories = ["F", "M"]
strict = false

[columns."income class"]
kind = "label"
classes = [0, 1]

[columns.person]
kind = "user"

[columns.remark]
kind = "ignore"
"""


def test_reading() -> None:
    schema = Schema.parse(TEXT)
    assert schema == Schema(
        columns=(
            Numeric(name="age", low=17.0, high=90.0, missing="middle"),
            Category(name="job", categories=("cook", "nurse"), strict=True, missing="category"),
            Binary(name="sex", categories=("F", "M"), strict=False),
            Label(name="income class", classes=("0", "1")),
            User(name="person"),
            Ignore(name="remark"),
        ),
        intercept=True,
        row_bound=1.0,
        missing_values=("?",),
    )
    assert schema.feature_names == ("age", "job=cook", "job=nurse", "job=(other)", "sex=M", "(intercept)")
    assert schema.n_features == 6
    assert schema.bound == 1.0
    assert schema.map_bound == 2.0
    assert schema.classes == ("0", "1")
    assert schema.user_column == User(name="person")


def test_bound_of_the_map_is_used_when_none_is_stated() -> None:
    schema = Schema(columns=(Numeric(name="a", low=0, high=1), Numeric(name="b", low=0, high=1)), intercept=True)
    assert schema.bound == schema.map_bound == pytest.approx(3**0.5)


def test_digest_depends_on_meaning_only() -> None:
    schema = Schema.parse(TEXT)
    assert Schema.parse(TEXT.replace("low = 17", "low    = 17.0   # public")).digest() == schema.digest()
    assert Schema.parse(TEXT.replace("low = 17", "low = 18")).digest() != schema.digest()
    assert Schema.parse(TEXT.replace('"cook", "nurse"', '"nurse", "cook"')).digest() != schema.digest()
    assert len(schema.digest()) == 64


names = st.text(min_size=1, max_size=6).map(str.strip).filter(bool)
numbers = st.floats(-1e9, 1e9)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    titles = draw(st.lists(names, min_size=3, max_size=6, unique=True))
    words = st.lists(names.filter(lambda name: name != "(other)"), min_size=2, max_size=4, unique=True).map(tuple)
    low = draw(numbers)
    high = low + draw(st.floats(1e-3, 1e9))
    columns = [
        Numeric(name=titles[0], low=low, high=high, missing=draw(st.sampled_from(["error", "low", "drop-row", low]))),
        Category(name=titles[1], categories=draw(words), strict=draw(st.booleans()), missing="category"),
        draw(
            st.sampled_from(
                [TargetColumn(name=titles[2], low=low, high=high), Label(name=titles[2], classes=draw(words))]
            )
        ),
        *(Ignore(name=title) for title in titles[3:]),
    ]
    return Schema(
        columns=tuple(columns),
        scale=draw(st.sampled_from(["unit", "signed"])),
        intercept=draw(st.booleans()),
        row_bound=draw(st.none() | st.floats(1e-6, 1e6)),
        draft=draw(st.booleans()),
    )


@given(schemas())
def test_canonical_text_reads_back_the_same(schema: Schema) -> None:
    again = Schema.parse(schema.to_toml())
    assert again == schema
    assert again.digest() == schema.digest()


WRONG = [
    ("intercep = true", "intercep: no such key; choose 'intercept'"),
    ("intercept = 1", "intercept: the value is true or false, and 1 was given"),
    ("row_bound = -1", "a row bound is positive and finite"),
    ('row_bound = "1"', "row_bound: the value is a number"),
    ('scale = "cube"', "a scale is"),
    ('missing_values = "?"', "missing_values: the value is a list of texts"),
    ("columns = 3", "columns: the value is a set of tables"),
    ("low = ", "not TOML"),
    ('[columns.age]\nkind = "numerical"\nlow = 0\nhigh = 1', "columns.age.kind: 'numerical' is no kind"),
    ('[columns.age]\nkind = "numeric"\nlow = 0\nhihg = 1', "columns.age.hihg: no such key; choose 'high'"),
    ('[columns.age]\nkind = "numeric"\nlow = 0', "columns.age.high: a column of kind 'numeric' states high"),
    ('[columns.age]\nkind = "numeric"\nlow = 3\nhigh = 3', "columns.age: low and high are finite with low < high"),
    ('[columns.age]\nkind = "numeric"\nlow = -inf\nhigh = 3', "columns.age: low and high are finite"),
    ('[columns.age]\nkind = "numeric"\nlow = -1e308\nhigh = 1e308', "columns.age: low and high are finite"),
    ('[columns.age]\nkind = "numeric"\nlow = true\nhigh = 3', "columns.age.low: the value is a number"),
    ('[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 3\nmissing = "mean"', "columns.age.missing: a rule is one of"),
    ('[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 3\nmissing = 4', "or a number from 0.0 to 3.0, and 4.0"),
    ('[columns.age]\nkind = "numeric"\nlow = 0\nhigh = 3\nmissing = nan', "columns.age.missing: a rule is one of"),
    ('[columns.job]\nkind = "category"\ncategories = []', "columns.job.categories: at least 1 are needed"),
    ('[columns.job]\nkind = "category"\ncategories = ["a", "a"]', "columns.job.categories: entries differ"),
    (
        '[columns.job]\nkind = "category"\ncategories = ["(other)"]',
        "columns.job.categories: the name '(other)' is taken",
    ),
    (
        '[columns.job]\nkind = "category"\ncategories = ["a"]\nmissing = 1',
        "columns.job.missing: a rule is one of error",
    ),
    ('[columns.job]\nkind = "category"\ncategories = ["a"]\nlow = 1', "columns.job.low: no such key"),
    ('[columns.sex]\nkind = "binary"\ncategories = ["a"]', "columns.sex.categories: exactly 2 are needed, and 1"),
    ('[columns.y]\nkind = "label"\nclasses = ["a"]', "columns.y.classes: at least 2 are needed"),
    ("[columns.y]\nlow = 3", "columns.y: a column is a table with a kind"),
    ('[columns.y]\nkind = "user"', "a schema has at least one feature"),
    (
        'missing_values = ["a"]\n[columns.job]\nkind = "category"\ncategories = ["a"]',
        "missing_values: a text that stands for a missing value is no category",
    ),
    (
        '[columns.a]\nkind = "label"\nclasses = [1, 2]\n[columns.b]\nkind = "target"\nlow = 0\nhigh = 1',
        "at most one column is a label or target",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[case[1][:40] for case in WRONG])
def test_errors_name_the_key(text: str, message: str) -> None:
    feature = '\n[columns."a feature"]\nkind = "numeric"\nlow = 0\nhigh = 1\n'
    # These two cases are about what is absent or in its place.
    alone = "at least one feature" in message or "set of tables" in message
    with pytest.raises(InputError) as caught:
        Schema.parse(text if alone else text + feature, source="people.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("people.toml: ")


def test_loading_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(TEXT)
    assert Schema.load(path) == Schema.parse(TEXT)
    with pytest.raises(InputError, match="cannot be read there"):
        Schema.load(tmp_path / "absent.toml")
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="a schema is UTF-8 text"):
        Schema.load(path)


def test_a_draft_is_refused_for_private_use() -> None:
    schema = Schema.parse("draft = true\n" + TEXT)
    with pytest.raises(PrivacyError, match="replace them by public ones"):
        schema.require_public()
    public = Schema.parse(TEXT)
    assert public.require_public() is public
