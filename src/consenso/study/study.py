"""A study: one file that says what is learnt, from which table, for whom it is private, and how."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from consenso.arrays import IntArray
from consenso.errors import InputError
from consenso.planning.plan import Plan
from consenso.privacy.card.plain import plain
from consenso.privacy.observers import Observer
from consenso.problem import Problem
from consenso.shards import Shards
from consenso.shards.cluster import hold_rows
from consenso.shards.constant import constant_for
from consenso.shards.stored import StoredShards
from consenso.splits import Split, by_column
from consenso.study.cost import Where
from consenso.study.cross_checks import check_together
from consenso.study.data import DataSection, read_data
from consenso.study.keys import Faults, Keys
from consenso.study.model import ModelSection, read_model
from consenso.study.output import OutputSection, read_output
from consenso.study.parties import deal, deal_people, names_of, sizes_of, skew_labels
from consenso.study.planning import Planned, observer_of, plan_of, problem_of
from consenso.study.privacy import WAYS, PrivacySection, read_privacy
from consenso.study.setting import SettingSection, read_setting
from consenso.study.sources import Records, evaluation_records, file_records, model_rows, training_records
from consenso.study.stored import is_stored, open_table, weigh_table
from consenso.study.writing import write_toml

SCHEMA = "schema.toml"  # the name of the copy in the folder of a run
SECTIONS = ("data", "model", "privacy", "setting", "output")
LARGEST = 4 << 20  # bytes of a study file
#: Keys that name files on one machine.
LOCAL = (("data", "table"), ("data", "tables"), ("data", "test"), ("privacy", "ledger"))


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study, validated as a whole. Everything in it is public, but for the contents of the files that it names."""

    title: str
    data: DataSection
    model: ModelSection
    privacy: PrivacySection
    setting: SettingSection
    output: OutputSection
    folder: Path = field(compare=False)  # where relative paths start
    tables: Mapping[str, Any] = field(compare=False, repr=False)  # the file as it was read

    @staticmethod
    def load(path: str | Path) -> Study:
        """The study in a TOML file; InputError lists everything that is wrong with it."""
        path = Path(path)
        try:
            if path.stat().st_size > LARGEST:
                raise InputError(f"{path}: a study has at most {LARGEST >> 20} MB; check that this is one.")
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path}: a study is UTF-8 text; save it again as UTF-8.") from None
        except OSError as error:
            raise InputError(f"{path}: a study cannot be read there ({error.strerror}); check the path.") from None
        return Study.parse(text, folder=path.parent, source=str(path))

    @staticmethod
    def parse(text: str, *, folder: Path | None = None, source: str = "study") -> Study:
        """The study written as TOML; `source` names it in errors, `folder` is where relative paths start."""
        try:
            tables = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{source}: not TOML: {error}; correct the line.") from None
        except (ValueError, RecursionError):  # a number of too many digits, or tables without end
            raise InputError(f"{source}: not TOML that can be read; write plain numbers and tables.") from None
        return Study.from_tables(tables, folder=folder or Path(), source=source)

    @staticmethod
    def from_tables(tables: Mapping[str, Any], *, folder: Path, source: str = "study") -> Study:
        """The study of tables as a TOML file holds them."""
        faults = Faults()
        top = Keys(tables, "", faults)
        title = top.text("title", "") or ""
        inner = {name: _section(top, name) for name in SECTIONS}
        top.finish()
        data = read_data(inner["data"], folder)
        schema_intercept = data is not None and data.schema is not None and data.schema.intercept
        setting = read_setting(inner["setting"])
        # An algorithm that is named runs as it is written down; where the rules choose, they choose the penalty, too.
        named = setting is not None and setting.algorithm is not None
        model = read_model(
            inner["model"],
            None if data is None else data.classes,
            intercept=schema_intercept,
            usual_penalty="none" if named else "auto",
        )
        privacy = read_privacy(inner["privacy"])
        output = read_output(inner["output"])
        faults.refuse(source)
        assert data is not None
        assert model is not None
        assert privacy is not None
        assert setting is not None
        study = Study(
            title=title,
            data=data,
            model=model,
            privacy=privacy,
            setting=setting,
            output=output,
            folder=folder,
            tables=tables,
        )
        check_together(study, inner, faults)
        faults.refuse(source)
        return study

    def with_epsilon(self, epsilon: float) -> Study:
        """The same study with another budget, at the same delta."""
        cleared: dict[str, Any] = {f"privacy.{way}": None for way in WAYS}
        return self.change({**cleared, "privacy.epsilon": float(epsilon), "privacy.delta": self.privacy.delta})

    def change(self, changes: Mapping[str, Any]) -> Study:
        """The same study with other values of some keys, such as {"privacy.epsilon": 0.5}; None removes a key."""
        return Study.from_tables(_change_tables(self.tables, changes), folder=self.folder)

    def to_toml(self) -> str:
        """The file as text."""
        return write_toml(self.tables)

    def move(self, folder: Path) -> Study:
        """The same study for a file in another folder, beside a copy of the schema called schema.toml."""
        changes: dict[str, Any] = {}
        for key, path in (("data.table", self.data.table), ("data.test", self.data.test)):
            changes[key] = self._relative(path, folder)
        changes["privacy.ledger"] = self._relative(self.privacy.ledger, folder)
        if self.data.tables:
            changes["data.tables"] = {name: self._relative(path, folder) for name, path in self.data.tables}
        if self.data.schema is not None:
            changes["data.schema"] = SCHEMA
        return replace(self, folder=folder, tables=_change_tables(self.tables, changes))

    def _relative(self, path: str | None, folder: Path) -> str | None:
        if path is None or Path(path).is_absolute():
            return path
        return os.path.relpath((self.folder / path).resolve(), folder.resolve())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the study says: the same for any order of keys, spacing, and defaults written or not.

        The title and where files lie do not count, so that a study is the same on every machine; the content of the
        schema does.
        """
        # Names without a family, so that a study has the digest that version 0.1.0 gave it.
        said = {
            name: plain(getattr(self, name), name, lambda kind: kind.__name__) for name in SECTIONS if name != "output"
        }
        for section, name in LOCAL:
            said[section].pop(name)
        # Keys that version 0.1.0 did not have count where they say something.
        for name, usual in (("trees", "one"), ("masks", "added")):
            if said["setting"][name] == usual:
                said["setting"].pop(name)
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    @cached_property
    def sizes(self) -> IntArray:
        """Public records of each party, (parties,)."""
        return sizes_of(self.data, self.setting)

    @cached_property
    def parties(self) -> tuple[str, ...]:
        """Names of the parties, in the order of the problem."""
        return names_of(self.setting, self.sizes)

    @property
    def simulation(self) -> bool:
        """Whether the noise is seeded, so that it protects nobody."""
        return self.privacy.seed is not None

    @property
    def observer(self) -> Observer:
        """Whom the target is for."""
        return observer_of(self.privacy, self.setting, self.parties)

    @property
    def constant(self) -> float | None:
        """The value of the constant feature; None without an intercept."""
        return constant_for(self.data.bound) if self.model.intercept else None

    def problem(self) -> Problem:
        """What is minimized, with its public facts."""
        return self._problem

    def plan(self) -> Plan:
        """The plan of the run. No data are read; server and parties make the same one."""
        return self.planned.plan

    @cached_property
    def planned(self) -> Planned:
        """The plan with how its algorithm was chosen."""
        follows = self.model.regularizer is None
        return plan_of(self._problem, self.privacy, self.setting, self.parties, self.constant, penalty_follows=follows)

    @cached_property
    def _problem(self) -> Problem:
        return problem_of(self.data, self.model, self.privacy, self.setting, self.sizes)

    def where(self, *, on_cluster: bool = False) -> Where:
        """Where the rows of a run in this process are. No data are read."""
        if on_cluster:
            if not (self.setting.split is None and self.data.table):
                raise InputError("--engine dask: the workers of a cluster hold one table; use it with a central study.")
            return "workers"
        table = self.data.table if self.setting.split is None else None
        return "storage" if table and self._reads_batches(table, 0) else "memory"

    def _reads_batches(self, table: str | Path, party: int) -> bool:
        """Whether the table of a party stays in storage: by its name, or since its public size is large."""
        large = int(self.sizes[party]) * len(self.data.plain_features)
        is_able = getattr(self.plan().algorithm, "adds_up_only", False)
        return is_stored(table, large if is_able else 0)

    def shards(self, client: Any = None, watch: Callable[[int], None] | None = None) -> Shards:
        """The records of all parties, for a run in this process. Reads the files: private.

        client: of a Dask cluster whose workers hold the one table. watch: told the rows of every batch that is added
        up, where they are not in memory.
        """
        where = self.where(on_cluster=client is not None)
        if self.setting.parties:
            files = dict(self.data.tables)
            missing = [name for name in self.parties if name not in files]
            if missing:
                raise InputError(
                    f"data.tables: to run all parties in one process, each has its file, and {missing[0]!r} has none; "
                    "add it, or let the parties join by consenso serve and consenso join."
                )
            read = [file_records(self.data, self.folder / files[name]) for name in self.parties]
            if self.privacy.unit == "person":
                return self._shards_of_people(read, range(len(read)))
            return Shards.from_parties(self._problem, [(self._rows(records.X), records.y) for records in read])
        if where != "memory":
            return self._store(self.folder / str(self.data.table), 0, client, watch)
        records = self._records()
        if self.privacy.unit == "person":
            split = self.setting.split
            if split is None:
                return self._shards_of_people([records], [0])
            dealt = deal_people(split, records.users)
            parts = [records.take(dealt.order[a:b]) for a, b in itertools.pairwise(dealt.offsets)]
            return self._shards_of_people(parts, range(len(parts)))
        return Shards.from_table(self._problem, self._rows(records.X), records.y, self._split(records))

    def _shards_of_people(self, parts: Sequence[Records], places: Sequence[int]) -> Shards:
        """Rows of some parties with weights, so that every person counts once."""
        from consenso.estimators.people import read_people

        rows, targets, weights = [], [], []
        for records, place in zip(parts, places, strict=True):
            people = read_people("Study", records.users, len(records.y), 1)
            self._check_people(people.count, place)
            rows.append(self._rows(records.X[people.kept]))
            targets.append(records.y[people.kept])
            weights.append(people.contributions)
        ends = np.cumsum([0, *map(len, targets)])
        stacked = rows[0] if len(rows) == 1 else np.concatenate(rows)
        return Shards.build(
            self._problem,
            stacked,
            np.concatenate(targets),
            ends,
            parties=list(places),
            weights=np.concatenate(weights),
        )

    def _check_people(self, count: int, place: int) -> None:
        declared = int(self.sizes[place])
        if count > declared or (count != declared and self.privacy.adjacency == "replace-one"):
            raise InputError(
                f"{'data.rows' if len(self.parties) == 1 else self.parties[place]}: {declared} people are declared "
                "and the file has another number; it is exact under replace-one and an upper bound under "
                'privacy.adjacency = "add-remove"; correct it.'
            )

    def party_shards(self, name: str, path: str | Path | None = None, client: Any = None) -> Shards:
        """The records of one party, from its own file or, in a simulation, its part of the table. Private.

        client: of a Dask cluster whose workers hold the party's own file.
        """
        if name not in self.parties:
            raise InputError(f"party {name!r}: the study knows {_some(self.parties)}; use one of these names.")
        place = self.parties.index(name)
        file = path if path is not None else dict(self.data.tables).get(name)
        if file is None and self.setting.parties:
            raise InputError(f"party {name!r}: no file was named for it; pass its path, or state it in data.tables.")
        if file is None:
            records = self._part(place)
        else:
            where = Path(file) if path is not None else self.folder / file
            if client is not None or self._reads_batches(where, place):
                return self._store(where, place, client)
            records = file_records(self.data, where)
        if self.privacy.unit == "person":
            return self._shards_of_people([records], [place])
        return Shards.from_parties(self._problem, [(self._rows(records.X), records.y)], parties=[place])

    def _store(self, path: Path, party: int, client: Any = None, watch: Callable[[int], None] | None = None) -> Shards:
        table = open_table(self.data, path)
        intake: dict[str, Any] = {"bound": self.data.bound, "party": party, "watch": watch, "constant": self.constant}
        if self.privacy.unit == "person":
            table, people = weigh_table(table)
            self._check_people(people.count, party)
            intake["units"] = people.count
        if client is None:
            return StoredShards.open(self._problem, table, **intake)
        return hold_rows(client, self._problem, table, **intake)

    def evaluation_records(self) -> Records | None:
        """Rows and targets of the public test part, if the study has one."""
        return evaluation_records(self.data, self.folder)

    def _part(self, place: int) -> Records:
        records, setting = self._records(), self.setting
        people = self.privacy.unit == "person" and setting.split is not None
        split = deal_people(setting.split, records.users) if people else self._split(records)
        return records.take(split.order[split.offsets[place] : split.offsets[place + 1]])

    def _records(self) -> Records:
        if self.data.dataset is not None:
            return training_records(self.data)
        return file_records(self.data, self.folder / str(self.data.table))

    def _rows(self, X: Any) -> Any:
        return model_rows(X, self.data, self.model)

    def _split(self, records: Records) -> Split:
        split, rows = self.setting.split, len(records.y)
        if split is None:
            return Split(np.arange(rows, dtype=np.int64), np.array([0, rows], dtype=np.int64))
        if split.kind == "column":
            assert records.users is not None
            made = by_column(records.users)
            if made.parties != len(self.parties):
                raise InputError(
                    f"setting.split.parties = {len(self.parties)}: the table has another number of users; state the "
                    "public number of users."
                )
            return made
        if split.kind == "dirichlet":
            return skew_labels(split, records.y)
        if rows != int(self.sizes.sum()) and self.privacy.adjacency == "replace-one":
            raise InputError(
                f"data.rows: {int(self.sizes.sum())} records are declared and the file has another number; under "
                'replace-one the number is public and exact; correct it, or use privacy.adjacency = "add-remove".'
            )
        return deal(split, rows)


def _change_tables(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(dict(tables))
    for key, value in changes.items():
        *path, name = key.split(".")
        table = found
        for part in path:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise InputError(f"{key}: {part!r} is no table in this study; change {part!r} itself.")
        if value is None:
            table.pop(name, None)
        else:
            table[name] = value
    return found


def _section(top: Keys, name: str) -> Keys:
    needed = name != "output"
    inner = top.inner(name)
    if inner is None and needed and name not in top.table:
        top.faults.add(f"[{name}]", f"a study has this section; add a line [{name}] and its keys")
        # What is asked of an absent section is not a second fault.
        return Keys({}, name, Faults())
    return inner or Keys({}, name, Faults() if needed else top.faults)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
