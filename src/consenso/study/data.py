"""The [data] section: which table, what is public about it, and which public file metrics are computed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from consenso.errors import ConsensoError
from consenso.schema import Schema, TargetColumn
from consenso.study.keys import Keys

Task = Literal["binary", "multiclass", "regression"]

#: How many classes the targets of catalogued data sets have: public, and not part of a description.
CLASSES = {"digits": 10, "femnist": 62, "mnist": 10}
#: Rows of catalogued data sets are scaled to this norm unless the study states another.
CATALOGUE_BOUND = 1.0
#: Bounds whose squares are numbers that can be computed with.
LEAST, MOST = 1e-9, 1e9
RANGE = f"between {LEAST:g} and {MOST:g}"


@dataclass(frozen=True, kw_only=True)
class DataSection:
    """A table with its schema, the tables of named parties, or a set of the catalogue.

    dataset: name in the catalogue. table: path of a private file. tables: paths of the files of named parties.
    test: path of a PUBLIC file with the same columns, for metrics. holdout: last records of a catalogued set that
    serve as a public test part. rows: public number of records. row_bound, target_bound: public bounds that replace
    those of the schema. positive: classes that count as +1 for a loss of two classes. seed: of a generated set.
    """

    dataset: str | None = None
    table: str | None = None
    tables: tuple[tuple[str, str], ...] = ()
    schema: Schema | None = None
    target: str | None = None
    test: str | None = None
    holdout: int = 0
    rows: int | None = None
    row_bound: float | None = None
    target_bound: float | None = None
    positive: tuple[str, ...] = ()
    seed: int = 0

    @property
    def task(self) -> Task:
        """What kind of target the data have, after `positive`."""
        if self.positive:
            return "binary"
        if self.dataset is not None:
            from consenso.datasets import describe

            return describe(self.dataset).task
        if self.classes is None:
            return "regression"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def raw_classes(self) -> tuple[str, ...] | None:
        """Names of the classes as the data have them; None for a regression."""
        if self.schema is not None:
            return self.schema.classes
        if self.dataset in CLASSES:
            return tuple(str(label) for label in range(CLASSES[self.dataset]))
        from consenso.datasets import describe

        return ("-1", "1") if describe(str(self.dataset)).task == "binary" else None

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes that are learnt, in the order of the loss; None for a regression."""
        return ("rest", "+".join(self.positive)) if self.positive else self.raw_classes

    @property
    def public_rows(self) -> int | None:
        """The public number of records of the one table, if it is stated or the catalogue knows it."""
        if self.dataset is None or self.rows is not None:
            return self.rows
        from consenso.datasets import describe

        return describe(self.dataset).rows - self.holdout

    @property
    def features(self) -> int:
        """The number of features without a constant column."""
        if self.schema is not None:
            return len(self.plain_features)
        from consenso.datasets import describe

        return describe(str(self.dataset)).features

    @property
    def plain_features(self) -> tuple[str, ...]:
        """Names of the features without a constant column; numbers where a catalogued set is not on this machine."""
        if self.schema is not None:
            return self.schema.without_intercept().feature_names
        from consenso.study.sources import load_catalogued

        numbered = tuple(f"feature {place}" for place in range(self.features))
        try:
            names: tuple[str, ...] = load_catalogued(self).names
        except (ConsensoError, OSError):
            return numbered
        return names if len(names) == len(numbered) else numbered

    @property
    def bound(self) -> float:
        """The public bound on the norm of rows of features; the constant of an intercept comes on top."""
        if self.row_bound is not None:
            return self.row_bound
        if self.schema is None:
            return CATALOGUE_BOUND
        return self.schema.without_intercept().bound

    @property
    def bound_of_targets(self) -> float | None:
        """The public bound on the size of regression targets."""
        if self.task != "regression":
            return None
        if (
            self.target_bound is None
            and self.schema is not None
            and isinstance(self.schema.target_column, TargetColumn)
        ):
            return self.schema.target_column.bound
        return self.target_bound


