"""The parties of a study and their public sizes: never computed from private data."""

from __future__ import annotations

from typing import Any

import numpy as np

from consenso.arrays import IntArray
from consenso.splits import Split, by_column, by_group, by_party, dirichlet, equal, one_per_record
from consenso.study.data import DataSection
from consenso.study.keys import Faults
from consenso.study.privacy import PrivacySection
from consenso.study.setting import SettingSection, SplitSection
from consenso.study.sources import load_catalogued, training_records


def sizes_of(data: DataSection, setting: SettingSection) -> IntArray:
    """Public records of each party; `check_parties` has seen that they are known."""
    rows = data.public_rows
    split = setting.split
    if setting.parties:
        return np.array([size for _, size in setting.parties], dtype=np.int64)
    if split is None:
        return np.array([rows], dtype=np.int64)
    if split.sizes:
        return np.array(split.sizes, dtype=np.int64)
    if split.kind == "column" and split.size is not None:
        return np.full(int(split.parties or 0), split.size, dtype=np.int64)
    if data.dataset is not None and split.kind in ("column", "dirichlet"):
        return _split_catalogued(data, split).sizes
    return deal(split, int(rows or 0)).sizes


def names_of(setting: SettingSection, sizes: IntArray) -> tuple[str, ...]:
    """Names of the parties: as given, or by number."""
    if setting.parties:
        return tuple(name for name, _ in setting.parties)
    return ("curator",) if setting.kind == "central" else tuple(f"party-{place}" for place in range(len(sizes)))


def deal(split: SplitSection, rows: int) -> Split:
    """A split that needs no look at the records."""
    if split.kind == "one-per-record":
        return one_per_record(rows)
    if split.kind == "sizes":
        return by_party(np.repeat(np.arange(len(split.sizes), dtype=np.int64), split.sizes))
    rng = None if split.seed is None else np.random.default_rng(split.seed)
    return equal(rows, int(split.parties or 1), rng)


def deal_people(split: SplitSection | None, users: Any) -> Split:
    """An equal split of people, each of whom stays whole."""
    assert split is not None
    rng = None if split.seed is None else np.random.default_rng(split.seed)
    return by_group(users, int(split.parties or 1), rng)


def skew_labels(split: SplitSection, labels: IntArray) -> Split:
    """A split with label skew, drawn with the split's own seed."""
    assert split.concentration is not None
    return dirichlet(labels, int(split.parties or 1), split.concentration, np.random.default_rng(split.seed or 0))


def check_parties(data: DataSection, privacy: PrivacySection, setting: SettingSection, faults: Faults) -> None:
    """Note what keeps the parties or their sizes from being public and known."""
    split, rows = setting.split, data.public_rows
    if setting.parties:
        _check_named(data, setting, faults)
        _check_people(data, privacy, setting, faults)
        return
    if data.tables:
        faults.add("data.tables", "the files of named parties need [setting.parties] with their public sizes")
    if data.dataset is None and data.table is None and not data.tables:
        faults.add("data.table", 'name the file with the records; write table = "records.csv"')
    if split is None or split.kind in ("equal", "one-per-record"):
        if rows is None:
            faults.add("data.rows", "the number of records must be public and known before the file is read; state it")
        elif split is not None and split.parties is not None and split.parties > rows:
            faults.add_value("setting.split.parties", split.parties, f"each party has a record, and there are {rows}")
    elif split.kind == "sizes":
        if rows is not None and sum(split.sizes) != rows:
            faults.add_value(
                "setting.split.sizes", list(split.sizes), f"the sizes add up to the {rows} records; change one of them"
            )
    elif split.kind == "dirichlet":
        if data.dataset is None or data.task == "regression":
            faults.add_value(
                "setting.split.kind",
                "dirichlet",
                "sizes would follow from private labels; use it with a catalogued set of classes, or choose equal",
            )
    else:
        _check_column(data, privacy, split, faults)
    if (
        privacy.adjacency == "add-remove"
        and privacy.seed is None
        and data.dataset is None
        and split is not None
        and split.kind != "column"
    ):
        faults.add_value(
            "privacy.adjacency",
            "add-remove",
            "dealing records by their place in the file moves the others when one is removed; use replace-one, deal by "
            "a column, or set privacy.seed for a simulation",
        )
    _check_people(data, privacy, setting, faults)
    if privacy.unit == "party" and setting.kind == "central":
        faults.add_value(
            "privacy.unit",
            "party",
            'one curator with one table is one party; protect people with unit = "person", or set setting.kind = '
            '"federated", trust = "curator" and setting.split.kind = "column"',
        )


def _check_people(data: DataSection, privacy: PrivacySection, setting: SettingSection, faults: Faults) -> None:
    """People have ids, and every one of them is with one party that others' sums are added to."""
    if privacy.unit != "person":
        return
    dealt = setting.split is not None and setting.split.kind != "equal"
    if setting.kind == "decentralized" or dealt or data.schema is None or data.schema.user_column is None:
        faults.add_value(
            "privacy.unit",
            "person",
            'people with several records are protected where a schema has a column of kind = "user", in one table, '
            "with named parties that hold their own people, or in a simulation dealt by setting.split.kind = "
            '"equal", which keeps people whole',
        )
    elif setting.split is not None and privacy.seed is None:
        # Who is replaced may have rows at other places, and people behind them another place in the order.
        faults.add_value(
            "privacy.unit",
            "person",
            "dealing people by the places of their rows moves others when one of them is replaced; name parties that "
            "hold their own people, or set privacy.seed for a simulation",
        )


def _check_named(data: DataSection, setting: SettingSection, faults: Faults) -> None:
    names = [name for name, _ in setting.parties]
    if data.dataset is not None or data.table is not None:
        key = "data.dataset" if data.dataset is not None else "data.table"
        faults.add(key, "named parties hold their own files; remove it, or deal the table in [setting.split]")
    if data.rows is not None:
        faults.add_value("data.rows", data.rows, "named parties state their own sizes; remove it")
    for name, _ in data.tables:
        if name not in names:
            faults.add(f"data.tables.{name}", f"no party has this name; choose one of {', '.join(names)}")


def _check_column(data: DataSection, privacy: PrivacySection, split: SplitSection, faults: Faults) -> None:
    if data.dataset is not None:
        if _users_of(data) is None:
            faults.add_value(
                "setting.split.kind", "column", f"the set {data.dataset} does not say whose records they are"
            )
        return
    assert data.schema is not None
    if data.schema.user_column is None:
        faults.add_value(
            "setting.split.kind", "column", 'the schema has no column of kind = "user"; give one, or choose equal'
        )
    if split.sizes:
        return
    if split.parties is None or split.size is None:
        faults.add(
            "setting.split.sizes",
            "sizes of users must be public: list them, or state parties and size, the most that one may have",
        )
    elif privacy.adjacency == "replace-one":
        faults.add_value(
            "setting.split.size",
            split.size,
            'an upper bound on sizes goes with privacy.adjacency = "add-remove"; set that, or list the sizes',
        )


def _users_of(data: DataSection) -> IntArray | None:
    users = load_catalogued(data).users
    return None if users is None else users[: data.public_rows]


def _split_catalogued(data: DataSection, split: SplitSection) -> Split:
    """The split of a catalogued set, whose users and labels are public."""
    if split.kind == "column":
        users = _users_of(data)
        assert users is not None
        return by_column(users)
    return skew_labels(split, training_records(data).y)