def read_data(keys: Keys, folder: Path) -> DataSection | None:
    """The section, or None where too much of it is wrong to go on."""
    dataset = keys.text("dataset")
    table = keys.text("table")
    tables = _tables(keys)
    schema = _schema(keys, folder)
    section = DataSection(
        dataset=dataset,
        table=table,
        tables=tables,
        schema=schema,
        target=keys.text("target"),
        test=keys.text("test"),
        holdout=keys.whole("holdout", 0, least=0, what="a number of records kept as a public test part") or 0,
        rows=keys.whole("rows", least=1, what="the public number of records"),
        row_bound=keys.number(
            "row_bound", rule=f"a bound on the norm of rows lies {RANGE}; try 1.0", low=LEAST, high=MOST
        ),
        target_bound=keys.number(
            "target_bound", rule=f"a bound on the size of targets lies {RANGE}", low=LEAST, high=MOST
        ),
        positive=_positive(keys),
        seed=keys.whole("seed", 0, least=0, what="the seed of a generated data set") or 0,
    )
    keys.finish()
    return section if _check(keys, section) else None


def _check(keys: Keys, section: DataSection) -> bool:
    before = len(keys.faults.sentences)
    if (section.dataset is None) == ("schema" not in keys):
        keys.wrong("schema" if "schema" in keys else "dataset", _WHICH)
    elif section.dataset is not None:
        _check_dataset(keys, section)
    elif section.schema is not None:
        _check_table(keys, section)
    if len(keys.faults.sentences) > before or (section.dataset is None and section.schema is None):
        return False
    if section.positive:
        classes = section.raw_classes
        if classes is None:
            keys.wrong("positive", "a regression has no classes; remove it")
        elif not set(section.positive) < set(classes):
            keys.wrong("positive", f"some, not all, of the classes {', '.join(classes)} count as +1; list those")
    if section.task != "regression" and section.target_bound is not None:
        keys.wrong("target_bound", "targets that are classes need no bound; remove it")
    if section.task == "regression" and section.bound_of_targets is None:
        keys.wrong("target_bound", "a regression needs a public bound on the size of its targets; state one")
    return len(keys.faults.sentences) == before


_WHICH = (
    'name the data either by dataset = "..." of the catalogue (see consenso data list) or by table = "..." and '
    'schema = "..."'
)


def _check_dataset(keys: Keys, section: DataSection) -> None:
    from consenso.datasets import describe

    for name in ("table", "tables", "target", "test"):
        if name in keys:
            keys.wrong(name, "a set of the catalogue has its own table, target and test part; remove it")
    try:
        description = describe(str(section.dataset))
    except ConsensoError as error:
        keys.wrong("dataset", _reason(error))
        return
    if (section.rows or 0) + section.holdout > description.rows - (0 if section.rows else 1):
        keys.wrong(
            "rows" if section.rows else "holdout",
            f"the set {description.name} has {description.rows} records, of which rows are used and holdout are kept "
            "for a test; lower one of them",
        )


def _check_table(keys: Keys, section: DataSection) -> None:
    assert section.schema is not None
    if section.table is not None and section.tables:
        keys.wrong("table", "give one table, or [data.tables] with one for each party; remove one of them")
    if section.holdout:
        keys.wrong("holdout", 'only sets of the catalogue have a part to keep; name a public file by test = "..."')
    learnt = section.schema.target_column
    if learnt is None:
        keys.wrong("schema", 'no column of the schema is learnt; give one of them kind = "label" or kind = "target"')
    elif section.target is not None and section.target != learnt.name:
        keys.wrong("target", f"the schema learns the column {learnt.name!r}; name that one, or change the schema")


def _schema(keys: Keys, folder: Path) -> Schema | None:
    name = keys.text("schema")
    if name is None:
        return None
    try:
        return Schema.load(folder / name).require_public()
    except ConsensoError as error:
        keys.wrong("schema", _reason(error))
        return None


def _tables(keys: Keys) -> tuple[tuple[str, str], ...]:
    inner = keys.inner("tables")
    if inner is None:
        return ()
    found = [(name, inner.text(name)) for name in inner.table]
    return tuple(sorted((name, path) for name, path in found if path is not None))


def _positive(keys: Keys) -> tuple[str, ...]:
    value: Any = keys.raw("positive", [])
    if not isinstance(value, list) or not all(
        isinstance(item, str | int) and not isinstance(item, bool) for item in value
    ):
        keys.wrong("positive", 'a list of classes is needed; write positive = ["a", "b"]')
        return ()
    return tuple(str(item) for item in value)


def _reason(error: ConsensoError) -> str:
    return str(error).rstrip(".")
